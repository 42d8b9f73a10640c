//! Hostile documents: whatever a document says, its import ends soon, takes little memory, and makes no request that goes elsewhere.

use countersign::{Principal, ToolCall};
use countersign_testkit::patience::Watchdog;
use countersign_upstream::manifest::Auths;
use countersign_upstream::openapi::{Import, Options, import, write};
use serde_json::{Map, Value, json};

use crate::service::{Service, json as answer};
use crate::trip::executor_of;

/// A document with these operations.
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers write the values out"
)]
fn document(paths: Value, rest: Value) -> Value {
    let mut document = json!({
        "openapi": "3.1.0", "info": { "title": "Hostile" }, "servers": [{ "url": "https://hostile.example/base" }],
        "paths": paths,
    });
    if let (Value::Object(document), Value::Object(rest)) = (&mut document, rest) {
        document.extend(rest);
    }
    document
}

fn imported(document: &Value) -> Import {
    let import = import(&document.to_string(), &Options::default()).unwrap();
    assert_eq!(import.manifest.check(), []);
    // What is written is read back, whatever names and texts the document has.
    let written = write::toml(&import, &[]);
    assert_eq!(write::read(&written).unwrap(), import.manifest);
    import
}

/// An operation with a body of this schema.
fn body(media: &str, schema: &Value) -> Value {
    json!({ "post": { "requestBody": { "required": true, "content": { media: { "schema": schema } } } } })
}

fn reasons(import: &Import) -> Vec<&'static str> {
    let refused = import.report.refused.iter();
    refused.map(|it| it.reason.kind()).collect()
}

/// B15: references that lead to themselves, to each other and to everything end, in a JSON body and in a form.
#[test]
fn references_without_end_are_followed_to_an_end() {
    let _watchdog = Watchdog::start();
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let mut schemas = Map::new();
    schemas.insert("Self".to_owned(), to("Self"));
    schemas.insert("Fan".to_owned(), json!({ "oneOf": vec![to("Fan"); 30] }));
    schemas.insert(
        "Both".to_owned(),
        json!({ "allOf": [to("Both"), to("Fan")], "anyOf": [to("Both")] }),
    );
    schemas.insert(
        "Tree".to_owned(),
        json!({ "type": "object", "properties": { "left": to("Tree"), "right": to("Tree") } }),
    );
    // Each of these names the next one twice.
    for at in 0..80 {
        let next = to(&format!("D{}", at + 1));
        let members = json!({ "type": "object", "properties": { "a": next, "b": next } });
        schemas.insert(format!("D{at}"), members);
        let wide: Vec<Value> = (0..30).map(|_| to(&format!("W{}", at + 1))).collect();
        schemas.insert(format!("W{at}"), json!({ "anyOf": wide }));
    }
    for last in ["D80", "W80"] {
        schemas.insert(last.to_owned(), json!({ "type": "string" }));
    }
    let mut paths = Map::new();
    for name in ["Self", "Fan", "Both", "Tree", "D0", "W0"] {
        for (media, path) in [
            ("application/json", "json"),
            ("multipart/form-data", "parts"),
            ("application/x-www-form-urlencoded", "form"),
        ] {
            paths.insert(format!("/{path}/{name}"), body(media, &to(name)));
        }
    }
    paths.insert("/lost".to_owned(), json!({ "$ref": "#/paths/~1lost" }));
    let rest = json!({ "components": { "schemas": schemas } });
    let import = imported(&document(paths.into(), rest));
    for entry in &import.manifest.tool {
        let bytes = Value::Object(entry.input.clone().unwrap())
            .to_string()
            .len();
        assert!(bytes < 100_000, "{} has {bytes} bytes", entry.name);
    }
    assert!(reasons(&import).contains(&"reference to itself"));
}

