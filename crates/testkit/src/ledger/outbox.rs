//! The outbox: notices and their deliveries.

#![expect(
    clippy::indexing_slicing,
    reason = "a case that finds no row has failed"
)]

use std::time::Duration;

use countersign::ledger::{
    Delivery, DeliveryEnd, DeliveryId, Error, Finding, Look, Notice, NoticeKind, NoticeRow, Store,
};
use countersign_contract::ToolName;
use jiff::Timestamp;

use super::build::HOUR;
use super::{Checked, Fresh, race};

/// One finding has one notice, whichever id later looks propose.
pub(super) async fn a_finding_has_one_notice(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let first = look([question("n_1", "ap_1", &["ops"])]);
    assert_eq!(store.keep_notices(&first).await?, ["n_1"]);
    let again = look([question("n_2", "ap_1", &["ops"])]);
    assert_eq!(store.keep_notices(&again).await?, [""; 0]);
    // Another subject and another kind are other findings.
    let mut other_kind = question("n_4", "ap_1", &[]);
    other_kind.notice.kind = NoticeKind::CallInDoubt;
    other_kind.notice.tool = None;
    other_kind.notice.since = None;
    let others = look([question("n_3", "ap_2", &["ops"]), other_kind.clone()]);
    assert_eq!(store.keep_notices(&others).await?, ["n_3", "n_4"]);
    let rows = store.notices(10).await?;
    assert_eq!(ids(&rows), ["n_4", "n_3", "n_1"]);
    let kept: Vec<&Notice> = rows.iter().map(|row| &row.notice).collect();
    assert_eq!(*kept[0], other_kind.notice);
    assert_eq!(*kept[2], first.findings[0].notice);
    assert_eq!(rows[0].deliveries, []);
    let [delivery] = &rows[2].deliveries[..] else {
        unreachable!("{rows:?}")
    };
    assert_eq!((delivery.target.as_str(), delivery.attempts), ("ops", 0));
    assert_eq!((delivery.state(), &delivery.last_error), ("waiting", &None));
    assert_eq!(ids(&store.notices(2).await?), ["n_4", "n_3"]);
    Ok(())
}

pub(super) async fn a_finding_that_comes_back_has_a_new_notice(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store
        .keep_notices(&at_once([question("n_1", "ap_1", &[])]))
        .await?;
    store.keep_notices(&at_once([])).await?;
    let rows = store.notices(10).await?;
    assert!(rows[0].gone_at.is_some_and(|gone| gone >= rows[0].at));
    let back = at_once([question("n_2", "ap_1", &[])]);
    assert_eq!(store.keep_notices(&back).await?, ["n_2"]);
    let rows = store.notices(10).await?;
    assert_eq!(ids(&rows), ["n_2", "n_1"]);
    assert_eq!(rows[0].gone_at, None);
    Ok(())
}

/// A process that does not see a finding ends its notice only when no other has seen it for a time.
pub(super) async fn a_finding_that_another_process_sees_stays(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store
        .keep_notices(&look([question("n_1", "ap_1", &[])]))
        .await?;
    fresh.handle(1).keep_notices(&look([])).await?;
    assert_eq!(store.notices(10).await?[0].gone_at, None);
    if let Some(clock) = &fresh.clock {
        // Seen again after half the time, it stays for the whole time from then on.
        clock.advance(HOUR / 2);
        store
            .keep_notices(&look([question("n_2", "ap_1", &[])]))
            .await?;
        clock.advance(HOUR / 2);
        store.keep_notices(&look([])).await?;
        assert_eq!(store.notices(10).await?[0].gone_at, None);
        clock.advance(HOUR / 2);
        store.keep_notices(&look([])).await?;
        assert!(store.notices(10).await?[0].gone_at.is_some());
    }
    Ok(())
}

