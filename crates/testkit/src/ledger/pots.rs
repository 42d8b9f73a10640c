//! Pots: amounts that are reserved, spent and released.

use std::time::Duration;

use countersign::ledger::{
    ClaimAnswer, ClaimRequest, CommitAnswer, Draw, Lapse, Outcome, Overdrawn, PotKey, PotRow,
    ReservationId, Reserve, ReserveAnswer, SpendChange, SpendEnd, Store, TIME_STEP_MAX,
    window_start,
};
use countersign_contract::RecordKind;
use countersign_contract::tool::Recovery;

use super::build::{
    HOUR, TICK, claimed, commit, disposed_now, document, entry, lost, record_id, request, scope,
    scope_of, settle, succeeded, take, trust, writing,
};
use super::{Checked, Fresh};

pub(super) async fn what_is_reserved_is_spent_by_the_commit(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    assert_reserved(store, &reserve("r1", 60)).await?;
    check(store, "", &[(60, 0)]).await?;
    let over = store.reserve(&reserve("r2", 41)).await?;
    assert_eq!(over, ReserveAnswer::Over(over_by(0, 40)));
    check(store, "", &[(60, 0)]).await?;
    assert_reserved(store, &reserve("r3", 40)).await?;
    spend(store, "r1", SpendEnd::Spent(Vec::new()), "ev_1").await?;
    check(store, "", &[(40, 60)]).await?;
    spend(store, "r3", SpendEnd::SpentHere(Vec::new()), "ev_2").await?;
    check(store, "", &[(0, 100)]).await
}

pub(super) async fn what_is_released_can_be_spent_again(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    assert_reserved(store, &reserve("r1", 100)).await?;
    store.release(&id("r1")).await?;
    store.release(&id("r1")).await?;
    check(store, "", &[(0, 0)]).await?;
    assert_reserved(store, &reserve("r2", 100)).await?;
    spend(store, "r2", SpendEnd::Released, "ev_1").await?;
    store.release(&id("r2")).await?;
    check(store, "", &[(0, 0)]).await
}

pub(super) async fn all_pots_or_none(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let both = |name, amount| Reserve {
        draws: vec![draw("", "all", amount, 100), draw("u_1", "own", amount, 50)],
        ..reserve(name, 0)
    };
    assert_reserved(store, &both("r1", 30)).await?;
    let over = store.reserve(&both("r2", 30)).await?;
    assert_eq!(over, ReserveAnswer::Over(over_by(1, 20)));
    check(store, "", &[(30, 0)]).await?;
    check(store, "u_1", &[(30, 0)]).await?;
    spend(store, "r1", SpendEnd::Spent(vec![None, Some(10)]), "ev_1").await?;
    check(store, "", &[(0, 30)]).await?;
    check(store, "u_1", &[(0, 10)]).await
}

pub(super) async fn the_pot_that_takes_longest_is_named(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let mut windowed = draw("", "daily", 10, 5);
    windowed.pot.window_seconds = 86_400;
    windowed.limit = 10;
    let mut used = windowed.clone();
    used.amount = 1;
    let first = Reserve {
        draws: vec![used],
        ..reserve("r1", 0)
    };
    assert_reserved(store, &first).await?;
    let answer = store.check(std::slice::from_ref(&windowed)).await?;
    let ReserveAnswer::Over(over) = answer else {
        unreachable!("{answer:?}");
    };
    let wait = over.next_window.expect("a day ends");
    assert!(
        wait <= Duration::from_hours(24) && !wait.is_zero(),
        "{wait:?}"
    );
    assert_eq!((over.draw, over.left), (0, 9));
    // One that never fills again is worse than any wait.
    let draws = [windowed, draw("", "total", 10, 5)];
    let answer = store.check(&draws).await?;
    assert_eq!(answer, ReserveAnswer::Over(over_by(1, 5)));
    Ok(())
}

pub(super) async fn the_real_amount_counts(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    assert_reserved(store, &reserve("r1", 50)).await?;
    spend(store, "r1", SpendEnd::Spent(vec![Some(20)]), "ev_1").await?;
    check(store, "", &[(0, 20)]).await?;
    // More than was set aside, and more than there was: it is spent all the same.
    assert_reserved(store, &reserve("r2", 50)).await?;
    spend(store, "r2", SpendEnd::Spent(vec![Some(90)]), "ev_2").await?;
    check(store, "", &[(0, 110)]).await?;
    let over = store.reserve(&reserve("r3", 1)).await?;
    assert_eq!(over, ReserveAnswer::Over(over_by(0, -10)));
    Ok(())
}

