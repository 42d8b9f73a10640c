//! MCP: other callers' sessions, tasks, resources and questions, and messages that contradict themselves (A3,
//! A13).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use countersign_gateway::Settings;
use countersign_testkit::patience::within;
use serde_json::{Value, json};

use crate::case::{Case, Expected, Request, Tally, case, message};
use crate::world::{Backing, World};

const HARM: &str = "something of another client";

/// A3: another client cannot find what belongs to one, in both eras.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let mut world = World::start(backing).await;
    let mut tally = Tally::new("mcp");
    tasks(&world, &mut tally).await;
    tally.run(&world, "resources", resources(&world)).await;
    tally.run(&world, "_meta", metas(&world)).await;
    tally.run(&world, "messages", messages(&world)).await;
    forms(&world, &mut tally).await;
    // A server on which older clients have sessions.
    let settings = Settings {
        mcp_sessions_max: 8,
        ..Settings::default()
    };
    let server = world.beside(settings).await;
    world.address = server.address;
    let world = Arc::new(world);
    sessions(&world, &mut tally).await;
    cancelled(&world, &mut tally).await;
    room(&world, &mut tally).await;
    tally
}

fn initialize(by: &str) -> Request {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    });
    Request::older_mcp("initialize", &params).by(by)
}

/// Opens a session.
async fn session(world: &World, by: &str) -> String {
    let opened = world.honest(&initialize(by)).await;
    let id = opened.header("mcp-session-id").map(str::to_owned);
    id.unwrap_or_else(|| unreachable!("{opened:?}"))
}

async fn sessions(world: &World, tally: &mut Tally) {
    let cast = &world.cast;
    let id = session(world, &cast.ann).await;
    let none = || Expected::Rpc(404, -32600);
    let call = |by: &str, session: &str| {
        let params = json!({"name": "notes_list", "arguments": {}});
        Request::older_mcp("tools/call", &params)
            .by(by)
            .with("mcp-session-id", session)
    };
    let with = |method: &'static str, by: &str, session: &str| {
        let request = Request::new(method, "/mcp")
            .by(by)
            .with("mcp-session-id", session);
        request.with("accept", "text/event-stream")
    };
    let upper = id.to_uppercase();
    let home = world.issuers.by_home(&json!({"sub": "bob"}));
    let corp = world.issuers.by_corp(&json!({"sub": "ann"}));
    let newer = Request::mcp("tools/list", json!({}))
        .by(&cast.bob)
        .with("mcp-session-id", &*id);
    let cases = vec![
        case(
            "a call in the session of another",
            call(&cast.bob, &id),
            none(),
            HARM,
        ),
        case(
            "a call of her agent in it",
            call(&cast.shopper, &id),
            none(),
            HARM,
        ),
        case("a call by a token in it", call(&home, &id), none(), HARM),
        case(
            "a call of ann of another issuer in it",
            call(&corp, &id),
            none(),
            HARM,
        ),
        case("listening to it", with("GET", &cast.bob, &id), none(), HARM),
        case("ending it", with("DELETE", &cast.bob, &id), none(), HARM),
        case(
            "ending it as her agent",
            with("DELETE", &cast.shopper, &id),
            none(),
            HARM,
        ),
        case("a message of the newer era in it", newer, none(), HARM),
        case(
            "a call in it by nobody",
            Request::older_mcp("ping", &json!({})).with("mcp-session-id", &*id),
            Expected::Rpc(401, -32001),
            HARM,
        ),
        case(
            "a session that there is not",
            call(&cast.ann, "00000000-0000-0000-0000-000000000000"),
            none(),
            HARM,
        ),
        case(
            "a session in capitals",
            call(&cast.ann, &upper),
            none(),
            HARM,
        ),
        case("no name of a session", call(&cast.ann, ""), none(), HARM),
        case(
            "a session in Latin-1",
            Request::older_mcp("ping", &json!({}))
                .by(&cast.ann)
                .with("mcp-session-id", b"\xe9".to_vec()),
            none(),
            HARM,
        ),
        case(
            "two sessions",
            call(&cast.bob, "x").with("mcp-session-id", &*id),
            none(),
            HARM,
        ),
    ];
    tally.run(world, "sessions", cases).await;
    let ready = Request::older_mcp("notifications/initialized", &json!({}));
    let ready = ready.by(&cast.ann).with("mcp-session-id", &*id);
    tally.check(
        "the session is still hers",
        world.honest(&ready).await.status,
        202,
    );
}

fn with_tasks(method: &str, mut params: Value) -> Request {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = tasks;
    Request::mcp(method, params)
}