/// B15: lists that are long where none is expected cost no more than their length.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of lists")]
fn long_lists_are_bounded() {
    let _watchdog = Watchdog::start();
    let many = |count: usize, make: &dyn Fn(usize) -> Value| -> Vec<Value> {
        (0..count).map(make).collect()
    };
    let choices = many(200_000, &|at| json!(format!("choice {at}")));
    let names = many(100_000, &|at| json!(format!("name {at}")));
    let servers = many(
        20_000,
        &|at| json!({ "url": format!("https://s{at}.example") }),
    );
    let parameter = |at: usize| json!({ "name": format!("{}", "名".repeat(1 + at % 9)), "in": "query", "x": at });
    let distinct = many(
        50_000,
        &|at| json!({ "name": format!("名 {at}"), "in": "query" }),
    );
    let security = many(100_000, &|at| json!({ format!("scheme {at}"): [] }));
    let braces: Vec<String> = (0..100_000).map(|at| format!("{{p{at}}}")).collect();
    let braces = braces.concat();
    let mut own = Map::new();
    for at in 0..200 {
        own.insert(
            format!("/own/{at}"),
            json!({ "get": { "servers": [{ "url": format!("https://own{at}.example") }] } }),
        );
    }
    own.insert(
        "/choices".to_owned(),
        json!({ "get": { "parameters": [
        { "name": "one", "in": "query", "schema": { "type": "string", "enum": choices } },
    ], "security": security } }),
    );
    own.insert(
        "/same".to_owned(),
        json!({ "get": { "parameters": many(100_000, &parameter) } }),
    );
    own.insert(
        "/parameters".to_owned(),
        json!({ "get": { "parameters": distinct } }),
    );
    own.insert("/required".to_owned(), body("application/json", &json!({
        "type": "object", "required": names,
        "properties": names.iter().map(|it| (it.as_str().unwrap().to_owned(), json!({ "readOnly": true }))).collect::<Map<_, _>>(),
    })));
    own.insert(format!("/{braces}"), json!({ "get": {} }));
    let import = imported(&document(own.into(), json!({ "servers": servers })));
    let of = |operation: &str| {
        let tool = import
            .report
            .tools
            .iter()
            .position(|it| it.operation == operation);
        tool.map(|at| (&import.manifest.tool[at], &import.report.tools[at].notes))
    };
    let (entry, notes) = of("GET /choices").unwrap();
    let one = &entry.input.as_ref().unwrap()["properties"]["one"];
    assert_eq!(*one, json!({ "type": "string" }));
    assert_eq!(
        *notes,
        ["/properties/one/enum is not checked: there are too many choices"]
    );
    assert!(of("GET /same").is_some());
    for (operation, reason) in [
        ("GET /parameters", "too large"),
        ("POST /required", "too large"),
        ("GET /own/199", "too many servers"),
    ] {
        let refused = import.report.refused.iter();
        let mut refused = refused.filter(|it| it.operation == operation);
        assert_eq!(
            refused.next().map(|it| it.reason.kind()),
            Some(reason),
            "{operation}"
        );
    }
    assert!(import.manifest.upstream.len() <= 50);
    let told: usize = import.report.notes.iter().map(String::len).sum();
    assert!(told < 20_000, "{told} bytes of notes");
}

/// B15: variables of a server that name each other do not grow, and an address that leads elsewhere is not used.
#[test]
fn variables_of_servers_do_not_grow() {
    let _watchdog = Watchdog::start();
    let mut variables = Map::new();
    for at in 0..60 {
        let next = format!("{{v{}}}", at + 1);
        variables.insert(
            format!("v{at}"),
            json!({ "default": format!("{next}{next}") }),
        );
    }
    variables.insert("v60".to_owned(), json!({ "default": "x".repeat(1_000) }));
    for (url, variables) in [
        ("https://{v0}.example", Value::Object(variables)),
        (
            "https://{host}",
            json!({ "host": { "default": "user:secret@evil.example" } }),
        ),
        (
            "{scheme}://evil.example",
            json!({ "scheme": { "default": "file" } }),
        ),
        (
            "https://{host}",
            json!({ "host": { "enum": ["169.254.169.254"] } }),
        ),
        ("https://{unknown}.example", json!({})),
        ("https://[::1]/", json!({})),
    ] {
        let rest = json!({ "servers": [{ "url": url, "variables": variables }] });
        let import = imported(&document(json!({ "/a": { "get": {} } }), rest));
        let base = &import.manifest.upstream[0].base_url;
        assert_eq!(base, "https://set-base-url.invalid", "{url}");
        let told = import.report.notes.join("\n");
        assert!(told.len() < 10_000, "{url}: {} bytes of notes", told.len());
    }
}

