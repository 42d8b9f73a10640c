//! The evidence log without I/O.
