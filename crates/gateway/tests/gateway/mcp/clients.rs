//! Real clients: the Python packages `mcp` and `fastmcp`, in both eras, and those of the providers.

use std::process::Command;

use countersign::{CallContext, Tool, ToolArgs, ToolError, tool};
use serde::Deserialize;

use crate::world::World;

/// A tool that reports its progress.
pub(crate) struct Count;

#[derive(Deserialize, ToolArgs)]
pub(crate) struct CountArgs {
    /// How far to count.
    #[arg(max = 100)]
    to: u32,
}

impl Tool for Count {
    const NAME: &'static str = "test.count";
    const DESCRIPTION: &'static str = "Counts.";
    type Args = CountArgs;
    type Output = u32;

    async fn call(&self, ctx: &CallContext, args: CountArgs) -> Result<u32, ToolError> {
        for done in 1..=args.to {
            let total = f64::from(args.to);
            ctx.progress(f64::from(done), Some(total), format!("at {done}"));
            // So that a report is sent before the next one is made.
            tokio::task::yield_now().await;
        }
        Ok(args.to)
    }
}

#[tokio::test]
async fn clients_from_elsewhere_work() {
    let world = World::start().await;
    let catalog = world.gateway.executor().catalog();
    catalog.add(tool::erase(Count).unwrap()).unwrap();
    run("clients.py", world.url("/mcp")).await;
}

/// B15: the providers' own types build the messages and parse the answers.
#[tokio::test]
async fn the_providers_own_packages_understand_us() {
    let world = World::start().await;
    run("providers.py", world.url("")).await;
}

/// Runs a script against a server; its last line says that it succeeded.
async fn run(script: &str, url: String) {
    let python = std::env::var("COUNTERSIGN_TEST_MCP_PYTHON").expect(
        "COUNTERSIGN_TEST_MCP_PYTHON names a Python with the packages of xtask/src/clients.rs; \
         `cargo xtask test` makes one in target/test-mcp-python",
    );
    let script = format!("{}/tests/clients/{script}", env!("CARGO_MANIFEST_DIR"));
    let run = move || Command::new(python).args([script, url]).output();
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let written = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{written}\n{said}");
    assert_eq!(written.lines().last(), Some("ok"));
}
