//! Placement of arguments in a request.

use serde_json::json;

use crate::service::{Service, json as answer};
use crate::world::{World, told};

const PLACES: &str = r#"
    [[tool]]
    name = "svc.all"
    upstream = "svc"
    description = "Every place."
    request = { method = "POST", path = "/v1/{id}/x", query = { fixed = "1 2" }, headers = { X-Fixed = "f" } }
    [tool.input]
    type = "object"
    required = ["id"]
    [tool.input.properties]
    id = { type = "string" }
    q = { type = "string" }
    list = { type = "array", items = { type = "string" } }
    deep = { type = "object" }
    h = { type = "string" }
    c = { type = "string" }
    amount = { type = "number" }
    nested = { type = "object" }
    tenant = { type = "string" }
    user = { type = "string" }
    [tool.arguments]
    q = { in = "query", name = "query" }
    list = { in = "query", style = "pipeDelimited" }
    deep = { in = "query", style = "deepObject" }
    h = { in = "header", name = "X-H" }
    c = { in = "cookie" }
    tenant = { preset = "acme" }
    user = { from_call = "user_id", name = "on_behalf_of" }

    [[tool]]
    name = "svc.form"
    upstream = "svc"
    description = "A form."
    request = { method = "POST", path = "/form", body = "form" }
    input = { type = "object", properties = { a = { type = "string" }, m = { type = "object" }, l = { type = "array", items = { type = "integer" } } } }

    [[tool]]
    name = "svc.text"
    upstream = "svc"
    description = "A text."
    request = { method = "PUT", path = "/text", body = "text", content_type = "application/xml" }
    parameters = [{ name = "xml" }]
    arguments.xml.in = "whole_body"

    [[tool]]
    name = "svc.upload"
    upstream = "svc"
    description = "A file."
    request = { method = "POST", path = "/upload", body = "multipart" }
    input = { type = "object", properties = { file = { type = "string" }, note = { type = "string" }, meta = { type = "object" } } }
    arguments.file.file = { file_name = "a.bin", content_type = "image/png" }

    [[tool]]
    name = "svc.ours"
    upstream = "svc"
    description = "Written for us."
    parameters = [{ name = "quantity", kind = "integer" }]
"#;

