//! Error codes for an upstream's failures (A12).

use crate::service::{Act, Service, json as answer};
use crate::world::{World, told};

const READ: &str = r#"
    [[tool]]
    name = "svc.get"
    upstream = "svc"
    description = "Reads."
    request = { method = "GET", path = "/get" }
    parameters = [{ name = "status", required = false }]
"#;

/// A service that answers with the status that it is asked for.
async fn mirror() -> Service {
    Service::start(|seen, _| {
        let status = seen.target.split("status=").nth(1).unwrap_or("200");
        let body =
            r#"{"error": {"code": "E_7", "message": "call ann@example.com at 13812345678"}}"#;
        answer(status.parse().unwrap(), body)
    })
    .await
}

/// A12: every status is one of the closed codes, with the upstream's own code and a bounded, redacted message.
#[tokio::test]
async fn a_status_becomes_a_closed_code() {
    let service = mirror().await;
    let world = World::new(&service, "retries.attempts_max = 1", READ);
    let mut lines = Vec::new();
    for status in [
        301, 400, 401, 403, 404, 408, 409, 410, 415, 418, 422, 429, 451, 500, 502, 503, 504,
    ] {
        let reply = world
            .call("svc.get", &format!(r#"{{"status": "{status}"}}"#))
            .await;
        lines.push(told(&reply));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    UPSTREAM_ERROR: the upstream svc answered with a redirect to another address, which is not followed [final  E_7]
    INVALID_ARGUMENT: the upstream svc answered with status 400 [final  E_7]
    UPSTREAM_ERROR: the upstream svc refused the gateway's credential with status 401 [final  E_7]
    UPSTREAM_ERROR: the upstream svc refused the gateway's credential with status 403 [final  E_7]
    NOT_FOUND: the upstream svc answered with status 404 [final  E_7]
    TIMEOUT: the upstream svc answered with status 408 [retryable  E_7]
    CONFLICT: the upstream svc answered with status 409 [final  E_7]
    NOT_FOUND: the upstream svc answered with status 410 [final  E_7]
    INVALID_ARGUMENT: the upstream svc answered with status 415 [final  E_7]
    INVALID_ARGUMENT: the upstream svc answered with status 418 [final  E_7]
    INVALID_ARGUMENT: the upstream svc answered with status 422 [final  E_7]
    RATE_LIMITED: the upstream svc answered with status 429 [retryable  E_7]
    COMPLIANCE_BLOCKED: the upstream svc answered with status 451 [final  E_7]
    UPSTREAM_ERROR: the upstream svc answered with status 500 [retryable  E_7]
    UPSTREAM_ERROR: the upstream svc answered with status 502 [retryable  E_7]
    UPSTREAM_ERROR: the upstream svc answered with status 503 [retryable  E_7]
    TIMEOUT: the upstream svc answered with status 504 [retryable  E_7]
    "#);
    let reply = world.call("svc.get", r#"{"status": "404"}"#).await;
    let details = serde_json::to_string(&reply.error.unwrap().details).unwrap();
    insta::assert_snapshot!(details, @r#"{"retryable":false,"source":"upstream","upstream_code":"E_7","upstream":"svc","upstream_message":"call [email] at [phone]","upstream_status":404}"#);
}

/// A12: rules of the entry come first; an answer of 200 with an error in it is an error.
#[tokio::test]
async fn rules_map_answers_to_codes() {
    let service = Service::start(|seen, _| match seen.target.as_str() {
        "/base/get?status=gone" => answer(200, r#"{"error": {"type": "sold_out"}, "code": 17}"#),
        "/base/get?status=other" => answer(200, r#"{"error": "broken"}"#),
        "/base/get?status=fine" => answer(200, r#"{"error": null, "data": {"n": 1}}"#),
        "/base/get?status=none" => answer(200, r#"{"error": false}"#),
        _ => answer(409, "busy"),
    })
    .await;
    let rules = r#"
        response = { data = "/data", error_code = "/code" }
        [[tool.errors]]
        pointer = "/error/type"
        equals = "sold_out"
        code = "OUT_OF_STOCK"
        message = "sold out"
        [[tool.errors]]
        status = "2xx"
        pointer = "/error"
        code = "UPSTREAM_ERROR"
        [[tool.errors]]
        status = "409"
        code = "CONFLICT"
        reason = "stock"
        hint = "try later"
    "#;
    let world = World::new(&service, "", &format!("{READ}{rules}"));
    let mut lines = Vec::new();
    for status in ["gone", "other", "fine", "none", "busy"] {
        let reply = world
            .call("svc.get", &format!(r#"{{"status": "{status}"}}"#))
            .await;
        lines.push(told(&reply));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    OUT_OF_STOCK: sold out [final  17]
    UPSTREAM_ERROR: the upstream svc answered with status 200 [retryable  200]
    ok {"n":1} 
    UPSTREAM_ERROR: the answer of the upstream svc has nothing at "/data" [final  ]
    CONFLICT: the upstream svc answered with status 409 [retryable stock 409]
    "#);
}

/// A12: a tool that is written for us answers with closed codes, and anything else is mapped by its status.
#[tokio::test]
async fn a_tool_of_ours_answers_with_closed_codes() {
    let service = Service::start(|seen, _| match seen.text().replace(' ', "").as_str() {
        r#"{"n":1}"# => answer(
            422,
            r#"{"error": {"code": "OUT_OF_STOCK", "message": "two are left", "hint": "order two", "details": {"left": 2}}}"#,
        ),
        r#"{"n":2}"# => answer(400, r#"{"error": {"code": "E_CUSTOM", "message": "no"}}"#),
        r#"{"n":3}"# => answer(200, r#"{"error": {"code": "NOT_FOUND", "message": "no such order"}}"#),
        r#"{"n":4}"# => Act::Answer(200, vec![("countersign-ttl-seconds", "60".to_owned())], b"{}".to_vec()),
        _ => Act::Answer(204, Vec::new(), Vec::new()),
    })
    .await;
    let tool = r#"
        [[tool]]
        name = "svc.ours"
        upstream = "svc"
        description = "Ours."
        effect = "read"
        parameters = [{ name = "n", kind = "integer" }]
    "#;
    let world = World::new(&service, "", tool);
    let mut lines = Vec::new();
    for n in 1..=5 {
        let reply = world.call("svc.ours", &format!(r#"{{"n": {n}}}"#)).await;
        lines.push(format!("{} ttl {:?}", told(&reply), reply.ttl_seconds));
        if let Some(error) = reply.error.filter(|_| n == 1) {
            lines.push(format!(
                "{:?} {}",
                error.details.hint, error.details.extra["left"]
            ));
        }
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    OUT_OF_STOCK: two are left [final  OUT_OF_STOCK] ttl None
    Some(Wording { text: "order two", chinese: None }) 2
    INVALID_ARGUMENT: the upstream svc answered with status 400 [final  E_CUSTOM] ttl None
    NOT_FOUND: no such order [final  NOT_FOUND] ttl None
    ok {}  ttl Some(60)
    ok null  ttl None
    "#);
    assert_eq!(service.last().target, "/base/tools/svc.ours");
}

/// B17: every answer is bounded: 5 MB, a gzip bomb, bytes that are not text, not JSON, another shape.
#[tokio::test]
async fn bad_answers_are_refused_and_named() {
    let service = Service::start(|seen, _| {
        let kind = |kind: &str| vec![("content-type", kind.to_owned())];
        match seen.target.split("status=").nth(1).unwrap_or_default() {
            "large" => answer(200, &format!("\"{}\"", "x".repeat(5 * 1024 * 1024))),
            "bomb" => {
                let mut headers = kind("application/json");
                headers.push(("content-encoding", "gzip".to_owned()));
                Act::Answer(200, headers, bomb())
            }
            "utf8" => Act::Answer(200, kind("application/json"), b"\"a\xffb\"".to_vec()),
            "html" => Act::Answer(200, kind("application/json"), b"<html>".to_vec()),
            "text" => Act::Answer(200, kind("text/plain"), b"plain".to_vec()),
            "bytes" => Act::Answer(200, kind("image/png"), vec![0, 1, 2]),
            "shape" => answer(200, r#"{"id": "seven", "extra": 1}"#),
            _ => answer(200, r#"{"id": 7}"#),
        }
    })
    .await;
    let output = r#"output = { type = "object", required = ["id"], properties = { id = { type = "integer" } } }"#;
    let strict = READ.replace("svc.get", "svc.strict");
    let tools = format!("{READ}{output}\n{strict}{output}\nresponse.on_mismatch = 'refuse'\n");
    let world = World::new(&service, "", &tools);
    let mut lines = Vec::new();
    for status in [
        "large", "bomb", "utf8", "html", "text", "bytes", "shape", "fine",
    ] {
        let reply = world
            .call("svc.get", &format!(r#"{{"status": "{status}"}}"#))
            .await;
        lines.push(format!("{status}: {}", told(&reply)));
    }
    let reply = world.call("svc.strict", r#"{"status": "shape"}"#).await;
    lines.push(told(&reply));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    large: UPSTREAM_ERROR: the answer of the upstream svc is too large: more than 4194304 bytes [final  ]
    bomb: UPSTREAM_ERROR: the answer of the upstream svc is too large: more than 4194304 bytes [final  ]
    utf8: UPSTREAM_ERROR: the answer of the upstream svc is not valid JSON [final  ]
    html: UPSTREAM_ERROR: the answer of the upstream svc is not valid JSON [final  ]
    text: ok "plain" ANSWER_NOT_AS_DECLARED
    bytes: ok "AAEC" ANSWER_NOT_AS_DECLARED
    shape: ok {"extra":1,"id":"seven"} ANSWER_NOT_AS_DECLARED
    fine: ok {"id":7} 
    UPSTREAM_ERROR: the answer of the upstream svc is not as declared: TYPE_MISMATCH at "/id" [final  ]
    "#);
}

/// A14, B17: a text is decoded by its charset, and what cannot be decoded is replaced and reported. A byte order mark is no part of
/// a text, and no mistake in JSON.
#[tokio::test]
async fn a_text_is_decoded_by_its_charset() {
    let service = Service::start(|seen, _| {
        let kind = |kind: &str| vec![("content-type", kind.to_owned())];
        match seen.target.split("status=").nth(1).unwrap_or_default() {
            "latin" => Act::Answer(
                200,
                kind("text/plain; charset=ISO-8859-1"),
                b"caf\xe9".to_vec(),
            ),
            "gbk" => Act::Answer(200, kind("text/plain; charset=gbk"), b"\xc4\xe3".to_vec()),
            "damaged" => Act::Answer(200, kind("text/plain"), b"caf\xe9".to_vec()),
            "marked" => Act::Answer(200, kind("text/plain"), b"\xef\xbb\xbfa".to_vec()),
            "json" => Act::Answer(
                200,
                kind("application/json"),
                b"\xef\xbb\xbf{\"a\": 1}".to_vec(),
            ),
            "error" => Act::Answer(
                404,
                kind("application/json"),
                b"\xef\xbb\xbf{\"code\": \"E_9\"}".to_vec(),
            ),
            _ => Act::Answer(
                200,
                kind("application/json; charset=latin1"),
                b"\"caf\xe9\"".to_vec(),
            ),
        }
    })
    .await;
    let output = "output = { type = ['object', 'string'] }";
    let world = World::new(&service, "", &format!("{READ}{output}"));
    let mut lines = Vec::new();
    for status in [
        "latin",
        "gbk",
        "damaged",
        "marked",
        "json",
        "error",
        "latin json",
    ] {
        let reply = world
            .call("svc.get", &format!(r#"{{"status": "{status}"}}"#))
            .await;
        lines.push(format!("{status}: {}", told(&reply)));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    latin: ok "café" 
    gbk: ok "你" 
    damaged: ok "caf�" TEXT_DAMAGED
    marked: ok "a" 
    json: ok {"a":1} 
    error: NOT_FOUND: the upstream svc answered with status 404 [final  E_9]
    latin json: ok "café" 
    "#);
}

/// A12, B17: an answer that arrived and cannot be decompressed is an answer: the breaker counts none of it as a failure, a read is
/// not sent again, and a call that changed something happened.
#[tokio::test]
async fn a_corrupt_body_is_an_unreadable_answer() {
    let service = Service::start(|seen, _| {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.push(("content-encoding", "gzip".to_owned()));
        let status = if seen.target.contains("404") {
            404
        } else {
            200
        };
        Act::Answer(status, headers, b"\x1f\x8b this is no gzip".to_vec())
    })
    .await;
    let write = READ
        .replace("svc.get", "svc.put")
        .replace("GET", "PUT")
        .replace("description", "recovery = 'retry'\ndescription");
    let upstream = "breaker = { failures = 1, open_ms = 60000 }\nretries = { backoff_ms = 1, backoff_max_ms = 2 }";
    let world = World::new(&service, upstream, &format!("{READ}{write}"));
    let mut lines = Vec::new();
    for (tool, arguments) in [
        ("svc.get", "{}"),
        ("svc.get", r#"{"status": "404"}"#),
        ("svc.put", "{}"),
    ] {
        lines.push(told(&world.keyed(tool, arguments, "k").await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    UPSTREAM_ERROR: the answer of the upstream svc cannot be decompressed [final  ]
    NOT_FOUND: the upstream svc answered with status 404 [final  404]
    ok null ANSWER_UNREADABLE
    "#);
    assert_eq!(service.seen().len(), 3);
}

/// A12: a service that says until when it wants to be left alone is believed, in seconds and as a date.
#[tokio::test]
async fn a_date_to_come_back_at_is_kept() {
    let service = Service::start(|_, _| {
        let headers = vec![
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
            ("retry-after", "Sun, 06 Nov 1994 08:51:37 GMT".to_owned()),
        ];
        Act::Answer(429, headers, b"{}".to_vec())
    })
    .await;
    let world = World::new(&service, "", READ);
    let reply = world.call("svc.get", "{}").await;
    let details = reply.error.unwrap().details;
    assert_eq!(details.retry_after_ms, Some(120_000));
    assert_eq!(
        service.seen().len(),
        1,
        "it is not asked again within that time"
    );
}

/// A few bytes that become 64 MiB: stored by a Python of its own, so that the test needs no encoder.
fn bomb() -> Vec<u8> {
    let program = "import gzip,sys; sys.stdout.buffer.write(gzip.compress(b' ' * (64 << 20)))";
    let output = std::process::Command::new("python3")
        .args(["-c", program])
        .output();
    output.expect("python3 runs").stdout
}
