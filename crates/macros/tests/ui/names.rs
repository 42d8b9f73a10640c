use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// One.
    #[serde(rename = "id")]
    order: String,
    /// Two.
    id: String,
    /// Three.
    #[arg(alias = "id")]
    cart: String,
}

#[derive(Deserialize, ToolArgs)]
enum Folded {
    InApp,
    #[serde(rename = "in-app")]
    Application,
    #[serde(alias = "inapp")]
    Other,
}

fn main() {}
