//! Binding of an approval: all arguments, or the terms that a tool declares.

use std::cmp::Ordering;

use countersign_contract::approval::ApprovedAmount;
use countersign_contract::tool::{AmountUnit, Confirmation, Terms};
use countersign_contract::{Digest, canonical};
use serde_json::{Value, json};

use crate::budget::Currency;

/// The parts of a call that an answer is bound to.
pub(crate) struct Agreed {
    /// Digest of the call and its circumstances: an approval counts for this.
    pub(crate) exact: Digest,
    /// Digest of the call in any circumstances: a denial counts for this.
    pub(crate) matter: Digest,
    /// The amount that may fall and not rise.
    pub(crate) ceiling: Option<ApprovedAmount>,
}

/// Splits arguments into the part that has to stay exactly as it is, and the amount that may fall.
///
/// Arguments without the declared amount, or with an amount that cannot be compared, are bound as a whole: this agrees
/// to less, never to more.
pub(crate) fn agreed(
    confirmation: &Confirmation,
    arguments: &Value,
    circumstances: &Value,
) -> Agreed {
    let ceiling = match confirmation {
        Confirmation::Never | Confirmation::Always => None,
        Confirmation::Terms(terms) => amount_of(terms, arguments).map(|amount| (terms, amount)),
    };
    let (bound, ceiling) = match ceiling {
        None => (json!({"arguments": arguments}), None),
        Some((terms, amount)) => {
            let bound: Vec<_> = terms
                .exact
                .iter()
                .map(|pointer| json!([pointer, arguments.pointer(pointer)]))
                .collect();
            let exact = json!({"terms": bound, "currency": amount.currency});
            (exact, Some(amount))
        }
    };
    Agreed {
        exact: digest(&json!({"bound": bound, "circumstances": circumstances})),
        matter: digest(&json!({"bound": bound})),
        ceiling,
    }
}

fn digest(bound: &Value) -> Digest {
    // Canonical JSON has no integers beyond 2^53; the plain text tells those apart as well.
    let text = canonical::to_string(bound).unwrap_or_else(|_| bound.to_string());
    Digest::of_bytes(text.as_bytes())
}

