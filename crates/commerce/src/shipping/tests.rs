//! Shared by the tests of shipping: items made up for them, so that their weights are on this page.

use std::sync::LazyLock;

use countersign::ToolError;
use serde_json::{Value, json};

use super::{Offered, Question, Tariff};
use crate::destination::Destination;
use crate::fx::Rates;
use crate::item::Basket;
use crate::shop::Shop;

mod catalogue;
mod examples;
mod laws;
mod rules;

const TARIFF_TEXT: &str = include_str!("../../rules/shipping/2026-11-01.toml");

static TARIFF: LazyLock<Tariff> = LazyLock::new(|| toml::from_str(TARIFF_TEXT).unwrap());
static OLD_TARIFF: LazyLock<Tariff> =
    LazyLock::new(|| toml::from_str(include_str!("../../rules/shipping/2025-07-01.toml")).unwrap());
static RATES: LazyLock<Rates> =
    LazyLock::new(|| toml::from_str(include_str!("../../rules/fx/2024-12-31.toml")).unwrap());

/// One item: merchant, country, grams, millimetres, and the facts that rules ask for.
fn thing(
    sku: &str,
    from: (&str, &str),
    weight_g: u32,
    dimensions_mm: [u32; 3],
    more: &Value,
) -> Value {
    let mut offer = json!({
        "offer_id": sku,
        "title": {"en": sku, "zh": sku},
        "description": {"en": sku, "zh": sku},
        "category": "home/other",
        "brand": "Example",
        "merchant_id": from.0,
        "ships_from": from.1,
        "origin": from.1,
        "currency": "USD",
        "hs_code": "392690",
        "returns": {"days": 14, "buyer_pays": true},
        "variants": [{
            "sku": sku,
            "price": 1000,
            "weight_g": weight_g,
            "dimensions_mm": dimensions_mm,
            "stock": 10,
        }],
    });
    for (name, value) in more.as_object().unwrap() {
        offer[name] = value.clone();
    }
    offer
}

fn shop() -> Shop {
    let battery = |watt_hours: u32| json!({"battery": {"chemistry": "lithium_ion", "packing": "alone", "watt_hours": watt_hours}});
    let plain = json!({});
    let volt = ("m_volt", "CN");
    let offers = [
        thing("CABLE", volt, 50, [100, 80, 20], &plain),
        thing("BEAR", volt, 400, [400, 300, 250], &plain),
        thing("BRICK", volt, 2_500, [200, 150, 100], &plain),
        thing("BOX", volt, 100, [123, 101, 77], &plain),
        thing("BANK", volt, 420, [160, 75, 30], &battery(74)),
        thing("STATION", volt, 1_500, [200, 150, 100], &battery(160)),
        thing(
            "TEA",
            ("m_tea", "CN"),
            150,
            [140, 100, 60],
            &json!({"category": "food/tea"}),
        ),
        thing("TEE", ("m_porto", "PT"), 210, [300, 250, 20], &plain),
        thing(
            "PERFUME",
            ("m_firenze", "IT"),
            310,
            [140, 80, 50],
            &json!({"category": "beauty/fragrance/perfume"}),
        ),
        thing("CUP", ("m_kiln", "JP"), 380, [120, 120, 110], &plain),
        thing("FAN", ("m_fan", "JP"), 120, [250, 50, 40], &plain),
        thing(
            "KNIFE",
            ("m_kiln", "JP"),
            340,
            [380, 80, 40],
            &json!({"attributes": {"blade_mm": 210}}),
        ),
        thing("SKI", ("m_oslo", "NO"), 3_000, [1_700, 200, 100], &plain),
        thing(
            "DUMBBELL",
            ("m_nord", "DE"),
            20_000,
            [300, 200, 200],
            &plain,
        ),
        thing(
            "KETTLEBELL",
            ("m_nord", "DE"),
            30_100,
            [300, 300, 300],
            &plain,
        ),
    ];
    serde_json::from_value(json!({ "offers": offers })).unwrap()
}

/// A question: items, country and postal code, currency.
struct Asked<'a> {
    items: &'a [(&'a str, u32)],
    to: (&'a str, &'a str),
    currency: &'a str,
    tariff: &'a Tariff,
}

fn ask(asked: &Asked<'_>) -> Result<Offered, ToolError> {
    ask_of(&shop(), asked)
}

/// Asks in dollars, by the newest tariff.
fn ask_for(shop: &Shop, items: &[(&str, u32)], to: (&str, &str)) -> Result<Offered, ToolError> {
    let (currency, tariff) = ("USD", &*TARIFF);
    let asked = Asked {
        items,
        to,
        currency,
        tariff,
    };
    ask_of(shop, &asked)
}

fn ask_of(shop: &Shop, asked: &Asked<'_>) -> Result<Offered, ToolError> {
    let mut basket = Basket::default();
    for (sku, quantity) in asked.items {
        basket.add(sku, *quantity).unwrap();
    }
    let destination = Destination {
        country: asked.to.0.to_owned(),
        region: None,
        postal_code: (!asked.to.1.is_empty()).then(|| asked.to.1.to_owned()),
    };
    let question = Question {
        shop,
        tariff: asked.tariff,
        rates: &RATES,
        basket: &basket,
        destination: &destination,
        currency: asked.currency,
        locale: None,
    };
    question.answer()
}
