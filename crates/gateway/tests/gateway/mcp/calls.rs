//! Calls: their arguments and results.

use std::sync::Arc;

use countersign::{CallContext, Catalog, Tool, ToolError};
use countersign_gateway::{Server, Settings};
use countersign_testkit::patience::within;
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{Modern, settled};
use crate::world::World;

#[tokio::test]
async fn a_call_answers_with_text_data_and_evidence() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let result = client
        .call("notes_add", json!({ "text": "buy milk" }))
        .await;
    assert_json_snapshot!(settled(result), @r#"
    {
      "_meta": {
        "dev.countersign/evidence": {
          "snapshot_id": "[snapshot_id]"
        },
        "dev.countersign/request_id": "[request_id]"
      },
      "content": [
        {
          "text": "{\"evidence\":{\"snapshot_id\":\"[snapshot_id]\"},\"id\":\"n_0001\",\"text\":\"buy milk\"}",
          "type": "text"
        }
      ],
      "isError": false,
      "resultType": "complete",
      "structuredContent": {
        "evidence": {
          "snapshot_id": "[snapshot_id]"
        },
        "id": "n_0001",
        "text": "buy milk"
      }
    }
    "#);
}

/// B6, B7: a string in place of an object, with all its mistakes, is left to the binder.
#[tokio::test]
async fn arguments_as_text_are_bound() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let written = r#"{query: 'milk', "limit": "2",}"#;
    let result = client.call("memory.search", json!(written)).await;
    assert_json_snapshot!(settled(result["content"].clone()), @r#"
    [
      {
        "text": "[{\"score\":1.0,\"text\":\"buy milk\"}]",
        "type": "text"
      },
      {
        "annotations": {
          "audience": [
            "assistant"
          ]
        },
        "text": "evidence.snapshot_id: [snapshot_id]\nWarnings:\n- arguments: a name had no quotes (KEY_UNQUOTED)\n- arguments: a quote character other than \" was read as \" (QUOTE_STYLE)\n- arguments: a trailing comma was ignored (TRAILING_COMMA)\n- /limit: a string was read as the integer it spells (TEXT_TO_INTEGER)",
        "type": "text"
      }
    ]
    "#);
}

/// B7: details that typed parsing would lose reach the tool.
#[tokio::test]
async fn the_text_of_arguments_is_kept() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let arguments = r#"{"payload": {"price": 1.10, "id": 12345678901234567890123}}"#;
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{meta},"name":"diagnostics_echo","arguments":{arguments}}}}}"#
    );
    let (_, message) = client.post("tools/call", "diagnostics_echo", &body).await;
    let data = &message["result"]["structuredContent"];
    assert_eq!(data["raw_bytes"], arguments.len(), "{message}");
}

