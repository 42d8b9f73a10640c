//! Duty, tax and fees of a basket: from goods, shipping and rules to amounts, and nothing else. The same input gives
//! the same answer (A16).
//!
//! The goods that one merchant sends from one country are one consignment, and thresholds apply to a consignment. Each
//! amount of a line is rounded once, and totals are sums of rounded amounts; so every figure of an answer follows from
//! the figures beside it.

use std::collections::BTreeMap;

use countersign::ToolError;
use rust_decimal::Decimal;

use super::allot::allot;
use super::answer::{Confidence, Fee, Method, TaxLine};
use super::import;
use super::note::Note;
use super::place::Place;
use super::rules::{Carriage, TaxBase, TaxRules};
use super::tariff::{self, Asked};
use crate::fx::{RateUsed, Rates};
use crate::money::{Money, MoneyError};

/// The complete input of the computation.
pub(super) struct Case<'a> {
    pub(super) rules: &'a TaxRules,
    pub(super) rates: &'a Rates,
    pub(super) place: Place<'a>,
    /// The postal code as people write it; `None` if it is unknown.
    pub(super) postal_code: Option<&'a str>,
    /// The currency of all amounts.
    pub(super) currency: &'a str,
    pub(super) goods: &'a [Goods],
    /// The cost of shipping; `None` if it is unknown.
    pub(super) shipping: Option<&'a Freight>,
    pub(super) is_chinese: bool,
}

/// The cost of shipping, in the currency of the case.
#[derive(Debug, Clone)]
pub(super) struct Freight {
    pub(super) price: Money,
    /// The carrier by its name in the rule set `shipping`, such as `unipost`.
    pub(super) carrier: String,
    /// The weight of each parcel in that price. If a line has no parcel here, the price is divided by the value of the
    /// goods.
    pub(super) parcels: Vec<(Sender, i64)>,
}

/// The sender of a parcel: the goods of one sender are one consignment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sender {
    pub(super) ships_from: String,
    pub(super) merchant_id: String,
}

/// One line of a basket.
#[derive(Debug, Clone)]
pub(super) struct Goods {
    pub(super) sku: String,
    pub(super) hs_code: String,
    pub(super) origin: String,
    pub(super) sender: Sender,
    pub(super) quantity: u32,
    /// The price of the whole line.
    pub(super) value: Money,
}

/// The amounts that are due.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) lines: Vec<TaxLine>,
    pub(super) fees: Vec<Fee>,
    /// The part of the taxes that the seller collects at the sale, whatever the incoterm.
    pub(super) at_sale: Money,
    pub(super) confidence: Confidence,
    pub(super) notes: Vec<Note>,
    pub(super) rates: Vec<RateUsed>,
}

impl Due {
    /// Nothing due yet, with high confidence.
    pub(super) fn nothing(currency: &str) -> Self {
        Self {
            lines: Vec::new(),
            fees: Vec::new(),
            at_sale: Money::zero(currency),
            confidence: Confidence::High,
            notes: Vec::new(),
            rates: Vec::new(),
        }
    }

    /// Adds a note, once.
    pub(super) fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Lowers the confidence to this, if it is higher.
    pub(super) fn at_most(&mut self, confidence: Confidence) {
        self.confidence = self.confidence.min(confidence);
    }

    fn used(&mut self, rate: Option<RateUsed>) {
        if let Some(rate) = rate
            && !self.rates.contains(&rate)
        {
            self.rates.push(rate);
        }
    }
}

/// A line with its share of shipping.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    /// Its position in the basket.
    pub(super) at: usize,
    pub(super) goods: &'a Goods,
    pub(super) freight: &'a Money,
}