/// B15: of several members of one name the last counts, as in every reader of JSON, and operations of one id are told apart.
#[test]
fn members_of_one_name_are_one() {
    let text = r#"{
        "openapi": "3.0.3", "info": {"title": "Twice"}, "servers": [{"url": "https://twice.example"}],
        "paths": {
            "/a": {"get": {"operationId": "first"}, "get": {"operationId": "second"}},
            "/a": {"get": {"operationId": "third"}, "get": {"operationId": "last"}},
            "/b": {"get": {"operationId": "last"}, "post": {"operationId": "LAST"}}
        }
    }"#;
    let import = import(text, &Options::default()).unwrap();
    assert_eq!(import.report.operations, 3);
    let names: Vec<&str> = import
        .manifest
        .tool
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names[0], "twice.last");
    assert_eq!(names.len(), 3);
    assert_ne!(names[1], names[2]);
}

/// B15: a path that would lead out of the address of the upstream, or into a header, is refused.
#[test]
fn paths_that_lead_elsewhere_are_refused() {
    for path in [
        "/../admin",
        "/a/../../admin",
        "/a/%2e%2E/admin",
        "/a/.%2e/admin",
        "/./a",
        "/a\\..\\admin",
        "/a\r\nX-Evil: 1",
        "/a\t",
        "/{a",
        "/a}",
        "/{}",
    ] {
        let import = imported(&document(json!({ path: { "get": {} } }), json!({})));
        assert!(import.manifest.tool.is_empty(), "{path:?}");
        assert_eq!(import.report.refused.len(), 1, "{path:?}");
    }
    let import = imported(&document(
        json!({ "/a%2fb/..c/{d}": { "get": {} } }),
        json!({}),
    ));
    assert_eq!(import.manifest.tool.len(), 1);
}

