//! Exact amounts: whole numbers of the smallest unit of a currency.

use std::fmt;

use serde_json::Value;

use super::Unit;

/// A currency by its ISO 4217 code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Currency {
    code: String,
}

/// An amount in the smallest unit of its currency: cents, where the currency is the euro.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(pub(crate) i64);

/// Errors of a text that is not a currency, or not an amount of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMoney {
    /// A currency code has three letters. Usually a symbol or a name was given.
    #[error("a currency has three letters, as in EUR")]
    Currency,
    /// The text is not written as an amount. Usually it has a sign, a currency or a comma.
    #[error("an amount is written as 12.50, without a sign")]
    Amount,
    /// The amount has more decimals than the currency. Usually the amount was computed and not rounded.
    #[error("the currency has {decimals} decimals at most")]
    Decimals {
        /// Number of decimals of the currency.
        decimals: u32,
    },
    /// The amount is too large to be counted. Usually a number in minor units was taken for major ones.
    #[error("the amount is too large to be counted")]
    TooLarge,
}

/// Maximum amount of a pot or a call, so that sums of them stay whole numbers.
const MINOR_MAX: i64 = 1_000_000_000_000_000;

/// Bound from which a JSON number with a fraction may not be exact.
const FRACTION_MAX: f64 = 1e12;

impl Currency {
    /// A code as `EUR`; case does not count.
    pub fn new(code: &str) -> Result<Self, InvalidMoney> {
        let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic());
        if !is_code {
            return Err(InvalidMoney::Currency);
        }
        Ok(Self {
            code: code.to_ascii_uppercase(),
        })
    }

    /// The code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// True if a text is this currency's code.
    pub fn is(&self, code: &str) -> bool {
        self.code.eq_ignore_ascii_case(code)
    }

    /// Number of decimals of its amounts (ISO 4217).
    pub fn decimals(&self) -> u32 {
        match self.code.as_str() {
            "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF"
            | "UGX" | "UYI" | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
            "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
            "CLF" | "UYW" => 4,
            _ => 2,
        }
    }

    /// An amount of it, as `12.50`. More decimals than the currency has are refused, never rounded.
    pub fn amount(&self, text: &str) -> Result<Money, InvalidMoney> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let has_point = text.contains('.');
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
            return Err(InvalidMoney::Amount);
        }
        if has_point && fraction.is_empty() {
            return Err(InvalidMoney::Amount);
        }
        let decimals = self.decimals();
        let fraction = fraction.trim_end_matches('0');
        let places = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
        let Some(missing) = decimals.checked_sub(places) else {
            return Err(InvalidMoney::Decimals { decimals });
        };
        let digits = format!("{whole}{fraction}");
        let minor = digits.parse::<i64>().ok();
        let minor = minor.and_then(|minor| minor.checked_mul(10_i64.checked_pow(missing)?));
        minor
            .filter(|minor| *minor <= MINOR_MAX)
            .map(Money)
            .ok_or(InvalidMoney::TooLarge)
    }

    /// An amount in JSON: a number, or a text that is one.
    pub(super) fn read(&self, value: &Value, unit: Unit) -> Result<Money, InvalidMoney> {
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => {
                let is_exact = number.is_i64()
                    || number.is_u64()
                    || number
                        .as_f64()
                        .is_some_and(|number| number.abs() < FRACTION_MAX);
                if !is_exact {
                    return Err(InvalidMoney::TooLarge);
                }
                number.to_string()
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(InvalidMoney::Amount);
            }
        };
        match unit {
            Unit::Major => self.amount(&text),
            Unit::Minor => {
                let whole = text.strip_suffix(".0").unwrap_or(&text);
                let is_number = !whole.is_empty() && whole.bytes().all(|b| b.is_ascii_digit());
                let minor = whole.parse().ok().filter(|minor| *minor <= MINOR_MAX);
                match (is_number, minor) {
                    (true, Some(minor)) => Ok(Money(minor)),
                    (true, None) => Err(InvalidMoney::TooLarge),
                    (false, _) => Err(InvalidMoney::Amount),
                }
            }
        }
    }

    /// An amount as people write it.
    pub fn shown(&self, money: Money) -> String {
        let decimals = usize::try_from(self.decimals()).unwrap_or_default();
        let sign = if money.0 < 0 { "-" } else { "" };
        let digits = format!("{:0width$}", money.0.unsigned_abs(), width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let point = if decimals > 0 { "." } else { "" };
        format!("{sign}{whole}{point}{fraction} {}", self.code)
    }
}

impl Money {
    /// The amount in the smallest unit.
    pub const fn minor(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_read_exactly_or_not_at_all() {
        use InvalidMoney::{Amount, Decimals, TooLarge};
        for (code, text, expected) in [
            ("EUR", "12", Ok(1_200)),
            ("EUR", "12.5", Ok(1_250)),
            ("EUR", "0.01", Ok(1)),
            ("EUR", "12.500", Ok(1_250)),
            ("eur", "007", Ok(700)),
            ("JPY", "12", Ok(12)),
            ("JPY", "12.0", Ok(12)),
            ("KWD", "1.234", Ok(1_234)),
            ("EUR", "1.005", Err(Decimals { decimals: 2 })),
            ("JPY", "1.5", Err(Decimals { decimals: 0 })),
            ("EUR", "-1", Err(Amount)),
            ("EUR", "+1", Err(Amount)),
            ("EUR", "1e3", Err(Amount)),
            ("EUR", "1,50", Err(Amount)),
            ("EUR", "1.", Err(Amount)),
            ("EUR", ".5", Err(Amount)),
            ("EUR", "", Err(Amount)),
            ("EUR", "99999999999999999999", Err(TooLarge)),
            ("EUR", "10000000000000.01", Err(TooLarge)),
        ] {
            let found = Currency::new(code).unwrap().amount(text);
            assert_eq!(found.map(Money::minor), expected, "{code} {text}");
        }
        for code in ["", "EU", "EURO", "E1R", "€"] {
            assert_eq!(Currency::new(code), Err(InvalidMoney::Currency), "{code}");
        }
    }

    #[test]
    fn json_numbers_and_texts_are_amounts() {
        let euro = Currency::new("EUR").unwrap();
        for (value, unit, expected) in [
            (json!(12.1), Unit::Major, Some(1_210)),
            (json!(12), Unit::Major, Some(1_200)),
            (json!("12.10"), Unit::Major, Some(1_210)),
            (json!(0.1 + 0.2), Unit::Major, None),
            (json!(-1), Unit::Major, None),
            (json!(1e15), Unit::Major, None),
            (json!(1250), Unit::Minor, Some(1_250)),
            (json!(12.5), Unit::Minor, None),
            (json!("-5"), Unit::Minor, None),
            (json!(null), Unit::Major, None),
            (json!({"amount": 1}), Unit::Major, None),
        ] {
            let found = euro.read(&value, unit).ok().map(Money::minor);
            assert_eq!(found, expected, "{value} {unit:?}");
        }
    }

    #[test]
    fn amounts_are_shown_with_their_decimals() {
        let shown = |code, minor| Currency::new(code).unwrap().shown(Money(minor));
        assert_eq!(shown("EUR", 5), "0.05 EUR");
        assert_eq!(shown("EUR", -1_250), "-12.50 EUR");
        assert_eq!(shown("JPY", 12), "12 JPY");
        assert_eq!(shown("KWD", 1_234), "1.234 KWD");
    }
}
