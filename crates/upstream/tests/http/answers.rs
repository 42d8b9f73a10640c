//! Answers that are broken on the wire: cut, mislabelled, endless.

use std::time::{Duration, Instant};

use crate::service::{Act, Service, json as answer};
use crate::world::{World, told};

const TOOLS: &str = r#"
    [[tool]]
    name = "svc.get"
    upstream = "svc"
    description = "Reads."
    request = { method = "GET", path = "/get/{id}" }
    parameters = [{ name = "id" }]
    [[tool]]
    name = "svc.order"
    upstream = "svc"
    description = "Orders."
    request = { method = "POST", path = "/order/{id}" }
    parameters = [{ name = "id" }]
"#;

const UPSTREAM: &str = "timeouts.attempt_ms = 1000\nretries.attempts_max = 1\nbreaker.failures = 0";

fn raw(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{head}\r\n");
    [head.as_bytes(), body].concat()
}

/// A service that breaks its answers in the way that the last step of the path names.
async fn broken() -> Service {
    Service::start(|seen, _| match seen.target.rsplit('/').next().unwrap() {
        "half-chunk" => Act::Cut(raw("transfer-encoding: chunked\r\n", b"ff\r\n{\"a\": 1")),
        "no-last-chunk" => Act::Cut(raw("transfer-encoding: chunked\r\n", b"2\r\n{}\r\n")),
        "bad-chunk" => Act::Cut(raw("transfer-encoding: chunked\r\n", b"zz\r\n{}\r\n")),
        "short" => Act::Cut(raw("content-length: 100\r\n", b"{\"a\": 1}")),
        "long" => Act::Cut(raw("content-length: 2\r\n", b"{}{\"a\": 1}")),
        "two-lengths" => Act::Cut(raw("content-length: 2\r\ncontent-length: 9\r\n", b"{}")),
        "no-length" => Act::Cut(raw("connection: close\r\n", b"{\"a\": 1}")),
        "many-headers" => Act::Raw(raw(&"x-a: b\r\n".repeat(50_000), b"")),
        "long-header" => {
            let long = format!("x-a: {}\r\n", "b".repeat(4 << 20));
            Act::Raw(raw(&long, b""))
        }
        "endless-header" => Act::Raw(b"HTTP/1.1 200 OK\r\nx-a: b\r\nx-b: ".to_vec()),
        "informational" => Act::Raw(b"HTTP/1.1 102 Processing\r\n\r\n".repeat(100_000)),
        "switching" => Act::Cut(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n{}"
                .to_vec(),
        ),
        "garbage" => Act::Cut(b"\x00\x01\x02 hello\r\n\r\n".to_vec()),
        "brotli" => {
            let headers = vec![
                ("content-type", "application/json".to_owned()),
                ("content-encoding", "br".to_owned()),
            ];
            Act::Answer(200, headers, b"\x0b\x02\x80{\"a\":1}\x03".to_vec())
        }
        "bad-gzip" => {
            let headers = vec![("content-encoding", "gzip".to_owned())];
            Act::Answer(200, headers, b"\x1f\x8bnot gzip".to_vec())
        }
        "early" => Act::Raw(
            [
                &b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"[..],
                &raw("content-length: 2\r\n", b"{}"),
            ]
            .concat(),
        ),
        _ => answer(200, "{}"),
    })
    .await
}

/// B17, T8: if an answer is broken on the wire, a read gets an error, in the time of one attempt, and the next call works.
#[tokio::test]
async fn broken_answers_are_errors_in_time() {
    let service = broken().await;
    let world = World::new(&service, UPSTREAM, TOOLS);
    let mut lines = Vec::new();
    let begun = Instant::now();
    let kinds = [
        "half-chunk",
        "no-last-chunk",
        "bad-chunk",
        "short",
        "long",
        "two-lengths",
        "no-length",
        "many-headers",
        "long-header",
        "endless-header",
        "informational",
        "switching",
        "garbage",
        "brotli",
        "bad-gzip",
        "early",
    ];
    for kind in kinds {
        let reply = world
            .call("svc.get", &format!(r#"{{"id": "{kind}"}}"#))
            .await;
        lines.push(format!("{kind}: {}", told(&reply)));
        assert!(
            world.call("svc.get", r#"{"id": "fine"}"#).await.ok,
            "after {kind}"
        );
    }
    assert!(
        begun.elapsed() < Duration::from_mins(1),
        "{:?}",
        begun.elapsed()
    );
    insta::assert_snapshot!(lines.join("\n"), @r#"
    half-chunk: UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]
    no-last-chunk: UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]
    bad-chunk: UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]
    short: UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]
    long: ok {} 
    two-lengths: UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]
    no-length: ok {"a":1} 
    many-headers: UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]
    long-header: UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]
    endless-header: TIMEOUT: the upstream svc did not answer in time [retryable  ]
    informational: TIMEOUT: the upstream svc did not answer in time [retryable  ]
    switching: UPSTREAM_ERROR: the upstream svc answered with status 101 [retryable  101]
    garbage: UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]
    brotli: UPSTREAM_ERROR: the answer of the upstream svc is not valid JSON [final  ]
    bad-gzip: UPSTREAM_ERROR: the answer of the upstream svc cannot be decompressed [final  ]
    early: ok {}
    "#);
}

