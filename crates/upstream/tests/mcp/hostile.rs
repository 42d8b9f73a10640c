//! Hostile lists of tools: whatever a server lists, the other tools work, memory is bounded, and nothing is called that was not approved.

use std::fs;

use countersign::contract::ToolName;
use countersign_testkit::patience::within;
use serde_json::{Value, json};

use crate::service::{Seen, Service, json as answer};
use crate::world::{World, folder, plain, told};

fn tool(name: &str, description: &str) -> Value {
    let text =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    json!({"name": name, "description": description, "inputSchema": text})
}

/// A child that lists these tools beside its own.
async fn listing(tools: &[Value], rest: &str) -> World {
    let folder = folder();
    let lines: Vec<String> = tools.iter().map(|line| format!("{line}\n")).collect();
    let lines = lines.concat();
    fs::write(folder.path().join("tools"), lines).unwrap();
    let manifest = plain(folder.path(), "", rest);
    within(World::new(folder, &manifest)).await
}

/// A22: a definition of ten megabytes is left out, and the others are there; a list that is longer than an answer may be is none.
#[tokio::test]
async fn a_definition_that_is_too_large_is_left_out() {
    let large = "x".repeat(10 << 20);
    let mut in_schema = tool("in_schema", "d");
    in_schema["inputSchema"]["properties"]["text"]["enum"] = json!(vec!["y".repeat(1_000); 10_000]);
    let tools = [tool("in_text", &large), in_schema];
    let world = listing(&tools, "response_bytes_max = 33554432\n").await;
    let names = world.names();
    assert!(names.contains(&"plain.say".to_owned()), "{names:?}");
    assert_eq!(names.len(), 7, "{names:?}");
    let state = world.upstreams.server("plain").unwrap().state();
    for own in &state.left_out {
        assert!(own.why.contains("bytes, and at most 262144"), "{}", own.why);
    }
    assert_eq!(state.left_out.len(), 2);
    assert_eq!(world.data("plain.say", r#"{"text": "hi"}"#).await, "hi");
    world.upstreams.close().await;

    let world = listing(&tools, "").await;
    assert_eq!(world.names(), [""; 0]);
    let state = world.upstreams.server("plain").unwrap().state();
    assert!(state.trouble.is_some(), "{state:?}");
    world.upstreams.close().await;
}

/// A22: names with control characters, no characters or very many become names that every client takes, each another one.
#[tokio::test]
async fn names_of_any_characters_become_names() {
    let long = "n".repeat(100_000);
    let odd = [
        "\u{1b}[2J\r\n",
        "",
        "a\u{202e}b",
        "../../etc",
        "say ",
        &long,
        "SAY",
        "say\u{0}",
    ];
    let tools = odd.map(|name| tool(name, "d"));
    let world = listing(&tools, "").await;
    let names = world.names();
    for name in &names {
        assert!(ToolName::new(name.as_str()).is_ok(), "{name:?}");
    }
    let state = world.upstreams.server("plain").unwrap().state();
    // Providers do not tell capital letters from small ones.
    let left_out: Vec<&str> = state.left_out.iter().map(|own| own.tool.as_str()).collect();
    assert_eq!(
        names.len() + left_out.len(),
        7 + odd.len(),
        "{names:?} {left_out:?}"
    );
    assert_eq!(world.data("plain.say", r#"{"text": "hi"}"#).await, "hi");
    world.upstreams.close().await;
}

/// A22: two definitions of one name are one tool if they are equal. If they differ, it is not known which of them would be called, so none is.
#[tokio::test]
async fn two_definitions_of_one_name_are_not_called() {
    for (second, is_called) in [("Says it.", true), ("Says something else.", false)] {
        for is_first in [true, false] {
            let mut tools = [tool("say", "Says it."), tool("say", second)];
            if is_first {
                tools.reverse();
            }
            let world = listing(&tools, "").await;
            assert!(world.names().contains(&"plain.say".to_owned()));
            let reply = world.call("plain.say", r#"{"text": "hi"}"#).await;
            assert_eq!(reply.ok, is_called, "{}", told(&reply));
            if !is_called {
                let why = told(&reply);
                assert!(
                    why.contains("waits for approval; nothing was sent"),
                    "{why}"
                );
            }
            world.upstreams.close().await;
        }
    }
}

/// A22: pages without end, and pages that are together longer than a list may be, are no list.
#[tokio::test]
async fn pages_without_end_are_no_list() {
    let long = "x".repeat(3 << 20);
    for (is_long, expected) in [
        (false, "more than 500 pages of tools"),
        (true, "bytes of tools"),
    ] {
        let text = if is_long {
            long.clone()
        } else {
            "d".to_owned()
        };
        let service = Service::start(move |seen: &Seen, _| {
            let message: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
            let result = match message["method"].as_str() {
                Some("server/discover") => json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "ttlMs": 0, "cacheScope": "private",
                }),
                Some("tools/list") => json!({
                    "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "nextCursor": "again",
                    "tools": [tool("do", &text)],
                }),
                _ => return answer(202, ""),
            };
            let message = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            answer(200, &message.to_string())
        })
        .await;
        let url = &service.url;
        let manifest = format!(
            "[[upstream]]\nname = 'web'\nkind = 'mcp'\nurl = '{url}'\nallow_private = ['loopback']\ntrust = 'first_use'\n"
        );
        let world = within(World::new(folder(), &manifest)).await;
        assert_eq!(world.names(), [""; 0]);
        let state = world.upstreams.server("web").unwrap().state();
        let trouble = state.trouble.unwrap_or_default();
        assert!(trouble.contains(expected), "{trouble}");
        world.upstreams.close().await;
    }
}

/// A server with thousands of tools is listed whole; only one beyond the bound is refused.
#[tokio::test]
async fn thousands_of_tools_are_listed() {
    let tools = |count: usize| (0..count).map(|at| tool(&format!("t{at}"), "d"));
    let world = listing(&tools(2_214).collect::<Vec<_>>(), "").await;
    assert_eq!(world.names().len(), 7 + 2_214);
    world.upstreams.close().await;

    let world = listing(&tools(10_000).collect::<Vec<_>>(), "").await;
    assert_eq!(world.names(), [""; 0]);
    let state = world.upstreams.server("plain").unwrap().state();
    assert_eq!(state.trouble.unwrap(), "more than 10000 tools");
    world.upstreams.close().await;
}

/// A22, B14: a schema whose references copy it again and again is refused where an entry changes it, and the other tools are there.
#[tokio::test]
async fn references_that_grow_are_refused() {
    let mut definitions = serde_json::Map::new();
    for at in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let own = json!({"minProperties": 1, "allOf": [next, next]});
        definitions.insert(format!("d{at}"), own);
    }
    definitions.insert(
        "d60".to_owned(),
        json!({"properties": {"text": {"type": "string"}}}),
    );
    let schema = json!({"type": "object", "allOf": [{"$ref": "#/$defs/d0"}], "$defs": definitions});
    let tools = [json!({"name": "grow", "description": "d", "inputSchema": schema})];
    let said = "[[tool]]\nname = 'plain.grow'\narguments.tenant.preset = 'a'\n";
    let world = listing(&tools, said).await;
    let state = world.upstreams.server("plain").unwrap().state();
    let left_out: Vec<&str> = state.left_out.iter().map(|own| own.tool.as_str()).collect();
    assert_eq!(left_out, ["grow"], "{:?}", world.names());
    assert_eq!(world.data("plain.say", r#"{"text": "hi"}"#).await, "hi");
    world.upstreams.close().await;
}