/// Computes the amounts that are due.
pub(super) fn compute(case: &Case<'_>) -> Result<Due, ToolError> {
    let mut due = Due::nothing(case.currency);
    if case.shipping.is_none() {
        due.at_most(Confidence::Low);
        due.note(Note::NoShipping);
    }
    let is_excisable = |goods: &Goods| tariff::has_code(&case.rules.excisable, &goods.hs_code);
    if case.goods.iter().any(is_excisable) {
        due.at_most(Confidence::Low);
        due.note(Note::Excise);
    }
    let special = case.postal_code;
    if let Some(part) = special.and_then(|code| case.place.country.special(code)) {
        due.at_most(Confidence::Low);
        due.note(Note::Special(part.name.clone()));
    }
    let freight = shares(case);
    let mut consignments: BTreeMap<&Sender, Vec<Piece<'_>>> = BTreeMap::new();
    for (at, (goods, freight)) in case.goods.iter().zip(&freight).enumerate() {
        let piece = Piece { at, goods, freight };
        consignments.entry(&goods.sender).or_default().push(piece);
    }
    let mut lines = Vec::new();
    for (sender, pieces) in &consignments {
        let from = sender.ships_from.as_str();
        let computed = if from == case.place.code {
            domestic(case, &mut due, pieces, Method::DomesticTaxOnPrice)?
        } else if is_within(case, from) {
            domestic(case, &mut due, pieces, Method::IntraUnionTaxOnPrice)?
        } else {
            import::consignment(case, &mut due, pieces)?
        };
        lines.extend(pieces.iter().map(|piece| piece.at).zip(computed));
    }
    lines.sort_by_key(|(at, _)| *at);
    due.lines = lines.into_iter().map(|(_, line)| line).collect();
    Ok(due)
}

/// The share of shipping of each line: of its parcel if parcels are known, and within it by value.
fn shares(case: &Case<'_>) -> Vec<Money> {
    let nothing = Money::zero(case.currency);
    let by_value = |whole: &Money, is_in: &dyn Fn(&Goods) -> bool| -> Vec<Money> {
        let within: Vec<&Goods> = case.goods.iter().filter(|goods| is_in(goods)).collect();
        let values: Vec<i64> = within.iter().map(|goods| goods.value.amount).collect();
        allot(whole, &values)
    };
    let Some(freight) = case.shipping else {
        return vec![nothing; case.goods.len()];
    };
    let has_parcel = |goods: &Goods| freight.parcels.iter().any(|(of, _)| *of == goods.sender);
    if !case.goods.iter().all(has_parcel) {
        return by_value(&freight.price, &|_| true);
    }
    let weights: Vec<i64> = freight.parcels.iter().map(|(_, weight)| *weight).collect();
    let mut shares = vec![nothing; case.goods.len()];
    for ((sender, _), part) in freight.parcels.iter().zip(allot(&freight.price, &weights)) {
        let mut parts = by_value(&part, &|goods| goods.sender == *sender).into_iter();
        let lines = case.goods.iter().zip(&mut shares);
        for (_, share) in lines.filter(|(goods, _)| goods.sender == *sender) {
            *share = parts.next().unwrap_or_else(|| Money::zero(case.currency));
        }
    }
    shares
}

/// True if goods sent from this country never leave the customs territory.
fn is_within(case: &Case<'_>, from: &str) -> bool {
    let territory = case.rules.countries.get(from).map(|from| &from.territory);
    territory == Some(&case.place.country.territory)
}

/// The tax of the destination, for goods that cross no customs border.
fn domestic(
    case: &Case<'_>,
    due: &mut Due,
    pieces: &[Piece<'_>],
    method: Method,
) -> Result<Vec<TaxLine>, ToolError> {
    let base = case.place.country.tax.domestic_base;
    let mut lines = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let mut line = case.line(*piece, method);
        line.customs_value = Money::zero(case.currency);
        case.tax(due, &mut line, base, Decimal::ONE, None)?;
        due.at_sale = due.at_sale.plus(&line.tax)?;
        lines.push(line);
    }
    Ok(lines)
}

