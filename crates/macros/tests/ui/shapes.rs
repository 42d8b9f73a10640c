use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Tuple(String, u32);

#[derive(Deserialize, ToolArgs)]
struct Unit;

#[derive(Deserialize, ToolArgs)]
struct Generic<T> {
    /// Of any type.
    value: T,
}

#[derive(ToolArgs)]
union Either {
    whole: u32,
    decimal: f32,
}

#[derive(Deserialize, ToolArgs)]
enum Payment {
    Cash,
    Card { number: String },
    Transfer(String),
}

#[derive(Deserialize, ToolArgs)]
enum Never {}

fn main() {}
