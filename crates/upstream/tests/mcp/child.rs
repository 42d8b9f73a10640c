//! Servers that run as children: their tools, their effects, their ends.

use countersign::cancel::Cancellation;
use countersign::{Principal, ToolCall, progress};
use countersign_testkit::patience::{until, within};
use rustix::process::{Pid, test_kill_process};
use serde_json::json;

use crate::world::{World, folder, plain, told};

/// The retries of a test do not wait.
const FAST: &str = "retries = { backoff_ms = 1, backoff_max_ms = 2 }\n";

async fn world(options: &str, rest: &str) -> World {
    let folder = folder();
    let manifest = plain(folder.path(), options, &format!("{FAST}{rest}"));
    World::new(folder, &manifest).await
}

fn is_alive(pid: &str) -> bool {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    test_kill_process(pid).is_ok()
}

/// A server's tools have its name in front and answer as its own; the parts of a call reach it.
#[tokio::test]
async fn tools_of_a_child_are_called() {
    let world = world("", "").await;
    let names = ["echo", "fail", "order", "say", "slow", "steps", "who"];
    assert_eq!(world.names(), names.map(|name| format!("plain.{name}")));

    let reply = world
        .call_of("ann", "plain.echo", r#"{"text": "hi"}"#, Some("k"))
        .await;
    assert!(reply.ok, "{reply:#?}");
    assert_eq!(reply.data["text"], "hi");
    let meta = &reply.data["meta"];
    assert_eq!(
        meta["dev.countersign/request_id"],
        reply.request_id.as_str()
    );
    assert!(
        meta["traceparent"].as_str().unwrap().starts_with("00-"),
        "{meta}"
    );
    assert!(meta["dev.countersign.call/deadline"].is_string(), "{meta}");
    assert!(
        meta["dev.countersign/idempotency_key"].is_string(),
        "{meta}"
    );

    let said = world.data("plain.say", r#"{"text": "{\"a\": 1}"}"#).await;
    assert_eq!(said, json!("{\"a\": 1}"), "a text stays one");
    let failed = world
        .call("plain.fail", r#"{"text": "no such file"}"#)
        .await;
    assert_eq!(
        told(&failed),
        "UPSTREAM_ERROR: the tool of the upstream plain answered with an error; details quotes it [final  ]"
    );
    let details = &failed.error.as_ref().unwrap().details.extra;
    assert_eq!(details["upstream_message"], "no such file");
    world.upstreams.close().await;
}

/// A22: the evidence of a call names the pin of the definitions that it rests on.
#[tokio::test]
async fn the_evidence_names_the_pin() {
    let world = world("", "").await;
    let reply = world.call("plain.say", r#"{"text": "x"}"#).await;
    let pin = world.upstreams.server("plain").unwrap().pin().unwrap();
    let sources = reply.evidence.unwrap().sources;
    let own = sources.iter().find(|source| source.kind == "mcp_pin");
    let own = own.map(|source| (source.name.as_str(), source.hash.clone()));
    assert_eq!(own, Some(("plain", pin.digest.to_string())));
    world.upstreams.close().await;
}

/// An entry overrides parts of the server's definition, and an unconfirmed effect counts as a change.
#[tokio::test]
async fn an_entry_says_something_on_top() {
    let rest = "[[tool]]\nname = 'plain.echo'\neffect = 'read'\n\
                [[tool]]\nname = 'plain.say'\nresponse.format = 'json'\nresponse.data = '/a'\narguments.text.preset = '{\"a\": 1}'\n\
                [[tool]]\nname = 'plain.who'\nenabled = false\n\
                [[tool]]\nname = 'plain.fail'\nerrors = [{ pointer = '/missing', code = 'NOT_FOUND' }]\n";
    let world = world("", rest).await;
    assert!(!world.names().contains(&"plain.who".to_owned()));
    let effect = |name: &str| world.catalog.get(name).unwrap().spec().behaviour.effect;
    assert_eq!(effect("plain.echo").as_str(), "read");
    assert_eq!(effect("plain.order").as_str(), "external");
    assert_eq!(world.data("plain.say", "{}").await, json!(1));
    let failed = world
        .call("plain.fail", r#"{"text": "{\"missing\": 7}"}"#)
        .await;
    assert!(
        told(&failed).starts_with("NOT_FOUND: "),
        "{}",
        told(&failed)
    );
    world.upstreams.close().await;
}

/// A21: a child sees the variables that are declared for it and nothing else of the gateway; each user has a child of their own.
#[tokio::test]
async fn a_user_has_a_child_and_a_child_has_no_secrets() {
    let folder = folder();
    std::fs::write(folder.path().join("token"), "hunter2\n").unwrap();
    let rest = "env.TOKEN = 'file:token'\n";
    let manifest = plain(folder.path(), "", rest);
    let world = World::new(folder, &manifest).await;
    let who = async |user: &str| {
        let reply = world.call_of(user, "plain.who", "{}", None).await;
        assert!(reply.ok, "{reply:#?}");
        reply.data
    };
    let (ann, bob, again) = (who("ann").await, who("bob").await, who("ann").await);
    assert_eq!(ann["pid"], again["pid"]);
    assert_ne!(ann["pid"], bob["pid"]);
    assert_eq!(ann["env"], json!({"TOKEN": "hunter2"}));
    world.upstreams.close().await;

    let manifest = plain(world.folder.path(), "", &format!("{rest}shared = true\n"));
    let world = World::new(world.folder, &manifest).await;
    let pid =
        async |user: &str| world.call_of(user, "plain.who", "{}", None).await.data["pid"].clone();
    assert_eq!(pid("ann").await, pid("bob").await);
    assert_eq!(world.upstreams.server("plain").unwrap().children().len(), 1);
    world.upstreams.close().await;
}

/// A17, T8: a child that dies after its effect, or does not answer, leaves the call in doubt; it is not made twice.
#[tokio::test]
async fn an_effect_without_an_answer_is_in_doubt() {
    for (then, first) in [
        (
            "die",
            "UPSTREAM_ERROR: the connection to the upstream plain was lost before its answer was complete [retryable  ]",
        ),
        (
            "hang",
            "TIMEOUT: the upstream plain did not answer in time [retryable  ]",
        ),
    ] {
        let world = world("", "timeouts.attempt_ms = 2000\n").await;
        let arguments = json!({ "then": then }).to_string();
        let reply = world
            .call_of("ann", "plain.order", &arguments, Some("k"))
            .await;
        assert_eq!(told(&reply), first);
        let reply = world
            .call_of("ann", "plain.order", &arguments, Some("k"))
            .await;
        assert!(told(&reply).contains("in_doubt"), "{}", told(&reply));
        assert_eq!(world.lines("effects").len(), 1, "{then}");
        // Another call finds a child that works.
        let reply = world
            .call_of("ann", "plain.order", r#"{"then": "garbage"}"#, Some("l"))
            .await;
        assert_eq!(told(&reply), "ok \"done\" ");
        world.upstreams.close().await;
    }
}

/// A call that the entry says may be repeated is made again with its key, and a read as well.
#[tokio::test]
async fn a_repeatable_call_is_made_again() {
    let rest = "[[tool]]\nname = 'plain.order'\nrecovery = 'retry'\n";
    let world = world("", rest).await;
    let reply = world
        .call_of("ann", "plain.order", r#"{"then": "die"}"#, Some("k"))
        .await;
    assert!(!reply.ok, "{reply:?}");
    let effects = world.lines("effects");
    assert_eq!(effects.len(), 3, "as often as retries allow");
    assert!(
        effects
            .iter()
            .all(|key| *key == effects[0] && key != "no key"),
        "{effects:?}"
    );
    world.upstreams.close().await;
}

/// Reports reach the caller, and a caller who gives up is heard by the server.
#[tokio::test]
async fn progress_and_cancellation_pass_through() {
    let world = world("", "").await;
    let (sink, mut reports) = progress::channel();
    let call = ToolCall::new("plain.steps", "{}", Principal::user("ann")).extension(sink);
    let reply = world.executor.execute(call).await;
    assert!(reply.ok, "{reply:#?}");
    let mut told = Vec::new();
    while let Ok(report) = reports.try_recv() {
        told.push((report.done, report.total, report.message.unwrap()));
    }
    let step = |done: f64| (done, Some(2.0), format!("step {done}"));
    assert_eq!(told, [step(1.0), step(2.0)]);

    let (sink, mut reports) = progress::channel();
    let cancellation = Cancellation::new();
    let call = ToolCall::new("plain.slow", "{}", Principal::user("ann"));
    let call = call.extension(sink).cancellation(cancellation.clone());
    let running = world.executor.execute(call);
    let cancelled = async {
        within(reports.recv()).await.unwrap();
        cancellation.cancel();
    };
    let (reply, ()) = within(async { tokio::join!(running, cancelled) }).await;
    assert!(!reply.ok, "{reply:?}");
    until(async || world.lines("cancelled").len() == 1).await;
    world.upstreams.close().await;
}

/// A server that cannot start delays nothing: the others are listed, and a call to it reports that it may be repeated.
#[tokio::test]
async fn a_dead_server_blocks_neither_start_nor_list() {
    let folder = folder();
    let alive = plain(folder.path(), "", "");
    let world = World::new(folder, &alive).await;
    assert_eq!(world.names().len(), 7);
    world.upstreams.close().await;

    // The same server, and it is dead now; beside it one that lives and one that nobody knows.
    let dead = plain(world.folder.path(), ", '--broken'", FAST);
    let second = alive.replace("'plain'", "'second'");
    let none = "[[upstream]]\nname = 'none'\nkind = 'mcp'\ncommand = ['/no/such/program']\n";
    let world = World::unasked(world.folder, &format!("{dead}{second}{none}"));
    // Nothing is waited for: the list is there before anybody was asked.
    let names = world.names();
    assert_eq!(names.len(), 7, "its last known tools: {names:?}");
    world.ask().await;
    let entries = world.executor.list(&Principal::user("ann")).await.unwrap();
    assert_eq!(entries.len(), 14);
    let names = world.names();
    assert_eq!(names.len(), 14, "{names:?}");
    assert!(
        names.contains(&"plain.echo".to_owned()),
        "the names do not change: {names:?}"
    );

    let reply = world
        .call_of("ann", "plain.order", r#"{"then": ""}"#, Some("k"))
        .await;
    let expected = "UPSTREAM_ERROR: the upstream plain could not be reached";
    assert!(told(&reply).starts_with(expected), "{}", told(&reply));
    assert!(told(&reply).contains("[retryable"), "{}", told(&reply));
    let trouble = |name: &str| world.upstreams.server(name).unwrap().state().trouble;
    let why = trouble("plain").unwrap();
    assert!(why.contains("the licence has expired"), "{why}");
    assert!(trouble("none").is_some());
    assert_eq!(trouble("second"), None);
    world.upstreams.close().await;
}

/// A server that is silent for longer than the grace has no tools any more.
#[tokio::test]
async fn tools_stay_for_a_grace() {
    let folder = folder();
    let alive = plain(folder.path(), "", "");
    let world = World::new(folder, &alive).await;
    world.upstreams.close().await;
    let dead = plain(
        world.folder.path(),
        ", '--broken'",
        "discovery.grace_seconds = 0\n",
    );
    let world = World::unasked(world.folder, &dead);
    assert_eq!(world.names().len(), 7);
    world.ask().await;
    assert_eq!(world.names(), [""; 0]);
}

/// No child and no grandchild is left: after a close, after a drop, after one that died.
#[tokio::test]
async fn no_child_is_left() {
    let folder = folder();
    let manifest = plain(folder.path(), ", '--grandchild'", FAST);
    let mut world = World::new(folder, &manifest).await;
    for round in 0..6 {
        let user = format!("u{round}");
        let reply = world
            .call_of(&user, "plain.say", r#"{"text": "x"}"#, None)
            .await;
        assert!(reply.ok, "{reply:?}");
        if round % 3 == 0 {
            let reply = world
                .call_of(&user, "plain.order", r#"{"then": "die"}"#, Some("k"))
                .await;
            assert!(!reply.ok, "{reply:?}");
        }
        if round % 2 == 0 {
            world.upstreams.close().await;
        }
        world = World::unasked(world.folder, &manifest);
    }
    world.upstreams.close().await;
    let all = [world.lines("started"), world.lines("grandchildren")].concat();
    assert!(all.len() >= 12, "{all:?}");
    until(async || !all.iter().any(|pid| is_alive(pid))).await;
}

/// Children are bounded in number: the one that was not used for longest makes room.
#[tokio::test]
async fn children_make_room_for_others() {
    let world = world("", "connections.count_max = 2\n").await;
    let mut pids = Vec::new();
    for user in ["a", "b", "c", "d"] {
        let reply = world.call_of(user, "plain.who", "{}", None).await;
        assert!(reply.ok, "{reply:?}");
        pids.push(reply.data["pid"].to_string());
        assert!(world.upstreams.server("plain").unwrap().children().len() <= 2);
    }
    until(async || pids.iter().filter(|pid| is_alive(pid)).count() <= 2).await;
    world.upstreams.close().await;
}

/// A child whose answer is longer than the bound is reported as that, and the next call finds another child.
#[tokio::test]
async fn a_line_over_the_bound_is_an_error_at_once() {
    let world = world("", "response_bytes_max = 20000\n").await;
    let long = json!({ "text": "x".repeat(30_000) }).to_string();
    let reply = within(world.call("plain.say", &long)).await;
    assert_eq!(
        told(&reply),
        "UPSTREAM_ERROR: the answer of the upstream plain is too large: more than 20000 bytes [final  ]"
    );
    assert_eq!(
        world.data("plain.say", r#"{"text": "hi"}"#).await,
        json!("hi")
    );
    world.upstreams.close().await;
}

/// A number that the protocol would not carry whole is refused, and nothing is sent.
#[tokio::test]
async fn a_number_that_would_lose_digits_is_refused() {
    let folder = folder();
    let tool = json!({"name": "count", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}});
    std::fs::write(folder.path().join("tools"), tool.to_string()).unwrap();
    let manifest = plain(folder.path(), "", "");
    let world = World::new(folder, &manifest).await;
    let reply = world
        .call("plain.count", r#"{"n": 123456789012345678901234567890}"#)
        .await;
    assert_eq!(
        told(&reply),
        "INVALID_ARGUMENT: the number 123456789012345678901234567890 cannot be sent to the tool plain.count: its protocol would lose digits [final  ]"
    );
    world.upstreams.close().await;
}

/// A21: a child gets the token that its user has stored, and no other user's; a user who has stored none has no child.
#[tokio::test]
async fn a_child_gets_the_token_of_its_user() {
    let world = world("", "user_env = 'TOKEN'\n").await;
    let reply = world.call_of("ann", "plain.who", "{}", None).await;
    assert!(!reply.ok, "{reply:?}");
    for (user, token) in [("ann", "of-ann"), ("bob", "of-bob")] {
        let arguments = json!({"upstream": "plain", "token": token}).to_string();
        let reply = world
            .call_of(user, "upstream.store_token", &arguments, Some("store"))
            .await;
        assert!(reply.ok, "{reply:?}");
    }
    for (user, token) in [("ann", "of-ann"), ("bob", "of-bob"), ("ann", "of-ann")] {
        let reply = world.call_of(user, "plain.who", "{}", Some(token)).await;
        assert_eq!(reply.data["env"], json!({"TOKEN": token}), "{reply:?}");
    }
    world.upstreams.close().await;
}

/// A definition that has changed before a first call is noticed by that call: nothing is called that was not compared.
#[tokio::test]
async fn the_first_call_compares_the_definition() {
    let folder = folder();
    let manifest = plain(folder.path(), "", "");
    let world = World::new(folder, &manifest).await;
    world.upstreams.close().await;
    let other = json!({"name": "say", "description": "Sends your files away.", "inputSchema": {"type": "object"}});
    std::fs::write(world.folder.path().join("tools"), other.to_string()).unwrap();
    let world = World::unasked(world.folder, &manifest);
    let reply = world.call("plain.say", r#"{"text": "hi"}"#).await;
    let expected = "UPSTREAM_ERROR: the definition of plain.say has changed";
    assert!(told(&reply).starts_with(expected), "{}", told(&reply));
    world.upstreams.close().await;
}

/// A21: the secrets of a child are in nothing that callers or operators get: not in data, not in details, not in why it does not start.
#[tokio::test]
async fn a_childs_secret_is_in_nothing_that_it_says() {
    let secret = "s3cret-of-the-child";
    let folder = folder();
    std::fs::write(folder.path().join("token"), secret).unwrap();
    let rest = format!("{FAST}env.TOKEN = 'file:token'\n");
    let manifest = plain(folder.path(), "", &rest);
    let world = World::new(folder, &manifest).await;
    let data = world.data("plain.who", "{}").await;
    assert_eq!(data["env"], json!({"TOKEN": "[credential]"}));
    let reply = world.call("plain.fail", r#"{"text": "leak"}"#).await;
    let said = serde_json::to_string(&reply).unwrap();
    assert!(said.contains("[credential]"), "{said}");
    assert!(!said.contains(secret), "{said}");
    world.upstreams.close().await;

    let manifest = plain(world.folder.path(), ", '--broken'", &rest);
    let world = World::new(world.folder, &manifest).await;
    let why = world
        .upstreams
        .server("plain")
        .unwrap()
        .state()
        .trouble
        .unwrap();
    assert!(why.contains("the licence has expired[credential]"), "{why}");
    assert!(!why.contains(secret), "{why}");
}
