use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Page {
    /// Which.
    page: u32,
}

fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    u32::deserialize(deserializer)
}

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// Inlined.
    #[serde(flatten)]
    page: Page,
    /// Read by hand.
    #[serde(deserialize_with = "text")]
    count: u32,
}

#[derive(Deserialize, ToolArgs)]
#[serde(tag = "type")]
enum Tagged {
    A,
    B,
}

#[derive(Deserialize, ToolArgs)]
#[serde(transparent)]
struct Name {
    /// The name.
    name: String,
}

#[derive(Deserialize, ToolArgs)]
enum Open {
    Known,
    #[serde(other)]
    Unknown,
}

fn main() {}
