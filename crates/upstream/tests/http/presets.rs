//! Presets, fixed members and credentials: nothing that a caller sends stands beside them or in their place.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::service::{Seen, Service, json as answer};
use crate::world::{World, told};

const TOOLS: &str = r#"
    [[tool]]
    name = "svc.explode"
    upstream = "svc"
    description = "An object whose members are parameters."
    request = { method = "GET", path = "/x", query = { fixed = "1" } }
    input = { type = "object", properties = { filter = { type = "object" } } }
    arguments.tenant.preset = "acme"

    [[tool]]
    name = "svc.form"
    upstream = "svc"
    description = "The same in a form."
    effect = "read"
    request = { method = "POST", path = "/x", body = "form" }
    input = { type = "object", properties = { filter = { type = "object" } } }
    arguments.tenant.preset = "acme"
    arguments.filter.style = "form"

    [[tool]]
    name = "svc.reserved"
    upstream = "svc"
    description = "Reserved characters stay."
    request = { method = "GET", path = "/x" }
    input = { type = "object", properties = { q = { type = "string" }, c = { type = "string" }, o = { type = "object" } } }
    arguments.tenant.preset = "acme"
    arguments.q.allow_reserved = true
    arguments.c = { in = "cookie", allow_reserved = true }
    arguments.o = { in = "cookie" }
    arguments.sess = { in = "cookie", preset = "fixed" }

    [[tool]]
    name = "svc.wire"
    upstream = "svc"
    description = "A preset under another name, and any argument."
    request = { method = "GET", path = "/x", query = { fixed = "1" } }
    input = { type = "object", properties = { q = { type = "string" } }, additionalProperties = true }
    arguments.tenant = { preset = "acme", name = "tenant_id" }
    unknown_keys = "keep"

    [[tool]]
    name = "svc.body"
    upstream = "svc"
    description = "The same in JSON."
    effect = "read"
    request = { method = "POST", path = "/x", body = "json" }
    input = { type = "object", properties = { q = { type = "string" } }, additionalProperties = true }
    arguments.tenant = { preset = "acme", name = "tenant_id" }
    unknown_keys = "keep"

    [[tool]]
    name = "svc.header"
    upstream = "svc"
    description = "An argument under the name of a fixed header."
    request = { method = "GET", path = "/x", headers = { X-Tenant = "acme" } }
    input = { type = "object", properties = { h = { type = "string" }, cookie = { type = "string" } } }
    arguments.h = { in = "header", name = "x-tenant" }
    arguments.cookie = { in = "header" }
    arguments.sess = { in = "cookie", preset = "fixed" }
"#;

