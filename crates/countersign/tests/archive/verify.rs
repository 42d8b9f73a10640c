//! The whole log: nothing is changed, cut, put in or moved without being found and named.

use std::sync::Arc;

use countersign::archive::Resolution;
use countersign::archive::verify::{Depth, Fault, Progress, Verification, VerifyReport, Whose};
use countersign::contract::{RecordKind, Retention};
use countersign::ids::IdSource as _;
use countersign::ledger::{
    ClaimQuery, ClaimState, Claims as _, DocumentRow, Documents as _, Durability, Entry, Forgotten,
    Head, Held, HeldState, Log as _, PotRow, Pots as _, Store, Timekeeping as _,
};
use countersign::scribe::{Act, Draft};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_testkit::ledger::build::{disposed_now, entry, told};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::shop::{Shop, operator, signing_key};
use crate::tampered::Tampered;

async fn verify(shop: &Shop, store: Arc<dyn Store>, verification: Verification) -> VerifyReport {
    let archive = shop.archive_of(store);
    archive.verify_all(&verification, |_, _| {}).await.unwrap()
}

/// The faults by name, each with the record it is about.
async fn faults(shop: &Shop, store: Tampered, held: Option<&str>) -> Vec<String> {
    let verification = Verification {
        held: held.map(str::to_owned),
        ..Verification::default()
    };
    let report = verify(shop, Arc::new(store), verification).await;
    let names = report.findings.iter().map(|finding| match finding.index {
        Some(index) => format!("{} {index}", finding.fault.code()),
        None => finding.fault.code().to_owned(),
    });
    names.collect()
}

