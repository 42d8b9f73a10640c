//! Evidence.
