//! Requests that do not come from the server, or were copied from its wire.

use crate::tap::Tap;
use crate::world::{Gateway, Kind, Service};

#[test]
fn python_alone_refuses_what_is_forged() {
    assert_refused(Kind::Python);
}

#[test]
fn fastapi_refuses_what_is_forged() {
    assert_refused(Kind::FastApi);
}

#[test]
fn node_alone_refuses_what_is_forged() {
    assert_refused(Kind::Node);
}

#[test]
fn express_refuses_what_is_forged() {
    assert_refused(Kind::Express);
}

/// A3: without a valid identity nothing runs, and a copied request cannot be used for anything else.
fn assert_refused(kind: Kind) {
    let service = Service::start(kind);
    let tap = Tap::start(service.port);
    let entries = service
        .entries()
        .replace(&format!(":{}\"", service.port), &format!(":{}\"", tap.port));
    let gateway = Gateway::start(&entries);
    let reply = gateway.keyed("t.order", r#"{"sku": "a"}"#, "k_1");
    assert_eq!(reply["ok"], true, "{reply}");
    let copied = tap.last("/tools/t.order");
    let header = |name: &str| {
        let lines = copied.lines();
        let mut values = lines.filter_map(|line| line.strip_prefix(&format!("{name}: ")));
        values.next().unwrap().to_owned()
    };
    let (token, key) = (header("countersign-identity"), header("idempotency-key"));
    let [head, payload, mac] = token.split('.').collect::<Vec<_>>()[..] else {
        panic!("{token}");
    };
    let none = "eyJhbGciOiJub25lIn0"; // {"alg":"none"}
    let dry_run = gateway.call(
        "t.order",
        r#"{"sku": "a"}"#,
        serde_json::json!({"dry_run": true}),
    );
    assert_eq!(dry_run["ok"], true, "{dry_run}");
    let simulated = tap.last("/tools/t.order");
    assert!(simulated.contains("countersign-dry-run: true"));

    let refused = [
        copied.replace("countersign-identity", "x-other"),
        copied.replace(mac, &mac.chars().rev().collect::<String>()),
        copied.replace(&token, &format!("{none}.{payload}.")),
        copied.replace(&token, &format!("{head}.{payload}.")),
        // Another call, in the name of the same user.
        copied.replace(&key, "another-key"),
        copied.replace(&format!("idempotency-key: {key}\r\n"), ""),
        copied
            .replace(r#"{"sku": "a""#, r#"{"sku": "b""#)
            .replace(r#"{"sku":"a""#, r#"{"sku":"b""#),
        copied.replace("/tools/t.order ", "/tools/t.fail "),
        copied.replace("/tools/t.order ", "/tools/t.order/reconcile "),
        // A dry run as a call.
        simulated.replace("countersign-dry-run: true\r\n", ""),
        simulated.replace("countersign-dry-run: true", "idempotency-key: k"),
    ];
    let send = |request: &str| {
        let request = request.replacen("\r\n", "\r\nconnection: close\r\n", 1);
        service.ask(request.as_bytes())
    };
    for request in &refused {
        assert!(*request != copied && *request != simulated, "{request}");
        let (status, answer) = send(request);
        assert_eq!(status, 401, "{kind:?}: {answer}\n{request}");
    }
    // As it was, it is the same call, and the key makes that harmless.
    let (status, answer) = send(&copied);
    assert_eq!(status, 200, "{kind:?}: {answer}");
    assert_eq!(service.orders().len(), 1, "{:?}", service.orders());
}
