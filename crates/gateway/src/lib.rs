//! Countersign as a server: tools over HTTP and MCP, for callers who prove who they are.
//!
//! Everything that decides about a call is in [`countersign::Executor`]; this crate turns what arrives
//! on a wire into a [`countersign::ToolCall`] and the reply envelope into what the wire expects.
//!
//! | module | what is in it |
//! |---|---|
//! | [`gateway`] | what all routes share: executor, archive, identity, bounds |
//! | [`caller`] | who sent a request, as its credential proved |
//! | [`health`] | whether the server can take calls |
//! | [`http`] | the routes of plain HTTP: calls, tools, records, evidence, the log |
//! | [`identity`] | credentials: what they prove, and how a missing one is answered |
//! | [`limits`] | the limits and budgets of the policy, in force |
//! | [`operator`] | the operator: how commands of this machine talk to a server that holds the store |
//! | [`policy`] | who may call what: the policy file |
//! | [`recorder`] | records of what the operator changes |
//! | [`metrics`] | what is counted, and `GET /metrics` |
//! | [`mcp`] | the Model Context Protocol, over HTTP and over standard input and output |
//! | [`routes`] | which path goes where |
//! | [`server`] | the socket: how many may be connected, how long they may take, and how it ends |
//! | [`settings`] | the bounds of everything that arrives |
//! | [`status`] | what there is and what is wrong, for those whom it concerns |
//! | [`telemetry`] | logs and traces |

mod cached;
pub mod caller;
mod detach;
pub mod gateway;
pub mod health;
pub mod http;
pub mod identity;
mod kept;
pub mod limits;
pub mod mcp;
pub mod metrics;
pub mod nearest;
pub mod operator;
pub mod policy;
mod quota;
pub mod recorder;
mod regular_file;
pub mod routes;
pub mod server;
pub mod settings;
pub mod status;
mod strict;
pub mod telemetry;
mod words;

pub use caller::Caller;
pub use gateway::Gateway;
pub use server::Server;
pub use settings::Settings;
