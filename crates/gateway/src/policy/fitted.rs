//! The tools that a policy was accepted with, and those that have changed since and no longer fit it.
//!
//! A condition is checked when a policy is loaded, and tools change later: those of an MCP server, or of another configuration.
//! `has(args.amount) && …` would then be false for every call of a tool that has renamed its amount. So each tool is compared
//! with what it declared when the policy was accepted, and an entry that does not fit it any more refuses its calls.

use std::collections::HashMap;
use std::sync::Arc;

use countersign::Catalog;
use countersign::authorize::{Conditions, Denial, Facts, Judgement, Outcome, Ruled, Stage};
use countersign::catalog::Entry;
use countersign::contract::{Digest, ToolName, ToolSpec};

use super::condition::Wrong;
use super::place::RulePlace;
use super::{Mode, Policy};
use crate::words::Say;

/// An entry of the policy that does not fit the present declaration of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Name of the rule, or the entry of a limit or a budget.
    pub entry: Arc<str>,
    /// The tool.
    pub tool: ToolName,
    /// Line of the mistake; 0 if it is not known.
    pub line: usize,
    /// Column of the mistake, in characters.
    pub column: usize,
    /// Description of the mistake.
    pub message: String,
    /// False if the rule is only observed: calls of the tool are not refused.
    pub is_enforced: bool,
}

impl Misfit {
    /// Creates the misfit of an entry whose condition or pointer is wrong.
    pub(super) fn new(
        entry: &str,
        tool: &ToolSpec,
        place: &RulePlace,
        source: &str,
        wrong: Wrong,
        is_enforced: bool,
    ) -> Self {
        let mistake = place.mistake(source, wrong.offset, wrong.message);
        Self {
            entry: entry.into(),
            tool: tool.name.clone(),
            line: mistake.line,
            column: mistake.column,
            message: mistake.message,
            is_enforced,
        }
    }
}

/// A tool of which the declaration is looked at again.
#[derive(Clone, Copy)]
pub(super) struct Changed<'a> {
    pub(super) tool: &'a ToolSpec,
    /// Its declaration when the policy was accepted; `None` for a tool that has arrived since.
    pub(super) before: Option<&'a ToolSpec>,
    /// All tools that there are.
    pub(super) tools: &'a [&'a ToolSpec],
}

/// A policy and the state of a catalog, compared.
#[derive(Debug, Default)]
pub(super) struct Fitted {
    policy: Option<Arc<Policy>>,
    revision: u64,
    tools: HashMap<ToolName, Known>,
}

/// A tool, as it was compared last.
#[derive(Debug, Clone)]
struct Known {
    digest: Digest,
    /// The declaration that was accepted; `None` for a tool that has never fitted.
    accepted: Option<Arc<Entry>>,
    /// True if it was accepted together with the policy: it may come back after it was away.
    is_lasting: bool,
    misfits: Arc<[Misfit]>,
}

impl Fitted {
    /// True if this is the comparison of a policy and this state of the catalog.
    pub(super) fn is_of(&self, policy: &Arc<Policy>, catalog: &Catalog) -> bool {
        let is_it = |own: &Arc<Policy>| Arc::ptr_eq(own, policy);
        self.policy.as_ref().is_some_and(is_it) && self.revision == catalog.revision()
    }

    /// Accepts the tools that there are with a policy, as far as they fit it.
    pub(super) fn accepting(policy: &Arc<Policy>, catalog: &Catalog) -> Self {
        let nothing = Self {
            policy: Some(policy.clone()),
            ..Self::default()
        };
        let mut fitted = nothing.next(catalog);
        for known in fitted.tools.values_mut() {
            known.is_lasting = known.accepted.is_some();
        }
        fitted
    }