/// T8: the same of a call that changes something: it is in doubt, unless the answer is there and only cannot be read.
#[tokio::test]
async fn broken_answers_leave_a_write_in_doubt() {
    let service = broken().await;
    let world = World::new(&service, UPSTREAM, TOOLS);
    let mut lines = Vec::new();
    for kind in [
        "half-chunk",
        "short",
        "long",
        "two-lengths",
        "long-header",
        "informational",
        "garbage",
        "bad-gzip",
        "brotli",
    ] {
        let arguments = format!(r#"{{"id": "{kind}"}}"#);
        world.keyed("svc.order", &arguments, kind).await;
        let again = world.keyed("svc.order", &arguments, kind).await;
        lines.push(format!("{kind}: {}", told(&again)));
    }
    let sent = service.seen().len();
    insta::assert_snapshot!(format!("{}\n{sent} requests", lines.join("\n")), @r#"
    half-chunk: CONFLICT: it is not known whether the first call with this idempotency_key had its effect [final in_doubt ]
    short: CONFLICT: it is not known whether the first call with this idempotency_key had its effect [final in_doubt ]
    long: ok {} 
    two-lengths: CONFLICT: it is not known whether the first call with this idempotency_key had its effect [final in_doubt ]
    long-header: CONFLICT: it is not known whether the first call with this idempotency_key had its effect [final in_doubt ]
    informational: CONFLICT: it is not known whether the first call with this idempotency_key had its effect [final in_doubt ]
    garbage: CONFLICT: it is not known whether the first call with this idempotency_key had its effect [final in_doubt ]
    bad-gzip: ok null ANSWER_UNREADABLE
    brotli: ok null ANSWER_UNREADABLE
    9 requests
    "#);
}

/// B17: a service that sends informational answers for ever is left after one attempt's time.
#[tokio::test]
async fn endless_informational_answers_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let flood = b"HTTP/1.1 102 Processing\r\n\r\n".repeat(100);
                while stream.write_all(&flood).await.is_ok() {}
            });
        }
    });
    let text = format!(
        "[[upstream]]\nname = 'svc'\nbase_url = '{url}'\nallow_private = ['loopback']\n{UPSTREAM}\n{TOOLS}"
    );
    let world = World::of(&toml::from_str(&text).unwrap());
    let begun = Instant::now();
    let reply = world.call("svc.get", r#"{"id": "x"}"#).await;
    assert!(!reply.ok, "{reply:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

/// A8: no digit of an answer is lost without a word: an integer that no number holds becomes a string, and a rounded decimal is reported.
#[tokio::test]
async fn digits_of_an_answer_are_kept() {
    let service = Service::start(|seen, _| match seen.target.rsplit('/').next().unwrap() {
        "integer" => answer(
            200,
            r#"{"id": 12345678901234567890123, "n": 18446744073709551615}"#,
        ),
        "decimal" => answer(200, r#"{"price": 12345678901234567.89}"#),
        _ => answer(200, r#"{"price": 0.1, "at": 20261117000000}"#),
    })
    .await;
    let world = World::new(&service, UPSTREAM, TOOLS);
    let mut lines = Vec::new();
    for kind in ["integer", "decimal", "plain"] {
        let arguments = format!(r#"{{"id": "{kind}"}}"#);
        lines.push(told(&world.call("svc.get", &arguments).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ok {"id":"12345678901234567890123","n":18446744073709551615} INTEGER_AS_TEXT
    ok {"price":1.2345678901234568e+16} NUMBER_ROUNDED
    ok {"at":20261117000000,"price":0.1} 
    "#);
}

/// B17: an answer that cannot be checked against its declared schema gets a warning, and is refused wherever a mismatch is.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of answers")]
async fn an_answer_that_is_not_checked_is_told() {
    let service = Service::start(|seen, _| match seen.target.rsplit('/').next().unwrap() {
        "large" => answer(
            200,
            &format!(r#"{{"id": 1, "more": "{}"}}"#, "x".repeat(600 << 10)),
        ),
        // Larger than arguments may be, and smaller than what is checked.
        "middle" => answer(
            200,
            &format!(r#"{{"id": 1, "more": "{}"}}"#, "x".repeat(400 << 10)),
        ),
        "wrong" => answer(200, r#"{"id": "seven"}"#),
        _ => answer(200, r#"{"id": 1}"#),
    })
    .await;
    let checkable = r##"{ "$ref" = "#/$defs/Thing", "$defs" = { Thing = { type = "object", properties = { id = { type = "integer" } } } } }"##;
    let uncheckable = r#"{ type = "object", properties = { id = { unevaluatedItems = false } } }"#;
    let mut tools = String::new();
    for (schema, output) in [("checkable", checkable), ("uncheckable", uncheckable)] {
        for (rule, method) in [("warn", "GET"), ("refuse", "GET"), ("refuse", "POST")] {
            let name = format!("svc.{schema}_{rule}_{}", method.to_lowercase());
            tools.push_str(&format!(
                r#"
                [[tool]]
                name = "{name}"
                upstream = "svc"
                description = "x"
                request = {{ method = "{method}", path = "/{{id}}" }}
                parameters = [{{ name = "id" }}]
                response = {{ on_mismatch = "{rule}", select_by_model = true }}
                output = {output}
                "#
            ));
        }
    }
    let world = World::new(&service, "", &tools);
    let mut lines = Vec::new();
    for schema in ["checkable", "uncheckable"] {
        for tool in ["warn_get", "refuse_get", "refuse_post"] {
            for (id, select) in [
                ("fine", ""),
                ("middle", r#", "select": ".id""#),
                ("large", r#", "select": ".id""#),
                ("wrong", r#", "select": ".id""#),
            ] {
                let arguments = format!(r#"{{"id": "{id}"{select}}}"#);
                let reply = world
                    .call(&format!("svc.{schema}_{tool}"), &arguments)
                    .await;
                lines.push(format!("{schema} {tool} {id}: {}", told(&reply)));
            }
        }
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    checkable warn_get fine: ok {"id":1} 
    checkable warn_get middle: ok 1 
    checkable warn_get large: ok 1 ANSWER_NOT_CHECKED
    checkable warn_get wrong: ok "seven" ANSWER_NOT_AS_DECLARED
    checkable refuse_get fine: ok {"id":1} 
    checkable refuse_get middle: ok 1 
    checkable refuse_get large: UPSTREAM_ERROR: the answer of the upstream svc was not checked against its declared schema: it has more than 524288 bytes [final  ]
    checkable refuse_get wrong: UPSTREAM_ERROR: the answer of the upstream svc is not as declared: TYPE_MISMATCH at "/id" [final  ]
    checkable refuse_post fine: ok {"id":1} 
    checkable refuse_post middle: ok 1 
    checkable refuse_post large: ok 1 ANSWER_NOT_CHECKED
    checkable refuse_post wrong: ok "seven" ANSWER_NOT_AS_DECLARED
    uncheckable warn_get fine: ok {"id":1} ANSWER_NOT_CHECKED
    uncheckable warn_get middle: ok 1 ANSWER_NOT_CHECKED
    uncheckable warn_get large: ok 1 ANSWER_NOT_CHECKED
    uncheckable warn_get wrong: ok "seven" ANSWER_NOT_CHECKED
    uncheckable refuse_get fine: UPSTREAM_ERROR: the answer of the upstream svc was not checked against its declared schema: the schema cannot be used at "/properties/id": unevaluatedItems is not supported; write the schema without it [final  ]
    uncheckable refuse_get middle: UPSTREAM_ERROR: the answer of the upstream svc was not checked against its declared schema: the schema cannot be used at "/properties/id": unevaluatedItems is not supported; write the schema without it [final  ]
    uncheckable refuse_get large: UPSTREAM_ERROR: the answer of the upstream svc was not checked against its declared schema: the schema cannot be used at "/properties/id": unevaluatedItems is not supported; write the schema without it [final  ]
    uncheckable refuse_get wrong: UPSTREAM_ERROR: the answer of the upstream svc was not checked against its declared schema: the schema cannot be used at "/properties/id": unevaluatedItems is not supported; write the schema without it [final  ]
    uncheckable refuse_post fine: ok {"id":1} ANSWER_NOT_CHECKED
    uncheckable refuse_post middle: ok 1 ANSWER_NOT_CHECKED
    uncheckable refuse_post large: ok 1 ANSWER_NOT_CHECKED
    uncheckable refuse_post wrong: ok "seven" ANSWER_NOT_CHECKED
    "#);
}

/// B17: the joined pages of an answer are checked like any other.
#[tokio::test]
async fn pages_are_checked() {
    let service = Service::start(|seen, _| {
        let is_last = seen.target.ends_with("p=2");
        let items = if is_last { "[]" } else { r#"["one"]"# };
        answer(200, &format!(r#"{{"items": {items}}}"#))
    })
    .await;
    let list = |name: &str, rule: &str| {
        format!(
            r#"
            [[tool]]
            name = "{name}"
            upstream = "svc"
            description = "x"
            request = {{ method = "GET", path = "/list" }}
            pagination = {{ by.page = {{ parameter = "p" }}, items = "/items" }}
            response = {{ data = "/items", on_mismatch = "{rule}" }}
            output = {{ type = "array", items = {{ type = "integer" }} }}
            "#
        )
    };
    let tools = format!(
        "{}{}",
        list("svc.warn", "warn"),
        list("svc.refuse", "refuse")
    );
    let world = World::new(&service, "", &tools);
    let warned = told(&world.call("svc.warn", "{}").await);
    let refused = told(&world.call("svc.refuse", "{}").await);
    insta::assert_snapshot!(format!("{warned}\n{refused}"), @r#"
    ok ["one"] ANSWER_NOT_AS_DECLARED
    UPSTREAM_ERROR: the answer of the upstream svc is not as declared: TYPE_MISMATCH at "/0" [final  ]
    "#);
}

/// B15: members of the data from headers of the answer, for a service that answers 201 with an address and no body.
#[tokio::test]
async fn headers_become_members() {
    let service = Service::start(|seen, _| {
        let text = seen.text();
        let mut headers = vec![
            ("location", "/things/7?token=secret-token".to_owned()),
            ("etag", "\"e1\"".to_owned()),
        ];
        if text.contains("json") {
            headers.push(("content-type", "application/json".to_owned()));
        }
        let body: &[u8] = match &*text {
            text if text.contains("json object") => b"{\"name\": \"a\", \"id\": 1}",
            text if text.contains("json list") => b"[1]",
            _ => b"",
        };
        Act::Answer(201, headers, body.to_vec())
    })
    .await;
    let tool = |more: &str| {
        format!(
            "[[tool]]\nname = 'svc.make'\nupstream = 'svc'\ndescription = 'Makes.'\nrequest = {{ method = 'POST', path = '/things' }}\n\
             parameters = [{{ name = 'kind', required = false }}]\nresponse.headers = {{ id = 'Location', version = 'ETag', no = 'X-None' }}\n{more}"
        )
    };
    let mut lines = Vec::new();
    for (more, arguments) in [
        ("", "{}"),
        ("", r#"{"kind": "json object"}"#),
        ("", r#"{"kind": "json list"}"#),
        (
            "response.select = '.id | split(\"/\") | last | split(\"?\") | first'",
            "{}",
        ),
    ] {
        let world = World::new(&service, "", &tool(more));
        lines.push(told(&world.call("svc.make", arguments).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ok {"id":"/things/7?token=secret-token","version":"\"e1\""} 
    ok {"id":"/things/7?token=secret-token","name":"a","version":"\"e1\""} 
    ok {"body":[1],"id":"/things/7?token=secret-token","version":"\"e1\""} 
    ok "7" 
    "#);
}

/// B15: a filter over a large answer, of the configuration and of the model.
#[tokio::test]
async fn a_large_answer_is_filtered() {
    let service = Service::start(|_, _| {
        let items: Vec<_> = (0..20_000).map(|n| format!("{{\"id\": {n}}}")).collect();
        answer(200, &format!("[{}]", items.join(",")))
    })
    .await;
    let tool = "[[tool]]\nname = 'svc.list'\nupstream = 'svc'\ndescription = 'Lists.'\nrequest = { method = 'GET', path = '/list' }\nresponse = { select = 'map(.id)', select_by_model = true }";
    let world = World::new(&service, "", tool);
    let reply = world.call("svc.list", r#"{"select": "length"}"#).await;
    assert_eq!(told(&reply), "ok 20000 ");
}