/// A16: an untouched log verifies whole.
#[tokio::test]
async fn a_sound_log_verifies() {
    let (shop, _) = Shop::busy().await;
    let held = shop.note().await;
    shop.send("price.quote", &json!({}), "").await;
    shop.sign().await;
    let verification = Verification {
        held: Some(held),
        ..Verification::default()
    };
    let report = verify(&shop, shop.store.clone(), verification).await;
    let mut report = serde_json::to_value(report).unwrap();
    report["progress"]["edge"] = Value::Null;
    insta::assert_json_snapshot!(report, @r#"
    {
      "checked": 7,
      "findings": [],
      "further_findings": 0,
      "held": 5,
      "not_checked": [
        "sealed_payloads",
        "state"
      ],
      "origin": "example.com/log",
      "payloads": 5,
      "payloads_gone": 0,
      "progress": {
        "edge": null,
        "faults": 0,
        "size": 7
      },
      "signed": 7,
      "size": 7
    }
    "#);
}

/// A16: every byte of every leaf, as the leaf and as the row have it.
#[tokio::test]
async fn every_byte_of_a_leaf_counts() {
    let (shop, _) = Shop::busy().await;
    let leaves = shop.store.leaves(0, 10).await.unwrap();
    let longest = leaves.iter().map(|leaf| leaf.bytes.len()).max().unwrap();
    for at in 0..longest {
        let store = Tampered::new(shop.store.clone()).leaf(move |leaf| {
            if let Some(byte) = leaf.bytes.get_mut(at) {
                *byte ^= 1;
            }
        });
        let verification = Verification {
            // What a flipped record says is looked at too, but not for each of its bytes.
            depth: if at % 29 == 0 {
                Depth::Records
            } else {
                Depth::Tree
            },
            ..Verification::default()
        };
        let report = verify(&shop, Arc::new(store), verification).await;
        for leaf in leaves.iter().filter(|leaf| at < leaf.bytes.len()) {
            let is_named = report.findings.iter().any(|finding| {
                finding.index == Some(leaf.index) && finding.fault == Fault::HashDiffers
            });
            assert!(
                is_named,
                "byte {at} of {}: {:?}",
                leaf.index, report.findings
            );
        }
        let contradicts_signature = report.findings.iter().any(|finding| {
            matches!(
                finding.fault,
                Fault::RootDiffers {
                    whose: Whose::Signed,
                    ..
                }
            )
        });
        assert!(
            contradicts_signature && report.signed.is_none(),
            "{report:?}"
        );
    }
}

/// A16: every byte of every sealed payload.
#[tokio::test]
async fn every_byte_of_a_payload_counts() {
    let (shop, _) = Shop::busy().await;
    let mut sizes = Vec::new();
    for leaf in shop.store.leaves(0, 10).await.unwrap() {
        let record: Value = serde_json::from_slice(&leaf.bytes).unwrap();
        let id = record["id"].as_str().unwrap();
        let id = countersign::contract::SnapshotId::new(id).unwrap();
        let stored = shop.store.record(&id).await.unwrap().unwrap();
        // An intent has none.
        if let Some(payload) = stored.payload {
            sizes.push((leaf.index, payload.len()));
        }
    }
    let longest = sizes.iter().map(|(_, size)| *size).max().unwrap();
    for at in 0..longest {
        let store = Tampered::new(shop.store.clone()).record(move |stored| {
            if let Some(byte) = stored.payload.as_mut().and_then(|bytes| bytes.get_mut(at)) {
                *byte ^= 1;
            }
        });
        let expected = sizes.iter().filter(|(_, size)| at < *size);
        let expected: Vec<_> = expected
            .map(|(index, _)| format!("payload_differs {index}"))
            .collect();
        assert_eq!(faults(&shop, store, None).await, expected, "byte {at}");
    }
}

/// A16, A17: a claim that was deleted, so that its call could run again, is named by the record of the call.
#[tokio::test]
async fn a_claim_that_is_gone_is_named() {
    let (shop, _) = Shop::busy().await;
    let query = ClaimQuery {
        limit: 10,
        ..ClaimQuery::default()
    };
    let claims = shop.store.claims(&query).await.unwrap();
    assert!(!claims.is_empty());
    let sound = Tampered::new(shop.store.clone());
    assert_eq!(faults(&shop, sound, None).await, [""; 0]);
    // As if somebody had deleted the rows: nobody has recorded that they were forgotten.
    let which = Forgotten {
        claimed_before: Timestamp::MAX,
        user_id: None,
        tool: None,
        key: None,
        limit: 10,
    };
    shop.advance(2 * 24 * 60 * 60);
    disposed_now(&*shop.store, 10).await.unwrap();
    let gone = shop.store.forget_keys(&which, told()).await.unwrap();
    assert!(gone > 0);
    let found = faults(&shop, Tampered::new(shop.store.clone()), None).await;
    assert_eq!(found.len(), gone, "{found:?}");
    assert!(
        found
            .iter()
            .all(|fault| fault.starts_with("claim_missing ")),
        "{found:?}"
    );
}

/// A16, A17: the claim of a call whose effect is in doubt was deleted, or set free, so that the effect would happen again.
#[tokio::test]
async fn a_claim_in_doubt_that_is_gone_or_free_is_named() {
    let (shop, _) = Shop::busy().await;
    let in_doubt = |held: &Option<Held>| {
        let state = held.as_ref().map(|held| &held.state);
        matches!(state, Some(HeldState::InDoubt))
    };
    let gone = Tampered::new(shop.store.clone()).held(move |held| {
        if in_doubt(held) {
            *held = None;
        }
    });
    let free = Tampered::new(shop.store.clone()).held(move |held| {
        if in_doubt(held)
            && let Some(held) = held
        {
            held.state = HeldState::Released;
        }
    });
    // The record of the intention, and that of the call.
    let found = faults(&shop, gone, None).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|fault| fault.starts_with("claim_missing ")),
        "{found:?}"
    );
    let found = faults(&shop, free, None).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|fault| fault.starts_with("claim_differs ")),
        "{found:?}"
    );
    // An operator who says that it did not happen sets it free, and the log says so.
    let query = ClaimQuery {
        state: Some(ClaimState::InDoubt),
        limit: 10,
        ..ClaimQuery::default()
    };
    let claims = shop.store.claims(&query).await.unwrap();
    for claim in claims {
        let (way, by) = (Resolution::DidNotHappen, operator());
        let archive = &shop.archive;
        let resolved = archive.resolve_claim(&claim.scope, claim.attempt, way, &by, "asked");
        resolved.await.unwrap();
    }
    for _ in 0..2 {
        let sound = Tampered::new(shop.store.clone());
        assert_eq!(faults(&shop, sound, None).await, [""; 0]);
        shop.sign().await;
    }
}

