//! HTTP services as upstreams.
//!
//! `plan` knows where each argument goes (`style`, `body` write it), `service` is one upstream while the gateway runs, `send` makes
//! the attempts, `answer` reads what came back and `fault` maps what went wrong; `tool` is the whole call on one screen.

mod answer;
mod auth;
mod body;
mod breaker;
mod fault;
mod guard;
mod identity;
mod node;
mod pages;
mod plan;
mod reconcile;
mod send;
mod service;
mod style;
mod tool;

pub use guard::Refused;
pub use service::{Service, ServiceError};
pub use tool::{HttpTool, ToolFault};
