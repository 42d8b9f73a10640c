//! Bundles of version 2 records: links with their roles and claims, openings of every kind.

use countersign_contract::evidence::{EvidenceRecord, Freshness, LinkRole, Opening};
use countersign_evidence::bundle::{Bundle, Opened};
use serde_json::json;

use super::cases::{Case, Found, case, without_content};
use super::recent::{
    ASKED, COUNTED, DISPUTE, DRAFT, FREIGHT, LATE, OFFER, OFFER_UNTIL, PAYMENT, fresh, looked_at,
    upgraded,
};
use super::sample::{QUOTE, record_of, text_of};

/// Returns all cases of version 2.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = valid();
    cases.extend(claims());
    cases.extend(places());
    cases.extend(openings());
    cases.extend(spellings());
    cases
}

const DECISION: [usize; 4] = [OFFER, FREIGHT, ASKED, DRAFT];

fn whole(name: &'static str, places: &[usize]) -> Case {
    case(name, upgraded().bundle(places).to_json(), &[])
}

fn valid() -> Vec<Case> {
    let everything: Vec<usize> = (0..upgraded().leaves.len()).collect();
    let grown = upgraded()
        .bundle(&[LATE])
        .with_earlier(upgraded().checkpoint(7), &upgraded().growth_from(7));
    let mut sealed = upgraded().bundle(&DECISION);
    let mut raw_only = upgraded().bundle(&[OFFER]);
    for record in &mut sealed.records {
        record.opened = None;
    }
    raw_only.records[0].payload = None;
    if let Some(opened) = &mut raw_only.records[0].opened {
        (opened.arguments, opened.data) = (None, None);
    }
    vec![
        whole("v2-valid-opened", &DECISION),
        whole("v2-valid-everything", &everything),
        // A refusal, a payment and a dispute after the window: normal use, and valid.
        whole(
            "v2-valid-looked-at-expired",
            &[QUOTE, OFFER, FREIGHT, ASKED, DRAFT, LATE, PAYMENT, DISPUTE],
        ),
        whole("v2-valid-shown", &[ASKED]),
        whole("v2-valid-large-integer", &[PAYMENT]),
        whole("v2-valid-counted-refusals", &[COUNTED]),
        // The claim is checked as far as the record goes; the window of the offer is not in the bundle.
        whole("v2-valid-claim-outside", &[DRAFT]),
        case("v2-valid-sealed", sealed.to_json(), &[]),
        case("v2-valid-raw-opened", raw_only.to_json(), &[]),
        Case {
            held: Some(upgraded().checkpoint(7)),
            ..case("v2-valid-grown-from-version-1", grown.to_json(), &[])
        },
    ]
}

/// The decision of a log whose draft is altered.
fn lying(name: &'static str, code: &'static str, alter: impl FnOnce(&mut EvidenceRecord)) -> Case {
    let mut record = record_of(&upgraded().leaves[DRAFT]);
    alter(&mut record);
    lying_text(name, code, text_of(&record))
}

fn lying_text(name: &'static str, code: &'static str, text: String) -> Case {
    let log = upgraded().with_leaf(DRAFT, text);
    let bundle = without_content(log.bundle(&DECISION));
    case(name, bundle.to_json(), &[(code, Some(DRAFT as u64))])
}

#[expect(clippy::unnecessary_wraps, reason = "links take it as it is")]
fn claim(at: &str, until: &str) -> Option<Freshness> {
    Some(Freshness {
        at: at.to_owned(),
        until: until.to_owned(),
    })
}

fn claims() -> Vec<Case> {
    let late = "2026-11-16T09:05:00.250000001Z";
    let outside = {
        let mut record = record_of(&upgraded().leaves[DRAFT]);
        record.links[0].fresh = claim(late, OFFER_UNTIL);
        let log = upgraded().with_leaf(DRAFT, text_of(&record));
        let bundle = without_content(log.bundle(&[DRAFT])).to_json();
        let findings = [("link_expired", Some(DRAFT as u64))];
        case("claim-expired-outside", bundle, &findings)
    };
    vec![
        lying("claim-expired", "link_expired", |record| {
            record.links[0].fresh = claim(late, OFFER_UNTIL);
        }),
        outside,
        lying("claim-of-another-window", "link_window_other", |record| {
            record.links[0].fresh = claim(OFFER_UNTIL, late);
        }),
        // The same instant in another spelling is another window.
        lying("claim-spelled-otherwise", "link_window_other", |record| {
            record.links[0].fresh = claim(OFFER_UNTIL, "2026-11-16T09:05:00.250Z");
        }),
        lying("claim-without-a-window", "link_window_other", |record| {
            record.links[2].fresh = claim(OFFER_UNTIL, OFFER_UNTIL);
        }),
        lying("claim-on-looked-at", "link_claim_unexpected", |record| {
            record.links[0].role = Some(LinkRole::LookedAt);
        }),
        lying("claim-time-malformed", "time_malformed", |record| {
            record.links[0].fresh = claim("2026-11-16T10:05:00+01:00", OFFER_UNTIL);
        }),
        lying("claim-window-malformed", "time_malformed", |record| {
            record.links[0].fresh = claim(OFFER_UNTIL, "2026-11-16T09:05:00.Z");
        }),
        Case {
            findings: Vec::new(),
            ..lying("v2-valid-without-a-claim", "", |record| {
                record.links[0].fresh = None;
            })
        },
    ]
}

