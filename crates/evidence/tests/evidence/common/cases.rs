//! Valid and invalid bundles of version 1 records, each with its expected findings.

use countersign_contract::evidence::{EvidenceRecord, LinkRole, Opening, RecordedCredential};
use countersign_contract::{Digest, SnapshotId};
use countersign_evidence::bundle::{Bundle, Earlier, Opened};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::SigningKey;
use serde_json::json;

use super::recent_cases;
use super::sample::{
    DENIAL, Log, ORDER, ORIGIN, QUOTE, SHIPPING, log, log_key, public_key, record_of, text_of,
};

/// One bundle, the way it is checked, and its faults: code, and index of the record.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) bundle: String,
    pub(crate) key: Option<String>,
    pub(crate) held: Option<String>,
    pub(crate) findings: Vec<(&'static str, Option<u64>)>,
}

/// Returns all cases.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = valid();
    cases.extend(unreadable());
    cases.extend(keys_and_checkpoints());
    cases.extend(places());
    cases.extend(contents());
    cases.extend(lying_leaves());
    cases.extend(lying_records());
    cases.extend(held());
    cases.extend(earlier());
    cases.extend(recent_cases::all());
    cases
}

pub(crate) type Found = [(&'static str, Option<u64>)];

pub(crate) fn case(name: &'static str, bundle: impl Into<String>, findings: &Found) -> Case {
    Case {
        name,
        bundle: bundle.into(),
        key: Some(public_key().to_string()),
        held: None,
        findings: findings.to_vec(),
    }
}

fn decision() -> Bundle {
    log().bundle(&[QUOTE, SHIPPING, ORDER])
}

/// The decision without the sent and answered values, which most cases are not about.
fn bare() -> Bundle {
    without_content(decision())
}

pub(crate) fn without_content(mut bundle: Bundle) -> Bundle {
    for record in &mut bundle.records {
        (record.payload, record.opened) = (None, None);
    }
    bundle
}

/// A case of the bare decision after an alteration.
fn altered(name: &'static str, findings: &Found, alter: impl FnOnce(&mut Bundle)) -> Case {
    let mut bundle = bare();
    alter(&mut bundle);
    case(name, bundle.to_json(), findings)
}

/// A case of the whole decision after an alteration.
fn altered_whole(name: &'static str, findings: &Found, alter: impl FnOnce(&mut Bundle)) -> Case {
    let mut bundle = decision();
    alter(&mut bundle);
    case(name, bundle.to_json(), findings)
}

/// A decision, in all the forms in which it can be handed out.
fn valid() -> Vec<Case> {
    let without_key = Case {
        key: None,
        ..case("valid-key-of-the-bundle", bare().to_json(), &[])
    };
    let compact = serde_json::to_string(&bare()).expect("a bundle is JSON");
    let witness = SigningKey::from_seed("witness.example.com", &[13; 32]).expect("valid");
    vec![
        case("valid-opened", decision().to_json(), &[]),
        without_key,
        case("valid-compact", compact, &[]),
        altered_whole("valid-sealed", &[], |bundle| {
            bundle
                .records
                .iter_mut()
                .for_each(|record| record.opened = None);
        }),
        case("valid-erased", bare().to_json(), &[]),
        altered_whole("valid-partly-opened", &[], |bundle| {
            let opened = bundle.records[0]
                .opened
                .as_mut()
                .expect("the sample opens it");
            opened.data = None;
        }),
        altered("valid-witnessed", &[], |bundle| {
            let (text, _) = bundle.checkpoint.split_once("\n\n").expect("a note");
            let note = witness.sign(&format!("{text}\n")).expect("valid");
            let (_, line) = note.split_once("\n\n").expect("a note");
            bundle.checkpoint.push_str(line);
        }),
        case(
            "valid-everything",
            log().bundle(&[0, 1, 2, 3, 4, 5, 6]).to_json(),
            &[],
        ),
        case(
            "valid-link-not-included",
            log().bundle(&[ORDER]).to_json(),
            &[],
        ),
    ]
}

fn unreadable() -> Vec<Case> {
    let good = decision().to_json();
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    vec![
        case("not-json", replaced("{", ""), &[("not_json", None)]),
        case(
            "member-twice",
            replaced("\"format\"", "\"summary\": \"nothing\", \"format\""),
            &[("not_json", None)],
        ),
        case(
            "value-twice",
            replaced("\"quantity\": 2", "\"quantity\": 2, \"quantity\": 3"),
            &[("not_json", None)],
        ),
        case(
            "later-format",
            replaced("bundle@v1", "bundle@v2"),
            &[("unknown_format", None)],
        ),
        case(
            "unknown-member",
            replaced("\"format\"", "\"approved\": true, \"format\""),
            &[("not_a_bundle", None)],
        ),
        case(
            "missing-member",
            replaced("\"leaf\"", "\"leave\""),
            &[("not_a_bundle", None)],
        ),
        case("another-document", "{\"a\": 1}", &[("not_a_bundle", None)]),
        altered("no-records", &[("record_count", None)], |bundle| {
            bundle.records.clear();
        }),
    ]
}

fn keys_and_checkpoints() -> Vec<Case> {
    let stranger = SigningKey::from_seed(ORIGIN, &[99; 32]).expect("valid");
    let other_log = SigningKey::from_seed("log.example.com/other", &[11; 32]).expect("valid");
    let checkpoint = &[("checkpoint", None)];
    vec![
        Case {
            key: Some(stranger.verifying_key().to_string()),
            ..case(
                "key-other",
                bare().to_json(),
                &[("key_other", None), ("checkpoint", None)],
            )
        },
        Case {
            key: None,
            ..altered("key-exchanged", checkpoint, |bundle| {
                bundle.public_key = stranger.verifying_key().to_string();
            })
        },
        altered("key-malformed", &[("key_malformed", None)], |bundle| {
            bundle.public_key.push('A');
        }),
        altered("checkpoint-of-a-stranger", checkpoint, |bundle| {
            let (text, _) = bundle.checkpoint.split_once("\n\n").expect("a note");
            bundle.checkpoint = stranger.sign(&format!("{text}\n")).expect("valid");
        }),
        altered("checkpoint-of-another-log", checkpoint, |bundle| {
            let text = Checkpoint::new("log.example.com/other", 7, [1; 32]);
            bundle.checkpoint = text.sign(&other_log).expect("valid");
        }),
        altered("checkpoint-malformed", checkpoint, |bundle| {
            bundle.checkpoint = log_key().sign("no checkpoint\n").expect("valid");
        }),
        altered("checkpoint-resized", checkpoint, |bundle| {
            bundle.checkpoint = bundle.checkpoint.replacen("\n7\n", "\n8\n", 1);
        }),
        altered("summary-other", &[("summary_other", None)], |bundle| {
            bundle.summary = bundle.summary.replace("call 3", "call 4");
        }),
    ]
}

fn places() -> Vec<Case> {
    let (quote, shipping, order) = (QUOTE as u64, SHIPPING as u64, ORDER as u64);
    let summary = ("summary_other", None);
    vec![
        // An older checkpoint is true, but proves nothing about later records.
        altered(
            "checkpoint-older",
            &[
                ("inclusion", Some(quote)),
                ("inclusion", Some(shipping)),
                ("inclusion", Some(order)),
                summary,
            ],
            |bundle| bundle.checkpoint = log().checkpoint(3),
        ),
        altered("record-dropped", &[summary], |bundle| {
            bundle.records.remove(1);
        }),
        altered(
            "records-reordered",
            &[("order", Some(quote)), summary],
            |bundle| {
                bundle.records.swap(0, 1);
            },
        ),
        altered(
            "record-twice",
            &[("order", Some(quote)), ("id_twice", Some(quote)), summary],
            |bundle| bundle.records.insert(0, bundle.records[0].clone()),
        ),
        altered(
            "record-moved",
            &[("inclusion", Some(order + 1))],
            |bundle| {
                bundle.records[2].index += 1;
            },
        ),
        altered("leaf-altered", &[("inclusion", Some(order))], |bundle| {
            let leaf = &mut bundle.records[2].leaf;
            *leaf = leaf.replacen("\"ttl_seconds\":60", "\"ttl_seconds\":90", 1);
        }),
        // Links to the altered record no longer match it.
        altered(
            "leaf-altered-below",
            &[("inclusion", Some(quote)), ("link_other", Some(order))],
            |bundle| {
                let leaf = &mut bundle.records[0].leaf;
                *leaf = leaf.replacen("\"ttl_seconds\":60", "\"ttl_seconds\":90", 1);
            },
        ),
        altered(
            "proof-malformed",
            &[("proof_malformed", Some(quote))],
            |bundle| {
                bundle.records[0].proof[1].truncate(40);
            },
        ),
        altered("proof-cut", &[("inclusion", Some(quote))], |bundle| {
            bundle.records[0].proof.pop();
        }),
        altered("proof-longer", &[("inclusion", Some(quote))], |bundle| {
            let hash = bundle.records[0].proof[0].clone();
            bundle.records[0].proof.push(hash);
        }),
        altered(
            "proof-of-another",
            &[("inclusion", Some(quote))],
            |bundle| {
                bundle.records[0].proof = bundle.records[1].proof.clone();
            },
        ),
    ]
}

fn contents() -> Vec<Case> {
    let quote = Some(QUOTE as u64);
    let opened = |bundle: &mut Bundle| -> Opened {
        bundle.records[0]
            .opened
            .take()
            .expect("the sample opens it")
    };
    let opening = Opening {
        salt: "00".repeat(32),
        value: Some(json!(null)),
        text: None,
    };
    vec![
        altered_whole(
            "payload-malformed",
            &[("payload_malformed", quote)],
            |bundle| {
                bundle.records[0].payload = Some("?".to_owned());
            },
        ),
        altered_whole(
            "payload-of-another",
            &[("payload_other", quote)],
            |bundle| {
                bundle.records[0].payload = bundle.records[1].payload.clone();
            },
        ),
        altered_whole("value-altered", &[("opened_other", quote)], |bundle| {
            let mut opened = opened(bundle);
            let data = opened.data.as_mut().expect("it is there");
            data.value.as_mut().expect("it is a value")["total"] = json!("3.98");
            bundle.records[0].opened = Some(opened);
        }),
        altered_whole("salt-altered", &[("opened_other", quote)], |bundle| {
            let mut opened = opened(bundle);
            opened.data.as_mut().expect("it is there").salt = "00".repeat(32);
            bundle.records[0].opened = Some(opened);
        }),
        altered_whole("salt-malformed", &[("salt_malformed", quote)], |bundle| {
            let mut opened = opened(bundle);
            opened.data.as_mut().expect("it is there").salt.pop();
            bundle.records[0].opened = Some(opened);
        }),
        // The sent value is not the answered one, though both commitments would open.
        altered_whole(
            "values-exchanged",
            &[("opened_other", quote), ("opened_other", quote)],
            |bundle| {
                let mut opened = opened(bundle);
                std::mem::swap(&mut opened.arguments, &mut opened.data);
                bundle.records[0].opened = Some(opened);
            },
        ),
        {
            let denial = Some(DENIAL as u64);
            let mut bundle = log().bundle(&[DENIAL]);
            bundle.records[0] = bundle.records[0].clone().with_payload(b"sealed");
            bundle.records[0].opened = Some(Opened {
                arguments: Some(opening.clone()),
                data: Some(opening.clone()),
                raw: Some(opening.clone()),
                shown: Some(opening),
            });
            let mut findings = vec![("payload_unexpected", denial)];
            findings.extend([("opened_unexpected", denial); 4]);
            case("content-unexpected", bundle.to_json(), &findings)
        },
    ]
}

/// The decision of a log that really has this leaf in place of the order.
fn lying(name: &'static str, findings: &Found, text: String) -> Case {
    let log = log().with_leaf(ORDER, text);
    let bundle = without_content(log.bundle(&[QUOTE, SHIPPING, ORDER]));
    case(name, bundle.to_json(), findings)
}

/// The order as no honest log would have it.
fn order(alter: impl FnOnce(&mut EvidenceRecord)) -> String {
    let mut record = record_of(&log().leaves[ORDER]);
    alter(&mut record);
    text_of(&record)
}

fn lying_leaves() -> Vec<Case> {
    let place = Some(ORDER as u64);
    let honest = log().leaves[ORDER].text.clone();
    let not_canonical = &[("leaf_not_canonical", place)];
    let not_a_record = &[("leaf_not_a_record", place)];
    vec![
        lying(
            "leaf-with-a-space",
            not_canonical,
            honest.replacen(':', ": ", 1),
        ),
        lying("leaf-not-json", not_canonical, "{".to_owned()),
        lying(
            "leaf-twice-a-member",
            not_canonical,
            honest.replacen('{', "{\"at\":\"\",", 1),
        ),
        lying("leaf-not-a-record", not_a_record, "{\"a\":1}".to_owned()),
        lying(
            "leaf-of-another-version",
            not_a_record,
            honest.replace("\"v\":1", "\"v\":3"),
        ),
        lying(
            "leaf-of-an-unknown-kind",
            not_a_record,
            honest.replace("\"kind\":\"call\"", "\"kind\":\"gift\""),
        ),
        lying(
            "leaf-too-long",
            &[("leaf_too_long", place)],
            order(|record| record.act = json!("x".repeat(65_536))),
        ),
    ]
}

fn lying_records() -> Vec<Case> {
    let place = Some(ORDER as u64);
    vec![
        lying(
            "name-twice",
            &[("id_twice", place)],
            order(|record| {
                record.id = SnapshotId::new("ev_quote").expect("valid");
                record.links.clear();
            }),
        ),
        lying(
            "link-to-another-leaf",
            &[("link_other", place)],
            order(|record| record.links[0].leaf = Digest([0; 32])),
        ),
        lying(
            "link-by-another-name",
            &[("link_other", place)],
            order(|record| record.links[0].id = SnapshotId::new("ev_offer").expect("valid")),
        ),
        // Version 1 does not record the role of a link, so nothing can be said about its freshness.
        lying(
            "valid-link-expired",
            &[],
            order(|record| record.at = String::from("2026-11-15T12:01:00.250000001Z")),
        ),
        lying(
            "role-in-version-1",
            &[("leaf_not_a_record", place)],
            order(|record| record.links[0].role = Some(LinkRole::LookedAt)),
        ),
        lying(
            "credential-in-version-1",
            &[("leaf_not_a_record", place)],
            order(|record| {
                let id = "key_7".to_owned();
                record.credential = Some(RecordedCredential::ApiKey { id });
            }),
        ),
    ]
}

/// The decision, with the proof that the log grew from its first three leaves.
fn grown() -> Bundle {
    bare().with_earlier(log().checkpoint(3), &log().growth_from(3))
}

/// The checkpoint of a log whose first leaf was replaced later.
fn rewritten(size: usize) -> String {
    let log: Log = log().with_leaf(0, log().leaves[6].text.clone());
    log.checkpoint(size)
}

fn held() -> Vec<Case> {
    let with_held = |name, bundle: Bundle, held: String, findings: &Found| Case {
        held: Some(held),
        ..case(name, bundle.to_json(), findings)
    };
    let (old, now, empty) = (
        log().checkpoint(3),
        log().checkpoint(7),
        log().checkpoint(0),
    );
    let not_shown = &[("held_not_shown", None)];
    let forked = &[("forked", None)];
    let between = log().checkpoint(4);
    let no_note = "no note".to_owned();
    vec![
        with_held("held-grown", grown(), old.clone(), &[]),
        with_held("held-same", bare(), now, &[]),
        with_held("held-empty", bare(), empty, &[]),
        with_held("held-not-shown", bare(), old, not_shown),
        with_held("held-not-shown-either", grown(), between, not_shown),
        with_held("held-forked", grown(), rewritten(3), forked),
        with_held("held-forked-at-this-size", bare(), rewritten(7), forked),
        with_held("held-malformed", bare(), no_note, &[("held", None)]),
    ]
}

fn earlier() -> Vec<Case> {
    let old = || log().checkpoint(3);
    let proof = grown().earlier.expect("it was just put there").proof;
    let mut malformed = proof.clone();
    malformed[0].push('=');
    let mut longer = log();
    longer.leaves.push(longer.leaves[0].clone());
    let resized = old().replace("orders\n3\n", "orders\n4\n");
    let with = |name, code, checkpoint: String, proof: &[String]| {
        let mut bundle = bare();
        bundle.earlier = Some(Earlier {
            checkpoint,
            proof: proof.to_vec(),
        });
        case(name, bundle.to_json(), &[(code, None)])
    };
    vec![
        with("earlier-forked", "earlier_not_grown", rewritten(3), &proof),
        with("earlier-cut", "earlier_not_grown", old(), &proof[1..]),
        with("earlier-malformed", "earlier_malformed", old(), &malformed),
        with("earlier-resized", "earlier", resized, &proof),
        with(
            "earlier-later",
            "earlier_not_grown",
            longer.checkpoint(8),
            &[],
        ),
    ]
}
