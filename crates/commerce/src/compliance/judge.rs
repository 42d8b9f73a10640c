//! The verdict of the rules on one item and its destination. Pure: no clock, no state, no language but the one that is
//! asked for.

use super::answer::{Finding, Severity};
use super::policy::{Facts, Mitigation, Policy, Rule, Truth};
use crate::destination::Destination;
use crate::shop::Offer;

/// A quantity of one offer.
pub(super) struct Thing<'a> {
    pub(super) offer: &'a Offer,
    /// The quantity over all its variants.
    pub(super) quantity: u32,
    /// The quantity over all items of the basket of the same kind, the first two words of the category, that cross a
    /// border like it.
    pub(super) category_quantity: u32,
}

/// All findings, the worst first, then by the ids of the rules.
pub(super) fn findings(
    policy: &Policy,
    thing: &Thing<'_>,
    destination: &Destination,
    is_chinese: bool,
) -> Vec<Finding> {
    let facts = Facts::of(thing, destination);
    let mut found = unknown(policy, &facts, is_chinese);
    // An unknown category or country cannot be judged, and no other finding would help.
    if found.is_empty() {
        let rules = policy.rules().iter();
        found.extend(rules.filter_map(|rule| judged(rule, &facts, is_chinese)));
    }
    found.sort_by(|left, right| {
        let by_severity = right.severity.cmp(&left.severity);
        by_severity.then_with(|| left.rule.cmp(&right.rule))
    });
    found
}

/// The finding of one rule; `None` if it does not apply.
fn judged(rule: &Rule, facts: &Facts<'_>, is_chinese: bool) -> Option<Finding> {
    if !rule.is_about(facts) {
        return None;
    }
    match rule.finds(facts) {
        Truth::Fails => None,
        Truth::Holds => Some(said(rule, is_chinese)),
        Truth::Unknown(missing) => {
            let mut finding = said(rule, is_chinese);
            finding.severity = Severity::Block;
            finding.missing = missing.into_iter().collect();
            let names = finding.missing.join(", ");
            finding.message = if is_chinese {
                format!("无法判断，缺少 {names}：{}", finding.message)
            } else {
                format!(
                    "this cannot be decided without {names}: {}",
                    finding.message
                )
            };
            Some(finding)
        }
    }
}

fn said(rule: &Rule, is_chinese: bool) -> Finding {
    let mitigations = rule.mitigations.iter();
    Finding {
        rule: rule.id.clone(),
        severity: rule.severity,
        message: rule.message.in_language(is_chinese).to_owned(),
        mitigations: mitigations
            .clone()
            .map(|mitigation| mitigation.told(is_chinese))
            .collect(),
        asked_of_buyer: mitigations.filter_map(Mitigation::of_buyer).collect(),
        missing: Vec::new(),
        source: Some(format!("{} ({})", rule.source, rule.date)),
    }
}

/// The findings for an unknown category or country.
fn unknown(policy: &Policy, facts: &Facts<'_>, is_chinese: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    if !policy.knows_category(facts.category()) {
        let category = facts.category();
        found.push(closed(
            "closed.unknown_category",
            if is_chinese {
                format!("合规规则中没有品类 {category:?}，因此不予放行")
            } else {
                format!("the rules do not know the category {category:?}, so it is blocked")
            },
            is_chinese,
        ));
    }
    for (what, what_zh, country) in facts.countries() {
        if !policy.knows_country(country) {
            found.push(closed(
                "closed.unknown_country",
                if is_chinese {
                    format!("合规规则中没有{what_zh} {country:?}，因此不予放行")
                } else {
                    format!("the rules do not know the {what} {country:?}, so it is blocked")
                },
                is_chinese,
            ));
        }
    }
    found
}

fn closed(rule: &str, message: String, is_chinese: bool) -> Finding {
    let mitigation = if is_chinese {
        "平台：补充规则或更正商品与目的地资料后重新检查"
    } else {
        "platform: complete the rules, or correct the offer or the destination, and check again"
    };
    Finding {
        rule: rule.to_owned(),
        severity: Severity::Block,
        message,
        mitigations: vec![mitigation.to_owned()],
        asked_of_buyer: Vec::new(),
        missing: Vec::new(),
        source: None,
    }
}