pub(super) async fn a_refund_is_credited_once_and_fills_no_pot_beyond_its_limit(
    fresh: &Fresh,
) -> Checked {
    let store = &*fresh.store;
    assert_reserved(store, &reserve("r1", 50)).await?;
    spend(store, "r1", SpendEnd::Spent(Vec::new()), "ev_1").await?;
    assert_reserved(store, &reserve("r2", -30)).await?;
    check(store, "", &[(0, 50)]).await?;
    spend(store, "r2", SpendEnd::SpentHere(Vec::new()), "ev_2").await?;
    check(store, "", &[(0, 20)]).await?;
    spend(store, "r2", SpendEnd::Spent(Vec::new()), "ev_3").await?;
    check(store, "", &[(0, 20)]).await?;
    assert_reserved(store, &reserve("r4", -30)).await?;
    spend(store, "r4", SpendEnd::Spent(Vec::new()), "ev_4").await?;
    check(store, "", &[(0, 0)]).await
}

pub(super) async fn a_check_changes_nothing(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let enough = store.check(&[draw("", "all", 100, 100)]).await?;
    assert_eq!(enough, ReserveAnswer::Reserved);
    let over = store.check(&[draw("", "all", 101, 100)]).await?;
    assert_eq!(over, ReserveAnswer::Over(over_by(0, 100)));
    let pots = store.pots(None, 10).await?;
    assert!(pots.iter().all(|pot| (pot.reserved, pot.spent) == (0, 0)));
    Ok(())
}

pub(super) async fn asking_again_for_the_same_reserves_once(fresh: &Fresh) -> Checked {
    for n in 0..3 {
        assert_reserved(&*fresh.handle(n), &reserve("r1", 60)).await?;
    }
    check(&*fresh.store, "", &[(60, 0)]).await
}

pub(super) async fn currency_and_window_make_another_pot(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    assert_reserved(store, &reserve("r1", 100)).await?;
    let mut other = draw("", "all", 100, 100);
    other.pot.currency = String::from("USD");
    let mut daily = draw("", "all", 100, 100);
    daily.pot.window_seconds = 86_400;
    let mut agents = draw("", "all", 100, 100);
    agents.pot.holder = String::from("agent:a_1");
    let request = Reserve {
        draws: vec![other, daily, agents],
        ..reserve("r2", 0)
    };
    assert_reserved(store, &request).await?;
    // Another limit is the same pot.
    let request = Reserve {
        draws: vec![draw("", "all", 50, 150)],
        ..reserve("r3", 0)
    };
    assert_reserved(store, &request).await?;
    let over = store.reserve(&reserve("r4", 1)).await?;
    assert_eq!(over, ReserveAnswer::Over(over_by(0, -50)));
    Ok(())
}

pub(super) async fn a_claim_reserves_with_it(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let request = spending(request(&scope("k")), "r1", 60);
    let claim = claimed(store, &request).await?;
    check(store, "", &[(60, 0)]).await?;
    assert_eq!(store.reserved(&claim).await?, Some(id("r1")));
    // Whoever finds it taken sets nothing aside.
    let second = store.claim(&spending(request, "r2", 40)).await?;
    assert!(matches!(second, ClaimAnswer::Held(_)), "{second:?}");
    check(store, "", &[(60, 0)]).await?;
    let mut unit = settle(&claim, succeeded("done"), "ev_1");
    unit.spend = Some(change("r1", SpendEnd::Spent(Vec::new())));
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    check(store, "", &[(0, 60)]).await?;
    assert_eq!(store.reserved(&claim).await?, None);
    Ok(())
}

pub(super) async fn a_claim_without_money_is_not_taken(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    assert_reserved(store, &reserve("r0", 70)).await?;
    let request = spending(request(&scope("k")), "r1", 60);
    let answer = store.claim(&request).await?;
    assert_eq!(answer, ClaimAnswer::Over(over_by(0, 30)));
    assert_eq!(store.lookup(&scope("k")).await?, None);
    store.release(&id("r0")).await?;
    // No attempt was used up.
    assert_eq!(claimed(store, &request).await?.attempt, 1);
    check(store, "", &[(60, 0)]).await
}