/// A10, B15: an error is a result that the model reads, its code first.
#[tokio::test]
async fn a_refusal_is_a_result() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let result = client
        .call("memory_search", json!({ "qurey": "milk" }))
        .await;
    assert_json_snapshot!(settled(result), @r#"
    {
      "_meta": {
        "dev.countersign/error": {
          "code": "INVALID_ARGUMENT",
          "retryable": false
        },
        "dev.countersign/evidence": {
          "snapshot_id": "[snapshot_id]"
        },
        "dev.countersign/request_id": "[request_id]"
      },
      "content": [
        {
          "text": "INVALID_ARGUMENT: unknown argument \"qurey\": allowed are limit, query. Correct each issue and send the call again.\n- /qurey: unknown argument \"qurey\": allowed are limit, query (UNKNOWN_KEY; leave it out)\n- /query: a required parameter is missing: expected a string (MISSING_REQUIRED; send \"query\")",
          "type": "text"
        }
      ],
      "isError": true,
      "resultType": "complete"
    }
    "#);
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let params = json!({ "name": "memory_serch", "arguments": {} });
    let (status, message) = client.ask("tools/call", params).await;
    assert_eq!(status, 200);
    assert_json_snapshot!(settled(message), @r#"
    {
      "error": {
        "code": -32602,
        "data": {
          "error": {
            "code": "NOT_FOUND",
            "details": {
              "hint": "list the tools to see which exist",
              "retryable": false
            },
            "message": "there is no tool \"memory_serch\""
          },
          "request_id": "[request_id]"
        },
        "message": "NOT_FOUND: there is no tool \"memory_serch\"; list the tools to see which exist"
      },
      "id": 1,
      "jsonrpc": "2.0"
    }
    "#);
}

/// A1, A2, A5, A18: the envelope in `_meta`.
#[tokio::test]
async fn the_envelope_travels_in_meta() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let params = json!({
        "name": "notes_add",
        "arguments": { "text": "buy milk" },
        "_meta": {
            "dev.countersign/request_id": "r_1",
            "dev.countersign/idempotency_key": "k_1",
            "dev.countersign/user_id": "u_7",
            "dev.countersign/locale": "de-DE",
        },
    });
    let (_, first) = client.ask("tools/call", params.clone()).await;
    let (_, second) = client.ask("tools/call", params).await;
    assert_eq!(
        first["result"]["_meta"]["dev.countersign/request_id"],
        "r_1"
    );
    assert_eq!(
        second["result"]["_meta"]["dev.countersign/idempotent_replay"],
        true
    );
    assert_eq!(
        first["result"]["structuredContent"]["id"],
        second["result"]["structuredContent"]["id"]
    );
    let params = json!({ "name": "notes_list", "_meta": { "dev.countersign/user_id": "u_7" } });
    let (_, listed) = client.ask("tools/call", params).await;
    let notes = listed["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(notes.matches("buy milk").count(), 1, "{notes}");
}

/// A1: an application that the standard does not list is accepted, and the result says so.
#[tokio::test]
async fn an_application_that_is_not_listed_is_reported() {
    let world = World::start().await;
    let client = Modern::new(&world);
    for (app, expected) in [
        ("web", None),
        ("ios", None),
        ("android", None),
        ("tvos", Some("UNKNOWN_CLIENT_APP")),
        ("Android", Some("UNKNOWN_CLIENT_APP")),
    ] {
        let meta = json!({ "dev.countersign/client": { "app": app, "version": "1" } });
        let params = json!({ "name": "notes_list", "_meta": meta });
        let (_, message) = client.ask("tools/call", params).await;
        let result = &message["result"];
        assert_eq!(result["isError"], false, "{message}");
        let told = result["content"].to_string().contains("UNKNOWN_CLIENT_APP");
        assert_eq!(told, expected.is_some(), "{message}");
    }
}

#[tokio::test]
async fn a_malformed_envelope_is_a_malformed_request() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let params = json!({ "name": "notes_list", "_meta": { "dev.countersign/dry_run": 7 } });
    let (_, message) = client.ask("tools/call", params).await;
    assert_json_snapshot!(message, @r#"
    {
      "error": {
        "code": -32602,
        "message": "invalid params: a member dev.countersign/… of _meta: invalid type: integer `7`, expected a boolean"
      },
      "id": 1,
      "jsonrpc": "2.0"
    }
    "#);
}

/// A9: evidence is a resource of its user, and of no other.
#[tokio::test]
async fn evidence_is_read_by_its_user() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let result = client
        .call("notes_add", json!({ "text": "buy milk" }))
        .await;
    let name = result["structuredContent"]["evidence"]["snapshot_id"].as_str();
    let uri = format!("evidence://{}", name.unwrap());
    let (_, read) = client.ask("resources/read", json!({ "uri": uri })).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    let shown: Value = serde_json::from_str(text).unwrap();
    assert_eq!(shown["record"]["tool"]["name"], "notes.add");
    assert_eq!(read["result"]["cacheScope"], "private");
    assert!(
        !text.contains("milk"),
        "what is personal stays sealed: {text}"
    );

    let foreign = json!({ "uri": uri, "_meta": { "dev.countersign/user_id": "u_other" } });
    let (_, refused) = client.ask("resources/read", foreign).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let missing = json!({ "uri": "evidence://ev_0" });
    let (_, missing) = client.ask("resources/read", missing).await;
    assert_eq!(missing["error"]["message"], refused["error"]["message"]);
}

