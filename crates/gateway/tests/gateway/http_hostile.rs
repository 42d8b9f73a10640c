//! Hostile clients: each gets a closed code or a closed connection, and all others their answers.

use std::time::Duration;

use countersign::Principal;
use countersign_gateway::Settings;
use countersign_testkit::patience::{until, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::http_client::{Answer, get, post, raw, send, to_the_end};
use crate::world::World;

const PATH: &str = "/v1/tools/notes.list";

fn impatient() -> Settings {
    Settings {
        read_timeout: Duration::from_millis(300),
        ..Settings::default()
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let world = World::start().await;
    let max = world.gateway.settings().body_bytes_max;
    let announced = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        max + 1
    );
    let answer = raw(&world, announced).await.unwrap();
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "INVALID_ARGUMENT")
    );

    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16));
    let chunks = chunk.repeat(max / (1 << 16) + 1);
    let answer = raw(&world, head + &chunks).await.unwrap();
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "INVALID_ARGUMENT")
    );

    // A body of exactly the maximum length is accepted.
    let longest = format!("{{\"arguments\": {{}}{}}}", " ".repeat(max - 17));
    assert_eq!(longest.len(), max);
    assert_eq!(post(&world, PATH, &longest).await.status, 200);
}

/// Concurrent bodies share a limit; it is free again when they are done.
#[tokio::test]
async fn many_bodies_at_once_find_no_room() {
    let settings = Settings {
        arriving_bytes_max: 1000,
        ..Settings::default()
    };
    let world = World::with(settings).await;
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 900\r\n\r\n"
    );
    let mut slow = TcpStream::connect(world.address).await.unwrap();
    slow.write_all(format!("{head}{{{}", " ".repeat(600)).as_bytes())
        .await
        .unwrap();
    // There may be room for the second one until the first one has arrived.
    until(async || {
        let answer = post(&world, PATH, &format!("{{{}}}", " ".repeat(500))).await;
        if answer.status == 200 {
            return false;
        }
        let refused = (answer.status, answer.code());
        assert_eq!(refused, (429, "RATE_LIMITED".to_owned()));
        assert_eq!(answer.header("retry-after"), Some("1"));
        true
    })
    .await;
    slow.write_all(format!("{}}}", " ".repeat(298)).as_bytes())
        .await
        .unwrap();
    let wire = to_the_end(&mut slow).await;
    assert_eq!(Answer::parse(&wire).unwrap().status, 200);
    assert_eq!(
        post(&world, PATH, &format!("{{{}}}", " ".repeat(900)))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_slow_body_is_cut_off() {
    let world = World::with(impatient()).await;
    let request = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 10\r\n\r\n{{"
    );
    let answer = raw(&world, request).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (408, "TIMEOUT"));
}

#[tokio::test]
async fn a_slow_head_is_cut_off() {
    let world = World::with(impatient()).await;
    // Sending a byte at a time does not restart the timeout; a client that sends nothing at all is cut off as
    // well.
    assert!(raw(&world, "").await.is_none());
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let (mut from_server, mut to_server) = stream.split();
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    let trickle = async {
        for byte in b"GET /healthz HTTP/1.1\r\nhost: ".iter().cycle() {
            pace.tick().await;
            if to_server.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
        // The connection is closed: the other side sees it.
        std::future::pending::<()>().await;
    };
    let mut wire = Vec::new();
    let closed = async {
        tokio::select! {
            _ = from_server.read_to_end(&mut wire) => {}
            () = trickle => {}
        }
    };
    within(closed).await;
    let answer = Answer::parse(&wire);
    assert!(answer.is_none_or(|answer| answer.status == 408));
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let world = World::start().await;
    let max = world.gateway.settings().head_bytes_max;
    let long = "a".repeat(max);
    let answer = send(&world, "GET", "/healthz", &[("x-long", &long)], "").await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (431, "INVALID_ARGUMENT")
    );
    let answer = get(&world, &format!("/v1/tools/{long}")).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (431, "INVALID_ARGUMENT")
    );
    // Beyond twice the limit nothing is parsed, so the gateway cannot answer itself.
    let longer = "a".repeat(4 * max);
    let request = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: {longer}\r\n\r\n");
    assert!(
        raw(&world, request)
            .await
            .is_none_or(|answer| answer.status == 431)
    );
    let many = "x: y\r\n".repeat(1000);
    let request = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");
    assert!(
        raw(&world, request)
            .await
            .is_none_or(|answer| answer.status == 431)
    );
    assert_eq!(get(&world, "/healthz").await.status, 200);
}

