//! A service that is killed in the middle of a call.

use crate::world::{Gateway, Kind, Service, told};

#[test]
fn python_alone_dies_and_knows() {
    assert_known(Kind::Python);
}

#[test]
fn fastapi_dies_and_knows() {
    assert_known(Kind::FastApi);
}

#[test]
fn node_alone_dies_and_knows() {
    assert_known(Kind::Node);
}

#[test]
fn express_dies_and_knows() {
    assert_known(Kind::Express);
}

/// A5, A17, T8: the answer is lost with the process. The call is in doubt until the service is back; then its twin is asked, and
/// what happened is the answer, while what did not happen is made, once.
fn assert_known(kind: Kind) {
    for (sku, before) in [("after", 1), ("before", 0)] {
        let mut service = Service::start(kind);
        let gateway = Gateway::start(&service.entries());
        let arguments = format!(r#"{{"sku": "{sku}", "quantity": "3"}}"#);
        let (lost, service) = std::thread::scope(|scope| {
            let call = scope.spawn(|| gateway.keyed("t.order", &arguments, "k_1"));
            assert_eq!(service.line(), format!("{sku}\n"));
            let service = service.killed_and_started();
            (call.join().unwrap(), service)
        });
        assert_eq!(lost["error"]["code"], "UPSTREAM_ERROR", "{kind:?}: {lost}");
        assert_eq!(service.orders().len(), before);
        let claims = gateway.run(&["claims", "list", "--state", "in_doubt"]);
        let claims = String::from_utf8(claims.stdout).unwrap();
        assert!(claims.contains("t.order"), "{claims}");

        let found = gateway.keyed("t.order", &arguments, "k_1");
        assert!(
            told(&found).starts_with(&format!(r#"{{"quantity":3,"sku":"{sku}"}}"#)),
            "{kind:?}: {found}"
        );
        let again = gateway.keyed("t.order", &arguments, "k_1");
        assert_eq!(again["data"], found["data"]);
        assert_eq!(
            service.orders().len(),
            1,
            "{kind:?}: {:?}",
            service.orders()
        );
    }
}
