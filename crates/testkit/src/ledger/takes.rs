//! Scopes that are taken and settled in one commit, and commits that are made twice.

use countersign::ledger::{ClaimState, CommitAnswer, HeldState, Outcome};
use countersign_contract::tool::Recovery;

use super::build::{
    claimed, commit, document, failed, fingerprint, has_failed, has_succeeded, lost, parts,
    record_id, request, scope, seen, settle, stands, succeeded, take, take_with, writing,
};
use super::claims::named;
use super::{Checked, Fresh};

pub(super) async fn a_take_settles_in_one_piece(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let cart = document("cart", "c_1");
    let unit = writing(
        take(&scope("k"), 0, succeeded("done"), "ev_1"),
        &cart,
        0,
        Some("one"),
    );
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, held.state), (1, has_succeeded("done")));
    assert_eq!(held.fingerprint, fingerprint(1));
    assert_eq!(*held.parts, *parts(1));
    let written = store.document(&cart).await?;
    assert_eq!(written.version, 1);
    assert!(store.record(&record_id("ev_1")).await?.is_some());
    Ok(())
}

pub(super) async fn a_take_after_a_release_is_the_next_attempt(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let claim = claimed(store, &request(&scope("k"))).await?;
    let done = settle(&claim, Outcome::Released, "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let done = take(&scope("k"), 1, failed("no"), "ev_2");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, held.state), (2, has_failed("no")));
    Ok(())
}

pub(super) async fn a_take_by_an_older_look_is_held(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for attempt in 0..2 {
        let done = take(
            &scope("k"),
            attempt,
            Outcome::Released,
            &format!("ev_{attempt}"),
        );
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    }
    for (n, after) in [0, 1, 3].into_iter().enumerate() {
        let id = format!("ev_wrong{n}");
        let unit = take(&scope("k"), after, succeeded("too late"), &id);
        let held = stands(store.commit(unit).await?);
        assert_eq!((held.attempt, held.state), (2, HeldState::Released));
        assert_eq!(store.record(&record_id(&id)).await?, None);
    }
    Ok(())
}

/// A17: a claim that was released had no effect, so a corrected call may take the key, which then stands for it.
pub(super) async fn a_take_after_a_release_may_have_other_arguments(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let first = take(&scope("k"), 0, Outcome::Released, "ev_1");
    assert_eq!(store.commit(first).await?, CommitAnswer::Committed);
    let other = take_with(2, &scope("k"), 1, Outcome::Released, "ev_2");
    assert_eq!(store.commit(other).await?, CommitAnswer::Committed);
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, held.state), (2, HeldState::Released));
    assert_eq!(held.fingerprint, fingerprint(2));
    assert_eq!(*held.parts, *parts(2));
    let third = take_with(3, &scope("k"), 2, succeeded("third"), "ev_3");
    assert_eq!(store.commit(third).await?, CommitAnswer::Committed);
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, held.state), (3, has_succeeded("third")));
    assert_eq!(held.fingerprint, fingerprint(3));
    Ok(())
}

/// A17: a key stands for the arguments of the call that was settled.
pub(super) async fn a_take_of_what_is_settled_for_other_arguments_is_held(
    fresh: &Fresh,
) -> Checked {
    let store = &*fresh.store;
    let first = take(&scope("k"), 0, failed("no"), "ev_1");
    assert_eq!(store.commit(first).await?, CommitAnswer::Committed);
    let cart = document("cart", "c_1");
    let other = take_with(2, &scope("k"), 1, succeeded("other"), "ev_2");
    let other = writing(other, &cart, 0, Some("other"));
    let held = stands(store.commit(other).await?);
    assert_eq!((held.attempt, held.state), (1, has_failed("no")));
    assert_eq!(held.fingerprint, fingerprint(1));
    assert_eq!(*held.parts, *parts(1));
    assert_eq!(store.document(&cart).await?.version, 0);
    assert_eq!(store.record(&record_id("ev_2")).await?, None);
    Ok(())
}

/// A18: the second call gets the answer of the first one, and nothing of the second is done.
pub(super) async fn a_take_of_what_is_settled_gets_its_answer(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let cart = document("cart", "c_1");
    let first = take(&scope("k"), 0, succeeded("first"), "ev_1");
    let first = writing(first, &cart, 0, Some("first"));
    assert_eq!(store.commit(first).await?, CommitAnswer::Committed);
    for after in [0, 1] {
        let id = format!("ev_second{after}");
        let second = take(&scope("k"), after, succeeded("second"), &id);
        let second = writing(second, &cart, 1, Some("second"));
        let held = stands(fresh.handle(1).commit(second).await?);
        assert_eq!((held.attempt, held.state), (1, has_succeeded("first")));
        assert_eq!(store.record(&record_id(&id)).await?, None);
    }
    let written = store.document(&cart).await?;
    assert_eq!(written.version, 1);
    assert_eq!(written.body.as_deref(), Some(&b"first"[..]));
    Ok(())
}

pub(super) async fn a_take_of_what_runs_is_held(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    claimed(store, &request(&scope("runs"))).await?;
    claimed(store, &lost(&scope("lost"), Recovery::Retry)).await?;
    let doubtful = claimed(store, &request(&scope("doubt"))).await?;
    let done = settle(&doubtful, Outcome::InDoubt, "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    for (key, state) in [
        ("runs", "running"),
        ("lost", "abandoned"),
        ("doubt", "in_doubt"),
    ] {
        let unit = take(&scope(key), 1, succeeded("taken"), &format!("ev_{key}"));
        let held = stands(store.commit(unit).await?);
        assert_eq!((held.attempt, named(&held.state)), (1, state));
    }
    Ok(())
}

