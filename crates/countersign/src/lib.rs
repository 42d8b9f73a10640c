//! The crate that a tool author adds: declare a tool, put it into a catalog, run calls through one
//! executor that cannot fail.
//!
//! Read the modules in this order:
//!
//! 1. [`tool`]: what people write; [`args`]: how its parameters are declared;
//! 2. [`context`]: what a running call knows;
//! 3. [`catalog`]: which tools there are; [`alias`]: their names in front of a provider;
//! 4. [`executor`]: the life of a call, one function on one screen;
//! 5. [`principal`], [`authorize`], [`limit`], [`approve`], [`store`], [`clock`], [`ids`]: what the
//!    executor is given, each with an implementation in memory;
//! 6. [`dialect`]: the same tools in front of every provider; [`session`] and [`history`]: a model's
//!    calls from its words to what the conversation keeps of them;
//! 7. [`adapter`], [`redact`], [`sample`]: what surrounds it.
//!
//! # Example
//!
//! ```
//! use countersign::{CallContext, Catalog, Executor, Principal, Tool, ToolArgs, ToolCall, ToolError};
//!
//! #[derive(serde::Deserialize, ToolArgs)]
//! struct GreetArgs {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! struct Greet;
//!
//! impl Tool for Greet {
//!     const NAME: &'static str = "sample.greet";
//!     const DESCRIPTION: &'static str = "Greets somebody.";
//!     type Args = GreetArgs;
//!     type Output = String;
//!
//!     async fn call(&self, _: &CallContext, args: GreetArgs) -> Result<String, ToolError> {
//!         Ok(format!("hello {}", args.name))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let executor = Executor::new(Catalog::builder().tool(Greet).build()?);
//! let call = ToolCall::new("sample.greet", r#"{"name": "Ada"}"#, Principal::user("u_1"));
//! let reply = executor.execute(call).await;
//! assert_eq!(reply.data, "hello Ada");
//! # Ok::<(), countersign::catalog::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Code made by `#[derive(ToolArgs)]` names this crate from outside; inside it needs the same name.
extern crate self as countersign;

pub mod adapter;
pub mod alias;
pub mod approve;
pub mod args;
pub mod authorize;
pub mod cancel;
pub mod catalog;
pub mod clock;
pub mod context;
mod defaults;
pub mod dialect;
pub mod executor;
pub mod extensions;
pub mod history;
pub mod ids;
pub mod limit;
pub mod principal;
pub mod redact;
pub mod sample;
pub mod session;
pub mod store;
pub mod tool;
pub mod unavailable;

pub use countersign_args::Arguments;
pub use countersign_contract as contract;
pub use countersign_macros::ToolArgs;

pub use args::{ArgType, ArgValue, Attachment, ToolArgs, Uri};
pub use catalog::Catalog;
pub use context::CallContext;
pub use executor::{Executor, ToolCall};
pub use principal::Principal;
pub use tool::{DryRun, DynTool, Reply, Tool, ToolError};

/// A boxed future that may be sent between threads: what object-safe traits return.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What generated code refers to; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use countersign_contract as contract;
    pub use serde_json;
}
