//! How many calls there may be, and how much money they may spend: the sections of the policy file.
//!
//! ```toml
//! [limits.user]
//! calls = 60
//! per = "1m"
//! [limits.tools."notes.*"]
//! calls = 10
//! per = "1m"
//! shared = true
//!
//! [breaker]
//! identical = 5
//! per = "10m"
//! except = ["jobs.state"]
//!
//! [[budgets]]
//! name = "daily"
//! scope = "user"
//! limit = "500.00"
//! currency = "USD"
//! per = "1d"
//! [[budgets.tools]]
//! match = "checkout.*"
//! amount = "/total/amount"
//! currency = "/total/currency"
//! spent = "/charged"
//! ```
//!
//! What they mean is in `docs/limits.md`; [`crate::limits`] puts them in force.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Deref;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::file::Name;
use super::value::{Glob, Period};

/// How many calls there may be.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Of one user, over all tools.
    pub user: Option<Rate>,
    /// Of one agent, over all users and tools.
    pub agent: Option<Rate>,
    /// Of one session, over all tools.
    pub session: Option<Rate>,
    /// Of one tool, by its name or a pattern.
    pub tools: BTreeMap<Glob, ToolRate>,
}

/// So many calls a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many; all of them may come at once.
    pub calls: NonZeroU32,
    /// In what time.
    pub per: Period,
    /// Whether all processes that share the store count together; otherwise each counts for itself.
    #[serde(default)]
    pub shared: bool,
}

/// So many calls a period, of each tool that the pattern matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRate {
    /// How many; all of them may come at once.
    pub calls: NonZeroU32,
    /// In what time.
    pub per: Period,
    /// Who shares them.
    #[serde(default)]
    pub counted: Counted,
    /// Whether all processes that share the store count together; otherwise each counts for itself.
    #[serde(default)]
    pub shared: bool,
}

impl ToolRate {
    /// How many calls, whoever shares them.
    pub fn rate(self) -> Rate {
        let Self {
            calls, per, shared, ..
        } = self;
        Rate { calls, per, shared }
    }
}

/// Who shares the calls of a tool. Closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Each user has so many.
    #[default]
    EachUser,
    /// All users together.
    Together,
}

/// Stops a session that makes the same call again and again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// How many identical calls are let through.
    pub identical: NonZeroU32,
    /// In what time.
    pub per: Period,
    /// Tools that are meant to be asked again and again.
    #[serde(default)]
    pub except: Vec<Glob>,
    /// Whether all processes that share the store count together; otherwise each counts for itself.
    #[serde(default)]
    pub shared: bool,
}

/// Budgets, each with a name of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<Budget>")]
pub struct Budgets(Vec<Budget>);

impl Deref for Budgets {
    type Target = [Budget];

    fn deref(&self) -> &[Budget] {
        &self.0
    }
}

impl TryFrom<Vec<Budget>> for Budgets {
    type Error = String;

    fn try_from(budgets: Vec<Budget>) -> Result<Self, String> {
        for (index, budget) in budgets.iter().enumerate() {
            let mut before = budgets.iter().take(index);
            if before.any(|other| other.name == budget.name) {
                return Err(format!("there are two budgets {:?}", &*budget.name));
            }
        }
        // What cannot be put in force is no policy.
        crate::limits::budgets(&budgets)?;
        Ok(Self(budgets))
    }
}

/// So much money a period.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What it is called in messages.
    pub name: Name,
    /// Whose it is.
    pub scope: BudgetScope,
    /// How much.
    pub limit: AmountText,
    /// In which currency; calls in another one are refused.
    pub currency: CurrencyCode,
    /// In what time; once and for all where it is left out.
    #[serde(default)]
    pub per: Option<Period>,
    /// Which tools spend it.
    #[serde(default)]
    pub tools: Vec<Spender>,
}

/// Whose a budget is. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetScope {
    /// Each user has one.
    User,
    /// Each agent has one.
    Agent,
    /// Each session has one.
    Session,
    /// All share one.
    Global,
}

/// A tool that spends a budget.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spender {
    /// Which tools.
    #[serde(rename = "match")]
    pub tool: Glob,
    /// Where the bound arguments hold the amount.
    pub amount: Pointer,
    /// Where they hold its currency; the budget's own where it is left out.
    #[serde(default)]
    pub currency: Option<Pointer>,
    /// Where the data of the answer says what was really spent.
    #[serde(default)]
    pub spent: Option<Pointer>,
    /// How amounts are written.
    #[serde(default)]
    pub unit: Unit,
    /// Whether the amount comes back instead of going out.
    #[serde(default)]
    pub refund: bool,
}

/// How amounts are written. Closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// `12.50`.
    #[default]
    Major,
    /// `1250`.
    Minor,
}

/// An amount as text: `500.00`. More than zero, up to 15 digits before and 4 after the point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmountText(String);

impl AmountText {
    fn new(text: &str) -> Option<Self> {
        let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_fine = (1..=15).contains(&whole.len())
            && (1..=4).contains(&rest.len())
            && is_digits(whole)
            && is_digits(rest)
            && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
        is_fine.then(|| Self(text.to_owned()))
    }
}

/// An ISO 4217 code: three capital letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrencyCode(String);

impl CurrencyCode {
    fn new(text: &str) -> Option<Self> {
        let is_fine = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        is_fine.then(|| Self(text.to_owned()))
    }
}

/// A JSON Pointer (RFC 6901) below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(String);

impl Pointer {
    fn new(text: &str) -> Option<Self> {
        let is_fine = text.starts_with('/') && text.len() <= 256;
        is_fine.then(|| Self(text.to_owned()))
    }
}

/// A text with a form of its own: how it is read from the file, and that it is a text.
macro_rules! checked_text {
    ($name:ident, $what:literal, $form:literal) => {
        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).ok_or_else(|| {
                    D::Error::custom(format!(concat!("{:?} is no ", $what, ": ", $form), text))
                })
            }
        }
    };
}

checked_text!(
    AmountText,
    "amount",
    "a number above zero in quotes, such as 500.00"
);
checked_text!(CurrencyCode, "currency", "an ISO 4217 code such as USD");
checked_text!(Pointer, "pointer", "a JSON Pointer such as /total/amount");
