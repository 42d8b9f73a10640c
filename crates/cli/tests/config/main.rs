//! `countersign.toml` as its users write it: one file for every command, tools of a service behind it, values with their
//! origins, and no secret in any output.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod layers;
mod published;
mod recordings;
mod running;
mod secrets;
mod service;
mod tools;
mod world;
