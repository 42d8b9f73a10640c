//! Tools of a service, by configuration alone: in every command that knows tools.

use serde_json::{Value, json};

use crate::service::Service;
use crate::world::World;

/// A service with two tools, and an override of one of the shop's.
fn config(service: &Service) -> String {
    format!(
        r#"
[server]
listen = "127.0.0.1:0"

[store]
data = "data"

[[upstream]]
name = "app"
base_url = "{}"
allow_private = ["loopback"]

[[tool]]
name = "orders.place"
upstream = "app"
description = "Places an order for an item."
parameters = [{{ name = "sku" }}, {{ name = "quantity", kind = "integer", minimum = 1 }}]

[[tool]]
name = "orders.list"
upstream = "app"
description = "Lists orders."
request = {{ method = "GET", path = "/orders/{{user}}" }}
parameters = [{{ name = "user" }}]
"#,
        service.url
    )
}

fn names(tools: &Value) -> Vec<&str> {
    let tools = tools.as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}

/// B14: a tool is added by configuration, and every command has it; the shop is off beside a file.
#[test]
fn one_file_gives_its_tools_to_every_command() {
    let service = Service::start();
    let world = World::new(&config(&service));
    assert_eq!(
        names(&world.json(&["tools"])),
        ["orders.list", "orders.place"]
    );
    let bound = world.json(&[
        "bind",
        "orders.place",
        "--args",
        "{sku: 'A-1', quantity: '2'}",
    ]);
    assert_eq!(bound["value"], json!({"sku": "A-1", "quantity": 2}));
    assert_eq!(service.heard().len(), 0, "nothing is called to look at it");

    let words = [
        "call",
        "orders.place",
        "--args",
        "{sku: 'A-1', quantity: '2',}",
    ];
    let reply = world.json(&[&words[..], &["--key", "k_1"]].concat());
    assert_eq!(reply["ok"], true, "{reply}");
    assert_eq!(reply["data"]["sent"], json!({"sku": "A-1", "quantity": 2}));
    let again = world.json(&[&words[..], &["--key", "k_1"]].concat());
    assert_eq!(again["replayed"], true, "{again}");
    let heard = service.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].header("idempotency-key").is_some(), "{heard:?}");

    let server = world.serve(&[]);
    assert_eq!(server.tools(), ["orders.list", "orders.place"]);
    let (status, reply) = server.ask(
        "POST",
        "/v1/tools/orders.list",
        r#"{"arguments": {"user": "ann"}}"#,
    );
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["data"]["line"], "GET /orders/ann HTTP/1.1");
    // The shop's pages are not promised either.
    let (_, profile) = server.ask("GET", "/.well-known/ucp", "");
    assert!(!profile.to_string().contains("checkout"), "{profile}");
    // A command beside the server asks it, wherever it is run.
    let elsewhere = World::empty();
    let data = world.path("data").display().to_string();
    let place = ["--data", &data];
    let reply = elsewhere.json(&[&words[..], &["--key", "k_1"], &place].concat());
    assert_eq!(reply["replayed"], true, "{reply}");
    let unknown = elsewhere.refusal(&[&["call", "orders.plce"][..], &place].concat(), 2);
    assert!(unknown.contains("did you mean orders.place?"), "{unknown}");
    assert_eq!(server.stop(), Some(0));
}

/// Without a file the shop is there; with one it is off, unless it is asked for. Its tools take overrides.
#[test]
fn the_shop_is_asked_for_and_its_tools_are_overridden() {
    let all = World::empty().json(&["tools"]);
    assert!(names(&all).contains(&"notes.add"), "{all}");
    assert_eq!(names(&World::new("").json(&["tools"])), Vec::<&str>::new());
    let world = World::new(
        r#"
        [shop]
        enabled = true
        [[tool]]
        name = "notes.add"
        title = "Remember"
        confirm = "always"
        [[tool]]
        name = "notes.clear"
        enabled = false
        "#,
    );
    let tools = world.json(&["tools"]);
    assert_eq!(names(&tools).len(), names(&all).len() - 1);
    let add = world.json(&["tools", "notes.add"]);
    assert_eq!(add[0]["title"], "Remember", "{add}");
    let refused = world.json(&["call", "notes.add", "--args", "{text: 'tea'}"]);
    assert_eq!(refused["error"]["code"], "NEEDS_USER_CONFIRMATION");
}

/// A mistake in a tool is reported at its place, by every command alike, and nothing is made.
#[test]
fn tools_that_cannot_be_are_refused_at_their_place() {
    let check = |config: &str, expected: &str| {
        let world = World::new(config);
        for words in [&["tools"][..], &["serve"], &["call", "notes.add"]] {
            let said = world.refusal(words, 2);
            assert!(said.contains(expected), "{words:?}: {said}");
        }
        assert!(!world.path(".local").exists(), "nothing is made");
    };
    check(
        "[[tool]]\nname = \"notes.add\"\ntitle = \"x\"\n",
        "countersign.toml:2:1: tool[0].name: this is a tool of the shop, and shop.enabled is false; expected [shop] enabled = true",
    );
    check(
        "[shop]\nenabled = true\n[[tool]]\nname = \"notes.ad\"\ntitle = \"x\"\n",
        "countersign.toml:4:1: tool[0].name: no entry defines this tool",
    );
    check(
        "[shop]\nenabled = true\n[[tool]]\nname = \"notes.add\"\neffect = \"read\"\n",
        "countersign.toml:5:1: tool[0].effect: this cannot be set for a built-in tool",
    );
    check(
        "[shop]\nenabled = true\n[[upstream]]\nname = \"a\"\nbase_url = \"https://a.example\"\n[[tool]]\nname = \"notes.add\"\nupstream = \"a\"\ndescription = \"x\"\n",
        "countersign.toml:7:1: tool[0].name: a tool of the program has this name; choose another",
    );
}
