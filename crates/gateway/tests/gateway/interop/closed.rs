//! The closed code of every error, next to the code of the standard.

use std::time::Duration;

use countersign::contract::ActorType;
use countersign_gateway::identity::{Identity, NewKey, SCOPE_KEYS};

use super::codes::cases;
use super::*;
use crate::http_client::raw;
use crate::identity::{actor, policy};
use crate::parts::Parts;

/// Checks that an error has our code in its header, names the request, and is in the form of the standard.
#[track_caller]
fn check(answer: &Answer, profile: &str, status: u16, code: &str) {
    let json = answer.json();
    let told = (answer.status, answer.header("x-countersign-code"));
    assert_eq!(told, (status, Some(code)), "{answer:?}");
    assert!(ErrorCode::ALL.iter().any(|known| known.as_str() == code));
    let names = ["request-id", "x-request-id"].map(|name| answer.header(name));
    assert!(names[0].is_some() && names[0] == names[1], "{answer:?}");
    assert!(json.get("error").is_none(), "{answer:?}");
    let is_flat = match profile {
        "acp" => json["type"].is_string() && json["message"].is_string(),
        _ => json["content"].is_string(),
    };
    let has_messages = json["messages"].as_array().is_some_and(|it| !it.is_empty());
    assert_eq!(is_flat, answer.status != 200, "{answer:?}");
    assert_eq!(has_messages, answer.status == 200, "{answer:?}");
}

/// A10, A11: every closed code that a tool can answer arrives in both standards as that code.
#[tokio::test]
async fn every_closed_code_travels_with_the_foreign_one() {
    let place = Place::default();
    let world = world(&place).await;
    for (name, error) in cases() {
        let body = serde_json::to_string(&error).unwrap();
        let arguments = json!({ "body": body }).to_string();
        for profile in ["acp", "ucp"] {
            let path = format!("/{profile}/tools/test.fail");
            let answer = call(&world, &path, UUID, &arguments).await;
            assert_eq!(answer.header("request-id"), Some("r_1"), "{name}");
            check(&answer, profile, answer.status, error.code.as_str());
        }
    }
    // A successful answer has none.
    for profile in ["acp", "ucp"] {
        let path = format!("/{profile}/tools/orders.note");
        let answer = call(&world, &path, UUID, r#"{"sku": "a"}"#).await;
        let told = (answer.status, answer.header("x-countersign-code"));
        assert_eq!(told, (200, None), "{answer:?}");
    }
}

/// A10: so does the code of a refusal that never became a call, whichever part of the server refuses.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of refusals")]
async fn every_refusal_has_its_closed_code() {
    let place = Place::default();
    let settings = Settings {
        body_bytes_max: 2_000,
        arriving_bytes_max: 1_500,
        read_timeout: Duration::from_millis(300),
        ..Settings::default()
    };
    let world = World::made(settings, catalog(&place), |builder| builder).await;
    let (key, short) = (("idempotency-key", UUID), "x".repeat(256));
    let long_head = "a".repeat(world.gateway.settings().head_bytes_max);
    let too_long = " ".repeat(2_001);
    let no_room = format!("{{{}}}", " ".repeat(1_600));
    for profile in ["acp", "ucp"] {
        let tool = format!("/{profile}/tools/orders.place");
        let at = |rest: &str| format!("/{profile}/{rest}");
        let ask = async |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
            send(&world, method, path, headers, body).await
        };
        for (method, path, headers, body, status, code) in [
            ("POST", &tool, &[key][..], "[]", 400, "INVALID_ARGUMENT"),
            (
                "POST",
                &tool,
                &[key],
                r#"{"dry_run": 1}"#,
                400,
                "INVALID_ARGUMENT",
            ),
            ("POST", &tool, &[], "{}", 400, "INVALID_ARGUMENT"),
            (
                "POST",
                &tool,
                &[("idempotency-key", &short)],
                "{}",
                400,
                "INVALID_ARGUMENT",
            ),
            (
                "POST",
                &tool,
                &[key, ("content-type", "text/html")],
                "<p>",
                415,
                "INVALID_ARGUMENT",
            ),
            ("POST", &tool, &[key], &too_long, 413, "INVALID_ARGUMENT"),
            ("POST", &tool, &[key], &no_room, 429, "RATE_LIMITED"),
            (
                "POST",
                &tool,
                &[key, ("x-long", &long_head)],
                "{}",
                431,
                "INVALID_ARGUMENT",
            ),
            (
                "POST",
                &tool,
                &[key, ("origin", "https://evil.example")],
                "{}",
                403,
                "FORBIDDEN",
            ),
            ("DELETE", &tool, &[], "", 405, "INVALID_ARGUMENT"),
            (
                "POST",
                &at("tools/orders.plaice"),
                &[key],
                "{}",
                404,
                "NOT_FOUND",
            ),
            (
                "POST",
                &at("tools/%FF"),
                &[key],
                "{}",
                400,
                "INVALID_ARGUMENT",
            ),
            ("GET", &at("nowhere"), &[], "", 404, "NOT_FOUND"),
            ("GET", &at("nowhere/1"), &[], "", 404, "NOT_FOUND"),
            ("GET", &at(""), &[], "", 404, "NOT_FOUND"),
        ] {
            check(
                &ask(method, path, headers, body).await,
                profile,
                status,
                code,
            );
        }
        let slow = format!(
            "POST {tool} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nidempotency-key: {UUID}\r\ncontent-length: 9\r\n\r\n{{"
        );
        check(&raw(&world, slow).await.unwrap(), profile, 408, "TIMEOUT");
    }
    let version = [key, ("api-version", "2025-09-29")];
    let other = send(&world, "POST", "/acp/tools/orders.place", &version, "{}").await;
    check(&other, "acp", 400, "INVALID_ARGUMENT");
    assert_eq!(other.json()["supported_versions"], json!(["2026-04-17"]));
    assert_eq!(place.runs(), 0);
}

