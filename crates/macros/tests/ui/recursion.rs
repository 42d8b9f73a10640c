use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Branch {
    /// More branches.
    leaves: Vec<Leaf>,
}

#[derive(Deserialize, ToolArgs)]
struct Leaf {
    /// Where it hangs.
    branches: Vec<Branch>,
}

fn main() {}
