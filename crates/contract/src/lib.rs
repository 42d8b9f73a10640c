//! Every type of Countersign that crosses a process boundary.
//!
//! Nothing here does I/O, reads a clock or draws randomness: `now` and ids are arguments, so replay and tests are exact. Read the modules
//! in this order:
//!
//! 1. [`envelope`]: what a call carries in and what its reply carries out;
//! 2. [`error_code`]: the thirteen codes, closed; [`error`]: the body around a code;
//! 3. [`tool`] and [`parameter`]: how a tool declares itself; [`schema`]: the JSON Schema made from it;
//! 4. [`issue`]: what the binder changed or refused, machine readable;
//! 5. [`canonical`] and [`digest`]: the bytes that are hashed, and the hash;
//! 6. [`record`]: what stays behind of every call; [`evidence`]: what the log keeps of it;
//! 7. [`approval`]: a question that a person answers before a call runs; [`grant`]: an answer in advance, within bounds;
//!    [`recording`]: calls and their answers in a file;
//! 8. [`id`], [`trace`], [`freshness`]: the small types inside those; [`language`]: messages in English
//!    and Chinese; [`markdown`]: a tool's page for people.
//!
//! # Example
//!
//! A tool is declared once, as data; the schema that a model sees is made from that:
//!
//! ```
//! use countersign_contract::{Input, Parameter, ToolName, ToolSpec, ValueKind};
//!
//! let sku = Parameter::new("sku", ValueKind::String, "Stock keeping unit of the item.");
//! let spec = ToolSpec::new(ToolName::new("pricing.get_quote")?, "The price of an item now.")
//!     .input(Input::parameters([sku]));
//! let schema = spec.input.json_schema();
//! assert_eq!(schema["properties"]["sku"]["type"], "string");
//! # Ok::<(), countersign_contract::id::InvalidId>(())
//! ```
//!
//! A reply is one shape, whether it worked or not, and an error always says whether a retry is safe:
//!
//! ```
//! use countersign_contract::{ErrorCode, ReplyEnvelope};
//!
//! fn should_retry(reply: &ReplyEnvelope) -> bool {
//!     reply.error.as_ref().is_some_and(|error| error.details.retryable)
//! }
//! assert_eq!(ErrorCode::RateLimited.http_status(), 429);
//! ```

pub mod approval;
pub mod canonical;
#[cfg(feature = "schemars")]
pub mod contracts;
pub mod digest;
pub mod envelope;
pub mod error;
pub mod error_code;
pub mod evidence;
pub mod freshness;
pub mod grant;
pub mod id;
pub mod issue;
pub mod language;
pub mod markdown;
pub mod parameter;
pub mod record;
pub mod recording;
pub mod schema;
pub mod tool;
pub mod trace;

pub use approval::{Approval, ApprovalDecision, ApprovalState};
pub use digest::Digest;
pub use envelope::{Actor, ActorType, Evidence, ReplyEnvelope, RequestEnvelope, Source, Warning};
pub use error::{ConflictReason, ErrorBody, ErrorDetails, FaultSource};
pub use error_code::{ErrorCode, Retry};
pub use evidence::{EvidenceRecord, RecordKind, Retention};
pub use grant::{Grant, GrantState, NewGrant};
pub use id::{RequestId, SnapshotId, ToolName};
pub use issue::{BindStatus, Issue, IssueCode, Severity};
pub use language::{Language, Message, Wording};
pub use parameter::{AllowedValues, Cardinality, CaseRule, Parameter, ValueKind};
pub use record::CallRecord;
pub use tool::{Behaviour, Effect, Input, ToolSpec};
pub use trace::{TraceContext, TraceState};
