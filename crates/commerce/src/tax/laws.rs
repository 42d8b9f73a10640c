//! Properties of every basket: sums add up, nothing is negative, more value is never less duty, rounding stays within
//! one smallest unit of a line.

use std::sync::LazyLock;

use proptest::prelude::*;
use rust_decimal::Decimal;

use super::answer::TaxLine;
use super::compute::{Case, Due, Freight, Goods, Sender, compute};
use super::place::Place;
use super::rules::{DutyTreatment, TaxBase, TaxRules, Valuation};
use super::tariff;
use crate::fx::Rates;
use crate::money::{Money, exponent};

static RULES: LazyLock<[TaxRules; 2]> = LazyLock::new(|| {
    [
        toml::from_str(include_str!("../../rules/tax/2025-01-01.toml")).unwrap(),
        toml::from_str(include_str!("../../rules/tax/2026-11-01.toml")).unwrap(),
    ]
});

static RATES: LazyLock<Rates> =
    LazyLock::new(|| toml::from_str(include_str!("../../rules/fx/2026-10-30.toml")).unwrap());

const CODES: &[&str] = &[
    "610910", "850760", "851762", "420221", "490199", "330300", "090210", "620240", "930400",
    "640399", "691200", "220421",
];
const ORIGINS: &[&str] = &["CN", "JP", "DE", "US", "IT", "VN", "KR", "GB", "BR"];
const CARRIERS: &[&str] = &["unipost", "meridian"];
const CURRENCIES: &[&str] = &["EUR", "USD", "JPY", "KRW", "GBP", "INR"];

/// A basket that can be estimated.
#[derive(Debug, Clone)]
struct Basket {
    is_new: bool,
    to: (String, Option<String>),
    currency: &'static str,
    goods: Vec<Goods>,
    shipping: Option<i64>,
    carrier: &'static str,
    /// The weights of the parcels, by the country that they are sent from; empty if parcels are unknown.
    parcels: Vec<i64>,
}

impl Basket {
    fn due(&self) -> Due {
        let rules = &RULES[usize::from(self.is_new)];
        let shipping = self.shipping.map(|amount| Freight {
            price: Money::new(amount, self.currency),
            carrier: self.carrier.to_owned(),
            parcels: self.parcels(),
        });
        compute(&Case {
            rules,
            rates: &RATES,
            place: self.place(),
            postal_code: None,
            currency: self.currency,
            goods: &self.goods,
            shipping: shipping.as_ref(),
            is_chinese: false,
        })
        .unwrap()
    }

    fn parcels(&self) -> Vec<(Sender, i64)> {
        let mut senders: Vec<Sender> = self
            .goods
            .iter()
            .map(|goods| goods.sender.clone())
            .collect();
        senders.sort();
        senders.dedup();
        senders
            .into_iter()
            .zip(self.parcels.iter().copied())
            .collect()
    }

    fn place(&self) -> Place<'static> {
        let rules = &RULES[usize::from(self.is_new)];
        Place::find(rules, &self.to.0, self.to.1.as_deref()).unwrap()
    }
}

fn destinations() -> impl Strategy<Value = (String, Option<String>)> {
    let mut all = Vec::new();
    for (code, country) in &RULES[1].countries {
        all.push((code.clone(), None));
        let regions = country.tax.regions.keys();
        all.extend(regions.map(|region| (code.clone(), Some(region.clone()))));
    }
    prop::sample::select(all)
}

prop_compose! {
    fn line(currency: &'static str)(
        hs_code in prop::sample::select(CODES),
        origin in prop::sample::select(ORIGINS),
        ships_from in prop::sample::select(ORIGINS),
        quantity in 1_u32..20,
        value in 0_i64..2_000_000,
    ) -> Goods {
        Goods {
            sku: "SKU".to_owned(),
            hs_code: hs_code.to_owned(),
            origin: origin.to_owned(),
            sender: Sender {
                ships_from: ships_from.to_owned(),
                merchant_id: "m".to_owned(),
            },
            quantity,
            value: Money::new(value, currency),
        }
    }
}

fn baskets() -> impl Strategy<Value = Basket> {
    prop::sample::select(CURRENCIES).prop_flat_map(|currency| {
        (
            any::<bool>(),
            destinations(),
            prop::collection::vec(line(currency), 1..5),
            prop::option::of((0_i64..100_000, prop::sample::select(CARRIERS))),
            prop::collection::vec(0_i64..50_000, 0..5),
        )
            .prop_map(move |(is_new, to, goods, shipping, parcels)| Basket {
                is_new,
                to,
                currency,
                goods,
                shipping: shipping.map(|(amount, _)| amount),
                carrier: shipping.map_or("unipost", |(_, carrier)| carrier),
                parcels,
            })
    })
}

/// The distance of a rounded amount from the exact one, in smallest units.
fn distance(rounded: &Money, exact: Decimal) -> Decimal {
    let unit = Decimal::new(1, exponent(&rounded.currency).unwrap());
    (rounded.decimal().unwrap() - exact).abs() / unit
}

