//! Quotas of one caller: open requests, running calls, waiting calls.
//!
//! No caller gets all of the server, however many connections it opens and however slow it is on them. Callers
//! are told apart by what their credential proves.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign::contract::Actor;
use countersign::seat::Seat;
use countersign::{BoxFuture, Principal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::settings::Settings;

/// Current use, by caller.
pub(crate) struct Quotas {
    bounds: Bounds,
    seats: Arc<Semaphore>,
    used: Mutex<Used>,
    /// Number of calls, running and waiting.
    calls: watch::Sender<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Bounds {
    requests_of_caller: usize,
    running: usize,
    running_of_caller: usize,
    waiting: usize,
    waiting_of_caller: usize,
}

#[derive(Debug, Default)]
struct Used {
    waiting: usize,
    /// Load by caller; only callers with some load are listed.
    callers: HashMap<Who, Load>,
}

/// Identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Who {
    actor: Actor,
    user_id: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Load {
    requests: usize,
    running: usize,
    waiting: usize,
}

/// Reason why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The server is full.
    ForAll,
    /// The caller has reached its quota.
    ForCaller,
}

impl Quotas {
    pub(crate) fn new(settings: &Settings) -> Self {
        let bounds = Bounds {
            requests_of_caller: settings.requests_of_caller(),
            running: settings.calls_max,
            running_of_caller: settings.calls_per_caller_max,
            waiting: settings.waiting_calls_max,
            waiting_of_caller: settings.waiting_calls_per_caller_max,
        };
        Self {
            bounds,
            seats: Arc::new(Semaphore::new(settings.calls_max)),
            used: Mutex::default(),
            calls: watch::Sender::new(0),
        }
    }

    /// Returns the number of running calls.
    pub(crate) fn running(&self) -> usize {
        let free = self.seats.available_permits();
        self.bounds.running.saturating_sub(free)
    }

    /// Returns the number of calls that wait for others.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Waits until there is no call, running or waiting.
    pub(crate) async fn idle(&self) {
        // This struct holds the sender, so this cannot fail.
        let _ = self.calls.subscribe().wait_for(|calls| *calls == 0).await;
    }

    /// Takes room for one more request of a caller, until the value is dropped.
    pub(crate) fn request(self: &Arc<Self>, of: &Principal) -> Option<OpenRequest> {
        let who = Who::of(of);
        let mut used = self.lock();
        let load = used.callers.entry(who.clone()).or_default();
        if load.requests >= self.bounds.requests_of_caller {
            return None;
        }
        load.requests += 1;
        Some(OpenRequest {
            quotas: self.clone(),
            who,
        })
    }

    /// Takes a seat for one more call of a caller.
    pub(crate) fn call(self: &Arc<Self>, of: &Principal) -> Result<Arc<CallSeat>, Full> {
        let who = Who::of(of);
        let mut used = self.lock();
        let load = used.callers.get(&who).copied().unwrap_or_default();
        // The number of waiting calls exceeds the limit only if calls had to wait that had already run.
        if load.running >= self.bounds.running_of_caller
            || load.waiting > self.bounds.waiting_of_caller
        {
            return Err(Full::ForCaller);
        }
        if used.waiting > self.bounds.waiting {
            return Err(Full::ForAll);
        }
        let seat = self.seats.clone().try_acquire_owned();
        let seat = seat.map_err(|_| Full::ForAll)?;
        used.callers.entry(who.clone()).or_default().running += 1;
        self.calls.send_modify(|calls| *calls += 1);
        Ok(Arc::new(CallSeat {
            quotas: self.clone(),
            who,
            seat: Mutex::new(Some(seat)),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    fn change(&mut self, who: &Who, change: impl FnOnce(&mut Load)) {
        if let Some(load) = self.callers.get_mut(who) {
            change(load);
            if *load == Load::default() {
                self.callers.remove(who);
            }
        }
    }
}

impl Who {
    fn of(principal: &Principal) -> Self {
        Self {
            actor: principal.actor.clone(),
            user_id: principal.user_id.clone(),
        }
    }
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotas")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

/// An open request.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    quotas: Arc<Quotas>,
    who: Who,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut used = self.quotas.lock();
        used.change(&self.who, |load| {
            load.requests = load.requests.saturating_sub(1);
        });
    }
}

/// A call: a running one has a seat, a waiting one has none.
#[derive(Debug)]
pub(crate) struct CallSeat {
    quotas: Arc<Quotas>,
    who: Who,
    seat: Mutex<Option<OwnedSemaphorePermit>>,
}

impl CallSeat {
    fn seat(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_up(&self, used: &mut Used) {
        if self.seat().take().is_some() {
            used.waiting += 1;
            used.change(&self.who, |load| {
                load.running = load.running.saturating_sub(1);
                load.waiting += 1;
            });
        }
    }
}

impl Seat for CallSeat {
    fn leave(&self) -> bool {
        let bounds = &self.quotas.bounds;
        let mut used = self.quotas.lock();
        let of_caller = used.callers.get(&self.who).map_or(0, |load| load.waiting);
        if used.waiting >= bounds.waiting || of_caller >= bounds.waiting_of_caller {
            return false;
        }
        self.give_up(&mut used);
        true
    }

    fn leave_anyway(&self) {
        self.give_up(&mut self.quotas.lock());
    }

    fn take(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // The semaphore is never closed; without a seat the call would still go on.
            let seat = self.quotas.seats.clone().acquire_owned().await.ok();
            let mut used = self.quotas.lock();
            *self.seat() = seat;
            used.waiting = used.waiting.saturating_sub(1);
            used.change(&self.who, |load| {
                load.waiting = load.waiting.saturating_sub(1);
                load.running += 1;
            });
        })
    }
}

impl Drop for CallSeat {
    fn drop(&mut self) {
        let mut used = self.quotas.lock();
        let is_running = self.seat().take().is_some();
        if !is_running {
            used.waiting = used.waiting.saturating_sub(1);
        }
        used.change(&self.who, |load| {
            let count = if is_running {
                &mut load.running
            } else {
                &mut load.waiting
            };
            *count = count.saturating_sub(1);
        });
        drop(used);
        self.quotas
            .calls
            .send_modify(|calls| *calls = calls.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use countersign_testkit::patience::within;

    use super::*;

    fn quotas() -> Arc<Quotas> {
        Arc::new(Quotas::new(&Settings {
            connections_max: 4,
            calls_max: 3,
            calls_per_caller_max: 2,
            waiting_calls_max: 3,
            waiting_calls_per_caller_max: 2,
            ..Settings::default()
        }))
    }

    fn user(id: &str) -> Principal {
        Principal::user(id)
    }

    /// U15: one caller gets its quota of requests, and the others theirs.
    #[test]
    fn a_part_of_the_requests_is_left_for_others() {
        let quotas = quotas();
        let first = quotas.request(&user("u_1")).unwrap();
        let _more = [(); 2].map(|()| quotas.request(&user("u_1")).unwrap());
        assert!(quotas.request(&user("u_1")).is_none());
        let _other = quotas.request(&user("u_2")).unwrap();
        drop(first);
        assert!(quotas.request(&user("u_1")).is_some());
    }

    /// U15: one caller gets its quota of seats; all callers together get no more than there are.
    #[test]
    fn seats_are_counted_by_caller_and_together() {
        let quotas = quotas();
        let _first = quotas.call(&user("u_1")).unwrap();
        let second = quotas.call(&user("u_1")).unwrap();
        assert_eq!(quotas.call(&user("u_1")).unwrap_err(), Full::ForCaller);
        let _third = quotas.call(&user("u_2")).unwrap();
        assert_eq!(quotas.call(&user("u_2")).unwrap_err(), Full::ForAll);
        drop(second);
        assert_eq!(quotas.running(), 2);
        assert!(quotas.call(&user("u_1")).is_ok());
    }

    /// U15: a waiting call has no seat, and no more calls wait than allowed.
    #[tokio::test]
    async fn a_call_that_waits_leaves_its_seat() {
        let quotas = quotas();
        let [first, second, third] = [(); 3].map(|()| {
            let seat = quotas.call(&user("u_1")).unwrap();
            let is_waiting = seat.leave();
            (seat, is_waiting)
        });
        assert_eq!([first.1, second.1, third.1], [true, true, false]);
        assert_eq!((quotas.running(), quotas.waiting()), (1, 2));
        let other = quotas.call(&user("u_2")).unwrap();
        assert!(other.leave());
        assert!(!quotas.call(&user("u_3")).unwrap().leave());
        // A call that has run can no longer be refused; then no new call is begun.
        third.0.leave_anyway();
        assert_eq!((quotas.running(), quotas.waiting()), (0, 4));
        assert_eq!(quotas.call(&user("u_1")).unwrap_err(), Full::ForCaller);
        assert_eq!(quotas.call(&user("u_3")).unwrap_err(), Full::ForAll);
        within(other.take()).await;
        assert_eq!((quotas.running(), quotas.waiting()), (1, 3));
        drop((first, second, third, other));
        within(quotas.idle()).await;
        assert_eq!((quotas.running(), quotas.waiting()), (0, 0));
        assert!(quotas.lock().callers.is_empty());
    }

    /// A seat is free again when a call leaves it; until then the next call waits.
    #[tokio::test]
    async fn a_seat_is_taken_in_turn() {
        let quotas = quotas();
        let first = quotas.call(&user("u_1")).unwrap();
        assert!(first.leave());
        let seated: Vec<_> = ["u_2", "u_3", "u_4"]
            .map(|id| quotas.call(&user(id)).unwrap())
            .into();
        let mut taking = first.take();
        assert!(futures_util::poll!(&mut taking).is_pending());
        drop(seated);
        within(taking).await;
        assert_eq!((quotas.running(), quotas.waiting()), (1, 0));
    }
}