pub(super) async fn a_takeover_takes_over_the_money(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let first = spending(lost(&scope("k"), Recovery::Retry), "r1", 60);
    claimed(store, &first).await?;
    // There would not be enough for both.
    let claim = claimed(store, &spending(first, "r2", 70)).await?;
    assert_eq!(claim.attempt, 2);
    check(store, "", &[(70, 0)]).await?;
    assert_eq!(store.reserved(&claim).await?, Some(id("r2")));
    // One that there is not enough for leaves everything as it was.
    let third = spending(lost(&scope("k"), Recovery::Retry), "r3", 101);
    let mut over = store.claim(&third).await?;
    if let ClaimAnswer::Over(over) = &mut over {
        assert_eq!(over.left, 100);
    }
    assert!(matches!(over, ClaimAnswer::Over(_)), "{over:?}");
    check(store, "", &[(70, 0)]).await?;
    assert_eq!(store.reserved(&claim).await?, Some(id("r2")));
    Ok(())
}

pub(super) async fn doubt_keeps_the_money_until_it_is_resolved(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (n, (end, left)) in [
        (SpendEnd::Spent(Vec::new()), (0, 30)),
        (SpendEnd::Released, (0, 30)),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("r{n}");
        let scope = scope(&name);
        let claim = claimed(store, &spending(request(&scope), &name, 30)).await?;
        let doubt = settle(&claim, Outcome::InDoubt, &format!("ev_doubt{n}"));
        assert_eq!(store.commit(doubt).await?, CommitAnswer::Committed);
        let spent = if n == 0 { 0 } else { 30 };
        assert!(store.sweep(10).await?.is_empty());
        check(store, "", &[(30, spent)]).await?;
        let outcome = match end {
            SpendEnd::Released => Outcome::Released,
            SpendEnd::Spent(_) | SpendEnd::SpentHere(_) => succeeded("found"),
        };
        let mut resolved = settle(&claim, outcome, &format!("ev_resolved{n}"));
        resolved.spend = Some(change(&name, end));
        assert_eq!(store.commit(resolved).await?, CommitAnswer::Committed);
        check(store, "", &[left]).await?;
    }
    Ok(())
}

pub(super) async fn a_fenced_owner_spends_nothing(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let first = spending(lost(&scope("k"), Recovery::Retry), "r1", 60);
    let late = claimed(store, &first).await?;
    let second = claimed(store, &spending(first, "r2", 60)).await?;
    for (claim, name, answer, pots) in [
        (&late, "r1", CommitAnswer::Fenced, (60, 0)),
        (&second, "r2", CommitAnswer::Committed, (0, 60)),
    ] {
        let mut unit = settle(claim, succeeded("done"), &format!("ev_{name}"));
        unit.spend = Some(change(name, SpendEnd::Spent(Vec::new())));
        assert_eq!(store.commit(unit).await?, answer);
        check(store, "", &[pots]).await?;
    }
    Ok(())
}

pub(super) async fn a_lost_owner_leaves_what_it_said(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (name, lapse) in [("r1", Lapse::Release), ("r2", Lapse::Spend)] {
        let request = Reserve {
            lease: Duration::ZERO,
            lapse,
            ..reserve(name, 30)
        };
        assert_reserved(store, &request).await?;
    }
    assert_reserved(store, &reserve("r3", 5)).await?;
    check(store, "", &[(65, 0)]).await?;
    assert_eq!(store.sweep(1).await?.lapsed, 1);
    assert_eq!(store.sweep(10).await?.lapsed, 1);
    assert!(store.sweep(10).await?.is_empty());
    check(store, "", &[(5, 30)]).await
}

pub(super) async fn a_claim_that_runs_keeps_its_money(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let mut request = spending(lost(&scope("k"), Recovery::Retry), "r1", 30);
    if let Some(spend) = &mut request.spend {
        spend.lease = Duration::ZERO;
    }
    let claim = claimed(store, &request).await?;
    // Silent, and may be taken over: whether it has had its effect nobody knows.
    assert_eq!(store.sweep(10).await?.lapsed, 0);
    check(store, "", &[(30, 0)]).await?;
    // Somebody who knew nothing of its money has ended it.
    let unit = settle(&claim, Outcome::Released, "ev_1");
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    assert_eq!(store.sweep(10).await?.lapsed, 1);
    check(store, "", &[(0, 0)]).await
}

/// The effect is in the commit: there must be none that is not paid for.
pub(super) async fn a_commit_without_its_reservation_does_nothing(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let cart = document("cart", "c");
    let unit = |record| {
        let mut unit = writing(
            take(&scope("k"), 0, succeeded("x"), record),
            &cart,
            0,
            Some("1"),
        );
        unit.spend = Some(change("r1", SpendEnd::SpentHere(Vec::new())));
        unit
    };
    assert_eq!(store.commit(unit("ev_1")).await?, CommitAnswer::Lapsed);
    assert_eq!(store.lookup(&scope("k")).await?, None);
    assert_eq!(store.document(&cart).await?.version, 0);
    assert_eq!(store.record(&record_id("ev_1")).await?, None);
    assert_reserved(store, &reserve("r1", 10)).await?;
    assert_eq!(store.commit(unit("ev_2")).await?, CommitAnswer::Committed);
    check(store, "", &[(0, 10)]).await
}

