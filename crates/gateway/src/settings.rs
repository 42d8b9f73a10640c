//! The bounds of everything that arrives, and the names under which the server is known.

use std::time::Duration;

/// What a server allows. The defaults are for one machine with a few hundred callers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Under which address clients reach us, such as `https://tools.example.com`; none where that is the
    /// address that we listen on.
    pub public_url: Option<String>,
    /// The page on which a user answers approvals, such as `https://tools.example.com/approvals/{id}`; `{id}` is
    /// replaced. MCP clients that act for an agent are sent there, where they can open a page.
    pub approvals_url: Option<String>,
    /// The page on which a user looks at a checkout and goes on with it, such as
    /// `https://shop.example.com/orders/{id}`; `{id}` is replaced. Sessions in the words of a standard
    /// ([`crate::http::interop`]) send them there.
    pub checkout_url: Option<String>,
    /// The longest request body.
    pub body_bytes_max: usize,
    /// How much of all bodies that still arrive may be in memory.
    pub arriving_bytes_max: usize,
    /// The longest head of a request: its line and all headers.
    pub head_bytes_max: usize,
    /// How many connections there may be.
    pub connections_max: usize,
    /// How many of them one address may have, but never more than three quarters; its others wait until one of its own
    /// ends. IPv6 addresses count by their
    /// first 64 bits. Behind a proxy all callers have one address.
    pub connections_per_peer_max: usize,
    /// How many requests of one caller may be open at once, but never more than three quarters of the connections;
    /// one more is refused with `RATE_LIMITED`.
    pub requests_per_caller_max: usize,
    /// How many calls may run at once; one more is refused with `RATE_LIMITED`.
    pub calls_max: usize,
    /// How many of them one caller may have.
    pub calls_per_caller_max: usize,
    /// How many calls may wait for others at once: for a call with the same key, for a person, for their turn. While
    /// they wait they do not count as running.
    pub waiting_calls_max: usize,
    /// How many of them one caller may have.
    pub waiting_calls_per_caller_max: usize,
    /// How many MCP clients of the eras before 2026-07-28 may hold a session. With none, the default, each
    /// of their requests stands alone and any replica can answer it; with some, a client can be asked
    /// back, but has to come back to the same process.
    pub mcp_sessions_max: usize,
    /// How many streams of MCP clients that listen may be open, but never more than a quarter of the
    /// connections: each of them holds one. One more is refused with HTTP 429.
    pub mcp_streams_max: usize,
    /// How many of them one caller may have; as many as there are sessions where that is more.
    pub mcp_streams_per_caller_max: usize,
    /// Whether MCP clients also find the fixtures of the official conformance suite. Never for real use.
    pub conformance: bool,
    /// How long a client may take to send a head or a body.
    pub read_timeout: Duration,
    /// The least that arrives of a body in a second, after its first [`body_grace`](Self::body_grace).
    pub body_bytes_per_second_min: usize,
    /// For how long a body may arrive more slowly.
    pub body_grace: Duration,
    /// For how long `/metrics` and `/readyz` answer with what the store has said last.
    pub store_figures_interval: Duration,
    /// How long calls may go on after the server was told to stop.
    pub drain: Duration,
}

impl Settings {
    /// The connections of one address. The rest is left for others, whatever the settings say.
    pub(crate) fn connections_of_peer(&self) -> usize {
        let most = self.connections_max - self.connections_max / 4;
        self.connections_per_peer_max.clamp(1, most.max(1))
    }

    /// The open requests of one caller. The rest is left for others, whatever the settings say.
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
            read_timeout: Duration::from_secs(10),
            body_bytes_per_second_min: 1024,
            body_grace: Duration::from_secs(2),
            store_figures_interval: Duration::from_secs(1),
            drain: Duration::from_secs(30),
        }
    }
}
