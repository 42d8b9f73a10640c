//! Scopes and agents: no caller does or sees more than the policy and the credential allow (A3).

use std::time::Duration;

use serde_json::{Value, json};

use crate::case::{
    Case, Expected, FORBIDDEN, INVALID, NOT_FOUND, Request, Tally, UNAUTHORIZED, case, message,
};
use crate::world::{Backing, World};

/// A3: neither a scope, nor a name in the envelope, nor a new key ever widens a caller's rights.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let world = World::start(backing).await;
    let mut tally = Tally::new("scopes");
    tally.run(&world, "keys", keys(&world)).await;
    tally.run(&world, "agents", agents(&world)).await;
    tally.run(&world, "realms", realms(&world)).await;
    tally
        .run(&world, "records of others", records(&world))
        .await;
    tally
        .run(&world, "tokens without grants", grants(&world))
        .await;
    let watcher = world
        .reading_key("root", &["notes:write", "keys:manage"])
        .await;
    world.rebase().await;
    tally
        .run(&world, "effects", effects(&world, &watcher))
        .await;
    tally.run(&world, "status", status(&world)).await;
    rotation(&world, &mut tally).await;
    tally
}

/// A request of a caller for a new key.
fn new_key(by: &str, key: &Value) -> Request {
    Request::post("/v1/keys", key.to_string()).by(by)
}

fn keys(world: &World) -> Vec<Case> {
    let (cast, harm) = (&world.cast, "a key that can do more than its maker");
    let ann = json!({"actor": {"type": "user", "id": "ann"}});
    let of_root = |more: Value| {
        let mut key = json!({"actor": {"type": "user", "id": "root"}});
        for (name, value) in more.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    };
    let agent = json!({"type": "agent", "id": "helper"});
    let system = json!({"type": "system", "id": "helper"});
    let key = |name: &str, key: Value, expected: Expected| {
        case(name, new_key(&cast.root, &key), expected, harm)
    };
    let desk = format!("/v1/keys/{}", cast.desk_id);
    let root = format!("/v1/keys/{}", cast.root_id);
    let rotate = |id: &str, by: &str| Request::post(format!("{id}/rotate"), "").by(by);
    vec![
        case(
            "an agent makes a key",
            new_key(&cast.shopper, &ann),
            FORBIDDEN,
            harm,
        ),
        case(
            "an agent with every scope makes one",
            new_key(&cast.greedy, &ann),
            FORBIDDEN,
            harm,
        ),
        case(
            "a backend makes a key",
            new_key(&cast.shop, &ann),
            FORBIDDEN,
            harm,
        ),
        case(
            "a user without the scope makes one",
            new_key(&cast.bob, &ann),
            FORBIDDEN,
            harm,
        ),
        case(
            "an agent lists keys",
            Request::get("/v1/keys").by(&cast.shopper),
            FORBIDDEN,
            harm,
        ),
        case(
            "an agent ends a key",
            Request::new("DELETE", &*root).by(&cast.shopper),
            FORBIDDEN,
            harm,
        ),
        case(
            "an agent rotates a key",
            rotate(&root, &cast.shopper),
            FORBIDDEN,
            harm,
        ),
        key("a key for another user", ann.clone(), FORBIDDEN),
        key(
            "an agent's key for another user",
            json!({"actor": agent, "user_id": "ann"}),
            FORBIDDEN,
        ),
        key("a key for nobody", json!({"actor": agent}), FORBIDDEN),
        key(
            "a key for everybody",
            json!({"actor": agent, "acts_for_others": true}),
            FORBIDDEN,
        ),
        key(
            "a system's key",
            json!({"actor": system, "user_id": "root"}),
            FORBIDDEN,
        ),
        key(
            "a wider key",
            of_root(json!({"scopes": ["evidence:open"]})),
            FORBIDDEN,
        ),
        key(
            "an agent that makes keys",
            json!({"actor": agent, "user_id": "root", "scopes": ["keys:manage"]}),
            INVALID,
        ),
        key(
            "an agent that answers",
            json!({"actor": agent, "user_id": "root", "scopes": ["approvals:answer"]}),
            INVALID,
        ),
        key(
            "a name of a program",
            of_root(json!({"user_id": "system/desk"})),
            INVALID,
        ),
        key(
            "a hidden name",
            json!({"actor": {"type": "user", "id": "ro\u{202e}ot"}}),
            INVALID,
        ),
        key("a key that is null", Value::Null, INVALID),
        key(
            "a member too many",
            of_root(json!({"is_admin": true})),
            INVALID,
        ),
        key(
            "an end in the past",
            of_root(json!({"expires_at": "2020-01-01T00:00:00Z"})),
            INVALID,
        ),
        case(
            "a member twice",
            Request::post(
                "/v1/keys",
                r#"{"actor":{"type":"user","id":"root"},"user_id":"root","user_id":"ann"}"#,
            )
            .by(&cast.root),
            INVALID,
            harm,
        ),
        case(
            "a key that can do more is rotated",
            rotate(&desk, &cast.root),
            FORBIDDEN,
            harm,
        ),
        case(
            "no key is rotated",
            rotate("/v1/keys/0123456789abcdef", &cast.root),
            NOT_FOUND,
            harm,
        ),
    ]
}

