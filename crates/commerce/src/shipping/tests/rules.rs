//! Rule files that are refused.

use serde_json::json;

use super::{TARIFF_TEXT, ask_for, thing};
use crate::rulebook::RuleFiles;

const ADDRESSES: &str = include_str!("../../../rules/addresses/2026-10-01.toml");

#[track_caller]
fn check(name: &str, text: &str, replaced: (&str, &str), expected: &str) {
    assert!(text.contains(replaced.0), "{:?} is not there", replaced.0);
    let text = text.replacen(replaced.0, replaced.1, 1);
    let error = RuleFiles::default().with(name, "x", text).unwrap_err();
    let message = error.to_string();
    assert!(message.contains(expected), "{message}");
}

/// A condition that nothing implements must not be skipped: such a file cannot be loaded.
#[test]
fn a_tariff_that_cannot_be_used_says_why() {
    let check = |replaced, expected| check("shipping", TARIFF_TEXT, replaced, expected);
    check(
        ("op = \"above\"", "op = \"beyond\""),
        "unknown variant `beyond`",
    );
    check(
        (
            "op = \"above\", value = \"100\"",
            "op = \"above\", value = \"100\", or = 1",
        ),
        "unknown field `or`",
    );
    check(
        ("\"battery.watt_hours\"", "\"battery.watts\""),
        "there is no field \"battery.watts\"",
    );
    check(
        ("value = \"oceania\"", "value = \"atlantis\""),
        "there is no group \"atlantis\"",
    );
    check(
        ("\"weapon\"]", "\"weapons\"]"),
        "there are no goods \"weapons\"",
    );
    check(("\"CN\", \"HK\"", "\"CN\", \"JP\""), "in one group only");
    check(("\"CN\", \"HK\"", "\"CN\", \"Hk\""), "two capital letters");
    check(
        ("\"9.00\", \"11.00\"", "\"11.00\", \"9.00\""),
        "none of them falling",
    );
    check(
        ("\"9.00\", \"11.00\"", "\"-9.00\", \"11.00\""),
        "none of them falling",
    );
    check(
        ("\"9.00\", \"11.00\"", "\"11.00\""),
        "a price for each bracket",
    );
    check(
        ("fuel_rate = \"0.2750\"", "fuel_rate = \"27.50\""),
        "no fuel rate above one",
    );
    check(("per_kg = \"2.60\"", ""), "Z0 has no price for 153600 g");
    check(
        ("divisor_cm3_per_kg = 5000", "divisor_cm3_per_kg = 0"),
        "a divisor is above zero",
    );
    check(("days = [1, 2]", "days = [3, 2]"), "fewer days at most");
    check(
        ("id = \"meridian.express\"", "id = \"nobody.express\""),
        "has to be a carrier",
    );
    check(
        ("id = \"meridian.economy\"", "id = \"meridian.express\""),
        "is there twice",
    );
    check(
        ("policy = \"refused\"", "policy = \"maybe\""),
        "unknown variant `maybe`",
    );
    check(
        ("currency = \"USD\"", "currency = \"dollars\""),
        "is not a currency",
    );
}

#[test]
fn formats_of_addresses_that_cannot_be_used_say_why() {
    let check = |replaced, expected| check("addresses", ADDRESSES, replaced, expected);
    check(
        ("{city}, {region}", "{town}, {region}"),
        "a word that is not known",
    );
    check(
        ("\"{lines}\",", "\"{lines} {city}\","),
        "has to stand alone",
    );
    check(
        ("example = \"94105\"", "example = \"9410\""),
        "not written as a mask has it",
    );
    check(("\"USA\"", "\"Canada\""), "Canada is");
    check(("\"900-961\"", "\"961-900\""), "has a range that is none");
    check(("code = \"AK\"", "code = \"AL\""), "is there twice");
    check(
        ("\"recipient\",", "\"addressee\","),
        "unknown variant `addressee`",
    );
}

/// A value that should be a number and is not one may be anything: it is not taken.
#[test]
fn what_cannot_be_compared_is_refused() {
    let tonic = |percent| {
        let more = json!({"category": "beauty/hair", "attributes": {"alcohol_percent": percent}});
        let shop =
            json!({"offers": [thing("TONIC", ("m_tonic", "DE"), 900, [300, 80, 80], &more)]});
        let shop = serde_json::from_value(shop).unwrap();
        let offered = ask_for(&shop, &[("TONIC", 1)], ("US", "10001")).unwrap_err();
        offered.code().to_string()
    };
    assert_eq!(tonic(json!(40)), "COMPLIANCE_BLOCKED");
    assert_eq!(tonic(json!("40")), "COMPLIANCE_BLOCKED");
    assert_eq!(tonic(json!("strong")), "COMPLIANCE_BLOCKED");
}
