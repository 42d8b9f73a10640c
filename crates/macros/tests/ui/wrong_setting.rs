use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// A text.
    #[arg(min = 1, min_items = 1)]
    query: String,
    /// A number.
    #[arg(max_length = 3, pattern = "^a", case = "exact")]
    limit: u32,
    /// A flag.
    #[arg(truncate)]
    flag: bool,
    /// Unknown.
    #[arg(minimum = 1)]
    depth: u32,
    /// Twice.
    #[arg(min = 1, min = 2)]
    width: u32,
    /// Both.
    #[arg(strict, lenient)]
    height: u32,
    /// Unknown word.
    #[arg(sensitive = "private")]
    name: String,
    /// Unknown word.
    #[arg(case = "upper")]
    word: String,
    /// Unknown word.
    #[arg(on_optional_error = "ignore")]
    since: Option<u32>,
}

#[derive(Deserialize, ToolArgs)]
#[arg(case = "exact")]
struct Exact {
    /// Fine.
    name: String,
}

#[derive(Deserialize, ToolArgs)]
enum Token {
    #[arg(name = "a")]
    A,
}

fn main() {}
