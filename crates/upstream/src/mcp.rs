//! MCP servers as upstreams: at an address, or as children of the gateway. The protocol itself is `rmcp`'s, and no type of it leaves
//! this folder.
//!
//! | file | what is in it |
//! |---|---|
//! | `server` | one server while the gateway runs: what it lists, what was approved of that |
//! | `definition`, `pins` | a tool as a server defines it, the approved ones, and what has changed |
//! | `follow`, `shelf` | the list of a server, kept up to date in a catalog; which of the tools can be there |
//! | `import` | servers that another client knows, as entries |
//! | `tool`, `exchange` | the whole call on one screen, and its attempts |
//! | `reconcile` | the look-up of a call whose answer was lost |
//! | `answer`, `fault`, `trouble` | what came back, and what went wrong |
//! | `reach`, `pool`, `connection`, `client` | connections, one a user |
//! | `alone` | a call that needs no connection, at a server of the newest era |
//! | `offers` | resources, prompts and completions |
//! | `scrub` | what a server says, without the gateway's own secrets |
//! | `digits` | numbers that would lose digits on their way |
//! | `talk` | questions of a server, brought to the caller |
//! | `wire`, `child` | what a connection goes over: HTTP, or the pipes of a child |

mod alone;
mod answer;
mod child;
mod client;
mod connection;
mod definition;
mod digits;
mod exchange;
mod fault;
pub(crate) mod follow;
pub mod import;
mod offers;
pub mod pins;
mod pool;
mod reach;
mod reconcile;
mod server;
pub(crate) mod shelf;
mod talk;
mod tool;
mod trouble;
mod watches;
mod wire;

pub use definition::{Definition, Hints, tool_name};
pub use follow::{FirstUse, Following, Witness};
pub use server::{LeftOut, NotListed, Server, Standing, State};
pub use tool::McpTool;

/// Prefix of our own members of `_meta`: those of the envelope, as another Countersign gateway reads them.
const VENDOR: &str = "dev.countersign/";

/// Member of `_meta` with the time at which the caller stops waiting. It is not a member of the envelope.
const DEADLINE: &str = "dev.countersign.call/deadline";