fn amount_of(terms: &Terms, arguments: &Value) -> Option<ApprovedAmount> {
    let amount = match arguments.pointer(&terms.ceiling.amount)? {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let decimal = Decimal::read(&amount)?;
    let currency = arguments.pointer(&terms.ceiling.currency)?.as_str()?;
    let is_code = |byte: u8| byte.is_ascii_alphanumeric();
    // It stands in the log, where free text has no place.
    if currency.is_empty() || currency.len() > CURRENCY_BYTES_MAX || !currency.bytes().all(is_code)
    {
        return None;
    }
    let unit = terms.ceiling.unit;
    let text = match unit {
        AmountUnit::Major => format!("{} {amount}", currency.to_ascii_uppercase()),
        AmountUnit::Minor => decimal.of_smallest_unit(currency)?,
    };
    Some(ApprovedAmount {
        amount,
        currency: currency.to_owned(),
        unit,
        text: Some(text),
    })
}

/// Maximum length of a currency name.
const CURRENCY_BYTES_MAX: usize = 8;

/// True if an amount is within what was agreed to.
pub(super) fn is_within(amount: Option<&ApprovedAmount>, ceiling: Option<&ApprovedAmount>) -> bool {
    match (amount, ceiling) {
        (None, None) => true,
        (Some(amount), Some(ceiling)) => {
            let compared = Decimal::read(&amount.amount)
                .zip(Decimal::read(&ceiling.amount))
                .map(|(amount, ceiling)| amount.compare(&ceiling));
            (amount.unit, &amount.currency) == (ceiling.unit, &ceiling.currency)
                && matches!(compared, Some(Ordering::Less | Ordering::Equal))
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// A decimal that is not negative, as its digits: money is never a float.
pub(super) struct Decimal<'a> {
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        (is_digits(whole) && is_digits(fraction)).then(|| Self {
            whole: whole.trim_start_matches('0'),
            fraction: fraction.trim_end_matches('0'),
        })
    }

    /// The text that people read for an amount in the smallest unit; `None` if it has a fraction of that.
    fn of_smallest_unit(&self, currency: &str) -> Option<String> {
        if !self.fraction.is_empty() {
            return None;
        }
        let code = currency.to_ascii_uppercase();
        let Ok(currency) = Currency::new(currency) else {
            let whole = if self.whole.is_empty() {
                "0"
            } else {
                self.whole
            };
            return Some(format!("{code} {whole} (smallest unit)"));
        };
        let decimals = usize::try_from(currency.decimals()).unwrap_or_default();
        let digits = format!("{:0>width$}", self.whole, width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let point = if fraction.is_empty() { "" } else { "." };
        Some(format!("{code} {whole}{point}{fraction}"))
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        // Without leading zeros the longer one is the larger one; a fraction compares digit by digit.
        (self.whole.len(), self.whole, self.fraction).cmp(&(
            other.whole.len(),
            other.whole,
            other.fraction,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(amount: &str, ceiling: &str, expected: bool) {
        let of = |amount: &str| ApprovedAmount {
            amount: amount.to_owned(),
            currency: "EUR".to_owned(),
            unit: AmountUnit::Major,
            text: None,
        };
        let is = is_within(Some(&of(amount)), Some(&of(ceiling)));
        assert_eq!(is, expected, "{amount} within {ceiling}");
    }

    /// A price may fall; an amount that cannot be compared is within nothing (A13).
    #[test]
    fn an_amount_may_fall_and_not_rise() {
        for (amount, ceiling, expected) in [
            ("10", "10", true),
            ("10.00", "10", true),
            ("010", "10.0", true),
            ("9.99", "10", true),
            ("9", "10", true),
            ("0", "0.01", true),
            ("10.01", "10", false),
            ("100", "99.99", false),
            ("0.1", "0.09", false),
            ("18446744073709551617", "18446744073709551616", false),
            ("-1", "10", false),
            ("1e3", "10000", false),
            ("", "10", false),
            ("1.", "10", false),
            (" 1", "10", false),
            ("NaN", "10", false),
        ] {
            check(amount, ceiling, expected);
        }
    }

    #[track_caller]
    fn check_text(unit: AmountUnit, amount: &Value, currency: &str, expected: Option<&str>) {
        let terms = Terms {
            exact: Vec::new(),
            ceiling: countersign_contract::tool::Ceiling {
                amount: "/amount".to_owned(),
                currency: "/currency".to_owned(),
                unit,
            },
        };
        let arguments = json!({"amount": amount, "currency": currency});
        let text = amount_of(&terms, &arguments).map(|amount| amount.to_string());
        assert_eq!(text.as_deref(), expected, "{arguments} in {unit:?}");
    }

    /// The approver reads the amount as it is written on a bill, whatever the arguments count in (A13).
    #[test]
    fn what_people_read() {
        let minor = AmountUnit::Minor;
        check_text(minor, &json!(21131), "EUR", Some("EUR 211.31"));
        check_text(minor, &json!("5"), "eur", Some("EUR 0.05"));
        check_text(minor, &json!(0), "EUR", Some("EUR 0.00"));
        check_text(minor, &json!(21131), "JPY", Some("JPY 21131"));
        check_text(minor, &json!(0), "JPY", Some("JPY 0"));
        check_text(minor, &json!(21131), "KWD", Some("KWD 21.131"));
        check_text(minor, &json!(7), "KWD", Some("KWD 0.007"));
        let points = Some("POINTS 12 (smallest unit)");
        check_text(minor, &json!(12), "POINTS", points);
        check_text(minor, &json!("211.31"), "EUR", None);
        check_text(minor, &json!(-1), "EUR", None);
        let major = AmountUnit::Major;
        check_text(major, &json!("211.31"), "EUR", Some("EUR 211.31"));
        check_text(major, &json!(21131), "jpy", Some("JPY 21131"));
    }

    /// Terms bind what they name; arguments without the amount are bound as a whole (A13).
    #[test]
    fn what_is_bound() {
        let terms = Confirmation::Terms(Terms {
            exact: vec!["/shop".to_owned()],
            ceiling: countersign_contract::tool::Ceiling {
                amount: "/total".to_owned(),
                currency: "/currency".to_owned(),
                unit: AmountUnit::Major,
            },
        });
        let of = |arguments: Value| agreed(&terms, &arguments, &Value::Null);
        let first = of(json!({"shop": "s", "total": "5", "currency": "EUR", "x": 1}));
        let amount = first.ceiling.map(|amount| amount.amount);
        assert_eq!(amount.as_deref(), Some("5"));
        for (arguments, is_same) in [
            (
                json!({"shop": "s", "total": 4, "currency": "EUR", "x": 2}),
                true,
            ),
            (json!({"shop": "t", "total": "5", "currency": "EUR"}), false),
            (json!({"shop": "s", "total": "5", "currency": "USD"}), false),
            (
                json!({"shop": "s", "total": "-5", "currency": "EUR"}),
                false,
            ),
            (json!({"shop": "s", "currency": "EUR"}), false),
        ] {
            let other = of(arguments.clone());
            assert_eq!(other.exact == first.exact, is_same, "{arguments}");
            assert_eq!(other.matter == first.matter, is_same, "{arguments}");
        }
    }
}
