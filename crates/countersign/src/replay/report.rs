//! What came of many replays, by tool and by member of the answer.

use std::collections::BTreeMap;

use countersign_contract::ErrorCode;

use super::{Replayed, Verdict};

/// What came of many replays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// By tool.
    pub tools: BTreeMap<String, ToolReport>,
    /// Those that differ, the first [`Report::DIFFERING_MAX`] that were found.
    pub differing: Vec<Replayed>,
}

/// What came of the replays of one tool. Each record counts once, but for `redefined`.
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
    /// Erased, or no longer kept.
    pub gone: u64,
    /// Not as it was recorded.
    pub broken: u64,
    /// How many of them the tool was declared otherwise for.
    pub redefined: u64,
    /// In how many answers a member differs, by its JSON pointer with `*` for each place in a list.
    pub fields: BTreeMap<String, u64>,
    /// How often one code became another; `OK` where it worked.
    pub codes: BTreeMap<(String, String), u64>,
}

impl Report {
    /// How many of those that differ are kept.
    pub const DIFFERING_MAX: usize = 1_000;

    /// How many records were replayed.
    pub fn total(&self) -> u64 {
        self.tools.values().map(ToolReport::total).sum()
    }

    /// Whether nothing that could be compared differs and nothing is broken.
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
    /// How many records of the tool were replayed.
    pub fn total(&self) -> u64 {
        self.identical
            + self.drifted
            + self.other_code
            + self.missing_rules
            + self.not_computed
            + self.gone
            + self.broken
    }

    /// Counts a verdict; true where it tells of a difference.
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
