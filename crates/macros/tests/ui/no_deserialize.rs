use countersign::ToolArgs;

#[derive(ToolArgs)]
struct Args {
    /// What to look for.
    query: String,
}

fn main() {}
