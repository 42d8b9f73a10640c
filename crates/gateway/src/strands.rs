//! Strands: which of the newest calls belong to one session, in memory. After a start they are
//! [recalled](crate::pulse) from the log.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign::contract::SnapshotId;

/// Calls that are known to belong to a session. Each takes about a hundred bytes.
const KEPT_MAX: usize = 20_000;

/// Prefix of a strand's name.
const PREFIX: &str = "ss_";

/// A session as records name it: a digest of its name under the user's key. The name itself is the caller's text, and is not
/// kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strand([u8; 16]);

impl Strand {
    /// The session that a record names; `None` for any other text.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let is_hex = digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let number = u128::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        Some(Self(number.to_be_bytes()))
    }
}

impl fmt::Display for Strand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The newest calls that named a session.
#[derive(Debug, Default)]
pub(crate) struct Strands {
    calls: Mutex<VecDeque<(Strand, SnapshotId)>>,
}

impl Strands {
    /// Adds a call; the oldest makes room for it.
    pub(crate) fn add(&self, session: Strand, call: SnapshotId) {
        let mut calls = self.lock();
        if calls.len() >= KEPT_MAX {
            calls.pop_front();
        }
        calls.push_back((session, call));
    }

    /// Adds a call that is older than all known ones; false if there is no room for it.
    pub(crate) fn add_older(&self, session: Strand, call: SnapshotId) -> bool {
        let mut calls = self.lock();
        if calls.len() >= KEPT_MAX {
            return false;
        }
        calls.push_front((session, call));
        true
    }

    /// The session of a call.
    pub(crate) fn of(&self, call: &SnapshotId) -> Option<Strand> {
        let calls = self.lock();
        let mut newest = calls.iter().rev();
        newest.find_map(|(strand, known)| (known == call).then_some(*strand))
    }

    /// The newest calls of these sessions, oldest first, and whether there are more.
    pub(crate) fn calls(&self, strands: &[Strand], limit: usize) -> (Vec<SnapshotId>, bool) {
        let calls = self.lock();
        let of_them = calls
            .iter()
            .rev()
            .filter(|(known, _)| strands.contains(known));
        let mut found: Vec<SnapshotId> = of_them
            .take(limit + 1)
            .map(|(_, call)| call.clone())
            .collect();
        let is_cut = found.len() > limit;
        found.truncate(limit);
        found.reverse();
        (found, is_cut)
    }

    /// Filters the sessions that have a known call.
    pub(crate) fn known(&self, strands: Vec<Strand>) -> Vec<Strand> {
        let calls = self.lock();
        let mut known: Vec<[u8; 16]> = calls.iter().map(|(strand, _)| strand.0).collect();
        drop(calls);
        known.sort_unstable();
        let is_known = |strand: &Strand| known.binary_search(&strand.0).is_ok();
        strands.into_iter().filter(is_known).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Strand, SnapshotId)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> SnapshotId {
        SnapshotId::new(format!("ev_{number}")).unwrap()
    }

    fn strand(number: u8) -> Strand {
        Strand([number; 16])
    }

    /// A session is found by its name in records and by its calls; the oldest calls are forgotten first.
    #[test]
    fn calls_of_one_session_are_found() {
        let strands = Strands::default();
        for number in 0..5 {
            strands.add([strand(1), strand(2)][number % 2], id(number));
        }
        let a = [strand(1)];
        assert_eq!(strands.calls(&a, 9), (vec![id(0), id(2), id(4)], false));
        assert_eq!(strands.calls(&a, 2), (vec![id(2), id(4)], true));
        assert_eq!(
            strands.calls(&[strand(1), strand(2)], 2),
            (vec![id(3), id(4)], true)
        );
        assert_eq!(Strand::read(&a[0].to_string()), Some(a[0]));
        for text in ["ss_0", "visit 7", ""] {
            assert_eq!(Strand::read(text), None, "{text}");
        }
        assert_eq!(strands.of(&id(2)), Some(a[0]));
        assert_eq!(strands.of(&id(9)), None);
        assert_eq!(strands.known(vec![strand(3), strand(2)]), [strand(2)]);
        for number in 5..5 + KEPT_MAX {
            strands.add(strand(3), id(number));
        }
        assert_eq!(strands.calls(&a, 9), (Vec::new(), false));
        assert_eq!(strands.lock().len(), KEPT_MAX);
    }

    /// Calls of the log stand before those of this process, and never push one of them out.
    #[test]
    fn older_calls_stand_first_and_take_no_room() {
        let strands = Strands::default();
        strands.add(strand(1), id(3));
        for number in [2, 1] {
            assert!(strands.add_older(strand(1), id(number)));
        }
        assert_eq!(
            strands.calls(&[strand(1)], 9),
            (vec![id(1), id(2), id(3)], false)
        );
        for number in 4..=KEPT_MAX {
            strands.add(strand(2), id(number));
        }
        assert!(!strands.add_older(strand(1), id(0)));
        assert_eq!(strands.of(&id(1)), Some(strand(1)));
    }
}
