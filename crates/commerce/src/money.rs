//! Exact amounts: whole numbers of the smallest unit on the wire, decimals inside, and one rounding rule in one place.

use crate::words::Say;
use std::fmt;

use countersign::budget::Currency;
use countersign::contract::{ErrorCode, Parameter, ValueKind};
use countersign::{ArgValue, ToolError};
use rust_decimal::{Decimal, RoundingStrategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount in the smallest unit of its currency: `{"amount": 1999, "currency": "EUR"}` is 19.99 euros,
/// `{"amount": 1999, "currency": "JPY"}` is 1,999 yen.
///
/// # Example
///
/// ```
/// use countersign_commerce::money::Money;
///
/// let price = Money::new(1_999, "EUR");
/// assert_eq!(price.times(3)?.to_string(), "EUR 59.97");
/// assert_eq!(Money::round("0.125".parse()?, "KWD")?.amount, 125);
/// assert_eq!(Money::round("0.125".parse()?, "EUR")?.amount, 13);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema, Deserialize)]
#[serde(try_from = "Written")]
pub struct Money {
    /// Amount in the smallest unit of the currency.
    pub amount: i64,
    /// Currency: ISO 4217, in capital letters.
    pub currency: String,
}

/// An amount as it was written, before it is known to be one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    amount: i64,
    currency: String,
}

impl TryFrom<Written> for Money {
    type Error = MoneyError;

    fn try_from(written: Written) -> Result<Self, MoneyError> {
        let Written { amount, currency } = written;
        Self { amount, currency }.checked()
    }
}

/// The largest absolute amount: larger ones are not exact as JSON numbers.
pub const AMOUNT_MAX: i64 = (1 << 53) - 1;

/// The reason why an amount is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Two amounts of different currencies were added. Usually one of them was not converted before.
    #[error("amounts of {left} and {right} cannot be added")]
    Currencies {
        /// The currency of the first amount.
        left: String,
        /// The currency of the second amount.
        right: String,
    },
    /// The absolute amount exceeds [`AMOUNT_MAX`]. Usually a number was sent in the wrong unit.
    #[error("the amount is too large")]
    TooLarge,
    /// The text is not a currency code of three letters. Usually a name or a symbol was sent instead.
    #[error("{0:?} is not a currency: use three letters, such as EUR")]
    Currency(String),
}

impl Money {
    /// An amount in the smallest unit of a currency.
    pub fn new(amount: i64, currency: &str) -> Self {
        Self {
            amount,
            currency: currency.to_ascii_uppercase(),
        }
    }

    /// The amount zero.
    pub fn zero(currency: &str) -> Self {
        Self::new(0, currency)
    }

    /// Rounds by the one rounding rule: to the smallest unit of the currency, half a unit away from zero, as customs
    /// and invoices do.
    pub fn round(amount: Decimal, currency: &str) -> Result<Self, MoneyError> {
        let scaled = amount
            .checked_mul(Decimal::from(10_i64.pow(exponent(currency)?)))
            .ok_or(MoneyError::TooLarge)?;
        let rounded = scaled.round_dp_with_strategy(0, RoundingStrategy::MidpointAwayFromZero);
        let amount = i64::try_from(rounded).map_err(|_| MoneyError::TooLarge)?;
        Self::new(amount, currency).checked()
    }

    /// The amount in units of the currency: 19.99 for 1999 euro cents.
    pub fn decimal(&self) -> Result<Decimal, MoneyError> {
        Ok(Decimal::new(self.amount, exponent(&self.currency)?))
    }

