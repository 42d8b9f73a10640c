use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
struct Args {
    /// The machine's.
    a: usize,
    /// The machine's.
    b: Vec<isize>,
    /// Too wide.
    c: u128,
    /// One letter.
    d: char,
    /// Borrowed.
    e: &'static str,
    /// Three.
    f: [u8; 3],
    /// Two.
    g: (u8, u8),
    /// Anything.
    h: serde_json::Value,
}

fn main() {}
