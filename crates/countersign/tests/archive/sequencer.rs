//! The sequencer never signs two histories, and never signs for a log that lost something.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use countersign::archive::NotGrown;
use countersign::contract::RecordKind;
use countersign::ledger::LogQuery;
use countersign::sequencer::{Error, LastStop, Prompt, Sequencer, Tick};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::SigningKey;
use serde_json::{Value, json};

use crate::shop::{ORIGIN, Shop, signing_key};
use crate::tampered::Tampered;

#[tokio::test]
async fn what_was_committed_is_signed_once_and_every_reply_carries_it() {
    let shop = Shop::new();
    let first = shop.send("price.quote", &json!({}), "").await;
    assert_eq!(first["evidence"].get("checkpoint"), None);
    let mut sequencer = shop.sequencer(None).await.unwrap();
    let Tick::Grown { added, checkpoint } = sequencer.tick().await.unwrap() else {
        panic!("nothing was signed");
    };
    assert_eq!((added, checkpoint.size), (1, 1));
    assert_eq!(sequencer.tick().await.unwrap(), Tick::Idle);
    let note = shop.note().await;
    let opened = Checkpoint::open(&note, &signing_key().verifying_key());
    assert_eq!(opened.unwrap(), checkpoint);
    let second = shop.send("price.quote", &json!({}), "").await;
    assert_eq!(second["evidence"]["checkpoint"]["size"], 1);
}

/// The callback gets each checkpoint before it is published.
#[tokio::test]
async fn a_checkpoint_that_is_not_kept_is_not_published() {
    let shop = Shop::new();
    shop.send("price.quote", &json!({}), "").await;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let is_full = Arc::new(AtomicBool::new(true));
    let (notes, full) = (kept.clone(), is_full.clone());
    let mut sequencer = Sequencer::builder(shop.store.clone(), signing_key())
        .newest(shop.newest.clone())
        .on_checkpoint(move |note| {
            if full.load(Ordering::SeqCst) {
                return Err("the disk is full".into());
            }
            notes.lock().unwrap().push(note.to_owned());
            Ok(())
        })
        .start(LastStop::default())
        .await
        .unwrap();
    let refused = sequencer.tick().await;
    assert!(matches!(refused, Err(Error::NotKept(_))), "{refused:?}");
    assert_eq!(shop.newest.get(), None);
    is_full.store(false, Ordering::SeqCst);
    sequencer.tick().await.unwrap();
    let note = shop.note().await;
    assert_eq!(*kept.lock().unwrap(), [note]);
    assert_eq!(shop.newest.get().unwrap().size, 1);
}

/// A16: a store that was rolled back or rewritten gets no signature.
#[tokio::test]
async fn only_a_log_that_has_grown_is_signed() {
    let (shop, _) = Shop::busy().await;
    let held = shop.note().await;
    shop.sequencer(Some(&held)).await.unwrap();

    let backup = Shop::new();
    backup.send("price.quote", &json!({}), "").await;
    backup.sign().await;
    let refused = backup.sequencer(Some(&held)).await.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::NotGrown(NotGrown::RolledBack { held: 5, found: 1 })
        ),
        "{refused:?}"
    );
    assert_eq!(
        refused.to_string(),
        "the evidence log cannot be signed: the log was rolled back: it has 1 records, and a checkpoint of 5 was \
         signed before"
    );
    for more in 1..6 {
        backup.send("price.quote", &json!({"more": more}), "").await;
    }
    backup.sign().await;
    let forked = backup.sequencer(Some(&held)).await.unwrap_err();
    assert!(
        matches!(forked, Error::NotGrown(NotGrown::Forked { size: 5 })),
        "{forked:?}"
    );
    assert!(forked.is_final());
}

/// The same while it runs: the store is swapped underneath.
#[tokio::test]
async fn a_store_that_is_swapped_while_it_runs_is_not_signed() {
    let (shop, _) = Shop::busy().await;
    let before = shop.store.clone();
    let other = Shop::new();
    for more in 0..8 {
        other.send("price.quote", &json!({"more": more}), "").await;
    }
    other.sign().await;
    let is_swapped = Arc::new(AtomicBool::new(false));
    let (head, tiles) = (is_swapped.clone(), is_swapped.clone());
    let theirs = countersign::ledger::Log::head(&*other.store).await.unwrap();
    let wanted = countersign_evidence::tile::TileId { level: 0, index: 0 };
    let their_tile = countersign::ledger::Log::tiles(&*other.store, &[wanted]).await;
    let their_tile = their_tile.unwrap().remove(0);
    let store = Tampered::new(before)
        .head(move |found| {
            if head.load(Ordering::SeqCst) {
                *found = theirs;
            }
        })
        .tile(move |(_, found)| {
            if tiles.load(Ordering::SeqCst) {
                found.clone_from(&their_tile);
            }
        });
    let mut sequencer = Sequencer::builder(Arc::new(store), signing_key())
        .start(LastStop::default())
        .await
        .unwrap();
    sequencer.tick().await.unwrap();
    is_swapped.store(true, Ordering::SeqCst);
    let refused = sequencer.tick().await.unwrap_err();
    assert!(
        matches!(refused, Error::NotGrown(NotGrown::Forked { .. })),
        "{refused:?}"
    );
}

