//! Rate limits: calls that are admitted, calls that have to wait, and no call admitted twice.

use std::time::Duration;

use countersign::ledger::{Pace, PaceAnswer, PaceKey, PaceRule, Store};

use super::build::HOUR;
use super::{Checked, Fresh, race};

/// Longer than any test, so that nothing comes back while it runs.
const DAY: Duration = Duration::from_hours(24);

pub(super) async fn a_burst_is_let_in_and_then_an_even_pace(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let four = [even("u_1", 4, DAY)];
    for _ in 0..4 {
        assert_eq!(store.keep_pace(&four).await?, PaceAnswer::Admitted);
    }
    assert_waits(store, &four, 0, DAY / 4).await?;
    // Somebody else has an allowance of their own.
    let other = [even("u_2", 4, DAY)];
    assert_eq!(store.keep_pace(&other).await?, PaceAnswer::Admitted);
    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    clock.advance(DAY / 8);
    assert_waits(store, &four, 0, DAY / 8).await?;
    clock.advance(DAY / 8);
    assert_eq!(store.keep_pace(&four).await?, PaceAnswer::Admitted);
    assert_waits(store, &four, 0, DAY / 4).await?;
    clock.advance(DAY * 2);
    for _ in 0..4 {
        assert_eq!(store.keep_pace(&four).await?, PaceAnswer::Admitted);
    }
    assert_waits(store, &four, 0, DAY / 4).await
}

/// Calls that were counted stay counted under another rule.
pub(super) async fn another_rule_keeps_the_count(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let two = [even("u_1", 2, DAY)];
    for _ in 0..2 {
        assert_eq!(store.keep_pace(&two).await?, PaceAnswer::Admitted);
    }
    assert_waits(store, &[even("u_1", 4, DAY)], 0, DAY / 4).await?;
    // A longer one has room left, and a shorter one waits for more than its own time.
    let longer = [even("u_1", 2, DAY * 4)];
    assert_eq!(store.keep_pace(&longer).await?, PaceAnswer::Admitted);
    assert_waits(store, &[even("u_1", 1, HOUR)], 0, DAY * 3).await
}

pub(super) async fn a_window_lets_so_many_in_and_starts_anew(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let three = [window("same", 3, DAY)];
    for _ in 0..3 {
        assert_eq!(store.keep_pace(&three).await?, PaceAnswer::Admitted);
    }
    assert_waits(store, &three, 0, DAY).await?;
    let four = [window("same", 4, DAY)];
    assert_eq!(store.keep_pace(&four).await?, PaceAnswer::Admitted);
    assert_waits(store, &four, 0, DAY).await?;
    // A window without a length is over at once.
    let none = [window("other", 1, Duration::ZERO)];
    for _ in 0..3 {
        assert_eq!(store.keep_pace(&none).await?, PaceAnswer::Admitted);
    }
    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    clock.advance(DAY / 2);
    assert_waits(store, &three, 0, DAY / 2).await?;
    clock.advance(DAY / 2);
    for _ in 0..3 {
        assert_eq!(store.keep_pace(&three).await?, PaceAnswer::Admitted);
    }
    assert_waits(store, &three, 0, DAY).await
}

pub(super) async fn all_paces_or_none(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let (user, tool) = (even("u_1", 3, DAY), even("tool", 1, DAY));
    let both = [user, tool];
    assert_eq!(store.keep_pace(&both).await?, PaceAnswer::Admitted);
    for _ in 0..5 {
        assert_waits(store, &both, 1, DAY).await?;
    }
    // None of those has used the user up; nor has one that was refused before any row was there.
    let with_new = [tool, even("new", 1, DAY)];
    assert_waits(store, &with_new, 0, DAY).await?;
    for pace in [user, user, with_new[1]] {
        assert_eq!(store.keep_pace(&[pace]).await?, PaceAnswer::Admitted);
    }
    assert_waits(store, &[user], 0, DAY / 3).await
}

