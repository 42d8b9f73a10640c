//! Verifying the whole log.
