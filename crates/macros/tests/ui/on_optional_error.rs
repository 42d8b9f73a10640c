use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// Required.
    #[arg(on_optional_error = "tell")]
    query: String,
    /// A required list.
    #[arg(on_optional_error = "tell")]
    tags: Vec<String>,
    /// Required and refused anyway.
    #[arg(on_optional_error = "refuse")]
    name: String,
    /// Fine.
    #[arg(on_optional_error = "tell")]
    since: Option<u32>,
    /// Fine.
    #[arg(default = 3, on_optional_error = "tell")]
    limit: u32,
    /// Fine.
    #[serde(default)]
    #[arg(on_optional_error = "tell")]
    places: Vec<String>,
}

fn main() {}