/// A change of the documents in the store.
type LieAboutDocuments = fn(&mut Vec<DocumentRow>);

/// A16: a document that was put back, deleted or changed in the store is named by the record of the call that wrote it.
#[tokio::test]
async fn a_document_that_is_not_what_the_log_says_is_named() {
    let (shop, _) = Shop::busy().await;
    for key in ["one", "two"] {
        shop.send("notes.keep", &json!({"key": key}), key).await;
    }
    shop.sign().await;
    let written = shop.store.all_documents(None, 100).await.unwrap();
    let live = written.iter().filter(|row| row.body.is_some()).count();
    assert_eq!(live, 2, "{written:?}");
    let lies: [(&str, LieAboutDocuments); 6] = [
        ("", |_| {}),
        ("document_put_back", |rows| {
            for row in rows {
                row.version -= 1;
            }
        }),
        ("document_missing", Vec::clear),
        ("document_missing", |rows| {
            for row in rows {
                row.body = None;
            }
        }),
        ("document_changed", |rows| {
            for row in rows {
                row.body = Some(b"true"[..].into());
            }
        }),
        // An older body under a newer version does not open.
        ("document_changed", |rows| {
            for row in rows {
                row.version += 1;
            }
        }),
    ];
    for (fault, lie) in lies {
        let found = faults(
            &shop,
            Tampered::new(shop.store.clone()).documents(lie),
            None,
        )
        .await;
        let expected = if fault.is_empty() { 0 } else { live };
        assert_eq!(found.len(), expected, "{fault}: {found:?}");
        let is_named = |found: &String| found.starts_with(fault);
        assert!(found.iter().all(is_named), "{fault}: {found:?}");
    }
    // The documents of a user who was erased are not missed.
    shop.archive
        .erase("u_1", &operator(), "asked")
        .await
        .unwrap();
    shop.sign().await;
    let erased = Tampered::new(shop.store.clone());
    assert_eq!(faults(&shop, erased, None).await, [""; 0]);
}

/// A change of the pots in the store.
type LieAboutPots = fn(&mut Vec<PotRow>);

/// A16: money that was put back into a budget behind the back of the program is named by the newest record that has spent it.
#[tokio::test]
async fn a_budget_that_was_refilled_is_named() {
    let (shop, _) = Shop::busy().await;
    for (key, amount) in [("one", 300), ("two", 200)] {
        let reply = shop.send("pay.now", &json!({"amount": amount}), key).await;
        assert_eq!(reply["ok"], json!(true), "{reply:#}");
    }
    shop.sign().await;
    let pots = shop.store.pots(None, 10).await.unwrap();
    let spent: Vec<_> = pots.iter().map(|pot| pot.spent).collect();
    assert_eq!(spent, [500, 500], "{pots:?}");
    let lies: [(usize, LieAboutPots); 7] = [
        (0, |_| {}),
        // In another window the money of this one is there again.
        (2, |rows| {
            for row in rows {
                row.window_start -= i64::try_from(row.key.window_seconds.max(1)).unwrap();
            }
        }),
        // More may have been spent by a call that was lost.
        (0, |rows| rows.iter_mut().for_each(|row| row.spent += 1)),
        (2, |rows| rows.iter_mut().for_each(|row| row.spent -= 1)),
        (2, Vec::clear),
        (1, |rows| rows.retain(|row| row.key.window_seconds > 0)),
        (2, |rows| {
            for row in rows.iter_mut() {
                row.key.name = "other".to_owned();
            }
        }),
    ];
    for (n, (expected, lie)) in lies.into_iter().enumerate() {
        let tampered = Tampered::new(shop.store.clone()).pot_rows(lie);
        let found = faults(&shop, tampered, None).await;
        let is_named = |found: &String| found.starts_with("pot_refilled ");
        assert!(found.iter().all(is_named), "{n}: {found:?}");
        assert_eq!(found.len(), expected, "{n}: {found:?}");
    }
    // A pot of a day is removed in the end, and not missed; one without an end is.
    shop.advance(40 * 24 * 60 * 60);
    let found = faults(
        &shop,
        Tampered::new(shop.store.clone()).pot_rows(Vec::clear),
        None,
    );
    assert_eq!(found.await.len(), 1);
    // That of a user goes with the user; that of all users stays.
    shop.archive
        .erase("u_1", &operator(), "asked")
        .await
        .unwrap();
    shop.sign().await;
    let erased = Tampered::new(shop.store.clone());
    assert_eq!(faults(&shop, erased, None).await, [""; 0]);
    let emptied = Tampered::new(shop.store.clone()).pot_rows(Vec::clear);
    assert_eq!(faults(&shop, emptied, None).await.len(), 1);
}