pub(super) async fn a_repeated_commit_spends_once(fresh: &Fresh) -> Checked {
    assert_reserved(&*fresh.store, &reserve("r1", 10)).await?;
    for n in 0..3 {
        let mut unit = take(&scope("k"), 0, succeeded("x"), "ev_1");
        unit.spend = Some(change("r1", SpendEnd::SpentHere(Vec::new())));
        assert_eq!(fresh.handle(n).commit(unit).await?, CommitAnswer::Committed);
    }
    check(&*fresh.store, "", &[(0, 10)]).await
}

pub(super) async fn pots_of_an_erased_user_go_and_open_calls_count(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let both = Reserve {
        draws: vec![draw("", "all", 30, 100), draw("u_1", "own", 30, 100)],
        ..reserve("r1", 0)
    };
    assert_reserved(store, &both).await?;
    let other = Reserve {
        id: ReservationId {
            user_id: "u_2".to_owned(),
            id: record_id("ev_r2"),
        },
        draws: vec![draw("", "all", 5, 100), draw("u_2", "own", 5, 100)],
        ..reserve("r2", 0)
    };
    assert_reserved(store, &other).await?;
    let mut erasure = entry("ev_erased", "");
    erasure.kind = RecordKind::Erasure;
    store.erase("u_1", &[], erasure).await?;
    check(store, "", &[(5, 30)]).await?;
    check(store, "u_1", &[]).await?;
    check(store, "u_2", &[(5, 0)]).await?;
    // Its owner comes late.
    spend(store, "r1", SpendEnd::Spent(Vec::new()), "ev_1").await?;
    check(store, "", &[(5, 30)]).await?;
    check(store, "u_1", &[]).await
}

/// Needs a moving clock: it does nothing for a fixture that lends none.
pub(super) async fn a_new_window_is_a_new_pot(fresh: &Fresh) -> Checked {
    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    let store = &*fresh.store;
    let hourly = |name| {
        let mut draw = draw("", "all", 100, 100);
        draw.pot.window_seconds = 3_600;
        Reserve {
            draws: vec![draw],
            lease: 10 * HOUR,
            ..reserve(name, 0)
        }
    };
    assert_reserved(store, &hourly("r1")).await?;
    clock.advance(HOUR);
    assert_reserved(store, &hourly("r2")).await?;
    // What was set aside in a window is spent in that window.
    spend(store, "r1", SpendEnd::Spent(Vec::new()), "ev_1").await?;
    let pots = store.pots(None, 10).await?;
    let shown = pots.iter().map(|pot| (pot.reserved, pot.spent));
    assert_eq!(shown.collect::<Vec<_>>(), [(0, 100), (100, 0)]);
    let starts: Vec<i64> = pots.iter().map(|pot| pot.window_start).collect();
    let first = starts.first().copied().unwrap_or_default();
    assert_eq!(starts, [window_start(first, 3_600), first + 3_600]);
    spend(store, "r2", SpendEnd::Spent(Vec::new()), "ev_2").await?;
    clock.advance(31 * 24 * HOUR);
    assert_eq!(disposed_now(store, 10).await?.pots, 2);
    check(store, "", &[]).await
}

/// Many callers, two handles, one pot: exactly as many get through as there is money for.
/// A17: what was spent stays spent while the clock is not believed, however many windows it has jumped over.
pub(super) async fn a_clock_that_jumps_opens_no_window(fresh: &Fresh) -> Checked {
    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    let store = &*fresh.store;
    let daily = |name, amount| {
        let mut request = reserve(name, amount);
        for draw in &mut request.draws {
            draw.pot.window_seconds = 86_400;
        }
        request
    };
    trust(store).await?;
    assert_reserved(store, &daily("r1", 100)).await?;
    clock.advance(TIME_STEP_MAX + TICK);
    let more = daily("r2", 1);
    let refused = store.reserve(&more).await?;
    assert!(matches!(refused, ReserveAnswer::Over(_)), "{refused:?}");
    let refused = store.check(&more.draws).await?;
    assert!(matches!(refused, ReserveAnswer::Over(_)), "{refused:?}");
    trust(store).await?;
    assert_eq!(store.check(&more.draws).await?, ReserveAnswer::Reserved);
    assert_reserved(store, &more).await
}

