//! Bytes that two parsers read differently: ends of heads and bodies, odd lines, invalid JSON. Raw sockets.

use std::fmt::Write as _;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::case::{Case, Expected, INVALID, NOT_FOUND, Request, Tally, UNAUTHORIZED, case};
use crate::http_client::to_the_end;
use crate::world::{Backing, World};

const HARM: &str = "a request that was hidden in another one";

/// A request is parsed in one way, or refused.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let world = World::start(backing).await;
    let mut tally = Tally::new("parsing");
    tally.run(&world, "lengths", lengths(&world)).await;
    tally.run(&world, "chunks", chunks(&world)).await;
    tally.run(&world, "lines", lines(&world)).await;
    tally.run(&world, "heads", heads(&world)).await;
    tally.run(&world, "JSON", json_bodies(&world)).await;
    pipelined(&world, &mut tally).await;
    tally
}

/// Returns the head of a call that would keep a note, without its end.
fn head(world: &World) -> String {
    format!(
        "POST /v1/tools/notes.add HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n",
        world.cast.bob
    )
}

/// Returns a complete call that must not run.
fn hidden(world: &World) -> String {
    let body = r#"{"arguments": {"text": "smuggled"}}"#;
    format!(
        "{}content-length: {}\r\n\r\n{body}",
        head(world),
        body.len()
    )
}

const CLOSE: &str = "connection: close\r\n";

/// The gateway does not answer itself: the connection ends, or gets a 400.
fn no_http() -> Expected {
    Expected::Wire(&[400])
}

fn lengths(world: &World) -> Vec<Case> {
    let (head, hidden) = (head(world), hidden(world));
    let raw = |name: &str, rest: String, expected: Expected| {
        case(name, Request::raw(format!("{head}{rest}")), expected, HARM)
    };
    // Bytes behind the end of the chunks are not read: the connection ends.
    let both = format!("0\r\n\r\n{hidden}");
    vec![
        raw(
            "a length, then chunks",
            format!(
                "content-length: {}\r\ntransfer-encoding: chunked\r\n\r\n{both}",
                both.len()
            ),
            INVALID,
        ),
        raw(
            "chunks, then a length",
            format!(
                "transfer-encoding: chunked\r\ncontent-length: {}\r\n\r\n{both}",
                both.len()
            ),
            INVALID,
        ),
        raw(
            "a short length, then chunks",
            format!("content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n{both}"),
            INVALID,
        ),
        raw(
            "two lengths",
            format!(
                "content-length: 2\r\ncontent-length: {}\r\n\r\n{{}}{hidden}",
                hidden.len() + 2
            ),
            no_http(),
        ),
        raw(
            "two lengths in one",
            format!("content-length: 2, {}\r\n\r\n{{}}{hidden}", hidden.len()),
            no_http(),
        ),
        raw(
            "the same length in one",
            format!("content-length: 2, 2\r\n\r\n{{}}{hidden}"),
            no_http(),
        ),
        raw(
            "a length with a sign",
            format!("content-length: +2\r\n\r\n{{}}{hidden}"),
            no_http(),
        ),
        raw(
            "a length below zero",
            format!("content-length: -2\r\n\r\n{{}}{hidden}"),
            no_http(),
        ),
        raw(
            "a length in hex",
            format!("content-length: 0x2\r\n\r\n{{}}{hidden}"),
            no_http(),
        ),
        raw(
            "a length with a point",
            format!("content-length: 2.0\r\n\r\n{{}}{hidden}"),
            no_http(),
        ),
        raw(
            "a length beyond numbers",
            format!("content-length: 99999999999999999999\r\n\r\n{{}}{hidden}"),
            no_http(),
        ),
        raw(
            "a length of 2^64 + 2",
            format!("content-length: 18446744073709551618\r\n\r\n{{}}{hidden}"),
            no_http(),
        ),
        raw(
            "no length",
            format!("content-length:\r\n\r\n{{}}{hidden}"),
            no_http(),
        ),
        raw(
            "a length that is too long",
            "content-length: 1048577\r\n\r\n".to_owned(),
            Expected::Code(413, "INVALID_ARGUMENT"),
        ),
    ]
}

