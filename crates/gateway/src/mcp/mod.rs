//! The Model Context Protocol: the same tools, for clients that speak it.
//!
//! One endpoint serves both eras: the stateless protocol of 2026-07-28 and the older ones that start
//! with `initialize`. The protocol itself is `rmcp`'s, and no type of it leaves this module; what a
//! call means is the executor's. In between:
//!
//! | file | what is in it |
//! |---|---|
//! | `http` | the endpoint: bounds and sessions |
//! | `stdio` | the same over standard input and output |
//! | `raw` | the text of the arguments, kept before it is parsed |
//! | `alone` | a `tools/call` that needs nothing of the protocol library |
//! | `handler` | which request goes where |
//! | `context` | the request that a message came with |
//! | `call` | a `tools/call` from its message to its result, with progress and cancellation |
//! | `carriage` | the envelope in `_meta` and headers, the reply as a result |
//! | `confirm` | what a user has to confirm, asked over the protocol |
//! | `tools` | declarations as clients see them, and the pages of their list |
//! | `changes` | notifications that the list of tools has changed |
//! | `evidence` | records as resources |
//! | `talk`, `parked`, `offers`, `sessions` | questions, resources and prompts of MCP servers behind the gateway |
//! | `conformance` | what the official test suite expects to find, off by default |
//!
//! See `docs/mcp.md` for what a client has to know.

mod alone;
mod call;
mod carriage;
mod changes;
mod clients;
mod confirm;
mod conformance;
mod context;
mod evidence;
mod handler;
mod http;
mod offers;
mod owners;
mod parked;
mod raw;
mod sessions;
mod stdio;
mod streams;
mod talk;
mod tasks;
mod tools;

pub use http::router;
pub use stdio::{StdioError, serve_stdio};

/// Path of the endpoint.
pub const PATH: &str = "/mcp";

/// The prefix of our own members of `_meta`.
const VENDOR: &str = "dev.countersign/";

/// The extension that says that the envelope travels in `_meta`.
const ENVELOPE_EXTENSION: &str = "dev.countersign/tool-envelope";
