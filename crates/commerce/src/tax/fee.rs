//! The fees of clearance: by consignment and regime, each fee once.

use countersign::ToolError;
use rust_decimal::Decimal;

use super::allot::allot;
use super::answer::{Confidence, Fee, TaxLine};
use super::compute::{Case, Due};
use super::note::Note;
use super::rules::{Carriage, FeeRule, Regime};
use super::tariff::{self, Asked};
use crate::money::{Money, MoneyError};

/// Adds the fees of a consignment whose duties are known; returns the taxed part of them for each line.
pub(super) fn fees(
    case: &Case<'_>,
    due: &mut Due,
    lines: &[(&Regime, TaxLine)],
) -> Result<Vec<Money>, ToolError> {
    let mut taxed = vec![Money::zero(case.currency); lines.len()];
    let mut regimes: Vec<&Regime> = Vec::new();
    for (regime, _) in lines {
        if !regimes.iter().any(|known| known.id == regime.id) {
            regimes.push(regime);
        }
    }
    for regime in regimes {
        let of_regime: Vec<(usize, &TaxLine)> = lines
            .iter()
            .enumerate()
            .filter(|(_, (of, _))| of.id == regime.id)
            .map(|(at, (_, line))| (at, line))
            .collect();
        add(case, due, regime, &of_regime, &mut taxed)?;
    }
    Ok(taxed)
}

/// Adds the fees of one regime, and their taxed parts to the lines.
fn add(
    case: &Case<'_>,
    due: &mut Due,
    regime: &Regime,
    lines: &[(usize, &TaxLine)],
    taxed: &mut [Money],
) -> Result<(), ToolError> {
    let values: Vec<&Money> = lines.iter().map(|(_, line)| &line.customs_value).collect();
    let weights: Vec<i64> = values.iter().map(|value| value.amount).collect();
    let worth = Money::sum(values, case.currency)?;
    let from = lines.first().map(|(_, line)| line.ships_from.as_str());
    // The post takes no fee if there is nothing to collect.
    let is_due = lines.iter().any(|(_, line)| is_due(case, regime, line));
    let is_by_post = match case.carriage() {
        Some(Carriage::Courier) => false,
        Some(Carriage::Post) | None => true,
    };
    let is_collected = regime.has_country_fees && is_due && is_by_post;
    let of_country = case.place.country.fees.iter().filter(|_| is_collected);
    let is_preferred = lines
        .iter()
        .all(|(_, line)| tariff::preference(case.rules, case.place, Asked::of(line)).is_some());
    if is_collected && !case.place.country.fees.is_empty() {
        due.note(Note::PostFees);
    }
    // The fee of a courier is not in the rules.
    if is_due && !is_by_post && !regime.is_tax_at_sale {
        due.at_most(Confidence::Medium);
        due.note(Note::CourierFees);
    }
    let all = regime.fees.iter().chain(of_country);
    for fee in all.filter(|fee| is_taken(fee, from)) {
        if fee.is_waived_by_preference && is_preferred {
            continue;
        }
        let amount = amount_of(case, due, fee, &worth)?;
        if fee.is_taxed {
            for ((at, _), part) in lines.iter().zip(allot(&amount, &weights)) {
                if let Some(sum) = taxed.get_mut(*at) {
                    *sum = sum.plus(&part)?;
                }
            }
        }
        let name = fee.name.for_locale(case.is_chinese.then_some("zh"));
        due.fees.push(Fee {
            rule: format!("{}/fee/{}", case.place.code, fee.id),
            name: name.to_owned(),
            amount,
        });
    }
    Ok(())
}

/// True if duty or tax is collected for a line.
fn is_due(case: &Case<'_>, regime: &Regime, line: &TaxLine) -> bool {
    let tax = || {
        let found = tariff::tax(case.place, &line.hs_code);
        found.rate + found.excise
    };
    line.duty.amount > 0 || (regime.tax_base.is_some() && tax() > Decimal::ZERO)
}

fn is_taken(fee: &FeeRule, from: Option<&str>) -> bool {
    let is_of = |countries: &[String]| countries.iter().any(|of| Some(of.as_str()) == from);
    (fee.from.is_empty() || is_of(&fee.from)) && !is_of(&fee.except_from)
}

/// The amount of a fee for goods of this value.
fn amount_of(
    case: &Case<'_>,
    due: &mut Due,
    fee: &FeeRule,
    worth: &Money,
) -> Result<Money, ToolError> {
    let mut amount = fee.amount;
    if !fee.rate.is_zero() {
        let worth = case.into(due, worth, &fee.currency)?;
        let part = worth.checked_mul(fee.rate).ok_or(MoneyError::TooLarge)?;
        amount = amount.checked_add(part).ok_or(MoneyError::TooLarge)?;
    }
    let amount = fee.min.map_or(amount, |least| amount.max(least));
    let amount = fee.max.map_or(amount, |most| amount.min(most));
    case.from(due, amount, &fee.currency)
}