#[tokio::test]
async fn tools_are_listed_for_everybody() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let (_, message) = client.ask("tools/list", json!({})).await;
    let result = &message["result"];
    assert_eq!(result["cacheScope"], "private");
    let tools = result["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names.join(" "),
        "diagnostics_echo memory_search notes_add notes_list sample_vat"
    );
    assert_json_snapshot!(tools[2], @r#"
    {
      "annotations": {
        "destructiveHint": false,
        "openWorldHint": false
      },
      "description": "Stores a note.",
      "inputSchema": {
        "properties": {
          "again": {
            "description": "2 or more: repeat on purpose.",
            "type": "integer"
          },
          "text": {
            "description": "Text of the note.",
            "examples": [
              "buy milk"
            ],
            "type": "string"
          }
        },
        "required": [
          "text"
        ],
        "type": "object"
      },
      "name": "notes_add",
      "outputSchema": {
        "properties": {
          "id": {
            "type": "string"
          },
          "text": {
            "type": "string"
          }
        },
        "required": [
          "id",
          "text"
        ],
        "type": "object"
      }
    }
    "#);
    let (_, refused) = client.ask("tools/list", json!({ "cursor": "x" })).await;
    assert_eq!(refused["error"]["code"], -32602);
}

/// B15: some clients send a tool's own `_meta` back with each call. The published members are ignored, and a
/// misspelt member of the envelope is still refused.
#[tokio::test]
async fn the_meta_of_a_tool_may_come_back() {
    let world = World::start().await;
    let client = Modern::new(&world);
    // Only a client that reads the envelope gets it.
    let whole = json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {
        "extensions": {"dev.countersign/tool-envelope": {}},
    }}});
    let (_, listed) = client.ask("tools/list", whole).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let add = tools.iter().find(|tool| tool["name"] == "notes_add");
    let meta = add.unwrap()["_meta"].clone();
    assert!(meta["dev.countersign/idempotency"].is_object(), "{meta}");
    let call =
        |meta: Value| json!({"name": "notes_add", "arguments": {"text": "tea"}, "_meta": meta});
    let (_, done) = client.ask("tools/call", call(meta)).await;
    assert_eq!(done["result"]["isError"], false, "{done}");
    for wrong in [
        json!({"dev.countersign/idempotency": "k_1"}),
        json!({"dev.countersign/idempotency_kye": "k_1"}),
    ] {
        let (_, refused) = client.ask("tools/call", call(wrong)).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

/// A9, A21: a result is small, and a client that declares our extension gets the whole envelope.
#[tokio::test]
async fn the_whole_envelope_is_for_clients_that_ask() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let asked = |capabilities: Value| {
        json!({"name": "memory_search", "arguments": {"query": "milk", "limit": "3"}, "_meta": {
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }})
    };
    let (_, small) = client.ask("tools/call", asked(json!({}))).await;
    let size = small["result"]["_meta"].to_string().len();
    assert!(size <= 300, "{size}: {small}");
    assert!(!small.to_string().contains("resource_link"), "{small}");
    let extension = json!({"extensions": {"dev.countersign/tool-envelope": {}}});
    let (_, whole) = client.ask("tools/call", asked(extension)).await;
    let meta = &whole["result"]["_meta"];
    assert_eq!(
        meta["dev.countersign/warnings"][0]["code"], "TEXT_TO_INTEGER",
        "{whole}"
    );
    assert!(meta["dev.countersign/evidence"]["sources"].is_array());
    assert!(whole.to_string().contains("resource_link"), "{whole}");
}

