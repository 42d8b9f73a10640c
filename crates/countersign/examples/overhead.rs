//! The cost of a call besides its tool: a tool that does nothing, everything in memory.
//!
//! `cargo run --release -p countersign --example overhead`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use countersign::{CallContext, Catalog, Executor, Principal, Tool, ToolArgs, ToolCall, ToolError};

#[derive(serde::Deserialize, ToolArgs)]
struct NothingArgs {
    /// Some text.
    query: String,
}

struct Nothing;

impl Tool for Nothing {
    const NAME: &'static str = "sample.nothing";
    const DESCRIPTION: &'static str = "Does nothing.";
    type Args = NothingArgs;
    type Output = usize;

    async fn call(&self, _: &CallContext, args: NothingArgs) -> Result<usize, ToolError> {
        Ok(args.query.len())
    }
}

const ROUNDS: usize = 15;
const CALLS: u32 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let executor = Executor::new(Catalog::builder().tool(Nothing).build()?);
    let principal = Arc::new(Principal::user("u_1"));
    let raw: Arc<str> = r#"{"query":"milk"}"#.into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let mut rounds: Vec<u128> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            runtime.block_on(async {
                for _ in 0..CALLS {
                    let call = ToolCall::new("sample.nothing", raw.clone(), principal.clone());
                    let reply = executor.execute(call).await;
                    assert!(black_box(reply).ok);
                }
            });
            started.elapsed().as_nanos() / u128::from(CALLS)
        })
        .collect();
    rounds.sort_unstable();
    let at = |place: usize| rounds.get(place).copied().unwrap_or_default();
    eprintln!(
        "ns a call: best {}, median {}, worst {} ({ROUNDS} rounds of {CALLS} calls)",
        at(0),
        at(ROUNDS / 2),
        at(ROUNDS - 1),
    );
    Ok(())
}