/// A16: a hold that was deleted from the store, so that its user could be erased, is named by its record.
#[tokio::test]
async fn a_hold_that_is_gone_is_named() {
    let (shop, _) = Shop::busy().await;
    let by = operator();
    shop.archive.hold("u_1", None, &by, "court").await.unwrap();
    shop.sign().await;
    let sound = Tampered::new(shop.store.clone());
    assert_eq!(faults(&shop, sound, None).await, [""; 0]);
    let [hold] = &shop.store.holds(10).await.unwrap()[..] else {
        panic!("one hold");
    };
    // As if somebody had deleted the row: the record of the act is not one of a release.
    let other = Entry {
        payload: None,
        request_id: None,
        tool: None,
        ..entry("ev_other", "")
    };
    assert!(shop.store.release_hold(hold.clone(), other).await.unwrap());
    let found = faults(&shop, Tampered::new(shop.store.clone()), None).await;
    let [found] = &found[..] else {
        panic!("one fault: {found:?}");
    };
    assert!(found.starts_with("hold_missing "), "{found}");
    // One that was lifted is not missed.
    shop.archive.hold("u_1", None, &by, "court").await.unwrap();
    shop.archive
        .release_hold("u_1", None, &by, "over")
        .await
        .unwrap();
    shop.sign().await;
    let lifted = Tampered::new(shop.store.clone());
    assert_eq!(faults(&shop, lifted, None).await, [""; 0]);
    // As if somebody had put the row back.
    let other = Entry {
        payload: None,
        request_id: None,
        tool: None,
        ..entry("ev_another", "")
    };
    shop.store.hold(hold.clone(), other).await.unwrap();
    let found = faults(&shop, Tampered::new(shop.store.clone()), None).await;
    let [found] = &found[..] else {
        panic!("one fault: {found:?}");
    };
    assert!(found.starts_with("hold_put_back "), "{found}");
}

/// A16: a payload that was deleted inside its retention is named; one whose time is over is not.
#[tokio::test]
async fn a_payload_that_is_gone_too_early_is_named() {
    let (shop, _) = Shop::busy().await;
    let without = || {
        Tampered::new(shop.store.clone()).record(|stored| {
            if stored.index == Some(0) {
                stored.payload = None;
            }
        })
    };
    assert_eq!(faults(&shop, without(), None).await, ["payload_missing 0"]);
    shop.advance(800 * 24 * 60 * 60);
    assert_eq!(faults(&shop, without(), None).await, [""; 0]);
}

/// A16: the payloads of a user that were disposed of excuse no others after that user was erased.
#[tokio::test]
async fn disposals_of_an_erased_user_excuse_no_other_payload() {
    let (shop, _) = Shop::busy().await;
    shop.send("price.quote", &json!({}), "").await;
    shop.sign().await;
    let mut sequencer = shop.sequencer(None).await.unwrap();
    sequencer.tick().await.unwrap();
    shop.advance(800 * 24 * 60 * 60);
    let by = operator();
    shop.archive.trust_clock(&by, "it is right").await.unwrap();
    let disposed = sequencer.maintain().await.unwrap().disposal.disposed();
    assert!(disposed.payloads > 1, "{disposed:?}");
    shop.archive.erase("u_1", &by, "asked").await.unwrap();
    shop.send("price.quote", &json!({}), "").await;
    shop.sign().await;
    let sound = Tampered::new(shop.store.clone());
    assert_eq!(faults(&shop, sound, None).await, [""; 0]);
    let without = Tampered::new(shop.store.clone()).record(|stored| {
        if stored.row.tool.as_deref() == Some("price.quote") {
            stored.payload = None;
        }
    });
    let found = faults(&shop, without, None).await;
    let [found] = &found[..] else {
        panic!("one fault: {found:?}");
    };
    assert!(found.starts_with("payload_missing "), "{found}");
}

