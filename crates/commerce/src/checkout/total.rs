//! The one computation of a total. `compute_total` makes it, `create_draft_order` and `create_payment_intent` make
//! it again from the same answers and compare: the three cannot differ silently.

use countersign::ToolError;
use countersign::contract::{ErrorBody, ErrorCode, FaultSource};
use serde::{Deserialize, Serialize};

use crate::money::{Money, MoneyError};
use crate::pricing::QuoteLine;
use crate::shipping::ShippingOption;
use crate::tax::TaxEstimate;

/// What everything costs, in one currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakdown {
    /// The things.
    pub items: Money,
    /// Their way.
    pub shipping: Money,
    /// Customs duty, whoever pays it.
    pub duty: Money,
    /// VAT, GST or sales tax, whoever pays it.
    pub tax: Money,
    /// What carriers and offices charge for clearance, whoever pays it.
    pub fees: Money,
    /// What the buyer pays for the order.
    pub total: Money,
    /// What the buyer pays to the carrier besides, at the door. With the total it is the sum of all parts.
    pub due_on_delivery: Money,
}

/// Why there is no total. Neither happens as long as the tools agree with each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TotalError {
    /// Amounts that cannot be added.
    #[error(transparent)]
    Money(#[from] MoneyError),
    /// An answer whose parts do not make its sum.
    #[error("the parts of the {0} do not make its sum")]
    Sum(&'static str),
}

/// Adds up. Every sum that an answer claims is made again.
pub(crate) fn breakdown(
    lines: &[QuoteLine],
    subtotal: &Money,
    option: &ShippingOption,
    tax: &TaxEstimate,
) -> Result<Breakdown, TotalError> {
    let currency = &subtotal.currency;
    for line in lines {
        if line.unit_price.times(line.quantity)? != line.line_total {
            return Err(TotalError::Sum("quote"));
        }
    }
    let items = Money::sum(lines.iter().map(|line| &line.line_total), currency)?;
    if items != *subtotal {
        return Err(TotalError::Sum("quote"));
    }
    let charges = Money::sum([&tax.duty, &tax.tax, &tax.fees], currency)?;
    let shared = tax.due_to_seller.plus(&tax.due_on_delivery)?;
    if charges != tax.total || charges != shared {
        return Err(TotalError::Sum("duties and taxes"));
    }
    Ok(Breakdown {
        total: Money::sum([&items, &option.price, &tax.due_to_seller], currency)?,
        items,
        shipping: option.price.clone(),
        duty: tax.duty.clone(),
        tax: tax.tax.clone(),
        fees: tax.fees.clone(),
        due_on_delivery: tax.due_on_delivery.clone(),
    })
}

impl From<TotalError> for ToolError {
    fn from(error: TotalError) -> Self {
        match error {
            TotalError::Money(error) => error.into(),
            TotalError::Sum(_) => {
                let body = ErrorBody::new(ErrorCode::UpstreamError, error.to_string());
                body.source(FaultSource::Tool).into()
            }
        }
    }
}