async fn tasks(world: &World, tally: &mut Tally) {
    let cast = &world.cast;
    let call = with_tasks(
        "tools/call",
        json!({"name": "disk_wipe", "arguments": {"disk": "task"}}),
    );
    let made = message(&world.honest(&call.by(&cast.shopper)).await);
    let id = made["result"]["taskId"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let none = || Expected::Rpc(200, -32602);
    let of = |method: &str, by: &str| with_tasks(method, json!({"taskId": id})).by(by);
    let forged = |id: &str| with_tasks("tasks/get", json!({"taskId": id})).by(&cast.shopper);
    let cases = vec![
        case("the task of another", of("tasks/get", &cast.bob), none(), HARM),
        case("the task of her agent, for the user", of("tasks/get", &cast.ann), none(), HARM),
        case("the task of another agent", of("tasks/get", &cast.greedy), none(), HARM),
        case("ending it", of("tasks/cancel", &cast.bob), none(), HARM),
        case("ending it as another agent", of("tasks/cancel", &cast.greedy), none(), HARM),
        case("answering it", with_tasks("tasks/update", json!({"taskId": id, "inputResponses": {"confirmation": {"action": "accept", "content": {"confirm": true}}}})).by(&cast.bob), none(), HARM),
        case("a task that there is not", forged("ap_0"), none(), HARM),
        case("no name of a task", forged(""), none(), HARM),
        case("a task with a NUL", forged("ap_\0"), Expected::Wire(&[400]), HARM),
        case("a task by nobody", with_tasks("tasks/get", json!({"taskId": id})), Expected::Rpc(401, -32001), HARM),
    ];
    tally.run(world, "tasks", cases).await;
    let waiting = message(&world.honest(&of("tasks/get", &cast.shopper)).await);
    tally.check(
        "the task still waits",
        waiting["result"]["status"].clone(),
        json!("working"),
    );
}

fn resources(world: &World) -> Vec<Case> {
    let cast = &world.cast;
    let uri = format!("evidence://{}", world.record);
    let corp = world.issuers.by_corp(&json!({}));
    let read = |name: &str, by: &str, meta: Value| {
        let request = Request::mcp("resources/read", json!({"uri": uri, "_meta": meta})).by(by);
        case(name, request, Expected::Rpc(200, -32602), HARM)
    };
    let older = |name: &str, uri: &str| {
        let request = Request::older_mcp("resources/read", &json!({"uri": uri}));
        case(
            name,
            request.by(&cast.bob),
            Expected::Rpc(200, -32002),
            HARM,
        )
    };
    let as_ann = json!({"dev.countersign/user_id": "ann"});
    let none = "evidence://ev_00000000-0000-0000-0000-000000000000";
    vec![
        read("a record of another", &cast.bob, json!({})),
        read("a record of another in her name", &cast.bob, as_ann.clone()),
        read("a record for a desk", &cast.desk, json!({})),
        read("a record for a program of nobody", &cast.job, as_ann),
        read("a record by ann of another issuer", &corp, json!({})),
        older("a record of another, older", &uri),
        older("a record that there is not", none),
    ]
}

/// Cases with false claims in `_meta`.
fn metas(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let with = |meta: Value| {
        let params = json!({"name": "notes_add", "arguments": {"text": "forged"}, "_meta": meta});
        Request::mcp("tools/call", params).by(bob)
    };
    let malformed =
        |name: &str, request: Request| case(name, request, Expected::Rpc(200, -32602), HARM);
    let forbidden =
        |name: &str, meta: Value| case(name, with(meta), Expected::Tool("FORBIDDEN"), HARM);
    let raw = |meta: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"notes_add","arguments":{{"text":"forged"}},"_meta":{meta}}}}}"#
        );
        Request::message(body)
            .by(bob)
            .with("mcp-protocol-version", "2025-11-25")
    };
    let refused =
        |name: &str, request: Request| case(name, request, Expected::Rpc(400, -32600), HARM);
    vec![
        forbidden("another user", json!({"dev.countersign/user_id": "ann"})),
        forbidden(
            "another actor",
            json!({"dev.countersign/actor": {"type": "user", "id": "ann"}}),
        ),
        forbidden(
            "the operator",
            json!({"dev.countersign/actor": {"type": "system", "id": "operator/ann"}}),
        ),
        malformed(
            "an actor as a list",
            with(json!({"dev.countersign/actor": ["user", "ann"]})),
        ),
        malformed(
            "a user as a list",
            with(json!({"dev.countersign/user_id": ["ann"]})),
        ),
        malformed(
            "a principal",
            with(json!({"dev.countersign/principal": {"user_id": "ann"}})),
        ),
        malformed(
            "scopes",
            with(json!({"dev.countersign/scopes": ["keys:manage"]})),
        ),
        malformed(
            "an approval",
            with(json!({"dev.countersign/approval_id": "ap_1"})),
        ),
        malformed(
            "a dry run in words",
            with(json!({"dev.countersign/dry_run": "yes"})),
        ),
        case(
            "a user with a NUL",
            with(json!({"dev.countersign/user_id": "ann\u{0}"})),
            Expected::Tool("INVALID_ARGUMENT"),
            HARM,
        ),
        case(
            "a name without anything",
            with(json!({"dev.countersign/idempotency_key": ""})),
            Expected::Tool("INVALID_ARGUMENT"),
            HARM,
        ),
        refused(
            "a user twice",
            raw(r#"{"dev.countersign/user_id":"bob","dev.countersign/user_id":"ann"}"#),
        ),
        refused(
            "a user twice, the second in escapes",
            raw(r#"{"dev.countersign/user_id":"bob","dev.countersign/user\u005fid":"ann"}"#),
        ),
        refused("_meta as a list", raw("[]")),
        refused("_meta as a text", raw("\"x\"")),
        case(
            "a token for progress of 100 KiB",
            with(json!({"progressToken": "p".repeat(100 << 10), "dev.countersign/user_id": "ann"})),
            Expected::Tool("FORBIDDEN"),
            HARM,
        ),
        case(
            "a token for progress that is an object",
            raw(r#"{"progressToken": {"a": 1}, "dev.countersign/user_id": "ann"}"#),
            Expected::Tool("FORBIDDEN"),
            HARM,
        ),
    ]
}

/// Bodies with no message, or with two.
fn messages(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let send = |body: &str| {
        Request::message(body)
            .by(bob)
            .with("mcp-protocol-version", "2025-11-25")
    };
    let refused = |name: &str, body: &str| case(name, send(body), Expected::Rpc(400, -32600), HARM);
    let call = r#""jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_add","arguments":{"text":"forged"}}"#;
    let newer = |name: &str, method: &str, tool: &str| {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"notes_add","arguments":{{"text":"forged"}},"_meta":{meta}}}}}"#
        );
        let request = Request::message(body)
            .by(bob)
            .with("mcp-protocol-version", "2026-07-28");
        let request = request.with("mcp-method", method).with("mcp-name", tool);
        case(name, request, Expected::Rpc(400, -32020), HARM)
    };
    vec![
        refused("a list of calls", &format!("[{{{call}}},{{{call}}}]")),
        refused("an empty list", "[]"),
        refused(
            "a method twice",
            &format!(r#"{{"method":"tools/list",{call}}}"#),
        ),
        refused(
            "a method twice, the second in escapes",
            &format!(r#"{{{call},"metho\u0064":"tools/list"}}"#),
        ),
        refused(
            "parameters twice",
            &format!(r#"{{{call},"params":{{"name":"notes_list"}}}}"#),
        ),
        refused("an id twice", &format!(r#"{{{call},"id":2}}"#)),
        refused(
            "a name twice",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_list","name":"notes_add","arguments":{"text":"forged"}}}"#,
        ),
        refused(
            "arguments twice",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_add","arguments":{},"arguments":{"text":"forged"}}}"#,
        ),
        refused(
            "another JSON-RPC",
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"notes_add","arguments":{"text":"forged"}}}"#,
        ),
        refused(
            "an id that is an object",
            r#"{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"notes_add","arguments":{"text":"forged"}}}"#,
        ),
        refused(
            "no method",
            r#"{"jsonrpc":"2.0","id":1,"params":{"name":"notes_add"}}"#,
        ),
        case("no JSON", send("{"), Expected::Rpc(400, -32700), HARM),
        case(
            "two messages",
            send(&format!("{{{call}}} {{{call}}}")),
            Expected::Rpc(400, -32700),
            HARM,
        ),
        case(
            "bytes that are no text",
            Request::message(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}".to_vec()).by(bob),
            Expected::Rpc(400, -32700),
            HARM,
        ),
        newer("a head that names another tool", "tools/call", "notes_list"),
        newer(
            "a head that names another method",
            "tools/list",
            "notes_add",
        ),
        case(
            "another type",
            Request::post("/mcp", format!("{{{call}}}"))
                .by(bob)
                .with("content-type", "text/plain")
                .with("accept", "application/json, text/event-stream"),
            Expected::Rpc(415, -32600),
            HARM,
        ),
        case(
            "a message by nobody",
            Request::message(format!("{{{call}}}")),
            Expected::Rpc(401, -32001),
            HARM,
        ),
    ]
}

/// The form for the user of a newer client, and attempts of others to answer it.
async fn forms(world: &World, tally: &mut Tally) {
    let cast = &world.cast;
    let can = json!({"elicitation": {"form": {}}});
    let yes = json!({"confirmation": {"action": "accept", "content": {"confirm": true}}});
    let call = |disk: &str, more: Value| {
        let mut params = json!({"name": "disk_wipe", "arguments": {"disk": disk}});
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can.clone();
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        Request::mcp("tools/call", params)
    };
    let asked = message(&world.honest(&call("form", json!({})).by(&cast.ann)).await);
    let state = asked["result"]["requestState"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    tally.check("the user is asked with a form", state.is_empty(), false);
    let answered =
        |disk: &str, state: &str| call(disk, json!({"requestState": state, "inputResponses": yes}));
    let wrong = || Expected::Rpc(200, -32602);
    let wiped = "a disk that is wiped";
    let mut flipped = state.clone().into_bytes();
    let middle = flipped.len() / 2;
    flipped[middle] = if flipped[middle] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let agents = call("agent", json!({"inputResponses": yes}));
    let cases = vec![
        case("the answer of another user", answered("form", &state).by(&cast.bob), wrong(), wiped),
        case("the answer of her agent", answered("form", &state).by(&cast.shopper), wrong(), wiped),
        case("the answer for another disk", answered("other", &state).by(&cast.ann), wrong(), wiped),
        case("a state that was changed", answered("form", &flipped).by(&cast.ann), wrong(), wiped),
        case("a state that nobody made", answered("form", "eyJhIjoxfQ").by(&cast.ann), wrong(), wiped),
        case("an empty state", answered("form", "").by(&cast.ann), wrong(), wiped),
        case("an answer to nothing, of an agent", agents.by(&cast.shopper), Expected::Tool("NEEDS_USER_CONFIRMATION"), wiped),
        case("an answer to nothing, sent as one", Request::message(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"confirm":true}}}"#).by(&cast.shopper).with("mcp-protocol-version", "2025-11-25"), Expected::Rpc(400, -32600), wiped),
    ];
    tally.run(world, "forms", cases).await;
    let made = message(&world.honest(&answered("form", &state).by(&cast.ann)).await);
    let count = world.deeds.wiped.load(Ordering::SeqCst);
    tally.check(
        "the answer of the user",
        (&made["result"]["isError"], count),
        (&json!(false), 1),
    );
    world.rebase().await;
    let mut again = answered("form", &state).by(&cast.ann);
    again = again.with("idempotency-key", "k_again");
    let repeated = message(&world.honest(&again).await);
    let count = world.deeds.wiped.load(Ordering::SeqCst);
    tally.check(
        "the same answer again",
        (repeated["error"].is_null(), count),
        (true, 1),
    );
    tally.stands(world, "a form that was answered").await;
}

/// Only the caller of a call can cancel it.
async fn cancelled(world: &Arc<World>, tally: &mut Tally) {
    let calling = world.clone();
    let running = tokio::spawn(async move {
        let call = Request::mcp("tools/call", json!({"name": "test_hold", "arguments": {}}));
        message(&calling.honest(&call.by(&calling.cast.ann)).await)
    });
    within(world.deeds.holding.notified()).await;
    let params = json!({"requestId": 1, "reason": "because"});
    let bobs = session(world, &world.cast.bob).await;
    let ready = Request::older_mcp("notifications/initialized", &json!({}));
    world
        .honest(&ready.by(&world.cast.bob).with("mcp-session-id", &*bobs))
        .await;
    let cancel = |by: &str| Request::older_mcp("notifications/cancelled", &params).by(by);
    let cases = vec![
        case(
            "a call of another is cancelled",
            cancel(&world.cast.bob).with("mcp-session-id", &*bobs),
            Expected::Harmless(202),
            HARM,
        ),
        case(
            "a call of the user is cancelled by her agent",
            cancel(&world.cast.shopper),
            Expected::Rpc(400, -32600),
            HARM,
        ),
    ];
    tally.run(world, "calls that run", cases).await;
    world.deeds.release.0.add_permits(1);
    let made = within(running).await.unwrap();
    tally.check(
        "the call ends as it should",
        made["result"]["isError"].clone(),
        json!(false),
    );
}

/// One client takes all sessions: the next one is refused, and everything else goes on.
async fn room(world: &World, tally: &mut Tally) {
    let mut statuses = Vec::new();
    for _ in 0..9 {
        statuses.push(world.honest(&initialize(&world.cast.bob)).await.status);
    }
    tally.check("a session too many", statuses.last().copied(), Some(503));
    tally.stands(world, "many sessions").await;
}
