//! Limits and budgets: the sections of the policy file about the number of calls and the money they may spend.
//!
//! ```toml
//! [limits.user]
//! calls = 60
//! per = "1m"
//! [limits.tools."notes.*"]
//! calls = 10
//! per = "1m"
//! shared = true
//! [[limits.tools."bank.transfer"]]
//! calls = 60
//! per = "1h"
//! [[limits.tools."bank.transfer"]]
//! calls = 3
//! per = "1d"
//! when = "args.total > 1000"
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
//! Their meaning is explained in `docs/limits.md`; [`crate::limits`] puts them in force.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::Deref;

use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use toml::Spanned;

use super::counted::Written;
use super::file::Name;
use super::value::{Glob, Period};

/// Limits on calls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Limits for each user, over all tools.
    pub user: Several<Rate>,
    /// Limits for each agent, over all users and tools.
    pub agent: Several<Rate>,
    /// Limits for each session, over all tools.
    pub session: Several<Rate>,
    /// Limits for tools, by name or pattern.
    pub tools: BTreeMap<Glob, Several<ToolRate>>,
}

/// One table, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Several<T>(Vec<T>);

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for Several<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
            type Value = Several<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table, or a list of tables")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let one = T::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Several(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Several)
            }
        }

        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Several<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Several{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        let list = generator.subschema_for::<Vec<T>>();
        json_schema!({ "anyOf": [one, list], "x-form": "a table, or a list of tables" })
    }
}

/// A number of calls in a period.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Number of calls; all of them may come at once.
    pub calls: NonZeroU32,
    /// Period in which they refill.
    pub per: Period,
    /// True if all processes that share the store count together; otherwise each process counts separately.
    #[serde(default)]
    pub shared: bool,
    /// Condition of the calls that it counts; if left out, it counts all.
    #[serde(default)]
    pub when: Option<Written>,
}

/// A number of calls in a period, for each tool that the pattern matches.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRate {
    /// Number of calls; all of them may come at once.
    pub calls: NonZeroU32,
    /// Period in which they refill.
    pub per: Period,
    /// Callers that share them.
    #[serde(default)]
    pub counted: Counted,
    /// True if all processes that share the store count together; otherwise each process counts separately.
    #[serde(default)]
    pub shared: bool,
    /// Condition of the calls that it counts; if left out, it counts all.
    #[serde(default)]
    pub when: Option<Written>,
}

/// Callers that share a tool's limit. The enum is exhaustive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Each user has the whole limit.
    #[default]
    EachUser,
    /// All users share the limit.
    Together,
}

/// Circuit breaker: stops a session that repeats the same call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// Number of identical calls that are allowed.
    pub identical: NonZeroU32,
    /// Period in which they are counted.
    pub per: Period,
    /// Tools that are meant to be called repeatedly.
    #[serde(default)]
    pub except: Vec<Glob>,
    /// True if all processes that share the store count together; otherwise each process counts separately.
    #[serde(default)]
    pub shared: bool,
}

/// Budgets, each with a unique name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
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
        // Budgets that cannot be put in force make the policy invalid.
        crate::limits::budgets(&budgets)?;
        Ok(Self(budgets))
    }
}

/// An amount of money in a period.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Name in messages.
    pub name: Name,
    /// Owner of the budget.
    pub scope: BudgetScope,
    /// Maximum amount.
    pub limit: AmountText,
    /// Currency; calls in another one are refused.
    pub currency: CurrencyCode,
    /// Period; if left out, the budget never refills.
    #[serde(default)]
    pub per: Option<Period>,
    /// Tools that spend it.
    #[serde(default)]
    pub tools: Vec<Spender>,
}

/// Owner of a budget. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BudgetScope {
    /// Each user has one.
    User,
    /// Each agent has one.
    Agent,
    /// Each session has one.
    Session,
    /// All callers share one.
    Global,
}

/// A tool that spends a budget.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spender {
    /// Pattern of the tools.
    #[serde(rename = "match")]
    pub tool: Glob,
    /// Pointer to the amount in the bound arguments.
    pub amount: Pointer,
    /// Pointer to the currency in the bound arguments; if left out, the budget's own currency.
    #[serde(default)]
    pub currency: Option<Pointer>,
    /// Pointer to the amount that was really spent, in the data of the answer.
    #[serde(default)]
    pub spent: Option<Pointer>,
    /// Unit of the amounts.
    #[serde(default)]
    pub unit: Unit,
    /// True if the amount is refunded instead of spent.
    #[serde(default)]
    pub refund: bool,
    /// Condition of the calls that it applies to; if left out, it applies to all.
    #[serde(default)]
    pub when: Option<Written>,
}

/// Unit of amounts. The enum is exhaustive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Major units: `12.50`.
    #[default]
    Major,
    /// Minor units: `1250`.
    Minor,
}

/// An amount as a string: `500.00`. More than zero, up to 15 digits before and 4 after the point.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("x-form" = "a number above zero in quotes, such as \"500.00\""))]
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
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("x-form" = "an ISO 4217 code such as \"USD\""))]
pub struct CurrencyCode(String);

impl CurrencyCode {
    fn new(text: &str) -> Option<Self> {
        let is_fine = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        is_fine.then(|| Self(text.to_owned()))
    }
}

/// A JSON Pointer (RFC 6901) below the root.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("x-form" = "a JSON Pointer such as \"/total/amount\""))]
pub struct Pointer(#[schemars(with = "String")] Spanned<String>);

impl Pointer {
    /// The text, with its place in the file.
    pub(super) fn written(&self) -> &Spanned<String> {
        &self.0
    }
}

impl Deref for Pointer {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.get_ref()
    }
}

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Spanned::<String>::deserialize(deserializer)?;
        if text.get_ref().starts_with('/') && text.get_ref().len() <= 256 {
            return Ok(Self(text));
        }
        let text = text.get_ref();
        let form = "a JSON Pointer such as /total/amount";
        Err(D::Error::custom(format!(
            "{text:?} is not a valid pointer: {form}"
        )))
    }
}

/// Implements deserialization and conversion for a string with a checked form.
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
                    D::Error::custom(format!(
                        concat!("{:?} is not a valid ", $what, ": ", $form),
                        text
                    ))
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
