//! Conditions of rules: expressions in CEL over a call (`args.total > 10000 && principal.type == 'agent'`).
//!
//! The crate `cel` reads the text; everything else is here, because a policy needs what it does not have. An expression
//! is lowered (`lower`) to a small closed tree, checked (`check`) against the declaration of every tool that its rule
//! matches, and evaluated (`eval`) with exact numbers and with money that knows its currency. Each of these is bounded:
//! bytes, nesting and nodes of the text, steps of an evaluation. There are no loops but `all` and `exists` over one
//! list, which do not nest.
//!
//! A condition that cannot be decided is an error, never `false`.

mod check;
mod doubt;
mod eval;
mod functions;
mod literals;
mod lower;
mod schema;
mod tree;

use std::sync::Arc;

use countersign::authorize::Facts;
use countersign::contract::ToolSpec;

pub use eval::{Failed, Steps};
use tree::{Needs, Node, Root};

/// Maximum length of an expression in bytes.
pub const BYTES_MAX: usize = 2048;

/// Maximum nesting of an expression: brackets of the text, and nodes of the tree.
pub const DEPTH_MAX: usize = 32;

/// Maximum number of nodes of an expression.
pub const NODES_MAX: usize = 256;

/// Maximum number of steps of an evaluation.
pub const STEPS_MAX: usize = 10_000;

/// Maximum number of steps of all rules that are decided for a call at one stage. A file that is full of conditions which look at
/// no list stays below it.
pub const CALL_STEPS_MAX: usize = 300_000;

/// An expression that can be decided for a call.
///
/// # Example
///
/// ```
/// use countersign_gateway::policy::condition::Condition;
///
/// assert!(Condition::parse("args.total > 10000 && args.currency == 'EUR'").is_ok());
/// let wrong = Condition::parse("args.total >").unwrap_err();
/// assert_eq!(wrong.offset, 12);
/// ```
#[derive(Debug, Clone)]
pub struct Condition {
    source: Arc<str>,
    root: Arc<Node>,
    needs: Needs,
}

/// A mistake in an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Wrong {
    /// Its place in the expression, in bytes.
    pub offset: usize,
    /// Description of the mistake.
    pub message: String,
}

impl Wrong {
    fn at(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
        }
    }
}

impl Condition {
    /// Reads an expression. What depends on the declaration of a tool is left to [`check`](Self::check).
    pub fn parse(source: &str) -> Result<Self, Wrong> {
        let root = lower::lower(source)?;
        check::without_tools(&root)?;
        Ok(Self {
            source: source.into(),
            needs: root.needs(),
            root: Arc::new(root),
        })
    }

    /// Checks the expression against the tools that its rule matches.
    ///
    /// A member of `args` has to be declared by every one of them. If only some declare it, or if it may be left out,
    /// the expression has to ask with `has(…)`, which is false where it is not there; a member that none of them
    /// declares is a mistake all the same.
    pub fn check(&self, tools: &[&ToolSpec]) -> Result<(), Wrong> {
        check::against(&self.root, tools)
    }

    /// Checks the expression against a tool that has changed since its rule was accepted, or that has arrived since.
    ///
    /// A tool that was there `before` has to declare what it declared then: `has(…)` would be false for every call of it, and
    /// the rule would be open. For a new tool, one of the tools that the rule matches has to declare each member; they are asked for
    /// only if the tool itself does not.
    pub(super) fn check_later<'t>(
        &self,
        tool: &ToolSpec,
        before: Option<&ToolSpec>,
        matched: &dyn Fn() -> Vec<&'t ToolSpec>,
    ) -> Result<(), Wrong> {
        check::later(&self.root, tool, before, matched)
    }

    /// Decides the condition for a call.
    pub fn holds(&self, facts: &Facts<'_>) -> Result<bool, Failed> {
        self.holds_within(facts, &Steps::default())
    }

    /// Decides the condition for a call, as one of several that may take so many steps together.
    pub fn holds_within(&self, facts: &Facts<'_>, together: &Steps) -> Result<bool, Failed> {
        eval::holds(&self.root, facts, together, true)
    }

    /// Decides the condition for a call whose scopes are not known.
    pub fn holds_without_scopes(&self, facts: &Facts<'_>) -> Result<bool, Failed> {
        eval::holds(&self.root, facts, &Steps::default(), false)
    }

    /// Returns the place of the part for which the condition holds for no call of these tools; `None` if it may hold. The names of
    /// the upstreams are those that there are; `None` if they are not known.
    pub(super) fn never_holds(
        &self,
        tools: &[&ToolSpec],
        upstreams: Option<&[&str]>,
    ) -> Option<usize> {
        let mut places = tools
            .iter()
            .map(|tool| doubt::never(&self.root, tool, upstreams));
        let first = places.next()??;
        places.all(|place| place.is_some()).then_some(first)
    }

    /// Returns a currency that the condition names beside the order of a plain number, with its place, if none of the others says
    /// anything about calls in another one.
    pub(super) fn one_currency<'c>(
        &'c self,
        mut others: impl Iterator<Item = &'c Self>,
    ) -> Option<(&'c str, usize)> {
        let found = doubt::one_currency(&self.root)?;
        let is_covered = others.any(|other| doubt::looks_at_others(&other.root, found.path));
        (!is_covered).then_some((found.code, found.at))
    }

    /// True if it looks at nothing but the tool and the type of the caller, or, if that is known, at the actor.
    pub(super) fn looks_at_kind_only(&self, knows_actor: bool) -> bool {
        let mut is_only = true;
        self.root.walk(&mut |node| {
            if let Some(path) = node.path() {
                let member = path.members.first().map(String::as_str);
                is_only &= match (&path.root, member) {
                    (Root::Tool, _) | (Root::Principal, Some("type")) => true,
                    (Root::Principal, Some("actor")) => knows_actor,
                    _ => false,
                };
            }
        });
        is_only
    }

    /// Returns the expression as it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// True if it looks at the arguments.
    pub fn needs_arguments(&self) -> bool {
        self.needs == Needs::Arguments
    }

    /// True if it can be decided for a list of tools: it looks at nothing that only a call has.
    pub fn needs_no_call(&self) -> bool {
        self.needs == Needs::Nothing
    }
}

/// Checks a JSON pointer against the arguments that a tool declares. What the declaration leaves open is not a mistake.
pub(super) fn check_pointer(tool: &ToolSpec, pointer: &str) -> Result<(), String> {
    check::pointer(tool, pointer)
}

/// The currency that a tool declares beside an amount, as JSON pointers.
pub(super) fn currency_beside(tool: &ToolSpec, amount: &str) -> Option<String> {
    check::currency_beside(tool, amount)
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Condition {}
