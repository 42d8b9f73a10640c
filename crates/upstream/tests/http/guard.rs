//! Undeclared addresses, redirects, retries and the breaker.

use std::path::Path;
use std::sync::Arc;

use countersign_upstream::{Manifest, Upstreams};
use tokio::sync::Notify;

use crate::service::{Act, Service, json as answer};
use crate::world::{World, told};

const READ: &str = r#"
    [[tool]]
    name = "svc.get"
    upstream = "svc"
    description = "Reads."
    request = { method = "GET", path = "/get/{id}" }
    parameters = [{ name = "id" }]
    [[tool]]
    name = "svc.write"
    upstream = "svc"
    description = "Writes."
    request = { method = "POST", path = "/write" }
    parameters = [{ name = "n", kind = "integer" }]
"#;

fn at(url: &str, upstream: &str) -> Manifest {
    toml::from_str(&format!(
        "[[upstream]]\nname = 'svc'\nbase_url = '{url}'\n{upstream}\n{READ}"
    ))
    .unwrap()
}

/// B17: a name that leads to a private address is refused after it was resolved, and an address without resolving.
#[tokio::test]
async fn private_addresses_are_refused_unless_they_are_declared() {
    for url in [
        "http://127.0.0.1:1",
        "http://[::1]",
        "http://169.254.169.254/latest",
        "http://2130706433",
        "http://0x7f.1",
    ] {
        let error = Upstreams::prepare(&at(url, ""), Path::new("."))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("which is not a public address"),
            "{url}: {error}"
        );
    }
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let port = service.url.rsplit(':').next().unwrap();
    let named = format!("http://localhost:{port}");
    let world = World::of(&at(&named, ""));
    let reply = world.call("svc.get", r#"{"id": "1"}"#).await;
    insta::assert_snapshot!(told(&reply), @r#"UPSTREAM_ERROR: the upstream svc is at an address that its configuration does not allow; nothing was sent [final  ]"#);
    assert_eq!(service.seen().len(), 0, "nothing was sent");
    // Another network does not help, the right one does.
    let world = World::of(&at(&named, "allow_private = ['10.0.0.0/8']"));
    assert!(!world.call("svc.get", r#"{"id": "1"}"#).await.ok);
    let world = World::of(&at(&named, "allow_private = ['loopback']"));
    assert!(world.call("svc.get", r#"{"id": "1"}"#).await.ok);
}

/// B17: a redirect is followed within the upstream and the declared hosts, and the credential does not leave.
#[tokio::test]
async fn redirects_do_not_lead_elsewhere() {
    let other = Service::start(|_, _| answer(200, r#"{"other": true}"#)).await;
    let other_port = other.url.rsplit(':').next().unwrap().to_owned();
    let service = Service::start(move |seen, _| {
        let target = match seen.target.as_str() {
            "/base/get/home" => "/base/get/end".to_owned(),
            "/base/get/declared" => format!("http://localhost:{other_port}/x"),
            "/base/get/port" => format!("http://127.0.0.1:{other_port}/x"),
            "/base/get/userinfo" => format!("http://u:p@{}/base/get/end", seen.header("host")),
            "/base/get/elsewhere" => "http://example.com/".to_owned(),
            "/base/get/metadata" => "http://169.254.169.254/latest".to_owned(),
            "/base/get/file" => "file:///etc/passwd".to_owned(),
            "/base/get/loop" => "/base/get/loop".to_owned(),
            "/base/write" => "/base/get/end".to_owned(),
            _ => return answer(200, r#"{"home": true}"#),
        };
        Act::Answer(302, vec![("location", target)], Vec::new())
    })
    .await;
    let port = other.url.rsplit(':').next().unwrap();
    let upstream = format!(
        "hosts = ['localhost:{port}']\nauth.header = {{ name = 'X-Key', value = 'env:PATH' }}"
    );
    let world = World::new(&service, &upstream, READ);
    let mut lines = Vec::new();
    for id in [
        "home",
        "declared",
        "port",
        "userinfo",
        "elsewhere",
        "metadata",
        "file",
        "loop",
    ] {
        let reply = world.call("svc.get", &format!(r#"{{"id": "{id}"}}"#)).await;
        lines.push(format!("{id}: {}", told(&reply)));
    }
    lines.push(told(&world.call("svc.write", r#"{"n": 1}"#).await));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    home: ok {"home":true} 
    declared: ok {"other":true} 
    port: UPSTREAM_ERROR: the upstream svc answered with a redirect to another address, which is not followed [final  ]
    userinfo: UPSTREAM_ERROR: the upstream svc answered with a redirect to another address, which is not followed [final  ]
    elsewhere: UPSTREAM_ERROR: the upstream svc answered with a redirect to another address, which is not followed [final  ]
    metadata: UPSTREAM_ERROR: the upstream svc answered with a redirect to another address, which is not followed [final  ]
    file: UPSTREAM_ERROR: the upstream svc answered with a redirect to another address, which is not followed [final  ]
    loop: UPSTREAM_ERROR: the upstream svc answered with a redirect to another address, which is not followed [final  ]
    UPSTREAM_ERROR: the upstream svc answered with a redirect to another address, which is not followed [final  302]
    "#);
    assert!(!service.last().header("x-key").is_empty());
    assert_eq!(
        other.last().header("x-key"),
        "",
        "the credential stays at home"
    );
}

/// B17: a read is tried again after a lost connection and after 503; a write is not, unless it is declared safe.
#[tokio::test]
async fn only_what_is_safe_is_repeated() {
    let service = Service::start(|seen, before| match seen.target.as_str() {
        "/base/get/cut" if before == 0 => Act::Cut(Vec::new()),
        "/base/get/busy" if before == 2 => {
            Act::Answer(503, vec![("retry-after", "0".to_owned())], Vec::new())
        }
        "/base/write" if before == 4 || before == 5 => Act::Cut(Vec::new()),
        _ => answer(200, r#"{"fine": true}"#),
    })
    .await;
    let safe = READ
        .replace("svc.write", "svc.safe")
        .replace("svc.get", "svc.get2")
        + "recovery.downstream_key.window_seconds = 3600";
    let upstream = "retries = { backoff_ms = 1, backoff_max_ms = 2 }\nbreaker.failures = 0";
    let world = World::new(&service, upstream, &format!("{READ}{safe}"));
    assert!(world.call("svc.get", r#"{"id": "cut"}"#).await.ok);
    assert!(world.call("svc.get", r#"{"id": "busy"}"#).await.ok);
    assert_eq!(service.seen().len(), 4);
    let reply = world.keyed("svc.write", r#"{"n": 1}"#, "k1").await;
    insta::assert_snapshot!(told(&reply), @r#"UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [final  ]"#);
    assert_eq!(service.seen().len(), 5, "sent once");
    assert!(world.keyed("svc.safe", r#"{"n": 1}"#, "k2").await.ok);
    let seen = service.seen();
    assert_eq!(seen.len(), 7);
    assert_eq!(
        seen[5].header("idempotency-key"),
        seen[6].header("idempotency-key")
    );
}

/// B17: an upstream that cannot be reached is left alone; its answers, even errors, do not open the breaker.
#[tokio::test]
async fn the_breaker_counts_transport_failures_only() {
    let service = Service::start(|_, _| answer(500, "{}")).await;
    let upstream = "breaker = { failures = 2, open_ms = 60000 }\nretries.attempts_max = 1";
    let world = World::new(&service, upstream, READ);
    for _ in 0..4 {
        world.call("svc.get", r#"{"id": "1"}"#).await;
    }
    assert_eq!(service.seen().len(), 4, "answers do not count");
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let dead = at(
        &format!("http://{free}"),
        &format!("allow_private = ['loopback']\n{upstream}"),
    );
    let world = World::of(&dead);
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(told(&world.keyed("svc.write", r#"{"n": 1}"#, "k").await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    UPSTREAM_ERROR: the upstream svc could not be reached; nothing was sent [retryable  ]
    UPSTREAM_ERROR: the upstream svc could not be reached; nothing was sent [retryable  ]
    UPSTREAM_ERROR: the upstream svc failed several times and is paused for a while; nothing was sent [retryable  ]
    "#);
}

/// B17: an attempt has a time limit, and requests beyond the bound wait no longer than their deadline.
#[tokio::test]
async fn time_and_concurrency_are_bounded() {
    let never = Arc::new(Notify::new());
    let service = Service::start(move |_, _| Act::Wait(never.clone())).await;
    let tools = READ.replace(
        "description = \"Reads.\"",
        "description = \"Reads.\"\ndeadline_ms = 200",
    );
    let upstream = "timeouts.attempt_ms = 100\nretries.attempts_max = 1\npool.concurrent_max = 1\nbreaker.failures = 0";
    let world = World::new(&service, upstream, &tools);
    let reply = world.call("svc.get", r#"{"id": "1"}"#).await;
    insta::assert_snapshot!(told(&reply), @r#"TIMEOUT: the upstream svc did not answer in time [retryable  ]"#);
}

/// B17: callers in a hurry do not open the breaker for all callers.
#[tokio::test]
async fn a_short_deadline_does_not_open_the_breaker() {
    let service = Service::start(|seen, _| match seen.target.as_str() {
        "/base/get/slow" => Act::Wait(Arc::new(Notify::new())),
        _ => answer(200, "{}"),
    })
    .await;
    let tools = READ.replace(
        "description = \"Reads.\"",
        "description = \"Reads.\"\ndeadline_ms = 100",
    );
    let upstream = "breaker = { failures = 2, open_ms = 60000 }\nretries.attempts_max = 1";
    let world = World::new(&service, upstream, &tools);
    for _ in 0..4 {
        let reply = world.call("svc.get", r#"{"id": "slow"}"#).await;
        assert!(told(&reply).starts_with("TIMEOUT"), "{reply:?}");
    }
    assert!(world.call("svc.get", r#"{"id": "fine"}"#).await.ok);
}

/// B17: a slow attempt of the upstream's own time does.
#[tokio::test]
async fn a_slow_upstream_opens_the_breaker() {
    let never = Arc::new(Notify::new());
    let service = Service::start(move |_, _| Act::Wait(never.clone())).await;
    let upstream = "timeouts.attempt_ms = 50\nbreaker = { failures = 2, open_ms = 60000 }\nretries.attempts_max = 1";
    let world = World::new(&service, upstream, READ);
    for _ in 0..2 {
        world.call("svc.get", r#"{"id": "1"}"#).await;
    }
    let reply = world.call("svc.get", r#"{"id": "1"}"#).await;
    assert!(told(&reply).contains("is paused for a while"), "{reply:?}");
    assert_eq!(service.seen().len(), 2);
}

/// B17: an argument cannot leave its place: not by steps up, escapes, addresses, or line breaks.
#[tokio::test]
async fn arguments_cannot_change_the_address() {
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let tools = READ.to_owned()
        + r#"
        [[tool]]
        name = "svc.nested"
        upstream = "svc"
        description = "Reads."
        request = { method = "GET", path = "/{a}/{b}{c}" }
        parameters = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "h", required = false }]
        arguments.a.style = "label"
        arguments.h = { in = "header", name = "X-H" }
        "#;
    let world = World::new(&service, "", &tools);
    for id in [
        "../admin",
        "..%2fadmin",
        "%2e%2e",
        "%2E%2E/x",
        "..",
        ".",
        "..;/x",
        "\\\\..\\\\x",
        "//evil.example/x",
        "http://evil.example/",
        "@evil.example",
        "x?admin=1",
        "x#y",
        "x\ty",
        "\0",
        "é/../..",
    ] {
        let arguments = serde_json::json!({ "id": id }).to_string();
        world.call("svc.get", &arguments).await;
    }
    for (a, b, c) in [
        ("x", ".", "."),
        (".", "x", ""),
        ("", ".", "./x"),
        ("x", "", ""),
    ] {
        let arguments = serde_json::json!({"a": a, "b": b, "c": c}).to_string();
        world.call("svc.nested", &arguments).await;
    }
    for h in ["a\r\nx: y", "a\nb", "a\0b", "\u{7f}"] {
        let arguments = serde_json::json!({"a": "x", "b": "y", "c": "z", "h": h}).to_string();
        world.call("svc.nested", &arguments).await;
    }
    let lines: Vec<_> = service
        .seen()
        .iter()
        .map(|seen| seen.target.clone())
        .collect();
    for line in &lines {
        let is_inside = line.starts_with("/base/get/") && line.matches('/').count() == 3;
        assert!(is_inside && !line.contains('?'), "{lines:?}");
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    /base/get/%2F%2Fevil.example%2Fx
    /base/get/http%3A%2F%2Fevil.example%2F
    /base/get/%40evil.example
    /base/get/x%3Fadmin%3D1
    /base/get/x%23y
    /base/get/x%09y
    /base/get/%00
    "#);
}

/// B17: connections are kept and used again; requests beyond the bound wait, no longer than their deadline, and are not sent.
#[tokio::test]
async fn connections_are_pooled_and_bounded() {
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let world = World::new(&service, "", READ);
    for _ in 0..5 {
        assert!(world.call("svc.get", r#"{"id": "1"}"#).await.ok);
    }
    assert_eq!((service.seen().len(), service.connections()), (5, 1));

    let go = Arc::new(Notify::new());
    let held = go.clone();
    let service = Service::start(move |_, _| Act::Late(held.clone(), b"{}".to_vec())).await;
    let tools = READ.replace(
        "description = \"Writes.\"",
        "description = \"Writes.\"\ndeadline_ms = 100",
    );
    let world = Arc::new(World::new(&service, "pool.concurrent_max = 1", &tools));
    let calling = world.clone();
    let first = tokio::spawn(async move { calling.call("svc.get", r#"{"id": "1"}"#).await });
    service.arrival().await;
    let second = world.keyed("svc.write", r#"{"n": 1}"#, "k").await;
    assert_eq!(
        told(&second),
        "TIMEOUT: too many requests to the upstream svc are in progress; nothing was sent [retryable  ]"
    );
    go.notify_one();
    assert!(first.await.unwrap().ok);
    assert_eq!(service.seen().len(), 1);
}

/// B17: retries have a budget of the upstream, over all its calls.
#[tokio::test]
async fn retries_are_bounded_over_all_calls() {
    let service = Service::start(|_, _| Act::Cut(Vec::new())).await;
    let upstream = "retries = { backoff_ms = 1, backoff_max_ms = 2, budget_percent = 10 }\nbreaker.failures = 0";
    let world = World::new(&service, upstream, READ);
    for _ in 0..100 {
        assert!(!world.call("svc.get", r#"{"id": "1"}"#).await.ok);
    }
    let sent = service.seen().len();
    assert!(
        (110..=125).contains(&sent),
        "100 calls, 10 at once and a tenth more: {sent}"
    );
    let service = Service::start(|_, _| Act::Cut(Vec::new())).await;
    let world = World::new(
        &service,
        "retries.budget_percent = 0\nbreaker.failures = 0",
        READ,
    );
    world.call("svc.get", r#"{"id": "1"}"#).await;
    assert_eq!(service.seen().len(), 1);
}
