use countersign::ToolArgs;
use serde::Deserialize;

type Cents = u32;
type Tags = Vec<String>;

#[derive(Deserialize, ToolArgs)]
enum Currency {
    Eur,
    Cny,
}

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// Beyond the type.
    #[arg(default = -1)]
    price: Cents,
    /// A number has no length.
    #[arg(max_length = 3)]
    total: Cents,
    /// Not a list.
    #[arg(example = "a")]
    tags: Tags,
    /// A list has no smallest number.
    #[arg(min = 1)]
    more: Tags,
    /// Beyond the type.
    #[arg(max = 5_000_000_000)]
    huge: Cents,
    /// Not whole.
    #[arg(min = 0.5)]
    half: Cents,
    /// Not a member.
    #[arg(default = "USD")]
    currency: Currency,
    /// Not a list.
    #[arg(min_items = 1)]
    one: Currency,
    /// Not a text.
    #[arg(default = 1)]
    other: Option<Currency>,
    /// Not an enum.
    #[arg(case = "exact")]
    exact: Cents,
    /// Not an integer.
    #[arg(truncate)]
    cut: Currency,
}

fn main() {}
