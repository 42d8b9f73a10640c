//! The types of a story: what a page, a command and a file show of a case.

use countersign::archive::CasePart;
use countersign::contract::Language;
use countersign_evidence::bundle::Bundle;
use countersign_gateway::http::cases::ShownCase;
use serde::{Deserialize, Serialize};

use super::amount::Line;
use super::words::{self, Says};

/// A version of a rule set, with the name that people know it by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleVersion {
    /// Name of the rule set, such as `tax`.
    pub name: String,
    /// Its version: the digest of its file.
    pub version: String,
    /// Its label, such as `2026-07-01`; `None` if it has none.
    pub label: Option<String>,
}

/// The parts that a story is made from.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// The records.
    pub case: &'a ShownCase,
    /// The bundle with the opened content; `None` if nothing was opened.
    pub bundle: Option<&'a Bundle>,
    /// The rule sets that are known here, for their labels.
    pub rules: &'a [RuleVersion],
    /// Maximum number of lines of one step's details.
    pub details_max: usize,
}

/// A case, told step by step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Story {
    /// Subject, in one line.
    pub title: String,
    /// The most important facts.
    pub facts: Vec<Line>,
    /// Events, oldest first.
    pub steps: Vec<Step>,
    /// The rules that the answers depend on.
    pub rules: Vec<RuleLine>,
    /// Accesses to sealed content, oldest first.
    pub looks: Vec<Look>,
    /// Notes that the reader needs to understand this text.
    pub notes: Vec<String>,
    /// True if content was opened.
    pub is_opened: bool,
    /// True if the user was erased, so that no reason opens any content.
    #[serde(skip)]
    pub(crate) is_erased: bool,
    #[serde(skip)]
    pub(super) language: Language,
}

/// One step of a story.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The record.
    pub id: String,
    /// Its time, RFC 3339.
    pub at: String,
    /// The same for people.
    pub moment: String,
    /// Its part in the case.
    pub part: CasePart,
    /// `ok`, `warn` or `bad`.
    pub tone: &'static str,
    /// Event, in one sentence.
    pub title: String,
    /// The tool; empty if there is none.
    pub tool: String,
    /// Actor of the event.
    pub by: String,
    /// Outcome, if the title does not say it.
    pub outcome: String,
    /// The most important values.
    pub lines: Vec<Line>,
    /// Question as it was shown to the person who answered.
    pub shown: Option<Question>,
    /// Everything else that was asked and answered.
    pub details: Vec<Line>,
    /// The rules of this step.
    pub rules: Vec<String>,
    /// State of the proof.
    pub proof: String,
    /// True if there is content that was not opened.
    pub is_sealed: bool,
    /// True if the details did not fit on the page.
    #[serde(skip)]
    pub(crate) is_folded: bool,
    /// True if the reader asked for the details of this step.
    #[serde(skip)]
    pub(crate) is_wanted: bool,
}

/// The question to a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// True if the answer named the digest of what was on the screen, so that the record proves what was shown.
    pub is_checked: bool,
    /// One line.
    pub title: String,
    /// Actions, with their targets and amounts.
    pub lines: Vec<Line>,
    /// Effects that cannot be undone.
    pub irreversible: Vec<String>,
}

/// A rule set that was used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleLine {
    /// Its name, for people.
    pub name: String,
    /// Its label, usually a date; empty if it is not known here.
    pub label: String,
    /// Its version: the digest of its file.
    pub version: String,
}

/// A person opened sealed content.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Look {
    /// The record of it.
    pub id: String,
    /// Time, for people.
    pub moment: String,
    /// Person or program that opened it.
    pub by: String,
    /// Access that was made.
    pub what: String,
}

impl Story {
    /// A story without a step.
    #[cfg(test)]
    pub(crate) fn empty(language: Language) -> Self {
        Self {
            title: String::new(),
            facts: Vec::new(),
            steps: Vec::new(),
            rules: Vec::new(),
            looks: Vec::new(),
            notes: Vec::new(),
            is_opened: true,
            is_erased: false,
            language,
        }
    }

    /// The words of its language.
    pub(crate) const fn says(&self) -> &'static Says {
        words::of(self.language)
    }
}
