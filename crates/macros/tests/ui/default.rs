use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// Above.
    #[arg(default = 60, min = 1, max = 50)]
    limit: u32,
    /// Below.
    #[arg(default = 0.1, min = 0.5)]
    weight: f64,
    /// Beyond the type.
    #[arg(default = 256)]
    small: u8,
    /// Wrong literal.
    #[arg(default = "3")]
    count: Option<u32>,
    /// Wrong literal.
    #[arg(default = 3)]
    query: String,
    /// Wrong literal.
    #[arg(default = 1)]
    flag: bool,
    /// Wrong literal.
    #[arg(default = 3.5)]
    whole: i64,
    /// Not a list.
    #[arg(default = "a")]
    tags: Vec<String>,
    /// Wrong item.
    #[arg(default = ["a", 2])]
    more: Vec<String>,
    /// Too long.
    #[arg(default = "abcdef", max_length = 3)]
    code: String,
    /// Too few.
    #[arg(default = [], min_items = 1)]
    items: Vec<u8>,
    /// Two of them.
    #[arg(default = 1)]
    #[serde(default)]
    twice: u32,
    /// Not a value.
    #[arg(default = ten)]
    ten: u32,
    /// Too long for anything.
    #[arg(default = 18446744073709551616)]
    long: u64,
}

#[derive(Default, Deserialize, ToolArgs)]
#[serde(default)]
struct Filled {
    /// Two of them.
    #[arg(default = 1)]
    twice: u32,
}

fn main() {}
