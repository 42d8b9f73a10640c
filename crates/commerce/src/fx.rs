//! Exchange rates: a rule set with a date, so that an amount in another currency can be computed again.

use std::collections::BTreeMap;

use countersign::contract::ErrorCode;
use countersign::{CallContext, ToolError};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::{Money, MoneyError};
use crate::rulebook::{Book, RuleData, RuleFile};
use crate::words::Say;

/// The files of this area, oldest first.
pub(crate) const RULES: &[RuleFile] = &[
    RuleFile::new("2024-12-31", include_str!("../rules/fx/2024-12-31.toml")),
    RuleFile::new("2026-10-30", include_str!("../rules/fx/2026-10-30.toml")),
];

static BOOK: Book<Rates> = Book::new();

/// The currency of an answer if neither the arguments nor the envelope name one.
pub const DEFAULT_CURRENCY: &str = "USD";

/// Rates of one day, as units of a currency for one unit of the base.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// The publisher of the rates.
    pub source: String,
    /// The day of the rates.
    pub date: String,
    /// The base currency.
    pub base: String,
    /// The rates by currency.
    pub rates: BTreeMap<String, Decimal>,
}

/// An exchange rate that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct RateUsed {
    /// Currency that is converted from.
    pub from: String,
    /// Currency that is converted to.
    pub to: String,
    /// Units of `to` for one of `from`, with ten decimals. Amounts are computed with the unrounded rate.
    pub rate: String,
    /// Date of the rate.
    pub date: String,
    /// Publisher of the rate.
    pub source: String,
}

impl RuleData for Rates {
    const NAME: &'static str = "fx";

    fn check(&self) -> Result<(), String> {
        let bad = self.rates.iter().find(|(_, rate)| **rate <= Decimal::ZERO);
        bad.map_or(Ok(()), |(currency, _)| {
            Err(format!("the rate of {currency} has to be above zero"))
        })
    }
}

impl Rates {
    /// The rates in force; in a replay those of the record.
    pub fn of(ctx: &CallContext) -> Result<std::sync::Arc<Self>, ToolError> {
        BOOK.get(ctx)
    }

    /// Converts an amount to another currency, rounded once. Returns the rate that was used; `None` if no conversion
    /// was needed.
    pub fn convert(&self, money: &Money, to: &str) -> Result<(Money, Option<RateUsed>), ToolError> {
        let (amount, used) = self.exchange(money.decimal()?, &money.currency, to)?;
        Ok((Money::round(amount, to)?, used))
    }

    /// Converts an amount to another currency, not rounded. Returns the rate that was used; `None` if no conversion was
    /// needed.
    pub fn exchange(
        &self,
        amount: Decimal,
        from: &str,
        to: &str,
    ) -> Result<(Decimal, Option<RateUsed>), ToolError> {
        let (from, to) = (from.to_ascii_uppercase(), to.to_ascii_uppercase());
        if from == to {
            return Ok((amount, None));
        }
        let (from_rate, to_rate) = (self.rate(&from)?, self.rate(&to)?);
        let amount = amount.checked_mul(to_rate);
        let amount = amount.and_then(|amount| amount.checked_div(from_rate));
        let rate = to_rate.checked_div(from_rate).ok_or(MoneyError::TooLarge)?;
        let used = RateUsed {
            from,
            to,
            rate: rate.round_dp(10).normalize().to_string(),
            date: self.date.clone(),
            source: self.source.clone(),
        };
        Ok((amount.ok_or(MoneyError::TooLarge)?, Some(used)))
    }

    fn rate(&self, currency: &str) -> Result<Decimal, ToolError> {
        if currency == self.base {
            return Ok(Decimal::ONE);
        }
        self.rates.get(currency).copied().ok_or_else(|| {
            let known: Vec<&str> = self.rates.keys().map(String::as_str).collect();
            let values = format!("{}, {}", self.base, known.join(", "));
            let currency = currency.to_owned();
            ToolError::new(ErrorCode::InvalidArgument, Say::NoExchangeRate { currency })
                .field("/currency")
                .hint(Say::OneOf { values })
        })
    }
}

/// The currency of an answer: that of the argument, else that of the call's envelope, else [`DEFAULT_CURRENCY`].
pub fn asked(ctx: &CallContext, argument: Option<String>) -> String {
    let asked = argument.or_else(|| ctx.request().currency.clone());
    asked.map_or_else(
        || DEFAULT_CURRENCY.to_owned(),
        |code| code.to_ascii_uppercase(),
    )
}
