//! Countersign as a server: tools over HTTP and MCP, for callers who prove who they are.
//!
//! Everything that decides about a call is in [`countersign::Executor`]; this crate turns what arrives
//! on a wire into a [`countersign::ToolCall`] and the reply envelope into what the wire expects.
//!
//! | module | what is in it |
//! |---|---|
//! | [`gateway`] | what all routes share: executor, archive, identity, bounds |
//! | [`caller`] | who sent a request, as its credential proved |
//! | [`identity`] | credentials: what they prove, and how a missing one is answered |
//! | [`policy`] | who may call what: the policy file |
//! | [`recorder`] | records of what the operator changes |
//! | [`metrics`] | what is counted, and `GET /metrics` |
//! | [`routes`] | which path goes where |
//! | [`settings`] | the bounds of everything that arrives |

pub mod caller;
pub mod gateway;
pub mod identity;
pub mod policy;
pub mod recorder;
pub mod metrics;
pub mod routes;
pub mod settings;

pub use caller::Caller;
pub use gateway::Gateway;
pub use settings::Settings;