/// B15, B17: names that belong to the request itself, to the connection or to the operator are no arguments, and no name or value of a document
/// or a caller adds a header, a cookie or a part to a request.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of names and values")]
async fn no_name_or_value_breaks_out_of_its_place() {
    let parameter = |place: &str, name: &str| json!({ "name": name, "in": place, "schema": { "type": "string" } });
    let headers = [
        "Host",
        "content-length",
        "Authorization",
        "Transfer-Encoding",
        "Connection",
        "TE",
        "Upgrade",
        "Proxy-Authorization",
        "Idempotency-Key",
        "Countersign-Identity",
        "X-Evil: 1\r\nX-More",
        "X Space",
        "X-Good",
        "",
    ];
    let cookies = ["plain", "a;b", "a=b", "a\r\nb", "sid"];
    let query = ["q", "a&b=c", "a\r\nb", "key"];
    let mut parameters: Vec<Value> = Vec::new();
    parameters.extend(headers.iter().map(|it| parameter("header", it)));
    parameters.extend(cookies.iter().map(|it| parameter("cookie", it)));
    parameters.extend(query.iter().map(|it| parameter("query", it)));
    let form = json!({ "type": "object", "properties": {
        "a\"; filename=\"x": { "type": "string" }, "b\r\nX-Evil: 1": { "type": "string" }, "c": { "type": "string", "format": "binary" },
    } });
    let content = json!({ "multipart/form-data": { "schema": form, "encoding": { "c": { "contentType": "text/plain\r\nX-Evil: 1" } } } });
    let operation = json!({ "parameters": parameters, "requestBody": { "required": true, "content": content } });
    let rest = json!({
        "security": [{ "key": [] }],
        "components": { "securitySchemes": { "key": { "type": "apiKey", "in": "cookie", "name": "sid" } } },
    });
    let mut import = imported(&document(json!({ "/set": { "post": operation } }), rest));
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let upstream = &mut import.manifest.upstream[0];
    upstream.base_url = format!("{}/base", service.url);
    upstream.allow_private = vec!["loopback".to_owned()];
    upstream.auth = Auths::default();
    let executor = executor_of(&import.manifest);
    let entry = &import.manifest.tool[0];
    let properties = entry.input.as_ref().unwrap()["properties"]
        .as_object()
        .unwrap();
    let evil = "x; y=1&z=2";
    let arguments: Map<String, Value> = properties
        .iter()
        .map(|(name, schema)| {
            let is_file = schema.get("contentEncoding").is_some();
            let value = if is_file { "YWJj" } else { evil };
            (name.clone(), value.into())
        })
        .collect();
    let call = ToolCall::new(
        &*entry.name,
        Value::Object(arguments).to_string(),
        Principal::user("ann"),
    );
    let reply = executor.execute(call).await;
    assert!(reply.ok, "{reply:?}");
    let seen = service.last();
    assert_eq!(seen.header("x-good"), evil);
    let sent = service.url.trim_start_matches("http://");
    assert_eq!(seen.header("host"), sent);
    for name in [
        "x-evil",
        "x-more",
        "authorization",
        "te",
        "upgrade",
        "proxy-authorization",
        "countersign-identity",
    ] {
        assert_eq!(seen.header(name), "", "{name}");
    }
    let cookies: Vec<&str> = seen.header("cookie").split("; ").collect();
    let mut names: Vec<&str> = cookies
        .iter()
        .filter_map(|it| it.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["a%0D%0Ab", "a%3Bb", "a%3Db", "plain"],
        "{cookies:?}"
    );
    assert!(seen.target.starts_with("/base/set?"), "{}", seen.target);
    assert_eq!(
        seen.target.matches('&').count(),
        query.len() - 1,
        "{}",
        seen.target
    );
    let text = seen.text();
    assert!(!text.contains("\nX-Evil"), "{text}");
    assert_eq!(text.matches("Content-Disposition").count(), 3, "{text}");
    assert_eq!(text.matches("filename=").count(), 2, "{text}");
}

/// B15: schemes of security in odd places and of odd shapes make no credential that was not asked for, and stop nothing.
#[test]
fn odd_security_is_no_credential() {
    for (security, schemes) in [
        (
            json!("key"),
            json!({ "key": { "type": "http", "scheme": "bearer" } }),
        ),
        (
            json!([{ "missing": [] }]),
            json!({ "key": { "type": "http", "scheme": "bearer" } }),
        ),
        (json!([{ "key": [] }]), json!(["bearer"])),
        (
            json!([{ "key": [] }]),
            json!({ "key": { "$ref": "#/components/securitySchemes/key" } }),
        ),
        (
            json!([{ "key": [] }]),
            json!({ "key": { "type": "apiKey", "in": "header", "name": "Host" } }),
        ),
        (
            json!([{ "key": [] }]),
            json!({ "key": { "type": "apiKey", "in": "header", "name": "X\r\nY" } }),
        ),
        (
            json!([{ "key": [] }]),
            json!({ "key": { "type": "apiKey", "in": "cookie", "name": "a;b" } }),
        ),
        (
            json!([{ "key": [] }]),
            json!({ "key": { "type": "apiKey", "in": "query", "name": "" } }),
        ),
        (json!([{ "key": [] }]), json!({ "key": null })),
        (json!([[["key"]]]), json!({ "key": 1 })),
    ] {
        let rest = json!({ "security": security, "components": { "securitySchemes": schemes } });
        let import = imported(&document(json!({ "/a": { "get": {} } }), rest.clone()));
        assert_eq!(import.manifest.tool.len(), 1);
        let auth = &import.manifest.upstream[0].auth;
        let is_usual = rest["security"] == "key";
        assert_eq!(!auth.is_empty(), is_usual, "{rest}: {auth:?}");
    }
}
