//! The one computation of a total. `compute_total` makes it; `create_draft_order` and `create_payment_intent` repeat it
//! from the same answers and compare: the three cannot differ silently.

use countersign::ToolError;
use countersign::contract::{ErrorBody, ErrorCode, FaultSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::{Money, MoneyError};
use crate::pricing::QuoteLine;
use crate::shipping::ShippingOption;
use crate::tax::TaxEstimate;
use crate::words::Say;

/// Price breakdown, in one currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Breakdown {
    /// Price of the items.
    pub items: Money,
    /// Price of shipping.
    pub shipping: Money,
    /// Customs duty, whether buyer or seller pays it.
    pub duty: Money,
    /// VAT, GST or sales tax, whether buyer or seller pays it.
    pub tax: Money,
    /// Clearance fees of carriers and customs, whether buyer or seller pays them.
    pub fees: Money,
    /// Total that the buyer pays for the order.
    pub total: Money,
    /// Amount that the buyer pays to the carrier on delivery. Together with the total it is the sum of all parts.
    pub due_on_delivery: Money,
}

/// The reason why there is no total. Each means that two tools do not agree with each other, which is a bug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TotalError {
    /// The amounts cannot be added, usually because an answer is in another currency.
    #[error(transparent)]
    Money(#[from] MoneyError),
    /// The lines of the quote do not add up to its subtotal.
    /// Usually the snapshot was not made by the tool for quotes.
    #[error("the parts of the quote do not add up to its total")]
    Quote,
    /// The parts of the duties and taxes do not add up to their total.
    /// Usually the snapshot was not made by the tool for taxes.
    #[error("the duties and taxes do not add up to their total")]
    Tax,
}

/// Adds up the total. Every sum in the answers is computed again.
pub(crate) fn breakdown(
    lines: &[QuoteLine],
    subtotal: &Money,
    option: &ShippingOption,
    tax: &TaxEstimate,
) -> Result<Breakdown, TotalError> {
    let currency = &subtotal.currency;
    for line in lines {
        if line.unit_price.times(line.quantity)? != line.line_total {
            return Err(TotalError::Quote);
        }
    }
    let items = Money::sum(lines.iter().map(|line| &line.line_total), currency)?;
    if items != *subtotal {
        return Err(TotalError::Quote);
    }
    let charges = Money::sum([&tax.duty, &tax.tax, &tax.fees], currency)?;
    let shared = tax.due_to_seller.plus(&tax.due_on_delivery)?;
    if charges != tax.total || charges != shared {
        return Err(TotalError::Tax);
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
            TotalError::Quote => unsound(Say::QuoteSums),
            TotalError::Tax => unsound(Say::TaxSums),
        }
    }
}