/// A16: every byte of the checkpoint that is a text at all afterwards.
#[tokio::test]
async fn every_byte_of_the_checkpoint_counts() {
    let (shop, _) = Shop::busy().await;
    let note = shop.note().await;
    for at in 0..note.len() {
        let mut bytes = note.clone().into_bytes();
        bytes[at] ^= 1;
        let Ok(altered) = String::from_utf8(bytes) else {
            continue;
        };
        let store =
            Tampered::new(shop.store.clone()).checkpoint(move |note| *note = Some(altered.clone()));
        assert_eq!(
            faults(&shop, store, None).await,
            ["checkpoint"],
            "byte {at}"
        );
    }
}

/// A16: every byte of the tree as it is kept, and its root.
#[tokio::test]
async fn every_byte_of_a_tile_counts() {
    let (shop, _) = Shop::busy().await;
    for at in 0..4 * 32 {
        let store = Tampered::new(shop.store.clone()).tile(move |(_, tile)| {
            if let Some(byte) = tile.as_mut().and_then(|tile| tile.get_mut(at)) {
                *byte ^= 1;
            }
        });
        let expected = [format!("hash_differs {}", at / 32)];
        assert_eq!(faults(&shop, store, None).await, expected, "byte {at}");
    }
    let cut =
        Tampered::new(shop.store.clone()).tile(|(_, tile)| tile.as_mut().unwrap().truncate(64));
    assert_eq!(faults(&shop, cut, None).await, ["tile_missing"]);
    let gone = Tampered::new(shop.store.clone()).tile(|(_, tile)| *tile = None);
    assert_eq!(faults(&shop, gone, None).await, ["tile_missing"]);
    let head = Tampered::new(shop.store.clone()).head(|head| head.root[31] ^= 1);
    assert_eq!(faults(&shop, head, None).await, ["root_differs"]);
}

/// A16: rows that were moved, doubled, taken out or put in.
#[tokio::test]
async fn leaves_that_were_moved_are_named() {
    let (shop, _) = Shop::busy().await;
    let check = async |lie: fn(&mut Vec<countersign::ledger::Leaf>), expected: &[&str]| {
        let store = Tampered::new(shop.store.clone()).leaves(lie);
        let verification = Verification {
            depth: Depth::Tree,
            ..Verification::default()
        };
        let report = verify(&shop, Arc::new(store), verification).await;
        let names: Vec<_> = report
            .findings
            .iter()
            .map(|finding| (finding.fault.code(), finding.index))
            .map(|(code, index)| index.map_or(code.to_owned(), |index| format!("{code} {index}")))
            .collect();
        assert_eq!(names, expected);
    };
    check(
        |leaves| {
            let first = std::mem::take(&mut leaves[1].bytes);
            leaves[1].bytes = std::mem::replace(&mut leaves[2].bytes, first);
        },
        &[
            "root_differs",
            "root_differs",
            "hash_differs 1",
            "hash_differs 2",
        ],
    )
    .await;
    check(
        |leaves| leaves.retain(|leaf| leaf.index != 1),
        &["out_of_order 1"],
    )
    .await;
    check(
        |leaves| leaves.retain(|leaf| leaf.index < 3),
        &["leaf_missing 3"],
    )
    .await;
}

