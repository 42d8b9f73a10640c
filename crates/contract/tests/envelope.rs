//! The envelopes as they stand on the wire (A1, A2, A3, A7, A12) and the rules of an error body.

use countersign_contract::envelope::{App, Client, Source};
use countersign_contract::trace::Trace;
use countersign_contract::{
    Actor, ActorType, ConflictReason, ErrorBody, ErrorCode, Evidence, FaultSource, Issue,
    IssueCode, ReplyEnvelope, RequestEnvelope, RequestId, Retry, SnapshotId, Warning,
};
use serde_json::{Value, json};

/// Every member that the standard names for a request.
fn full_request() -> Value {
    json!({
        "request_id": "req_01",
        "actor": {"type": "agent", "id": "shopper"},
        "user_id": "u_123",
        "session_id": "s_9",
        "locale": "en-US",
        "currency": "USD",
        "timezone": "America/Los_Angeles",
        "client": {"app": "web", "version": "1.2.3"},
        "dry_run": true,
        "idempotency_key": "k_1",
        "trace": {
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "span_id": "00f067aa0ba902b7",
            "parent_span_id": "b7ad6b7169203331",
        },
    })
}

fn request_id() -> RequestId {
    RequestId::new("req_01").expect("it is one visible token")
}

/// A1: every member of the standard is read, kept and written back under its own name.
#[test]
fn a_full_request_survives_the_round_trip() {
    let envelope: RequestEnvelope = serde_json::from_value(full_request()).unwrap();
    let expected = RequestEnvelope {
        request_id: Some(request_id()),
        actor: Some(Actor {
            kind: ActorType::Agent,
            id: "shopper".into(),
        }),
        user_id: Some("u_123".into()),
        session_id: Some("s_9".into()),
        locale: Some("en-US".into()),
        currency: Some("USD".into()),
        timezone: Some("America/Los_Angeles".into()),
        client: Some(Client {
            app: "web".into(),
            version: Some("1.2.3".into()),
        }),
        dry_run: true,
        idempotency_key: Some("k_1".into()),
        trace: Some(Trace {
            trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".into()),
            span_id: Some("00f067aa0ba902b7".into()),
            parent_span_id: Some("b7ad6b7169203331".into()),
        }),
    };
    assert_eq!(envelope, expected);
    assert_eq!(serde_json::to_value(&envelope).unwrap(), full_request());
}

