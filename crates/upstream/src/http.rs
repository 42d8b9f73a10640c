//! HTTP services as upstreams.
//!
//! `plan` knows where each argument goes (`style`, `body` write it, `owned` keeps callers off the operator's names), `service` is one upstream while the gateway runs, `send` makes
//! the attempts, `answer` reads what came back and `fault` maps what went wrong; `tool` is the whole call on one screen.

pub(crate) mod answer;
pub(crate) mod auth;
pub(crate) mod backoff;
mod body;
pub(crate) mod breaker;
mod charset;
mod digits;
pub(crate) mod fault;
pub(crate) mod guard;
mod identity;
pub(crate) mod node;
pub(crate) mod owned;
mod pages;
pub(crate) mod plan;
mod reach;
pub(crate) mod reconcile;
mod send;
mod service;
mod style;
pub(crate) mod tool;

pub use guard::Refused;
pub use service::{Service, ServiceError};
pub use tool::{HttpTool, ToolFault};