/// A10: a credential that is missing, wrong, or without the scope is refused with its closed code as well.
#[tokio::test]
async fn a_bad_credential_has_its_closed_code() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let rules = "[[tools]]\nmatch = \"*\"\nscopes = [\"tools:call\"]";
    let identity = Identity::new(parts.clock(), policy(rules)).api_keys(keys.clone());
    let operator =
        countersign::Principal::new(actor(ActorType::System, "operator"), "").scope(SCOPE_KEYS);
    let new = NewKey {
        label: String::new(),
        actor: actor(ActorType::Agent, "a_1"),
        user_id: Some("u_1".to_owned()),
        acts_for_others: false,
        scopes: Vec::new(),
        effects: None,
        expires_at: None,
    };
    let issued = keys.create(new, &operator).await.unwrap();
    let server = parts.serve(identity).await;
    for profile in ["acp", "ucp"] {
        for (credential, status, code) in [
            (None, 401, "UNAUTHORIZED"),
            (Some("cs_wrong"), 401, "UNAUTHORIZED"),
            (Some(issued.token.as_str()), 403, "FORBIDDEN"),
        ] {
            let url = format!("http://{}/{profile}/tools/notes.add", server.address);
            let mut request = reqwest::Client::new()
                .post(url)
                .header("idempotency-key", UUID)
                .body(r#"{"arguments": {"text": "tea"}}"#);
            if let Some(credential) = credential {
                request = request.bearer_auth(credential);
            }
            let answer = request.send().await.unwrap();
            let head = answer.headers().iter();
            let head: Vec<String> = head
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect();
            let answer = Answer {
                status: answer.status().as_u16(),
                head: format!("HTTP/1.1\r\n{}", head.join("\r\n")),
                body: answer.text().await.unwrap(),
            };
            check(&answer, profile, status, code);
        }
    }
}
