//! The made-up shop: large enough, the same everywhere, and plausible.

use std::collections::BTreeSet;

use countersign::contract::Digest;
use serde::Deserialize;

use super::*;
use crate::fx::DEFAULT_CURRENCY;
use crate::money::exponent;

fn shop() -> Shop {
    let shop = Shop::deserialize(&data().unwrap()).unwrap();
    assert_eq!(shop.check(), Ok(()));
    shop
}

/// The page for people lists exactly the categories of the shop.
#[test]
fn the_page_names_every_category() {
    let page = include_str!("../../../../docs/shop.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: Vec<String> = rows.map(|row| format!("| `{row}")).collect();
    let rows = categories().iter().map(|(path, name)| {
        let plan = kinds::plan().unwrap();
        let kind = plan.kinds.iter().find(|kind| kind.category == *path);
        let hs_code = kind.map_or("", |kind| kind.hs_code.as_str());
        format!("| `{path}` | {} | {} | {hs_code} |", name.en, name.zh)
    });
    let expected: Vec<String> = rows.collect();
    assert_eq!(listed, expected, "\n{}", expected.join("\n"));
}

/// The version of the shop. It changes with `shop/landmarks.toml`, `shop/kinds.toml`, the seed and the generator only,
/// and is the same on every machine and in every run. After an intended change, run this test and write the new version
/// into `VERSION`.
#[test]
fn the_shop_is_the_same_everywhere() {
    let version = Digest::of_canonical(&data().unwrap()).unwrap();
    assert_eq!(
        version.to_string(),
        VERSION,
        "the left one is the new VERSION"
    );
}

#[test]
fn the_shop_is_large() {
    let shop = shop();
    let variants = shop.offers.iter().map(|offer| offer.variants.len());
    let top: BTreeSet<&str> = shop
        .categories()
        .filter(|path| !path.contains('/'))
        .collect();
    let currencies: BTreeSet<&str> = shop
        .offers
        .iter()
        .map(|offer| offer.currency.as_str())
        .collect();
    let counts = (
        shop.offers.len(),
        variants.sum::<usize>(),
        top.len(),
        currencies.len(),
    );
    assert_eq!(counts, (450, 1_220, 20, 13));
}

#[test]
fn every_offer_is_plausible() {
    let shop = shop();
    let mut titles = BTreeSet::new();
    let mut skus = BTreeSet::new();
    for offer in &shop.offers {
        let id = &offer.offer_id;
        assert!(titles.insert(&offer.title.en), "{id}: two have one title");
        assert!(
            !offer.title.zh.is_ascii() && !offer.description.zh.is_ascii(),
            "{id}"
        );
        assert_eq!(offer.category.split('/').count(), 3, "{id}");
        assert!(
            path_of(&offer.category).all(|path| categories().contains_key(path)),
            "{id}"
        );
        let is_code =
            |code: &str| code.len() == 6 && code.bytes().all(|byte| byte.is_ascii_digit());
        assert!(is_code(&offer.hs_code), "{id}");
        assert!(exponent(&offer.currency).is_ok(), "{id}");
        assert_eq!((offer.ships_from.len(), offer.origin.len()), (2, 2), "{id}");
        assert!((1..=8).contains(&offer.variants.len()), "{id}");
        let options: BTreeSet<_> = offer
            .variants
            .iter()
            .map(|variant| &variant.options)
            .collect();
        assert_eq!(
            options.len(),
            offer.variants.len(),
            "{id}: two variants are the same"
        );
        for variant in &offer.variants {
            check_variant(offer, variant);
            assert!(skus.insert(&variant.sku), "{id}");
        }
    }
}

/// Checks the SKU, a positive price, a density of 0.01 to 6 g/cm³ with packaging, and that exactly the lithium-ion
/// batteries have an energy.
#[track_caller]
fn check_variant(offer: &Offer, variant: &Variant) {
    let sku = &variant.sku;
    let number = offer.offer_id.trim_start_matches("OFR-");
    assert!(sku.starts_with(&format!("SKU-{number}-")), "{sku}");
    assert!(variant.price > 0, "{sku}");
    let [length, width, height] = variant.dimensions_mm.map(u64::from);
    let volume_cm3 = length * width * height / 1_000;
    let weight_g = u64::from(variant.weight_g);
    let is_heavy = weight_g > volume_cm3.max(1) * 6;
    let is_light = weight_g * 100 < volume_cm3;
    assert!(
        weight_g > 0 && !is_heavy && !is_light,
        "{sku}: {weight_g} g in {volume_cm3} cm³"
    );
    if let Some(battery) = &offer.battery {
        let has_energy = battery.watt_hours > 0;
        assert_eq!(
            has_energy,
            battery.chemistry == Chemistry::LithiumIon,
            "{sku}"
        );
    }
}

/// Every word by which variants differ has a Chinese one, except sizes, plugs and the like.
#[test]
fn options_are_shown_in_chinese() {
    let shop = shop();
    let variants = shop.offers.iter().flat_map(|offer| &offer.variants);
    for (name, value) in variants.flat_map(|variant| &variant.options) {
        assert_ne!(word(name, Some("zh")), name, "{name}");
        let has_word = value
            .split(' ')
            .any(|part| part.len() > 3 && part.bytes().all(|letter| letter.is_ascii_lowercase()));
        assert!(!has_word || word(value, Some("zh")) != value, "{value}");
    }
}

/// The offers written by hand stay unchanged, because others name them.
#[test]
fn landmarks_come_first() {
    let shop = shop();
    assert_eq!(shop.offers[11].offer_id, "OFR-0012");
    let (offer, variant) = shop.variant("SKU-0001-01").unwrap();
    assert_eq!(offer.price_of(variant), Money::new(3_999, DEFAULT_CURRENCY));
}

/// Another seed makes another shop, and each offer has its own random numbers.
#[test]
fn the_seed_decides() {
    let plan = kinds::plan().unwrap();
    let one = generate::offers(plan, 1).unwrap();
    assert_eq!(one, generate::offers(plan, 1).unwrap());
    let two = generate::offers(plan, 2).unwrap();
    let alike = one.iter().zip(&two).filter(|(one, two)| one == two).count();
    assert!(alike < one.len() / 20, "{alike} of {} are alike", one.len());
}
