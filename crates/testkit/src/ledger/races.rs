//! Commits that meet: as if one had come after the other.

use std::sync::Arc;

use countersign::ledger::{Commit, CommitAnswer, DocumentKey, Error, Store};

use super::build::{
    commit, document, reading, record_id, scanning, scope, succeeded, take, writing,
};
use super::{Checked, Fresh};

/// Number of rounds of a race, because a single one could pass by luck.
const ROUNDS: usize = 12;

/// Write skew: each of two commits reads what the other writes; if both committed, neither could have come first.
pub(super) async fn write_skew_is_stopped(fresh: &Fresh) -> Checked {
    for round in 0..ROUNDS {
        let pair = ["a", "b"].map(|id| document("duty", &format!("{id}{round}")));
        let [a, b] = &pair;
        let setup = writing(commit(&format!("ev_setup{round}")), a, 0, Some("on"));
        let setup = writing(setup, b, 0, Some("on"));
        assert_eq!(fresh.store.commit(setup).await?, CommitAnswer::Committed);
        one_of_two(fresh, |n| {
            let unit = commit(&format!("ev_{round}-{n}"));
            match n {
                0 => writing(reading(unit, b, 1), a, 1, Some("off")),
                _ => writing(reading(unit, a, 1), b, 1, Some("off")),
            }
        })
        .await?;
    }
    Ok(())
}

/// Write skew with documents that do not exist: there is no row that could be locked.
pub(super) async fn write_skew_on_absent_documents_is_stopped(fresh: &Fresh) -> Checked {
    for round in 0..ROUNDS {
        let pair = ["a", "b"].map(|id| document("duty", &format!("{id}{round}")));
        let [a, b] = &pair;
        one_of_two(fresh, |n| {
            let unit = commit(&format!("ev_{round}-{n}"));
            match n {
                0 => writing(reading(unit, b, 0), a, 0, Some("x")),
                _ => writing(reading(unit, a, 0), b, 0, Some("x")),
            }
        })
        .await?;
    }
    Ok(())
}

/// Write skew with collections that were scanned: each of two inserts what the other did not see. In the first round they are empty and
/// have no shape yet.
pub(super) async fn racing_inserts_of_scanners_are_stopped(fresh: &Fresh) -> Checked {
    for round in 0..ROUNDS {
        let scan = fresh.store.scan("u_1", "duty", "", None, 100).await?;
        assert_eq!(scan.documents.len(), round);
        one_of_two(fresh, |n| {
            let unit = commit(&format!("ev_{round}-{n}"));
            let key = document("duty", &format!("{round}-{n}"));
            scanning(writing(unit, &key, 0, Some("x")), "duty", scan.shape)
        })
        .await?;
    }
    Ok(())
}

/// One commit scans a collection and writes a document that the other, which inserts into the collection, has read.
pub(super) async fn a_scan_and_an_insert_do_not_both_come_first(fresh: &Fresh) -> Checked {
    for round in 0..ROUNDS {
        let shape = fresh.store.scan("u_1", "duty", "", None, 1).await?.shape;
        let total = document("total", &round.to_string());
        one_of_two(fresh, |n| {
            let unit = commit(&format!("ev_{round}-{n}"));
            let entry = document("duty", &round.to_string());
            match n {
                0 => scanning(writing(unit, &total, 0, Some("x")), "duty", shape),
                _ => writing(reading(unit, &total, 0), &entry, 0, Some("x")),
            }
        })
        .await?;
        // Whichever lost, the next round starts with the collection as it is now.
    }
    Ok(())
}

/// Every increment counts exactly once if it is retried for as long as something has moved.
pub(super) async fn increments_are_all_counted(fresh: &Fresh) -> Checked {
    let (tasks, each) = (8, 6);
    super::race(tasks, |n| {
        let store = fresh.handle(n);
        async move {
            for step in 0..each {
                let record = |tries| format!("ev_{n}-{step}-{tries}");
                add(&store, &[(document("sum", "s"), 1)], record).await?;
            }
            Ok(())
        }
    })
    .await?;
    let sum = fresh.store.document(&document("sum", "s")).await?;
    assert_eq!(sum.body.as_deref(), Some(&b"48"[..]));
    assert_eq!(sum.version, (tasks * each) as u64);
    let records = super::all_records(&*fresh.store).await?;
    assert_eq!(
        records.len(),
        tasks * each,
        "only what committed has a record"
    );
    Ok(())
}

