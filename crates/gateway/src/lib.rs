//! Countersign as a server: tools over HTTP and MCP, for authenticated callers.
//!
//! [`countersign::Executor`] makes all decisions about a call; this crate turns requests into
//! [`countersign::ToolCall`]s and reply envelopes into responses.
//!
//! | module | content |
//! |---|---|
//! | [`gateway`] | the parts that all routes share: executor, archive, identity, limits |
//! | [`attention`] | everything that needs a person now, and what settles it |
//! | [`caller`] | the sender of a request, as its credential proved |
//! | [`config_file`] | the status of the configuration file: the time since when it is in force, and refused versions |
//! | [`health`] | the readiness of the server |
//! | [`http`] | the routes of plain HTTP: calls, tools, records, evidence, the log |
//! | [`identity`] | credentials: what they prove, and the answer to a missing or wrong one |
//! | [`limits`] | the limits and budgets of the policy, in force |
//! | [`offer`] | the part of the catalog that a caller is shown: profiles, the facade, the size of answers |
//! | [`operator`] | the operator: access for commands of this machine to a server that holds the store |
//! | [`policy`] | the policy file: rights to call tools, issuers, limits |
//! | [`pulse`] | the last two hours in figures |
//! | [`recorder`] | records of the operator's changes |
//! | [`metrics`] | metrics, and `GET /metrics` |
//! | [`mcp`] | the Model Context Protocol, over HTTP and over standard input and output |
//! | [`routes`] | the routing of paths |
//! | [`server`] | the listening sockets: connection limits, timeouts, and shutdown |
//! | [`settings`] | the limits on everything that arrives |
//! | [`status`] | the state of the server and its problems, as far as they concern the caller |
//! | [`telemetry`] | logs and traces |
//! | [`witness`] | witnesses of logs: the ones that cosign this log, and one that cosigns others |

pub mod attention;
mod cached;
pub mod caller;
pub mod config_file;
mod detach;
pub mod gateway;
pub mod health;
pub mod http;
pub mod identity;
mod kept;
pub mod limits;
pub mod mcp;
pub mod metrics;
pub mod moment;
pub mod nearest;
pub mod notify;
pub mod offer;
pub mod operator;
pub mod policy;
pub mod pulse;
mod quota;
pub mod recorder;
mod regular_file;
pub mod routes;
pub mod server;
pub mod settings;
pub mod status;
mod strands;
mod strict;
pub mod telemetry;
pub mod witness;
mod words;

pub use caller::Caller;
pub use gateway::Gateway;
pub use server::Server;
pub use settings::Settings;
