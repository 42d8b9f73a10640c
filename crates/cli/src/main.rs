//! The countersign command.
fn main() {}