/// Odd paths reach no file, no other route and no panic.
#[tokio::test]
async fn odd_paths_are_answered() {
    let world = World::start().await;
    let long = "a".repeat(8_000);
    for path in [
        "/v1/tools/..%2f",
        "/v1/tools/..%2f..%2fetc%2fpasswd",
        "/v1/tools/%00",
        "/v1/tools/%0d%0ax-evil:%201",
        "/v1/tools/notes.list%00",
        "/v1/tools/NOTES.LIST",
        &format!("/v1/tools/{long}"),
        "/v1/tools/%F0%9F%92%A9",
    ] {
        let answer = post(&world, path, "{}").await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "NOT_FOUND"),
            "{path}"
        );
        assert!(!answer.head.contains("x-evil"), "{answer:?}");
    }
    let answer = send(&world, "DELETE", "/v1/keys/%FF", &[], "").await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "INVALID_ARGUMENT")
    );
    for path in ["/v1/tools/%FF", "/v1/tools/%C3%28"] {
        assert_eq!(
            post(&world, path, "{}").await.code(),
            "INVALID_ARGUMENT",
            "{path}"
        );
    }
    for path in [
        "/v1/tools//notes.list",
        "/v1/tools/notes.list/",
        "/v1//tools",
        "/../v1/tools",
        "/v1/tools/a/b",
        "/V1/tools",
        "//",
        "/%2e%2e/",
    ] {
        assert_eq!(get(&world, path).await.code(), "NOT_FOUND", "{path}");
    }
}

#[tokio::test]
async fn what_is_no_http_is_no_trouble() {
    let world = World::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST /v1/tools/notes.list HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n{}",
        b"POST /v1/tools/notes.list HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx\x00y: 1\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        // Closing the connection is fine too: bytes that are not HTTP need no answer.
        let answer = Answer::parse(&to_the_end(&mut stream).await);
        let is_refused = answer.as_ref().is_none_or(|answer| (400..500).contains(&answer.status));
        assert!(is_refused, "{answer:?}");
    }
    assert_eq!(get(&world, "/healthz").await.status, 200);
}

/// Deeply nested and wide arguments are left to the binder: limited, answered, without a stack overflow.
#[tokio::test]
async fn deep_json_is_refused() {
    let world = World::start().await;
    for deep in [
        "[".repeat(100_000),
        "{\"a\":".repeat(50_000),
        "[".repeat(100_000) + &"]".repeat(100_000),
        "[{\"a\":".repeat(30_000) + "1" + &"}]".repeat(30_000),
    ] {
        for body in [
            format!("{{\"arguments\": {deep}}}"),
            deep.clone(),
            format!("{{\"actor\": {deep}}}"),
        ] {
            let answer = post(&world, "/v1/tools/notes.add", &body).await;
            assert_eq!(answer.code(), "INVALID_ARGUMENT");
        }
        let text = [("content-type", "text/plain")];
        let answer = send(&world, "POST", "/v1/tools/notes.add", &text, &deep).await;
        assert_eq!(answer.code(), "INVALID_ARGUMENT");
    }
}

/// A3: a caller that may not act for others cannot claim to be another user.
#[tokio::test]
async fn a_forged_actor_is_refused() {
    let world = World::start().await;
    let user = world.beside(Principal::user("u_1")).await;
    for body in [
        r#"{"user_id": "u_2"}"#,
        r#"{"actor": {"type": "system", "id": "operator/local"}}"#,
        r#"{"actor": {"type": "agent", "id": "u_1"}}"#,
    ] {
        let answer = post(&user, PATH, body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "FORBIDDEN"),
            "{body}"
        );
    }
    assert_eq!(post(&user, PATH, r#"{"user_id": "u_1"}"#).await.status, 200);
}

/// A page of another site, or a foreign name that resolves to this machine, is refused.
#[tokio::test]
async fn other_sites_are_kept_out() {
    let world = World::start().await;
    for (name, value) in [("origin", "https://evil.example"), ("origin", "null")] {
        let headers = [(name, value), ("content-type", "text/plain")];
        let answer = send(&world, "POST", PATH, &headers, "{}").await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "FORBIDDEN"),
            "{value}"
        );
    }
    let request = "GET /v1/calls HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    let answer = raw(&world, request).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (403, "FORBIDDEN"));
}

/// Connections beyond the limit wait, and are answered when there is room.
#[tokio::test]
async fn a_thousand_connections_are_answered_in_turn() {
    let settings = Settings {
        connections_max: 16,
        ..Settings::default()
    };
    let world = std::sync::Arc::new(World::with(settings).await);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let world = world.clone();
        clients.spawn(async move { post(&world, PATH, "{}").await.status });
    }
    let mut answered = 0;
    while let Some(status) = within(clients.join_next()).await {
        assert_eq!(status.unwrap(), 200);
        answered += 1;
    }
    assert_eq!(answered, 1000);
}

/// A member that must be an object accepts nothing else.
#[tokio::test]
async fn arrays_are_no_objects() {
    let world = World::start().await;
    for (body, field) in [
        (r#"{"actor": ["agent", "local"]}"#, "/actor"),
        (
            r#"{"actor": {"type": {"agent": null}, "id": "local"}}"#,
            "/actor",
        ),
        (r#"{"trace": ["a"]}"#, "/trace"),
        (r#"{"client": ["a", "1"]}"#, "/client"),
    ] {
        let answer = post(&world, PATH, body).await;
        let error = &answer.json()["error"]["details"];
        assert_eq!(
            (answer.status, &error["field"]),
            (400, &field.into()),
            "{error}"
        );
    }
}
