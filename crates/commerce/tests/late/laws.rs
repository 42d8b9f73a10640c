//! Properties of every record, whatever the call was.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use countersign::contract::evidence::LinkRole;
use countersign::contract::{ErrorCode, EvidenceRecord, RecordKind, SnapshotId};
use serde_json::Value;

use crate::log::Logged;
use crate::shop::PAYMENT;

const DRAFT: &str = "checkout.create_draft_order";
const BUNDLE: &str = "evidence.create_snapshot";
const TOTAL: &str = "checkout.compute_total";

/// The answers that a total rests on.
const GROUNDS: [&str; 4] = [
    "compliance.check_item",
    "pricing.get_realtime_quote",
    "shipping.quote_options",
    "tax.estimate_duties_and_taxes",
];

/// The state of the checks.
#[derive(Default)]
pub(crate) struct Laws {
    /// The bundles that an order was made from.
    ordered: HashSet<SnapshotId>,
}

impl Laws {
    /// Checks a record against those before it.
    pub(crate) fn check(&mut self, logged: &Logged, before: &HashMap<SnapshotId, Logged>) {
        let record = &logged.record;
        assert_eq!(record.v, 2, "{record:#?}");
        let mut inherited: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut links = Vec::new();
        for link in &record.links {
            let target = before.get(&link.id);
            assert!(target.is_some(), "nothing or something later: {record:#?}");
            let target = target.unwrap();
            assert!(target.index < logged.index && target.leaf == link.leaf);
            assert_eq!(target.record.subject, record.subject, "of the same user");
            check_freshness(record, link, &target.record);
            if link.role == Some(LinkRole::RestsOn) {
                inherit(&mut inherited, &target.record);
            }
            links.push((link.role.unwrap().as_str(), name_of(&target.record)));
        }
        assert_eq!(record.inherited_rules, inherited, "{record:#?}");
        links.sort_unstable();
        self.check_links(record, &links);
    }

    /// Checks the links of a call's record and their roles: the tool and the outcome of the call decide them.
    fn check_links(&mut self, record: &EvidenceRecord, links: &[(&str, &str)]) {
        let is_failed = is_failed(record);
        let has_run = record.kind == RecordKind::Call && record.reply.is_some();
        if !has_run || is_failed {
            let rests = links.iter().any(|(role, _)| *role == "rests_on");
            assert!(!rests, "{record:#?}");
            return;
        }
        let state = record.idempotency.as_ref().map(|key| key.state.as_str());
        // A dry run that reports the answer of a key does not take the key.
        let is_told = record.dry_run
            && record
                .reply
                .as_ref()
                .is_some_and(|reply| reply.commitment.is_none());
        if state == Some("replayed") || is_told {
            let first = [("looked_at", name_of(record))];
            assert_eq!(links, first, "a replay leads to the first: {record:#?}");
            return;
        }
        let of = |role: &str| -> Vec<&str> {
            let of_role = links.iter().filter(|(found, _)| *found == role);
            of_role.map(|(_, name)| *name).collect()
        };
        let (rests_on, looked_at) = (of("rests_on"), of("looked_at"));
        match name_of(record) {
            TOTAL => {
                assert_eq!((&rests_on[..], &looked_at[..]), (&GROUNDS[..], &[][..]));
                assert!(record.inherited_rules.contains_key("tax"), "{record:#?}");
            }
            DRAFT => self.check_draft(record, &rests_on, &looked_at),
            "tax.estimate_duties_and_taxes" => {
                let may = &GROUNDS[1..3];
                assert!(rests_on.iter().all(|name| may.contains(name)) && looked_at.is_empty());
            }
            "checkout.select_shipping_option" => {
                assert_eq!((&rests_on[..], &looked_at[..]), (&GROUNDS[2..3], &[][..]));
            }
            PAYMENT => {
                let approval: &[&str] = if record.dry_run { &[] } else { &["approval"] };
                assert_eq!((&rests_on[..], &looked_at[..]), (approval, &GROUNDS[..]));
            }
            BUNDLE | "evidence.attach_to_draft_order" => {
                assert!(rests_on.is_empty(), "{record:#?}");
            }
            _ => assert!(links.is_empty(), "{record:#?}"),
        }
    }