/// A16: a log that was cut and looks whole is detected with a kept checkpoint; so is an old checkpoint that is shown as
/// the newest, and a log that was written anew.
#[tokio::test]
async fn cuts_and_forks_are_caught_against_a_kept_checkpoint() {
    let (shop, _) = Shop::busy().await;
    let early = shop.note().await;
    let then = shop.store.head().await.unwrap();
    shop.send("price.quote", &json!({}), "").await;
    shop.sign().await;
    let held = shop.note().await;
    let cut = |head: Head, note: String| {
        Tampered::new(shop.store.clone())
            .head(move |found| *found = head)
            .checkpoint(move |found| *found = Some(note.clone()))
    };
    assert_eq!(
        faults(&shop, cut(then, early.clone()), None).await,
        Vec::<String>::new()
    );
    let found = faults(&shop, cut(then, early.clone()), Some(&held)).await;
    assert_eq!(found, ["shorter", "replayed"]);
    let now = shop.store.head().await.unwrap();
    let found = faults(&shop, cut(now, early.clone()), Some(&held)).await;
    assert_eq!(found, ["replayed"]);
    let tail = cut(then, held.clone());
    assert_eq!(faults(&shop, tail, None).await, ["shorter"]);

    let fork = Shop::new();
    for more in 0..9 {
        fork.send("price.quote", &json!({"more": more}), "").await;
    }
    fork.sign().await;
    let found = faults(&fork, Tampered::new(fork.store.clone()), Some(&held)).await;
    assert_eq!(found, ["root_differs"]);
}

/// A16: rows and links have to agree with the record.
#[tokio::test]
async fn rows_and_links_that_were_changed_are_named() {
    let (shop, day) = Shop::busy().await;
    // Somebody else whose name a row could be given.
    shop.executor.vault().key("u_2").await.unwrap();
    let at_quote = |lie: fn(&mut countersign::ledger::StoredRecord)| {
        let quote = day.quote.clone();
        Tampered::new(shop.store.clone()).record(move |stored| {
            if stored.row.id == quote {
                lie(stored);
            }
        })
    };
    for (lie, expected) in [
        (
            (|stored| stored.row.kind = RecordKind::Denial)
                as fn(&mut countersign::ledger::StoredRecord),
            vec!["row_differs 0"],
        ),
        (|stored| stored.row.tool = None, vec!["row_differs 0"]),
        (
            |stored| stored.index = Some(3),
            vec!["index_differs 0", "link_later 1"],
        ),
        (
            |stored| stored.leaf.push(b' '),
            vec!["row_differs 0", "link_differs 1"],
        ),
        (
            |stored| stored.row.user_id = "u_2".to_owned(),
            vec!["row_differs 0"],
        ),
        (|stored| stored.row.user_id.clear(), vec!["row_differs 0"]),
        (
            |stored| stored.row.user_id = "u_without_key".to_owned(),
            vec!["key_missing 0"],
        ),
        (|stored| stored.payload = None, vec!["payload_missing 0"]),
    ] {
        assert_eq!(faults(&shop, at_quote(lie), None).await, expected);
    }
    // A row that cannot be read is named, and all the others are looked at.
    let store = Tampered::new(shop.store.clone())
        .unreadable(&day.quote)
        .record({
            let order = day.order.clone();
            move |stored| {
                if stored.row.id == order {
                    stored.row.kind = RecordKind::Denial;
                }
            }
        });
    let found = faults(&shop, store, None).await;
    assert_eq!(found[0], "row_unreadable 0");
    assert!(
        found[1..]
            .iter()
            .any(|found| found.starts_with("row_differs")),
        "{found:?}"
    );
    let store = at_quote(|stored| stored.row.user_id = "u_2".to_owned());
    let shown = shop.archive_of(Arc::new(store)).show(&day.quote).await;
    assert!(shown.unwrap_err().to_string().contains("another user"));
}

