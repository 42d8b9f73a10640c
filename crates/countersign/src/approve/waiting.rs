//! Callers that wait for a person. A wait holds a connection and the seat of a call, so it is bounded: a caller that
//! finds no room comes back later, like a caller that cannot wait.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::stored::Limits;

/// Number of waiting callers, by user.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_user: Mutex<BTreeMap<String, usize>>,
}

impl Waiting {
    /// Takes room for one more caller that waits for this user, until it is dropped; `None` if there is no room.
    pub(super) fn enter<'a>(&'a self, user_id: &'a str, limits: &Limits) -> Option<Waiter<'a>> {
        let mut by_user = self.lock();
        let all: usize = by_user.values().sum();
        let own = by_user.get(user_id).copied().unwrap_or_default();
        if all >= limits.waiting_max || own >= limits.waiting_per_user_max {
            return None;
        }
        by_user.insert(user_id.to_owned(), own + 1);
        Some(Waiter {
            waiting: self,
            user_id,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.by_user.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One caller who waits.
pub(super) struct Waiter<'a> {
    waiting: &'a Waiting,
    user_id: &'a str,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut by_user = self.waiting.lock();
        if let Some(own) = by_user.get_mut(self.user_id) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                by_user.remove(self.user_id);
            }
        }
    }
}
