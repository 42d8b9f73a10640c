//! Steps that are done to both stores. Scopes and documents are few, so that steps meet.

use std::time::Duration;

use countersign::ledger::{
    Claim, ClaimRequest, DocumentKey, DocumentWrite, KeyChange, Outcome, Scope,
};
use countersign_contract::tool::Recovery;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

use crate::ledger::build::{HOUR, fingerprint, index_entry, parts, request, request_id};

/// One step.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Lookup(Place),
    Claim(Place, Asked),
    Commit(Unit),
    /// The last commit once more, with the same record.
    Repeat,
    Document(Place),
    Scan {
        user: u8,
        limit: usize,
    },
    Find {
        user: u8,
        value: u8,
    },
    Claims {
        user: u8,
    },
    Sweep,
    Dispose,
    /// An operator says that the clock is right.
    Trust,
    Advance(Duration),
}

/// A scope or a document: of one of two users, with one of three names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) user: u8,
    pub(super) name: u8,
}

/// Terms of a claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    arguments: u8,
    recovery: Recovery,
    lease: Duration,
    attempts_max: u32,
}

/// A commit.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) key: Option<(Place, Key)>,
    pub(super) reads: Vec<(Place, Look)>,
    pub(super) shape: Option<(u8, Look)>,
    pub(super) writes: Vec<(Place, Look, Written)>,
}

/// Change that a commit makes to a key.
#[derive(Debug, Clone)]
pub(super) enum Key {
    Take {
        arguments: u8,
        after: Look,
        outcome: Outcome,
    },
    Settle {
        attempt: Look,
        outcome: Outcome,
    },
}

/// Distance of the version that a caller has seen from the present one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Look {
    Fresh,
    Behind,
    Ahead,
}

/// A document as it is written; deleted if there is no body.
#[derive(Debug, Clone)]
pub(super) struct Written {
    body: Option<u8>,
    value: Option<u8>,
    tracked: bool,
}

impl Asked {
    pub(super) fn request(self, scope: &Scope) -> ClaimRequest {
        ClaimRequest {
            fingerprint: fingerprint(self.arguments),
            parts: parts(self.arguments),
            recovery: self.recovery,
            lease: self.lease,
            attempts_max: self.attempts_max,
            ..request(scope)
        }
    }
}

impl Key {
    pub(super) fn change(&self, scope: Scope, attempt: u32) -> KeyChange {
        let seen = |look: &Look| look.at(u64::from(attempt)) as u32;
        match self {
            Self::Take {
                arguments,
                after,
                outcome,
            } => KeyChange::Take {
                scope,
                fingerprint: fingerprint(*arguments),
                parts: parts(*arguments),
                after: seen(after),
                outcome: outcome.clone(),
                request_id: request_id("req_1"),
            },
            Self::Settle { attempt, outcome } => KeyChange::Settle {
                claim: Claim {
                    scope,
                    attempt: seen(attempt),
                },
                outcome: outcome.clone(),
            },
        }
    }
}

impl Look {
    pub(super) fn at(self, there: u64) -> u64 {
        match self {
            Self::Fresh => there,
            Self::Behind => there.saturating_sub(1),
            Self::Ahead => there + 1,
        }
    }
}

impl Written {
    pub(super) fn write(&self, key: DocumentKey, version: u64) -> DocumentWrite {
        // What is deleted has no entries left.
        let value = self.value.filter(|_| self.body.is_some());
        DocumentWrite {
            pseudonym: String::new(),
            key,
            version,
            body: self.body.map(|byte| vec![byte]),
            entries: value
                .map(|value| index_entry("by_value", value))
                .into_iter()
                .collect(),
            tracked: self.tracked,
        }
    }
}

/// Any step; mostly ones that change something.
pub(super) fn step() -> impl Strategy<Value = Step> {
    let advance = prop_oneof![
        4 => Just(HOUR),
        1 => Just(720 * HOUR),
    ];
    prop_oneof![
        2 => place().prop_map(Step::Lookup),
        8 => (place(), asked()).prop_map(|(place, asked)| Step::Claim(place, asked)),
        12 => unit().prop_map(Step::Commit),
        2 => Just(Step::Repeat),
        1 => place().prop_map(Step::Document),
        1 => (0..2_u8, 0..4_usize).prop_map(|(user, limit)| Step::Scan { user, limit }),
        1 => (0..2_u8, 0..2_u8).prop_map(|(user, value)| Step::Find { user, value }),
        1 => (0..2_u8).prop_map(|user| Step::Claims { user }),
        2 => Just(Step::Sweep),
        2 => Just(Step::Dispose),
        1 => Just(Step::Trust),
        2 => advance.prop_map(Step::Advance),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    (0..2_u8, 0..3_u8).prop_map(|(user, name)| Place { user, name })
}

fn asked() -> impl Strategy<Value = Asked> {
    let recovery = prop_oneof![
        Just(Recovery::Operator),
        Just(Recovery::Retry),
        Just(Recovery::Reconcile { grace_seconds: 1 }),
        Just(Recovery::DownstreamKey { window_seconds: 0 }),
        Just(Recovery::DownstreamKey {
            window_seconds: 7_200
        }),
    ];
    (arguments(), recovery, time(), 1..4_u32).prop_map(|(arguments, recovery, lease, max)| Asked {
        arguments,
        recovery,
        lease,
        attempts_max: max,
    })
}

fn unit() -> impl Strategy<Value = Unit> {
    let key = option::weighted(0.8, (place(), key()));
    let reads = vec((place(), look()), 0..2);
    let shape = option::weighted(0.2, (0..2_u8, look()));
    let writes = vec((place(), look(), written()), 0..3);
    (key, reads, shape, writes).prop_map(|(key, reads, shape, writes)| Unit {
        key,
        reads,
        shape,
        writes,
    })
}

fn key() -> impl Strategy<Value = Key> {
    let take = (arguments(), look(), settled()).prop_map(|(arguments, after, outcome)| Key::Take {
        arguments,
        after,
        outcome,
    });
    let outcome = prop_oneof![
        4 => settled(),
        1 => Just(Outcome::InDoubt),
        1 => Just(Outcome::Abandoned),
    ];
    let settle = (look(), outcome).prop_map(|(attempt, outcome)| Key::Settle { attempt, outcome });
    prop_oneof![take, settle]
}

/// Generates outcomes of a claim that is not in doubt.
fn settled() -> impl Strategy<Value = Outcome> {
    let answer = || (any::<u8>(), time());
    prop_oneof![
        answer().prop_map(|(byte, keep)| Outcome::Succeeded {
            reply: vec![byte],
            keep,
        }),
        answer().prop_map(|(byte, keep)| Outcome::Failed {
            reply: vec![byte],
            keep,
        }),
        Just(Outcome::Released),
        Just(Outcome::Released),
    ]
}

fn written() -> impl Strategy<Value = Written> {
    let body = option::weighted(0.7, any::<u8>());
    (body, option::of(0..2_u8), any::<bool>()).prop_map(|(body, value, tracked)| Written {
        body,
        value,
        tracked,
    })
}

fn arguments() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(1), 1 => Just(2)]
}

/// No time at all, or more than a sequence takes.
fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), Just(HOUR)]
}

fn look() -> impl Strategy<Value = Look> {
    prop_oneof![
        10 => Just(Look::Fresh),
        1 => Just(Look::Behind),
        1 => Just(Look::Ahead),
    ]
}