pub(super) async fn the_pace_that_takes_longest_is_named(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let paces = [
        even("u_1", 1, HOUR),
        window("same", 1, DAY),
        even("tool", 2, DAY),
    ];
    assert_eq!(store.keep_pace(&paces).await?, PaceAnswer::Admitted);
    assert_waits(store, &paces, 1, DAY).await?;
    let [user, same, tool] = paces;
    assert_waits(store, &[same, tool, user], 0, DAY).await?;
    assert_waits(store, &[tool, user], 1, HOUR).await?;
    // The first of those that take equally long.
    let equal = ["a", "b", "c"].map(|name| window(name, 1, DAY));
    assert_eq!(store.keep_pace(&equal).await?, PaceAnswer::Admitted);
    let [a, b, c] = equal;
    for equal in [[a, b, c], [c, a, b], [b, c, a]] {
        assert_waits(store, &equal, 0, DAY).await?;
    }
    Ok(())
}

/// Both replicas at once, on rows that are not there yet and on rows that are.
pub(super) async fn racing_calls_are_let_in_as_often_as_they_may(fresh: &Fresh) -> Checked {
    for (round, calls) in [1, 5, 12].into_iter().enumerate() {
        for is_first in [true, false] {
            // The second time there is room for as many again.
            let calls_max = if is_first { calls } else { calls * 2 };
            let answers = race(40, |n| {
                let store = fresh.handle(n);
                let paces = [
                    window(&format!("user {round}"), calls_max, DAY),
                    even(&format!("tool {round}"), 1_000, DAY),
                ];
                async move { store.keep_pace(&paces).await }
            })
            .await?;
            let admitted = answers.iter().filter(|answer| is_admitted(answer));
            let admitted = u32::try_from(admitted.count()).unwrap_or(u32::MAX);
            assert_eq!(admitted, calls, "round {round}, first: {is_first}");
        }
    }
    Ok(())
}

/// Racing calls against a single count, the usual case.
pub(super) async fn racing_calls_of_one_pace_are_let_in_as_often_as_they_may(
    fresh: &Fresh,
) -> Checked {
    for (round, calls) in [1, 5, 12].into_iter().enumerate() {
        let pace = even(&round.to_string(), calls, DAY);
        let answers = race(40, |n| {
            let store = fresh.handle(n);
            async move { store.keep_pace(&[pace]).await }
        })
        .await?;
        let admitted = answers.iter().filter(|answer| is_admitted(answer));
        let admitted = u32::try_from(admitted.count()).unwrap_or(u32::MAX);
        assert_eq!(admitted, calls, "round {round}");
    }
    Ok(())
}

/// Calls that share some of their counts, in every order: there is no deadlock.
pub(super) async fn racing_calls_that_cross_are_all_counted(fresh: &Fresh) -> Checked {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    for round in 0..4 {
        let answers = race(24, |n| {
            let store = fresh.handle(n);
            let mut paces = NAMES.map(|name| window(&format!("{name} {round}"), 16, DAY));
            paces.rotate_left(n % 3);
            async move { store.keep_pace(&paces[..2]).await }
        })
        .await?;
        // Each name is in two thirds of the calls.
        let admitted = answers.iter().filter(|answer| is_admitted(answer));
        assert_eq!(admitted.count(), 24, "round {round}");
        for name in NAMES {
            let pace = window(&format!("{name} {round}"), 16, DAY);
            assert_waits(&*fresh.store, &[pace], 0, DAY).await?;
        }
    }
    Ok(())
}

fn even(name: &str, calls: u32, period: Duration) -> Pace {
    Pace {
        key: PaceKey::of(&[name.as_bytes()]),
        rule: PaceRule::Even {
            cost: period / calls,
            burst: period,
        },
    }
}

fn window(name: &str, calls_max: u32, within: Duration) -> Pace {
    Pace {
        key: PaceKey::of(&[name.as_bytes()]),
        rule: PaceRule::Window { calls_max, within },
    }
}

fn is_admitted(answer: &PaceAnswer) -> bool {
    *answer == PaceAnswer::Admitted
}

/// Checks that this pace refuses a call for this time, less the time that has passed if the clock runs.
async fn assert_waits(
    store: &dyn Store,
    paces: &[Pace],
    expected: usize,
    wait: Duration,
) -> Checked {
    let answer = store.keep_pace(paces).await?;
    let PaceAnswer::Limited { which, retry_after } = answer else {
        unreachable!("{answer:?}");
    };
    assert_eq!(which, expected);
    let is_near = retry_after <= wait && retry_after + Duration::from_mins(5) > wait;
    assert!(is_near, "{retry_after:?} for {wait:?}");
    Ok(())
}
