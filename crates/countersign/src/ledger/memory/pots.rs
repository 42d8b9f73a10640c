//! Pots in memory.

use std::collections::BTreeMap;
use std::future::ready;

use jiff::Timestamp;

use super::{Inner, MemoryStore, after};
use crate::BoxFuture;
use crate::ledger::{
    Claim, ClaimRequest, Draw, Error, Lapse, Overdrawn, POT_KEPT, PotKey, PotRow, Pots,
    ReservationId, Reserve, ReserveAnswer, SpendChange, SpendEnd, longer, overdrawn, window_start,
};

/// All pots, and their reservations.
#[derive(Default)]
pub(super) struct Till {
    pots: BTreeMap<(PotKey, i64), Pot>,
    reservations: BTreeMap<ReservationId, Reservation>,
}

#[derive(Clone, Copy, Default)]
struct Pot {
    reserved: i64,
    spent: i64,
}

struct Reservation {
    drawn: Vec<Drawn>,
    lapse: Lapse,
    lease_until: Timestamp,
    claim: Option<Claim>,
}

/// An amount that was taken out of a pot, in one window.
struct Drawn {
    pot: (PotKey, i64),
    amount: i64,
}

impl Pots for MemoryStore {
    fn reserve<'a>(&'a self, request: &'a Reserve) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        let now = self.clock.now();
        let mut inner = self.lock();
        let windows = inner.time.windows(now);
        let over = inner.till.reserve(request, None, (now, windows));
        drop(inner);
        Box::pin(ready(Ok(answer(over))))
    }

    fn check<'a>(&'a self, draws: &'a [Draw]) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        let inner = self.lock();
        let over = inner.till.over(draws, inner.time.windows(self.clock.now()));
        drop(inner);
        Box::pin(ready(Ok(answer(over))))
    }

    fn release<'a>(&'a self, id: &'a ReservationId) -> BoxFuture<'a, Result<(), Error>> {
        self.lock().till.end(id, &SpendEnd::Released);
        Box::pin(ready(Ok(())))
    }

    fn reserved<'a>(
        &'a self,
        claim: &'a Claim,
    ) -> BoxFuture<'a, Result<Option<ReservationId>, Error>> {
        let inner = self.lock();
        let mut reservations = inner.till.reservations.iter();
        let of_claim = reservations.find(|(_, made)| made.claim.as_ref() == Some(claim));
        Box::pin(ready(Ok(of_claim.map(|(id, _)| id.clone()))))
    }

    fn pots<'a>(
        &'a self,
        user_id: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<PotRow>, Error>> {
        let inner = self.lock();
        let pots = inner.till.pots.iter();
        let of_user = pots.filter(|((key, _), _)| user_id.is_none_or(|user| key.user_id == user));
        let rows = of_user
            .take(limit)
            .map(|((key, window_start), pot)| PotRow {
                key: key.clone(),
                window_start: *window_start,
                reserved: pot.reserved,
                spent: pot.spent,
            });
        Box::pin(ready(Ok(rows.collect())))
    }
}

impl Till {
    /// Sets aside what a claim needs, in the place of what its earlier attempts had. Answers the pot without enough
    /// money, if there is one.
    pub(super) fn take_with_claim(
        &mut self,
        request: &ClaimRequest,
        attempt: u32,
        times: (Timestamp, Timestamp),
    ) -> Option<Overdrawn> {
        let spend = request.spend.as_ref()?;
        let reservations = self.reservations.iter();
        let earlier: Vec<ReservationId> = reservations
            .filter(|(_, made)| {
                let claim = made.claim.as_ref();
                claim.is_some_and(|claim| claim.scope == request.scope)
            })
            .map(|(id, _)| id.clone())
            .collect();
        // Taken out for a look: where there is not enough they go back in.
        let mut put_back = Vec::new();
        for id in earlier {
            if let Some(made) = self.reservations.remove(&id) {
                self.change(&made, &SpendEnd::Released, 1);
                put_back.push((id, made));
            }
        }
        let claim = Claim {
            scope: request.scope.clone(),
            attempt,
        };
        let over = self.reserve(spend, Some(claim), times);
        if over.is_some() {
            for (id, made) in put_back {
                self.change(&made, &SpendEnd::Released, -1);
                self.reservations.insert(id, made);
            }
        }
        over
    }

    /// True if a commit relies on a reservation that has lapsed.
    pub(super) fn has_lapsed(&self, spend: &SpendChange) -> bool {
        match spend.end {
            SpendEnd::SpentHere(_) => !self.reservations.contains_key(&spend.id),
            SpendEnd::Spent(_) | SpendEnd::Released => false,
        }
    }