pub(super) async fn a_look_that_is_not_complete_ends_nothing(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store
        .keep_notices(&at_once([question("n_1", "ap_1", &[])]))
        .await?;
    let others = Look {
        complete: vec![NoticeKind::CallInDoubt],
        ..at_once([])
    };
    store.keep_notices(&others).await?;
    assert_eq!(store.notices(10).await?[0].gone_at, None);
    Ok(())
}

pub(super) async fn a_new_target_gets_what_is_open(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store
        .keep_notices(&look([question("n_1", "ap_1", &["b"])]))
        .await?;
    store
        .keep_notices(&look([question("n_2", "ap_1", &["a", "b"])]))
        .await?;
    let rows = store.notices(10).await?;
    let targets: Vec<&str> = rows[0]
        .deliveries
        .iter()
        .map(|row| row.target.as_str())
        .collect();
    assert_eq!(targets, ["a", "b"]);
    // Only what the sender has asked for.
    let taken = take(store, &["a"], HOUR).await?;
    assert_eq!(names(&taken), ["n_1 a 1"]);
    Ok(())
}

pub(super) async fn a_delivery_is_leased_until_its_time(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store
        .keep_notices(&look([
            question("n_1", "ap_1", &["ops"]),
            question("n_2", "ap_2", &["ops"]),
        ]))
        .await?;
    let one = store.take_deliveries(&targets(&["ops"]), HOUR, 1).await?;
    assert_eq!(one.len(), 1);
    let other = take(&*fresh.handle(1), &["ops"], HOUR).await?;
    assert_eq!(other.len(), 1);
    assert_ne!(one[0].id.notice_id, other[0].id.notice_id);
    assert_eq!(take(store, &["ops"], HOUR).await?, []);
    Ok(())
}

/// A sender that dies leaves its delivery to the next one, with the same message.
pub(super) async fn a_lost_sender_is_followed_by_the_same_message(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let found = look([question("n_1", "ap_1", &["ops"])]);
    store.keep_notices(&found).await?;
    let first = take(store, &["ops"], Duration::ZERO).await?;
    let second = take(store, &["ops"], HOUR).await?;
    assert_eq!(names(&first), ["n_1 ops 1"]);
    assert_eq!(names(&second), ["n_1 ops 2"]);
    assert_eq!(first[0].notice, second[0].notice);
    assert_eq!(first[0].notice, found.findings[0].notice);
    assert_eq!(first[0].at, second[0].at);
    Ok(())
}

pub(super) async fn a_delivery_that_was_made_stays_made(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store
        .keep_notices(&look([question("n_1", "ap_1", &["ops"])]))
        .await?;
    let first = take(store, &["ops"], Duration::ZERO).await?;
    let second = take(store, &["ops"], Duration::ZERO).await?;
    // The first sender is late, and was heard all the same.
    store
        .end_delivery(&first[0].id, &DeliveryEnd::Delivered)
        .await?;
    store.end_delivery(&second[0].id, &failed(HOUR)).await?;
    assert_eq!(take(store, &["ops"], HOUR).await?, []);
    let rows = store.notices(10).await?;
    let row = &rows[0].deliveries[0];
    assert_eq!((row.state(), &row.last_error), ("delivered", &None));
    assert_eq!(store.failed_deliveries().await?, []);
    Ok(())
}

