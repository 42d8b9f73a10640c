//! The gateway's own secrets in answers: a service that quotes what it was sent does not tell them to the caller (A21).

use crate::service::{Act, Seen, Service, json as answer};
use crate::world::World;

const TOOLS: &str = r#"
    [[tool]]
    name = "svc.get"
    upstream = "svc"
    description = "Reads."
    request = { method = "GET", path = "/get" }

    [[tool]]
    name = "svc.ours"
    upstream = "svc"
    description = "Written for us."
    effect = "read"
"#;

const TOKEN: &str = "SEKRETsekretSEKRET/sekret+0123456789";
const SIGNER: &str = "0123456789abcdefIDENTITYsecret0123456789";

/// The reply of a call to a service that answers with what it was sent.
async fn told_by(tool: &str, act: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (token, signer) = (folder.path().join("token"), folder.path().join("signer"));
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::write(&signer, SIGNER).unwrap();
    let upstream = format!(
        "retries.attempts_max = 1\nauth.bearer.token = 'file:{}'\nidentity_secret = 'file:{}'",
        token.display(),
        signer.display()
    );
    let service = Service::start(move |seen, _| act(seen)).await;
    let world = World::new(&service, &upstream, TOOLS);
    let reply = world.call(tool, "{}").await;
    let seen = service.last();
    assert_eq!(seen.header("authorization"), format!("Bearer {TOKEN}"));
    let told = serde_json::to_string(&reply).unwrap();
    let statement = seen.header("countersign-identity");
    assert!(statement.len() > 100 && !told.contains(statement), "{told}");
    // No part of it either: the first bytes are what a cut would leave.
    for part in [&TOKEN[..8], &SIGNER[..20]] {
        assert!(!told.contains(part), "{told}");
    }
    assert!(told.contains("[credential]"), "{told}");
    told
}

/// A21: data of an answer that quotes the request has no credential, neither as it is nor as JSON may write it.
#[tokio::test]
async fn data_has_no_credential() {
    let told = told_by("svc.get", |seen| {
        let headers = serde_json::to_string(&seen.headers).unwrap();
        let (slashed, coded) = (headers.replace('/', "\\/"), headers.replace('+', "\\u002B"));
        let body = format!(
            r#"{{"as": {headers}, "slashed": {slashed}, "coded": {coded}, "signer": "{SIGNER}", "kept": 1}}"#
        );
        answer(200, &body)
    })
    .await;
    assert!(
        told.contains(r#""authorization":"Bearer [credential]""#),
        "{told}"
    );
    assert!(told.contains(r#""kept":1"#), "{told}");
    let told = told_by("svc.get", |seen| {
        let text = seen.header("authorization").to_owned() + seen.header("countersign-identity");
        Act::Answer(
            200,
            vec![("content-type", "text/plain".to_owned())],
            text.into_bytes(),
        )
    })
    .await;
    assert!(
        told.contains(r#""data":"Bearer [credential][credential]""#),
        "{told}"
    );
}

/// A21: neither have errors: in nested details, and where the text is cut.
#[tokio::test]
async fn errors_have_no_credential() {
    let told = told_by("svc.ours", |seen| {
        let sent = seen.header("authorization");
        answer(
            400,
            &format!(
                r#"{{"error": {{"code": "INVALID_ARGUMENT", "message": "no", "details": {{"seen": {{"{sent}": ["{sent}"]}}}}}}}}"#
            ),
        )
    })
    .await;
    assert!(told.contains("Bearer [credential]"), "{told}");
    // Each quotation is longer than what replaces it, so that the end of a part that was cut first would be seen.
    for shift in 0..TOKEN.len() {
        let quote = move |seen: &Seen| {
            let sent = seen.header("authorization").trim_start_matches("Bearer ");
            "x".repeat(shift) + &sent.repeat(60)
        };
        told_by("svc.ours", move |seen| {
            answer(
                400,
                &format!(
                    r#"{{"error": {{"code": "INVALID_ARGUMENT", "message": "{}"}}}}"#,
                    quote(seen)
                ),
            )
        })
        .await;
        told_by("svc.get", move |seen| {
            let kind = vec![("content-type", "text/plain".to_owned())];
            Act::Answer(500, kind, quote(seen).into_bytes())
        })
        .await;
    }
}