    pub(super) fn end(&mut self, id: &ReservationId, end: &SpendEnd) {
        if let Some(made) = self.reservations.remove(id) {
            self.change(&made, end, 1);
        }
    }

    /// Forgets a user. What their open calls have set aside in the pots of others counts as spent there, because no
    /// call will ever settle it.
    pub(super) fn erase(&mut self, user_id: &str) {
        let of_user = self.reservations.keys();
        let of_user = of_user.filter(|id| id.user_id == user_id).cloned();
        for id in of_user.collect::<Vec<_>>() {
            self.end(&id, &SpendEnd::Spent(Vec::new()));
        }
        self.pots.retain(|(key, _), _| key.user_id != user_id);
    }

    fn reserve(
        &mut self,
        request: &Reserve,
        claim: Option<Claim>,
        (now, windows): (Timestamp, Timestamp),
    ) -> Option<Overdrawn> {
        if self.reservations.contains_key(&request.id) {
            return None;
        }
        if let Some(over) = self.over(&request.draws, windows) {
            return Some(over);
        }
        let drawn = request.draws.iter().map(|draw| {
            let pot = (draw.pot.clone(), start_of(draw, windows));
            let kept = self.pots.entry(pot.clone()).or_default();
            kept.reserved += draw.amount.max(0);
            Drawn {
                pot,
                amount: draw.amount,
            }
        });
        let made = Reservation {
            drawn: drawn.collect(),
            lapse: request.lapse,
            lease_until: after(now, request.lease),
            claim,
        };
        self.reservations.insert(request.id.clone(), made);
        None
    }

    fn over(&self, draws: &[Draw], now: Timestamp) -> Option<Overdrawn> {
        let over = draws.iter().enumerate().map(|(index, draw)| {
            let pot = self.pots.get(&(draw.pot.clone(), start_of(draw, now)));
            let pot = pot.copied().unwrap_or_default();
            overdrawn(index, draw, pot.reserved, pot.spent, now.as_second())
        });
        over.fold(None, longer)
    }

    /// Applies the end of a reservation, or with -1 reverts it.
    fn change(&mut self, made: &Reservation, end: &SpendEnd, sign: i64) {
        for (index, drawn) in made.drawn.iter().enumerate() {
            let spent = match end {
                SpendEnd::Released => 0,
                SpendEnd::Spent(actual) | SpendEnd::SpentHere(actual) => {
                    let actual = actual.get(index).copied().flatten();
                    actual.unwrap_or(drawn.amount)
                }
            };
            if let Some(pot) = self.pots.get_mut(&drawn.pot) {
                pot.reserved -= sign * drawn.amount.max(0);
                // A refund never makes more of a budget than it was.
                pot.spent = (pot.spent + sign * spent).max(0);
            }
        }
    }
}

impl Inner {
    /// Ends the reservations of lost owners.
    pub(super) fn end_lost(&mut self, now: Timestamp, limit: usize) -> usize {
        let lost = self.till.reservations.iter().filter(|(_, made)| {
            let is_open = made.claim.as_ref().is_some_and(|claim| self.is_open(claim));
            made.lease_until <= now && !is_open
        });
        let lost = lost.take(limit).map(|(id, made)| {
            let end = match made.lapse {
                Lapse::Release | Lapse::ByClaim => SpendEnd::Released,
                Lapse::Spend => SpendEnd::Spent(Vec::new()),
            };
            (id.clone(), end)
        });
        let lost: Vec<_> = lost.collect();
        for (id, end) in &lost {
            self.till.end(id, end);
        }
        lost.len()
    }

    /// Drops old pots.
    pub(super) fn drop_pots(&mut self, now: Timestamp, limit: usize) -> usize {
        let mut pots = 0;
        let kept = i64::try_from(POT_KEPT.as_secs()).unwrap_or(i64::MAX);
        self.till.pots.retain(|(key, start), pot| {
            let window = i64::try_from(key.window_seconds).unwrap_or(i64::MAX);
            let is_over = window > 0 && start.saturating_add(window) <= now.as_second() - kept;
            let goes = is_over && pot.reserved == 0 && pots < limit;
            pots += usize::from(goes);
            !goes
        });
        pots
    }
}

fn start_of(draw: &Draw, now: Timestamp) -> i64 {
    window_start(now.as_second(), draw.pot.window_seconds)
}

fn answer(over: Option<Overdrawn>) -> ReserveAnswer {
    over.map_or(ReserveAnswer::Reserved, ReserveAnswer::Over)
}
