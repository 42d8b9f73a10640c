//! `search_tools`, `describe_tool` and `call_tool` in place of a long list.

use countersign::pattern::ToolPattern;
use countersign_gateway::offer::{Facade, OfferRules};
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use super::{catalog_of, listed, settings};
use crate::http_client::{get, post};
use crate::mcp::{Modern, settled};
use crate::world::World;

const FACADE: [&str; 3] = ["call_tool", "describe_tool", "search_tools"];

async fn world(others: usize, rules: OfferRules) -> World {
    World::made(settings(rules), catalog_of(others), |builder| builder).await
}

/// Below the threshold nothing is different; above it the list is three tools, however large the catalog is.
#[tokio::test]
async fn a_long_list_becomes_a_facade() {
    let check = async |others: usize, rules: OfferRules, expected: &[&str]| {
        let world = world(others, rules).await;
        let client = Modern::new(&world);
        let names = listed(&client, json!({})).await;
        assert_eq!(names, expected, "{others}");
    };
    let few = [
        "billing_refund",
        "notes_add",
        "notes_clear",
        "notes_list",
        "weather_forecast",
    ];
    let rules = |facade, tools, tokens, pinned: &[&str]| OfferRules {
        facade,
        listed_tools_max: tools,
        listed_tokens_max: tokens,
        pinned: pinned
            .iter()
            .map(|it| ToolPattern::new(it).unwrap())
            .collect(),
        ..OfferRules::default()
    };
    check(0, OfferRules::default(), &few).await;
    check(0, rules(Facade::Auto, 5, 30_000, &[]), &few).await;
    check(0, rules(Facade::Auto, 4, 30_000, &[]), &FACADE).await;
    check(0, rules(Facade::Auto, 128, 100, &[]), &FACADE).await;
    check(0, rules(Facade::On, 128, 30_000, &[]), &FACADE).await;
    check(0, rules(Facade::Off, 1, 1, &[]), &few).await;
    check(124, OfferRules::default(), &FACADE).await;
    check(1_000, OfferRules::default(), &FACADE).await;
    let pinned = [
        "call_tool",
        "describe_tool",
        "notes_add",
        "notes_clear",
        "notes_list",
        "search_tools",
    ];
    check(200, rules(Facade::Auto, 128, 30_000, &["notes.*"]), &pinned).await;
}

/// A search finds tools by what they do, in English and Chinese, and the answer of the tool is that of a direct call.
#[tokio::test]
async fn a_model_searches_describes_and_calls() {
    let world = world(300, OfferRules::default()).await;
    let client = Modern::new(&world);
    for query in ["refund a customer", "退款"] {
        let result = client
            .call("search_tools", json!({ "query": query, "limit": 1 }))
            .await;
        let found = &result["structuredContent"]["tools"];
        assert_eq!(
            *found,
            json!([{
                "name": "billing_refund",
                "description": "Pays money back to a customer.",
                "effect": "read",
            }]),
            "{query}"
        );
    }
    let direct = client.call("notes_add", json!({ "text": "milk" })).await;
    let behind = client
        .call(
            "call_tool",
            json!({ "name": "notes_add", "arguments": { "text": "tea" } }),
        )
        .await;
    let direct = settled(direct)
        .to_string()
        .replace("milk", "tea")
        .replace("n_0001", "n_0002");
    assert_eq!(settled(behind).to_string(), direct);
    let listed = post(&world, "/v1/tools/notes.list", "{}").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
}

