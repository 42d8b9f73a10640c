//! The model's claims against the state machine as it is drawn in `ledger::claims`, written down once
//! more: one key, hours instead of instants, no answers.

use countersign::clock::ManualClock;
use countersign::contract::tool::Recovery;
use countersign::ledger::{
    Claim, ClaimAnswer, ClaimRequest, Claims, CommitAnswer, HeldState, MemoryStore, Outcome,
};
use countersign_testkit::ledger::build::{HOUR, disposed_now, request, scope, settle, take};
use proptest::collection::vec;
use proptest::prelude::*;

const KEEP_HOURS: u32 = 2;
const LEASE_HOURS: u32 = 1;
const ATTEMPTS_MAX: u32 = 4;

#[derive(Debug, Clone, Copy)]
enum Step {
    Claim { retry: bool },
    Settle { behind: u32, end: End },
    Take { behind: u32, end: End },
    Sweep,
    Hours(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Done,
    Free,
    Doubt,
}

/// The state machine. Times are hours since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Scope {
    #[default]
    Absent,
    Running {
        until: u32,
        retry: bool,
    },
    Released,
    Settled {
        until: u32,
    },
    Doubt,
    Tombstone,
}

#[derive(Debug, Default)]
struct Reference {
    now: u32,
    attempt: u32,
    scope: Scope,
}

impl Reference {
    fn step(&mut self, step: Step) -> &'static str {
        let now = self.now;
        let (next, answer) = match (step, self.scope) {
            (Step::Hours(hours), scope) => {
                self.now += hours;
                (scope, "")
            }
            (
                Step::Claim { .. },
                Scope::Running {
                    until,
                    retry: false,
                },
            ) if now >= until => (Scope::Doubt, "held"),
            (Step::Claim { .. }, scope) if !self.is_free(scope) => (scope, "held"),
            (Step::Claim { .. }, scope) if self.attempt >= ATTEMPTS_MAX => (scope, "exhausted"),
            (Step::Claim { retry }, _) => {
                self.attempt += 1;
                let until = now + LEASE_HOURS;
                (Scope::Running { until, retry }, "ours")
            }
            (Step::Settle { behind: 0, end }, Scope::Running { .. } | Scope::Doubt) => {
                (end.scope(now), "committed")
            }
            (Step::Settle { .. }, scope) => (scope, "fenced"),
            (Step::Take { behind, end }, Scope::Absent | Scope::Released)
                if behind.min(self.attempt) == 0 =>
            {
                self.attempt += 1;
                (end.scope(now), "committed")
            }
            (Step::Take { .. }, scope) => (scope, "held"),
            (Step::Sweep, Scope::Settled { until }) if now >= until => (Scope::Tombstone, ""),
            (
                Step::Sweep,
                Scope::Running {
                    until,
                    retry: false,
                },
            ) if now >= until => (Scope::Doubt, ""),
            (Step::Sweep, scope) => (scope, ""),
        };
        self.scope = next;
        answer
    }

    fn is_free(&self, scope: Scope) -> bool {
        match scope {
            Scope::Absent | Scope::Released => true,
            Scope::Running { until, retry } => retry && self.now >= until,
            Scope::Settled { .. } | Scope::Doubt | Scope::Tombstone => false,
        }
    }

    fn shown(&self) -> Option<(u32, &'static str)> {
        let state = match self.scope {
            Scope::Absent => return None,
            Scope::Running { until, .. } if self.now >= until => "abandoned",
            Scope::Running { .. } => "running",
            Scope::Released => "released",
            Scope::Settled { until } if self.now < until => "settled",
            Scope::Settled { .. } | Scope::Tombstone => "expired",
            Scope::Doubt => "in_doubt",
        };
        Some((self.attempt, state))
    }
}

impl End {
    fn scope(self, now: u32) -> Scope {
        match self {
            Self::Done => Scope::Settled {
                until: now + KEEP_HOURS,
            },
            Self::Free => Scope::Released,
            Self::Doubt => Scope::Doubt,
        }
    }