impl Case<'_> {
    /// The kind of carrier; `None` if shipping is not known yet.
    pub(super) fn carriage(&self) -> Option<Carriage> {
        let freight = self.shipping?;
        if self.rules.postal_carriers.contains(&freight.carrier) {
            Some(Carriage::Post)
        } else {
            Some(Carriage::Courier)
        }
    }

    /// A line with nothing due yet, and a customs value of zero.
    pub(super) fn line(&self, piece: Piece<'_>, method: Method) -> TaxLine {
        let nothing = Money::zero(self.currency);
        TaxLine {
            sku: piece.goods.sku.clone(),
            hs_code: piece.goods.hs_code.clone(),
            origin: piece.goods.origin.clone(),
            ships_from: piece.goods.sender.ships_from.clone(),
            method,
            goods_value: piece.goods.value.clone(),
            shipping_share: piece.freight.clone(),
            customs_value: nothing.clone(),
            duty_rate: "0".to_owned(),
            duty: nothing.clone(),
            tax_base: nothing.clone(),
            tax_rate: "0".to_owned(),
            tax: nothing,
            rules: Vec::new(),
        }
    }

    /// Adds the tax to a line: this share of the rate, on its base and on taxed fees.
    pub(super) fn tax(
        &self,
        due: &mut Due,
        line: &mut TaxLine,
        base: TaxBase,
        share: Decimal,
        fees: Option<&Money>,
    ) -> Result<(), ToolError> {
        let found = tariff::tax(self.place, &line.hs_code);
        let (goods, freight, duty) = (&line.goods_value, &line.shipping_share, &line.duty);
        let parts = match base {
            TaxBase::Goods => vec![goods],
            TaxBase::GoodsAndFreight => vec![goods, freight],
            TaxBase::GoodsAndDuty => vec![goods, duty],
            TaxBase::GoodsFreightAndDuty => vec![goods, freight, duty],
        };
        line.tax_base = Money::sum(parts.into_iter().chain(fees), self.currency)?;
        // A consumption tax is part of its own base: (e + v) / (1 - e) of the amount it is added to.
        let dividend = (found.excise + found.rate) * share;
        let divisor = Decimal::ONE - found.excise;
        let tax = line.tax_base.decimal()?.checked_mul(dividend);
        let tax = tax.and_then(|tax| tax.checked_div(divisor));
        line.tax = Money::round(tax.ok_or(MoneyError::TooLarge)?, self.currency)?;
        line.tax_rate = rate_text(dividend / divisor);
        line.rules.extend(found.rules);
        due.at_most(found.confidence);
        for note in found.notes {
            due.note(note);
        }
        Ok(())
    }

    /// Adds the duty of the tariff on the customs value of a line.
    pub(super) fn tariff_duty(&self, due: &mut Due, line: &mut TaxLine) -> Result<(), ToolError> {
        let found = tariff::duty(self.rules, self.place, Asked::of(line));
        line.duty = line.customs_value.share(found.rate)?;
        line.duty_rate = rate_text(found.rate);
        line.rules.extend(found.rules);
        due.at_most(found.confidence);
        for note in found.notes {
            due.note(note);
        }
        Ok(())
    }

    /// Converts an amount to the currency of a threshold.
    pub(super) fn into(
        &self,
        due: &mut Due,
        money: &Money,
        to: &str,
    ) -> Result<Decimal, ToolError> {
        let (amount, rate) = self.rates.exchange(money.decimal()?, self.currency, to)?;
        due.used(rate);
        Ok(amount)
    }

    /// Converts an amount of the rules to the currency of the case.
    pub(super) fn from(
        &self,
        due: &mut Due,
        amount: Decimal,
        from: &str,
    ) -> Result<Money, ToolError> {
        let (amount, rate) = self.rates.exchange(amount, from, self.currency)?;
        due.used(rate);
        Ok(Money::round(amount, self.currency)?)
    }
}

/// A rate, for answers.
pub(super) fn rate_text(rate: Decimal) -> String {
    rate.round_dp(6).normalize().to_string()
}
