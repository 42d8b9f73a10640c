//! The declaration as a page for people (B18).
