//! Values of a call as people read them: amounts with their currency, times, and members by their names.

use std::collections::BTreeSet;

use countersign::budget::Currency;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::steps;
use super::words::Says;
use crate::shown;

/// Maximum number of highlighted lines of one step.
const HIGHLIGHTS_MAX: usize = 12;

/// Maximum number of sentences of one step: conditions, and what the buyer is to confirm.
const SENTENCES_MAX: usize = 20;

/// Maximum depth at which amounts are searched.
const DEPTH_MAX: usize = 3;

/// Maximum length of a value that is shown, in characters.
const VALUE_CHARS_MAX: usize = 400;

/// A name and a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Name of the amount.
    pub label: String,
    /// Its value.
    pub value: String,
    /// True if it is the total of something.
    #[serde(skip)]
    pub(super) is_total: bool,
}

impl Line {
    /// A line.
    pub(crate) fn new(label: &str, value: String) -> Self {
        Self {
            label: label.to_owned(),
            value,
            is_total: false,
        }
    }
}

/// An amount with its currency, such as `EUR 1,234.50`. A whole number counts in the smallest unit only where the tool is known to
/// write it so (`is_minor`); otherwise it is shown as it was written.
pub(super) fn money(members: &Map<String, Value>, is_minor: bool) -> Option<String> {
    let code = members.get("currency")?.as_str()?;
    let amount = members.get("amount")?;
    let written = match amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), Currency::new(code)) {
            (Some(amount), Ok(currency)) if is_minor => decimal(amount, currency.decimals()),
            (_, _) => number.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(format!("{code} {written}"))
}

/// A whole number of the smallest unit as a decimal number with separators: 123450 with two decimals is `1,234.50`.
fn decimal(amount: i64, decimals: u32) -> String {
    let unit = 10_u64.saturating_pow(decimals);
    let size = amount.unsigned_abs();
    let sign = if amount < 0 { "-" } else { "" };
    let whole = shown::number(size / unit);
    if decimals == 0 {
        return format!("{sign}{whole}");
    }
    let width = usize::try_from(decimals).unwrap_or_default();
    format!("{sign}{whole}.{:0width$}", size % unit)
}

/// The lines of a value that people look for first: items, amounts, and what stands at the top.
pub(super) fn highlights(value: &Value, is_minor: bool, says: &'static Says) -> Vec<Line> {
    let mut lines = Vec::new();
    items(value, is_minor, 0, &mut lines);
    // A list without prices says less than one with them.
    if lines.iter().any(|line| !line.value.is_empty()) {
        lines.retain(|line| !line.value.is_empty());
    }
    for line in lines.iter_mut().filter(|line| line.value.is_empty()) {
        line.value = std::mem::replace(&mut line.label, steps::label("items", says.language));
    }
    amounts(value, "", is_minor, 0, &mut lines, says);
    if let Value::Object(members) = value {
        for (name, member) in members {
            let text = match member {
                Value::String(text) if is_noise(name, text) => continue,
                Value::String(text) => plain(text, says),
                Value::Bool(true) => says.yes.to_owned(),
                Value::Bool(false) => says.no.to_owned(),
                Value::Number(_) if name.ends_with("_version") => continue,
                Value::Number(number) if money(members, is_minor).is_none() => number.to_string(),
                Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => continue,
            };
            if text.chars().count() <= 80 {
                lines.push(Line::new(&steps::label(name, says.language), text));
            }
        }
    }
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert((line.label.clone(), line.value.clone())));
    lines.truncate(HIGHLIGHTS_MAX);
    lines.extend(sentences(value, says));
    lines
}

/// Sentences that the answer asks the buyer to confirm, then its other conditions.
fn sentences(value: &Value, says: &'static Says) -> Vec<Line> {
    let (mut confirmed, mut conditions) = (Vec::new(), Vec::new());
    collect(
        value,
        &["confirmation_items", "policy_ack_required"],
        &mut confirmed,
    );
    collect(value, &["findings"], &mut conditions);
    conditions.retain(|condition| !confirmed.iter().any(|it| it.contains(condition.as_str())));
    let confirmed = confirmed.into_iter().map(|text| (says.to_confirm, text));
    let conditions = conditions.into_iter().map(|text| (says.condition, text));
    let lines = confirmed.chain(conditions).take(SENTENCES_MAX);
    lines.map(|(label, text)| Line::new(label, text)).collect()
}

