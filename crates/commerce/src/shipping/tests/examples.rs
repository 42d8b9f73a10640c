//! Worked examples: each price is computed by hand beside it, from the tariff of 2026-11-01 unless it says otherwise.

use serde_json::{Value, json};

use super::{Asked, OLD_TARIFF, TARIFF, ask};
use crate::shipping::{Cause, ShippingOption};

fn option(asked: &Asked<'_>, id: &str) -> ShippingOption {
    let offered = ask(asked).unwrap();
    let mut options = offered.options.into_iter();
    options.find(|option| option.option_id == id).unwrap()
}

/// Checks an option's weights (actual, volumetric, chargeable) and its price in dollars.
#[track_caller]
fn check(items: &[(&str, u32)], to: (&str, &str), id: &str, grams: [u32; 3], price: &str) {
    let (currency, tariff) = ("USD", &*TARIFF);
    let asked = Asked {
        items,
        to,
        currency,
        tariff,
    };
    let option = option(&asked, id);
    let found = [
        option.actual_weight_g,
        option.volumetric_weight_g,
        option.chargeable_weight_g,
    ];
    assert_eq!(found, grams, "grams of {option:#?}");
    assert_eq!(
        option.price.to_string(),
        format!("USD {price}"),
        "{option:#?}"
    );
}

