//! The rules as they are written. Every unknown field is refused: a rule with a misspelt condition would be a rule
//! without one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::compliance::answer::Severity;
use crate::shop::Text;

/// A rule file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// The name of the file.
    pub(super) label: String,
    /// The day from which it applies.
    pub(super) date: String,
    pub(super) title: Text,
    /// The disclaimer.
    pub(super) notice: Text,
    /// All known countries, ISO 3166-1.
    pub(super) countries: Vec<String>,
    /// Groups by name: countries, and other groups.
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// All categories that the rules were written for, each from the general to the special.
    pub(super) categories: Vec<String>,
    /// The known certificates, each with its meaning.
    pub(super) certificates: BTreeMap<String, String>,
    /// The attributes that an offer can have, each with its type.
    pub(super) attributes: BTreeMap<String, AttributeKind>,
    /// Families by name: categories that several rules apply to.
    pub(super) families: BTreeMap<String, Vec<String>>,
    pub(super) rules: Vec<WrittenRule>,
}

/// The type of an attribute.
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
    /// The day from which the source applies in this form.
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

/// The operator of a test. An unknown one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operator {
    /// Equal to a string, number or flag.
    Eq,
    /// Not equal.
    Ne,
    /// One of a list.
    In,
    /// None of a list.
    NotIn,
    /// The fact is given.
    Exists,
    /// The fact is not given.
    Missing,
    /// Greater than a number.
    Gt,
    /// At least a number.
    Gte,
    /// Less than a number.
    Lt,
    /// At most a number.
    Lte,
    /// The fact contains a string.
    Contains,
    /// The fact starts with a string.
    StartsWith,
    /// The offer has this certificate; used without a fact.
    HasCertificate,
    /// A country of a group or of a list of groups.
    InGroup,
}

/// A remedy, and the party that can apply it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::compliance) struct Mitigation {
    who: Who,
    en: String,
    zh: String,
}

/// The party that can apply a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Who {
    Seller,
    Buyer,
    Carrier,
    Platform,
}

impl Mitigation {
    /// The text, if the buyer has to act.
    pub(in crate::compliance) fn of_buyer(&self) -> Option<Text> {
        (self.who == Who::Buyer).then(|| Text {
            en: self.en.clone(),
            zh: self.zh.clone(),
        })
    }

    /// The remedy in one line.
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