fn chunks(world: &World) -> Vec<Case> {
    let (head, hidden) = (head(world), hidden(world));
    let coded = |name: &str, coding: &str, body: String| {
        let request = format!("{head}transfer-encoding:{coding}\r\n\r\n{body}");
        case(name, Request::raw(request), no_http(), HARM)
    };
    let chunked = |name: &str, body: String| {
        let request = format!("{head}{CLOSE}transfer-encoding: chunked\r\n\r\n{body}");
        case(name, Request::raw(request), INVALID, HARM)
    };
    let end = "0\r\n\r\n";
    vec![
        coded(
            "chunks are not the last coding",
            " chunked, identity",
            format!("{end}{hidden}"),
        ),
        coded(
            "a coding that nobody knows",
            " xchunked",
            format!("{end}{hidden}"),
        ),
        coded(
            "two codings in two lines",
            " chunked\r\ntransfer-encoding: identity",
            format!("{end}{hidden}"),
        ),
        coded("no coding", "", format!("{end}{hidden}")),
        coded(
            "a coding with a vertical tab",
            " \u{b}chunked",
            format!("{end}{hidden}"),
        ),
        coded(
            "a coding in quotes",
            " \"chunked\"",
            format!("{end}{hidden}"),
        ),
        chunked("a chunk of no number", format!("zz\r\n{hidden}")),
        chunked(
            "a chunk in hex with a prefix",
            format!("0x2\r\n{{}}\r\n{end}"),
        ),
        chunked("a chunk below zero", format!("-2\r\n{{}}\r\n{end}")),
        chunked(
            "a chunk beyond numbers",
            format!("FFFFFFFFFFFFFFFFF\r\n{hidden}"),
        ),
        chunked("a chunk without its end", format!("2\r\n{{}}{end}")),
        chunked("a chunk with a space", format!("2 2\r\n{{}}\r\n{end}")),
        chunked(
            "an extension of 32 KiB",
            format!("2;{}\r\n{{}}\r\n{end}", "a".repeat(32 << 10)),
        ),
        chunked(
            "a trailer that names somebody",
            "2\r\n{}\r\n0\r\nauthorization: Bearer x\r\n\r\n".to_owned(),
        ),
    ]
}

fn lines(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let body = r#"{"arguments": {"text": "smuggled"}}"#;
    let length = body.len();
    let auth = format!("authorization: Bearer {bob}");
    let wire = |name: &str, request: String| case(name, Request::raw(request), no_http(), HARM);
    let post = "POST /v1/tools/notes.add HTTP/1.1\r\nhost: localhost";
    let tail = format!("content-length: {length}\r\n{CLOSE}\r\n{body}");
    vec![
        wire(
            "a folded header",
            format!("{post}\r\nx-a: b\r\n {auth}\r\n{tail}"),
        ),
        wire(
            "a folded credential",
            format!("{post}\r\nauthorization:\r\n Bearer {bob}\r\n{tail}"),
        ),
        wire(
            "a space before the colon",
            format!("{post}\r\nauthorization : Bearer {bob}\r\n{tail}"),
        ),
        wire(
            "a header without a colon",
            format!("{post}\r\n{auth}\r\nnothing\r\n{tail}"),
        ),
        wire(
            "a NUL in a header",
            format!("{post}\r\n{auth}\r\nx-a: b\0c\r\n{tail}"),
        ),
        wire(
            "a NUL in a name",
            format!("{post}\r\n{auth}\r\nx\0a: b\r\n{tail}"),
        ),
        wire(
            "a carriage return in a header",
            format!("{post}\r\n{auth}\r\nx-a: b\rc: d\r\n{tail}"),
        ),
        wire(
            "a name with a space",
            format!("{post}\r\n{auth}\r\nx a: b\r\n{tail}"),
        ),
        wire(
            "a name of no letters",
            format!("{post}\r\n{auth}\r\n: b\r\n{tail}"),
        ),
        wire(
            "three words too many",
            format!("POST /v1/tools/notes.add HTTP/1.1 x\r\nhost: localhost\r\n{auth}\r\n{tail}"),
        ),
        wire(
            "a version that is none",
            format!("POST /v1/tools/notes.add HTTP/9.9\r\nhost: localhost\r\n{auth}\r\n{tail}"),
        ),
        wire(
            "no version",
            format!("POST /v1/tools/notes.add\r\nhost: localhost\r\n{auth}\r\n{tail}"),
        ),
        wire(
            "a path with a space",
            format!("POST /v1/tools/notes.add x HTTP/1.1\r\nhost: localhost\r\n{auth}\r\n{tail}"),
        ),
        wire(
            "a path with a NUL",
            format!("POST /v1/tools/notes.add\0 HTTP/1.1\r\nhost: localhost\r\n{auth}\r\n{tail}"),
        ),
        case(
            "a path that is no path",
            Request::raw(format!(
                "POST notes.add HTTP/1.1\r\nhost: localhost\r\n{auth}\r\n{tail}"
            )),
            NOT_FOUND,
            HARM,
        ),
        wire(
            "the preface of HTTP/2",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ),
        wire(
            "a handshake of TLS",
            "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0".to_owned(),
        ),
        wire(
            "chunks of HTTP/1.0",
            format!(
                "POST /v1/tools/notes.add HTTP/1.0\r\n{auth}\r\ntransfer-encoding: chunked\r\n\r\n23\r\n{body}\r\n0\r\n\r\n"
            ),
        ),
    ]
}

