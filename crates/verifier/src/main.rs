//! Checks an evidence bundle offline.

fn main() {}