/// The definition of a tool is what a list would have of it.
#[tokio::test]
async fn a_tool_is_described_as_it_would_be_listed() {
    let world = world(300, OfferRules::default()).await;
    let client = Modern::new(&world);
    let result = client
        .call("describe_tool", json!({ "name": "notes.add" }))
        .await;
    assert_json_snapshot!(result["structuredContent"], @r#"
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
}

/// A17, A18: a call behind the facade has the tool's own name in its record, its key, and its confirmation.
#[tokio::test]
async fn a_call_behind_the_facade_is_a_call_like_any_other() {
    let world = world(300, OfferRules::default()).await;
    let client = Modern::new(&world);
    let keyed = async |tool: &str, arguments: Value| {
        let meta = json!({ "dev.countersign/idempotency_key": "k_1" });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let (_, message) = client.ask("tools/call", params).await;
        message["result"].clone()
    };
    let text = json!({ "text": "milk" });
    let first = keyed("notes_add", text.clone()).await;
    let again = keyed(
        "call_tool",
        json!({ "name": "notes.add", "arguments": text }),
    )
    .await;
    assert_eq!(
        again["structuredContent"]["id"],
        first["structuredContent"]["id"]
    );
    assert_eq!(again["_meta"]["dev.countersign/idempotent_replay"], true);
    // Bound like a direct call: a text of another form, and what is wrong with it.
    let lenient = json!({ "name": "notes_add", "arguments": "{text: 'tea',}" });
    let bound = client.call("call_tool", lenient).await;
    assert_eq!(bound["structuredContent"]["text"], "tea", "{bound}");
    let wrong = client
        .call(
            "call_tool",
            json!({ "name": "notes_add", "arguments": { "txt": "tea" } }),
        )
        .await;
    let direct = client.call("notes_add", json!({ "txt": "tea" })).await;
    assert_eq!(wrong["content"], direct["content"]);
    // Confirmed like a direct call.
    let asked = client
        .call("call_tool", json!({ "name": "notes_clear" }))
        .await;
    let direct = client.call("notes_clear", json!({})).await;
    let code = |result: &Value| result["_meta"]["dev.countersign/error"]["code"].clone();
    assert_eq!(code(&asked), "NEEDS_USER_CONFIRMATION", "{asked}");
    assert_eq!(code(&asked), code(&direct));
    let calls = get(&world, "/v1/calls").await.json();
    let tools: Vec<&str> = calls["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["tool"].as_str().unwrap())
        .collect();
    assert!(
        !tools.is_empty() && tools.iter().all(|tool| tool.starts_with("notes.")),
        "{tools:?}"
    );
}

#[tokio::test]
async fn a_call_of_nothing_says_what_to_do() {
    let world = world(300, OfferRules::default()).await;
    let client = Modern::new(&world);
    let check = async |tool: &str, arguments: Value, expected: &str| {
        let result = client.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(expected), "{text}");
    };
    let near = "NOT_FOUND: there is no tool \"note_add\". Did you mean notes_add?";
    check("call_tool", json!({ "name": "note_add" }), near).await;
    check("describe_tool", json!({ "name": "note_add" }), near).await;
    check("call_tool", json!({ "arguments": {} }), "INVALID_ARGUMENT").await;
    check(
        "call_tool",
        json!({ "name": "call_tool" }),
        "INVALID_ARGUMENT: call_tool cannot call itself",
    )
    .await;
    check("search_tools", json!({ "limit": 3 }), "INVALID_ARGUMENT").await;
    check("fetch_rest", json!({ "handle": "ev_1" }), "NOT_FOUND").await;
    let nothing = client
        .call("search_tools", json!({ "query": "submarine" }))
        .await;
    let areas = &nothing["structuredContent"]["areas"];
    assert_eq!(
        areas[0],
        json!({ "area": "filler", "tools": 300 }),
        "{nothing}"
    );
}

/// The lists for models of providers have the facade; lists for programs are whole.
#[tokio::test]
async fn lists_of_providers_have_the_facade() {
    let world = world(300, OfferRules::default()).await;
    let count = async |query: &str| {
        let answer = get(&world, &format!("/v1/tools?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.body);
        let list = answer.json();
        let list = list["functionDeclarations"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| {
                let list = list
                    .as_array()
                    .or_else(|| list[0]["functionDeclarations"].as_array());
                list.unwrap().clone()
            });
        let list = match list
            .first()
            .and_then(|it| it["functionDeclarations"].as_array())
        {
            Some(inner) => inner.clone(),
            None => list,
        };
        list.len()
    };
    for format in ["openai", "openai-responses", "anthropic", "gemini", "mcp"] {
        assert_eq!(count(&format!("format={format}")).await, 3, "{format}");
        assert_eq!(
            count(&format!("format={format}&facade=off")).await,
            305,
            "{format}"
        );
        assert_eq!(
            count(&format!("format={format}&names=notes.*")).await,
            3,
            "{format}"
        );
    }
    assert_eq!(count("format=json").await, 305);
    assert_eq!(count("format=json&facade=on").await, 3);
    let wrong = get(&world, "/v1/tools?facade=maybe").await;
    assert_eq!(wrong.status, 400);
}

/// A model of a provider calls through the facade as well.
#[tokio::test]
async fn a_providers_model_calls_through_the_facade() {
    let world = world(300, OfferRules::default()).await;
    let message = json!({"role": "assistant", "tool_calls": [
        {"id": "c_1", "type": "function", "function": {"name": "search_tools", "arguments": "{\"query\": \"weather\"}"}},
        {"id": "c_2", "type": "function", "function": {"name": "call_tool",
            "arguments": "{\"name\": \"notes_add\", \"arguments\": {\"text\": \"milk\"}}"}},
        {"id": "c_3", "type": "function", "function": {"name": "call_tool", "arguments": "{\"name\": \"note_add\"}"}},
    ]});
    let body = json!({"message": message, "envelope": {"request_id": "r_1"}}).to_string();
    let answers = post(&world, "/v1/providers/openai/calls", &body)
        .await
        .json();
    let text = |at: usize| answers[at]["content"].as_str().unwrap();
    assert!(text(0).contains("weather_forecast"), "{answers}");
    assert!(text(1).contains("n_0001"), "{answers}");
    assert!(text(2).contains("Did you mean notes_add?"), "{answers}");
    let recorded = get(&world, "/v1/calls/r_1.2").await.json();
    assert_eq!(
        recorded["records"][0]["record"]["tool"]["name"],
        "notes.add"
    );
    let over_http = r#"{"arguments": {"name": "notes.list"}}"#;
    let listed = post(&world, "/v1/tools/call_tool", over_http).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
}