fn heads(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let auth = format!("authorization: Bearer {bob}\r\n");
    let empty = format!("{CLOSE}content-length: 2\r\n\r\n{{}}");
    let raw = |name: &str, request: String, expected: Expected| {
        case(name, Request::raw(request), expected, HARM)
    };
    let mut many = String::new();
    for n in 0..200 {
        let _ = write!(many, "x-{n}: y\r\n");
    }
    let path = "/v1/tools/notes.add";
    let large = || Expected::Wire(&[431]);
    vec![
        raw(
            "the whole address",
            format!("POST http://localhost{path} HTTP/1.1\r\nhost: localhost\r\n{auth}{empty}"),
            INVALID,
        ),
        raw(
            "the whole address of another",
            format!("POST http://evil.example{path} HTTP/1.1\r\nhost: localhost\r\n{empty}"),
            UNAUTHORIZED,
        ),
        raw(
            "an address of another kind",
            format!("GET file:///etc/passwd HTTP/1.1\r\nhost: localhost\r\n{auth}{CLOSE}\r\n"),
            no_http(),
        ),
        raw(
            "no host",
            format!("POST {path} HTTP/1.1\r\n{auth}{empty}"),
            INVALID,
        ),
        raw(
            "HTTP/1.0 without a credential",
            format!("POST {path} HTTP/1.0\r\n{empty}"),
            UNAUTHORIZED,
        ),
        raw(
            "a method that nobody knows",
            format!("SMUGGLE {path} HTTP/1.1\r\nhost: localhost\r\n{auth}{empty}"),
            Expected::Code(405, "INVALID_ARGUMENT"),
        ),
        raw(
            "a method in small letters",
            format!("post {path} HTTP/1.1\r\nhost: localhost\r\n{auth}{empty}"),
            Expected::Code(405, "INVALID_ARGUMENT"),
        ),
        raw(
            "everything",
            format!("OPTIONS * HTTP/1.1\r\nhost: localhost\r\n{auth}{CLOSE}\r\n"),
            NOT_FOUND,
        ),
        raw(
            "an upgrade",
            format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\n{auth}upgrade: h2c\r\nhttp2-settings: AA\r\n{empty}"
            ),
            INVALID,
        ),
        raw(
            "a header of 17 KiB",
            format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\n{auth}x-a: {}\r\n{empty}",
                "a".repeat(17 << 10)
            ),
            Expected::Code(431, "INVALID_ARGUMENT"),
        ),
        raw(
            "a header of 100 KiB",
            format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\n{auth}x-a: {}\r\n{empty}",
                "a".repeat(100 << 10)
            ),
            large(),
        ),
        raw(
            "two hundred headers",
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{auth}{many}{empty}"),
            large(),
        ),
        raw(
            "a path of 17 KiB",
            format!(
                "GET /{} HTTP/1.1\r\nhost: localhost\r\n{auth}{CLOSE}\r\n",
                "a".repeat(17 << 10)
            ),
            Expected::Code(431, "INVALID_ARGUMENT"),
        ),
    ]
}

