//! Real clients: the Python packages `mcp` and `fastmcp`, in both eras.

use std::process::Command;

use countersign::{CallContext, Tool, ToolArgs, ToolError, tool};
use serde::Deserialize;

use crate::world::World;

/// A tool that says how far it is.
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
    let python = std::env::var("COUNTERSIGN_TEST_MCP_PYTHON").expect(
        "COUNTERSIGN_TEST_MCP_PYTHON names a Python with the packages mcp and fastmcp; \
         `cargo xtask test` makes one in target/test-mcp-python",
    );
    let world = World::start().await;
    let catalog = world.gateway.executor().catalog();
    catalog.add(tool::erase(Count).unwrap()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/clients.py");
    let url = world.url("/mcp");
    let run = move || Command::new(python).args([script, &url]).output();
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let written = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{written}\n{said}");
    assert_eq!(written.lines().last(), Some("ok"));
}
