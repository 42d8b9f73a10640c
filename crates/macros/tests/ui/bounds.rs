use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// Upside down.
    #[arg(min = 50, max = 1)]
    limit: u32,
    /// Upside down.
    #[arg(min_length = 10, max_length = 2)]
    query: String,
    /// Upside down.
    #[arg(min_items = 3, max_items = 2)]
    tags: Vec<String>,
    /// Beyond the type.
    #[arg(min = -1, max = 300)]
    small: u8,
    /// Not whole.
    #[arg(min = 0.5)]
    whole: i64,
    /// Not a number.
    #[arg(max = "ten")]
    words: i64,
}

fn main() {}