fn json_bodies(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let of = |name: &str, body: Vec<u8>| {
        let request = Request::post("/v1/tools/notes.add", body).by(bob);
        case(name, request, INVALID, HARM)
    };
    let text = |name: &str, body: &str| of(name, body.as_bytes().to_vec());
    let deep =
        |open: &str, count: usize| format!("{{\"arguments\": {{\"text\": {}", open.repeat(count));
    let wide = format!(
        "{{\"arguments\": {{{}}}}}",
        (0..20_000)
            .map(|n| format!("\"a{n}\": 1"))
            .collect::<Vec<_>>()
            .join(",")
    );
    vec![
        text("a hundred thousand lists", &deep("[", 100_000)),
        text("fifty thousand objects", &deep("{\"a\":", 50_000)),
        text("twenty thousand members", &wide),
        text(
            "arguments twice",
            r#"{"arguments": {"text": "a"}, "arguments": {"text": "b"}}"#,
        ),
        text(
            "a text twice",
            r#"{"arguments": {"text": "a", "text": "b"}}"#,
        ),
        text(
            "a text twice, the second in escapes",
            r#"{"arguments": {"text": "a", "te\u0078t": "b"}}"#,
        ),
        text(
            "two bodies",
            r#"{"arguments": {"text": "a"}} {"arguments": {"text": "b"}}"#,
        ),
        text("a body that is cut off", r#"{"arguments": {"text": "a"}"#),
        text("a comment", r#"{"arguments": {"text": "a"} /* "x" */}"#),
        text("half a character", r#"{"arguments": {"text": "\ud800"}}"#),
        text("a text with a NUL", "{\"arguments\": {\"text\": \"a\0b\"}}"),
        of(
            "an overlong slash",
            b"{\"arguments\": {\"text\": \"\xc0\xaf\"}}".to_vec(),
        ),
        of(
            "bytes that are no text",
            b"{\"arguments\": {\"text\": \"\xff\xfe\"}}".to_vec(),
        ),
        of(
            "a surrogate in bytes",
            b"{\"arguments\": {\"text\": \"\xed\xa0\x80\"}}".to_vec(),
        ),
        text("NaN", r#"{"arguments": NaN}"#),
        text(
            "a number of a megabyte's digits",
            &format!("{{\"arguments\": {}}}", "9".repeat(900_000)),
        ),
        text(
            "XML",
            r#"<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>"#,
        ),
        text(
            "a text of more than may be",
            &json!({"arguments": {"text": "t".repeat(2_001)}}).to_string(),
        ),
    ]
}

/// Pipelined requests are answered in their order, each for its own caller; nothing behind a malformed one is
/// read.
async fn pipelined(world: &World, tally: &mut Tally) {
    let list = |key: &str, more: &str| {
        format!(
            "POST /v1/tools/notes.list HTTP/1.1\r\nhost: localhost\r\n{key}{more}content-length: 2\r\n\r\n{{}}"
        )
    };
    let by = |key: &str| format!("authorization: Bearer {key}\r\n");
    let wire = list(&by(&world.cast.root), "")
        + &list("", "")
        + &list(&by("x"), "")
        + &list(&by(&world.cast.root), CLOSE);
    tally.check(
        "a credential counts for one request",
        statuses(world, &wire).await,
        vec![200, 401, 401, 200],
    );
    let broken = list(&by(&world.cast.root), "")
        + "GET / HTTP/1.1\r\nx y: z\r\n\r\n"
        + &list(&by(&world.cast.root), CLOSE);
    tally.check(
        "what follows a broken head is not read",
        statuses(world, &broken).await,
        vec![200, 400],
    );
    tally.stands(world, "a connection").await;
}

/// Returns the statuses of all answers on one connection.
async fn statuses(world: &World, wire: &str) -> Vec<u16> {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(wire.as_bytes()).await.unwrap();
    let answered = to_the_end(&mut stream).await;
    let text = String::from_utf8_lossy(&answered).into_owned();
    text.split("HTTP/1.1 ")
        .skip(1)
        .filter_map(|answer| answer.get(..3)?.parse().ok())
        .collect()
}
