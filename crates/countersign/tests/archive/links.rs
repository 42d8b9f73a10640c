//! Links of records: late calls are normal use, claims have to be true, and unchecked ones are listed.

use std::sync::Arc;

use countersign::archive::Export;
use countersign::archive::verify::{Depth, NotChecked, Verification, VerifyReport};
use countersign::contract::evidence::{Freshness, Link, RecordedReply};
use countersign::contract::{Digest, EvidenceRecord, RecordKind, SnapshotId, canonical};
use countersign::ledger::{Durability, Entry, Log as _};
use countersign::scribe::Draft;
use countersign_evidence::bundle::Verdict;
use countersign_evidence::note::SigningKey;
use countersign_evidence::tree::leaf_hash;
use serde_json::json;

use crate::shop::{Shop, operator, signing_key, snapshot_of};
use crate::tampered::Tampered;

const UNTIL: &str = "2026-11-15T12:01:00Z";
const LATE: &str = "2026-11-15T12:01:00.000000001Z";

async fn verify(shop: &Shop, verification: &Verification) -> VerifyReport {
    let archive = &shop.archive;
    archive.verify_all(verification, |_, _| {}).await.unwrap()
}

/// A8, A22: an order, a refusal and a look after the window of their quote leave a log and a bundle that are valid.
#[tokio::test]
async fn late_calls_leave_a_log_that_verifies() {
    let shop = Shop::new();
    let quote = shop.send("price.quote", &json!({}), "").await;
    let quote = json!({"quote": snapshot_of(&quote).as_str()});
    let mut ids = Vec::new();
    for (key, is_late) in [("in-time", false), ("late", true)] {
        let firm = shop.send("order.firm", &quote, key).await;
        assert_eq!(firm["ok"], !is_late, "{firm:#}");
        // This one only looks, so it may come late.
        let draft = shop.send("order.draft", &quote, key).await;
        assert_eq!(draft["ok"], true, "{draft:#}");
        ids.extend([snapshot_of(&firm), snapshot_of(&draft)]);
        shop.advance(3_600);
    }
    shop.sign().await;
    let report = verify(&shop, &Verification::default()).await;
    assert!(report.is_valid(), "{:?}", report.findings);
    assert!(!report.not_checked.contains(&NotChecked::Freshness));

    let by = operator();
    let opened = Export::Opened {
        by: &by,
        reason: "a dispute",
    };
    let bundle = shop.archive.export(&ids, opened, None).await.unwrap();
    let report = bundle.verify(Some(&signing_key().verifying_key()), None);
    assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.findings);
    let roles: Vec<String> = bundle
        .records
        .iter()
        .map(|record| roles(&record.leaf))
        .collect();
    assert_eq!(
        roles,
        ["", "rests_on fresh", "looked_at", "looked_at", "looked_at"]
    );
}

fn roles(leaf: &str) -> String {
    let record = EvidenceRecord::from_leaf(leaf).unwrap();
    let role = |link: &Link| {
        let fresh = link.fresh.as_ref().map_or("", |_| " fresh");
        format!("{}{fresh}", link.role.unwrap().as_str())
    };
    let roles: Vec<String> = record.links.iter().map(role).collect();
    roles.join(", ")
}

/// A log whose first record has a window and whose second one links it like this.
async fn linking(v: u8, at: &str, link: impl FnOnce(SnapshotId, Digest) -> Link) -> Shop {
    let shop = Shop::new();
    let mut answer = record("ev_answer", "2026-11-15T12:00:00Z", v);
    answer.reply = Some(RecordedReply {
        code: None,
        commitment: None,
        ttl_seconds: Some(60),
        valid_until: Some(UNTIL.to_owned()),
    });
    let leaf = append(&shop, &answer).await;
    let mut linking = record("ev_linking", at, v);
    linking.links = vec![link(answer.id, leaf)];
    append(&shop, &linking).await;
    shop.sign().await;
    shop
}

fn record(id: &str, at: &str, v: u8) -> EvidenceRecord {
    let id = SnapshotId::new(id).unwrap();
    let mut record = EvidenceRecord::new(RecordKind::Config, id, at);
    record.v = v;
    record
}

async fn append(shop: &Shop, record: &EvidenceRecord) -> Digest {
    let leaf = canonical::to_vec(&serde_json::to_value(record).unwrap()).unwrap();
    let hash = Digest(leaf_hash(&leaf));
    let entry = Entry {
        sealed_under: None,
        id: record.id.clone(),
        user_id: String::new(),
        kind: record.kind,
        at: record.at.parse().unwrap(),
        request_id: None,
        tool: None,
        code: None,
        leaf,
        payload: None,
        keep_payload: None,
    };
    let draft = Draft::from(entry);
    shop.store
        .append(draft, Durability::Committed)
        .await
        .unwrap();
    hash
}

fn rests_on(at: &str, until: &str) -> impl FnOnce(SnapshotId, Digest) -> Link {
    move |id, leaf| Link {
        fresh: Some(Freshness {
            at: at.to_owned(),
            until: until.to_owned(),
        }),
        ..Link::rests_on(id, leaf)
    }
}