/// A1: the applications that the standard lists are known; another name stays as it was sent.
#[test]
fn an_application_keeps_its_name() {
    for (name, expected) in [
        ("web", App::Web),
        ("ios", App::Ios),
        ("android", App::Android),
        ("Web", App::Other("Web".into())),
        ("kiosk", App::Other("kiosk".into())),
        ("", App::Other(String::new())),
    ] {
        let client: Client = serde_json::from_value(json!({"app": name})).unwrap();
        assert_eq!(client.app, expected);
        assert_eq!(
            App::LISTED.contains(&name),
            !matches!(expected, App::Other(_))
        );
        assert_eq!(serde_json::to_value(&client).unwrap(), json!({"app": name}));
    }
    assert!(serde_json::from_str::<Client>(r#"{"app": 1}"#).is_err());
}

/// A1: clients send null for members that they do not set, so null is absent, member by member.
#[test]
fn null_is_absent() {
    let names: Vec<String> = full_request()
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(names.len(), 11);
    for name in names {
        let mut with_null = full_request();
        with_null[&name] = Value::Null;
        let mut without = full_request();
        without.as_object_mut().unwrap().remove(&name);
        let with_null: RequestEnvelope = serde_json::from_value(with_null).unwrap();
        let without: RequestEnvelope = serde_json::from_value(without).unwrap();
        assert_eq!(with_null, without, "{name}");
    }
    let nothing: RequestEnvelope = serde_json::from_str("{}").unwrap();
    assert_eq!(nothing, RequestEnvelope::default());
    assert_eq!(serde_json::to_string(&nothing).unwrap(), "{}");
}

/// A1: a misspelt member would silently lose its meaning, so it is refused by its name.
#[test]
fn an_unknown_member_is_refused_by_its_name() {
    for (text, name) in [
        (r#"{"idempotencyKey": "k"}"#, "idempotencyKey"),
        (r#"{"dryRun": true}"#, "dryRun"),
        (
            r#"{"actor": {"type": "user", "id": "u", "role": "root"}}"#,
            "role",
        ),
        (r#"{"trace": {"traceparent": "00"}}"#, "traceparent"),
        (r#"{"client": {"app": "web", "os": "x"}}"#, "os"),
    ] {
        let error = serde_json::from_str::<RequestEnvelope>(text)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("unknown field `{name}`")),
            "{text}: {error}"
        );
    }
}

/// A2: the id is one visible token, so that logs and look-ups can carry it unquoted.
#[test]
fn a_request_id_is_one_visible_token() {
    for good in ["r", "req_01J/..#", &"x".repeat(128)] {
        assert_eq!(RequestId::new(good).unwrap().as_str(), good);
    }
    for bad in ["", "a b", "a\n", "é", &"x".repeat(129)] {
        assert!(RequestId::new(bad).is_err(), "{bad:?}");
        assert!(
            serde_json::from_value::<RequestId>(json!(bad)).is_err(),
            "{bad:?}"
        );
    }
}

/// A3: three kinds of actor, and an actor is never half there.
#[test]
fn an_actor_is_a_kind_and_an_id() {
    for (kind, actor) in [
        ("user", ActorType::User),
        ("agent", ActorType::Agent),
        ("system", ActorType::System),
    ] {
        let read: Actor = serde_json::from_value(json!({"type": kind, "id": "x"})).unwrap();
        assert_eq!(read.kind, actor);
    }
    for bad in [
        json!({"type": "robot", "id": "x"}),
        json!({"type": "user"}),
        json!({"id": "x"}),
    ] {
        assert!(
            serde_json::from_value::<Actor>(bad.clone()).is_err(),
            "{bad}"
        );
    }
}

/// A7: a reply that worked, with all that it can carry.
#[test]
fn a_reply_that_worked() {
    let mut issue = Issue::new(IssueCode::TextToInteger, "/quantity", "\"3\" was read as 3");
    issue.before = Some("\"3\"".into());
    issue.after = Some(json!(3));
    let reply = ReplyEnvelope {
        warnings: vec![
            Warning::Issue(issue),
            Warning::Remark {
                code: "SLOW_CARRIER".into(),
                message: "the carrier answered late".into(),
            },
        ],
        ttl_seconds: Some(300),
        evidence: Some(Evidence {
            snapshot_id: SnapshotId::new("ev_1").unwrap(),
            sources: vec![Source {
                kind: "tool".into(),
                name: "pricing.get_realtime_quote".into(),
                hash: "sha256:00".into(),
                ts: "2026-11-15T12:00:00Z".into(),
            }],
            checkpoint: None,
        }),
        replayed: true,
        ..ReplyEnvelope::success(request_id(), json!({"total": "19.90"}))
    };
    let wire = json!({
        "request_id": "req_01",
        "ok": true,
        "data": {"total": "19.90"},
        "warnings": [
            {
                "code": "TEXT_TO_INTEGER",
                "severity": "retyped",
                "path": "/quantity",
                "before": "\"3\"",
                "after": 3,
                "message": "\"3\" was read as 3",
            },
            {"code": "SLOW_CARRIER", "message": "the carrier answered late"},
        ],
        "ttl_seconds": 300,
        "evidence": {
            "snapshot_id": "ev_1",
            "sources": [{
                "type": "tool",
                "name": "pricing.get_realtime_quote",
                "hash": "sha256:00",
                "ts": "2026-11-15T12:00:00Z",
            }],
        },
        "replayed": true,
    });
    assert_eq!(serde_json::to_value(&reply).unwrap(), wire);
    assert_eq!(
        serde_json::from_value::<ReplyEnvelope>(wire).unwrap(),
        reply
    );
    assert_eq!(reply.http_status(), 200);
    let codes: Vec<_> = reply.warnings.iter().map(Warning::code).collect();
    assert_eq!(codes, ["TEXT_TO_INTEGER", "SLOW_CARRIER"]);
}

/// A7, A12: a reply that did not; the upstream's own words are data, never the code.
#[test]
fn a_reply_that_did_not_work() {
    let mut error = ErrorBody::new(ErrorCode::UpstreamError, "the carrier answered 503")
        .hint("send the same call again")
        .source(FaultSource::Upstream)
        .retry_after_ms(2_000)
        .detail("carrier", "fast-post");
    error.details.upstream_code = Some("SVC_BUSY".into());
    let reply = ReplyEnvelope::failure(request_id(), error);
    let wire = json!({
        "request_id": "req_01",
        "ok": false,
        "data": null,
        "warnings": [],
        "error": {
            "code": "UPSTREAM_ERROR",
            "message": "the carrier answered 503",
            "details": {
                "retryable": true,
                "retry_after_ms": 2000,
                "hint": "send the same call again",
                "source": "upstream",
                "upstream_code": "SVC_BUSY",
                "carrier": "fast-post",
            },
        },
    });
    assert_eq!(serde_json::to_value(&reply).unwrap(), wire);
    assert_eq!(
        serde_json::from_value::<ReplyEnvelope>(wire).unwrap(),
        reply
    );
    assert_eq!(reply.http_status(), 502);
}

/// A10, A11: a reply with a code of its own cannot even be read.
#[test]
fn a_foreign_code_is_refused() {
    let wire = json!({"code": "SVC_BUSY", "message": "x", "details": {"retryable": true}});
    let error = serde_json::from_value::<ErrorBody>(wire)
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown variant `SVC_BUSY`"), "{error}");
}

#[test]
fn every_code_has_its_status_and_retry_class() {
    let table: Vec<_> = ErrorCode::ALL
        .into_iter()
        .map(|code| (code.as_str(), code.http_status(), code.retry()))
        .collect();
    assert_eq!(
        table,
        [
            ("INVALID_ARGUMENT", 400, Retry::AfterChange),
            ("UNAUTHORIZED", 401, Retry::AfterChange),
            ("FORBIDDEN", 403, Retry::AfterChange),
            ("NOT_FOUND", 404, Retry::AfterChange),
            ("CONFLICT", 409, Retry::AfterChange),
            ("RATE_LIMITED", 429, Retry::Later),
            ("TIMEOUT", 504, Retry::Later),
            ("UPSTREAM_ERROR", 502, Retry::Later),
            ("NEEDS_USER_CONFIRMATION", 428, Retry::AfterChange),
            ("COMPLIANCE_BLOCKED", 451, Retry::Never),
            ("PRICE_CHANGED", 409, Retry::AfterChange),
            ("OUT_OF_STOCK", 409, Retry::AfterChange),
            ("ADDRESS_INVALID", 422, Retry::AfterChange),
        ]
    );
}

/// `retryable` says whether the very same call can succeed: by the code, then by the details.
#[test]
fn retryable_follows_from_what_is_known() {
    for code in ErrorCode::ALL {
        let retryable = ErrorBody::new(code, "x").details.retryable;
        assert_eq!(retryable, code.retry() == Retry::Later, "{code}");
    }
    for (reason, retryable) in [
        (ConflictReason::InFlight, true),
        (ConflictReason::KeyReused, false),
        (ConflictReason::KeyExpired, false),
        (ConflictReason::InDoubt, false),
        (ConflictReason::Version, true),
        (ConflictReason::Stock, true),
    ] {
        let error = ErrorBody::new(ErrorCode::Conflict, "x").reason(reason);
        assert_eq!(error.details.retryable, retryable, "{reason:?}");
    }
    let timed = ErrorBody::new(ErrorCode::OutOfStock, "x").retry_after_ms(60_000);
    assert!(timed.details.retryable);
}