    /// Compares the tools that have changed.
    pub(super) fn after(&self, policy: &Arc<Policy>, catalog: &Catalog) -> Self {
        let is_same = self
            .policy
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, policy));
        if is_same {
            self.next(catalog)
        } else {
            Self::accepting(policy, catalog)
        }
    }

    fn next(&self, catalog: &Catalog) -> Self {
        let Some(policy) = &self.policy else {
            return Self::default();
        };
        // Read first: a change in between is compared with the next call.
        let revision = catalog.revision();
        let entries = catalog.list();
        let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
        // As a rule a policy fits the tools that it is loaded with.
        let fits_all = self.tools.is_empty() && policy.fits(&specs).is_ok();
        let mut tools: HashMap<ToolName, Known> = self
            .tools
            .iter()
            .filter(|(_, known)| known.is_lasting)
            .map(|(name, known)| (name.clone(), known.clone()))
            .collect();
        for entry in &entries {
            let known = self.tools.get(entry.name());
            let fits = known.filter(|it| it.digest == entry.digest() && it.misfits.is_empty());
            if let Some(known) = fits {
                tools.insert(entry.name().clone(), known.clone());
                continue;
            }
            let accepted = known.and_then(|known| known.accepted.clone());
            let misfits = if fits_all {
                Vec::new()
            } else {
                policy.misfits(Changed {
                    tool: entry.spec(),
                    before: accepted.as_deref().map(Entry::spec),
                    tools: &specs,
                })
            };
            let accepted = accepted.or_else(|| misfits.is_empty().then(|| entry.clone()));
            let known = Known {
                digest: entry.digest(),
                accepted,
                is_lasting: known.is_some_and(|known| known.is_lasting),
                misfits: misfits.into(),
            };
            tools.insert(entry.name().clone(), known);
        }
        Self {
            policy: Some(policy.clone()),
            revision,
            tools,
        }
    }

    /// The entries that a tool does not fit; `None` if it fits all.
    pub(super) fn of_tool(&self, tool: &ToolName) -> Option<Arc<[Misfit]>> {
        let known = self.tools.get(tool)?;
        (!known.misfits.is_empty()).then(|| known.misfits.clone())
    }

    /// Every entry that a tool of the catalog does not fit.
    pub(super) fn all(&self, catalog: &Catalog) -> Vec<Misfit> {
        let entries = catalog.list();
        let known = entries.iter().filter_map(|it| self.tools.get(it.name()));
        known
            .flat_map(|known| known.misfits.iter().cloned())
            .collect()
    }
}

impl Policy {
    /// The entries that a tool does not fit any more.
    pub(super) fn misfits(&self, changed: Changed<'_>) -> Vec<Misfit> {
        let is_enforced = self.file.mode == Mode::Enforce;
        let mut misfits = self.rules.misfits(changed, is_enforced);
        misfits.extend(self.counted.misfits(changed));
        misfits
    }
}

/// The rules of a policy for a tool that some entries do not fit: these refuse its calls, and the others decide as before.
#[derive(Debug)]
pub(super) struct Unfit {
    rules: Option<Arc<dyn Conditions>>,
    misfits: Arc<[Misfit]>,
}

impl Unfit {
    pub(super) fn new(rules: Option<Arc<dyn Conditions>>, misfits: Arc<[Misfit]>) -> Self {
        Self { rules, misfits }
    }
}

impl Conditions for Unfit {
    fn judge(&self, stage: Stage, facts: &Facts<'_>) -> Judgement {
        let judged = self.rules.as_ref().map(|rules| rules.judge(stage, facts));
        let mut judgement = judged.unwrap_or_default();
        let is_unfit = |ruled: &Ruled| self.misfits.iter().any(|it| it.entry == ruled.rule);
        judgement.ruled.retain(|ruled| !is_unfit(ruled));
        // The refusal comes before the arguments are read.
        if stage == Stage::Arguments {
            return judgement;
        }
        for misfit in self.misfits.iter() {
            judgement.ruled.push(Ruled {
                rule: misfit.entry.clone(),
                outcome: Outcome::Failed,
                is_enforced: misfit.is_enforced,
            });
            if misfit.is_enforced {
                let rule = misfit.entry.to_string();
                judgement.denial.get_or_insert_with(|| Denial {
                    rule: misfit.entry.clone(),
                    hint: Say::RuleMisfit { rule }.into(),
                });
            }
        }
        judgement
    }
}
