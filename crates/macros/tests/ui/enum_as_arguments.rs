use countersign::ToolArgs;
use serde::Deserialize;

#[derive(Deserialize, ToolArgs)]
enum Speed {
    Slow,
    Fast,
}

fn declare<T: ToolArgs>() {}

fn speed() {
    declare::<Speed>();
}

fn main() {}
