//! Tools of servers beside those of others: nothing that a server lists keeps another server from working.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use countersign::sample::MemorySearch;
use countersign::{Catalog, DynTool};
use countersign_upstream::mcp::LeftOut;
use countersign_upstream::{Manifest, Upstreams};
use serde_json::{Value, json};

use crate::world::{World, approve, folder, plain};

/// An entry of a server whose tools are these alone.
fn server(folder: &Path, name: &str, tools: &[Value]) -> String {
    let world = folder.join(name);
    fs::create_dir_all(&world).unwrap();
    let gone = ["echo", "say", "who", "fail", "order", "slow", "steps"];
    let gone = gone.map(|name| json!({"name": name, "gone": true}));
    let lines = gone.iter().chain(tools).map(|line| format!("{line}\n"));
    fs::write(world.join("tools"), lines.collect::<String>()).unwrap();
    plain(&world, "", "").replace("'plain'", &format!("'{name}'"))
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "d", "inputSchema": {"type": "object"}})
}

fn left_out(upstreams: &Upstreams, name: &str) -> Vec<LeftOut> {
    upstreams.server(name).unwrap().state().left_out
}

/// A server cannot put a tool of its own in the place of one that the program brings: not with its first list, and not after a restart.
#[tokio::test]
async fn a_tool_of_the_program_is_never_replaced() {
    let folder = folder();
    let manifest = server(folder.path(), "memory", &[tool("search"), tool("more")]);
    let manifest: Manifest = toml::from_str(&manifest).unwrap();
    for round in ["the first list", "a restart"] {
        let program = Catalog::builder().tool(MemorySearch::new(["buy milk"]));
        let catalog = program.build().unwrap();
        let own = catalog.get("memory.search").unwrap().tool().clone();
        let upstreams = Upstreams::prepare(&manifest, folder.path()).unwrap();
        let others: Vec<Arc<dyn DynTool>> = vec![own.clone()];
        for tool in upstreams.tools_beside(&others).unwrap() {
            catalog.add(tool).unwrap();
        }
        for _ in 0..2 {
            let limit = std::time::Duration::from_mins(1);
            upstreams.discover(&catalog, limit).await;
            let there = catalog.get("memory.search").unwrap();
            assert!(Arc::ptr_eq(there.tool(), &own), "{round}");
            assert!(catalog.get("memory.more").is_some(), "{round}");
        }
        let told = left_out(&upstreams, "memory");
        assert_eq!(told.len(), 1, "{round}: {told:?}");
        assert_eq!(told[0].tool, "search");
        assert!(told[0].why.contains("registered already"), "{told:?}");
        upstreams.close().await;
    }
}

/// Two servers whose tools have one provider name: the first of the configuration has it, also where it answers last.
#[tokio::test]
async fn a_provider_name_belongs_to_the_first_of_the_configuration() {
    let folder = folder();
    let first = server(folder.path(), "git_hub", &[tool("push")]);
    let second = server(folder.path(), "git", &[tool("hub_push"), tool("log")]);
    let world = World::unasked(folder, &format!("{first}{second}"));
    let limit = std::time::Duration::from_mins(1);
    // Only the second has answered, as far as the catalog knows.
    let later = world.upstreams.server("git").unwrap();
    let pin = world.upstreams.proposed("git").await.unwrap();
    later.approve(pin);
    let tools = world.upstreams.tools().unwrap();
    let names: Vec<String> = tools.iter().map(|it| it.spec().name.to_string()).collect();
    assert_eq!(names, ["git.log"]);
    assert!(left_out(&world.upstreams, "git")[0].why.contains("git_hub"));

    world.upstreams.discover(&world.catalog, limit).await;
    assert_eq!(world.names(), ["git.log", "git_hub.push"]);
    let found = world.catalog.get("git_hub_push").unwrap();
    assert_eq!(found.name().as_str(), "git_hub.push");
    let told = left_out(&world.upstreams, "git");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].why.contains("which is that of git_hub.push"),
        "{told:?}"
    );
    world.upstreams.close().await;
}

/// A tool that cannot be used is left out, at the first list, after a restart and in declarations; the others of its server and of others
/// are there, and the approval shows it.
#[tokio::test]
async fn a_list_that_is_partly_wrong_stops_nobody() {
    let schema = |own: Value| json!({"type": "object", "properties": {"x": own}});
    let with = |name: &str, own: Value| json!({"name": name, "description": "d", "inputSchema": schema(own)});
    let tools = [
        with("reference", json!({"$ref": "#/nope"})),
        with("pattern", json!({"type": "string", "pattern": "("})),
        tool("a.b"),
        tool("a_b"),
        tool("good"),
    ];
    let folder = folder();
    let bad = server(folder.path(), "bad", &tools);
    let fine = server(folder.path(), "fine", &[tool("one")]);
    let manifest = format!("{bad}{fine}");
    let expected = ["bad.a.b", "bad.good", "fine.one"];
    let mut world = World::unasked(folder, &manifest);
    for round in ["the first list", "a restart"] {
        world.ask().await;
        assert_eq!(world.names(), expected, "{round}");
        let told = left_out(&world.upstreams, "bad");
        let told: Vec<&str> = told.iter().map(|own| own.tool.as_str()).collect();
        assert_eq!(told, ["a_b", "pattern", "reference"], "{round}");
        world.upstreams.close().await;
        world = World::unasked(world.folder, &manifest);
        assert_eq!(world.names(), expected, "{round}");
    }
    let pin = world.upstreams.proposed("bad").await.unwrap();
    let told = world.upstreams.unusable("bad", &pin);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[2].why.contains("bad.reference"), "{told:?}");
    approve(&world.upstreams, "bad").await;
    world.upstreams.close().await;

    let manifest: Manifest = toml::from_str(&manifest).unwrap();
    let pins = countersign_upstream::mcp::pins::Pins::read(world.folder.path()).unwrap();
    let declared = Upstreams::declared(&manifest, &pins, &[]).unwrap();
    let names: Vec<String> = declared
        .iter()
        .map(|it| it.spec().name.to_string())
        .collect();
    assert_eq!(names, expected);
}

/// A configuration without a folder of its own is in the current one, and a child starts there.
#[tokio::test]
async fn a_child_starts_where_there_is_no_folder() {
    let folder = folder();
    let manifest = server(folder.path(), "here", &[tool("one")]);
    let manifest: Manifest = toml::from_str(&manifest).unwrap();
    let upstreams = Upstreams::prepare(&manifest, Path::new("")).unwrap();
    let pin = upstreams.proposed("here").await.unwrap();
    assert_eq!(pin.tools.len(), 1);
    upstreams.close().await;
}
