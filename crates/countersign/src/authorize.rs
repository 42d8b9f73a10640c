//! Authorization of a principal to call a tool. One decision for listing and calling: what is listed may be called.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::{ToolName, ToolSpec, Wording};
use serde::Deserialize;

use crate::BoxFuture;
use crate::principal::Principal;
use crate::unavailable::Unavailable;
use crate::words::Say;

mod condition;

pub use condition::{
    Clause, Conditions, Denial, Facts, Judgement, Outcome, Ruled, Stage, When, is_exact,
};

/// The policy. It sees the principal and the tool, so that a list and a call cannot be answered differently. Rules that
/// look at more come with the decision, as [`Conditions`]: they only make a decision stricter.
pub trait Authorizer: Send + Sync + 'static {
    /// Decides for one principal and one tool.
    fn decide<'a>(
        &'a self,
        principal: &'a Principal,
        tool: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>>;
}

/// Decision of a policy, and its revision.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Revision of the policy; it is part of the record and of the log.
    pub policy_revision: Arc<str>,
    /// True if the user has to confirm the call, whatever the tool declares (A13).
    pub must_confirm: bool,
    /// Validity of an approval of the call; `None` for the executor's setting.
    pub approval_valid_for: Option<Duration>,
    /// True if two different approvers have to confirm the call.
    pub four_eyes: bool,
    /// Cool-down about the tool in a session after the user has denied a call; `None` for the executor's setting, zero
    /// for none.
    pub cool_down: Option<Duration>,
    /// The rule for a write without a key; `None` for the executor's own.
    pub unkeyed_writes: Option<UnkeyedWrites>,
    /// The time within which a repeat counts as the same call; `None` for [`DERIVE_WINDOW`].
    pub unkeyed_window: Option<Duration>,
    /// Rules for this tool that look at the call; `None` if there are none. They belong to the same revision.
    pub conditions: Option<Arc<dyn Conditions>>,
}

/// The default window of [`UnkeyedWrites::Derive`]: longer than clients wait for an answer.
pub const DERIVE_WINDOW: Duration = Duration::from_mins(2);

/// The rule for a write without a key (A5). If the policy has none, a key is [derived](UnkeyedWrites::Derive) for a
/// model's call, and a program's call is [allowed](UnkeyedWrites::Allow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnkeyedWrites {
    /// The same call within the window gets the first answer, with a warning.
    Derive,
    /// The call is refused.
    Refuse,
    /// The call is made, each time.
    Allow,
}

/// The three verdicts of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call is allowed.
    Allow,
    /// A credential, or a stronger one, is needed first.
    Unauthorized {
        /// The next step for the caller.
        hint: Wording,
    },
    /// The call is forbidden.
    Forbid {
        /// The next step for the caller.
        hint: Wording,
    },
}

impl Decision {
    /// True if the call is allowed.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// A policy that allows everything: for tests, samples and a newcomer's first minutes.
#[derive(Debug)]
pub struct AllowAll {
    revision: Arc<str>,
}

impl AllowAll {
    /// A policy that allows everything.
    pub fn new() -> Self {
        Self {
            revision: "allow-all".into(),
        }
    }
}

impl Default for AllowAll {
    fn default() -> Self {
        Self::new()
    }
}

impl Authorizer for AllowAll {
    fn decide<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let decision = Decision {
            verdict: Verdict::Allow,
            policy_revision: self.revision.clone(),
            must_confirm: false,
            approval_valid_for: None,
            four_eyes: false,
            cool_down: None,
            unkeyed_writes: None,
            unkeyed_window: None,
            conditions: None,
        };
        Box::pin(std::future::ready(Ok(decision)))
    }
}

/// An allow-list: a caller with one of a tool's scopes may call the tool. A tool that is not on the list is denied to
/// all callers.
///
/// # Example
///
/// ```
/// use countersign::authorize::Rules;
/// use countersign::contract::ToolName;
///
/// let rules = Rules::new("2026-11-15")
///     .allow(ToolName::new("memory.search")?, "memory:read")
///     .allow(ToolName::new("memory.search")?, "admin");
/// # Ok::<(), countersign::contract::id::InvalidId>(())
/// ```
#[derive(Debug)]
pub struct Rules {
    revision: Arc<str>,
    scopes: BTreeMap<ToolName, BTreeSet<String>>,
}

impl Rules {
    /// An empty list: nothing may be called.
    pub fn new(revision: impl Into<Arc<str>>) -> Self {
        Self {
            revision: revision.into(),
            scopes: BTreeMap::new(),
        }
    }

    /// Allows callers with this scope to call the tool.
    pub fn allow(mut self, tool: ToolName, scope: impl Into<String>) -> Self {
        self.scopes.entry(tool).or_default().insert(scope.into());
        self
    }

    fn verdict(&self, principal: &Principal, tool: &ToolName) -> Verdict {
        match self.scopes.get(tool) {
            Some(scopes) if scopes.iter().any(|scope| principal.holds(scope)) => Verdict::Allow,
            Some(scopes) => {
                let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
                Verdict::Forbid {
                    hint: use_scope(&scopes),
                }
            }
            None => Verdict::Forbid {
                hint: Say::NoScope.into(),
            },
        }
    }
}

/// The hint for a tool that one of these scopes grants.
pub fn use_scope(scopes: &[&str]) -> Wording {
    match scopes {
        [scope] => Say::UseScope {
            scope: (*scope).to_owned(),
        },
        _ => Say::UseOneScope {
            scopes: scopes.join(", "),
        },
    }
    .into()
}

impl Authorizer for Rules {
    fn decide<'a>(
        &'a self,
        principal: &'a Principal,
        tool: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let decision = Decision {
            verdict: self.verdict(principal, &tool.name),
            policy_revision: self.revision.clone(),
            must_confirm: false,
            approval_valid_for: None,
            four_eyes: false,
            cool_down: None,
            unkeyed_writes: None,
            unkeyed_window: None,
            conditions: None,
        };
        Box::pin(std::future::ready(Ok(decision)))
    }
}