pub(super) async fn a_take_may_release(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let first = take(&scope("k"), 0, Outcome::Released, "ev_1");
    assert_eq!(store.commit(first).await?, CommitAnswer::Committed);
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, held.state), (1, HeldState::Released));
    assert_eq!(claimed(store, &request(&scope("k"))).await?.attempt, 2);
    Ok(())
}

/// A commit whose answer was lost is made again: it gets its outcome, and nothing is done twice.
pub(super) async fn the_same_record_commits_once(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let cart = document("cart", "c_1");
    let unit = || {
        let unit = take(&scope("k"), 0, succeeded("done"), "ev_1");
        writing(unit, &cart, 0, Some("one"))
    };
    for n in 0..3 {
        let answer = fresh.handle(n).commit(unit()).await?;
        assert_eq!(answer, CommitAnswer::Committed);
    }
    assert_eq!(store.document(&cart).await?.version, 1);
    assert_eq!(seen(store, &scope("k")).await?.attempt, 1);

    // The same without a key.
    let unit = || writing(commit("ev_2"), &cart, 1, Some("two"));
    for _ in 0..2 {
        assert_eq!(store.commit(unit()).await?, CommitAnswer::Committed);
    }
    assert_eq!(store.document(&cart).await?.version, 2);
    assert_eq!(super::all_records(store).await?.len(), 2);
    Ok(())
}

/// A settlement that is sent again is answered about itself, even if the key has gone on since.
pub(super) async fn the_same_settlement_commits_once(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let first = claimed(store, &request(&scope("k"))).await?;
    let release = || settle(&first, Outcome::Released, "ev_1");
    assert_eq!(store.commit(release()).await?, CommitAnswer::Committed);
    assert_eq!(store.commit(release()).await?, CommitAnswer::Committed);
    let second = claimed(store, &request(&scope("k"))).await?;
    assert_eq!(store.commit(release()).await?, CommitAnswer::Committed);
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, named(&held.state)), (2, "running"));
    let done = settle(&second, succeeded("done"), "ev_2");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    assert_eq!(super::all_records(store).await?.len(), 2);
    Ok(())
}

/// The record of a fenced owner is kept, and yet a repeat must not hear that its effect is durable.
pub(super) async fn a_fenced_commit_is_fenced_again(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let cart = document("cart", "c_1");
    let first = claimed(store, &lost(&scope("k"), Recovery::Retry)).await?;
    claimed(store, &request(&scope("k"))).await?;
    for n in 0..3 {
        let late = settle(&first, succeeded("late"), "ev_late");
        let late = writing(late, &cart, 0, Some("late"));
        let answer = fresh.handle(n).commit(late).await?;
        assert_eq!(answer, CommitAnswer::Fenced);
    }
    assert_eq!(store.document(&cart).await?.version, 0);
    assert_eq!(super::all_records(store).await?.len(), 1);
    Ok(())
}

/// A18: of 32 that take one scope, one commits and the others get its answer, byte for byte.
pub(super) async fn racing_takes_commit_once_and_share_the_answer(fresh: &Fresh) -> Checked {
    let answers = super::race(32, |n| {
        let store = fresh.handle(n);
        let reply = succeeded(&format!("answer {n}"));
        let unit = take(&scope("k"), 0, reply, &format!("ev_{n}"));
        async move { store.commit(unit).await }
    })
    .await?;
    let stored = seen(&*fresh.store, &scope("k")).await?;
    let mut committed = Vec::new();
    for (n, answer) in answers.into_iter().enumerate() {
        if answer == CommitAnswer::Committed {
            committed.push(format!("answer {n}"));
            continue;
        }
        let held = stands(answer);
        assert_eq!((held.attempt, held.state), (1, stored.state.clone()));
    }
    let one = committed.first().map(String::as_str).unwrap_or_default();
    assert_eq!(committed.len(), 1);
    assert_eq!(stored.state, has_succeeded(one));
    let rows = super::rows(&*fresh.store, ClaimState::Succeeded).await?;
    assert_eq!(rows.len(), 1);
    assert_eq!(super::all_records(&*fresh.store).await?.len(), 1);
    Ok(())
}

/// One commit that is sent many times at once is done once, and every sender gets the answer that it was done.
pub(super) async fn racing_repeats_of_one_commit_all_hear_it_was_done(fresh: &Fresh) -> Checked {
    let cart = document("cart", "c_1");
    let answers = super::race(16, |n| {
        let store = fresh.handle(n);
        let unit = take(&scope("k"), 0, succeeded("done"), "ev_1");
        let unit = writing(unit, &cart, 0, Some("one"));
        async move { store.commit(unit).await }
    })
    .await?;
    let done = |answer: &CommitAnswer| *answer == CommitAnswer::Committed;
    assert!(answers.iter().all(done), "{answers:?}");
    assert_eq!(fresh.store.document(&cart).await?.version, 1);
    assert_eq!(super::all_records(&*fresh.store).await?.len(), 1);
    Ok(())
}