fn unsound(message: Say) -> ToolError {
    let body = ErrorBody::new(ErrorCode::UpstreamError, message);
    body.source(FaultSource::Tool).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::destination::Destination;
    use crate::shipping::Sla;
    use crate::tax::{Confidence, Incoterm};
    use countersign::contract::Digest;

    fn line(unit: i64, quantity: u32, currency: &str) -> QuoteLine {
        let unit_price = Money::new(unit, currency);
        QuoteLine {
            sku: "SKU".to_owned(),
            offer_id: "OFR".to_owned(),
            title: "thing".to_owned(),
            quantity,
            list_price: unit_price.clone(),
            line_total: unit_price.times(quantity).unwrap(),
            unit_price,
            discount: None,
            promotion: None,
        }
    }

    fn option(price: i64, currency: &str) -> ShippingOption {
        ShippingOption {
            option_id: "post".to_owned(),
            carrier: "post".to_owned(),
            service: "parcel".to_owned(),
            price: Money::new(price, currency),
            sla: Sla {
                days_min: 1,
                days_max: 2,
                guaranteed: false,
            },
            chargeable_weight_g: 1,
            actual_weight_g: 1,
            volumetric_weight_g: 1,
            tracked: true,
            incoterms: Vec::new(),
            parcels: Vec::new(),
            restrictions: Vec::new(),
        }
    }

    /// Charges, of which `to_seller` is paid with the order.
    fn charges([duty, tax, fees]: [i64; 3], to_seller: i64, currency: &str) -> TaxEstimate {
        let money = |amount| Money::new(amount, currency);
        let total = duty + tax + fees;
        TaxEstimate {
            cart_id: None,
            basket: Digest([0; 32]),
            destination: Destination {
                country: "DE".to_owned(),
                region: None,
                postal_code: None,
            },
            incoterm: Incoterm::Ddp,
            currency: currency.to_owned(),
            goods_value: money(0),
            shipping_cost: money(0),
            shipping_option_id: None,
            duty: money(duty),
            tax: money(tax),
            fees: money(fees),
            total: money(total),
            due_to_seller: money(to_seller),
            due_on_delivery: money(total - to_seller),
            lines: Vec::new(),
            fee_lines: Vec::new(),
            method: "test".to_owned(),
            confidence: Confidence::High,
            notes: Vec::new(),
            rates: Vec::new(),
        }
    }

    proptest! {
        /// The total and the amount due on delivery are exactly the sum of all parts, and nothing is negative.
        #[test]
        fn the_total_is_the_sum_of_its_parts(
            lines in prop::collection::vec((0_i64..1_000_000, 1_u32..=999), 1..10),
            shipping in 0_i64..1_000_000,
            parts in [0_i64..1_000_000, 0_i64..1_000_000, 0_i64..1_000_000],
            share in 0_i64..=100,
            currency in prop::sample::select(vec!["EUR", "JPY", "KWD"]),
        ) {
            let lines: Vec<_> = lines.iter().map(|(unit, count)| line(*unit, *count, currency)).collect();
            let subtotal = Money::sum(lines.iter().map(|line| &line.line_total), currency).unwrap();
            let to_seller = parts.iter().sum::<i64>() * share / 100;
            let tax = charges(parts, to_seller, currency);
            let sum = breakdown(&lines, &subtotal, &option(shipping, currency), &tax).unwrap();
            let all = [&sum.items, &sum.shipping, &sum.duty, &sum.tax, &sum.fees];
            prop_assert_eq!(
                sum.total.amount + sum.due_on_delivery.amount,
                all.iter().map(|part| part.amount).sum::<i64>()
            );
            prop_assert!(all.iter().all(|part| part.amount >= 0 && part.currency == currency));
            prop_assert!(sum.total.amount >= 0 && sum.due_on_delivery.amount >= 0);
        }
    }

    /// An answer whose sums are wrong, or whose amounts cannot be added, gives no total.
    #[test]
    fn what_does_not_add_up_is_refused() {
        #[track_caller]
        fn check(
            lines: &[QuoteLine],
            subtotal: &Money,
            way: &ShippingOption,
            tax: &TaxEstimate,
            expected: &str,
        ) {
            let error = breakdown(lines, subtotal, way, tax).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let lines = [line(500, 3, "EUR")];
        let (subtotal, way) = (Money::new(1_500, "EUR"), option(300, "EUR"));
        let tax = charges([10, 20, 30], 60, "EUR");
        assert!(breakdown(&lines, &subtotal, &way, &tax).is_ok());
        let quote = "the parts of the quote do not add up to its total";
        check(&lines, &Money::new(1_499, "EUR"), &way, &tax, quote);
        let mut wrong = lines.clone();
        wrong[0].line_total = Money::new(1, "EUR");
        check(&wrong, &Money::new(1, "EUR"), &way, &tax, quote);
        let duties = "the duties and taxes do not add up to their total";
        let mut wrong = charges([10, 20, 30], 60, "EUR");
        wrong.total = Money::new(59, "EUR");
        check(&lines, &subtotal, &way, &wrong, duties);
        let mut wrong = charges([10, 20, 30], 60, "EUR");
        wrong.due_on_delivery = Money::new(1, "EUR");
        check(&lines, &subtotal, &way, &wrong, duties);
        let mixed = "amounts of EUR and USD cannot be added";
        check(&lines, &subtotal, &option(300, "USD"), &tax, mixed);
        let dollars = charges([10, 20, 30], 60, "USD");
        check(&lines, &subtotal, &way, &dollars, mixed);
    }
}
