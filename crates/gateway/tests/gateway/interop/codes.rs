//! Every closed code in the form of both standards.

use insta::assert_snapshot;

use super::*;

/// Returns what a caller sees of a tool's error: the status and the codes, with the party that can resolve it.
async fn seen(world: &World, profile: &str, error: &ErrorBody) -> String {
    let body = serde_json::to_string(error).unwrap();
    let arguments = json!({ "body": body }).to_string();
    let path = format!("/{profile}/tools/test.fail");
    let answer = call(world, &path, UUID, &arguments).await;
    let json = answer.json();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let code = match json["messages"].as_array() {
        None => {
            let mut code = text(&json["code"]);
            if profile == "acp" {
                code = format!("{} {code}", text(&json["type"]));
            }
            code
        }
        Some(messages) => {
            let who = |message: &Value| match profile {
                "acp" => text(&message["resolution"]),
                _ => text(&message["severity"]),
            };
            let one = |message: &Value| {
                format!(
                    "{} {} ({})",
                    text(&message["type"]),
                    text(&message["code"]),
                    who(message)
                )
            };
            messages.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    };
    let retry = answer
        .header("retry-after")
        .map(|seconds| format!(" after {seconds} s"));
    format!("{} {code}{}", answer.status, retry.unwrap_or_default())
}

/// Returns every closed code, with each reason and source that changes its form.
pub(super) fn cases() -> Vec<(String, ErrorBody)> {
    let mut cases: Vec<(String, ErrorBody)> = Vec::new();
    for code in ErrorCode::ALL {
        cases.push((code.to_string(), ErrorBody::new(code, "no").hint("do")));
    }
    for reason in ConflictReason::ALL {
        let body = ErrorBody::new(ErrorCode::Conflict, "no").reason(reason);
        cases.push((format!("CONFLICT {}", reason.as_str()), body));
    }
    for source in FaultSource::ALL {
        let body = ErrorBody::new(ErrorCode::UpstreamError, "no").source(source);
        cases.push((format!("UPSTREAM_ERROR {}", source.as_str()), body));
    }
    let of_age = ErrorBody::new(ErrorCode::ComplianceBlocked, "no").detail("minimum_age", 18);
    cases.push(("COMPLIANCE_BLOCKED minimum_age".to_owned(), of_age));
    let limited = ErrorBody::new(ErrorCode::RateLimited, "no").retry_after_ms(1_500);
    cases.push(("RATE_LIMITED with a time".to_owned(), limited));
    cases
}

/// The whole map, as callers see it. `docs/interop.md` has the same table.
#[tokio::test]
async fn every_code_has_its_words() {
    let place = Place::default();
    let world = world(&place).await;
    let mut lines = Vec::new();
    for (name, body) in cases() {
        let acp = seen(&world, "acp", &body).await;
        let ucp = seen(&world, "ucp", &body).await;
        lines.push(format!("{name} | {acp} | {ucp}"));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    INVALID_ARGUMENT | 200 error invalid (recoverable) | 200 error invalid (recoverable)
    UNAUTHORIZED | 401 invalid_request unauthorized | 401 unauthorized
    FORBIDDEN | 403 invalid_request forbidden | 403 forbidden
    NOT_FOUND | 200 error not_found (-) | 200 error not_found (unrecoverable)
    CONFLICT | 200 error conflict (recoverable) | 200 error conflict (recoverable)
    RATE_LIMITED | 429 service_unavailable rate_limited | 429 rate_limited
    TIMEOUT | 504 service_unavailable timeout | 503 timeout
    UPSTREAM_ERROR | 502 processing_error upstream_error | 503 service_unavailable
    NEEDS_USER_CONFIRMATION | 200 error approval_required (requires_buyer_review) | 200 error approval_required (requires_buyer_review)
    COMPLIANCE_BLOCKED | 200 error region_restricted (-) | 200 error region_restricted (unrecoverable)
    PRICE_CHANGED | 200 warning price_change (requires_buyer_review), error expired (recoverable) | 200 warning price_change (-), error expired (recoverable)
    OUT_OF_STOCK | 200 error out_of_stock (recoverable) | 200 error out_of_stock (recoverable)
    ADDRESS_INVALID | 200 error invalid (requires_buyer_input) | 200 error address_undeliverable (requires_buyer_input)
    CONFLICT in_flight | 409 invalid_request idempotency_in_flight | 409 idempotency_in_flight
    CONFLICT key_reused | 422 invalid_request idempotency_conflict | 409 idempotency_conflict
    CONFLICT key_expired | 422 invalid_request idempotency_conflict | 409 idempotency_conflict
    CONFLICT in_doubt | 409 invalid_request idempotency_in_doubt | 409 idempotency_in_doubt
    CONFLICT version | 200 error conflict (recoverable) | 200 error conflict (recoverable)
    CONFLICT stock | 200 error low_stock (recoverable) | 200 error low_stock (recoverable)
    UPSTREAM_ERROR gateway | 503 service_unavailable service_unavailable | 503 service_unavailable
    UPSTREAM_ERROR tool | 502 processing_error upstream_error | 503 service_unavailable
    UPSTREAM_ERROR upstream | 502 processing_error upstream_error | 503 service_unavailable
    COMPLIANCE_BLOCKED minimum_age | 200 error age_verification_required (requires_buyer_input) | 200 error age_verification_required (requires_buyer_input)
    RATE_LIMITED with a time | 429 service_unavailable rate_limited after 2 s | 429 rate_limited after 2 s
    "#);
}

/// A message names the argument by its path in the request, and says what to do.
#[tokio::test]
async fn a_message_is_whole() {
    let place = Place::default();
    let world = world(&place).await;
    let body = ErrorBody::new(ErrorCode::AddressInvalid, "there is no such postal code")
        .field("/address/postal_code")
        .hint("ask the buyer");
    let body = serde_json::to_string(&body).unwrap();
    let arguments = json!({ "body": body }).to_string();
    let check =
        async |path: &str, arguments: &str| call(&world, path, UUID, arguments).await.shown();
    assert_snapshot!(check("/acp/tools/test.fail", &arguments).await, @r#"
    200
    content-type: application/json
    x-request-id: r_1
    {
      "data": null,
      "evidence": {
        "snapshot_id": "…",
        "sources": []
      },
      "messages": [
        {
          "code": "invalid",
          "content": "there is no such postal code; ask the buyer",
          "content_type": "plain",
          "param": "$.arguments.address.postal_code",
          "resolution": "requires_buyer_input",
          "severity": "high",
          "type": "error"
        }
      ],
      "ok": false,
      "request_id": "r_1",
      "warnings": []
    }
    "#);
    assert_snapshot!(check("/ucp/tools/test.fail", &arguments).await, @r#"
    200
    content-type: application/json
    x-request-id: r_1
    {
      "messages": [
        {
          "code": "address_undeliverable",
          "content": "there is no such postal code; ask the buyer",
          "content_type": "plain",
          "path": "$.arguments.address.postal_code",
          "severity": "requires_buyer_input",
          "type": "error"
        }
      ],
      "ucp": {
        "status": "error",
        "version": "2026-04-08"
      }
    }
    "#);
    assert_eq!(place.runs(), 0);
}

/// The binder's refusal is a message as well: an agent can correct it.
#[tokio::test]
async fn wrong_arguments_are_told() {
    let place = Place::default();
    let world = world(&place).await;
    let check =
        async |path: &str, arguments: &str| call(&world, path, UUID, arguments).await.shown();
    assert_snapshot!(check("/acp/tools/orders.place", r#"{"quantity": 2}"#).await, @r#"
    200
    content-type: application/json
    x-request-id: r_1
    {
      "data": null,
      "evidence": {
        "snapshot_id": "…",
        "sources": []
      },
      "messages": [
        {
          "code": "missing",
          "content": "a required parameter is missing: expected a string; correct each issue and send the call again",
          "content_type": "plain",
          "param": "$.arguments.sku",
          "resolution": "recoverable",
          "severity": "high",
          "type": "error"
        }
      ],
      "ok": false,
      "request_id": "r_1",
      "warnings": []
    }
    "#);
    assert_snapshot!(check("/ucp/tools/orders.place", r#"{"sku": "a", "quantity": -2}"#).await, @r#"
    200
    content-type: application/json
    x-request-id: r_1
    {
      "messages": [
        {
          "code": "invalid",
          "content": "the value is not allowed: expected at least 0; correct each issue and send the call again",
          "content_type": "plain",
          "path": "$.arguments.quantity",
          "severity": "recoverable",
          "type": "error"
        }
      ],
      "ucp": {
        "status": "error",
        "version": "2026-04-08"
      }
    }
    "#);
    assert_eq!(place.runs(), 0);
}

/// A successful answer is our own envelope; UCP adds a status.
#[tokio::test]
async fn what_worked_is_our_envelope() {
    let place = Place::default();
    let world = world(&place).await;
    let arguments = r#"{"sku": "a", "quantity": "2"}"#;
    let acp = call(&world, "/acp/tools/orders.place", UUID, arguments).await;
    assert_eq!(acp.json()["ok"], true);
    // Another shop: a request id names one call.
    let place = Place::default();
    let world = self::world(&place).await;
    let ucp = call(&world, "/ucp/tools/orders.note", UUID, arguments).await;
    assert_snapshot!(ucp.shown(), @r#"
    200
    content-type: application/json
    x-request-id: r_1
    {
      "data": {
        "note": null,
        "quantity": 2,
        "run": 1,
        "sku": "a"
      },
      "evidence": {
        "snapshot_id": "…",
        "sources": [
          {
            "hash": "…",
            "name": "orders.note",
            "ts": "…",
            "type": "tool"
          }
        ]
      },
      "ok": true,
      "request_id": "r_1",
      "ucp": {
        "status": "success",
        "version": "2026-04-08"
      },
      "warnings": [
        {
          "after": 2,
          "before": "\"2\"",
          "code": "TEXT_TO_INTEGER",
          "message": "a string was read as the integer it spells",
          "path": "/quantity",
          "severity": "retyped",
          "span": [
            25,
            28
          ]
        }
      ]
    }
    "#);
}

/// Refusals that never became a call have the same form, whichever part refuses them.
#[tokio::test]
async fn refusals_are_in_the_same_words() {
    let place = Place::default();
    let world = world(&place).await;
    let check = async |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let answer = send(&world, method, path, headers, body).await;
        assert!(answer.header("request-id").is_some(), "{answer:?}");
        format!("{} {}", answer.status, answer.json())
    };
    let key = ("idempotency-key", UUID);
    assert_snapshot!(check("POST", "/acp/tools/orders.place", &[key], "[]").await, @r#"400 {"code":"invalid","message":"the body is not a JSON object; send the text of a model as a string in \"arguments\", or alone in a body of type text/plain","type":"invalid_request"}"#);
    assert_snapshot!(check("POST", "/ucp/tools/orders.place", &[key], "[]").await, @r#"400 {"code":"invalid","content":"the body is not a JSON object; send the text of a model as a string in \"arguments\", or alone in a body of type text/plain"}"#);
    assert_snapshot!(check("POST", "/acp/tools/orders.place", &[key], r#"{"dry_run": 1}"#).await, @r#"400 {"code":"invalid","message":"dry_run is not true or false; correct it, leave it out, or send null","param":"$.dry_run","type":"invalid_request"}"#);
    assert_snapshot!(check("DELETE", "/acp/tools/orders.place", &[], "").await, @r#"405 {"code":"invalid","message":"DELETE is not possible here; the header Allow lists the methods that are possible","type":"invalid_request"}"#);
    assert_snapshot!(check("GET", "/ucp/nowhere", &[], "").await, @r#"404 {"code":"not_found","content":"there is no \"/ucp/nowhere\" here; GET /openapi.json lists all paths"}"#);
    assert_snapshot!(check("POST", "/acp/tools/orders.plaice", &[key], "{}").await, @r#"404 {"code":"not_found","message":"there is no tool \"orders.plaice\"; list the tools to see which exist","type":"invalid_request"}"#);
    assert_snapshot!(check("POST", "/ucp/tools/orders.plaice", &[key], "{}").await, @r#"404 {"code":"not_found","content":"there is no tool \"orders.plaice\"; list the tools to see which exist"}"#);
    let html = [key, ("content-type", "text/html")];
    assert_snapshot!(check("POST", "/acp/tools/orders.place", &html, "<p>").await, @r#"415 {"code":"invalid","message":"the type of the body is neither application/json nor text/plain; send JSON, or the bare argument text as text/plain","type":"invalid_request"}"#);
    let version = [key, ("api-version", "2025-09-29")];
    let other = send(&world, "POST", "/acp/tools/orders.place", &version, "{}").await;
    assert_snapshot!(other.body, @r#"{"code":"unsupported_api_version","message":"the API-Version is not 2026-04-17, the only one that is spoken here","supported_versions":["2026-04-17"],"type":"invalid_request"}"#);
    let version = [key, ("api-version", "2026-04-17")];
    let body = r#"{"arguments": {"sku": "a"}}"#;
    let ours = send(&world, "POST", "/acp/tools/orders.place", &version, body).await;
    assert_eq!(ours.status, 200, "{ours:?}");
    assert_eq!(place.runs(), 1);
}
