//! Tools of HTTP services, called through an executor over real sockets.

mod auth;
mod doubt;
mod faults;
mod guard;
mod headers;
mod pages;
mod placement;
mod service;
mod world;