/// A8, A22: the rules about links are those of a bundle: the claims of a record have to be true, and nothing else is
/// judged.
#[tokio::test]
async fn claims_are_checked_and_freshness_is_not_judged() {
    let check = async |shop: Shop, fault: &str, is_open: bool| {
        let report = verify(&shop, &Verification::default()).await;
        let mut found = report.findings.iter();
        let found: Vec<_> = found.by_ref().map(|f| (f.fault.code(), f.index)).collect();
        let expected = match fault {
            "" => vec![],
            fault => vec![(fault, Some(1))],
        };
        assert_eq!(found, expected);
        let freshness = report.not_checked.contains(&NotChecked::Freshness);
        assert_eq!(freshness, is_open, "{fault}");
    };
    let version_1 = |id, leaf| Link {
        role: None,
        ..Link::looked_at(id, leaf)
    };
    check(linking(1, UNTIL, version_1).await, "", true).await;
    check(linking(1, LATE, version_1).await, "", true).await;
    check(linking(2, LATE, Link::looked_at).await, "", false).await;
    check(linking(2, LATE, Link::rests_on).await, "", true).await;
    // The claim counts, not the time at which the call arrived.
    check(linking(2, LATE, rests_on(UNTIL, UNTIL)).await, "", false).await;
    check(
        linking(2, UNTIL, rests_on(LATE, UNTIL)).await,
        "link_expired",
        false,
    )
    .await;
    check(
        linking(2, UNTIL, rests_on(UNTIL, LATE)).await,
        "link_window_other",
        false,
    )
    .await;
    check(
        linking(2, UNTIL, rests_on("now", UNTIL)).await,
        "time_malformed",
        false,
    )
    .await;
    let looked_at = |id: SnapshotId, leaf| Link {
        role: Link::looked_at(id.clone(), leaf).role,
        ..rests_on(UNTIL, UNTIL)(id, leaf)
    };
    check(
        linking(2, UNTIL, looked_at).await,
        "link_claim_unexpected",
        false,
    )
    .await;
    let other = |id, _| Link::looked_at(id, Digest([0; 32]));
    check(linking(2, UNTIL, other).await, "link_differs", false).await;
    let missing = |_, leaf| Link::looked_at(SnapshotId::new("ev_none").unwrap(), leaf);
    check(linking(2, UNTIL, missing).await, "link_missing", false).await;
    // A record of one version with the members of the other isn't a record.
    check(
        linking(1, UNTIL, Link::looked_at).await,
        "leaf_not_a_record",
        false,
    )
    .await;
    check(
        linking(2, UNTIL, version_1).await,
        "leaf_not_a_record",
        false,
    )
    .await;
}

/// A22: a verdict counts for the checked part; the rest is listed.
#[tokio::test]
async fn a_report_lists_what_it_did_not_check() {
    use NotChecked::{
        EarlierRun, FurtherSignatures, Owners, PayloadsGone, Records, Rewriting, Rollback,
        SealedPayloads, State,
    };
    let (shop, _) = Shop::busy().await;
    let note = shop.note().await;
    let held = Verification {
        held: Some(note.clone()),
        ..Verification::default()
    };
    let check = async |verification: &Verification, expected: &[NotChecked]| {
        let report = verify(&shop, verification).await;
        assert!(report.is_valid(), "{:?}", report.findings);
        assert_eq!(report.not_checked, expected);
        report
    };
    check(
        &Verification::default(),
        &[Rewriting, SealedPayloads, State],
    )
    .await;
    let whole = check(&held, &[SealedPayloads, State]).await;
    let beside = Verification {
        is_held_beside: true,
        ..held.clone()
    };
    check(&beside, &[Rollback, SealedPayloads, State]).await;
    let (text, _) = note.split_once("\n\n").unwrap();
    let copy = format!("{text}\n").parse().unwrap();
    let copied = Verification {
        copies: vec![("file:elsewhere".into(), copy)],
        ..beside.clone()
    };
    check(&copied, &[SealedPayloads, State]).await;
    let quick = Verification {
        depth: Depth::Tree,
        ..held.clone()
    };
    check(&quick, &[Records, State]).await;
    let resumed = Verification {
        from: Some(whole.progress),
        ..held.clone()
    };
    check(&resumed, &[EarlierRun, State]).await;

    let witness = SigningKey::from_seed("witness.example.com", &[8; 32]).unwrap();
    let (text, _) = note.split_once("\n\n").unwrap();
    let cosigned = witness.sign(&format!("{text}\n")).unwrap();
    let witnessed = Verification {
        held: Some(note.clone() + cosigned.split_once("\n\n").unwrap().1),
        ..Verification::default()
    };
    check(&witnessed, &[FurtherSignatures, SealedPayloads, State]).await;

    let gone = Tampered::new(shop.store.clone()).record(|stored| stored.payload = None);
    let archive = shop.archive_of(Arc::new(gone));
    let report = archive.verify_all(&held, |_, _| {}).await.unwrap();
    assert_eq!(report.not_checked, [PayloadsGone, State]);
    let erased = Tampered::new(shop.store.clone()).record(|stored| {
        stored.payload = None;
        stored.row.user_id.clear();
    });
    let archive = shop.archive_of(Arc::new(erased));
    let report = archive.verify_all(&held, |_, _| {}).await.unwrap();
    assert_eq!(report.not_checked, [PayloadsGone, Owners, State]);
}
