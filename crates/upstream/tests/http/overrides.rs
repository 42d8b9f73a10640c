//! Overrides of a tool that another entry defines: each member, and the difference that it makes.

use std::sync::Arc;

use countersign::contract::tool::{Change, EvidenceRule};
use countersign::contract::{Effect, Retention};
use countersign::dialect::{Dialect, ToolListOptions};
use tokio::sync::Notify;

use crate::service::{Act, Seen, Service, json as answer};
use crate::world::{World, told};

/// As an importer writes it.
const IMPORTED: &str = r#"
    [[tool]]
    name = "svc.createOrder_v2"
    upstream = "svc"
    description = "Create order (v2)."
    guessed = ["effect"]
    request = { method = "POST", path = "/orders" }
    [tool.input]
    type = "object"
    required = ["sku"]
    [tool.input.properties]
    sku = { type = "string" }
    quantity = { type = "integer" }
    at = { type = "string" }
    tenant = { type = "string" }
    debug = { type = "boolean" }
"#;

const NAME: &str = "svc.createOrder_v2";

fn with(overrides: &str) -> String {
    format!("{IMPORTED}\n[[tool]]\nname = \"{NAME}\"\n{overrides}\n")
}

async fn plain() -> Service {
    Service::start(|_, _| answer(200, r#"{"order": 1}"#)).await
}

/// B14: a name of the operator's own. The upstream and the other entries go on with the old one.
#[tokio::test]
async fn a_tool_is_shown_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("identity");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
    let service = plain().await;
    let upstream = format!("identity_secret = 'file:{}'", secret.display());
    let ours = "[[tool]]\nname = 'svc.ours'\nupstream = 'svc'\ndescription = 'x'\nshown_as = 'shop.ours'\n";
    let tools = format!("{}{ours}", with("shown_as = 'orders.create'"));
    let world = World::new(&service, &upstream, &tools);
    world.data("orders.create", r#"{"sku": "a"}"#).await;
    assert_eq!(service.last().target, "/base/orders");
    let old = world.call(NAME, r#"{"sku": "a"}"#).await;
    assert!(told(&old).starts_with("NOT_FOUND"), "{old:?}");
    world.data("shop.ours", "{}").await;
    let seen = service.last();
    assert_eq!(seen.target, "/base/tools/svc.ours");
    let payload = seen
        .header("countersign-identity")
        .split('.')
        .nth(1)
        .unwrap()
        .to_owned();
    let claims = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, payload);
    let claims: serde_json::Value = serde_json::from_slice(&claims.unwrap()).unwrap();
    assert_eq!(claims["tool"], "svc.ours", "the name in the path");
}

/// B14: title, description, examples, annotations, retention: the declaration that every caller is shown.
#[tokio::test]
async fn the_declaration_says_what_the_entry_says() {
    let service = plain().await;
    let overrides = r#"
        title = "Order"
        description = "Places an order."
        examples = [{ sku = "a", quantity = 2 }]
        change = "adds"
        retention = "long"
        arguments.sku = { description = "The article.", example = "a-17", aliases = ["article"] }
        arguments.quantity = { default = 1, harmless = true }
    "#;
    let before = World::new(&service, "", IMPORTED);
    let after = World::new(&service, "", &with(overrides));
    let spec = |world: &World| world.executor.catalog().get(NAME).unwrap().spec().clone();
    let (before, spec) = (spec(&before), spec(&after));
    assert_eq!((before.title, spec.title.as_deref()), (None, Some("Order")));
    assert_eq!(spec.description, "Places an order.");
    assert_ne!(before.behaviour.change, spec.behaviour.change);
    assert_eq!(spec.behaviour.change, Change::Adds);
    assert_ne!(before.behaviour.retention, spec.behaviour.retention);
    assert_eq!(spec.behaviour.retention, Retention::Long);
    let schema = spec.input.json_schema();
    assert_eq!(
        schema["examples"],
        serde_json::json!([{"sku": "a", "quantity": 2}])
    );
    let sku = &schema["properties"]["sku"];
    assert_eq!(sku["description"], "The article.");
    assert_eq!(sku["examples"], serde_json::json!(["a-17"]));
    // An alias is bound, and a default is sent.
    after.data(NAME, r#"{"article": "a"}"#).await;
    assert_eq!(service.last().text(), r#"{"sku":"a","quantity":1}"#);
}

/// B14: the hint that a call reaches nothing beyond its service is the operator's to say.
#[tokio::test]
async fn a_write_may_stay_within_its_service() {
    let service = plain().await;
    for (overrides, hint) in [
        ("", None),
        ("open_world = false", Some(false)),
        ("effect = 'read'", Some(false)),
        ("effect = 'read'\nopen_world = true", None),
    ] {
        let world = World::new(&service, "", &with(overrides));
        let entry = world.executor.catalog().get(NAME).unwrap();
        let list = Dialect::Mcp.tools(&[entry.spec()], &ToolListOptions::default());
        let listed = list.unwrap().json;
        let told = listed[0]["annotations"].get("openWorldHint").cloned();
        assert_eq!(told, hint.map(serde_json::Value::from), "{overrides}");
    }
}

/// B14: arguments that the operator sets are not shown, are refused from a client, and reach the upstream.
#[tokio::test]
async fn presets_and_hidden_arguments() {
    let service = plain().await;
    let overrides = "arguments.tenant.preset = 'acme'\narguments.debug.hidden = true\narguments.at.from_call = 'request_id'";
    let world = World::new(&service, "", &with(overrides));
    let schema = world
        .executor
        .catalog()
        .get(NAME)
        .unwrap()
        .spec()
        .json_schema();
    let shown: Vec<_> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(shown, ["quantity", "sku"]);
    for argument in [r#""tenant": "x""#, r#""debug": true"#, r#""at": "x""#] {
        let reply = world
            .call(NAME, &format!(r#"{{"sku": "a", {argument}}}"#))
            .await;
        assert!(
            told(&reply).starts_with("INVALID_ARGUMENT: unknown argument"),
            "{reply:?}"
        );
    }
    assert!(service.seen().is_empty());
    let reply = world.call(NAME, r#"{"sku": "a"}"#).await;
    let expected = format!(
        r#"{{"sku":"a","at":"{}","tenant":"acme"}}"#,
        reply.request_id
    );
    assert_eq!(service.last().text(), expected);
}

/// B14: kinds, leniency and sensitivity on top of the foreign schema.
#[tokio::test]
async fn arguments_are_bound_as_the_entry_says() {
    let service = plain().await;
    let check = async |overrides: &str, arguments: &str| {
        let world = World::new(&service, "", &with(overrides));
        let reply = world.call(NAME, arguments).await;
        let sent = if reply.ok {
            service.last().text()
        } else {
            String::new()
        };
        format!("{} {sent}", told(&reply))
    };
    let mut lines = Vec::new();
    for (overrides, arguments) in [
        ("", r#"{"sku": "a", "at": "tomorrow-ish"}"#),
        (
            "arguments.at.kind = 'timestamp'",
            r#"{"sku": "a", "at": "tomorrow-ish"}"#,
        ),
        (
            "arguments.at.kind = 'timestamp'",
            r#"{"sku": "a", "at": "2025-10-13T12:00:00Z"}"#,
        ),
        ("", r#"{"sku": "a", "quantity": "2"}"#),
        ("leniency = 'strict'", r#"{"sku": "a", "quantity": "2"}"#),
        (
            "arguments.quantity.leniency = 'strict'",
            r#"{"sku": "a", "quantity": "2"}"#,
        ),
        ("unknown_keys = 'drop'", r#"{"sku": "a", "other": "2"}"#),
        ("", r#"{"sku": "a", "quantity": "many"}"#),
        (
            "on_optional_error = 'tell'",
            r#"{"sku": "a", "quantity": "many"}"#,
        ),
    ] {
        lines.push(format!(
            "{overrides}: {}",
            check(overrides, arguments).await
        ));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    : ok {"order":1}  {"sku":"a","at":"tomorrow-ish"}
    arguments.at.kind = 'timestamp': INVALID_ARGUMENT: the value is not allowed: expected a date and time with its offset, such as 2026-11-15T09:30:00Z [final  ] 
    arguments.at.kind = 'timestamp': ok {"order":1}  {"sku":"a","at":"2025-10-13T12:00:00Z"}
    : ok {"order":1} TEXT_TO_INTEGER {"sku":"a","quantity":2}
    leniency = 'strict': INVALID_ARGUMENT: the value has the wrong type: expected an integer, got a string [final  ] 
    arguments.quantity.leniency = 'strict': INVALID_ARGUMENT: the value has the wrong type: expected an integer, got a string [final  ] 
    unknown_keys = 'drop': ok {"order":1} UNKNOWN_KEY_DROPPED {"sku":"a"}
    : INVALID_ARGUMENT: the value has the wrong type: expected an integer, got a string [final  ] 
    on_optional_error = 'tell': ok {"order":1} OPTIONAL_UNREADABLE {"sku":"a"}
    "#);
    // What is sensitive is not repeated to anybody.
    let quoted = |overrides: &str| with(overrides);
    for (overrides, is_quoted) in [
        ("", true),
        ("arguments.quantity.sensitivity = 'secret'", false),
    ] {
        let world = World::new(&service, "", &quoted(overrides));
        let reply = world
            .call(NAME, r#"{"sku": "a", "quantity": "hunter2"}"#)
            .await;
        let text = serde_json::to_string(&reply).unwrap();
        assert_eq!(text.contains("hunter2"), is_quoted, "{text}");
    }
}

/// B14: the effect decides about the key, the recovery about a repeat, the derive rule about which calls are the same.
#[tokio::test]
async fn the_effect_and_the_recovery_are_the_operators_to_say() {
    let mut lines = Vec::new();
    for overrides in [
        "",
        "effect = 'read'",
        "recovery = 'retry'",
        "recovery.downstream_key.window_seconds = 60",
        "key = 'required'",
        "key_fields = ['/sku']",
    ] {
        let service = Service::start(|_, before| match before {
            0 => Act::Cut(Vec::new()),
            _ => answer(200, "{}"),
        })
        .await;
        let upstream = "retries = { backoff_ms = 1, backoff_max_ms = 2 }";
        let world = World::new(&service, upstream, &with(overrides));
        let effect = world
            .executor
            .catalog()
            .get(NAME)
            .unwrap()
            .spec()
            .behaviour
            .effect;
        let reply = world.call(NAME, r#"{"sku": "a"}"#).await;
        let again = world.call(NAME, r#"{"sku": "a"}"#).await;
        let seen = service.seen();
        let keys = seen
            .iter()
            .filter(|it| !it.header("idempotency-key").is_empty());
        lines.push(format!(
            "{overrides}: {} | {} | {} sent, {} with a key",
            told(&reply).split(':').next().unwrap(),
            told(&again).split(':').next().unwrap(),
            seen.len(),
            keys.count()
        ));
        assert_eq!(effect == Effect::Read, overrides.contains("read"));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    : UPSTREAM_ERROR | ok {}  | 2 sent, 2 with a key
    effect = 'read': ok {}  | ok {}  | 3 sent, 0 with a key
    recovery = 'retry': ok {}  | ok {}  | 3 sent, 3 with a key
    recovery.downstream_key.window_seconds = 60: ok {}  | ok {}  | 3 sent, 3 with a key
    key = 'required': INVALID_ARGUMENT | INVALID_ARGUMENT | 0 sent, 0 with a key
    key_fields = ['/sku']: UPSTREAM_ERROR | CONFLICT | 1 sent, 1 with a key
    "#);
}

/// B14: confirmation, evidence, time to live, deadline and error mapping.
#[tokio::test]
async fn behaviour_is_as_the_entry_says() {
    let service = Service::start(|seen: &Seen, _| match seen.text().as_str() {
        r#"{"sku":"slow"}"# => Act::Wait(Arc::new(Notify::new())),
        r#"{"sku":"gone"}"# => answer(200, r#"{"state": "sold_out"}"#),
        // No canonical form: evidence cannot be required of it.
        r#"{"sku":"big"}"# => answer(200, r#"{"id": 9007199254740993}"#),
        _ => answer(200, "{}"),
    })
    .await;
    let check = async |overrides: &str, sku: &str| {
        let world = World::new(&service, "", &with(overrides));
        let rule = world
            .executor
            .catalog()
            .get(NAME)
            .unwrap()
            .spec()
            .behaviour
            .evidence;
        assert_eq!(
            rule == EvidenceRule::Required,
            overrides.contains("required")
        );
        let reply = world
            .keyed(NAME, &format!(r#"{{"sku": "{sku}"}}"#), "k")
            .await;
        format!("{} ttl {:?}", told(&reply), reply.ttl_seconds)
    };
    let mut lines = Vec::new();
    for (overrides, sku) in [
        ("ttl_seconds = 60", "a"),
        ("deadline_ms = 100", "slow"),
        ("confirm = 'always'", "a"),
        (
            "errors = [{ pointer = '/state', equals = 'sold_out', code = 'OUT_OF_STOCK', message = 'sold out' }]",
            "gone",
        ),
        ("", "gone"),
        ("evidence = 'required'", "a"),
        ("evidence = 'required'", "big"),
        ("", "big"),
        ("enabled = false", "a"),
    ] {
        if overrides.starts_with("enabled") {
            let world = World::new(&service, "", &with(overrides));
            assert!(world.executor.catalog().get(NAME).is_none());
            continue;
        }
        let before = service.seen().len();
        let line = check(overrides, sku).await;
        lines.push(format!(
            "{overrides} {sku}: {line}, {} sent",
            service.seen().len() - before
        ));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ttl_seconds = 60 a: ok {}  ttl Some(60), 1 sent
    deadline_ms = 100 slow: TIMEOUT: the upstream svc did not answer in time [final  ] ttl None, 1 sent
    confirm = 'always' a: NEEDS_USER_CONFIRMATION: the user has to confirm this call of svc.createOrder_v2 [final  ] ttl None, 0 sent
    errors = [{ pointer = '/state', equals = 'sold_out', code = 'OUT_OF_STOCK', message = 'sold out' }] gone: OUT_OF_STOCK: sold out [final  200] ttl None, 1 sent
     gone: ok {"state":"sold_out"}  ttl None, 1 sent
    evidence = 'required' a: ok {}  ttl None, 1 sent
    evidence = 'required' big: ok {"id":"9007199254740993"} INTEGER_AS_TEXT ttl None, 1 sent
     big: ok {"id":9007199254740993}  ttl None, 1 sent
    "#);
}
