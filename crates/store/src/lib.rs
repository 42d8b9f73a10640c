//! The durable stores.
