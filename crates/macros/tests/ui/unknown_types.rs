use countersign::ToolArgs;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

#[derive(Deserialize)]
struct Plain;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// Derives nothing.
    a: Plain,
    /// Anything.
    b: Value,
    /// Anything by name.
    c: HashMap<String, Value>,
    /// Named by numbers.
    d: HashMap<u8, u8>,
    /// Boxed.
    e: Box<String>,
}

fn main() {}
