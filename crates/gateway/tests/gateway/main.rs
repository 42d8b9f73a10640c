//! The gateway from outside: a real server on a real socket. All tests are one program, because each program
//! takes long to link; there is one module for each subject.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod approvals;
mod big_catalog;
mod captured;
mod collector;
mod credentials;
mod denials;
mod downstream;
mod effects;
mod forgery;
mod grants;
mod http_calls;
mod http_client;
mod http_drain;
mod http_filters;
mod http_hostile;
mod http_lookup;
mod http_openapi;
mod http_providers;
mod http_records;
mod identity;
mod interop;
mod known_failures;
mod leaks;
mod limits;
mod logs;
mod mcp;
mod metrics;
mod notify;
mod operator;
mod panics;
mod parts;
mod policy;
mod realms;
mod receivers;
mod repeats;
mod review;
mod shares;
mod signer;
mod status;
mod tokens;
mod traces;
mod world;
