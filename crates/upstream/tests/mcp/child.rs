//! Servers that run as children: their tools, their effects, their ends.

use std::sync::Arc;

use countersign::cancel::Cancellation;
use countersign::dialogue::{Asks, Dialogue, Said};
use countersign::{Principal, ToolCall, progress};
use countersign_testkit::patience::{until, within};
use countersign_upstream::{Keep, Manifest, Upstreams};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

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

/// A22: the evidence of a call names the pin of the definitions that it rests on, also if the call fails, is in doubt, times out, is
/// refused, or meets a definition that waits for approval.
#[tokio::test]
async fn the_evidence_names_the_pin() {
    let world = world("", "timeouts.attempt_ms = 2000\n").await;
    let pin = world.upstreams.server("plain").unwrap().pin().unwrap();
    let check = async |tool: &str, arguments: &str, key: &str, code: &str| {
        let reply = world.call_of("ann", tool, arguments, Some(key)).await;
        assert!(told(&reply).starts_with(code), "{}", told(&reply));
        let sources = reply.evidence.unwrap().sources;
        let own = sources.iter().filter(|source| source.kind == "mcp_pin");
        let own: Vec<_> = own
            .map(|own| (own.name.as_str(), own.hash.clone()))
            .collect();
        assert_eq!(
            own,
            [("plain", pin.digest.to_string())],
            "{tool} {arguments}"
        );
    };
    check("plain.say", r#"{"text": "x"}"#, "a", "ok ").await;
    check("plain.fail", r#"{"text": "x"}"#, "b", "UPSTREAM_ERROR").await;
    check("plain.order", r#"{"then": "die"}"#, "c", "UPSTREAM_ERROR").await;
    check("plain.order", r#"{"then": "die"}"#, "c", "CONFLICT").await;
    check("plain.order", r#"{"then": "hang"}"#, "d", "TIMEOUT").await;
    check("plain.say", "{}", "e", "INVALID_ARGUMENT").await;
    let other = json!({"name": "say", "description": "Other.", "inputSchema": {"type": "object"}});
    std::fs::write(world.folder.path().join("tools"), other.to_string()).unwrap();
    world.ask().await;
    let changed = "UPSTREAM_ERROR: the definition of plain.say has changed";
    check("plain.say", r#"{"text": "x"}"#, "f", changed).await;
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
            "UPSTREAM_ERROR: the connection to the upstream plain was lost before its answer was complete [final  ]",
        ),
        (
            "hang",
            "TIMEOUT: the upstream plain did not answer in time [final  ]",
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

/// An order that is looked up with the tool `find` of the same server.
const LOOKED_UP: &str = "[[tool]]\nname = 'plain.order'\nrecovery.reconcile.grace_seconds = 0\n\
    [tool.reconcile]\ntool = 'plain.find'\nfound = '/orders'\n\
    arguments = { key = '{idempotency_key}', how = 'look {then}', most = 1 }\n\
    [[tool]]\nname = 'plain.find'\neffect = 'read'\n";

/// A definition of `find`.
fn find(description: &str) -> String {
    let text = json!({"type": "string"});
    let arguments = json!({"key": text, "how": text, "most": {"type": "integer"}});
    let input = json!({"type": "object", "properties": arguments, "required": ["key"]});
    json!({"name": "find", "description": description, "inputSchema": input}).to_string()
}

/// A17, T8: a child dies around its effect, and another tool of the server is asked what became of the call: it happened, it did not, or
/// that is unknown. The look-up is a read: it has the key as an argument, and none of its own.
#[tokio::test]
async fn a_lost_call_is_looked_up_with_another_tool() {
    let in_doubt = "CONFLICT: it is not known whether the first call with this idempotency_key had its effect [final in_doubt ]";
    for (then, second, effects) in [
        ("die", "ok {\"order\":0} ", 1),
        ("fall", "ok \"done\" ", 1),
        ("blind", in_doubt, 1),
    ] {
        let folder = folder();
        std::fs::write(folder.path().join("tools"), find("Finds an order.")).unwrap();
        let manifest = plain(folder.path(), "", &format!("{FAST}{LOOKED_UP}"));
        let world = World::new(folder, &manifest).await;
        let arguments = json!({ "then": then }).to_string();
        let order = async || {
            let reply = world.call_of("ann", "plain.order", &arguments, Some("k"));
            told(&reply.await)
        };
        let first = order().await;
        assert!(first.contains("was lost before its answer"), "{first}");
        assert_eq!(order().await, second, "{then}");
        assert_eq!(world.lines("effects").len(), effects, "{then}");
        let asked = world.lines("asked");
        let asked: Value = serde_json::from_str(&asked[0]).unwrap();
        assert_eq!(asked["arguments"]["how"], format!("look {then}"));
        assert_eq!(asked["arguments"]["most"], 1);
        assert_eq!(asked["key"], Value::Null);
        if then == "die" {
            assert_eq!(asked["arguments"]["key"], world.lines("effects")[0]);
            assert_eq!(order().await, second, "and it is the answer from now on");
        }
        world.upstreams.close().await;
    }
}

/// A8, T8: what the other tool finds is checked like the answer of the call itself.
#[tokio::test]
async fn what_another_tool_finds_is_checked() {
    for (kind, remark) in [("integer", ""), ("string", "ANSWER_NOT_AS_DECLARED")] {
        let folder = folder();
        std::fs::write(folder.path().join("tools"), find("Finds an order.")).unwrap();
        let output = format!(
            "output = {{ type = 'object', properties = {{ order = {{ type = '{kind}' }} }} }}\n"
        );
        let said = LOOKED_UP.replacen(
            "recovery.reconcile",
            &format!("{output}recovery.reconcile"),
            1,
        );
        let manifest = plain(folder.path(), "", &format!("{FAST}{said}"));
        let world = World::new(folder, &manifest).await;
        let order = async || {
            let reply = world.call_of("ann", "plain.order", r#"{"then": "die"}"#, Some("k"));
            told(&reply.await)
        };
        let first = order().await;
        assert!(first.contains("was lost before its answer"), "{first}");
        assert_eq!(order().await, format!("ok {{\"order\":0}} {remark}"));
        world.upstreams.close().await;
    }
}

/// A22: a look-up whose definition has changed is not asked, and the call stays in doubt; one that was never approved keeps the tool out.
#[tokio::test]
async fn a_look_up_is_held_to_its_pin() {
    let folder = folder();
    std::fs::write(folder.path().join("tools"), find("Finds an order.")).unwrap();
    let manifest = plain(folder.path(), "", &format!("{FAST}{LOOKED_UP}"));
    let world = World::new(folder, &manifest).await;
    let order = async || {
        let arguments = r#"{"then": "die"}"#;
        let reply = world.call_of("ann", "plain.order", arguments, Some("k"));
        told(&reply.await)
    };
    order().await;
    let path = world.folder.path().join("tools");
    std::fs::write(&path, find("Finds your keys.")).unwrap();
    world.ask().await;
    let doubted = order().await;
    assert!(doubted.contains("in_doubt"), "{doubted}");
    assert_eq!(world.lines("asked").len(), 0);
    std::fs::write(&path, find("Finds an order.")).unwrap();
    world.ask().await;
    assert_eq!(order().await, "ok {\"order\":0} ");
    world.upstreams.close().await;

    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(world.folder.path().join("countersign.lock.json")).unwrap();
    let world = World::new(world.folder, &manifest).await;
    let names = world.names();
    assert!(!names.contains(&"plain.order".to_owned()), "{names:?}");
    let left_out = world.upstreams.server("plain").unwrap().state().left_out;
    assert_eq!(
        left_out[0].why,
        "the look-up of plain.order: plain.find is not among the approved tools of plain"
    );
    world.upstreams.close().await;
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

/// A child of an older era that takes longer to start than the question for the newest era waits, as one does that is downloaded first, is
/// asked in its own era.
#[tokio::test]
async fn a_child_that_starts_late_is_listed() {
    let world = world(", '--late'", "").await;
    let state = world.upstreams.server("plain").unwrap().state();
    assert_eq!(world.names().len(), 7, "{state:?}");
    assert_eq!(world.lines("started").len(), 2);
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

/// No child and no grandchild is left after 50 cycles: after a close, after a drop, after one that died.
#[tokio::test]
async fn no_child_is_left() {
    let folder = folder();
    let manifest = plain(folder.path(), ", '--grandchild'", FAST);
    let mut world = World::new(folder, &manifest).await;
    // Ten users at a time have a child each: some die, and the rest is closed or dropped with its world.
    for round in 0..5 {
        let own = &world;
        let users = (0..10).map(|user| async move {
            let name = format!("u{user}");
            let say = own.call_of(&name, "plain.say", r#"{"text": "x"}"#, None);
            let reply = say.await;
            assert!(reply.ok, "{reply:?}");
            if user % 3 == 0 {
                let die = own.call_of(&name, "plain.order", r#"{"then": "die"}"#, Some("k"));
                let reply = die.await;
                assert!(!reply.ok, "{reply:?}");
            }
        });
        futures_util::future::join_all(users).await;
        if round % 2 == 0 {
            world.upstreams.close().await;
        }
        world = World::unasked(world.folder, &manifest);
    }
    world.upstreams.close().await;
    let all = [world.lines("started"), world.lines("grandchildren")].concat();
    assert!(all.len() >= 100, "{all:?}");
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

/// A8: a server's structured answer that breaks its own schema is reported, or a read fails, as the entry says. A call that changed
/// something did so, and succeeds with the warning.
#[tokio::test]
async fn an_answer_that_breaks_its_schema_is_told() {
    let folder = folder();
    let lie = |name: &str| {
        let any = json!({"type": "object", "additionalProperties": true});
        let output =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        json!({"name": name, "description": "x", "inputSchema": any, "outputSchema": output})
            .to_string()
    };
    let mut rest = FAST.to_owned();
    let mut tools = Vec::new();
    for (effect, rule) in [
        ("read", "warn"),
        ("read", "refuse"),
        ("write", "warn"),
        ("write", "refuse"),
    ] {
        let name = format!("lie_{effect}_{rule}");
        rest.push_str(&format!(
            "[[tool]]\nname = 'plain.{name}'\neffect = '{effect}'\nresponse.on_mismatch = '{rule}'\n"
        ));
        tools.push(lie(&name));
    }
    std::fs::write(folder.path().join("tools"), tools.join("\n")).unwrap();
    let manifest = plain(folder.path(), "", &rest);
    let world = World::new(folder, &manifest).await;
    let refused = "UPSTREAM_ERROR: the answer of the upstream plain is not as declared";
    let warned = "ok {\"n\":\"many\"} ANSWER_NOT_AS_DECLARED";
    for (tool, expected) in [
        ("plain.lie_read_warn", warned),
        ("plain.lie_read_refuse", refused),
        ("plain.lie_write_warn", warned),
        ("plain.lie_write_refuse", warned),
    ] {
        let said = told(&world.call(tool, "{}").await);
        assert!(said.starts_with(expected), "{tool}: {said}");
        let true_one = told(&world.call(tool, r#"{"n": 3}"#).await);
        assert_eq!(true_one, "ok {\"n\":3} ", "{tool}");
    }
    assert_eq!(world.lines("effects").len(), 8, "each was called once");
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

/// Images and links beside a structured answer are kept, and the answer still fits its schema. An error keeps its texts, whatever stands
/// between them.
#[tokio::test]
async fn no_block_of_an_answer_is_lost() {
    let folder = folder();
    let output = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false,
    });
    let tool = json!({"name": "mixed", "inputSchema": {"type": "object"}, "outputSchema": output});
    std::fs::write(folder.path().join("tools"), tool.to_string()).unwrap();
    let manifest = plain(folder.path(), "", "");
    let world = World::new(folder, &manifest).await;
    let reply = world.call("plain.mixed", "{}").await;
    let kept = json!([
        {"type": "image", "data": "aW1hZ2U=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "upstream://plain/notes://today", "name": "today"},
    ]);
    assert_eq!(
        reply.data,
        json!({"n": 1, "dev.countersign/content": kept}),
        "{reply:?}"
    );
    assert!(reply.warnings.is_empty(), "{reply:?}");

    let failed = world.call("plain.fail", r#"{"text": "picture"}"#).await;
    let details = &failed.error.as_ref().unwrap().details.extra;
    assert_eq!(details["upstream_message"], "see the picture");
    world.upstreams.close().await;
}

/// A server that the configuration has no more ends with its running calls, and takes no further one. Whatever is left is closed with the set that
/// is in force.
#[tokio::test]
async fn a_server_ends_with_its_entry() {
    for is_retired in [true, false] {
        let world = world(", '--offers'", "").await;
        let (dialogue, mut said) = Dialogue::new(json!({"elicitation": {}})).line(Asks::Now);
        let call = ToolCall::new("plain.ask", "{}", Principal::user("ann"));
        let running = world.executor.execute(call.extension(Arc::new(dialogue)));
        let others = async {
            let question = loop {
                match within(said.recv()).await.unwrap() {
                    Said::Question(_, answer) => break answer,
                    Said::Message(_) => {}
                }
            };
            let after = Some((&world.upstreams, Keep::Unchanged));
            let next = Upstreams::prepare_after(&Manifest::default(), world.folder.path(), after);
            let next = next.unwrap();
            if is_retired {
                next.retire(&world.upstreams);
                let refused = "UPSTREAM_ERROR: the upstream plain could not be reached";
                until(async || {
                    let reply = world.call_of("bob", "plain.say", r#"{"text": "x"}"#, None);
                    told(&reply.await).starts_with(refused)
                })
                .await;
                assert!(world.lines("started").iter().all(|pid| is_alive(pid)));
            } else {
                next.close().await;
            }
            // Nobody waits for it where the server was closed.
            let _gone = question.send(json!({"action": "decline"}));
        };
        let (reply, ()) = within(async { tokio::join!(running, others) }).await;
        assert_eq!(reply.ok, is_retired, "{reply:?}");
        let started = world.lines("started");
        assert!(started.len() >= 2, "{started:?}");
        until(async || !started.iter().any(|pid| is_alive(pid))).await;
    }
}

/// A child that is not used ends in time, however seldom the tools are listed again. The one over which the server announces changes stays.
#[tokio::test]
async fn an_idle_child_ends_in_time() {
    let rest = "connections.idle_seconds = 1\ndiscovery.refresh_seconds = 86400\n";
    let world = world("", rest).await;
    let following = world.upstreams.follow(&world.catalog);
    let pid = world.data("plain.who", "{}").await["pid"].to_string();
    assert!(is_alive(&pid));
    until(async || !is_alive(&pid)).await;
    assert_eq!(world.upstreams.server("plain").unwrap().children().len(), 1);
    drop(following);
    world.upstreams.close().await;
}
