//! Report of many replays, by tool and by member of the answer.

use std::collections::BTreeMap;

use countersign_contract::ErrorCode;

use super::{Replayed, Verdict};

/// Report of many replays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The counts, by tool.
    pub tools: BTreeMap<String, ToolReport>,
    /// The replays that differ, the first [`Report::DIFFERING_MAX`] that were found.
    pub differing: Vec<Replayed>,
}

/// Counts of the replays of one tool. Each record counts once, but for `redefined`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolReport {
    /// The same answer.
    pub identical: u64,
    /// Another answer.
    pub drifted: u64,
    /// Another code.
    pub other_code: u64,
    /// A rule set was missing.
    pub missing_rules: u64,
    /// Nothing could be computed: not pure, not run, or no such tool any more.
    pub not_computed: u64,
    /// The payload was erased, or is no longer stored.
    pub gone: u64,
    /// The stored data differs from what was recorded.
    pub broken: u64,
    /// Number of replays for which the tool's declaration had changed.
    pub redefined: u64,
    /// Number of answers in which a member differs, by its JSON pointer with `*` for each place in a list.
    pub fields: BTreeMap<String, u64>,
    /// Number of times that one code became another; `OK` if it succeeded.
    pub codes: BTreeMap<(String, String), u64>,
}

impl Report {
    /// Maximum number of differing replays that are listed.
    pub const DIFFERING_MAX: usize = 1_000;

    /// Number of replayed records.
    pub fn total(&self) -> u64 {
        self.tools.values().map(ToolReport::total).sum()
    }

    /// True if no compared answer differs and nothing is broken.
    pub fn is_clean(&self) -> bool {
        self.differing.is_empty()
    }

    pub(super) fn add(&mut self, replayed: Replayed) {
        let tool = replayed.tool.clone().unwrap_or_default();
        let report = self.tools.entry(tool).or_default();
        report.redefined += u64::from(replayed.definition.is_some());
        let is_differing = report.count(&replayed.verdict);
        if is_differing && self.differing.len() < Self::DIFFERING_MAX {
            self.differing.push(replayed);
        }
    }
}

impl ToolReport {
    /// Number of replayed records of the tool.
    pub fn total(&self) -> u64 {
        self.identical
            + self.drifted
            + self.other_code
            + self.missing_rules
            + self.not_computed
            + self.gone
            + self.broken
    }

    /// Counts a verdict; true if it is a difference.
    fn count(&mut self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Identical => self.identical += 1,
            Verdict::NotPure | Verdict::NothingToCompare | Verdict::NoSuchTool => {
                self.not_computed += 1;
            }
            Verdict::Erased | Verdict::Gone => self.gone += 1,
            Verdict::Drift(differences) => {
                self.drifted += 1;
                let mut fields: Vec<_> = differences.iter().map(|one| field(&one.path)).collect();
                fields.sort();
                fields.dedup();
                for field in fields {
                    *self.fields.entry(field).or_default() += 1;
                }
                return true;
            }
            Verdict::OtherCode { recorded, computed } => {
                self.other_code += 1;
                let name =
                    |code: &Option<ErrorCode>| code.map_or("OK", ErrorCode::as_str).to_owned();
                let change = (name(recorded), name(computed));
                *self.codes.entry(change).or_default() += 1;
                return true;
            }
            Verdict::MissingRules { .. } => {
                self.missing_rules += 1;
                return true;
            }
            Verdict::Broken(_) => {
                self.broken += 1;
                return true;
            }
        }
        false
    }
}

/// A pointer with `*` for each place in a list.
fn field(path: &str) -> String {
    let is_place = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = path
        .split('/')
        .map(|part| if is_place(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}
