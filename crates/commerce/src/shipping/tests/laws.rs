//! Properties of every basket.

use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::json;

use super::{RATES, TARIFF, thing};
use crate::destination::Destination;
use crate::item::Basket;
use crate::money::{self, Money};
use crate::shipping::{Offered, Question};
use crate::shop::Shop;

#[derive(Debug, Clone)]
struct Thing {
    weight_g: u32,
    dimensions_mm: [u32; 3],
    from: (&'static str, &'static str),
    quantity: u32,
}

fn things() -> impl Strategy<Value = Vec<Thing>> {
    let from = prop::sample::select(vec![
        ("m_1", "CN"),
        ("m_2", "CN"),
        ("m_3", "PT"),
        ("m_4", "NO"),
    ]);
    let sides = [10_u32..400, 10_u32..400, 10_u32..400];
    let thing = (1_u32..4_000, sides, from, 1_u32..12);
    let thing = thing.prop_map(|(weight_g, dimensions_mm, from, quantity)| Thing {
        weight_g,
        dimensions_mm,
        from,
        quantity,
    });
    prop::collection::vec(thing, 1..4)
}

fn destinations() -> impl Strategy<Value = Destination> {
    let places = vec![
        ("DE", "10115"),
        ("GB", "IV2 3BW"),
        ("US", "99501"),
        ("JP", ""),
        ("PT", "9500"),
    ];
    prop::sample::select(places).prop_map(|(country, code)| Destination {
        country: country.to_owned(),
        region: None,
        postal_code: (!code.is_empty()).then(|| code.to_owned()),
    })
}

/// The options; `None` if no service takes the basket.
fn ask(things: &[Thing], destination: &Destination, currency: &str) -> Option<Offered> {
    let offers = things.iter().enumerate().map(|(at, it)| {
        let sku = format!("T-{at}");
        thing(&sku, it.from, it.weight_g, it.dimensions_mm, &json!({}))
    });
    let offers: Vec<_> = offers.collect();
    let shop: Shop = serde_json::from_value(json!({ "offers": offers })).unwrap();
    let mut basket = Basket::default();
    for (at, thing) in things.iter().enumerate() {
        basket.add(&format!("T-{at}"), thing.quantity).unwrap();
    }
    let question = Question {
        shop: &shop,
        tariff: &TARIFF,
        rates: &RATES,
        basket: &basket,
        destination,
        currency,
        locale: None,
    };
    question.answer().ok()
}

/// The prices of every option of both answers, before and after.
fn both(before: &Offered, after: &Offered) -> Vec<(i64, i64)> {
    let pairs = before.options.iter().filter_map(|old| {
        let mut options = after.options.iter();
        let new = options.find(|new| new.option_id == old.option_id)?;
        Some((old.price.amount, new.price.amount))
    });
    pairs.collect()
}

proptest! {
    #[test]
    fn weights_and_sums(things in things(), destination in destinations()) {
        let offered = ask(&things, &destination, "USD");
        prop_assume!(offered.is_some());
        let offered = offered.unwrap();
        prop_assert!(!offered.options.is_empty());
        let on_the_scales: u32 = things.iter().map(|it| it.weight_g * it.quantity).sum();
        prop_assert!(offered.options.is_sorted_by_key(|option| option.price.amount));
        for option in &offered.options {
            prop_assert_eq!(option.actual_weight_g, on_the_scales);
            prop_assert!(option.chargeable_weight_g >= option.actual_weight_g);
            prop_assert!(option.chargeable_weight_g >= option.volumetric_weight_g);
            for parcel in &option.parcels {
                let larger = parcel.actual_weight_g.max(parcel.volumetric_weight_g);
                prop_assert_eq!(parcel.chargeable_weight_g, larger);
                let parts = [&parcel.freight, &parcel.remote, &parcel.handling, &parcel.fuel];
                prop_assert!(parts.iter().all(|part| part.amount >= 0));
                prop_assert_eq!(&parcel.price, &Money::sum(parts, "USD").unwrap());
            }
            let parcels = option.parcels.iter().map(|parcel| &parcel.price);
            prop_assert_eq!(&option.price, &Money::sum(parcels, "USD").unwrap());
        }
    }

    #[test]
    fn more_is_never_cheaper(
        things in things(),
        destination in destinations(),
        more in 1_u32..5,
        heavier_g in 1_u32..2_000,
    ) {
        let before = ask(&things, &destination, "USD");
        prop_assume!(before.is_some());
        let before = before.unwrap();
        let mut many = things.clone();
        many[0].quantity += more;
        let mut heavy = things.clone();
        heavy[0].weight_g += heavier_g;
        let after = [many, heavy].map(|changed| ask(&changed, &destination, "USD"));
        let pairs: Vec<_> = after.iter().flatten().flat_map(|after| both(&before, after)).collect();
        // Where the change leaves no option there is nothing to compare.
        prop_assume!(!pairs.is_empty());
        for (old, new) in pairs {
            prop_assert!(old <= new, "{old} became {new}");
        }
    }

    #[test]
    fn another_currency_is_rounded_once(
        things in things(),
        destination in destinations(),
        currency in prop::sample::select(vec!["EUR", "JPY", "KRW", "GBP", "CNY"]),
    ) {
        let dollars = ask(&things, &destination, "USD");
        prop_assume!(dollars.is_some());
        let dollars = dollars.unwrap();
        let other = ask(&things, &destination, currency).unwrap();
        let rate = |code: &str| RATES.rates.get(code).copied().unwrap_or(Decimal::ONE);
        let unit = Decimal::new(1, money::exponent(currency).unwrap());
        for option in &dollars.options {
            let mut others = other.options.iter();
            let found = others.find(|other| other.option_id == option.option_id).unwrap();
            let exact = option.price.decimal().unwrap() * rate(currency) / rate("USD");
            let off = (found.price.decimal().unwrap() - exact).abs();
            prop_assert!(off <= unit, "{} is {off} off", found.price);
        }
    }
}
