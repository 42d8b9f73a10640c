//! Calls over HTTP: bare and with an envelope, first and repeated, and the answers to mistakes.

use countersign::contract::{Behaviour, Effect};
use countersign::{CallContext, Catalog, Tool, ToolArgs, ToolError};
use countersign_gateway::Settings;
use insta::assert_snapshot;
use serde::Deserialize;

use crate::http_client::{get, post, send};
use crate::world::World;

/// A1, A2: a bare call works; missing members are filled in.
#[tokio::test]
async fn a_bare_call_is_answered() {
    let world = World::start().await;
    let answer = post(
        &world,
        "/v1/tools/memory.search",
        r#"{"arguments": {"query": "milk"}}"#,
    )
    .await;
    assert_snapshot!(answer.shown(), @r#"
    200
    content-type: application/json
    x-request-id: r_1
    {
      "data": [
        {
          "score": 1.0,
          "text": "buy milk"
        }
      ],
      "evidence": {
        "snapshot_id": "…",
        "sources": [
          {
            "hash": "…",
            "name": "memory.search",
            "ts": "…",
            "type": "tool"
          }
        ]
      },
      "ok": true,
      "request_id": "r_1",
      "warnings": []
    }
    "#);
    let nothing = send(&world, "POST", "/v1/tools/notes.list", &[], "").await;
    assert_eq!(nothing.status, 200, "{nothing:?}");
    let request_id = nothing.json()["request_id"].clone();
    assert_eq!(nothing.header("x-request-id"), request_id.as_str());
}

/// A1: an application that the standard does not list is accepted, and the reply says so.
#[tokio::test]
async fn an_application_that_is_not_listed_is_reported() {
    let world = World::start().await;
    let warned = async |app: &str| {
        let body = serde_json::json!({"client": {"app": app}}).to_string();
        let answer = send(&world, "POST", "/v1/tools/notes.list", &[], &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let warnings = answer.json()["warnings"].as_array().unwrap().clone();
        let codes = warnings.iter().map(|warning| warning["code"].to_string());
        codes.collect::<Vec<_>>().join(" ")
    };
    for (app, expected) in [
        ("web", ""),
        ("ios", ""),
        ("android", ""),
        ("watchos", r#""UNKNOWN_CLIENT_APP""#),
        ("WEB", r#""UNKNOWN_CLIENT_APP""#),
    ] {
        assert_eq!(warned(app).await, expected, "{app}");
    }
    let empty = post(&world, "/v1/tools/notes.list", r#"{"client": {"app": ""}}"#).await;
    assert_eq!(empty.code(), "INVALID_ARGUMENT", "{empty:?}");
}

/// B6: a model's text is bound, as a string or as the whole body.
#[tokio::test]
async fn sloppy_text_is_bound() {
    let world = World::start().await;
    let path = "/v1/tools/memory.search";
    let as_string = post(
        &world,
        path,
        r#"{"arguments": "{query: 'milk', limit: '2',}"}"#,
    )
    .await;
    let headers = [
        ("content-type", "text/plain"),
        ("x-request-id", "r_of_body"),
    ];
    let as_body = send(
        &world,
        "POST",
        path,
        &headers,
        "{query: 'milk', limit: '2',}",
    )
    .await;
    let (as_string, as_body) = (as_string.json(), as_body.json());
    assert_eq!(as_string["data"], as_body["data"]);
    assert_eq!(as_string["warnings"], as_body["warnings"]);
    assert!(as_string["ok"] == true && as_string["warnings"] != serde_json::json!([]));
}

/// A5, A18: the key comes from the body or from the header, bare or quoted, and a header marks a stored answer.
#[tokio::test]
async fn a_repeat_gets_the_stored_answer() {
    let world = World::start().await;
    let path = "/v1/tools/notes.add";
    let first = post(
        &world,
        path,
        r#"{"arguments": {"text": "tea"}, "idempotency_key": "k_1"}"#,
    )
    .await;
    assert_eq!(
        (first.status, first.header("idempotent-replayed")),
        (200, None)
    );
    for key in ["k_1", "\"k_1\""] {
        let headers = [("idempotency-key", key), ("x-request-id", "r_2")];
        let body = r#"{"arguments": {"text": "tea"}}"#;
        let again = send(&world, "POST", path, &headers, body).await;
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.json()["data"], first.json()["data"]);
    }
    let headers = [("idempotency-key", "k_1")];
    let other = send(
        &world,
        "POST",
        path,
        &headers,
        r#"{"arguments": {"text": "milk"}}"#,
    )
    .await;
    assert_eq!((other.status, other.code().as_str()), (409, "CONFLICT"));
    let both = r#"{"arguments": {"text": "tea"}, "idempotency_key": "k_2"}"#;
    let both = send(&world, "POST", path, &headers, both).await;
    assert_eq!(
        (both.status, both.code().as_str()),
        (400, "INVALID_ARGUMENT")
    );
}

/// Every member of the envelope with a wrong type is refused with its place, and null counts as absent.
#[tokio::test]
async fn wrong_members_are_named() {
    let world = World::start().await;
    let path = "/v1/tools/notes.list";
    for (member, wrong) in [
        ("request_id", "7"),
        ("request_id", "\"with space\""),
        ("actor", "\"me\""),
        ("actor", "{\"type\": \"god\", \"id\": \"x\"}"),
        ("actor", "{\"type\": \"user\"}"),
        ("user_id", "[]"),
        ("session_id", "{}"),
        ("locale", "1"),
        ("currency", "false"),
        ("timezone", "[1]"),
        ("client", "\"web\""),
        ("client", "{\"app\": \"web\", \"os\": \"x\"}"),
        ("dry_run", "\"yes\""),
        ("idempotency_key", "1"),
        ("trace", "\"00-1-2-01\""),
    ] {
        let answer = post(&world, path, &format!("{{\"{member}\": {wrong}}}")).await;
        assert_eq!(answer.code(), "INVALID_ARGUMENT", "{member} {wrong}");
        let field = answer.json()["error"]["details"]["field"].clone();
        assert_eq!(field, format!("/{member}"), "{wrong}");
        let null = post(&world, path, &format!("{{\"{member}\": null}}")).await;
        assert_eq!(null.status, 200, "{member}: {null:?}");
    }
}

#[tokio::test]
async fn mistakes_are_explained() {
    let world = World::start().await;
    let path = "/v1/tools/memory.search";
    let check = async |body: &str| post(&world, path, body).await.told();
    assert_snapshot!(check(r#"{"query": "milk"}"#).await, @r#"400 INVALID_ARGUMENT /query: "query" is not a member of a call; put the arguments of the tool into "arguments""#);
    assert_snapshot!(check(r#"{"argument": {"query": "milk"}}"#).await, @r#"400 INVALID_ARGUMENT /argument: "argument" is not a member of a call; did you mean arguments?"#);
    assert_snapshot!(check("{\"arguments\": {\"query\": \"milk\",}\n}").await, @r#"400 INVALID_ARGUMENT : the body is not valid JSON, see line 1 column 32; send the text of a model as a string in "arguments", or alone in a body of type text/plain"#);
    assert_snapshot!(check("{\"arguments\": {").await, @r#"400 INVALID_ARGUMENT : the body is not valid JSON: it ends early, at line 1 column 15; send the text of a model as a string in "arguments", or alone in a body of type text/plain"#);
    assert_snapshot!(check("[]").await, @r#"400 INVALID_ARGUMENT : the body is not a JSON object; send the text of a model as a string in "arguments", or alone in a body of type text/plain"#);
    assert_snapshot!(check(r#"{"dry_run": true, "dry_run": false}"#).await, @"400 INVALID_ARGUMENT /dry_run: dry_run occurs twice; send it once");
    let wrong_tool = post(&world, "/v1/tools/memory.serach", "{}").await;
    assert_snapshot!(wrong_tool.told(), @r#"404 NOT_FOUND : there is no tool "memory.serach"; did you mean memory.search?"#);
    assert_snapshot!(get(&world, "/v1/tolls").await.told(), @r#"404 NOT_FOUND : there is no "/v1/tolls" here; GET /openapi.json lists all paths"#);
    let wrong_method = send(&world, "DELETE", "/v1/tools", &[], "").await;
    assert_snapshot!(wrong_method.told(), @"405 INVALID_ARGUMENT : DELETE is not possible here; the header Allow lists the methods that are possible");
    assert_eq!(wrong_method.header("allow"), Some("GET,HEAD"));
    let headers = [("content-type", "text/html"), ("x-request-id", "r_1")];
    let wrong_type = send(&world, "POST", path, &headers, "<p>").await;
    assert_snapshot!(wrong_type.shown(), @r#"
    415
    content-type: application/json
    x-request-id: r_1
    {
      "data": null,
      "error": {
        "code": "INVALID_ARGUMENT",
        "details": {
          "hint": "send JSON, or the bare argument text as text/plain",
          "retryable": false
        },
        "message": "the type of the body is neither application/json nor text/plain"
      },
      "ok": false,
      "request_id": "r_1",
      "warnings": []
    }
    "#);
}

/// B17: the list is in the requested format.
#[tokio::test]
async fn tools_are_listed_in_every_form() {
    let world = World::start().await;
    let names: Vec<String> = get(&world, "/v1/tools")
        .await
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    for dialect in ["openai", "openai-responses", "anthropic", "gemini", "mcp"] {
        let list = get(
            &world,
            &format!("/v1/tools?format={dialect}&max_tokens=2000"),
        )
        .await;
        assert_eq!(list.status, 200, "{list:?}");
        assert!(list.header("x-countersign-tokens").is_some());
    }
    let one = get(&world, "/v1/tools/notes_add?format=jsonschema")
        .await
        .json();
    assert_eq!(one["required"], serde_json::json!(["text"]));
    let page = get(&world, "/v1/tools/notes.add?format=markdown").await;
    assert!(page.body.starts_with("# notes.add"), "{page:?}");
    for wrong in [
        "?format=xml",
        "?strict=true",
        "?formt=json",
        "?max_tokens=many&format=mcp",
    ] {
        let answer = get(&world, &format!("/v1/tools{wrong}")).await;
        assert_eq!(answer.code(), "INVALID_ARGUMENT", "{wrong}");
    }
    assert_eq!(
        get(&world, "/v1/tools/notes.ad").await.json()["error"]["details"]["did_you_mean"],
        "notes.add"
    );
}

/// B17: a list that is too long for a budget can be limited to some tools, in every format.
#[tokio::test]
async fn some_tools_are_listed_by_name_and_pattern() {
    let world = World::start().await;
    for (asked, expected) in [
        ("notes.add", vec!["notes.add"]),
        (
            "notes.*,memory_search",
            vec!["memory.search", "notes.add", "notes.list"],
        ),
        ("*.*l*,*echo", vec!["diagnostics.echo", "notes.list"]),
    ] {
        let list = get(&world, &format!("/v1/tools?names={asked}"))
            .await
            .json();
        let names = list.as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{asked}");
        for dialect in ["openai", "openai-responses", "anthropic", "mcp"] {
            let list = get(&world, &format!("/v1/tools?names={asked}&format={dialect}")).await;
            assert_eq!(list.json().as_array().unwrap().len(), expected.len());
        }
    }
    let all = get(&world, "/v1/tools?format=openai&max_tokens=80").await;
    assert_eq!(all.code(), "INVALID_ARGUMENT", "{all:?}");
    let some = get(
        &world,
        "/v1/tools?format=openai&max_tokens=80&names=notes.list",
    )
    .await;
    assert_eq!(some.status, 200, "{some:?}");
    for (asked, near) in [
        ("note.*", "notes.*"),
        ("notes.add,memory.serach", "memory.search"),
    ] {
        let answer = get(&world, &format!("/v1/tools?names={asked}")).await;
        assert_eq!(answer.code(), "NOT_FOUND", "{asked}");
        assert_eq!(answer.json()["error"]["details"]["did_you_mean"], near);
    }
    let one = get(&world, "/v1/tools/notes.add?names=notes.list").await;
    assert_eq!(one.code(), "INVALID_ARGUMENT", "{one:?}");
}

/// Refuses every sum below ten.
struct Pay;

#[derive(Deserialize, ToolArgs)]
struct PayArgs {
    /// How much.
    sum: u32,
}

impl Tool for Pay {
    const NAME: &'static str = "pay.note";
    const DESCRIPTION: &'static str = "Notes a sum.";
    type Args = PayArgs;
    type Output = u32;

    fn behaviour() -> Behaviour {
        Behaviour {
            effect: Effect::Write,
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, args: PayArgs) -> Result<u32, ToolError> {
        match args.sum {
            10.. => Ok(args.sum),
            _ => Err(ToolError::invalid("/sum", "the sum is below ten")),
        }
    }
}

/// A5, A17: a key whose call failed without an effect accepts corrected arguments, and then belongs to those.
#[tokio::test]
async fn a_key_takes_corrected_arguments_after_a_failure() {
    let catalog = Catalog::builder().tool(Pay).build().unwrap();
    let world = World::made(Settings::default(), catalog, |builder| builder).await;
    let pay = async |sum: u32| {
        let body = format!("{{\"arguments\": {{\"sum\": {sum}}}}}");
        let key = [("idempotency-key", "k_1")];
        send(&world, "POST", "/v1/tools/pay.note", &key, &body).await
    };
    assert_eq!(pay(3).await.code(), "INVALID_ARGUMENT");
    assert_eq!(pay(30).await.json()["data"], 30);
    assert_eq!(pay(30).await.json()["replayed"], true);
    for other in [3, 31] {
        assert_eq!(
            pay(other).await.told(),
            "409 CONFLICT /sum: the idempotency_key was used for other arguments, which differ at /sum; use a \
             new idempotency_key for a new call, or the first arguments for a retry"
        );
    }
}

#[tokio::test]
async fn probes_answer() {
    let world = World::start().await;
    assert_eq!(get(&world, "/healthz").await.body, "ok\n");
    assert_eq!(get(&world, "/readyz").await.body, "ready\n");
    world.gateway.health().log_stopped();
    assert_eq!(get(&world, "/readyz").await.status, 503);
    assert_eq!(get(&world, "/healthz").await.status, 200);
}

/// The envelope's locale decides the language of a call's messages. Before there is a call, and for approvals,
/// `Accept-Language` does. Codes do not change.
#[tokio::test]
async fn messages_follow_the_locale() {
    let world = World::start().await;
    let said = async |method, path, language, body| {
        let headers = [("x-request-id", "r_1"), ("accept-language", language)];
        let answer = send(&world, method, path, &headers, body).await.json();
        let error = &answer["error"];
        format!(
            "{} {} | {}",
            error["code"].as_str().unwrap(),
            error["message"].as_str().unwrap(),
            error["details"]["hint"].as_str().unwrap()
        )
    };
    let chinese = r#"{"arguments": {"limt": 2}, "locale": "zh-CN"}"#;
    let call = said("POST", "/v1/tools/memory.search", "en", chinese).await;
    assert_snapshot!(call, @r#"INVALID_ARGUMENT 未知参数 "limt"：可用的参数有 limit, query | 请逐项更正问题后，重新发送调用"#);
    let near = said("POST", "/v1/tools/memory.serch", "en", chinese).await;
    assert_snapshot!(near, @r#"NOT_FOUND 没有名为 "memory.serch" 的工具 | 您是否想写 memory.search？"#);
    let approval = said("GET", "/v1/approvals/ap_none", "zh-CN,en;q=0.5", "").await;
    assert_snapshot!(approval, @r#"NOT_FOUND 没有编号为 "ap_none" 的确认请求 | 请列出确认请求，查看现有的编号；过期的请求会被删除"#);
    for (method, path, body) in [
        ("GET", "/v1/no-such-path", ""),
        ("GET", "/v1/calls/req_none", ""),
        ("GET", "/v1/cases/order_none", ""),
        ("GET", "/v1/calls?limt=2", ""),
        ("POST", "/v1/approvals/ap_none", "{}"),
        ("POST", "/v1/holds", "{}"),
        ("POST", "/v1/claims", "{}"),
        ("POST", "/v1/grants", "{}"),
        ("POST", "/v1/tools/notes.add", "{"),
        ("POST", "/v1/tools/notes.add", r#"{"text": "a"}"#),
    ] {
        let answered = said(method, path, "zh-CN", body).await;
        let parts = answered.split(" | ").map(|part| part.chars());
        let is_chinese = parts.map(|mut part| part.any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)));
        assert!(is_chinese.eq([true, true]), "{method} {path}: {answered}");
    }
    let english = said("GET", "/v1/approvals/ap_none", "en;q=0.9,zh", "").await;
    assert_snapshot!(english, @r#"NOT_FOUND there is no approval "ap_none" | list the approvals to see which exist; old ones are removed"#);
}
