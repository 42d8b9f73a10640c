//! `[server]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Listen, Period, WebUrl};

/// The address of the server, its name for clients, and the bounds of all that arrives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The address and port to listen on, or only the port on 127.0.0.1. A port of 0 takes any that is free.
    /// Addresses that others reach need credentials.
    #[schemars(extend("x-flag" = "--listen"))]
    pub listen: Listen,
    /// The address under which clients reach the server, such as `https://tools.example.com`, where that is another than
    /// `listen`: behind a proxy, for instance.
    #[schemars(extend("x-flag" = "--public-url"))]
    pub public_url: Option<WebUrl>,
    /// Lets programs on this machine in without a credential, also when there are keys or issuers.
    #[schemars(extend("x-flag" = "--allow-anonymous-loopback"))]
    pub allow_anonymous_loopback: bool,
    /// The longest request body, in bytes.
    #[schemars(range(min = 1024))]
    pub body_bytes_max: usize,
    /// The memory, in bytes, that all bodies together may take while they arrive.
    #[schemars(range(min = 1024))]
    pub arriving_bytes_max: usize,
    /// The longest head of a request, in bytes: its line and all headers.
    #[schemars(range(min = 1024))]
    pub head_bytes_max: usize,
    /// The most connections at once. One more waits until another ends.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_max: usize,
    /// The most connections of one address, but never more than three quarters of all. Its others wait until one of its own
    /// ends. IPv6 addresses count by their first 64 bits. Behind a proxy all callers have one address.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_peer_max: usize,
    /// The most requests of one caller that are open at once, but never more than three quarters of the connections. One
    /// more is refused with `RATE_LIMITED`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_caller_max: usize,
    /// The most calls that run at once. One more is refused with `RATE_LIMITED`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub calls_max: usize,
    /// The most calls of one caller that run at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub calls_per_caller_max: usize,
    /// The most calls that wait for others at once: for a call with the same key, for a person, for their turn. While they
    /// wait they do not count as running.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub waiting_calls_max: usize,
    /// The most calls of one caller that wait for others at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub waiting_calls_per_caller_max: usize,
    /// The time that a client has to send a head or a body, and to take its answer.
    pub read_timeout: Period,
    /// The least of a body, in bytes, that arrives in a second, after `body_grace`.
    pub body_bytes_per_second_min: usize,
    /// The time in which a body may arrive more slowly.
    pub body_grace: Period,
    /// The time for which `/metrics` and `/readyz` answer with what the store has said last.
    pub store_figures_interval: Period,
    /// The time that calls have to end after the server was told to stop.
    pub drain: Period,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            public_url: None,
            allow_anonymous_loopback: false,
            body_bytes_max: 1 << 20,
            arriving_bytes_max: 64 << 20,
            head_bytes_max: 16 << 10,
            connections_max: 1024,
            connections_per_peer_max: 768,
            requests_per_caller_max: 512,
            calls_max: 512,
            calls_per_caller_max: 256,
            waiting_calls_max: 512,
            waiting_calls_per_caller_max: 256,
            read_timeout: Period::from_secs(10),
            body_bytes_per_second_min: 1024,
            body_grace: Period::from_secs(2),
            store_figures_interval: Period::from_secs(1),
            drain: Period::from_secs(30),
        }
    }
}