    /// The sum of two amounts of the same currency.
    pub fn plus(&self, other: &Self) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::Currencies {
                left: self.currency.clone(),
                right: other.currency.clone(),
            });
        }
        let amount = self.amount.checked_add(other.amount);
        Self::new(amount.ok_or(MoneyError::TooLarge)?, &self.currency).checked()
    }

    /// The amount times a count.
    pub fn times(&self, count: u32) -> Result<Self, MoneyError> {
        let amount = self.amount.checked_mul(count.into());
        Self::new(amount.ok_or(MoneyError::TooLarge)?, &self.currency).checked()
    }

    /// A share of the amount, such as a tax at a rate of 0.19, rounded.
    pub fn share(&self, rate: Decimal) -> Result<Self, MoneyError> {
        let share = self.decimal()?.checked_mul(rate);
        Self::round(share.ok_or(MoneyError::TooLarge)?, &self.currency)
    }

    /// The sum of all amounts; zero of `currency` if there are none.
    pub fn sum<'a>(
        amounts: impl IntoIterator<Item = &'a Self>,
        currency: &str,
    ) -> Result<Self, MoneyError> {
        let mut amounts = amounts.into_iter();
        amounts.try_fold(Self::zero(currency), |sum, amount| sum.plus(amount))
    }

    fn checked(self) -> Result<Self, MoneyError> {
        if self.amount.unsigned_abs() > AMOUNT_MAX.unsigned_abs() {
            return Err(MoneyError::TooLarge);
        }
        Ok(self)
    }
}

/// The number of decimals of a currency.
pub fn exponent(currency: &str) -> Result<u32, MoneyError> {
    let known = Currency::new(currency);
    known
        .map(|currency| currency.decimals())
        .map_err(|_| MoneyError::Currency(currency.to_owned()))
}

/// Writes the amount for people, with the currency code in front.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.decimal() {
            Ok(decimal) => write!(f, "{} {decimal}", self.currency),
            Err(_) => write!(f, "{} {} (smallest unit)", self.currency, self.amount),
        }
    }
}

impl From<MoneyError> for ToolError {
    fn from(error: MoneyError) -> Self {
        let message = match error {
            MoneyError::Currencies { left, right } => Say::MixedCurrencies { left, right },
            MoneyError::TooLarge => Say::AmountTooLarge,
            MoneyError::Currency(code) => Say::NotACurrency { code },
        };
        ToolError::new(ErrorCode::InvalidArgument, message).hint(Say::AmountForm)
    }
}

/// An amount as an argument: a whole number of the smallest unit of a currency, so that 4999 is EUR 49.99.
///
/// It is never converted from anything else: `"49.99"` and `50.0` may mean euros or cents, so the error asks the caller to
/// send the smallest unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct MinorUnits(i64);

impl MinorUnits {
    /// The number of smallest units.
    pub const fn amount(self) -> i64 {
        self.0
    }
}

impl ArgValue for MinorUnits {
    const KIND: ValueKind = ValueKind::Integer;
    const RANGE: Option<(i128, i128)> = Some((0, AMOUNT_MAX as i128));

    fn describe(mut parameter: Parameter) -> Parameter {
        const UNIT: &str = "In the smallest unit: 4999 is EUR 49.99.";
        parameter.description = format!("{} {UNIT}", parameter.description);
        parameter.strict()
    }
}

/// A currency as an argument: three letters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct CurrencyCode(String);

impl CurrencyCode {
    /// The code in capital letters.
    pub fn code(&self) -> String {
        self.0.to_ascii_uppercase()
    }
}

impl ArgValue for CurrencyCode {
    const KIND: ValueKind = ValueKind::String;

    fn describe(mut parameter: Parameter) -> Parameter {
        parameter.bounds.pattern = Some("^[A-Za-z]{3}$".to_owned());
        parameter
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The smallest `i64` has no absolute value; neither it nor anything beyond 2^53 is an amount.
    #[test]
    fn what_is_out_of_range_is_no_amount() {
        let check = |amount: i64, expected: bool| {
            let read: Result<Money, _> =
                serde_json::from_value(json!({"amount": amount, "currency": "EUR"}));
            assert_eq!(read.is_ok(), expected, "{amount}");
            let sum = Money::new(amount, "EUR").plus(&Money::zero("EUR"));
            assert_eq!(sum.is_ok(), expected, "{amount}");
        };
        check(AMOUNT_MAX, true);
        check(-AMOUNT_MAX, true);
        check(AMOUNT_MAX + 1, false);
        check(-AMOUNT_MAX - 1, false);
        check(i64::MIN, false);
        check(i64::MAX, false);
    }
}
