//! One consignment from outside: its regime, and the amounts that are due under it.

use std::collections::BTreeMap;

use countersign::ToolError;
use rust_decimal::Decimal;

use super::allot::allot;
use super::answer::{Method, TaxLine};
use super::compute::{Case, Due, Piece};
use super::fee::fees;
use super::note::Note;
use super::rules::{DutyTreatment, Limit, LimitOf, Regime, Valuation};
use super::tariff::has_code;
use crate::money::{Money, MoneyError};
use crate::words::Say;

/// The duty and tax of one consignment, line by line; fees are added to `due`.
pub(super) fn consignment(
    case: &Case<'_>,
    due: &mut Due,
    pieces: &[Piece<'_>],
) -> Result<Vec<TaxLine>, ToolError> {
    under(
        case,
        due,
        pieces,
        &case.place.territory.regimes,
        Fees::Taken,
    )
}

/// The treatment of fees in a computation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fees {
    Taken,
    /// Fees are left out, to measure a threshold of the tax: goods below it are not cleared, so that there is no fee to
    /// tax.
    Left,
}

/// Computes a consignment as if there were only these regimes.
fn under(
    case: &Case<'_>,
    due: &mut Due,
    pieces: &[Piece<'_>],
    regimes: &[Regime],
    counted: Fees,
) -> Result<Vec<TaxLine>, ToolError> {
    let mut lines = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let regime = regime_of(case, due, pieces, *piece, regimes)?;
        let mut line = case.line(*piece, regime.method);
        line.customs_value = customs_value(case, *piece)?;
        let territory = &case.place.country.territory;
        line.rules.push(format!("{territory}/regime/{}", regime.id));
        lines.push((regime, line));
    }
    duties(case, due, &mut lines)?;
    let taxed_fees = match counted {
        Fees::Taken => fees(case, due, &lines)?,
        Fees::Left => vec![Money::zero(case.currency); lines.len()],
    };
    for ((regime, line), fees) in lines.iter_mut().zip(&taxed_fees) {
        if let Some(base) = regime.tax_base {
            case.tax(due, line, base, regime.tax_share, Some(fees))?;
        }
        if regime.is_tax_at_sale {
            due.at_sale = due.at_sale.plus(&line.tax)?;
        }
        if let Some(most) = regime.confidence_max {
            due.at_most(most);
        }
        if let Some(note) = &regime.note {
            due.note(Note::Rule(note.clone()));
        }
    }
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

/// The value that duty is computed on.
fn customs_value(case: &Case<'_>, piece: Piece<'_>) -> Result<Money, MoneyError> {
    match case.place.territory.customs_value {
        Valuation::Cif => piece.goods.value.plus(piece.freight),
        Valuation::Fob => Ok(piece.goods.value.clone()),
    }
}

/// The first regime that fits a line.
fn regime_of<'r>(
    case: &Case<'_>,
    due: &mut Due,
    pieces: &[Piece<'_>],
    piece: Piece<'_>,
    regimes: &'r [Regime],
) -> Result<&'r Regime, ToolError> {
    for (at, regime) in regimes.iter().enumerate() {
        let goods = piece.goods;
        let is_from = regime.from.is_empty() || regime.from.contains(&goods.sender.ships_from);
        let is_by = regime.by.is_none() || regime.by == case.carriage();
        if !is_from || !is_by || has_code(&regime.except_hs, &goods.hs_code) {
            continue;
        }
        let Some(limit) = &regime.limit else {
            return Ok(regime);
        };
        let rest = regimes.get(at + 1..).unwrap_or_default();
        if is_below(case, due, pieces, piece, limit, rest)? {
            return Ok(regime);
        }
    }
    // `check` makes sure that the last one fits.
    Err(ToolError::invalid(
        "/destination/country",
        Say::NoSuchImport,
    ))
}

/// True if a limit is not exceeded; compared in its own currency, and not rounded.
fn is_below(
    case: &Case<'_>,
    due: &mut Due,
    pieces: &[Piece<'_>],
    piece: Piece<'_>,
    limit: &Limit,
    rest: &[Regime],
) -> Result<bool, ToolError> {
    let sum = |amounts: &[Money]| Money::sum(amounts, case.currency);
    let (measured, count) = match limit.of {
        LimitOf::Goods => {
            let values: Vec<Money> = pieces
                .iter()
                .map(|piece| piece.goods.value.clone())
                .collect();
            (sum(&values)?, 1)
        }
        LimitOf::CustomsValue => {
            let values: Result<Vec<Money>, MoneyError> = pieces
                .iter()
                .map(|piece| customs_value(case, *piece))
                .collect();
            (sum(&values?)?, 1)
        }
        LimitOf::Piece => (piece.goods.value.clone(), piece.goods.quantity.max(1)),
        LimitOf::Tax => {
            // The tax that would be due otherwise; nothing of this trial is kept.
            let mut trial = Due::nothing(case.currency);
            let lines = under(case, &mut trial, pieces, rest, Fees::Left)?;
            let taxes: Vec<Money> = lines.into_iter().map(|line| line.tax).collect();
            (sum(&taxes)?, 1)
        }
    };
    let measured = case.into(due, &measured, &limit.currency)?;
    let most = limit.amount.checked_mul(Decimal::from(count));
    let most = most.ok_or(MoneyError::TooLarge)?;
    Ok(measured < most || (limit.is_inclusive && measured == most))
}

/// Adds the duty of each line. A flat duty is due once for each code under the same regime, and is divided by value.
fn duties(
    case: &Case<'_>,
    due: &mut Due,
    lines: &mut [(&Regime, TaxLine)],
) -> Result<(), ToolError> {
    let mut flat: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (at, (regime, line)) in lines.iter_mut().enumerate() {
        match regime.duty {
            DutyTreatment::None => {}
            DutyTreatment::Tariff => case.tariff_duty(due, line)?,
            DutyTreatment::FlatPerCode => {
                let key = (regime.id.clone(), line.hs_code.clone());
                flat.entry(key).or_default().push(at);
            }
        }
    }
    for of_code in flat.values() {
        let values: Vec<i64> = of_code
            .iter()
            .filter_map(|at| lines.get(*at))
            .map(|(_, line)| line.goods_value.amount)
            .collect();
        let first = of_code.first().and_then(|at| lines.get(*at));
        let Some(amount) = first.and_then(|(regime, _)| regime.flat_duty.as_ref()) else {
            continue;
        };
        let whole = case.from(due, amount.amount, &amount.currency)?;
        for (at, part) in of_code.iter().zip(allot(&whole, &values)) {
            if let Some((regime, line)) = lines.get_mut(*at) {
                let territory = &case.place.country.territory;
                line.rules
                    .push(format!("{territory}/duty/flat/{}", regime.id));
                line.duty = part;
                // Not a rate: the amount does not follow from the value.
                "flat".clone_into(&mut line.duty_rate);
            }
        }
    }
    Ok(())
}

/// The method of all lines, or `several` if they differ.
pub(super) fn method_of(lines: &[TaxLine]) -> &'static str {
    let mut methods = lines.iter().map(|line| line.method);
    let first = methods.next().map_or("several", Method::as_str);
    if methods.all(|method| method.as_str() == first) {
        first
    } else {
        "several"
    }
}
