//! The contract of `docs/http-tool.md`, by every way of serving a tool.

use serde_json::{Value, json};

use crate::world::{Gateway, Kind, Service, told};

#[test]
fn python_alone_keeps_the_contract() {
    assert_contract(Kind::Python);
}

#[test]
fn fastapi_keeps_the_contract() {
    assert_contract(Kind::FastApi);
}

#[test]
fn node_alone_keeps_the_contract() {
    assert_contract(Kind::Node);
}

#[test]
fn express_keeps_the_contract() {
    assert_contract(Kind::Express);
}

/// A6, A12, A17, A20, B14: binding, key, dry run, identity, deadline, errors and bounds of a tool that is not written in Rust.
fn assert_contract(kind: Kind) {
    let mut service = Service::start(kind);
    let gateway = Gateway::start(&service.entries());
    let order = |arguments: &str, key: &str| gateway.keyed("t.order", arguments, key);

    // What a model writes is bound to the types of the function, which gets a number.
    let first = order(r#"{"sku": "a", "quantity": "2"}"#, "k_1");
    let made = r#"{"quantity":2,"sku":"a"}"#;
    assert_eq!(told(&first), format!("{made} [TEXT_TO_INTEGER]"), "{first}");
    let refused = order(r#"{"sku": "a", "quantity": "many"}"#, "k_2");
    assert_eq!(refused["error"]["details"]["field"], "/quantity");
    let refused = order(r#"{"sku": "a", "colour": "red"}"#, "k_2");
    assert_eq!(refused["error"]["code"], "INVALID_ARGUMENT");
    // The same key has the same answer and one effect.
    let second = order(r#"{"quantity": 2, "sku": "a"}"#, "k_1");
    assert_eq!(second["data"], first["data"]);
    assert_eq!(second["replayed"], true);
    let other = order(r#"{"sku": "b"}"#, "k_1");
    assert_eq!(other["error"]["details"]["reason"], "key_reused");
    // A dry run reaches the function and changes nothing.
    let dry = gateway.call("t.order", r#"{"sku": "c"}"#, json!({"dry_run": true}));
    assert_eq!(
        dry["data"],
        json!({"quantity": 1, "sku": "c"}),
        "the default is filled in"
    );
    assert_eq!(
        service.orders().len(),
        1,
        "{kind:?}: {:?}",
        service.orders()
    );

    assert_failures(&gateway, kind);

    // Who calls is verified by the service.
    let reply = gateway.call("t.who", "{}", json!({}));
    let expected = json!({
        "user": "u_local", "realm": "home", "actor": {"type": "agent", "id": "local"},
        "request_id": reply["request_id"], "trace": true, "in_time": true, "key": null,
    });
    assert_eq!(reply["data"], expected, "{kind:?}: {reply}");

    // An answer is read to the bound and not further.
    let size =
        |size: u64| told(&gateway.call("t.big", &json!({ "size": size }).to_string(), json!({})));
    assert_eq!(size(1 << 20).len(), (1 << 20) + r#"{"text":""} []"#.len());
    let large = size(5 << 20);
    assert!(large.starts_with("UPSTREAM_ERROR: "), "{large}");
    assert!(large.len() < 300 && large.contains("4194304"), "{large}");

    // Nobody waits after the deadline, and the service knows.
    let late = gateway.keyed("t.late", "{}", "k_late");
    assert_eq!(late["error"]["code"], "TIMEOUT", "{late}");
    assert_eq!(service.line(), "late True\n");
    let again = gateway.keyed("t.late", "{}", "k_late");
    assert_eq!(again["error"]["details"]["reason"], "in_doubt", "{again}");
}

/// An error that a function raises becomes a closed code, and details that were not written for callers stay in the service.
fn assert_failures(gateway: &Gateway, kind: Kind) {
    let fail = |how: &str| {
        let arguments = json!({ "how": how }).to_string();
        gateway.keyed("t.fail", &arguments, &format!("k_{how}"))
    };
    let reply = fail("code");
    assert_eq!(told(&reply), "PRICE_CHANGED: it costs more now [final]");
    let details = &reply["error"]["details"];
    let known: [&Value; 2] = [&details["hint"], &details["price"]];
    assert_eq!(known, ["ask again", "12.50"], "{kind:?}");
    assert_eq!(
        told(&fail("declared")),
        "OUT_OF_STOCK: none is left [final]"
    );
    for _ in 0..2 {
        // Nothing was changed, so that the same call may be made again.
        let safe = told(&fail("safe"));
        assert_eq!(safe, "UPSTREAM_ERROR: the bank is closed [retryable]");
    }
    let bug = fail("bug");
    assert_eq!(
        told(&bug),
        "UPSTREAM_ERROR: the tool failed; its log says why [final]"
    );
    assert!(!bug.to_string().contains("hunter2"), "{kind:?}: {bug}");
    let again = fail("bug");
    assert_eq!(again["error"]["details"]["reason"], "in_doubt", "{again}");
    let wrong = fail("otherwise");
    assert_eq!(wrong["error"]["code"], "INVALID_ARGUMENT", "{wrong}");
}