/// The texts in lists of these names, each once.
fn collect(value: &Value, names: &[&str], texts: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|item| collect(item, names, texts)),
        Value::Object(members) => {
            for (name, member) in members {
                let listed = member.as_array().filter(|_| names.contains(&name.as_str()));
                for item in listed.into_iter().flatten() {
                    let text = item.get("text").or_else(|| item.get("message"));
                    let text = text.and_then(Value::as_str).unwrap_or_default();
                    if !text.is_empty() && !texts.iter().any(|known| known == text) {
                        texts.push(text.to_owned());
                    }
                }
                collect(member, names, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Everything in a value, by name, at most `max` lines.
pub(super) fn details(
    value: &Value,
    lead: &str,
    is_minor: bool,
    max: usize,
    says: &'static Says,
) -> Vec<Line> {
    let mut lines = flat(value, is_minor, says);
    let left_out = lines.len().saturating_sub(max);
    lines.truncate(max);
    for line in &mut lines {
        line.label = if line.label.is_empty() {
            lead.to_owned()
        } else {
            format!("{lead} › {}", line.label)
        };
    }
    if left_out > 0 {
        lines.push(Line::new(
            "…",
            says.more_lines.replace("{}", &left_out.to_string()),
        ));
    }
    lines
}

/// Everything in a value, by name.
pub(super) fn flat(value: &Value, is_minor: bool, says: &'static Says) -> Vec<Line> {
    let mut lines = Vec::new();
    walk(value, "", is_minor, &mut lines, says);
    lines
}

fn walk(value: &Value, label: &str, is_minor: bool, lines: &mut Vec<Line>, says: &'static Says) {
    let below = |name: &str| {
        if label.is_empty() {
            name.to_owned()
        } else {
            format!("{label} › {name}")
        }
    };
    match value {
        Value::Null => {}
        Value::Object(members) => {
            let amount = money(members, is_minor);
            let is_amount = |name: &str| amount.is_some() && matches!(name, "amount" | "currency");
            if let Some(amount) = &amount {
                let is_all = members.len() == 2;
                let label = if is_all {
                    label.to_owned()
                } else {
                    below(&steps::label("amount", says.language))
                };
                lines.push(Line::new(&label, amount.clone()));
            }
            for (name, member) in members.iter().filter(|(name, _)| !is_amount(name)) {
                let name = steps::label(name, says.language);
                walk(member, &below(&name), is_minor, lines, says);
            }
        }
        Value::Array(list) => {
            for (at, item) in list.iter().enumerate() {
                walk(item, &below(&(at + 1).to_string()), is_minor, lines, says);
            }
        }
        Value::String(text) => lines.push(Line::new(label, plain(text, says))),
        Value::Bool(_) | Value::Number(_) => lines.push(Line::new(label, value.to_string())),
    }
}

/// Things that are bought: what, how many and for how much.
fn items(value: &Value, is_minor: bool, depth: usize, lines: &mut Vec<Line>) {
    match value {
        Value::Array(list) => list
            .iter()
            .for_each(|item| items(item, is_minor, depth + 1, lines)),
        Value::Object(members) => {
            let prices = ["line_total", "total", "price", "unit_price", "cost"];
            let price = prices
                .iter()
                .find_map(|name| money(members.get(*name)?.as_object()?, is_minor));
            let quantity = members.get("quantity").and_then(Value::as_u64);
            let label = match (name_of(members), quantity) {
                (Some(name), Some(quantity)) => Some(format!("{quantity} × {name}")),
                (Some(name), None) if depth > 0 && price.is_some() => Some(name),
                (Some(_), None) | (None, _) => None,
            };
            if let Some(label) = label {
                lines.push(Line::new(&label, price.unwrap_or_default()));
            } else if depth <= DEPTH_MAX {
                members
                    .values()
                    .for_each(|member| items(member, is_minor, depth + 1, lines));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Name of a list's item for people.
fn name_of(members: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let service = || Some(format!("{} {}", text("carrier")?, text("service")?));
    let name = text("title")
        .or_else(|| text("name"))
        .or_else(|| text("sku"));
    name.map(str::to_owned).or_else(service)
}

/// Amounts outside of lists, by name.
fn amounts(
    value: &Value,
    name: &str,
    is_minor: bool,
    depth: usize,
    lines: &mut Vec<Line>,
    says: &'static Says,
) {
    let Value::Object(members) = value else {
        return;
    };
    if let Some(value) = money(members, is_minor) {
        let name = if name.is_empty() { "amount" } else { name };
        lines.push(Line {
            label: steps::label(name, says.language),
            value,
            is_total: matches!(name, "total" | "amount"),
        });
    }
    if depth < DEPTH_MAX {
        for (name, member) in members {
            amounts(member, name, is_minor, depth + 1, lines, says);
        }
    }
}

/// True for values that tell nothing to a person; the details have them.
fn is_noise(name: &str, text: &str) -> bool {
    let is_name = name.ends_with("_id") && !matches!(name, "draft_order_id" | "payment_intent_id");
    is_name || text.starts_with("sha256:") || text.starts_with("ev_") || name == "currency"
}

/// A text that is a time, as people write it; `None` for other texts.
pub(super) fn time(text: &str, says: &'static Says) -> Option<String> {
    let is_time = text.len() >= 20 && text.ends_with('Z');
    let at = text.parse::<Timestamp>().ok().filter(|_| is_time)?;
    Some(at.strftime(says.moment).to_string())
}

/// A text, with a time as people write it, bounded.
fn plain(text: &str, says: &'static Says) -> String {
    if let Some(time) = time(text, says) {
        return time;
    }
    let mut kept: String = text.chars().take(VALUE_CHARS_MAX).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// N5: amounts are written as people write them, where the unit is known.
    #[test]
    fn amounts_are_written_for_people() {
        let check = |value: Value, is_minor: bool, expected: Option<&str>| {
            let found = money(value.as_object().unwrap(), is_minor);
            assert_eq!(found.as_deref(), expected, "{value}");
        };
        check(
            json!({"amount": 123_450, "currency": "EUR"}),
            true,
            Some("EUR 1,234.50"),
        );
        check(
            json!({"amount": 5, "currency": "EUR"}),
            true,
            Some("EUR 0.05"),
        );
        check(
            json!({"amount": -1_999, "currency": "USD"}),
            true,
            Some("USD -19.99"),
        );
        check(
            json!({"amount": 1_999, "currency": "JPY"}),
            true,
            Some("JPY 1,999"),
        );
        check(
            json!({"amount": 1_500, "currency": "KWD"}),
            true,
            Some("KWD 1.500"),
        );
        // Nobody says in which unit a tool of somebody else counts.
        check(
            json!({"amount": 1_999, "currency": "EUR"}),
            false,
            Some("EUR 1999"),
        );
        check(
            json!({"amount": "19.99", "currency": "EUR"}),
            true,
            Some("EUR 19.99"),
        );
        check(json!({"amount": 5}), true, None);
        check(json!({"amount": [], "currency": "EUR"}), true, None);
    }

    #[test]
    fn values_are_told_by_name() {
        let order = json!({
            "draft_order_id": "order_1", "basket": "sha256:0",
            "items": [{"title": "Earbuds", "quantity": 3, "line_total": {"amount": 5_997, "currency": "EUR"}}],
            "pricing_breakdown": {"total": {"amount": 6_495, "currency": "EUR"}},
        });
        let says = super::super::words::of(countersign::contract::Language::English);
        let lines = highlights(&order, true, says);
        let told: Vec<(&str, &str)> = lines
            .iter()
            .map(|line| (line.label.as_str(), line.value.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("3 × Earbuds", "EUR 59.97"),
                ("Total", "EUR 64.95"),
                ("Draft order id", "order_1")
            ]
        );
        assert!(lines[1].is_total);
        // Without prices, the things stand in the place of the amount; and sentences are not cut away.
        let held = json!({
            "items": [{"sku": "SKU-1", "quantity": 3}], "expires_at": "2026-11-18T09:46:14.860346426Z",
            "findings": [{"message": "Batteries are collected apart."}, {"message": "Customs may stop it."}],
            "confirmation_items": [{"text": "I know: Customs may stop it."}],
        });
        let lines = highlights(&held, true, says);
        let told: Vec<(&str, &str)> = lines
            .iter()
            .map(|line| (line.label.as_str(), line.value.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("Items", "3 × SKU-1"),
                ("Expires at", "18 Nov 2026, 09:46:14 UTC"),
                ("To confirm", "I know: Customs may stop it."),
                ("Condition", "Batteries are collected apart."),
            ]
        );
        let all = details(&order, "Answered", true, 2, says);
        assert_eq!(all.len(), 3);
        assert_eq!(all[2].label, "…");
    }
}