    fn outcome(self) -> Outcome {
        match self {
            Self::Done => Outcome::Succeeded {
                reply: b"done".to_vec(),
                keep: KEEP_HOURS * HOUR,
            },
            Self::Free => Outcome::Released,
            Self::Doubt => Outcome::InDoubt,
        }
    }
}

/// The reference model's answer to a step.
async fn answer(
    store: &MemoryStore,
    clock: &ManualClock,
    step: Step,
    attempt: u32,
    record: &str,
) -> &'static str {
    let commit = match step {
        Step::Hours(hours) => {
            clock.advance(hours * HOUR);
            return "";
        }
        Step::Sweep => {
            store.sweep(10).await.expect("memory answers");
            disposed_now(store, 10).await.expect("memory answers");
            return "";
        }
        Step::Claim { retry } => {
            let asked = ClaimRequest {
                recovery: if retry {
                    Recovery::Retry
                } else {
                    Recovery::Operator
                },
                lease: LEASE_HOURS * HOUR,
                attempts_max: ATTEMPTS_MAX,
                ..request(&scope("k"))
            };
            return match store.claim(&asked).await.expect("memory answers") {
                ClaimAnswer::Ours(_) => "ours",
                ClaimAnswer::Held(_) => "held",
                ClaimAnswer::Exhausted { .. } => "exhausted",
                ClaimAnswer::Over(_) => "over",
                ClaimAnswer::Erased => "erased",
            };
        }
        Step::Settle { behind, end } => {
            let claim = Claim {
                scope: scope("k"),
                attempt: attempt.saturating_sub(behind),
            };
            settle(&claim, end.outcome(), record)
        }
        Step::Take { behind, end } => {
            let after = attempt.saturating_sub(behind);
            take(&scope("k"), after, end.outcome(), record)
        }
    };
    match store.commit(commit).await.expect("memory answers") {
        CommitAnswer::Committed => "committed",
        CommitAnswer::Held(_) => "held",
        CommitAnswer::Fenced => "fenced",
        CommitAnswer::Moved { .. } => "moved",
        CommitAnswer::Lapsed => "lapsed",
        CommitAnswer::Erased => "erased",
    }
}

async fn shown(store: &MemoryStore) -> Option<(u32, &'static str)> {
    let held = store.lookup(&scope("k")).await.expect("memory answers")?;
    let state = match held.state {
        HeldState::Running { .. } => "running",
        HeldState::Abandoned => "abandoned",
        HeldState::Released => "released",
        HeldState::Succeeded(_) | HeldState::Failed(_) => "settled",
        HeldState::InDoubt => "in_doubt",
        HeldState::Expired => "expired",
    };
    Some((held.attempt, state))
}

fn step() -> impl Strategy<Value = Step> {
    let behind = || prop_oneof![4 => Just(0), 1 => Just(1_u32)];
    let free = || prop_oneof![1 => Just(End::Done), 3 => Just(End::Free)];
    let end = prop_oneof![4 => free(), 1 => Just(End::Doubt)];
    let hours = prop_oneof![4 => 0..3_u32, 1 => Just(24 * 30)];
    prop_oneof![
        4 => any::<bool>().prop_map(|retry| Step::Claim { retry }),
        3 => (behind(), end).prop_map(|(behind, end)| Step::Settle { behind, end }),
        2 => (behind(), free()).prop_map(|(behind, end)| Step::Take { behind, end }),
        2 => Just(Step::Sweep),
        3 => hours.prop_map(Step::Hours),
    ]
}

proptest! {
    /// A17, A18: whatever happens to a key, its answers are those of the drawn state machine.
    #[test]
    fn claims_go_by_the_drawn_state_machine(steps in vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("no threads");
        let clock = super::clock();
        let store = MemoryStore::with_clock(clock.clone()).keeping_log();
        let mut reference = Reference::default();
        for (n, step) in steps.into_iter().enumerate() {
            let (attempt, record) = (reference.attempt, format!("ev_{n}"));
            let real = runtime.block_on(answer(&store, &clock, step, attempt, &record));
            prop_assert_eq!(real, reference.step(step), "{:?}", step);
            prop_assert_eq!(runtime.block_on(shown(&store)), reference.shown(), "{:?}", step);
        }
    }
}