    /// An order rests on five answers, unless it was made from its bundle before and is answered again.
    fn check_draft(&mut self, record: &EvidenceRecord, rests_on: &[&str], looked_at: &[&str]) {
        assert!(!record.links.is_empty(), "{record:#?}");
        let bundle = record.links.first().unwrap().id.clone();
        if rests_on.is_empty() {
            assert!(self.ordered.contains(&bundle), "{record:#?}");
            return;
        }
        let [compliance, pricing, shipping, tax] = GROUNDS;
        assert_eq!(rests_on, [TOTAL, compliance, pricing, shipping, tax]);
        assert_eq!(looked_at, [BUNDLE]);
        assert!(record.inherited_rules.contains_key("tax"), "{record:#?}");
        if !record.dry_run {
            self.ordered.insert(bundle);
        }
    }
}

/// Checks the freshness of a link: a call that rests on an answer claims that the answer was fresh at that time; a
/// refusal claims nothing.
fn check_freshness(
    record: &EvidenceRecord,
    link: &countersign::contract::evidence::Link,
    target: &EvidenceRecord,
) {
    let window = target
        .reply
        .as_ref()
        .and_then(|reply| reply.valid_until.as_ref());
    match (link.role, &link.fresh) {
        (Some(LinkRole::LookedAt), None) => {}
        (Some(LinkRole::RestsOn), fresh) => {
            assert_eq!(fresh.as_ref().map(|fresh| &fresh.until), window);
            if let Some(fresh) = fresh {
                let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
                assert!(time(&fresh.at) < time(&fresh.until), "{record:#?}");
                assert_eq!(fresh.at, record.at, "time stands still in a call");
            } else {
                assert_eq!(target.kind, RecordKind::Approval, "{record:#?}");
            }
        }
        (Some(LinkRole::LookedAt), Some(_)) | (None, _) => {
            assert_eq!(
                format!("{link:?}"),
                "",
                "a link that does not say what it is"
            );
        }
    }
}

fn inherit(rules: &mut BTreeMap<String, BTreeSet<String>>, target: &EvidenceRecord) {
    for (name, version) in &target.rules {
        let versions = rules.entry(name.clone()).or_default();
        versions.insert(version.clone());
    }
    for (name, versions) in &target.inherited_rules {
        let all = rules.entry(name.clone()).or_default();
        all.extend(versions.iter().cloned());
    }
}

fn is_failed(record: &EvidenceRecord) -> bool {
    let reply = record.reply.as_ref();
    reply.is_some_and(|reply| reply.code.is_some())
}

/// The tool of a call; otherwise the kind of the record.
fn name_of(record: &EvidenceRecord) -> &str {
    match (record.kind, &record.tool) {
        (RecordKind::Call | RecordKind::Denial, Some(tool)) => &tool.name,
        (RecordKind::Approval, _) => "approval",
        _ => "other",
    }
}

/// Checks that the record that a reply names is the record of that reply.
pub(crate) fn agrees(record: &EvidenceRecord, tool: &str, reply: &Value) {
    let said = || format!("{record:#?}\n{reply:#}");
    assert_eq!(name_of(record), tool, "{}", said());
    let recorded = record.reply.as_ref().unwrap();
    let code = recorded.code.map(ErrorCode::as_str);
    assert_eq!(code, reply["error"]["code"].as_str(), "{}", said());
    // A dry run of a call that was made is answered with that call's record.
    let is_dry = reply["dry_run"] == true && reply["replayed"] != true;
    assert_eq!(record.dry_run, is_dry, "{}", said());
    if tool == DRAFT && code.is_none() {
        // An order that is answered again may name rules that are not in force any more.
        let is_made = record
            .links
            .iter()
            .any(|link| link.role == Some(LinkRole::RestsOn));
        for rule in reply["data"]["rules"].as_array().unwrap() {
            let (name, version) = (rule["name"].as_str().unwrap(), &rule["version"]);
            let own = record.rules.get(name).is_some_and(|own| own == version);
            let inherited = record.inherited_rules.get(name);
            let inherited = inherited.is_some_and(|all| all.iter().any(|one| one == version));
            assert!(own || inherited || !is_made, "{name} in {}", said());
        }
    }
}
