use countersign::ToolArgs;
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// Twice optional.
    a: Option<Option<u8>>,
    /// Holes.
    b: Vec<Option<u8>>,
    /// A table.
    c: Vec<Vec<String>>,
    /// Lists by name.
    d: HashMap<String, Vec<u8>>,
    /// Holes by name.
    e: Option<HashMap<String, Option<u8>>>,
    /// Itself.
    f: Vec<Args>,
}

fn main() {}
