//! Strands: which of the newest calls belong to one session, in memory.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign::contract::{Digest, SnapshotId};

/// Calls that are known to belong to a session. Each takes about a hundred bytes.
const KEPT_MAX: usize = 20_000;

/// Prefix of a strand's name.
const PREFIX: &str = "ss_";

/// A session, by a digest of the name that its calls gave: the name itself is the caller's text, and is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strand([u8; 16]);

impl Strand {
    /// The session of this name; a name in the form of an address is read as one.
    pub(crate) fn named(name: &str) -> Self {
        Self::read(name).unwrap_or_else(|| Self::of(Digest::of_bytes(name.as_bytes())))
    }

    fn of(digest: Digest) -> Self {
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(digest.as_bytes()) {
            *to = *from;
        }
        Self(bytes)
    }

    fn read(text: &str) -> Option<Self> {
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
    pub(crate) fn add(&self, session: Digest, call: SnapshotId) {
        let mut calls = self.lock();
        if calls.len() >= KEPT_MAX {
            calls.pop_front();
        }
        calls.push_back((Strand::of(session), call));
    }

    /// The session of a call.
    pub(crate) fn of(&self, call: &SnapshotId) -> Option<Strand> {
        let calls = self.lock();
        let mut newest = calls.iter().rev();
        newest.find_map(|(strand, known)| (known == call).then_some(*strand))
    }

    /// The newest calls of a session, oldest first, and whether there are more.
    pub(crate) fn calls(&self, strand: &Strand, limit: usize) -> (Vec<SnapshotId>, bool) {
        let calls = self.lock();
        let of_it = calls.iter().rev().filter(|(known, _)| known == strand);
        let mut found: Vec<SnapshotId> = of_it
            .take(limit + 1)
            .map(|(_, call)| call.clone())
            .collect();
        let is_cut = found.len() > limit;
        found.truncate(limit);
        found.reverse();
        (found, is_cut)
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

    /// A session is found by its name, its address and its calls; the oldest calls are forgotten first.
    #[test]
    fn calls_of_one_session_are_found() {
        let strands = Strands::default();
        let digest = |name: &str| Digest::of_bytes(name.as_bytes());
        for number in 0..5 {
            strands.add(digest(["a", "b"][number % 2]), id(number));
        }
        let a = Strand::named("a");
        assert_eq!(strands.calls(&a, 9), (vec![id(0), id(2), id(4)], false));
        assert_eq!(strands.calls(&a, 2), (vec![id(2), id(4)], true));
        assert_eq!(Strand::named(&a.to_string()), a);
        assert_ne!(Strand::named("ss_0"), a);
        assert_eq!(strands.of(&id(2)), Some(a));
        assert_eq!(strands.of(&id(9)), None);
        for number in 5..5 + KEPT_MAX {
            strands.add(digest("c"), id(number));
        }
        assert_eq!(strands.calls(&a, 9), (Vec::new(), false));
        assert_eq!(strands.lock().len(), KEPT_MAX);
    }
}
