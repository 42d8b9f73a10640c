//! The totals of a page. The parts that are shown add up to the total, to the smallest unit.

use super::{MoneyError, Reader, Session};
use crate::money::Money;

/// The parts of a total, by the terms of both standards. All are in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charges {
    /// The sum of all lines.
    pub subtotal: Money,
    /// The shipping price.
    pub fulfillment: Money,
    /// Duty and tax that are paid with the order. If some charges are due on delivery, this is everything else of duty,
    /// tax and fees.
    pub tax: Money,
    /// Duty and tax separately; empty if some charges are due on delivery.
    pub tax_lines: Vec<(TaxKind, Money)>,
    /// Fees that are paid with the order; zero if some charges are due on delivery.
    pub fee: Money,
    /// The amount that the buyer pays for the order: the sum of the parts above.
    pub total: Money,
}

/// The kind of a part of `tax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaxKind {
    /// Customs duty.
    Duty,
    /// VAT, GST or sales tax.
    Tax,
}

/// The reason why there are no totals. Each means that two tools do not agree with each other, which is a bug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unbalanced {
    /// The amounts cannot be added, usually because they are of different currencies.
    #[error(transparent)]
    Money(#[from] MoneyError),
    /// An amount of the order, named here, is not the sum of its parts.
    /// Usually a rule was added without its line in the totals.
    #[error("the parts of the order do not add up to its {0}")]
    Sum(&'static str),
}

impl Charges {
    /// The parts of an order. An amount that is due on delivery is not one of them.
    pub fn of(session: &Session) -> Result<Self, Unbalanced> {
        let currency = &session.total.currency;
        for line in &session.lines {
            if line.unit_price.times(line.quantity)? != line.line_total {
                return Err(Unbalanced::Sum("lines"));
            }
        }
        let lines = session.lines.iter().map(|line| &line.line_total);
        let subtotal = Money::sum(lines, currency)?;
        let fulfillment = session.shipping.price.clone();
        let (duty, tax, fees) = (&session.duty, &session.tax, &session.fees);
        let all = Money::sum([duty, tax, fees], currency)?;
        let due = &session.due_on_delivery;
        let (shown, tax_lines, fee) = if due.amount == 0 {
            let lines = vec![(TaxKind::Duty, duty.clone()), (TaxKind::Tax, tax.clone())];
            (duty.plus(tax)?, lines, fees.clone())
        } else {
            // The order does not say which charges are due on delivery, so those that are paid with it are one amount.
            let paid = all.plus(&Money::new(-due.amount, &due.currency))?;
            (paid, Vec::new(), Money::zero(currency))
        };
        let charges = Self {
            total: Money::sum([&subtotal, &fulfillment, &shown, &fee], currency)?,
            subtotal,
            fulfillment,
            tax: shown,
            tax_lines,
            fee,
        };
        charges.checked(session)
    }

    fn checked(self, session: &Session) -> Result<Self, Unbalanced> {
        let parts = [&self.subtotal, &self.fulfillment, &self.tax, &self.fee];
        if parts.iter().any(|part| part.amount < 0) || self.total != session.total {
            return Err(Unbalanced::Sum("total"));
        }
        Ok(self)
    }
}

/// The parts with their type in both standards, and the text beside them. Parts of zero are left out, except the first
/// and the last.
pub(super) fn rows(charges: &Charges, reader: &Reader<'_>) -> Vec<(&'static str, String, Money)> {
    let all = [
        ("subtotal", reader.say("Items", "商品"), &charges.subtotal),
        (
            "fulfillment",
            reader.say("Shipping", "运费"),
            &charges.fulfillment,
        ),
        (
            "tax",
            reader.say("Duties and taxes", "关税和税款"),
            &charges.tax,
        ),
        (
            "fee",
            reader.say("Clearance fees", "清关费用"),
            &charges.fee,
        ),
        ("total", reader.say("Total", "总额"), &charges.total),
    ];
    let is_shown =
        |kind: &str, amount: &Money| amount.amount != 0 || kind == "subtotal" || kind == "total";
    all.into_iter()
        .filter(|(kind, _, amount)| is_shown(kind, amount))
        .map(|(kind, text, amount)| (kind, text, amount.clone()))
        .collect()
}

impl TaxKind {
    /// The name, for people.
    pub(super) fn text(self, reader: &Reader<'_>) -> String {
        match self {
            Self::Duty => reader.say("Customs duty", "关税"),
            Self::Tax => reader.say("VAT, GST or sales tax", "增值税、消费税或销售税"),
        }
    }
}