pub(super) async fn a_failure_waits_and_is_given_up_in_the_end(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let found = Look {
        give_up_after: HOUR,
        ..look([question("n_1", "ap_1", &["ops"])])
    };
    store.keep_notices(&found).await?;
    let taken = take(store, &["ops"], HOUR).await?;
    store
        .end_delivery(&taken[0].id, &failed(Duration::ZERO))
        .await?;
    // Due again at once.
    let taken = take(store, &["ops"], HOUR).await?;
    assert_eq!(names(&taken), ["n_1 ops 2"]);
    let half = HOUR / 2;
    store.end_delivery(&taken[0].id, &failed(half)).await?;
    assert_eq!(take(store, &["ops"], HOUR).await?, []);
    let rows = store.notices(10).await?;
    let row = &rows[0].deliveries[0];
    assert_eq!((row.state(), row.attempts), ("waiting", 2));
    assert_eq!(row.last_error.as_deref(), Some("HTTP 500"));
    assert!(row.next_at > rows[0].at);

    // A wait beyond the end is the end.
    store
        .keep_notices(&Look {
            give_up_after: HOUR,
            ..look([
                question("n_1", "ap_1", &["ops"]),
                question("n_2", "ap_2", &["ops"]),
            ])
        })
        .await?;
    let taken = take(store, &["ops"], HOUR).await?;
    assert_eq!(names(&taken), ["n_2 ops 1"]);
    store.end_delivery(&taken[0].id, &failed(HOUR * 2)).await?;
    let rows = store.notices(10).await?;
    assert_eq!(rows[0].deliveries[0].state(), "failed");
    let by_target = store.failed_deliveries().await?;
    assert_eq!(by_target.len(), 1);
    assert_eq!(
        (by_target[0].target.as_str(), by_target[0].count),
        ("ops", 1)
    );
    assert_eq!(Some(by_target[0].since), rows[0].deliveries[0].failed_at);

    // A sender that was lost is not followed for ever either; but there is one attempt at least.
    let short = Look {
        give_up_after: Duration::ZERO,
        ..look([question("n_3", "ap_3", &["other"])])
    };
    store.keep_notices(&short).await?;
    let taken = take(store, &["other"], Duration::ZERO).await?;
    assert_eq!(names(&taken), ["n_3 other 1"]);
    assert_eq!(take(store, &["other"], Duration::ZERO).await?, []);
    let rows = store.notices(1).await?;
    assert_eq!(rows[0].deliveries[0].state(), "failed");
    Ok(())
}

pub(super) async fn what_was_given_up_is_sent_again_when_asked(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let found = Look {
        give_up_after: Duration::ZERO,
        ..look([question("n_1", "ap_1", &["a", "b"])])
    };
    store.keep_notices(&found).await?;
    for delivery in take(store, &["a", "b"], HOUR).await? {
        store.end_delivery(&delivery.id, &failed(HOUR)).await?;
    }
    assert_eq!(store.failed_deliveries().await?.len(), 2);
    assert_eq!(store.retry_deliveries("a", HOUR).await?, 1);
    assert_eq!(store.retry_deliveries("a", HOUR).await?, 0);
    let taken = take(store, &["a", "b"], HOUR).await?;
    assert_eq!(names(&taken), ["n_1 a 2"]);
    store
        .end_delivery(&taken[0].id, &DeliveryEnd::Delivered)
        .await?;
    let left = store.failed_deliveries().await?;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].target, "b");
    Ok(())
}

pub(super) async fn a_late_failure_changes_nothing(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store
        .keep_notices(&look([question("n_1", "ap_1", &["ops"])]))
        .await?;
    let first = take(store, &["ops"], Duration::ZERO).await?;
    take(store, &["ops"], HOUR).await?;
    store
        .end_delivery(&first[0].id, &failed(Duration::ZERO))
        .await?;
    assert_eq!(take(store, &["ops"], HOUR).await?, []);
    let unknown = DeliveryId {
        notice_id: "n_9".to_owned(),
        ..first[0].id.clone()
    };
    store.end_delivery(&unknown, &DeliveryEnd::Delivered).await
}

/// Notices that have ended are removed beyond a number; open ones and those with something to send stay.
pub(super) async fn the_newest_notices_stay(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store
        .keep_notices(&look([
            question("n_1", "ap_1", &["ops"]),
            question("n_2", "ap_2", &[]),
            question("n_3", "ap_3", &[]),
            question("n_4", "ap_4", &[]),
            question("n_5", "ap_5", &[]),
        ]))
        .await?;
    let few = Look {
        kept_max: 2,
        ..at_once([question("n_0", "ap_3", &[])])
    };
    store.keep_notices(&few).await?;
    let rows = store.notices(10).await?;
    assert_eq!(ids(&rows), ["n_5", "n_4", "n_3", "n_1"]);
    let taken = take(store, &["ops"], HOUR).await?;
    store
        .end_delivery(&taken[0].id, &DeliveryEnd::Delivered)
        .await?;
    store.keep_notices(&few).await?;
    assert_eq!(ids(&store.notices(10).await?), ["n_5", "n_4", "n_3"]);
    Ok(())
}