/// Checks the services that are left out, each with its cause and rule.
#[track_caller]
fn check_excluded(items: &[(&str, u32)], to: (&str, &str), expected: &[(&str, Cause, &str)]) {
    let (currency, tariff) = ("USD", &*TARIFF);
    let offered = ask(&Asked {
        items,
        to,
        currency,
        tariff,
    })
    .unwrap();
    let excluded = offered.excluded.iter();
    let excluded: Vec<_> = excluded
        .map(|out| {
            (
                out.option_id.as_str(),
                out.cause,
                out.rule.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(excluded, expected);
}

const BERLIN: (&str, &str) = ("DE", "10115");
const NEW_YORK: (&str, &str) = ("US", "10001");

/// Known failure "shipping weight": the item weighs 50 g and is charged for 50 g, not for a default of 500.
#[test]
fn the_price_is_for_the_things_own_weight() {
    // CN to DE is zone Z3. 1 x 50 g = 50 g, up to 100 g: 7.10. The post charges no fuel.
    check(
        &[("CABLE", 1)],
        BERLIN,
        "unipost.packet",
        [50, 0, 50],
        "7.10",
    );
    // Ten of them: 500 g, up to 500 g: 13.80.
    check(
        &[("CABLE", 10)],
        BERLIN,
        "unipost.packet",
        [500, 0, 500],
        "13.80",
    );
}

#[test]
fn brackets() {
    // 2 x 50 = 100 g is still in the bracket up to 100 g: 7.10.
    check(
        &[("CABLE", 2)],
        BERLIN,
        "unipost.packet",
        [100, 0, 100],
        "7.10",
    );
    // 3 x 50 = 150 g is in the next one, up to 250 g: 9.40.
    check(
        &[("CABLE", 3)],
        BERLIN,
        "unipost.packet",
        [150, 0, 150],
        "9.40",
    );
    // 40 x 50 = 2,000 g, the last one: 33.50.
    check(
        &[("CABLE", 40)],
        BERLIN,
        "unipost.packet",
        [2_000, 0, 2_000],
        "33.50",
    );
    // PT to PT is zone Z0. 210 g, up to 250 g: 3.60.
    check(
        &[("TEE", 1)],
        ("PT", "1000-001"),
        "unipost.packet",
        [210, 0, 210],
        "3.60",
    );
}

#[test]
fn beyond_the_last_bracket_each_kilogram_that_is_begun() {
    // DE to DE is zone Z0. 2 x 20,000 = 40,000 g; volume 2 x 12,000,000 mm³ / 5,000 = 4,800 g.
    // Up to 30 kg 78.00, 10 further kg x 2.60 = 26.00: freight 104.00. Fuel 104.00 x 0.2750 = 28.60. Sum 132.60.
    check(
        &[("DUMBBELL", 2)],
        BERLIN,
        "meridian.express",
        [40_000, 4_800, 40_000],
        "132.60",
    );
    // 30,100 g; 27,000,000 / 5,000 = 5,400 g. 100 g are one further kilogram: 78.00 + 2.60 = 80.60.
    // Fuel 80.60 x 0.2750 = 22.165, rounded 22.17. Sum 102.77.
    check(
        &[("KETTLEBELL", 1)],
        BERLIN,
        "meridian.express",
        [30_100, 5_400, 30_100],
        "102.77",
    );
}

#[test]
fn volume_counts_where_it_is_more() {
    // 400 x 300 x 250 = 30,000,000 mm³ / 5,000 = 6,000 g, on the scales 400 g: 6,000 g are charged.
    // CN to US is Z3, up to 10 kg: 128.00. Fuel 128.00 x 0.2750 = 35.20. Sum 163.20.
    check(
        &[("BEAR", 1)],
        NEW_YORK,
        "meridian.express",
        [400, 6_000, 6_000],
        "163.20",
    );
    // Economy counts 6,000 cm³ as a kilogram: 30,000,000 / 6,000 = 5,000 g, up to 5 kg: 49.00.
    // Fuel 49.00 x 0.2250 = 11.025, rounded 11.03. Sum 60.03.
    check(
        &[("BEAR", 1)],
        NEW_YORK,
        "meridian.economy",
        [400, 5_000, 5_000],
        "60.03",
    );
    // The post only weighs: 400 g, up to 1 kg: 25.50.
    check(
        &[("BEAR", 1)],
        NEW_YORK,
        "unipost.parcel",
        [400, 0, 400],
        "25.50",
    );
    // 200 x 150 x 100 = 3,000,000 / 5,000 = 600 g, on the scales 2,500 g: up to 5 kg 78.00.
    // Fuel 78.00 x 0.2750 = 21.45. Sum 99.45.
    check(
        &[("BRICK", 1)],
        NEW_YORK,
        "meridian.express",
        [2_500, 600, 2_500],
        "99.45",
    );
    // 123 x 101 x 77 = 956,571 / 5,000 = 191.3, a gram that is begun counts: 192 g. Up to 500 g: 29.50.
    // Fuel 29.50 x 0.2750 = 8.1125, rounded 8.11. Sum 37.61.
    check(
        &[("BOX", 1)],
        NEW_YORK,
        "meridian.express",
        [100, 192, 192],
        "37.61",
    );
}

#[test]
fn one_parcel_for_each_sender() {
    // From CN (Z3): 50 g; 160,000 / 5,000 = 32 g; charged 50 g: 29.50 + fuel 8.11 = 37.61.
    // From PT (Z1): 210 g; 1,500,000 / 5,000 = 300 g; charged 300 g: 18.00 + fuel 4.95 = 22.95.
    // Together 260 g, 332 g, 350 g and 37.61 + 22.95 = 60.56.
    let items = [("CABLE", 1), ("TEE", 1)];
    check(&items, BERLIN, "meridian.express", [260, 332, 350], "60.56");
    // By post: CN Z3 up to 100 g 7.10, PT Z1 up to 250 g 6.90, together 14.00.
    check(&items, BERLIN, "unipost.packet", [260, 0, 260], "14.00");
    // A service that takes one of the parcels takes none.
    let expected = [
        ("halcyon.battery_line", Cause::Route, ""),
        ("landway.road", Cause::Route, ""),
    ];
    check_excluded(&items, BERLIN, &expected);
    // Two merchants in one country are two parcels: JP to US is Z3. The cup: 380 g, up to 500 g 13.80.
    // The fan: 120 g, up to 250 g 9.40. Together 23.20, where one parcel of 500 g would be 13.80.
    let items = [("CUP", 1), ("FAN", 1)];
    check(&items, NEW_YORK, "unipost.packet", [500, 0, 500], "23.20");
}

#[test]
fn remote_areas() {
    // PT to GB is Z2. Inverness (IV) is remote. 300 g by volume, up to 500 g: 24.00.
    // Remote: 0.60 x 0.3 kg = 0.18, at least 28.00. Fuel (24.00 + 28.00) x 0.2750 = 14.30. Sum 66.30.
    let inverness = ("GB", "iv2 3bw");
    check(
        &[("TEE", 1)],
        inverness,
        "meridian.express",
        [210, 300, 300],
        "66.30",
    );
    // London is not: 24.00 + 6.60 = 30.60.
    check(
        &[("TEE", 1)],
        ("GB", "SW1A 1AA"),
        "meridian.express",
        [210, 300, 300],
        "30.60",
    );
    // The post goes there for the same price: 210 g, up to 250 g 8.10.
    check(
        &[("TEE", 1)],
        inverness,
        "unipost.packet",
        [210, 0, 210],
        "8.10",
    );
    // DE to the Canary Islands (35) is Z1. 3 x 20 kg = 60 kg; 36,000,000 / 5,000 = 7.2 kg.
    // 156.00 + 30 x 5.20 = 312.00. Remote: 0.60 x 60 = 36.00. Fuel 348.00 x 0.2750 = 95.70. Sum 443.70.
    let las_palmas = ("ES", "35001");
    check(
        &[("DUMBBELL", 3)],
        las_palmas,
        "meridian.express",
        [60_000, 7_200, 60_000],
        "443.70",
    );
    // The battery line does not go to Anchorage (995).
    let expected = [("halcyon.battery_line", Cause::RemoteArea, "")];
    check_excluded(&[("CABLE", 1)], ("US", "99501"), &expected);
}

#[test]
fn batteries_alone() {
    // 420 g; 360,000 / 5,000 = 72 g; up to 500 g 29.50. Handling 12.00. Fuel only on freight: 8.11. Sum 49.61.
    check(
        &[("BANK", 1)],
        NEW_YORK,
        "meridian.express",
        [420, 72, 420],
        "49.61",
    );
    // Handling is for each parcel, not for each thing. 840 g, up to 1 kg 35.00, fuel 9.625, rounded 9.63, and 12.00:
    // 56.63.
    check(
        &[("BANK", 2)],
        NEW_YORK,
        "meridian.express",
        [840, 144, 840],
        "56.63",
    );
    // 360,000 / 6,000 = 60 g. Up to 500 g 11.40. Fuel 11.40 x 0.1200 = 1.368, rounded 1.37. Sum 12.77.
    check(
        &[("BANK", 1)],
        NEW_YORK,
        "halcyon.battery_line",
        [420, 60, 420],
        "12.77",
    );
    let expected = [
        ("meridian.economy", Cause::Goods, "battery_alone"),
        ("unipost.packet", Cause::Goods, "battery_alone"),
        ("unipost.parcel", Cause::Goods, "battery_alone"),
    ];
    check_excluded(&[("BANK", 1)], NEW_YORK, &expected);
}

#[test]
fn what_does_not_fly_goes_by_road() {
    // IT to DE is Z1. 310 g; 560,000 / 3,000 = 186.7, so 187 g; up to 1 kg 9.80.
    // Fuel 9.80 x 0.1350 = 1.323, rounded 1.32. Sum 11.12.
    check(
        &[("PERFUME", 1)],
        BERLIN,
        "landway.road",
        [310, 187, 310],
        "11.12",
    );
    let expected = [
        ("meridian.express", Cause::Goods, "flammable_liquid"),
        ("meridian.economy", Cause::Goods, "flammable_liquid"),
        ("unipost.packet", Cause::Goods, "flammable_liquid"),
        ("unipost.parcel", Cause::Goods, "flammable_liquid"),
    ];
    check_excluded(&[("PERFUME", 1)], BERLIN, &expected);
}

#[test]
fn knives_and_food() {
    let expected = [
        ("unipost.packet", Cause::Goods, "blade"),
        ("unipost.parcel", Cause::Goods, "blade"),
    ];
    check_excluded(&[("KNIFE", 1)], NEW_YORK, &expected);
    // Tea goes to Germany by post and not to Australia; the battery line takes no food at all.
    let line = ("halcyon.battery_line", Cause::Goods, "food");
    check_excluded(&[("TEA", 1)], BERLIN, &[line]);
    let expected = [
        line,
        ("unipost.packet", Cause::Goods, "food_to_oceania"),
        ("unipost.parcel", Cause::Goods, "food_to_oceania"),
    ];
    check_excluded(&[("TEA", 1)], ("AU", "2000"), &expected);
}

#[test]
fn limits_of_size_and_weight() {
    // NO to SE is Z2. 1,700 mm is below 1,750, 1,700 + 2 x (200 + 100) = 2,300 mm below 3,000.
    // 34,000,000 / 3,000 = 11,333.3, so 11,334 g; up to 20 kg 49.00. Fuel 49.00 x 0.1350 = 6.615, rounded 6.62.
    // Sum 55.62.
    let stockholm = ("SE", "111 22");
    check(
        &[("SKI", 1)],
        stockholm,
        "landway.road",
        [3_000, 11_334, 11_334],
        "55.62",
    );
    let expected = [
        ("meridian.express", Cause::Limit, ""),
        ("meridian.economy", Cause::Limit, ""),
        ("unipost.packet", Cause::Limit, ""),
        ("unipost.parcel", Cause::Limit, ""),
    ];
    check_excluded(&[("SKI", 1)], stockholm, &expected);
    // 41 x 50 = 2,050 g are more than the 2,000 g of a packet.
    check_excluded(
        &[("CABLE", 41)],
        BERLIN,
        &[("unipost.packet", Cause::Limit, "")],
    );
}

/// Another version of the tariff gives another price: a replay with changed rules shows it.
#[test]
fn the_older_tariff_has_another_fuel_surcharge() {
    // 128.00 as above; fuel 128.00 x 0.2475 = 31.68. Sum 159.68.
    let asked = Asked {
        items: &[("BEAR", 1)],
        to: NEW_YORK,
        currency: "USD",
        tariff: &OLD_TARIFF,
    };
    assert_eq!(
        option(&asked, "meridian.express").price.to_string(),
        "USD 159.68"
    );
}

#[test]
fn other_currencies() {
    #[track_caller]
    fn check(items: &[(&str, u32)], to: (&str, &str), id: &str, expected: &str) {
        let currency = &expected[..3];
        let asked = Asked {
            items,
            to,
            currency,
            tariff: &TARIFF,
        };
        assert_eq!(option(&asked, id).price.to_string(), expected);
    }
    // CN to JP is Z2: 6.20 dollars. One euro is 1.0389 dollars and 163.06 yen: 6.20 x 163.06 / 1.0389 = 973.1, and
    // yen have no smaller unit: 973.
    check(
        &[("CABLE", 1)],
        ("JP", "100-0001"),
        "unipost.packet",
        "JPY 973",
    );
    // CN to KR is Z2: 6.20 x 1532.15 / 1.0389 = 9,143.6, rounded 9,144 won.
    check(
        &[("CABLE", 1)],
        ("KR", "04524"),
        "unipost.packet",
        "KRW 9144",
    );
    // 7.10 / 1.0389 = 6.834, rounded 6.83 euros.
    check(&[("CABLE", 1)], BERLIN, "unipost.packet", "EUR 6.83");
    // The sum of both parcels is converted once: 60.56 / 1.0389 = 58.292, rounded 58.29. Each for itself it would be
    // 36.20 + 22.09, by chance the same.
    check(
        &[("CABLE", 1), ("TEE", 1)],
        BERLIN,
        "meridian.express",
        "EUR 58.29",
    );
}

#[test]
fn where_nothing_is_left() {
    #[track_caller]
    fn check(items: &[(&str, u32)], to: (&str, &str), code: &str, field: &str) -> Value {
        let (currency, tariff) = ("USD", &*TARIFF);
        let error = ask(&Asked {
            items,
            to,
            currency,
            tariff,
        })
        .unwrap_err();
        let body = serde_json::to_value(error.body()).unwrap();
        assert_eq!(body["code"], code, "{body:#}");
        assert_eq!(body["details"]["field"], field, "{body:#}");
        body
    }
    // 160 Wh are too much for everything that flies, and from China everything flies.
    let body = check(&[("STATION", 1)], BERLIN, "COMPLIANCE_BLOCKED", "/items");
    let mitigations = body["details"]["mitigations"].as_array().unwrap();
    assert!(
        mitigations.contains(&json!("take a battery of at most 100 Wh")),
        "{body:#}"
    );
    // Two things that never travel together: one flies, the other does not.
    let items = [("PERFUME", 1), ("CABLE", 1)];
    let body = check(&items, BERLIN, "INVALID_ARGUMENT", "/items");
    let apart = json!("order the items of each sender separately");
    assert_eq!(body["details"]["hint"], apart, "{body:#}");
    // Ordering apart is no way out where one of them cannot go at all.
    let items = [("STATION", 1), ("PERFUME", 1)];
    check(&items, BERLIN, "COMPLIANCE_BLOCKED", "/items");
    // 4 x 20 kg are more than the 70 kg of any service.
    check(&[("DUMBBELL", 4)], BERLIN, "INVALID_ARGUMENT", "/items");
    check(
        &[("CABLE", 1)],
        ("AQ", ""),
        "INVALID_ARGUMENT",
        "/destination/country",
    );
    check(
        &[("CABLE", 1)],
        ("XX", ""),
        "INVALID_ARGUMENT",
        "/destination/country",
    );
    let body = check(&[("NOTHING", 1)], BERLIN, "NOT_FOUND", "/items");
    assert!(body["message"].as_str().unwrap().contains("NOTHING"));
}

/// Without a postal code the remote areas are unknown, and the answer says so.
#[test]
fn a_missing_postal_code_is_told() {
    let items = [("CABLE", 1)];
    let asked = |to| Asked {
        items: &items,
        to,
        currency: "USD",
        tariff: &TARIFF,
    };
    let with = option(&asked(NEW_YORK), "meridian.express");
    let without = option(&asked(("US", "")), "meridian.express");
    assert_eq!(with.restrictions.len() + 1, without.restrictions.len());
    // Germany has no remote areas in this tariff, so nothing is unknown.
    let germany = option(&asked(("DE", "")), "meridian.express");
    assert_eq!(germany.restrictions, with.restrictions);
}
