//! `[server]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Listen, Pause, Period, WebUrl};

/// The address of the server and the limits on everything that it receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Address and port to listen on; a port alone means 127.0.0.1. Port 0 takes any free port. An address that other
    /// machines reach needs credentials.
    #[schemars(extend("x-flag" = "--listen"))]
    pub listen: Listen,
    /// Address under which clients reach the server, such as `https://tools.example.com`, if it differs from
    /// `listen`, for example behind a proxy.
    #[schemars(extend("x-flag" = "--public-url"))]
    pub public_url: Option<WebUrl>,
    /// Lets programs on this machine call without a credential, even if keys or issuers are configured.
    #[schemars(extend("x-flag" = "--allow-anonymous-loopback"))]
    pub allow_anonymous_loopback: bool,
    /// Maximum size of a request body, in bytes.
    #[schemars(range(min = 1024))]
    pub body_bytes_max: usize,
    /// Maximum memory for all request bodies that are being received, in bytes.
    #[schemars(range(min = 1024))]
    pub arriving_bytes_max: usize,
    /// Maximum size of a request head (request line and headers), in bytes.
    #[schemars(range(min = 1024))]
    pub head_bytes_max: usize,
    /// Maximum number of connections. A further connection waits until another one closes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_max: usize,
    /// Maximum number of connections of one address, and never more than three quarters of all. Further ones wait
    /// until one of that address closes. IPv6 addresses count by their first 64 bits. Behind a proxy, all callers
    /// have one address.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_peer_max: usize,
    /// Maximum number of open requests of one caller, and never more than three quarters of the connections. A
    /// further request is refused with `RATE_LIMITED`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_caller_max: usize,
    /// Maximum number of running calls. A further call is refused with `RATE_LIMITED`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub calls_max: usize,
    /// Maximum number of running calls of one caller.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub calls_per_caller_max: usize,
    /// Maximum number of waiting calls: for a call with the same key, for a person, or for a free slot. A waiting
    /// call does not count as running.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub waiting_calls_max: usize,
    /// Maximum number of waiting calls of one caller.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub waiting_calls_per_caller_max: usize,
    /// Number of threads that serve connections. Without it, as many as the machine has processors.
    #[schemars(range(min = 1, max = 1024))]
    pub threads: Option<usize>,
    /// Time that a client has to send a head or a body, and to receive its answer.
    pub read_timeout: Period,
    /// Minimum speed of a body, in bytes per second, after `body_grace`.
    pub body_bytes_per_second_min: usize,
    /// Time during which a body may be slower than `body_bytes_per_second_min`.
    pub body_grace: Period,
    /// Cache time of the store's figures in `/metrics` and `/readyz`.
    pub store_figures_interval: Period,
    /// Time during which a server that was told to stop still accepts calls while `/readyz` already answers 503, so that a load
    /// balancer sends the next calls elsewhere. Set it to more than the balancer's check interval.
    pub drain_notice: Pause,
    /// Time that running calls have to finish when the server stops.
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
            threads: None,
            read_timeout: Period::from_secs(10),
            body_bytes_per_second_min: 1024,
            body_grace: Period::from_secs(2),
            store_figures_interval: Period::from_secs(1),
            drain_notice: Pause::from_mins(0),
            drain: Period::from_secs(30),
        }
    }
}
