//! Servers that are made with the libraries that most servers are made with: `FastMCP` in Python, and the SDK of TypeScript.

use countersign::{Principal, ToolCall, progress};
use serde_json::json;

use crate::world::{World, folder, told};

fn set(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set; `cargo xtask test` installs what it names, see xtask/src/clients.rs")
    })
}

fn script(name: &str) -> String {
    format!("{}/tests/mcp/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A server of `FastMCP`, as a child.
pub(crate) fn fastmcp() -> String {
    let (python, script) = (
        set("COUNTERSIGN_TEST_MCP_PYTHON"),
        script("fastmcp_server.py"),
    );
    format!(
        "[[upstream]]\nname = 'fast'\nkind = 'mcp'\ntrust = 'first_use'\nconnections.start_ms = 120000\n\
         command = ['{python}', '{script}']\n"
    )
}

/// A server of the TypeScript SDK, as a child.
pub(crate) fn typescript() -> String {
    let (folder, script) = (set("COUNTERSIGN_TEST_MCP_NODE"), script("sdk_server.mjs"));
    format!(
        "[[upstream]]\nname = 'ts'\nkind = 'mcp'\ntrust = 'first_use'\nconnections.start_ms = 120000\n\
         command = ['node', '{script}', '{folder}']\n"
    )
}

/// Their tools are listed with their prefixes, and structured answers, texts, errors and progress come back as they were given.
#[tokio::test]
async fn servers_of_the_usual_libraries_are_called() {
    let manifest = format!("{}{}", fastmcp(), typescript());
    let world = World::new(folder(), &manifest).await;
    let state = |name: &str| world.upstreams.server(name).unwrap().state();
    assert_eq!(
        world.names(),
        [
            "fast.add",
            "fast.fail",
            "fast.greet",
            "fast.steps",
            "ts.add",
            "ts.ask",
            "ts.fail",
            "ts.greet",
            "ts.steps"
        ],
        "{:?} {:?}",
        state("fast"),
        state("ts")
    );
    for server in ["fast", "ts"] {
        let sum = world
            .data(&format!("{server}.add"), r#"{"a": 2, "b": "3"}"#)
            .await;
        assert_eq!(sum, json!({"sum": 5}), "{server}");
        let greeted = world
            .data(&format!("{server}.greet"), r#"{"name": "Ann"}"#)
            .await;
        assert_eq!(greeted, json!("hello Ann"), "{server}");
        let failed = world
            .call(&format!("{server}.fail"), r#"{"why": "no stock"}"#)
            .await;
        let expected =
            format!("UPSTREAM_ERROR: the tool of the upstream {server} answered with an error");
        assert!(told(&failed).starts_with(&expected), "{}", told(&failed));
        let quoted = &failed.error.as_ref().unwrap().details.extra["upstream_message"];
        assert!(quoted.as_str().unwrap().contains("no stock"), "{quoted}");
        let (sink, mut reports) = progress::channel();
        let name = format!("{server}.steps");
        let call = ToolCall::new(name, r#"{"count": 2}"#, Principal::user("ann")).extension(sink);
        let reply = world.executor.execute(call).await;
        assert_eq!(told(&reply), "ok \"done\" ", "{server}");
        let mut steps = Vec::new();
        while let Ok(report) = reports.try_recv() {
            steps.push((report.done, report.total, report.message));
        }
        let step = |done: f64| (done, Some(2.0), Some(format!("step {done}")));
        assert_eq!(steps, [step(1.0), step(2.0)], "{server}");
    }
    world.upstreams.close().await;
}
