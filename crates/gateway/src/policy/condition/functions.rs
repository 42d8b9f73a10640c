//! The functions of conditions.

use std::borrow::Cow;

use countersign::budget::{Currency, InvalidMoney, Money};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use super::eval::{BYTES_A_STEP, Datum, Evaluation, Failed, Item};
use super::tree::{Function, Node};

impl<'a> Evaluation<'a> {
    pub(super) fn call(
        &self,
        function: Function,
        nodes: &'a [Node],
        item: Item<'a>,
    ) -> Result<Datum<'a>, Failed> {
        let none = || Failed::Type { found: "nothing" };
        let first = nodes.first().ok_or_else(none)?;
        Ok(match function {
            Function::Size => Datum::Number(match self.value(first, item)? {
                Datum::Text(text) => {
                    self.step(text.len() / BYTES_A_STEP)?;
                    Decimal::from(text.chars().count())
                }
                Datum::List(items) => Decimal::from(items.len()),
                Datum::Object(value) => {
                    Decimal::from(value.as_object().map_or(0, serde_json::Map::len))
                }
                other => return Err(other.wrong()),
            }),
            Function::StartsWith | Function::EndsWith | Function::Contains => {
                let second = nodes.get(1).ok_or_else(none)?;
                let (text, part) = (self.text(first, item)?, self.text(second, item)?);
                self.step((text.len() + part.len()) / BYTES_A_STEP)?;
                Datum::Bool(match function {
                    Function::StartsWith => text.starts_with(&*part),
                    Function::EndsWith => text.ends_with(&*part),
                    _ => text.contains(&*part),
                })
            }
            Function::LowerAscii => {
                let text = self.text(first, item)?;
                self.step(text.len() / BYTES_A_STEP)?;
                Datum::Text(Cow::Owned(text.to_ascii_lowercase()))
            }
            Function::Decimal => match self.value(first, item)? {
                Datum::Text(text) => {
                    Datum::Number(Decimal::from_str_exact(text.trim()).map_err(|_| Failed::Number)?)
                }
                number @ Datum::Number(_) => number,
                other => return Err(other.wrong()),
            },
            Function::Money | Function::Minor => {
                self.money(first, nodes.get(1), item, function == Function::Minor)?
            }
            Function::Timestamp => {
                let text = self.text(first, item)?;
                Datum::Time(text.parse().map_err(|_| Failed::Time)?)
            }
            Function::FullYear
            | Function::Month
            | Function::Date
            | Function::DayOfWeek
            | Function::Hours
            | Function::Minutes => {
                let zone = nodes.get(1).map(|zone| self.text(zone, item)).transpose()?;
                match self.value(first, item)? {
                    Datum::Time(time) => Datum::Number(part_of(function, time, zone.as_deref())?),
                    other => return Err(other.wrong()),
                }
            }
        })
    }

    fn money(
        &self,
        amount: &'a Node,
        currency: Option<&'a Node>,
        item: Item<'a>,
        is_minor: bool,
    ) -> Result<Datum<'a>, Failed> {
        let (amount, code) = match currency {
            Some(currency) => (self.value(amount, item)?, self.text(currency, item)?),
            None => match self.value(amount, item)? {
                Datum::Object(value) => {
                    let member = |name: &str| {
                        let absent = || Failed::Absent {
                            path: name.to_owned(),
                        };
                        self.datum(value.get(name).ok_or_else(absent)?)
                    };
                    match member("currency")? {
                        Datum::Text(code) => (member("amount")?, code),
                        other => return Err(other.wrong()),
                    }
                }
                other => return Err(other.wrong()),
            },
        };
        let currency = Currency::new(&code)?;
        let text = match amount {
            Datum::Text(text) => text.trim().to_owned(),
            Datum::Number(number) => number.normalize().to_string(),
            other => return Err(other.wrong()),
        };
        let money = money_of(&text, &currency, is_minor)?;
        Ok(Datum::Money(currency, money))
    }
}

/// Money of an amount as it is written.
pub(super) fn money_of(
    amount: &str,
    currency: &Currency,
    is_minor: bool,
) -> Result<Money, InvalidMoney> {
    if !is_minor {
        return currency.amount(amount);
    }
    let minor: i64 = amount.parse().map_err(|_| InvalidMoney::Amount)?;
    let major = Decimal::new(minor, currency.decimals());
    currency.amount(&major.to_string())
}

/// A part of a time in a zone, as CEL counts: months from 0, days of the week from 0 on Sunday.
fn part_of(function: Function, time: Timestamp, zone: Option<&str>) -> Result<Decimal, Failed> {
    let zone = match zone {
        Some(zone) => TimeZone::get(zone).map_err(|_| Failed::Time)?,
        None => TimeZone::UTC,
    };
    let time = time.to_zoned(zone);
    Ok(match function {
        Function::FullYear => Decimal::from(time.year()),
        Function::Month => Decimal::from(time.month() - 1),
        Function::Date => Decimal::from(time.day()),
        Function::DayOfWeek => Decimal::from(time.weekday().to_sunday_zero_offset()),
        Function::Hours => Decimal::from(time.hour()),
        Function::Minutes => Decimal::from(time.minute()),
        Function::Size
        | Function::StartsWith
        | Function::EndsWith
        | Function::Contains
        | Function::LowerAscii
        | Function::Decimal
        | Function::Money
        | Function::Minor
        | Function::Timestamp => return Err(Failed::Time),
    })
}
