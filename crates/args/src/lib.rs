//! Lenient in, strict out: a model's argument text bound to declared types.

mod arguments;
mod binder;

pub use arguments::Arguments;
pub use binder::{Binder, Bound, Limits, Reading, SchemaError};
