//! Worked examples: each was computed by hand, and the arithmetic is beside it.
//!
//! `OLD` is the rule set of 2025-01-01 with the exchange rates of 2024-12-31, `NEW` that of 2026-11-01 with the
//! rates of 2026-10-30. Amounts are in the smallest unit: 7998 of EUR is 79.98 euros, 9000 of JPY is 9,000 yen.

mod americas;
mod asia_and_pacific;
mod europe;

use super::answer::Confidence;
use super::compute::{Case, Freight, Goods, Sender, compute};
use super::import::method_of;
use super::place::Place;
use super::rules::TaxRules;
use crate::fx::Rates;
use crate::money::Money;

const OLD: (&str, &str) = (
    include_str!("../../rules/tax/2025-01-01.toml"),
    include_str!("../../rules/fx/2024-12-31.toml"),
);
const NEW: (&str, &str) = (
    include_str!("../../rules/tax/2026-11-01.toml"),
    include_str!("../../rules/fx/2026-10-30.toml"),
);

/// HS code, origin, country of dispatch, quantity, value of the line.
type Line = (&'static str, &'static str, &'static str, u32, i64);

/// A shipment, and the expected result: the method, duty, tax, fees, the part of them that is due at the sale even if
/// the buyer pays on delivery, and the confidence.
#[derive(Debug, Clone, Copy)]
struct Example {
    /// The rule sets `tax` and `fx`.
    rules: (&'static str, &'static str),
    /// A country, with its region (`US-CA`), with a postal code (`ES 35001`).
    to: &'static str,
    currency: &'static str,
    goods: &'static [Line],
    shipping: Option<i64>,
    /// The carrier: `unipost` is the post, the others are couriers.
    carrier: &'static str,
    expected: &'static str,
}

fn check(example: &Example) {
    let rules: TaxRules = toml::from_str(example.rules.0).unwrap();
    let rates: Rates = toml::from_str(example.rules.1).unwrap();
    let (to, postal_code) = match example.to.split_once(' ') {
        Some((to, postal_code)) => (to, Some(postal_code)),
        None => (example.to, None),
    };
    let (country, region) = match to.split_once('-') {
        Some((country, region)) => (country, Some(region)),
        None => (to, None),
    };
    let goods = example.goods.iter().enumerate();
    let goods: Vec<Goods> = goods
        .map(
            |(at, (hs_code, origin, ships_from, quantity, value))| Goods {
                sku: format!("SKU-{at}"),
                hs_code: (*hs_code).to_owned(),
                origin: (*origin).to_owned(),
                sender: Sender {
                    ships_from: (*ships_from).to_owned(),
                    merchant_id: "m".to_owned(),
                },
                quantity: *quantity,
                value: Money::new(*value, example.currency),
            },
        )
        .collect();
    let shipping = example.shipping.map(|amount| Freight {
        price: Money::new(amount, example.currency),
        carrier: example.carrier.to_owned(),
        parcels: Vec::new(),
    });
    let due = compute(&Case {
        rules: &rules,
        rates: &rates,
        place: Place::find(&rules, country, region).unwrap(),
        postal_code,
        currency: example.currency,
        goods: &goods,
        shipping: shipping.as_ref(),
        is_chinese: false,
    })
    .unwrap();
    let sum = |amounts: Vec<&Money>| Money::sum(amounts, example.currency).unwrap().amount;
    let confidence = match due.confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    };
    let computed = format!(
        "{}: duty {}, tax {}, fees {}; at sale {}; {confidence}",
        method_of(&due.lines),
        sum(due.lines.iter().map(|line| &line.duty).collect()),
        sum(due.lines.iter().map(|line| &line.tax).collect()),
        sum(due.fees.iter().map(|fee| &fee.amount).collect()),
        due.at_sale.amount,
    );
    assert_eq!(
        computed, example.expected,
        "to {}: {:?}",
        example.to, example.goods
    );
}

/// Each known parcel has its own shipping cost: goods of other parcels do not share it.
#[test]
fn shipping_goes_by_parcel() {
    let rules: TaxRules = toml::from_str(NEW.0).unwrap();
    let rates: Rates = toml::from_str(NEW.1).unwrap();
    let sender = |ships_from: &str, merchant_id: &str| Sender {
        ships_from: ships_from.to_owned(),
        merchant_id: merchant_id.to_owned(),
    };
    let goods = |sender: &Sender, value| Goods {
        sku: "SKU".to_owned(),
        hs_code: "610910".to_owned(),
        origin: "CN".to_owned(),
        sender: sender.clone(),
        quantity: 1,
        value: Money::new(value, "EUR"),
    };
    let (one, other) = (sender("CN", "m_1"), sender("CN", "m_2"));
    // Two merchants in one country: 90.00 and 100.00 are two consignments of low value, not one of 190.00.
    // Of 10.00 the parcel of the first is 7 parts, that of the second 3: 7.00 by 30.00 and 60.00 is 2.33 and 4.67.
    let due = compute(&Case {
        rules: &rules,
        rates: &rates,
        place: Place::find(&rules, "DE", None).unwrap(),
        postal_code: None,
        currency: "EUR",
        goods: &[goods(&one, 3000), goods(&other, 10_000), goods(&one, 6000)],
        shipping: Some(&Freight {
            price: Money::new(1000, "EUR"),
            carrier: "unipost".to_owned(),
            parcels: vec![(one.clone(), 700), (other, 300)],
        }),
        is_chinese: false,
    })
    .unwrap();
    let shares = due.lines.iter().map(|line| line.shipping_share.amount);
    assert_eq!(shares.collect::<Vec<_>>(), [233, 300, 467]);
    // 3.00 for the code in each parcel: 1.00 and 2.00 in the first, 3.00 in the second.
    let duties = due.lines.iter().map(|line| line.duty.amount);
    assert_eq!(duties.collect::<Vec<_>>(), [100, 300, 200]);
    // That is no rate of their value.
    assert!(due.lines.iter().all(|line| line.duty_rate == "flat"));
}