/// B15: each argument goes to its place, numbers keep their spelling, and presets are added.
#[tokio::test]
async fn arguments_go_to_their_places() {
    let service = Service::start(|_, _| answer(200, r#"{"ok": true}"#)).await;
    let world = World::new(&service, "", PLACES);
    let arguments = r#"{"id": "a/b ü", "q": "x&y", "list": ["1", "2"], "deep": {"k": "v"}, "h": "head",
        "c": "cook ie", "amount": 1.10, "nested": {"n": [1, 2.50]}}"#;
    assert_eq!(world.data("svc.all", arguments).await, json!({"ok": true}));
    let seen = service.last();
    insta::assert_snapshot!(seen.line(), @r#"POST /base/v1/a%2Fb%20%C3%BC/x?fixed=1%202&query=x%26y&list=1%7C2&deep%5Bk%5D=v {"amount":1.10,"nested":{"n": [1, 2.50]},"tenant":"acme","on_behalf_of":"ann"}"#);
    let headers = ["x-fixed", "x-h", "cookie", "content-type", "accept"].map(|it| seen.header(it));
    insta::assert_snapshot!(headers.join(" | "), @r#"f | head | c=cook%20ie | application/json | application/json, */*;q=0.5"#);

    world
        .data(
            "svc.form",
            r#"{"a": "x y", "m": {"k": {"d": 1}}, "l": [1, 2]}"#,
        )
        .await;
    insta::assert_snapshot!(service.last().line(), @r#"POST /base/form a=x%20y&m%5Bk%5D%5Bd%5D=1&l=1&l=2"#);
    world.data("svc.text", r#"{"xml": "<a>1</a>"}"#).await;
    insta::assert_snapshot!(service.last().line(), @r#"PUT /base/text <a>1</a>"#);
    assert_eq!(service.last().header("content-type"), "application/xml");
    // A sloppy argument is bound before it is sent.
    world.data("svc.ours", "{quantity: '2'}").await;
    insta::assert_snapshot!(service.last().line(), @r#"POST /base/tools/svc.ours {"quantity":2}"#);

    world
        .data(
            "svc.upload",
            r#"{"file": "AAEC", "note": "n", "meta": {"a": 1.0}}"#,
        )
        .await;
    let seen = service.last();
    let kind = seen.header("content-type").to_owned();
    let boundary = kind.split_once("boundary=").unwrap().1;
    assert!(
        seen.body.windows(3).any(|it| it == [0, 1, 2]),
        "decoded from base64"
    );
    insta::assert_snapshot!(seen.text().replace(boundary, "B").replace(['\r', '\0', '\u{1}', '\u{2}'], ""), @r#"
    --B
    Content-Disposition: form-data; name="file"; filename="a.bin"
    Content-Type: image/png


    --B
    Content-Disposition: form-data; name="note"

    n
    --B
    Content-Disposition: form-data; name="meta"
    Content-Type: application/json

    {"a": 1.0}
    --B--
    "#);
}

/// B15: what cannot be sent is refused, and no request leaves.
#[tokio::test]
async fn nothing_is_sent_for_arguments_that_do_not_fit() {
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let world = World::new(&service, "", PLACES);
    let mut lines = Vec::new();
    for (tool, arguments) in [
        ("svc.all", r#"{"q": "no id"}"#),
        ("svc.all", r#"{"id": "x", "unknown": 1}"#),
        ("svc.all", r#"{"id": "x", "tenant": "other"}"#),
        ("svc.all", r#"{"id": "x", "on_behalf_of": "bob"}"#),
        ("svc.all", r#"{"id": ".."}"#),
        ("svc.all", r#"{"id": ""}"#),
        ("svc.all", r#"{"id": "x", "h": "a\r\nX-Evil: 1"}"#),
        ("svc.all", r#"{"id": "x", "h": "a "}"#),
        ("svc.upload", r#"{"file": "not base64!"}"#),
    ] {
        lines.push(told(&world.call(tool, arguments).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    INVALID_ARGUMENT: a required parameter is missing: expected a string [final  ]
    INVALID_ARGUMENT: unknown argument "unknown": allowed are amount, c, deep, h, id, list, nested, q [final  ]
    INVALID_ARGUMENT: unknown argument "tenant": allowed are amount, c, deep, h, id, list, nested, q [final  ]
    INVALID_ARGUMENT: unknown argument "on_behalf_of": allowed are amount, c, deep, h, id, list, nested, q [final  ]
    INVALID_ARGUMENT: the argument "id" is part of the path: it cannot be missing or empty, or have a segment "." or ".." [final  ]
    INVALID_ARGUMENT: the argument "id" is part of the path: it cannot be missing or empty, or have a segment "." or ".." [final  ]
    INVALID_ARGUMENT: the argument "h" is sent as a header and cannot have line breaks, control characters or spaces around it [final  ]
    INVALID_ARGUMENT: the argument "h" is sent as a header and cannot have line breaks, control characters or spaces around it [final  ]
    INVALID_ARGUMENT: the argument "file" is not base64 [final  ]
    "#);
    assert_eq!(service.seen().len(), 0);
}

/// B15: several files in one member, a text file, and a member as JSON; a name or a content cannot end a part.
#[tokio::test]
async fn files_are_parts_of_their_own() {
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let tool = r#"
        [[tool]]
        name = "svc.upload"
        upstream = "svc"
        description = "Files."
        request = { method = "POST", path = "/upload", body = "multipart" }
        input = { type = "object", properties = { files = { type = "array", items = { type = "string" } }, readme = { type = "string" }, tags = { type = "array", items = { type = "string" } }, note = { type = "string" } } }
        arguments.files = { file = { file_name = "a \"b\".bin" }, name = "files[]" }
        arguments.readme.file = { encoding = "text", file_name = "readme.md", content_type = "text/markdown" }
        arguments.tags.as_json = true
    "#;
    let world = World::new(&service, "", tool);
    let arguments = r##"{"files": ["AAE=", "Ag"], "readme": "# hi", "tags": ["x", "y"], "note": "--B\r\nContent-Disposition: form-data"}"##;
    world.data("svc.upload", arguments).await;
    let seen = service.last();
    let kind = seen.header("content-type").to_owned();
    let boundary = kind.split_once("boundary=").unwrap().1;
    assert_eq!(
        seen.text().matches(&format!("--{boundary}")).count(),
        6,
        "five parts and the end"
    );
    let text = seen.text().replace(boundary, "BOUNDARY").replace('\r', "");
    let text = text
        .replace('\0', "<0>")
        .replace('\u{1}', "<1>")
        .replace('\u{2}', "<2>");
    insta::assert_snapshot!(text, @r##"
    --BOUNDARY
    Content-Disposition: form-data; name="files[]"; filename="a %22b%22.bin"
    Content-Type: application/octet-stream

    <0><1>
    --BOUNDARY
    Content-Disposition: form-data; name="files[]"; filename="a %22b%22.bin"
    Content-Type: application/octet-stream

    <2>
    --BOUNDARY
    Content-Disposition: form-data; name="readme"; filename="readme.md"
    Content-Type: text/markdown

    # hi
    --BOUNDARY
    Content-Disposition: form-data; name="tags"
    Content-Type: application/json

    ["x", "y"]
    --BOUNDARY
    Content-Disposition: form-data; name="note"

    --B
    Content-Disposition: form-data
    --BOUNDARY--
    "##);
}
