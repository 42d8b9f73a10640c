//! Values that are written out in a condition.

use countersign::budget::Currency;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use super::Wrong;
use super::functions::money_of;
use super::tree::{Expr, Function, Node};

/// Checks what is written out, so that no call finds the mistake.
pub(super) fn literals(function: Function, nodes: &[Node]) -> Result<(), Wrong> {
    let text = |index: usize| match nodes.get(index).map(|node| &node.expr) {
        Some(Expr::Text(text)) => Some(text.as_str()),
        Some(_) | None => None,
    };
    let at = |index: usize| nodes.get(index).map_or(0, |node| node.at);
    match function {
        Function::Money | Function::Minor => {
            let Some(code) = text(1) else { return Ok(()) };
            let currency = Currency::new(code).map_err(|it| Wrong::at(at(1), it.to_string()))?;
            let amount = match nodes.first().map(|node| &node.expr) {
                Some(Expr::Text(text)) => text.clone(),
                Some(Expr::Number(number)) => number.normalize().to_string(),
                Some(_) | None => return Ok(()),
            };
            let made = money_of(&amount, &currency, function == Function::Minor);
            made.map(drop)
                .map_err(|it| Wrong::at(at(0), it.to_string()))
        }
        Function::Decimal => match text(0).map(Decimal::from_str_exact) {
            Some(Err(_)) => Err(Wrong::at(at(0), "this text is no number such as 12.50")),
            Some(Ok(_)) | None => Ok(()),
        },
        Function::Timestamp => match text(0).map(str::parse::<Timestamp>) {
            Some(Err(_)) => Err(Wrong::at(
                at(0),
                "this text is no time such as 2026-12-31T00:00:00Z",
            )),
            Some(Ok(_)) | None => Ok(()),
        },
        Function::FullYear
        | Function::Month
        | Function::Date
        | Function::DayOfWeek
        | Function::Hours
        | Function::Minutes => match (nodes.len(), text(1)) {
            (1, _) => Ok(()),
            (_, Some(zone)) if TimeZone::get(zone).is_ok() => Ok(()),
            (_, Some(_)) => Err(Wrong::at(
                at(1),
                "this is no time zone such as Europe/Berlin",
            )),
            (_, None) => Err(Wrong::at(at(1), "the time zone has to be written out")),
        },
        Function::Size
        | Function::StartsWith
        | Function::EndsWith
        | Function::Contains
        | Function::LowerAscii => Ok(()),
    }
}
