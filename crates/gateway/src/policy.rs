//! The policy file: rights to call tools, trusted issuers, limits and budgets.
//!
//! A listing and a call use the same decision, and its revision is in every record. A call must satisfy every
//! rule that matches its tool, so a further rule never allows more than before, and their order does not
//! matter. Sections and an example are in `docs/identity.md`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign::authorize::{
    Authorizer, Conditions, Decision, Outcome, Ruled, Verdict, use_scope,
};
use countersign::contract::{Actor, ActorType, Digest, ToolSpec, Wording};
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Principal};

use crate::words::Say;
use counted::CountedConditions;
use place::Places;
use rules::CallRules;

mod again;
pub mod condition;
mod counted;
mod error;
mod explain;
mod file;
mod fitted;
mod granted;
mod issuer;
pub mod limits;
mod live;
mod place;
mod recorded;
mod report;
mod review;
mod rules;
mod schema;
mod value;

pub use again::{Omitted, PastCall};
pub use counted::Written;
pub use error::PolicyError;
pub use explain::{Explained, Explanation, Ruling};
pub use file::{
    AgentRule, Approvals, CallRule, ConfirmRule, Defaults, Mode, Name, PolicyFile, Then, ToolRule,
    Unlisted,
};
pub use fitted::Misfit;
pub use granted::GrantConditions;
pub(crate) use issuer::is_private;
pub use issuer::{IssuerRule, JwksSource, is_built_in};
pub use live::{Keeper, LivePolicy, Rejection, Reloaded};
pub use recorded::RecordedRule;
pub use report::{ReportedRule, RuleReport};
pub use review::{
    OTHERS, PolicyWarning, Review, ReviewedAgent, ReviewedBreaker, ReviewedBudget,
    ReviewedCondition, ReviewedLimit, ReviewedRule, ReviewedScope, ReviewedSpender, ReviewedTool,
    Suspect,
};
pub use schema::schema;
pub use value::{Glob, Pause, Period, ScopeName};

/// Maximum size of a policy file in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// A policy that is in force, or could be.
///
/// # Example
///
/// ```
/// use countersign_gateway::policy::Policy;
///
/// let policy = Policy::parse(r#"
///     revision = "2026-11"
///     [[tools]]
///     match = "notes.*"
///     scopes = ["notes:write"]
///     confirm = "always"
/// "#)?;
/// assert!(policy.revision().starts_with("2026-11@"));
/// assert!(policy.demands_confirmation("notes.add"));
///
/// let wrong = Policy::parse("[[tools]]\nmatches = \"notes.*\"").unwrap_err();
/// assert_eq!((wrong.line, wrong.column), (2, 1));
/// # Ok::<(), countersign_gateway::policy::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    revision: Arc<str>,
    text: Arc<str>,
    digest: Option<Digest>,
    file: PolicyFile,
    places: Arc<Places>,
    /// The entries `[[rules]]`, ready to be decided.
    rules: Arc<CallRules>,
    /// The conditions of limits and budgets.
    counted: Arc<CountedConditions>,
}

