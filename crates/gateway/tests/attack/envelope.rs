//! Headers and envelopes that contradict the credential or each other (A1, A3, A5).

use serde_json::{Value, json};

use crate::case::{Case, Expected, FORBIDDEN, INVALID, Request, Tally, UNAUTHORIZED, case};
use crate::world::{Backing, World};

const ADD: &str = "/v1/tools/notes.add";
const TEXT: &str = r#"{"arguments": {"text": "forged"}}"#;
const HARM: &str = "a note that nobody asked for";

/// A3: claims of a request count only if the credential agrees, and nothing may be given twice with different
/// values.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let world = World::start(backing).await;
    let mut tally = Tally::new("envelope");
    tally.run(&world, "credentials", credentials(&world)).await;
    tally.run(&world, "members", members(&world)).await;
    tally.run(&world, "keys", keys(&world)).await;
    tally.run(&world, "pages of others", pages(&world)).await;
    tally.run(&world, "types", types(&world)).await;
    tally
}

fn credentials(world: &World) -> Vec<Case> {
    let (ann, bob) = (&world.cast.ann, &world.cast.bob);
    let add = || Request::post(ADD, TEXT);
    let list = || Request::call("notes.list", &json!({"arguments": {}}));
    let nobody = |name: &str, request: Request| case(name, request, UNAUTHORIZED, HARM);
    let own = |name: &str, header: &str, value: &str| {
        let request = Request::call("notes.list", &json!({"arguments": {}}));
        let request = request.by(&world.cast.root).with(header, value);
        case(name, request, Expected::Data(json!([])), "the notes of ann")
    };
    vec![
        nobody("two good credentials", add().by(ann).by(bob)),
        nobody("the same one twice", add().by(ann).by(ann)),
        nobody("a good one and a bad one", add().by(ann).by("x")),
        nobody("a bad one and a good one", add().by("x").by(ann)),
        nobody(
            "loopback behind a proxy",
            list().with("x-forwarded-for", "127.0.0.1"),
        ),
        nobody(
            "loopback as a client",
            list().with("forwarded", "for=127.0.0.1;host=localhost"),
        ),
        own("X-User-Id", "x-user-id", "ann"),
        own("X-Forwarded-User", "x-forwarded-user", "ann"),
        own("X-Actor", "x-actor", r#"{"type":"user","id":"ann"}"#),
        own("X-Original-Url", "x-original-url", "/v1/keys"),
        own("X-HTTP-Method-Override", "x-http-method-override", "DELETE"),
        own("X-Session-Id", "x-session-id", "session-of-ann"),
    ]
}

fn members(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let with = |members: &str| {
        let body = format!(r#"{{"arguments": {{"text": "forged"}}, {members}}}"#);
        Request::post(ADD, body).by(bob)
    };
    let invalid = |name: &str, members: &str| case(name, with(members), INVALID, HARM);
    let long = format!(r#""user_id": "{}""#, "b".repeat(256));
    let session = format!(r#""session_id": "{}""#, "s".repeat(256));
    let deep = format!(r#""trace": {}1{}"#, "[".repeat(200), "]".repeat(200));
    vec![
        case("another user", with(r#""user_id": "ann""#), FORBIDDEN, HARM),
        case(
            "another user, as the actor",
            with(r#""actor": {"type": "user", "id": "ann"}"#),
            FORBIDDEN,
            HARM,
        ),
        case(
            "an agent of nobody",
            with(r#""actor": {"type": "agent", "id": "bob"}"#),
            FORBIDDEN,
            HARM,
        ),
        case(
            "the actor of the policy",
            with(r#""actor": {"type": "system", "id": "policy"}"#),
            FORBIDDEN,
            HARM,
        ),
        invalid("a user twice", r#""user_id": "bob", "user_id": "ann""#),
        invalid(
            "a user twice, the second in escapes",
            r#""user_id": "bob", "user\u005fid": "ann""#,
        ),
        invalid(
            "an actor twice",
            r#""actor": {"type": "user", "id": "bob"}, "actor": {"type": "user", "id": "ann"}"#,
        ),
        invalid(
            "an id twice in the actor",
            r#""actor": {"type": "user", "id": "bob", "id": "ann"}"#,
        ),
        invalid("arguments twice", r#""arguments": {"text": "other"}"#),
        invalid("a user as a list", r#""user_id": ["bob", "ann"]"#),
        invalid("a user as an object", r#""user_id": {"$ne": null}"#),
        invalid("a user with a NUL", r#""user_id": "ann\u0000""#),
        invalid("a user that is too long", &long),
        invalid(
            "an actor of another kind",
            r#""actor": {"type": "admin", "id": "bob"}"#,
        ),
        invalid(
            "an actor with more members",
            r#""actor": {"type": "user", "id": "bob", "scopes": ["keys:manage"]}"#,
        ),
        invalid("scopes", r#""scopes": ["keys:manage"]"#),
        invalid("a principal", r#""principal": {"user_id": "ann"}"#),
        invalid("__proto__", r#""__proto__": {"user_id": "ann"}"#),
        invalid("an approval", r#""approval_id": "ap_1""#),
        invalid("a session with a line break", r#""session_id": "a\nb""#),
        invalid("a session that is too long", &session),
        invalid("a dry run in words", r#""dry_run": "yes""#),
        invalid("a trace that is deep", &deep),
        invalid(
            "a time zone with a path",
            r#""timezone": "../../etc/passwd""#,
        ),
        invalid("a locale with a path", r#""locale": "../../en""#),
        invalid("a request id with a space", r#""request_id": "a b""#),
    ]
}

fn keys(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let add = || Request::post(ADD, TEXT).by(bob);
    let keyed = |key: &str| {
        let body = json!({"arguments": {"text": "forged"}, "idempotency_key": key});
        Request::post(ADD, body.to_string()).by(bob)
    };
    let header = "idempotency-key";
    let invalid = |name: &str, request: Request| case(name, request, INVALID, HARM);
    let mcp = |key: Option<&str>| {
        let meta = key.map_or_else(
            || json!({}),
            |key| json!({"dev.countersign/idempotency_key": key}),
        );
        let params = json!({"name": "notes_add", "arguments": {"text": "forged"}, "_meta": meta});
        Request::mcp("tools/call", params).by(bob)
    };
    let malformed = |name: &str, request: Request| {
        case(
            name,
            request,
            Expected::Rpc(200, -32602),
            "a second call under another key",
        )
    };
    vec![
        invalid("two keys", add().with(header, "k_1").with(header, "k_2")),
        invalid(
            "the same key twice",
            add().with(header, "k_1").with(header, "k_1"),
        ),
        invalid(
            "one key in the head, another in the body",
            keyed("k_1").with(header, "k_2"),
        ),
        invalid("an empty key", add().with(header, "")),
        invalid("an empty key in the body", keyed("")),
        invalid(
            "a key that is too long",
            add().with(header, "k".repeat(256)),
        ),
        invalid("a key in Latin-1", add().with(header, b"k\xe9".to_vec())),
        invalid("a key that is cut off", add().with(header, "\"k_1")),
        invalid(
            "a key with more behind it",
            add().with(header, "\"k_1\"; p=1"),
        ),
        invalid("a key with a control character", keyed("k\u{1}")),
        malformed(
            "two keys (MCP)",
            mcp(None).with(header, "k_1").with(header, "k_2"),
        ),
        malformed(
            "one key in the head, another in _meta (MCP)",
            mcp(Some("k_1")).with(header, "k_2"),
        ),
        malformed(
            "a key in Latin-1 (MCP)",
            mcp(None).with(header, b"k\xe9".to_vec()),
        ),
        malformed(
            "a key that is cut off (MCP)",
            mcp(None).with(header, "\"k_1"),
        ),
        case(
            "a session that is too long (MCP)",
            mcp(None).with("x-session-id", "s".repeat(256)),
            Expected::Tool("INVALID_ARGUMENT"),
            HARM,
        ),
        invalid(
            "a request id that is too long",
            add().with("x-request-id", "r".repeat(129)),
        ),
        invalid(
            "a request id with a space",
            add().with("x-request-id", "a b"),
        ),
    ]
}

/// A page of another site, in the browser of a user on this machine.
fn pages(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let add = || Request::post(ADD, TEXT);
    let kept_out = |name: &str, request: Request| case(name, request, FORBIDDEN, HARM);
    let mut cases = vec![
        kept_out(
            "a page of another site",
            add().with("origin", "https://evil.example").by(bob),
        ),
        kept_out("a page of no site", add().with("origin", "null").by(bob)),
        kept_out(
            "a site that begins like this machine",
            add()
                .with("origin", "http://localhost.evil.example")
                .by(bob),
        ),
        kept_out(
            "a site that begins like its address",
            add()
                .with("origin", "http://127.0.0.1.evil.example")
                .by(bob),
        ),
        kept_out(
            "a site with a name before it",
            add()
                .with("origin", "http://localhost@evil.example")
                .by(bob),
        ),
        kept_out(
            "two origins",
            add()
                .with("origin", "http://localhost")
                .with("origin", "https://evil.example")
                .by(bob),
        ),
        kept_out(
            "an origin in Latin-1",
            add().with("origin", b"http://\xe9".to_vec()).by(bob),
        ),
        kept_out(
            "a name that points here",
            add().with("host", "evil.example:8787"),
        ),
        kept_out(
            "a name that points here, with a dot",
            add().with("host", "localhost."),
        ),
        kept_out(
            "a name with an account before it",
            add().with("host", "localhost@evil.example"),
        ),
        kept_out("no name", add().with("host", "")),
        kept_out("a name in Latin-1", add().with("host", b"\xe9".to_vec())),
        // A page whose name resolves to this machine may send any header, but it has no credential.
        case(
            "a name that points here, with a made up credential",
            add().with("host", "evil.example").by("x"),
            UNAUTHORIZED,
            HARM,
        ),
        case(
            "a name that points here, with an empty credential",
            add().with("host", "evil.example").with("authorization", ""),
            UNAUTHORIZED,
            HARM,
        ),
        kept_out(
            "figures, by a name that points here",
            Request::get("/metrics")
                .with("host", "evil.example")
                .by("x"),
        ),
        case(
            "two hosts",
            add()
                .with("host", "localhost")
                .with("host", "evil.example")
                .by(bob),
            INVALID,
            HARM,
        ),
    ];
    for path in ["/metrics", "/readyz", "/v1/tools", "/mcp"] {
        let request = Request::get(path).with("origin", "https://evil.example");
        let expected = match path {
            "/mcp" => Expected::Rpc(403, -32001),
            _ => FORBIDDEN,
        };
        cases.push(case(
            format!("a page asks for {path}"),
            request,
            expected,
            HARM,
        ));
    }
    cases
}

fn types(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let of = |kind: &str| Request::post(ADD, TEXT).by(bob).with("content-type", kind);
    let unsupported = || Expected::Code(415, "INVALID_ARGUMENT");
    let refused = |kind: &str| case(format!("a body of {kind:?}"), of(kind), unsupported(), HARM);
    let mut cases: Vec<Case> = [
        "text/html",
        "multipart/form-data; boundary=x",
        "application/xml",
        "text/json",
        "*/*",
        "",
    ]
    .map(refused)
    .into();
    let two = of("application/json").with("content-type", "text/plain");
    cases.push(case("two types", two, unsupported(), HARM));
    let packed = Request::post(ADD, [0x1f, 0x8b, 8, 0].to_vec())
        .by(bob)
        .with("content-encoding", "gzip");
    cases.push(case("a body that is packed", packed, unsupported(), HARM));
    let said = Request::post(ADD, TEXT)
        .by(bob)
        .with("content-encoding", "br, gzip");
    cases.push(case(
        "a body that says to be packed",
        said,
        unsupported(),
        HARM,
    ));
    let wide: Vec<u8> = TEXT.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = Request::post(ADD, wide)
        .by(bob)
        .with("content-type", "application/json; charset=utf-16le");
    cases.push(case("a body in UTF-16", wide, INVALID, HARM));
    let bom = Request::post(ADD, format!("\u{feff}{TEXT}")).by(bob);
    cases.push(case("a body with a BOM", bom, INVALID, HARM));
    let object: Value = json!([{"arguments": {"text": "forged"}}]);
    let list = Request::post(ADD, object.to_string()).by(bob);
    cases.push(case("a body that is a list", list, INVALID, HARM));
    cases
}