/// A checkpoint of another key, or of another log, protects nothing and is refused.
#[tokio::test]
async fn a_checkpoint_of_another_log_is_not_taken_for_ours() {
    let (shop, _) = Shop::busy().await;
    for (name, seed) in [(ORIGIN, [8; 32]), ("example.com/other", [7; 32])] {
        let key = SigningKey::from_seed(name, &seed).unwrap();
        let note = Checkpoint::new(name, 0, countersign_evidence::tree::empty_root());
        let note = note.sign(&key).unwrap();
        let refused = shop.sequencer(Some(&note)).await;
        assert!(matches!(refused, Err(Error::Held(_))), "{refused:?}");
    }
}

/// The record of a start names the place from which it goes on, and what may be missing.
#[tokio::test]
async fn a_start_leaves_its_records() {
    let (shop, _) = Shop::busy().await;
    let crashed = LastStop {
        held: None,
        is_unclean: true,
    };
    let builder = Sequencer::builder(shop.store.clone(), signing_key()).holder("gw-1");
    let sequencer = builder
        .clock(shop.clock.clone())
        .start(crashed)
        .await
        .unwrap();
    let root = countersign::contract::Digest(sequencer.known().unwrap().root);
    let act = async |kind| -> Value {
        let query = LogQuery {
            kind: Some(kind),
            limit: 1,
            ..LogQuery::default()
        };
        let row = shop.archive.list(&query).await.unwrap().remove(0);
        shop.archive.show(&row.id).await.unwrap().record.act
    };
    assert_eq!(
        act(RecordKind::Checkpoint).await,
        json!({"size": 5, "root": root.to_string()})
    );
    let unclean = act(RecordKind::Config).await;
    assert_eq!(unclean["event"], "unclean_start");
    assert_eq!(
        (&unclean["after"], &unclean["holder"]),
        (&json!(5), &json!("gw-1"))
    );
}

/// A sequencer that is stopped signs everything that was committed first.
#[tokio::test(start_paused = true)]
async fn a_stop_in_order_signs_the_rest() {
    let shop = Shop::new();
    let sequencer = shop.sequencer(None).await.unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(sequencer.run(async {
        ended.await.ok();
    }));
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    shop.send("price.quote", &json!({}), "").await;
    end.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(shop.newest.get().unwrap().size, 1);
}

/// U7: a log that cannot be signed is given a grace; after it no call is answered, also no read, until signing works again.
#[tokio::test(start_paused = true)]
async fn no_call_is_answered_while_nothing_can_be_signed() {
    let shop = Shop::new();
    let is_broken = Arc::new(AtomicBool::new(false));
    let keeps = is_broken.clone();
    let sequencer = Sequencer::builder(shop.store.clone(), signing_key())
        .clock(shop.clock.clone())
        .newest(shop.newest.clone())
        .on_checkpoint(move |_| {
            if keeps.load(Ordering::Relaxed) {
                Err("no room on the disk".into())
            } else {
                Ok(())
            }
        })
        .start(LastStop::default())
        .await
        .unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(sequencer.run(async {
        ended.await.ok();
    }));
    // Time for some rounds of the sequencer; the clock of the calls stands still.
    let rounds = || tokio::time::sleep(std::time::Duration::from_secs(5));
    let said = async |tool: &str, key: &str| {
        let reply = shop.send(tool, &json!({}), key).await;
        reply["error"]["code"].as_str().unwrap_or("OK").to_owned()
    };
    assert_eq!(said("price.quote", "").await, "OK");
    rounds().await;
    is_broken.store(true, Ordering::Relaxed);
    shop.advance(30);
    rounds().await;
    assert_eq!(said("price.quote", "").await, "OK");
    rounds().await;
    assert_eq!(said("price.quote", "").await, "OK", "the grace is not over");
    assert!(!shop.executor.is_unsigned());
    shop.advance(61);
    rounds().await;
    let refused = shop.send("order.draft", &json!({}), "k_1").await;
    insta::assert_json_snapshot!(refused["error"], @r#"
    {
      "code": "UPSTREAM_ERROR",
      "details": {
        "hint": "nothing was done; send the same call again later, when /readyz says ready",
        "retryable": true,
        "source": "gateway"
      },
      "message": "the evidence log cannot be signed at present, so no call is answered"
    }
    "#);
    assert_eq!(said("price.quote", "").await, "UPSTREAM_ERROR");
    assert!(shop.executor.is_unsigned());

    is_broken.store(false, Ordering::Relaxed);
    rounds().await;
    assert_eq!(said("price.quote", "").await, "OK");
    assert!(!shop.executor.is_unsigned());
    end.send(()).unwrap();
    running.await.unwrap().unwrap();
}

/// A caller that asks for a round does not wait for the next regular one, and finds everything committed signed.
#[tokio::test(start_paused = true)]
async fn a_round_that_is_asked_for_comes_at_once() {
    let shop = Shop::new();
    let prompt = Prompt::default();
    let sequencer = Sequencer::builder(shop.store.clone(), signing_key())
        .clock(shop.clock.clone())
        .newest(shop.newest.clone())
        .prompt(prompt.clone());
    let sequencer = sequencer.start(LastStop::default()).await.unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(sequencer.run(async {
        ended.await.ok();
    }));
    // By now it looks once a second only.
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    for size in 1..=3 {
        shop.send("price.quote", &json!({}), "").await;
        let asked = tokio::time::Instant::now();
        prompt.round().await;
        assert!(asked.elapsed() < std::time::Duration::from_millis(50));
        assert_eq!(shop.newest.get().unwrap().size, size);
    }
    end.send(()).unwrap();
    running.await.unwrap().unwrap();
}
