//! The tool layer for AI agents: declared tools, one executor, every provider.

// Code made by `#[derive(ToolArgs)]` names this crate from outside; inside it needs the same name.
extern crate self as countersign;

pub mod alias;
pub mod args;
pub mod dialect;

pub use args::{ArgType, ArgValue, Attachment, ToolArgs, Uri};
pub use countersign_contract as contract;
pub use countersign_macros::ToolArgs;

/// What generated code refers to; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use countersign_contract as contract;
    pub use serde_json;
}