pub(super) async fn racing_calls_never_spend_more_than_the_limit(fresh: &Fresh) -> Checked {
    let answers = super::race(16, |n| {
        let store = fresh.handle(n);
        async move {
            let name = format!("r{n}");
            let draws = vec![draw("", "all", 15, 100), draw("u_1", "own", 15, 1_000)];
            let request = Reserve {
                // In another order, which must not matter.
                draws: if n % 2 == 0 {
                    draws
                } else {
                    draws.into_iter().rev().collect()
                },
                ..reserve(&name, 0)
            };
            if store.reserve(&request).await? != ReserveAnswer::Reserved {
                return Ok(false);
            }
            let end = SpendEnd::SpentHere(Vec::new());
            spend(&*store, &name, end, &format!("ev_{n}")).await?;
            Ok(true)
        }
    })
    .await?;
    assert_eq!(answers.iter().filter(|spent| **spent).count(), 6);
    check(&*fresh.store, "", &[(0, 90)]).await?;
    check(&*fresh.store, "u_1", &[(0, 90)]).await
}

/// Racing claims, half of which are released: others spend the amounts that these give back.
pub(super) async fn racing_claims_never_spend_more_than_the_limit(fresh: &Fresh) -> Checked {
    let answers = super::race(12, |n| {
        let store = fresh.handle(n);
        async move {
            let name = format!("r{n}");
            let scope = scope_of("u_1", "orders.create", &name);
            let answer = store.claim(&spending(request(&scope), &name, 25)).await?;
            let ClaimAnswer::Ours(claim) = answer else {
                assert!(matches!(answer, ClaimAnswer::Over(_)), "{answer:?}");
                return Ok(0);
            };
            let (outcome, end, spent) = if n % 2 == 0 {
                (succeeded("x"), SpendEnd::Spent(Vec::new()), 25)
            } else {
                (Outcome::Released, SpendEnd::Released, 0)
            };
            let mut unit = settle(&claim, outcome, &format!("ev_{n}"));
            unit.spend = Some(change(&name, end));
            assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
            Ok(spent)
        }
    })
    .await?;
    let spent: i64 = answers.iter().sum();
    assert!(spent <= 100, "{spent}");
    check(&*fresh.store, "", &[(0, spent)]).await
}

/// Takes `amount` out of the pot `all`, which has 100.
fn reserve(name: &str, amount: i64) -> Reserve {
    Reserve {
        id: id(name),
        lease: HOUR,
        lapse: Lapse::Release,
        draws: vec![draw("", "all", amount, 100)],
    }
}

fn id(name: &str) -> ReservationId {
    ReservationId {
        user_id: "u_1".to_owned(),
        id: record_id(&format!("ev_{name}")),
    }
}

fn draw(user_id: &str, name: &str, amount: i64, limit: i64) -> Draw {
    Draw {
        pot: PotKey {
            user_id: user_id.to_owned(),
            name: name.to_owned(),
            holder: String::new(),
            currency: "EUR".to_owned(),
            window_seconds: 0,
        },
        amount,
        limit,
    }
}

fn spending(request: ClaimRequest, name: &str, amount: i64) -> ClaimRequest {
    ClaimRequest {
        spend: Some(Reserve {
            lapse: Lapse::ByClaim,
            ..reserve(name, amount)
        }),
        ..request
    }
}

fn change(name: &str, end: SpendEnd) -> SpendChange {
    SpendChange { id: id(name), end }
}

fn over_by(draw: usize, left: i64) -> Overdrawn {
    Overdrawn {
        draw,
        left,
        next_window: None,
    }
}

async fn assert_reserved(store: &dyn Store, request: &Reserve) -> Checked {
    let answer = store.reserve(request).await?;
    assert_eq!(answer, ReserveAnswer::Reserved, "{request:?}");
    Ok(())
}

/// Ends a reservation in a commit of its own.
async fn spend(store: &dyn Store, name: &str, end: SpendEnd, record: &str) -> Checked {
    let mut unit = commit(record);
    unit.spend = Some(change(name, end));
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    Ok(())
}

/// Checks the reserved and the spent amounts of a user's pots.
async fn check(store: &dyn Store, user_id: &str, expected: &[(i64, i64)]) -> Checked {
    let pots = store.pots(Some(user_id), 100).await?;
    let shown = pots.iter().map(|pot: &PotRow| (pot.reserved, pot.spent));
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{pots:?}");
    Ok(())
}
