//! Limits on everything that arrives, and the public addresses of the server.

use std::time::Duration;

use crate::offer::OfferRules;

/// Settings of a server. The defaults are for one machine with a few hundred callers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address by which clients reach the server, such as `https://tools.example.com`; `None` if it is the
    /// address that it listens on.
    pub public_url: Option<String>,
    /// Page on which a user answers approvals, such as `https://tools.example.com/approvals/{id}`; `{id}` is
    /// replaced. MCP clients that act for an agent are sent there, if they can open a page.
    pub approvals_url: Option<String>,
    /// Page on which a user looks at a checkout and continues it, such as
    /// `https://shop.example.com/orders/{id}`; `{id}` is replaced. Sessions in the form of a standard
    /// ([`crate::http::interop`]) link to it.
    pub checkout_url: Option<String>,
    /// Maximum size of a request body, in bytes.
    pub body_bytes_max: usize,
    /// Maximum bytes in memory of all bodies that still arrive.
    pub arriving_bytes_max: usize,
    /// Maximum size of a request's head: its line and all headers.
    pub head_bytes_max: usize,
    /// Maximum number of connections.
    pub connections_max: usize,
    /// Maximum number of connections of one address, but never more than three quarters of all; its others wait
    /// until one of its own ends. IPv6 addresses count by their first 64 bits. Behind a proxy all callers have
    /// one address.
    pub connections_per_peer_max: usize,
    /// Maximum number of open requests of one caller, but never more than three quarters of the connections;
    /// one more is refused with `RATE_LIMITED`.
    pub requests_per_caller_max: usize,
    /// Maximum number of running calls; one more is refused with `RATE_LIMITED`.
    pub calls_max: usize,
    /// Maximum number of running calls of one caller.
    pub calls_per_caller_max: usize,
    /// Maximum number of calls that wait for others: for a call with the same key, for a person, for their
    /// turn. While they wait they do not count as running.
    pub waiting_calls_max: usize,
    /// Maximum number of waiting calls of one caller.
    pub waiting_calls_per_caller_max: usize,
    /// Maximum number of sessions for MCP clients of the eras before 2026-07-28. With 0, the default, each of
    /// their requests stands alone and any replica can answer it; with more, the server can ask a client back,
    /// but the client has to return to the same process.
    pub mcp_sessions_max: usize,
    /// Maximum number of open streams of MCP clients that listen, but never more than a quarter of the
    /// connections: each stream holds one. One more is refused with HTTP 429.
    pub mcp_streams_max: usize,
    /// Maximum number of such streams of one caller; as many as there are sessions if that is more.
    pub mcp_streams_per_caller_max: usize,
    /// True if MCP clients also find the fixtures of the official conformance suite. Never for real use.
    pub conformance: bool,
    /// Number of threads that serve connections, each with a runtime of its own. With 0, the default, connections are served by the
    /// runtime that runs the server.
    pub threads: usize,
    /// Time limit for a client to send a head or a body.
    pub read_timeout: Duration,
    /// Minimum speed of a body in bytes a second, after its first [`body_grace`](Self::body_grace).
    pub body_bytes_per_second_min: usize,
    /// Time for which a body may arrive more slowly.
    pub body_grace: Duration,
    /// Time for which `/metrics` and `/readyz` use the cached figures of the store.
    pub store_figures_interval: Duration,
    /// Time for which calls are still accepted after the server was told to stop, while `/readyz` answers 503.
    pub drain_notice: Duration,
    /// Time limit for running calls after the server was told to stop.
    pub drain: Duration,
    /// The tools and answers that callers are shown, when the server starts.
    pub offers: OfferRules,
}

impl Settings {
    /// Returns the maximum number of connections of one address. The rest is left for others, whatever the
    /// settings say.
    pub(crate) fn connections_of_peer(&self) -> usize {
        let most = self.connections_max - self.connections_max / 4;
        self.connections_per_peer_max.clamp(1, most.max(1))
    }

    /// Returns the maximum number of open requests of one caller. The rest is left for others, whatever the
    /// settings say.
    pub(crate) fn requests_of_caller(&self) -> usize {
        let most = self.connections_max - self.connections_max / 4;
        self.requests_per_caller_max.clamp(1, most.max(1))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            public_url: None,
            approvals_url: None,
            checkout_url: None,
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
            mcp_sessions_max: 0,
            mcp_streams_max: 256,
            mcp_streams_per_caller_max: 16,
            conformance: false,
            threads: 0,
            read_timeout: Duration::from_secs(10),
            body_bytes_per_second_min: 1024,
            body_grace: Duration::from_secs(2),
            store_figures_interval: Duration::from_secs(1),
            drain_notice: Duration::ZERO,
            drain: Duration::from_secs(30),
            offers: OfferRules::default(),
        }
    }
}
