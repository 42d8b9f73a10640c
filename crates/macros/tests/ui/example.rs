use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// Above.
    #[arg(example = 51, max = 50)]
    limit: u32,
    /// Wrong literal.
    #[arg(example = true)]
    query: String,
    /// Not a map.
    #[arg(example = [1])]
    counts: std::collections::BTreeMap<String, u8>,
    /// Wrong value.
    #[arg(example = {"a": 1, "b": 1000})]
    more: std::collections::BTreeMap<String, u8>,
}

fn main() {}