/// A3: a bad credential is a JSON-RPC error, because most clients show people nothing else.
#[tokio::test]
async fn a_bad_credential_is_an_error_of_the_protocol() {
    let world = World::start().await;
    let request = reqwest::Client::new()
        .post(world.url("/mcp"))
        .header("authorization", "Bearer csk_0000000000000000_x")
        .body(r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 401);
    let body: Value = answer.json().await.unwrap();
    assert_eq!(
        (&body["jsonrpc"], &body["error"]["code"]),
        (&json!("2.0"), &json!(-32001))
    );
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("UNAUTHORIZED: "), "{message}");
    assert_eq!(body["error"]["data"]["error"]["code"], "UNAUTHORIZED");
}

/// A call that stands alone is answered without the protocol library, and in the same way. The library gets the same call with a header
/// that is there twice.
#[tokio::test]
async fn a_call_that_stands_alone_is_answered_as_the_library_would() {
    let world = World::start().await;
    let client = Modern::new(&world);
    let meta = |more: Value| {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        meta.as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        meta
    };
    let none = || meta(json!({}));
    let whole = json!({ "extensions": { "dev.countersign/tool-envelope": {} } });
    let whole = meta(json!({ "io.modelcontextprotocol/clientCapabilities": whole }));
    let keyed = meta(json!({ "dev.countersign/idempotency_key": "k_1" }));
    let first = json!({ "name": "notes_add", "arguments": { "text": "once" }, "_meta": keyed });
    client.ask("tools/call", first).await;
    for (name, arguments, meta) in [
        ("memory_search", json!({ "query": "milk" }), none()),
        ("memory_search", json!({ "query": "milk" }), whole),
        (
            "memory_search",
            json!("{query: 'milk', limit: '2',}"),
            none(),
        ),
        ("memory_search", json!({ "qurey": "milk" }), none()),
        // It has run before, so both are told its answer.
        ("notes_add", json!({ "text": "once" }), keyed.clone()),
        ("notes_add", json!({ "text": "another" }), keyed),
        ("no_such_tool", json!({}), none()),
        (
            "memory_search",
            json!({}),
            meta(json!({ "dev.countersign/locale": 7 })),
        ),
    ] {
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params });
        let body = body.to_string();
        let ask = async |times: usize| {
            let mut request = client
                .http
                .post(world.url("/mcp"))
                .header("content-type", "application/json")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", name)
                .body(body.clone());
            for _ in 0..times {
                request = request.header("accept", "application/json, text/event-stream");
            }
            let answer = within(request.send()).await.unwrap();
            let head = (answer.status(), answer.headers()["content-type"].clone());
            (head, settled(answer.json().await.unwrap()))
        };
        assert_eq!(ask(1).await, ask(2).await, "{body}");
    }
}

/// A read that never ends by itself, and tells when it begins and when it is given up.
struct Endless {
    begun: Arc<Notify>,
    ended: Arc<Notify>,
}

struct Told(Arc<Notify>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Tool for Endless {
    const NAME: &'static str = "test.endless";
    const DESCRIPTION: &'static str = "Waits.";
    type Args = ();
    type Output = Value;

    async fn call(&self, _: &CallContext, (): ()) -> Result<Value, ToolError> {
        let _told = Told(self.ended.clone());
        self.begun.notify_one();
        std::future::pending().await
    }
}

/// A client that goes away stops its read, also where no protocol library stands between them.
#[tokio::test]
async fn a_client_that_goes_away_stops_its_read() {
    let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool = Endless {
        begun: begun.clone(),
        ended: ended.clone(),
    };
    let catalog = Catalog::builder().tool(tool).build().unwrap();
    let (gateway, _) = World::gateway(catalog, Settings::default());
    let server = Server::bind(gateway, "127.0.0.1:0".parse().unwrap());
    let server = server.await.unwrap();
    let address = server.address().unwrap();
    let running = tokio::spawn(server.run(std::future::pending()));
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "test_endless", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: test_endless\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    within(begun.notified()).await;
    drop(stream);
    within(ended.notified()).await;
    running.abort();
}