fn agents(world: &World) -> Vec<Case> {
    let (cast, harm) = (&world.cast, "a call that the policy denies");
    let add = |by: &str, envelope: Value| {
        let mut body = json!({"arguments": {"text": "forged"}});
        for (name, value) in envelope.as_object().unwrap() {
            body[name] = value.clone();
        }
        Request::call("notes.add", &body).by(by)
    };
    let named = |kind: &str, id: &str| json!({"type": kind, "id": id});
    let home = |more: Value| world.issuers.by_home(&more);
    let refused = |name: &str, request: Request| case(name, request, FORBIDDEN, harm);
    let blocked = json!({"user_id": "ann", "actor": named("agent", "blocked-1")});
    let by_mcp = |by: &str, meta: Value| {
        let params = json!({"name": "notes_add", "arguments": {"text": "forged"}, "_meta": meta});
        Request::mcp("tools/call", params).by(by)
    };
    let forbidden = || Expected::Tool("FORBIDDEN");
    let message = json!({"choices": [{"message": {"role": "assistant", "tool_calls": [{
        "id": "c", "type": "function", "function": {"name": "notes_add", "arguments": "{\"text\": \"forged\"}"},
    }]}}]});
    vec![
        refused("a denied agent", add(&cast.blocked, json!({}))),
        refused(
            "a backend names a denied agent",
            add(&cast.shop, blocked.clone()),
        ),
        refused("an agent names a denied agent", add(&cast.broker, blocked)),
        refused(
            "a denied agent in act",
            add(&home(json!({"act": {"sub": "blocked-7"}})), json!({})),
        ),
        refused(
            "a denied agent behind act",
            add(
                &home(json!({"act": {"sub": "a", "act": {"sub": "blocked-7"}}})),
                json!({}),
            ),
        ),
        refused(
            "a denied agent as a client",
            add(&home(json!({"client_id": "blocked-7"})), json!({})),
        ),
        refused(
            "an agent is its user",
            add(&cast.shopper, json!({"actor": named("user", "ann")})),
        ),
        refused(
            "an agent is another agent",
            add(&cast.shopper, json!({"actor": named("agent", "greedy")})),
        ),
        refused(
            "an agent is a system",
            add(&cast.shopper, json!({"actor": named("system", "desk")})),
        ),
        refused(
            "an agent is the operator",
            add(
                &cast.shopper,
                json!({"actor": named("system", "operator/ann")}),
            ),
        ),
        refused(
            "an agent acts for another user",
            add(&cast.shopper, json!({"user_id": "bob"})),
        ),
        refused(
            "a user acts for another user",
            add(&cast.bob, json!({"user_id": "ann"})),
        ),
        refused(
            "a user is an agent of another",
            add(&cast.bob, json!({"actor": named("agent", "shopper")})),
        ),
        refused("an agent without the scope", add(&cast.reader, json!({}))),
        refused("a program that acts for nobody", add(&cast.job, json!({}))),
        refused(
            "a program that acts for nobody names somebody",
            add(&cast.job, json!({"user_id": "ann"})),
        ),
        case("the declaration of a tool that is denied", Request::get("/v1/tools/notes.add").by(&cast.blocked), NOT_FOUND, harm),
        case("an envelope twice (a model's message)", Request::post("/v1/providers/openai/calls", format!(r#"{{"message": {message}, "envelope": {{"user_id": "bob"}}, "envelope": {{"user_id": "ann"}}}}"#)).by(&cast.shop), INVALID, harm),
        case("a message twice (a model's message)", Request::post("/v1/providers/openai/calls", format!(r#"{{"message": {{}}, "message": {message}}}"#)).by(&cast.bob), INVALID, harm),
        case(
            "a backend names nobody",
            add(&cast.shop, json!({})),
            INVALID,
            harm,
        ),
        case(
            "a backend names an empty user",
            add(&cast.shop, json!({"user_id": ""})),
            INVALID,
            harm,
        ),
        case(
            "a backend names a hidden user",
            add(&cast.shop, json!({"user_id": "an\u{200b}n"})),
            INVALID,
            harm,
        ),
        case(
            "an agent is its user (MCP)",
            by_mcp(
                &cast.shopper,
                json!({"dev.countersign/actor": named("user", "ann")}),
            ),
            forbidden(),
            harm,
        ),
        case(
            "an agent acts for another user (MCP)",
            by_mcp(&cast.shopper, json!({"dev.countersign/user_id": "bob"})),
            forbidden(),
            harm,
        ),
        case(
            "a denied agent (MCP)",
            by_mcp(&cast.blocked, json!({})),
            forbidden(),
            harm,
        ),
        case(
            "an agent without the scope (MCP)",
            by_mcp(&cast.reader, json!({})),
            forbidden(),
            harm,
        ),
        case(
            "an agent without the scope (a model's message)",
            Request::post("/v1/providers/openai/calls", message.to_string()).by(&cast.reader),
            Expected::Harmless(200),
            harm,
        ),
    ]
}

fn realms(world: &World) -> Vec<Case> {
    let harm = "something of another realm";
    let backend = world.issuers.by_corp(&json!({
        "sub": "backend", "client_id": "corp-shop", "scope": "users:any notes:write",
    }));
    let add = |envelope: Value| {
        let mut body = json!({"arguments": {"text": "forged"}});
        for (name, value) in envelope.as_object().unwrap() {
            body[name] = value.clone();
        }
        Request::call("notes.add", &body).by(&backend)
    };
    let refused = |name: &str, request: Request| case(name, request, FORBIDDEN, harm);
    let person = world.issuers.by_corp(&json!({"sub": "ann"}));
    vec![
        refused("a backend of the other realm names ann", add(json!({"user_id": "ann"}))),
        refused("it names a program of ours", add(json!({"user_id": "agent/nightly"}))),
        refused("it names an agent of ours", add(json!({"user_id": "corp::ann", "actor": {"type": "agent", "id": "shopper"}}))),
        refused("it names a user of ours as the actor", add(json!({"user_id": "corp::ann", "actor": {"type": "user", "id": "ann"}}))),
        refused("it names a third realm", add(json!({"user_id": "other::ann"}))),
        refused("it looks at the calls of ann", Request::get("/v1/calls?user=ann").by(&backend)),
        case("it looks at a record of ann", Request::get(format!("/v1/evidence/{}", world.record)).by(&backend), NOT_FOUND, harm),
        case("it looks at a call of ann", Request::get(format!("/v1/calls/{}?user=ann", world.request)).by(&backend), FORBIDDEN, harm),
        case("ann of the other realm looks at it", Request::get(format!("/v1/evidence/{}", world.record)).by(&person), NOT_FOUND, harm),
        refused("ann of the other realm names ours", Request::call("notes.list", &json!({"user_id": "ann"})).by(&person)),
        case(
            "it reads a record of ann (MCP)",
            Request::mcp("resources/read", json!({"uri": format!("evidence://{}", world.record), "_meta": {"dev.countersign/user_id": "ann"}})).by(&backend),
            Expected::Rpc(200, -32602),
            harm,
        ),
    ]
}

fn records(world: &World) -> Vec<Case> {
    let (cast, harm) = (&world.cast, "what ann has kept");
    let record = format!("/v1/evidence/{}", world.record);
    let open = r#"{"reason": "curious"}"#;
    let hidden = |name: &str, request: Request| case(name, request, NOT_FOUND, harm);
    let greedy_bob = Request::get("/v1/calls?user=bob").by(&cast.greedy);
    let calls = |by: &str| Request::get("/v1/calls?user=ann").by(by);
    let tiles = |by: &str| Request::get("/v1/log/tile/entries/000").by(by);
    vec![
        hidden("the record", Request::get(&*record).by(&cast.bob)),
        hidden(
            "its proof",
            Request::get(format!("{record}/proof")).by(&cast.bob),
        ),
        hidden(
            "its bundle",
            Request::get(format!("{record}/bundle")).by(&cast.bob),
        ),
        hidden(
            "its content",
            Request::post(format!("{record}/open"), open).by(&cast.bob),
        ),
        hidden(
            "its content, with the scope",
            Request::post(format!("{record}/open"), open).by(&cast.opener),
        ),
        hidden(
            "its replay",
            Request::post(format!("{record}/replay"), "{}").by(&cast.opener),
        ),
        hidden(
            "the call",
            Request::get(format!("/v1/calls/{}", world.request)).by(&cast.bob),
        ),
        hidden(
            "the record, for a desk",
            Request::get(&*record).by(&cast.desk),
        ),
        case("the calls of ann", calls(&cast.bob), FORBIDDEN, harm),
        case(
            "the calls of ann, for a desk",
            calls(&cast.desk),
            FORBIDDEN,
            harm,
        ),
        case(
            "the calls of bob, for an agent with every scope",
            greedy_bob,
            FORBIDDEN,
            harm,
        ),
        case("all records", tiles(&cast.bob), FORBIDDEN, harm),
        case(
            "all records, for an agent with every scope",
            tiles(&cast.greedy),
            FORBIDDEN,
            harm,
        ),
        case(
            "her content, by her agent without the scope",
            Request::post(format!("{record}/open"), open).by(&cast.shopper),
            FORBIDDEN,
            harm,
        ),
        case(
            "her content, by herself without the scope",
            Request::post(format!("{record}/open"), open).by(&cast.ann),
            FORBIDDEN,
            harm,
        ),
        case(
            "the questions of ann",
            Request::get("/v1/approvals?user=ann").by(&cast.bob),
            Expected::Harmless(200),
            harm,
        ),
        case(
            "an erased user's calls",
            Request::get("/v1/calls?user=eve").by(&cast.bob),
            FORBIDDEN,
            harm,
        ),
    ]
}

/// A token lists its scopes; the policy decides which built-in ones count.
fn grants(world: &World) -> Vec<Case> {
    let harm = "a right that nobody gave";
    let all = "keys:manage approvals:answer calls:read evidence:open evidence:erase evidence:hold claims:resolve";
    let corp = |scope: &str| {
        world
            .issuers
            .by_corp(&json!({"sub": "mallory", "scope": scope}))
    };
    let agent = world
        .issuers
        .by_home(&json!({"sub": "mallory", "scope": all, "client_id": "bot"}));
    let person = world
        .issuers
        .by_home(&json!({"sub": "mallory", "scope": all}));
    let keys = |by: &str| Request::get("/v1/keys").by(by);
    let calls = |by: &str| Request::get("/v1/calls?user=ann").by(by);
    let record = format!("/v1/evidence/{}", world.record);
    let refused = |name: &str, request: Request| case(name, request, FORBIDDEN, harm);
    let mut cases = vec![
        refused("keys of an agent by token", keys(&agent)),
        refused("calls of an agent by token", calls(&agent)),
        refused(
            "a key for another user by token",
            new_key(&person, &json!({"actor": {"type": "user", "id": "ann"}})),
        ),
        refused(
            "a key of another realm by token",
            new_key(
                &person,
                &json!({"actor": {"type": "user", "id": "corp::ann"}}),
            ),
        ),
        case(
            "a record opened by token",
            Request::post(format!("{record}/open"), r#"{"reason": "x"}"#).by(&person),
            FORBIDDEN,
            harm,
        ),
        case(
            "a token without a user",
            Request::call("notes.list", &json!({"user_id": "ann"})).by(&world
                .issuers
                .by_corp(&json!({"sub": "job", "client_id": "job"}))),
            FORBIDDEN,
            harm,
        ),
        case(
            "a token that was changed to hold more",
            keys(&(person.replace('.', ".e30."))),
            UNAUTHORIZED,
            harm,
        ),
    ];
    for scope in [
        all,
        "KEYS:MANAGE",
        "keys:*",
        "keys:manage\u{200b}",
        "*",
        "keys:manage,calls:read",
    ] {
        cases.push(refused(&format!("keys by {scope:?}"), keys(&corp(scope))));
        cases.push(refused(&format!("calls by {scope:?}"), calls(&corp(scope))));
    }
    cases
}

/// A key for reads changes nothing, and cannot create a key that does.
fn effects(world: &World, watcher: &str) -> Vec<Case> {
    let harm = "an effect that the key does not have";
    let add = json!({"arguments": {"text": "forged"}});
    let in_name = json!({"arguments": {"text": "forged"}, "user_id": "root"});
    let by_mcp = json!({"name": "notes_add", "arguments": {"text": "forged"}});
    let refused = |name: &str, request: Request| case(name, request, FORBIDDEN, harm);
    let key = |effects: Value| {
        let key = json!({"actor": {"type": "user", "id": "root"}, "effects": effects});
        new_key(watcher, &key)
    };
    vec![
        refused("a write", Request::call("notes.add", &add).by(watcher)),
        refused(
            "a write in its own name",
            Request::call("notes.add", &in_name).by(watcher),
        ),
        refused(
            "a disk",
            Request::call("disk.wipe", &json!({"arguments": {"disk": "x"}})).by(watcher),
        ),
        case(
            "a write (MCP)",
            Request::mcp("tools/call", by_mcp).by(watcher),
            Expected::Tool("FORBIDDEN"),
            harm,
        ),
        refused("a key without bounds", key(Value::Null)),
        refused("a key that writes", key(json!(["read", "write"]))),
        case("a key that does nothing", key(json!([])), INVALID, harm),
        case(
            "a key that does everything",
            new_key(
                &world.cast.root,
                &json!({"actor": {"type": "user", "id": "root"}, "effects": ["*"]}),
            ),
            INVALID,
            harm,
        ),
    ]
}

fn status(world: &World) -> Vec<Case> {
    let harm = "what concerns others";
    let of = |query: &str, by: &str| Request::get(format!("/v1/status{query}")).by(by);
    vec![
        case(
            "the status of ann",
            of("?user=ann", &world.cast.bob),
            FORBIDDEN,
            harm,
        ),
        case(
            "the status of bob for an agent of ann",
            of("?user=bob", &world.cast.greedy),
            FORBIDDEN,
            harm,
        ),
        case(
            "the status of two",
            of("?user=bob&user=ann", &world.cast.bob),
            INVALID,
            harm,
        ),
        case(
            "the status for nobody",
            Request::get("/v1/status"),
            UNAUTHORIZED,
            harm,
        ),
        case(
            "one's own status",
            of("", &world.cast.bob),
            Expected::Harmless(200),
            harm,
        ),
    ]
}

/// A key that expires cannot prolong itself.
async fn rotation(world: &World, tally: &mut Tally) {
    let end = "2060-11-16T13:00:00Z";
    let (token, id) = world.key_until("root", &["keys:manage"], end).await;
    world.parts.clock.advance(Duration::from_mins(10));
    let new = json!({"actor": {"type": "user", "id": "root"}});
    let longer = world.honest(&new_key(&token, &new)).await;
    tally.check("a key that outlives its maker", longer.status, 403);
    let rotate = Request::post(format!("/v1/keys/{id}/rotate"), "").by(&token);
    let rotated = message(&world.honest(&rotate).await);
    let ends = rotated["key"]["expires_at"].clone();
    tally.check("a key that outlives itself", ends, json!(end));
    world.rebase().await;
}
