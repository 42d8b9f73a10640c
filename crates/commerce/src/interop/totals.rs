//! What a page says that an order costs. The parts that are shown make the total, to the smallest unit.

use super::{MoneyError, Reader, Session};
use crate::money::Money;

/// The parts of a total, in the words that both standards have. All are of one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charges {
    /// All lines.
    pub subtotal: Money,
    /// Their way.
    pub fulfillment: Money,
    /// Duty and tax that are paid with the order.
    pub tax: Money,
    /// The single ones, where all of them are paid with the order: what it is, and how much.
    pub tax_lines: Vec<(TaxKind, Money)>,
    /// Fees that are paid with the order.
    pub fee: Money,
    /// What the buyer pays for the order: the sum of those above.
    pub total: Money,
}

/// What a part of `tax` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaxKind {
    /// Customs duty.
    Duty,
    /// VAT, GST or sales tax.
    Tax,
}

/// Why there are no totals. It does not happen as long as the tools agree with each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unbalanced {
    /// Amounts that cannot be added.
    #[error(transparent)]
    Money(#[from] MoneyError),
    /// What an order claims is not the sum of its parts.
    #[error("the parts of the order do not make its {0}")]
    Sum(&'static str),
}

impl Charges {
    /// The parts of an order. What is paid at the door is none of them.
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
            // Who gets which of them is not said, so what is paid with the order is one amount.
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

/// The parts with their type in both standards, and the text beside them. Those that are nothing are left out, but
/// for the first and the last.
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
    /// For people.
    pub(super) fn text(self, reader: &Reader<'_>) -> String {
        match self {
            Self::Duty => reader.say("Customs duty", "关税"),
            Self::Tax => reader.say("VAT, GST or sales tax", "增值税、消费税或销售税"),
        }
    }
}
