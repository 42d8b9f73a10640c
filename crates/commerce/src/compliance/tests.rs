//! Decisions worked out by hand (`goods`, `borders`), properties of all decisions (`laws`), and files that are refused
//! (`files`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::answer::{Decision, Severity};
use super::judge::{Thing, findings};
use super::policy::Policy;
use crate::destination::Destination;
use crate::shipping::address::{self, AddressRules};
use crate::shop::Offer;

mod borders;
mod files;
mod goods;
mod laws;

const IN_FORCE: &str = include_str!("../../rules/compliance/2026-11-01.toml");
const BEFORE: &str = include_str!("../../rules/compliance/2025-06-01.toml");

static ADDRESSES: LazyLock<AddressRules> = LazyLock::new(|| {
    toml::from_str(include_str!("../../rules/addresses/2026-10-01.toml")).unwrap()
});

/// One item with its destination, and the rules that judge it.
#[derive(Debug, Clone)]
struct Case {
    offer: Offer,
    quantity: u32,
    to: Destination,
    rules: &'static str,
}

/// An item of a category sent along `CN>DE`, without further facts; its origin is the country of dispatch.
fn case(category: &str, way: &str) -> Case {
    let (from, to) = way.split_once('>').unwrap();
    let text = json!({"en": "", "zh": ""});
    let offer = json!({
        "offer_id": "OFR-T", "title": text, "description": text, "category": category, "brand": "",
        "merchant_id": "m", "ships_from": from, "origin": from, "currency": "EUR", "hs_code": "999999",
        "returns": {"days": 14, "buyer_pays": true}, "variants": [],
    });
    Case {
        offer: serde_json::from_value(offer).unwrap(),
        quantity: 1,
        to: Destination {
            country: to.to_owned(),
            region: None,
            postal_code: None,
        },
        rules: IN_FORCE,
    }
}

impl Case {
    /// Adds these certificates, separated by spaces.
    fn certified(mut self, names: &str) -> Self {
        let names = names.split_whitespace().map(str::to_owned);
        self.offer.certificates.extend(names);
        self
    }

    fn with(mut self, attribute: &str, value: impl Into<Value>) -> Self {
        let attributes = &mut self.offer.attributes;
        attributes.insert(attribute.to_owned(), value.into());
        self
    }

    fn lithium_ion(mut self, packing: &str, watt_hours: u32) -> Self {
        let battery =
            json!({"chemistry": "lithium_ion", "packing": packing, "watt_hours": watt_hours});
        self.offer.battery = serde_json::from_value(battery).unwrap();
        self
    }

    fn quantity(mut self, quantity: u32) -> Self {
        self.quantity = quantity;
        self
    }

    fn origin(mut self, country: &str) -> Self {
        country.clone_into(&mut self.offer.origin);
        self
    }

    fn region(mut self, region: &str) -> Self {
        self.to.region = Some(region.to_owned());
        self
    }

    fn postal_code(mut self, code: &str) -> Self {
        self.to.postal_code = Some(code.to_owned());
        self
    }

    /// Uses the rules of an earlier version.
    fn before(mut self) -> Self {
        self.rules = BEFORE;
        self
    }

    /// The destination in normal form, as the tool has it.
    fn place(&self) -> Destination {
        address::place(&ADDRESSES, &self.to, "", None).unwrap().0
    }

    fn judged(&self) -> (Decision, BTreeMap<String, Severity>) {
        self.judged_by(&policy(self.rules))
    }

    fn judged_by(&self, policy: &Policy) -> (Decision, BTreeMap<String, Severity>) {
        let thing = Thing {
            offer: &self.offer,
            quantity: self.quantity,
            category_quantity: self.quantity,
        };
        let found = findings(policy, &thing, &self.place(), false);
        let by_rule = found.iter().map(|one| (one.rule.clone(), one.severity));
        (Decision::of(&found), by_rule.collect())
    }

    /// Checks the decision, and exactly these findings: `block a`, `warning b`, `info c`, separated by commas.
    #[track_caller]
    fn check(&self, decision: Decision, expected: &str) {
        let (judged, found) = self.judged();
        let mut found: Vec<String> = found
            .iter()
            .map(|(rule, severity)| match severity {
                Severity::Block => format!("block {rule}"),
                Severity::Warning => format!("warning {rule}"),
                Severity::Info => format!("info {rule}"),
            })
            .collect();
        found.sort();
        let expected = expected.split(',').map(str::trim);
        let mut expected: Vec<&str> = expected.filter(|one| !one.is_empty()).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(judged, decision);
    }

    /// Checks that this rule cannot be decided without this fact, and that its message says so.
    #[track_caller]
    fn check_missing(&self, rule: &str, fact: &str) {
        let thing = Thing {
            offer: &self.offer,
            quantity: self.quantity,
            category_quantity: self.quantity,
        };
        let found = findings(&policy(self.rules), &thing, &self.place(), false);
        let found = found.iter().find(|one| one.rule == rule).unwrap();
        assert_eq!(found.missing, [fact]);
        assert!(found.message.contains(fact), "{}", found.message);
    }

    #[track_caller]
    fn allowed(&self, expected: &str) {
        self.check(Decision::Allowed, expected);
    }

    #[track_caller]
    fn conditional(&self, expected: &str) {
        self.check(Decision::Conditional, expected);
    }

    #[track_caller]
    fn blocked(&self, expected: &str) {
        self.check(Decision::Blocked, expected);
    }
}

#[track_caller]
fn policy(text: &str) -> Policy {
    toml::from_str(text).unwrap()
}
