use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Args {
    query: String,
    ///
    limit: u32,
    /// Fine.
    page: u32,
}

fn main() {}