impl Policy {
    /// Returns the policy that allows every call: used while there is no file.
    pub fn allow_all() -> Self {
        let file = PolicyFile {
            defaults: Defaults {
                unlisted: Unlisted::Allow,
                ..Defaults::default()
            },
            ..PolicyFile::default()
        };
        Self {
            revision: "allow-all".into(),
            text: "".into(),
            digest: None,
            file,
            places: Arc::default(),
            rules: Arc::default(),
            counted: Arc::default(),
        }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        live::read(path)
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(PolicyError::too_large());
        }
        let file: PolicyFile =
            toml::from_str(text).map_err(|error| PolicyError::of(text, &error))?;
        // A file that an editor has emptied and not yet written is not a policy.
        if toml::from_str(text).is_ok_and(|table: toml::Table| table.is_empty()) {
            return Err(PolicyError::empty());
        }
        Self::checked(file, text, text, Places::of(text))
    }

    /// Reads the table `policy` of a larger file, with paths relative to this folder. Mistakes are reported
    /// with their place in that file; digest and text are those of the table alone, so that nothing else in the
    /// file changes them.
    pub fn within(text: &str, folder: &Path) -> Result<Self, PolicyError> {
        #[derive(serde::Deserialize)]
        struct Around<T> {
            policy: T,
        }
        let wrong = |error: toml::de::Error| PolicyError::of(text, &error);
        let file: Around<PolicyFile> = toml::from_str(text).map_err(wrong)?;
        let table: Around<toml::Table> = toml::from_str(text).map_err(wrong)?;
        if table.policy.is_empty() {
            return Err(PolicyError::empty());
        }
        let own = toml::to_string(&table.policy).unwrap_or_default();
        if own.len() > FILE_BYTES_MAX {
            return Err(PolicyError::too_large());
        }
        let mut policy = Self::checked(file.policy, &own, text, Places::within(text))?;
        policy.files_are_in(folder);
        Ok(policy)
    }

    /// Checks a file; `text` is its own text, and `source` the one that it was read from.
    fn checked(
        file: PolicyFile,
        text: &str,
        source: &str,
        places: Places,
    ) -> Result<Self, PolicyError> {
        realms_are_said(&file.issuers)?;
        confirmations_are_asked(&file.tools)?;
        let rules = CallRules::of(&file.rules, &places)?;
        let counted = CountedConditions::of(&file, source)?;
        let digest = Digest::of_bytes(text.as_bytes());
        let hex = digest.to_string();
        let hex = hex.trim_start_matches("sha256:");
        let short = hex.get(..REVISION_DIGITS).unwrap_or(hex);
        let name = file.revision.as_ref().map_or("policy", |name| &**name);
        Ok(Self {
            revision: format!("{name}@{short}").into(),
            digest: Some(digest),
            text: text.into(),
            file,
            places: Arc::new(places),
            rules: Arc::new(rules),
            counted: Arc::new(counted),
        })
    }

    /// Returns the name in records: the file's own revision, and the start of the file's digest.
    pub fn revision(&self) -> &Arc<str> {
        &self.revision
    }

    /// Returns the digest of the file's bytes; `None` if there is no file.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns the text of the file; empty if there is no file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parsed file.
    pub fn file(&self) -> &PolicyFile {
        &self.file
    }

    /// True if the user has to confirm each call of this tool, whatever the tool itself says.
    pub fn demands_confirmation(&self, tool: &str) -> bool {
        let mut rules = self.rules_of(tool);
        rules.any(|rule| rule.confirm == Some(ConfirmRule::Always))
    }

    /// Returns the time for which an approval of this tool can be given and used: the shortest one in a rule
    /// for it or in the whole file.
    fn approval_valid_for(&self, tool: &str) -> Option<Duration> {
        let rules = self.rules_of(tool).filter_map(|rule| rule.valid_for);
        let all = rules.chain(self.file.approvals.valid_for);
        all.map(Period::duration).min()
    }

    /// Returns the scopes of each rule that a principal does not meet: one of each list is needed. Empty if no
    /// scope is missing, even if the call is forbidden for another reason.
    pub fn missing_scopes(&self, principal: &Principal, tool: &str) -> Vec<&[ScopeName]> {
        let rules = self.rules_of(tool);
        let unmet = rules.filter(|rule| is_unmet(rule, principal));
        unmet.map(|rule| rule.scopes.as_slice()).collect()
    }

    /// Returns one scope of each rule for a tool: one that the principal holds, or else the first of the rule.
    pub fn scopes_for(&self, principal: &Principal, tool: &str) -> Vec<&str> {
        let mut scopes: Vec<&str> = Vec::new();
        for rule in self.rules_of(tool) {
            let held = rule.scopes.iter().find(|scope| principal.holds(scope));
            if let Some(scope) = held.or(rule.scopes.first())
                && !scopes.contains(&&**scope)
            {
                scopes.push(scope);
            }
        }
        scopes
    }

    /// Returns the first scope of each rule: enough for every tool, and no more than that.
    pub fn usual_scopes(&self) -> Vec<&str> {
        let mut scopes: Vec<&str> = Vec::new();
        for scope in self
            .file
            .tools
            .iter()
            .filter_map(|rule| rule.scopes.first())
        {
            if !scopes.contains(&&**scope) {
                scopes.push(scope);
            }
        }
        scopes
    }

    /// Returns every scope that some rule names, once, in the order of the file.
    pub fn scopes(&self) -> Vec<&str> {
        let mut scopes: Vec<&str> = Vec::new();
        for scope in self.file.tools.iter().flat_map(|rule| &rule.scopes) {
            if !scopes.contains(&&**scope) {
                scopes.push(scope);
            }
        }
        scopes
    }

    /// Checks the conditions of rules, limits and budgets against the declarations of the tools that they match.
    pub fn fits(&self, tools: &[&ToolSpec]) -> Result<(), PolicyError> {
        self.rules.fit(tools)?;
        self.counted.fit(tools)
    }

    fn decision(&self, principal: &Principal, tool: &ToolSpec) -> Decision {
        match self.file.mode {
            Mode::Enforce => self.enforced(principal, tool),
            // Only what [approvals] says stays: an entry that is observed changes no answer.
            Mode::Observe => Decision {
                verdict: Verdict::Allow,
                policy_revision: self.revision.clone(),
                must_confirm: false,
                approval_valid_for: self.file.approvals.valid_for.map(Period::duration),
                four_eyes: false,
                cool_down: self.file.approvals.cool_down.map(Pause::duration),
                unkeyed_writes: None,
                unkeyed_window: None,
                conditions: Some(self.observed(principal, tool)),
            },
        }
    }

    /// What the entries without conditions would do to a call, as rules that are only observed.
    fn observed(&self, principal: &Principal, tool: &ToolSpec) -> Arc<dyn Conditions> {
        let refusal = self.refusal(principal, tool);
        let refused = refusal.map(|(_, ground)| (self.entry_of(ground).1, Outcome::Deny));
        let asked =
            self.file.tools.iter().enumerate().filter(|(_, rule)| {
                rule.confirm.is_some() && rule.tool.matches(tool.name.as_str())
            });
        let asked = asked.map(|(index, rule)| {
            let outcome = if rule.four_eyes {
                Outcome::FourEyes
            } else {
                Outcome::Confirm
            };
            (self.tool_entry(index), outcome)
        });
        let found = refused.into_iter().chain(asked);
        self.rules.observed(found.map(|(entry, outcome)| Ruled {
            rule: entry.into(),
            outcome,
            is_enforced: false,
        }))
    }

    fn enforced(&self, principal: &Principal, tool: &ToolSpec) -> Decision {
        Decision {
            verdict: self.verdict(principal, tool),
            policy_revision: self.revision.clone(),
            must_confirm: self.demands_confirmation(tool.name.as_str()),
            approval_valid_for: self.approval_valid_for(tool.name.as_str()),
            four_eyes: self.rules_of(tool.name.as_str()).any(|rule| rule.four_eyes),
            cool_down: self.file.approvals.cool_down.map(Pause::duration),
            unkeyed_writes: self.file.defaults.unkeyed_writes,
            unkeyed_window: self.file.defaults.unkeyed_window.map(Period::duration),
            conditions: self.rules.for_tool(tool.name.as_str()),
        }
    }

    /// Resolves relative paths from this folder.
    fn files_are_in(&mut self, folder: &Path) {
        for issuer in &mut self.file.issuers {
            if let JwksSource::File(path) = &mut issuer.jwks {
                *path = folder.join(&*path);
            }
        }
    }

    fn rules_of<'a, 't>(
        &'a self,
        tool: &'t str,
    ) -> impl Iterator<Item = &'a ToolRule> + use<'a, 't> {
        let rules = self.file.tools.iter();
        rules.filter(move |rule| rule.tool.matches(tool))
    }

    fn verdict(&self, principal: &Principal, tool: &ToolSpec) -> Verdict {
        match self.refusal(principal, tool) {
            Some((hint, _)) => Verdict::Forbid { hint },
            None => Verdict::Allow,
        }
    }

    /// Returns the reason why a principal may not call a tool, whatever the call is, and the entry that says so.
    fn refusal(&self, principal: &Principal, tool: &ToolSpec) -> Option<(Wording, Ground)> {
        let name = tool.name.as_str();
        let defaults = &self.file.defaults;
        if defaults.unlisted == Unlisted::Deny && self.rules_of(name).next().is_none() {
            return Some((Say::NoRule.into(), Ground::Unlisted));
        }
        let agents = std::iter::once(&principal.actor).chain(&principal.chain);
        for agent in agents.filter(|actor| actor.kind == ActorType::Agent) {
            if let Some((hint, ground)) = self.denies_agent(agent, tool) {
                return Some((hint.into(), ground));
            }
        }
        for (index, rule) in self.file.tools.iter().enumerate() {
            if rule.tool.matches(name) && is_unmet(rule, principal) {
                let scopes: Vec<&str> = rule.scopes.iter().map(|scope| &**scope).collect();
                return Some((use_scope(&scopes), Ground::Scopes(index)));
            }
        }
        // A caller that acts for others names the user with each call, which the call itself checks.
        let is_for_nobody = !principal.has_user && !principal.may_act_for_others;
        if defaults.writes_need_user && is_for_nobody && tool.behaviour.effect.changes_something() {
            return Some((Say::WritesNeedUser.into(), Ground::NoUser));
        }
        None
    }

    /// Returns the reason why an agent may not call a tool, and the entry that says so; `None` if it may.
    fn denies_agent(&self, agent: &Actor, tool: &ToolSpec) -> Option<(Say, Ground)> {
        let name = tool.name.as_str();
        let mut is_listed = false;
        for (index, rule) in self.file.agents.iter().enumerate() {
            if rule.id.matches(&agent.id) {
                is_listed = true;
                let is_allowed = rule.allow.as_ref().is_none_or(|allow| any(allow, name));
                if !is_allowed || any(&rule.deny, name) {
                    return Some((Say::AgentDenied, Ground::Agent(index)));
                }
                if let Some(effects) = rule.effects
                    && !effects.has(tool.behaviour.effect)
                {
                    let effects = effects.to_string();
                    return Some((Say::AgentEffect { effects }, Ground::Agent(index)));
                }
            }
        }
        let may = is_listed || self.file.defaults.unlisted_agents == Unlisted::Allow;
        (!may).then_some((Say::AgentDenied, Ground::UnlistedAgent))
    }
}