/// A log of several batches: an interrupted run goes on from its place, with the same findings.
#[tokio::test]
async fn a_verification_goes_on_where_it_stopped() {
    let shop = Shop::new();
    for number in 0..4_500 {
        if number == 300 {
            shop.sign().await;
        }
        let act = Act {
            kind: RecordKind::Config,
            at: "2026-11-15T12:00:00Z".parse().unwrap(),
            user_id: String::new(),
            actor: None,
            about: json!({ "number": number }),
            retention: Retention::Standard,
        };
        let entry = act.entry(shop.ids.snapshot_id(), None);
        let draft = Draft::from(entry);
        shop.store
            .append(draft, Durability::Committed)
            .await
            .unwrap();
    }
    let held = {
        let note = Checkpoint::open(&shop.note().await, &signing_key().verifying_key()).unwrap();
        assert_eq!(note.size, 300);
        shop.note().await
    };
    shop.sign().await;
    let mut seen: Vec<Progress> = Vec::new();
    let whole = Verification {
        held: Some(held),
        depth: Depth::Tree,
        ..Verification::default()
    };
    let report = shop.archive.verify_all(&whole, |progress, size| {
        assert_eq!(size, 4_501);
        seen.push(progress.clone());
    });
    let report = report.await.unwrap();
    assert!(report.is_valid(), "{:?}", report.findings);
    assert_eq!((report.held, report.signed), (Some(300), Some(4_501)));
    assert_eq!(seen.len(), 2);

    let text = serde_json::to_string(&seen[0]).unwrap();
    let from = Verification {
        from: Some(serde_json::from_str(&text).unwrap()),
        ..whole
    };
    let resumed = shop.archive.verify_all(&from, |_, _| {}).await.unwrap();
    assert!(resumed.is_valid(), "{:?}", resumed.findings);
    assert_eq!(resumed.progress, report.progress);
    assert_eq!(resumed.checked, 4_501 - seen[0].size);

    let mut other = from.clone();
    other.from.as_mut().unwrap().edge[0].0[0] ^= 1;
    let restarted = shop.archive.verify_all(&other, |_, _| {}).await.unwrap();
    assert_eq!(restarted.findings[0].fault.code(), "edge_differs");
    assert_eq!((restarted.findings.len(), restarted.checked), (1, 4_501));

    // What was changed behind the run does not fit what it goes on from.
    let behind = Tampered::new(shop.store.clone()).tile(|(id, tile)| {
        if id.level == 1 {
            tile.as_mut().unwrap()[5] ^= 1;
        }
    });
    let report = verify(&shop, Arc::new(behind), from).await;
    let names: Vec<_> = report.findings.iter().map(|f| f.fault.code()).collect();
    assert_eq!(names[0], "edge_differs");
}

/// T19: nothing in a data folder shows that the whole folder was put back; a copy of the checkpoint elsewhere does.
#[tokio::test]
async fn a_log_that_does_not_continue_a_copy_is_found() {
    let (shop, _) = Shop::busy().await;
    let note = shop.note().await;
    let (text, _) = note.split_once("\n\n").unwrap();
    let newest: Checkpoint = format!("{text}\n").parse().unwrap();
    shop.send("price.quote", &json!({}), "").await;
    shop.sign().await;
    let head = shop.store.head().await.unwrap();
    let copy = |size, root| Checkpoint::new(newest.origin.clone(), size, root);
    for (copy, reason) in [
        (newest.clone(), None),
        (copy(head.size, head.root), None),
        (copy(head.size + 1, head.root), Some("rolled back")),
        (copy(head.size, [1; 32]), Some("rewritten")),
        (copy(newest.size, [1; 32]), Some("rewritten")),
    ] {
        let archive = shop.archive_of(shop.store.clone());
        let continued = archive.continues(&copy).await;
        let verification = Verification {
            copies: vec![("file:elsewhere".into(), copy)],
            ..Verification::default()
        };
        let report = verify(&shop, shop.store.clone(), verification).await;
        let faults: Vec<_> = report.findings.iter().map(|it| it.fault.code()).collect();
        match reason {
            None => assert!(continued.is_ok() && faults.is_empty(), "{faults:?}"),
            Some(reason) => {
                assert!(continued.unwrap_err().to_string().contains(reason));
                assert_eq!(faults, ["copy"]);
                let told = report.findings[0].to_string();
                assert!(
                    told.contains("file:elsewhere") && told.contains(reason),
                    "{told}"
                );
            }
        }
    }
}
