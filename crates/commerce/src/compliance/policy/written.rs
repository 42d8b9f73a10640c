//! The rules as they are written. Every field that is not known is refused: a rule with a misspelt condition
//! would be a rule without one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::compliance::answer::Severity;
use crate::shop::Text;

/// A file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// The name of the file.
    pub(super) label: String,
    /// The day from which it holds.
    pub(super) date: String,
    pub(super) title: Text,
    /// What it is not.
    pub(super) notice: Text,
    /// All that there are, ISO 3166-1.
    pub(super) countries: Vec<String>,
    /// By name: countries, and other groups.
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// All that the rules were written for, each from the general to the special.
    pub(super) categories: Vec<String>,
    /// What can be certified, and what the name means.
    pub(super) certificates: BTreeMap<String, String>,
    /// What an offer can say about itself besides, and how.
    pub(super) attributes: BTreeMap<String, AttributeKind>,
    /// By name: categories that several rules are about.
    pub(super) families: BTreeMap<String, Vec<String>>,
    pub(super) rules: Vec<WrittenRule>,
}

/// What an attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AttributeKind {
    Text,
    Number,
    Flag,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenRule {
    pub(super) id: String,
    #[serde(default)]
    pub(super) categories: Vec<String>,
    pub(super) destinations: Vec<String>,
    #[serde(default)]
    pub(super) except_destinations: Vec<String>,
    #[serde(default)]
    pub(super) when: Option<WrittenCondition>,
    #[serde(default)]
    pub(super) requires: Option<WrittenCondition>,
    #[serde(default)]
    pub(super) exceptions: Vec<WrittenCondition>,
    pub(super) severity: Severity,
    pub(super) message: Text,
    #[serde(default)]
    pub(super) mitigations: Vec<Mitigation>,
    pub(super) source: String,
    /// Of the source: since when it holds, as it stands here.
    pub(super) date: String,
}

/// Either a test (`fact`, `op`, `value`) or one of `all`, `any`, `not`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenCondition {
    pub(super) all: Option<Vec<WrittenCondition>>,
    pub(super) any: Option<Vec<WrittenCondition>>,
    pub(super) not: Option<Box<WrittenCondition>>,
    pub(super) fact: Option<String>,
    pub(super) op: Option<Operator>,
    pub(super) value: Option<Value>,
}

/// What a test can ask. One that is not here cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operator {
    /// The same text, number or flag.
    Eq,
    /// Another one.
    Ne,
    /// One of a list.
    In,
    /// None of a list.
    NotIn,
    /// Somebody has said it.
    Exists,
    /// Nobody has.
    Missing,
    /// More than a number.
    Gt,
    /// At least.
    Gte,
    /// Less than.
    Lt,
    /// At most.
    Lte,
    /// A text within a text.
    Contains,
    /// The beginning of a text.
    StartsWith,
    /// A certificate; about `certificates`, without a fact.
    HasCertificate,
    /// A country of a group or a list of groups.
    InGroup,
}

/// What can be done, and who does it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::compliance) struct Mitigation {
    who: Who,
    en: String,
    zh: String,
}

/// Who can do something about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Who {
    Seller,
    Buyer,
    Carrier,
    Platform,
}

impl Mitigation {
    /// The text, if it is the buyer who has to act.
    pub(in crate::compliance) fn of_buyer(&self) -> Option<Text> {
        (self.who == Who::Buyer).then(|| Text {
            en: self.en.clone(),
            zh: self.zh.clone(),
        })
    }

    /// In one line.
    pub(in crate::compliance) fn told(&self, is_chinese: bool) -> String {
        if is_chinese {
            format!("{}：{}", self.who.zh(), self.zh)
        } else {
            format!("{}: {}", self.who.en(), self.en)
        }
    }
}

impl Who {
    fn en(self) -> &'static str {
        match self {
            Self::Seller => "seller",
            Self::Buyer => "buyer",
            Self::Carrier => "carrier",
            Self::Platform => "platform",
        }
    }

    fn zh(self) -> &'static str {
        match self {
            Self::Seller => "卖家",
            Self::Buyer => "买家",
            Self::Carrier => "承运商",
            Self::Platform => "平台",
        }
    }
}
