//! Properties of every item and destination, whatever the rules are.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::super::answer::{Decision, Severity};
use super::super::judge::{Thing, findings};
use super::super::policy::{Policy, Rule, is_at_or_below};
use super::{Case, IN_FORCE, case, policy};

static POLICY: LazyLock<Policy> = LazyLock::new(|| policy(IN_FORCE));

const CERTIFICATES: [&str; 21] = [
    "CE",
    "UKCA",
    "FCC",
    "UN38.3",
    "EN71",
    "CPC",
    "PSE",
    "TELEC",
    "KC",
    "SRRC",
    "CCC",
    "RCM",
    "CPNP",
    "SCPN",
    "EU-RP",
    "EPR-BATTERY",
    "CITES",
    "ORGANIC",
    "PHYTO",
    "FDA",
    "FOOD-CONTACT",
];

const COUNTRIES: [&str; 14] = [
    "DE", "FR", "US", "GB", "JP", "CN", "AU", "NZ", "KR", "NO", "CU", "SY", "BR", "XX",
];

fn things() -> impl Strategy<Value = Case> {
    let categories: Vec<String> = POLICY.categories().map(str::to_owned).collect();
    let countries = COUNTRIES.to_vec();
    let certificates = CERTIFICATES.to_vec();
    let count = certificates.len();
    (
        select(categories),
        select(countries.clone()),
        select(countries),
        subsequence(certificates, 0..=count),
        proptest::option::of((
            select(vec!["alone", "with_equipment", "in_equipment"]),
            0_u32..200,
        )),
        (
            any::<Option<bool>>(),
            proptest::option::of(0_i64..30),
            1_u32..40,
        ),
        proptest::option::of(select(vec![
            "pig", "milk", "bee", "python", "bovine", "down",
        ])),
    )
        .prop_map(
            |(category, from, to, certificates, battery, (flag, number, quantity), text)| {
                let mut thing = case(&category, &format!("{from}>{to}"))
                    .certified(&certificates.join(" "))
                    .quantity(quantity);
                if let Some((packing, watt_hours)) = battery {
                    thing = thing.lithium_ion(packing, watt_hours);
                }
                if let Some(flag) = flag {
                    for name in ["radio", "food_contact", "cultural_property", "nicotine"] {
                        thing = thing.with(name, flag);
                    }
                }
                if let Some(number) = number {
                    for name in [
                        "age_from",
                        "alcohol_percent",
                        "blade_mm",
                        "laser_class",
                        "take_off_g",
                    ] {
                        thing = thing.with(name, number);
                    }
                }
                if let Some(text) = text {
                    for name in ["animal_origin", "leather", "filling", "cites_appendix"] {
                        thing = thing.with(name, text);
                    }
                }
                thing
            },
        )
}

/// Certificates that bring a duty of their own: a claim has to be proved at the border.
const CLAIMS: [&str; 3] = ["CITES", "CPC", "ORGANIC"];

#[test]
fn claims_are_those_that_a_condition_asks_for() {
    let claims: BTreeSet<String> = POLICY.rules().iter().flat_map(Rule::claims).collect();
    assert_eq!(claims, CLAIMS.map(str::to_owned).into());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The worst finding decides, findings come worst first, and each rule has at most one.
    #[test]
    fn the_worst_finding_decides(thing in things()) {
        let judged = Thing { offer: &thing.offer, quantity: thing.quantity, category_quantity: thing.quantity };
        let found = findings(&POLICY, &judged, &thing.to, false);
        let expected = match found.first().map(|worst| worst.severity) {
            None | Some(Severity::Info) => Decision::Allowed,
            Some(Severity::Warning) => Decision::Conditional,
            Some(Severity::Block) => Decision::Blocked,
        };
        prop_assert_eq!(Decision::of(&found), expected);
        prop_assert!(found.is_sorted_by(|left, right| left.severity >= right.severity));
        let rules: BTreeSet<&str> = found.iter().map(|one| one.rule.as_str()).collect();
        prop_assert!(rules.len() == found.len() || rules.contains("closed.unknown_country"));
    }

    /// Another certificate never makes the decision worse, unless it is a claim.
    #[test]
    fn a_certificate_more_does_no_harm(thing in things(), certificate in select(CERTIFICATES.to_vec())) {
        let (before, _) = thing.judged_by(&POLICY);
        let (after, _) = thing.clone().certified(certificate).judged_by(&POLICY);
        prop_assert!(after <= before || CLAIMS.contains(&certificate));
    }

    /// An unknown category is blocked, whatever else is known about the item.
    #[test]
    fn an_unknown_category_is_blocked(thing in things(), word in "[a-z]{1,8}") {
        let mut thing = thing;
        thing.offer.category = format!("{}/{word}", thing.offer.category);
        let (decision, found) = thing.judged_by(&POLICY);
        prop_assert_eq!(decision, Decision::Blocked);
        prop_assert!(found.contains_key("closed.unknown_category"));
    }

    /// Every item is blocked under an embargo.
    #[test]
    fn nothing_goes_under_an_embargo(thing in things()) {
        let mut thing = thing;
        "CU".clone_into(&mut thing.to.country);
        prop_assert_eq!(thing.judged_by(&POLICY).0, Decision::Blocked);
    }

    /// The language changes texts and nothing else.
    #[test]
    fn the_language_decides_nothing(thing in things()) {
        let judged = Thing { offer: &thing.offer, quantity: thing.quantity, category_quantity: thing.quantity };
        let english = findings(&POLICY, &judged, &thing.to, false);
        let chinese = findings(&POLICY, &judged, &thing.to, true);
        prop_assert_eq!(english.len(), chinese.len());
        for (one, other) in english.iter().zip(&chinese) {
            prop_assert_eq!((&one.rule, one.severity), (&other.rule, other.severity));
            prop_assert_eq!(one.mitigations.len(), other.mitigations.len());
            prop_assert_ne!(&one.message, &other.message);
        }
    }

    /// A category is below each of its prefixes of whole words, and below nothing else.
    #[test]
    fn categories_are_paths(words in proptest::collection::vec("[a-c]{1,2}", 1..5), other in "[a-c]{1,2}") {
        let category = words.join("/");
        for end in 1..=words.len() {
            prop_assert!(is_at_or_below(&category, &words[..end].join("/")));
        }
        let is_below = is_at_or_below(&category, &other);
        prop_assert_eq!(is_below, words[0] == other);
    }
}