/// B15, A21: a caller cannot write under a name of the operator's, whatever the style, the place or the spelling; nothing is sent.
#[tokio::test]
async fn a_preset_is_not_overridden() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "s3cret").unwrap();
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let auth = format!(
        "auth.query = {{ name = 'api_key', value = 'file:{}' }}",
        key.display()
    );
    let world = World::new(&service, &auth, TOOLS);
    let mut lines = Vec::new();
    for (tool, arguments) in [
        ("svc.explode", r#"{"filter": {"tenant": "evil"}}"#),
        ("svc.explode", r#"{"filter": {"Tenant[]": "evil"}}"#),
        ("svc.explode", r#"{"filter": {"fixed": "2"}}"#),
        ("svc.explode", r#"{"filter": {"a": 1, "api.key": "mine"}}"#),
        ("svc.form", r#"{"filter": {"tenant": "evil"}}"#),
        ("svc.reserved", r#"{"o": {"sess": "evil"}}"#),
        ("svc.wire", r#"{"tenant_id": "evil"}"#),
        ("svc.wire", r#"{"fixed": "2"}"#),
        ("svc.body", r#"{"TENANT_ID": "evil"}"#),
        ("svc.header", r#"{"h": "evil"}"#),
        ("svc.header", r#"{"cookie": "a=1; sess=evil"}"#),
    ] {
        let reply = world.call(tool, arguments).await;
        let field = reply.error.as_ref().and_then(|it| it.details.field.clone());
        lines.push(format!("{} {}", field.unwrap_or_default(), told(&reply)));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    /filter/tenant INVALID_ARGUMENT: the argument "filter" would send "tenant", which is set by the operator and cannot be sent [final  ]
    /filter/Tenant[] INVALID_ARGUMENT: the argument "filter" would send "Tenant[]", which is set by the operator and cannot be sent [final  ]
    /filter/fixed INVALID_ARGUMENT: the argument "filter" would send "fixed", which is set by the operator and cannot be sent [final  ]
    /filter/api.key INVALID_ARGUMENT: the argument "filter" would send "api.key", which is set by the operator and cannot be sent [final  ]
    /filter/tenant INVALID_ARGUMENT: the argument "filter" would send "tenant", which is set by the operator and cannot be sent [final  ]
    /o/sess INVALID_ARGUMENT: the argument "o" would send "sess", which is set by the operator and cannot be sent [final  ]
    /tenant_id INVALID_ARGUMENT: the argument "tenant_id" would send "tenant_id", which is set by the operator and cannot be sent [final  ]
    /fixed INVALID_ARGUMENT: the argument "fixed" would send "fixed", which is set by the operator and cannot be sent [final  ]
    /TENANT_ID INVALID_ARGUMENT: the argument "TENANT_ID" would send "TENANT_ID", which is set by the operator and cannot be sent [final  ]
    /h INVALID_ARGUMENT: the argument "h" would send "x-tenant", which is set by the operator and cannot be sent [final  ]
    /cookie INVALID_ARGUMENT: the argument "cookie" would send "sess", which is set by the operator and cannot be sent [final  ]
    "#);
    assert_eq!(service.seen().len(), 0);
}

/// B15: reserved characters of a value never begin another parameter or cookie.
#[tokio::test]
async fn a_value_is_never_another_pair() {
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let world = World::new(&service, "", TOOLS);
    let arguments = r#"{"q": "a/b?c=d&tenant=evil;x#y+z", "c": "v;sess=evil, sess=evil"}"#;
    world.data("svc.reserved", arguments).await;
    let seen = service.last();
    insta::assert_snapshot!(format!("{} {}", seen.target, seen.header("cookie")), @"/base/x?q=a/b?c=d%26tenant=evil%3Bx%23y%2Bz&tenant=acme c=v%3Bsess%3Devil%2C%20sess%3Devil; sess=fixed");
    world
        .data("svc.explode", r#"{"filter": {"other": "x"}}"#)
        .await;
    insta::assert_snapshot!(service.last().target, @"/base/x?fixed=1&other=x&tenant=acme");
}

/// The values of a name in what arrived, as the most generous service would read them.
fn values(seen: &Seen, name: &str) -> Vec<String> {
    let query = seen.target.split_once('?').map_or("", |it| it.1);
    let body = seen.text();
    if let Ok(Value::Object(members)) = serde_json::from_str::<Value>(&body) {
        let own = members.iter().filter(|(key, _)| key.to_lowercase() == name);
        return own.map(|(_, value)| value.to_string()).collect();
    }
    let cookies = seen.header("cookie").replace(' ', "");
    // A cookie is no parameter, whatever its name.
    let pairs = if name == "sess" {
        cookies
    } else {
        [query, &body].join("&")
    };
    let pairs = pairs.split(['&', ';', '#']).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy();
        let key = key
            .split('[')
            .next()
            .unwrap_or_default()
            .trim()
            .to_lowercase();
        (key, value.to_owned())
    });
    let own = pairs.filter(|(key, _)| key == name);
    own.map(|(_, value)| value).collect()
}

/// A key or a value that an attacker would send.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "tenant",
        "Tenant",
        "tenant_id",
        "TENANT_ID",
        "sess",
        "fixed",
        "evil",
        "a",
        "=",
        "&",
        ";",
        "#",
        "+",
        "%26",
        "%",
        "[",
        "]",
        "[0]",
        " ",
        ",",
        ".",
        "\u{fc}",
    ]);
    prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// B15: whatever a caller sends, a preset and a fixed parameter arrive exactly once and with their value, or nothing is sent.
    #[test]
    fn presets_arrive_once(
        at in 0_usize..5,
        pairs in prop::collection::vec((hostile(), hostile()), 1..4),
    ) {
        let (tool, argument, expected) = [
            ("svc.explode", Some("filter"), vec![("tenant", "acme"), ("fixed", "1")]),
            ("svc.form", Some("filter"), vec![("tenant", "acme")]),
            ("svc.reserved", None, vec![("tenant", "acme"), ("sess", "fixed")]),
            ("svc.wire", None, vec![("tenant_id", "acme"), ("fixed", "1")]),
            ("svc.body", None, vec![("tenant_id", "\"acme\"")]),
        ][at].clone();
        let members: Map<String, Value> =
            pairs.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
        let arguments = match (tool, argument) {
            ("svc.reserved", _) => json!({"q": pairs[0].1, "c": pairs[0].0, "o": members}),
            (_, Some(argument)) => json!({argument: members}),
            (_, None) => Value::Object(members),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (reply, seen) = runtime.block_on(async {
            let service = Service::start(|_, _| answer(200, "{}")).await;
            let world = World::new(&service, "", TOOLS);
            let reply = world.call(tool, &arguments.to_string()).await;
            (reply, service.seen())
        });
        if reply.ok {
            for (name, value) in expected {
                prop_assert_eq!(values(&seen[0], name), vec![value.to_owned()], "{:?}", seen[0]);
            }
        } else {
            prop_assert!(told(&reply).starts_with("INVALID_ARGUMENT"), "{}", told(&reply));
            prop_assert!(seen.is_empty());
        }
    }
}