/// The entry that denies a tool to a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// No `[[tools]]` entry matches the tool.
    Unlisted,
    /// An `[[agents]]` entry.
    Agent(usize),
    /// No `[[agents]]` entry matches the agent.
    UnlistedAgent,
    /// A `[[tools]]` entry whose scopes the principal does not hold.
    Scopes(usize),
    /// The tool changes something, and the principal acts for no user.
    NoUser,
}

/// True if a rule names scopes, and the principal holds none of them.
fn is_unmet(rule: &ToolRule, principal: &Principal) -> bool {
    !rule.scopes.is_empty() && !rule.scopes.iter().any(|scope| principal.holds(scope))
}

/// Refuses several issuers without realms: each of them would own every user.
fn realms_are_said(issuers: &[IssuerRule]) -> Result<(), PolicyError> {
    let open = issuers.iter().find(|issuer| issuer.realm.is_none());
    match open {
        Some(issuer) if issuers.len() > 1 => Err(PolicyError::of_file(
            format!(
                "the issuer {:?} has no realm, and there are several issuers",
                issuer.issuer
            ),
            "write realm = \"home\" for the issuer whose users are those of the API keys, and a name such as realm = \"corp\" for each other one",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Refuses a rule that configures confirmations without requiring them: no user would be asked.
fn confirmations_are_asked(tools: &[ToolRule]) -> Result<(), PolicyError> {
    let is_lost =
        |rule: &&ToolRule| rule.confirm.is_none() && (rule.four_eyes || rule.valid_for.is_some());
    match tools.iter().find(is_lost) {
        None => Ok(()),
        Some(rule) => Err(PolicyError::of_file(
            format!(
                "the rule for {:?} has four_eyes or valid_for, and no confirm",
                rule.tool.as_str()
            ),
            "write confirm = \"always\" beside it",
        )),
    }
}

/// Number of digits of the digest in a revision.
const REVISION_DIGITS: usize = 12;

fn any(globs: &[Glob], tool: &str) -> bool {
    globs.iter().any(|glob| glob.matches(tool))
}

impl Authorizer for Policy {
    fn decide<'a>(
        &'a self,
        principal: &'a Principal,
        tool: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        Box::pin(std::future::ready(Ok(self.decision(principal, tool))))
    }
}