/// Duty and tax of a line from the goods on, by the rules that the line names, without rounding in between. Amounts
/// that are divided among lines (shipping, a flat duty, taxed fees) are taken as divided.
fn exact(basket: &Basket, line: &TaxLine) -> (Decimal, Decimal) {
    let (rules, place) = (&RULES[usize::from(basket.is_new)], basket.place());
    let [goods, freight, rounded_duty, tax_base] = [
        &line.goods_value,
        &line.shipping_share,
        &line.duty,
        &line.tax_base,
    ]
    .map(|money| money.decimal().unwrap());
    let regime = place.territory.regimes.iter().find(|regime| {
        let name = format!("{}/regime/{}", place.country.territory, regime.id);
        line.rules.contains(&name)
    });
    let duty = match regime.map(|regime| regime.duty) {
        None | Some(DutyTreatment::None) => Decimal::ZERO,
        Some(DutyTreatment::FlatPerCode) => rounded_duty,
        Some(DutyTreatment::Tariff) => {
            let value = match place.territory.customs_value {
                Valuation::Cif => goods + freight,
                Valuation::Fob => goods,
            };
            value * tariff::duty(rules, place, tariff::Asked::of(line)).rate
        }
    };
    let base = match regime {
        None => Some(place.country.tax.domestic_base),
        Some(regime) => regime.tax_base,
    };
    let (base, of_rounded) = match base {
        None => return (duty, Decimal::ZERO),
        Some(TaxBase::Goods) => (goods, goods),
        Some(TaxBase::GoodsAndFreight) => (goods + freight, goods + freight),
        Some(TaxBase::GoodsAndDuty) => (goods + duty, goods + rounded_duty),
        Some(TaxBase::GoodsFreightAndDuty) => {
            (goods + freight + duty, goods + freight + rounded_duty)
        }
    };
    let taxed_fees = tax_base - of_rounded;
    let found = tariff::tax(place, &line.hs_code);
    let share = regime.map_or(Decimal::ONE, |regime| regime.tax_share);
    let rate = (found.excise + found.rate) * share / (Decimal::ONE - found.excise);
    (duty, (base + taxed_fees) * rate)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Lines keep their order and their goods, shipping is divided without a rest, and nothing is negative.
    #[test]
    fn sums_add_up_and_nothing_is_negative(basket in baskets()) {
        let due = basket.due();
        prop_assert_eq!(due.lines.len(), basket.goods.len());
        let mut freight = 0;
        let mut taxes = 0;
        for (line, goods) in due.lines.iter().zip(&basket.goods) {
            prop_assert_eq!(&line.goods_value, &goods.value);
            prop_assert_eq!(&line.hs_code, &goods.hs_code);
            freight += line.shipping_share.amount;
            taxes += line.tax.amount;
            for part in [&line.shipping_share, &line.customs_value, &line.duty, &line.tax_base, &line.tax] {
                prop_assert!(part.amount >= 0, "{:?}", line);
            }
        }
        prop_assert_eq!(freight, basket.shipping.unwrap_or_default());
        prop_assert!(due.fees.iter().all(|fee| fee.amount.amount >= 0));
        // The tax that the seller collects in any case is not more than all tax.
        prop_assert!((0..=taxes).contains(&due.at_sale.amount));
    }

    /// Duty and tax of each line are within one smallest unit of the exact decimal.
    #[test]
    fn rounding_stays_within_one_unit(basket in baskets()) {
        for line in &basket.due().lines {
            let (duty, tax) = exact(&basket, line);
            prop_assert!(distance(&line.duty, duty) <= Decimal::ONE, "{} of {:?}", duty, line);
            prop_assert!(distance(&line.tax, tax) <= Decimal::ONE, "{} of {:?}", tax, line);
        }
    }

    /// A dearer item never costs less duty, tax or fees, if the regime stays the same.
    #[test]
    fn more_value_is_never_less_duty(basket in baskets(), more in 1_i64..500_000) {
        // With several lines shipping moves between rates; that is another question.
        let mut basket = basket;
        basket.goods.truncate(1);
        let mut dearer = basket.clone();
        dearer.goods[0].value.amount += more;
        let (before, after) = (basket.due(), dearer.due());
        let methods = |due: &Due| -> Vec<(super::Method, String)> {
            due.lines.iter().map(|line| (line.method, line.rules.join(" "))).collect()
        };
        prop_assume!(methods(&before) == methods(&after));
        let total = |due: &Due| -> i64 {
            let lines = due.lines.iter().map(|line| line.duty.amount + line.tax.amount);
            lines.sum::<i64>() + due.fees.iter().map(|fee| fee.amount.amount).sum::<i64>()
        };
        prop_assert!(total(&after) >= total(&before), "{:?} then {:?}", before, after);
    }
}