pub(super) async fn racing_keepers_keep_one_notice(fresh: &Fresh) -> Checked {
    for round in 0..4 {
        let new = race(8, |n| {
            let store = fresh.handle(n);
            let subjects = ["a", "b", "c"];
            let mut findings: Vec<Finding> = subjects
                .map(|subject| {
                    let id = format!("n_{round}_{n}_{subject}");
                    question(&id, &format!("ap_{round}_{subject}"), &["ops"])
                })
                .into();
            findings.rotate_left(n % 3);
            async move { store.keep_notices(&look(findings)).await }
        })
        .await?;
        assert_eq!(new.iter().flatten().count(), 3, "{new:?}");
    }
    assert_eq!(fresh.store.notices(100).await?.len(), 12);
    Ok(())
}

pub(super) async fn racing_senders_take_each_delivery_once(fresh: &Fresh) -> Checked {
    let findings: Vec<Finding> = (0..30)
        .map(|n| question(&format!("n_{n}"), &format!("ap_{n}"), &["ops"]))
        .collect();
    fresh.store.keep_notices(&look(findings)).await?;
    let taken = race(8, |n| {
        let store = fresh.handle(n);
        async move {
            let mut taken = Vec::new();
            for _ in 0..5 {
                let targets = targets(&["ops"]);
                taken.extend(store.take_deliveries(&targets, HOUR, 2).await?);
            }
            Ok(taken)
        }
    })
    .await?;
    let mut names: Vec<String> = taken.iter().flat_map(|taken| names(taken)).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!((names.len(), count), (30, 30));
    Ok(())
}

/// A look at everything, by a process that does not end at once what it does not see.
fn look(findings: impl IntoIterator<Item = Finding>) -> Look {
    Look {
        findings: findings.into_iter().collect(),
        complete: NoticeKind::ALL.to_vec(),
        gone_after: HOUR,
        give_up_after: HOUR * 72,
        kept_max: 1_000,
    }
}

/// A look that ends at once what it does not see.
fn at_once(findings: impl IntoIterator<Item = Finding>) -> Look {
    Look {
        gone_after: Duration::ZERO,
        ..look(findings)
    }
}

fn question(id: &str, subject: &str, targets: &[&str]) -> Finding {
    let since: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
    Finding {
        notice: Notice {
            id: id.to_owned(),
            kind: NoticeKind::Question,
            subject: subject.to_owned(),
            tool: Some(ToolName::new("orders.create").expect("a name of a tool")),
            since: Some(since),
            page: format!("/approvals/{subject}"),
        },
        targets: self::targets(targets),
    }
}

fn targets(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn failed(retry_after: Duration) -> DeliveryEnd {
    DeliveryEnd::Failed {
        retry_after,
        error: "HTTP 500".to_owned(),
    }
}

async fn take(store: &dyn Store, names: &[&str], lease: Duration) -> Result<Vec<Delivery>, Error> {
    store.take_deliveries(&targets(names), lease, 100).await
}

fn ids(rows: &[NoticeRow]) -> Vec<&str> {
    rows.iter().map(|row| row.notice.id.as_str()).collect()
}

fn names(taken: &[Delivery]) -> Vec<String> {
    let name = |delivery: &Delivery| {
        let DeliveryId {
            notice_id,
            target,
            attempt,
        } = &delivery.id;
        format!("{notice_id} {target} {attempt}")
    };
    taken.iter().map(name).collect()
}
