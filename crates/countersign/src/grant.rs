//! Standing grants: a user's yes in advance, to one agent, within bounds.
//!
//! A call that has to be confirmed looks for a grant before its user is asked. A grant answers that question and nothing
//! else: what the policy denies stays denied, what needs two approvers is asked about, limits and budgets count as
//! always. What the user has answered about this very call goes first.
//!
//! A grant names its tools, and covers each as it was declared when the grant was made: a tool that changes is asked
//! about again. Its [condition](Language) is one of the policy's language, and has to hold for the bound arguments; one
//! that cannot be decided does not hold. It has an end, and it may have a number of calls and an amount a day.
//!
//! # Uses are counted in the commit
//!
//! Calls and amounts are counted in [pots](crate::ledger::Pots), as budgets are: reserved before the tool runs, and
//! spent or given back in the commit that settles the call. So calls of several processes never use a grant more often
//! than it allows, and a call that failed without an effect gives its use back.
//!
//! # Derived grants
//!
//! A grant may name a parent. Nothing of the parent is copied: a use looks at every grant up to the first one, all of
//! them have to cover the call, and all of them are charged. So a derived grant allows no more than its parent, and ends
//! with it.
//!
//! # Revocation
//!
//! A revoked grant covers no call that begins after it, and neither does what is derived from it. A call in progress whose
//! effect is in the store has read the documents of its grants, so its commit fails if one of them was revoked
//! meanwhile. An effect elsewhere is checked once more after its key was claimed; it cannot be called back after that.

use std::fmt;

use countersign_contract::ToolSpec;

pub use crate::authorize::Clause;

mod error;
mod fit;
mod kept;
mod list;
mod made;
mod record;
mod stored;

pub use error::{Error, Rule};
pub(crate) use fit::{Fit, Sought};
pub use list::Wanted;
pub(crate) use stored::pointers;
pub use stored::{COLLECTION, StoredGrants};

/// The language of conditions. The edge that has a policy brings its own.
pub trait Language: fmt::Debug + Send + Sync {
    /// Reads a condition, and checks it against the declarations of the tools that it is for, if some are given.
    fn read(&self, text: &str, tools: &[&ToolSpec]) -> Result<Box<dyn Clause>, Wrong>;

    /// True if the declaration of a tool has the argument that a JSON pointer leads to, or leaves it open.
    fn has(&self, tool: &ToolSpec, pointer: &str) -> bool;

    /// The JSON pointer to the currency that a tool declares beside an amount; `None` if it declares none.
    fn currency_beside(&self, tool: &ToolSpec, amount: &str) -> Option<String>;
}

/// A mistake in a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Wrong {
    /// Its place in the text, in bytes.
    pub offset: usize,
    /// Description of the mistake.
    pub message: String,
}

/// Maximum number of grants from a derived one up to the first.
pub const DEPTH_MAX: usize = 8;