/// Links that lead forward: an offer that relies on later records.
fn places() -> Vec<Case> {
    let place = Some(OFFER as u64);
    let with = |name, link, findings: &Found| {
        let mut record = record_of(&upgraded().leaves[OFFER]);
        record.links = vec![link];
        let log = upgraded().with_leaf(OFFER, text_of(&record));
        let bundle = without_content(log.bundle(&[OFFER, FREIGHT]));
        case(name, bundle.to_json(), findings)
    };
    let freight = &upgraded().leaves[FREIGHT];
    let claimed = fresh(freight, "2026-11-16T09:05:00Z", "2026-11-16T09:05:01Z");
    let later = [("link_later", place)];
    vec![
        with("link-to-a-later-record", looked_at(freight), &later),
        with("claim-of-a-later-record", claimed, &later),
    ]
}

/// The records at these indexes, all opened, after an alteration of the first one's openings.
fn opened(
    name: &'static str,
    place: usize,
    code: &'static str,
    alter: impl FnOnce(&mut Opened),
) -> Case {
    let mut bundle = upgraded().bundle(&[place]);
    let first = &mut bundle.records[0];
    alter(first.opened.as_mut().expect("the sample opens it"));
    case(name, bundle.to_json(), &[(code, Some(place as u64))])
}

fn some(opening: &mut Option<Opening>) -> &mut Opening {
    opening.as_mut().expect("the sample opens it")
}

fn openings() -> Vec<Case> {
    let as_text = |bundle: &mut Bundle| {
        let opened = bundle.records[0].opened.as_mut();
        let data = some(&mut opened.expect("the sample opens it").data);
        data.text = data.value.take().map(|value| value.to_string());
    };
    let mut spelled = upgraded().bundle(&[DRAFT]);
    as_text(&mut spelled);
    let large = r#""text": "{\"amount_minor\":1000000000000000000001}""#;
    let as_value = upgraded().bundle(&[PAYMENT]).to_json();
    assert!(as_value.contains(large), "{as_value}");
    let as_value = as_value.replace(large, r#""value": {"amount_minor":1000000000000000000001}"#);
    vec![
        opened("raw-altered", OFFER, "opened_other", |opened| {
            some(&mut opened.raw).text = Some("{quantity: '3', sku: 'A-1',}".to_owned());
        }),
        opened("shown-altered", ASKED, "opened_other", |opened| {
            let shown = json!({"summary": "Order 1 of A-1 for 19.90 USD"});
            some(&mut opened.shown).value = Some(shown);
        }),
        // The salt of one value opens no other.
        opened("salt-of-another-value", OFFER, "opened_other", |opened| {
            some(&mut opened.raw).salt = some(&mut opened.data).salt.clone();
        }),
        opened("large-integer-rounded", PAYMENT, "opened_other", |opened| {
            let rounded = r#"{"amount_minor":1000000000000000000000}"#;
            some(&mut opened.arguments).text = Some(rounded.to_owned());
        }),
        case("large-integer-as-value", as_value, &[("not_json", None)]),
        case("v2-valid-text-of-a-value", spelled.to_json(), &[]),
        opened("opening-with-both", DRAFT, "opening_malformed", |opened| {
            let data = some(&mut opened.data);
            data.text = data.value.as_ref().map(ToString::to_string);
        }),
        opened(
            "opening-with-neither",
            DRAFT,
            "opening_malformed",
            |opened| {
                some(&mut opened.data).value = None;
            },
        ),
        // `null` is a value: both are there.
        opened(
            "opening-null-and-text",
            DISPUTE,
            "opening_malformed",
            |opened| {
                some(&mut opened.data).text = Some("null".to_owned());
            },
        ),
        opened("raw-unexpected", DRAFT, "opened_unexpected", |opened| {
            opened.raw = opened.data.clone();
        }),
    ]
}

/// Leaves that another program might read differently, or that this version does not know.
fn spellings() -> Vec<Case> {
    const NOT_A_RECORD: &str = "leaf_not_a_record";
    let honest = upgraded().leaves[DRAFT].text.clone();
    let replaced = |from: &str, to: &str| {
        assert!(honest.contains(from), "{from}");
        honest.replacen(from, to, 1)
    };
    let with = |name, from: &str, to: &str| lying_text(name, NOT_A_RECORD, replaced(from, to));
    let writes = format!("\"v\":2,\"writes\":\"sha256:{}\"}}", "0".repeat(64));
    vec![
        with("leaf-with-a-reserved-member", "\"v\":2}", &writes),
        with(
            "leaf-of-a-reserved-kind",
            "\"kind\":\"call\"",
            "\"kind\":\"prune\"",
        ),
        with("leaf-of-a-later-version", "\"v\":2}", "\"v\":3}"),
        with(
            "leaf-with-an-unknown-inner-member",
            "\"phases\":{",
            "\"phases\":{\"asleep_us\":1,",
        ),
        with(
            "leaf-with-an-empty-member",
            "\"id\":\"ev_draft\"",
            "\"dry_run\":false,\"id\":\"ev_draft\"",
        ),
        with(
            "leaf-with-a-null",
            "\"id\":\"ev_draft\"",
            "\"dry_run\":null,\"id\":\"ev_draft\"",
        ),
        with("leaf-with-an-unknown-role", "\"rests_on\"", "\"hoped_for\""),
        lying("link-without-a-role", NOT_A_RECORD, |record| {
            record.links[2].role = None;
        }),
        lying("trace-in-version-2", NOT_A_RECORD, |record| {
            record.trace_id = Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned());
        }),
        lying("redacted-arguments-in-version-2", NOT_A_RECORD, |record| {
            if let Some(arguments) = &mut record.arguments {
                arguments.redacted = json!({"note": "[personal]"});
            }
        }),
    ]
}
