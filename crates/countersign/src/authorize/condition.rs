//! Rules of a policy that look at one call: its caller, its session, its time, and its arguments once they are bound.
//!
//! A [`Decision`](super::Decision) brings them along, so that one revision of the policy decides a call from its first
//! step to its last. They never allow anything: what they add is a refusal, a question to the user or a second approver.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::{ToolSpec, Wording};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::executor::has_long_decimal;
use crate::principal::Principal;

/// The conditional rules of a policy for one tool.
pub trait Conditions: fmt::Debug + Send + Sync {
    /// Decides the rules of a stage. A rule that cannot be decided denies, except in a [listing](Stage::Listing).
    fn judge(&self, stage: Stage, facts: &Facts<'_>) -> Judgement;
}

/// The stages at which rules are decided. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A list of tools: only rules that need nothing of a call. A tool that a call may be refused for something else is
    /// listed.
    Listing,
    /// A call whose arguments are not bound yet: rules that do not need them.
    Call,
    /// A call with bound arguments: rules that need them.
    Arguments,
}

/// What a rule may look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The caller: with the actor that the call names, if it may name one.
    pub principal: &'a Principal,
    /// The caller as the credential proves it; `None` if the call names no other actor. A rule is decided for both, and the stricter
    /// decision counts: another name opens nothing.
    pub proved: Option<&'a Principal>,
    /// The user on whose behalf; `None` if a call has to name the user first.
    pub user_id: Option<&'a str>,
    /// The tool.
    pub tool: &'a ToolSpec,
    /// The upstream that the tool belongs to; `None` if it is a tool of the program itself.
    pub upstream: Option<&'a str>,
    /// Time of arrival.
    pub now: Timestamp,
    /// The session, if the call names one.
    pub session_id: Option<&'a str>,
    /// The currency of the envelope, if the call names one.
    pub currency: Option<&'a str>,
    /// True if nothing is to be changed.
    pub dry_run: bool,
    /// The bound arguments, with defaults; null before they are bound.
    pub arguments: &'a Value,
    /// True if every decimal number in the arguments is as it was sent; false if one has more digits than a double.
    pub is_exact: bool,
}

impl<'a> Facts<'a> {
    /// The call as each of its actors makes it: the named one, and the proved one if that is another.
    pub fn views(&self) -> impl Iterator<Item = Facts<'a>> + use<'a> {
        let own = Facts {
            proved: None,
            ..*self
        };
        let proved = self.proved.map(|principal| Facts { principal, ..own });
        std::iter::once(own).chain(proved)
    }
}

/// True if every decimal number of a JSON text has no more digits than every double keeps: [`Facts::is_exact`] of the text.
pub fn is_exact(json: &str) -> bool {
    !has_long_decimal(json)
}

/// A condition that was read.
pub trait Clause: Send + Sync {
    /// Decides the condition for a call; `None` if it cannot be decided.
    fn holds(&self, facts: &Facts<'_>) -> Option<bool>;
}

/// The condition of a limit or of a budget: only calls for which it holds are counted.
#[derive(Clone)]
pub struct When {
    source: Arc<str>,
    needs_arguments: bool,
    clause: Arc<dyn Clause>,
}

impl When {
    /// A condition, with its text.
    pub fn new(
        source: impl Into<Arc<str>>,
        needs_arguments: bool,
        clause: Arc<dyn Clause>,
    ) -> Self {
        Self {
            source: source.into(),
            needs_arguments,
            clause,
        }
    }

    /// The text of the condition.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// True if it looks at the arguments, so that it is decided after they are bound.
    pub fn needs_arguments(&self) -> bool {
        self.needs_arguments
    }

    /// True if the condition holds for one of the actors of a call; `None` if it cannot be decided.
    pub fn holds(&self, facts: &Facts<'_>) -> Option<bool> {
        let views = facts.views().map(|view| self.clause.holds(&view));
        views.reduce(|one, other| Some(one? | other?)).flatten()
    }

    /// True if the condition holds for every actor of a call; `None` if it cannot be decided.
    pub fn holds_for_all(&self, facts: &Facts<'_>) -> Option<bool> {
        let views = facts.views().map(|view| self.clause.holds(&view));
        views.reduce(|one, other| Some(one? & other?)).flatten()
    }
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("When").field(&self.source).finish()
    }
}

impl PartialEq for When {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for When {}

/// What the rules of a stage add to a decision.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    /// The refusal, if a rule denies the call or cannot be decided.
    pub denial: Option<Denial>,
    /// True if the user has to confirm the call.
    pub must_confirm: bool,
    /// True if two different approvers have to confirm the call.
    pub four_eyes: bool,
    /// The shortest validity of an approval in a rule that asks for one.
    pub approval_valid_for: Option<Duration>,
    /// Every rule that holds for the call, enforced or not, in the order of the policy.
    pub ruled: Vec<Ruled>,
}

/// The refusal by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Name of the rule.
    pub rule: Arc<str>,
    /// The next step for the caller.
    pub hint: Wording,
}

/// A rule that holds for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruled {
    /// Name of the rule.
    pub rule: Arc<str>,
    /// What the rule says.
    pub outcome: Outcome,
    /// False if the rule is only observed: it is recorded, and changes nothing.
    pub is_enforced: bool,
}

/// What a rule says about a call for which it holds. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The call is refused.
    Deny,
    /// The user confirms it.
    Confirm,
    /// Two different approvers confirm it.
    FourEyes,
    /// The rule could not be decided, so the call is refused.
    Failed,
}

impl Outcome {
    /// The word in records and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Confirm => "confirm",
            Self::FourEyes => "four_eyes",
            Self::Failed => "failed",
        }
    }
}

impl Ruled {
    /// The rule in the member `act` of a record: words of the policy, nothing of the call.
    pub(crate) fn recorded(&self) -> Value {
        let mut value = json!({"rule": &*self.rule, "then": self.outcome.as_str()});
        if !self.is_enforced
            && let Some(members) = value.as_object_mut()
        {
            members.insert("mode".to_owned(), "observe".into());
        }
        value
    }
}
