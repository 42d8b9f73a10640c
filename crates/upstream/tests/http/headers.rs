//! Headers that the upstream gets besides the arguments.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::contract::{RequestEnvelope, RequestId, TraceContext};
use countersign::{Principal, ToolCall};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::service::{Service, json as answer};
use crate::world::World;

const TOOL: &str = r#"
    [[tool]]
    name = "svc.write"
    upstream = "svc"
    description = "Writes."
    dry_run = "simulate"
    parameters = [{ name = "n", kind = "integer" }]
"#;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A6, A3: trace, key, deadline, request id, and a signed statement of who calls that a standard library can check.
#[tokio::test]
async fn the_upstream_learns_who_calls_and_can_verify_it() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("identity");
    std::fs::write(&secret, [SECRET, b"\n"].concat()).unwrap();
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let upstream = format!("identity_secret = 'file:{}'", secret.display());
    let world = World::new(&service, &upstream, TOOL);
    let envelope = RequestEnvelope {
        idempotency_key: Some("k_1".to_owned()),
        ..RequestEnvelope::default()
    };
    let trace: TraceContext = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        .parse()
        .unwrap();
    let call = || {
        ToolCall::new("svc.write", r#"{"n": 1}"#, Principal::user("corp::ann"))
            .envelope(envelope.clone())
            .identified(RequestId::new("req_0123456789abcdef").unwrap())
            .trace(trace)
    };
    let reply = world.executor.execute(call()).await;
    assert!(reply.ok, "{reply:?}");
    let seen = service.last();
    assert!(
        seen.header("traceparent")
            .starts_with("00-0af7651916cd43dd8448eb211c80319c-")
    );
    assert_eq!(seen.header("x-request-id"), "req_0123456789abcdef");
    let deadline: jiff::Timestamp = seen.header("countersign-deadline").parse().unwrap();
    let key = seen.header("idempotency-key");
    assert!(
        key.len() >= 16 && !key.contains("k_1"),
        "a key of ours: {key:?}"
    );
    assert_eq!(seen.header("countersign-dry-run"), "");

    let claims = verified(seen.header("countersign-identity"), SECRET);
    let times = (
        claims["iat"].as_i64().unwrap(),
        claims["exp"].as_i64().unwrap(),
    );
    assert!(
        times.1 > times.0 && times.1 <= deadline.as_second() + 1,
        "{times:?} {deadline}"
    );
    let mut rest = claims.clone();
    let rest = rest.as_object_mut().unwrap();
    rest.remove("iat");
    rest.remove("exp");
    let hash = hex(&seen.body);
    assert_eq!(
        Value::Object(rest.clone()),
        json!({
            "iss": "countersign", "aud": "svc", "sub": "corp::ann", "realm": "corp",
            "act": {"type": "user", "id": "corp::ann"}, "tool": "svc.write",
            "purpose": "call", "request_id": "req_0123456789abcdef", "idempotency_key": key, "body_sha256": hash,
            "method": "POST", "target_sha256": hex(b"/base/tools/svc.write"),
        })
    );

    // A dry run reaches only a tool that can simulate, and says so.
    let dry = RequestEnvelope {
        dry_run: true,
        idempotency_key: None,
        ..envelope.clone()
    };
    let call = ToolCall::new("svc.write", r#"{"n": 2}"#, Principal::user("ann")).envelope(dry);
    assert!(world.executor.execute(call).await.ok);
    let seen = service.last();
    assert_eq!(seen.header("countersign-dry-run"), "true");
    assert_eq!(seen.header("idempotency-key"), "");
    // So that a dry run, which has no key, cannot be sent again as a call.
    let claims = verified(seen.header("countersign-identity"), SECRET);
    assert_eq!(claims["purpose"], "dry_run");
    assert_eq!(claims.get("idempotency_key"), None);
}

fn hex(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A3: the statement is good for one method, path and query: a copy of it is no other read.
#[tokio::test]
async fn the_statement_binds_path_and_query() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("identity");
    std::fs::write(&secret, SECRET).unwrap();
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let upstream = format!("identity_secret = 'file:{}'", secret.display());
    let tool = r#"
        [[tool]]
        name = "svc.get"
        upstream = "svc"
        description = "Reads."
        request = { method = "GET", path = "/items/{id}" }
        parameters = [{ name = "id" }, { name = "q", required = false }]
    "#;
    let world = World::new(&service, &upstream, tool);
    for (arguments, target) in [
        (r#"{"id": "7"}"#, "/base/items/7"),
        (
            r#"{"id": "8 ü", "q": "a&b"}"#,
            "/base/items/8%20%C3%BC?q=a%26b",
        ),
    ] {
        world.data("svc.get", arguments).await;
        let seen = service.last();
        assert_eq!(seen.target, target);
        let claims = verified(seen.header("countersign-identity"), SECRET);
        assert_eq!(claims["method"], "GET");
        assert_eq!(claims["target_sha256"], hex(target.as_bytes()));
    }
}

/// The claims of a token whose signature Python's standard library has checked.
fn verified(token: &str, secret: &[u8]) -> Value {
    let program = "import hmac,hashlib,base64,sys\nt,s=sys.argv[1:]\nh,p,m=t.split('.')\n\
        u=lambda x: base64.urlsafe_b64decode(x+'='*(-len(x)%4))\n\
        own=hmac.new(s.encode(),f'{h}.{p}'.encode(),hashlib.sha256).digest()\n\
        assert hmac.compare_digest(own,u(m)) and b'\"HS256\"' in u(h)\n";
    let secret = std::str::from_utf8(secret).unwrap();
    let status = std::process::Command::new("python3")
        .args(["-c", program, token, secret])
        .status();
    assert!(status.unwrap().success(), "{token}");
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}
