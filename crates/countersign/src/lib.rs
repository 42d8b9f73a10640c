//! The crate that a tool author adds: declare a tool, put it into a catalog, run calls through one
//! executor that cannot fail.
//!
//! Read the modules in this order:
//!
//! 1. [`tool`]: the trait that tool authors implement; [`args`]: the declaration of its parameters;
//! 2. [`context`]: the context of a running call; [`state`]: the tool's state; [`text`]: full-text search;
//!    [`progress`]: progress reports;
//! 3. [`catalog`]: the registered tools; [`alias`]: their names for providers;
//! 4. [`executor`]: the life of a call, one function on one screen;
//! 5. [`principal`], [`authorize`], [`limit`], [`approve`], [`grant`], [`ledger`], [`clock`], [`ids`]: the parts that the
//!    executor is given, each with an implementation in memory; [`observe`]: observers of answered calls;
//! 6. [`dialect`]: the same tools in every provider's format; [`session`] and [`history`]: a model's
//!    calls, from its message to the history of the conversation;
//! 7. [`sequencer`]: the signer of the log; [`archive`]: the operations of operators and auditors on it;
//! 8. [`adapter`], [`redact`], [`sample`], [`seat`]: helpers around it.
//!
//! # Example
//!
//! A tool is a struct, its arguments are another, and the reply of a call is always an envelope:
//!
//! ```
//! use countersign::contract::ErrorCode;
//! use countersign::schemars::{self, JsonSchema};
//! use countersign::{CallContext, Catalog, Executor, Principal, Tool, ToolArgs, ToolCall, ToolError};
//!
//! #[derive(serde::Deserialize, ToolArgs)]
//! struct QuoteArgs {
//!     /// Stock keeping unit of the item.
//!     #[arg(example = "SKU-1042")]
//!     sku: String,
//!     /// How many; the model may send "3".
//!     #[arg(default = 1, min = 1)]
//!     quantity: u32,
//! }
//!
//! #[derive(serde::Serialize, JsonSchema)]
//! struct Quote {
//!     total_cents: u32,
//! }
//!
//! struct GetQuote;
//!
//! impl Tool for GetQuote {
//!     const NAME: &'static str = "pricing.get_quote";
//!     const DESCRIPTION: &'static str = "The price of an item now.";
//!     type Args = QuoteArgs;
//!     type Output = Quote;
//!
//!     async fn call(&self, _: &CallContext, args: QuoteArgs) -> Result<Quote, ToolError> {
//!         if args.sku != "SKU-1042" {
//!             return Err(ToolError::not_found("there is no such item").field("/sku"));
//!         }
//!         Ok(Quote { total_cents: 250 * args.quantity })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let catalog = Catalog::builder().tool(GetQuote).build()?;
//! let executor = Executor::new(catalog); // in memory; `Executor::builder` takes other parts
//!
//! // What a model wrote: bound to the declared types, and the reply says what was changed.
//! let written = r#"{"sku": "SKU-1042", "quantity": "3"}"#;
//! let call = ToolCall::new("pricing.get_quote", written, Principal::user("u_1"));
//! let reply = executor.execute(call).await; // never an Err
//! assert_eq!(reply.data["total_cents"], 750);
//! assert_eq!(reply.warnings[0].code(), "TEXT_TO_INTEGER");
//!
//! // What went wrong is in the reply as well: a closed code, and what to do.
//! let written = r#"{"sku": "SKU-1042", "quantitty": 3}"#;
//! let call = ToolCall::new("pricing.get_quote", written, Principal::user("u_1"));
//! let error = executor.execute(call).await.error.unwrap();
//! assert_eq!(error.code, ErrorCode::InvalidArgument);
//! assert_eq!(error.details.issues[0].suggestion.as_deref(), Some("did you mean \"quantity\"?"));
//! # Ok::<(), countersign::catalog::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Code made by `#[derive(ToolArgs)]` names this crate from outside; inside it needs the same name.
extern crate self as countersign;

pub mod adapter;
mod again;
pub mod alias;
pub mod approve;
pub mod archive;
pub mod args;
pub mod authorize;
pub mod believed;
pub mod budget;
pub mod cancel;
pub mod catalog;
pub mod clock;
mod consent;
pub mod context;
mod defaults;
pub mod denials;
pub mod dialect;
pub mod dialogue;
pub mod effects;
pub mod executor;
pub mod extensions;
pub mod grant;
pub mod history;
pub mod ids;
pub mod ledger;
pub mod limit;
pub mod newest;
pub mod observe;
pub mod offer;
mod output;
pub mod pattern;
mod payload;
pub mod principal;
pub mod progress;
pub mod realm;
pub mod recording;
pub mod redact;
pub mod replay;
pub mod retention;
pub mod rules;
pub mod sample;
pub mod scribe;
pub mod seat;
pub mod sequencer;
pub mod session;
pub mod state;
pub mod text;
pub mod tool;
pub mod unavailable;
pub mod vault;
mod visible;
mod words;

pub use countersign_args::{Arguments, Unreadable};
pub use countersign_contract as contract;
pub use countersign_macros::ToolArgs;
pub use schemars;

pub use args::{ArgType, ArgValue, Attachment, ToolArgs, Uri};
pub use catalog::Catalog;
pub use context::CallContext;
pub use effects::Effects;
pub use executor::{Executor, ToolCall};
pub use principal::{Credential, Principal};
pub use tool::{DryRun, DynTool, Question, Reconciled, Reply, Tool, ToolError};

/// A boxed future that may be sent between threads: what object-safe traits return.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Re-exports for generated code; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use countersign_contract as contract;
    pub use serde_json;
}

/// The guide for tool authors is compiled and run as it stands.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-tool.md")]
struct AddingATool;

/// So is the page about old handlers.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-old-handlers.md")]
struct FromOldHandlers;

/// So is the page about approvals.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/approvals.md")]
struct AboutApprovals;