/// Transfers in both directions, each naming the account that it takes from first: all get through,
/// and nothing is made or lost.
pub(super) async fn transfers_in_both_directions_get_through(fresh: &Fresh) -> Checked {
    let accounts = ["a", "b", "c"].map(|id| document("account", id));
    super::race(6, |n| {
        let store = fresh.handle(n);
        let pair = |from: usize| {
            let at = |n: usize| accounts.get(n % 3).cloned().expect("there are three");
            match n % 2 {
                0 => [(at(from), -1), (at(from + 1), 1)],
                _ => [(at(from + 1), -1), (at(from), 1)],
            }
        };
        let pairs = [pair(n), pair(n + 1), pair(n + 2)];
        async move {
            for (step, pair) in pairs.iter().enumerate() {
                let record = |tries| format!("ev_{n}-{step}-{tries}");
                add(&store, pair, record).await?;
            }
            Ok(())
        }
    })
    .await?;
    let (mut sum, mut versions) = (0, 0);
    for account in &accounts {
        let stored = fresh.store.document(account).await?;
        sum += number(stored.body.as_deref());
        versions += stored.version;
    }
    assert_eq!((sum, versions), (0, 6 * 3 * 2));
    Ok(())
}

/// Different keys, one document: the second commit is refused because the document moved, and its key stays free.
pub(super) async fn a_key_is_not_spent_on_a_commit_that_was_stopped(fresh: &Fresh) -> Checked {
    let counter = document("sum", "s");
    let answers = super::race(8, |n| {
        let store = fresh.handle(n);
        let unit = take(
            &scope(&format!("k{n}")),
            0,
            succeeded("x"),
            &format!("ev_{n}"),
        );
        let unit = writing(unit, &counter, 0, Some("1"));
        async move { store.commit(unit).await }
    })
    .await?;
    let mut committed = 0;
    for (n, answer) in answers.iter().enumerate() {
        let is_committed = *answer == CommitAnswer::Committed;
        committed += usize::from(is_committed);
        let held = fresh.store.lookup(&scope(&format!("k{n}"))).await?;
        assert_eq!(held.is_some(), is_committed, "{n}: {answer:?}");
        let record = fresh.store.record(&record_id(&format!("ev_{n}"))).await?;
        assert_eq!(record.is_some(), is_committed, "{n}: {answer:?}");
    }
    assert_eq!(committed, 1, "{answers:?}");
    Ok(())
}

/// Checks that of two racing commits exactly one gets through, and the other is refused because something moved.
async fn one_of_two(fresh: &Fresh, unit: impl Fn(usize) -> Commit) -> Checked {
    let answers = super::race(2, |n| {
        let (store, unit) = (fresh.handle(n), unit(n));
        async move { store.commit(unit).await }
    })
    .await?;
    let is_moved = |answer: &&CommitAnswer| matches!(answer, CommitAnswer::Moved { .. });
    let is_committed = |answer: &&CommitAnswer| **answer == CommitAnswer::Committed;
    let counts = (
        answers.iter().filter(is_committed).count(),
        answers.iter().filter(is_moved).count(),
    );
    assert_eq!(counts, (1, 1), "{answers:?}");
    Ok(())
}

/// Reads numbers, adds to them and writes them back, again and again until nothing has moved.
async fn add(
    store: &Arc<dyn Store>,
    changes: &[(DocumentKey, i64)],
    record: impl Fn(usize) -> String,
) -> Result<(), Error> {
    for tries in 0..1_000 {
        let mut unit = commit(&record(tries));
        for (key, change) in changes {
            let read = store.document(key).await?;
            let next = number(read.body.as_deref()) + change;
            unit = writing(unit, key, read.version, Some(&next.to_string()));
        }
        match store.commit(unit).await? {
            CommitAnswer::Committed => return Ok(()),
            CommitAnswer::Moved { .. } => {}
            answer @ (CommitAnswer::Held(_)
            | CommitAnswer::Fenced
            | CommitAnswer::Erased
            | CommitAnswer::Lapsed) => {
                unreachable!("there is no key: {answer:?}")
            }
        }
    }
    unreachable!("somebody gets through each time, so it is our turn before that")
}

fn number(body: Option<&[u8]>) -> i64 {
    let text = body.map(|body| str::from_utf8(body).expect("it is text"));
    text.map_or(0, |text| text.parse().expect("it is a number"))
}
