//! The invariants that hold at the end of a run, whatever was killed and when.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use serde_json::Value;

use super::{Arena, Start};
use crate::tools::Kind;
use crate::worker::{self, Told};

/// All answers of the workers.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of answers.
    pub answers: usize,
    /// The first success of each key.
    pub succeeded: BTreeMap<u32, Value>,
    /// The violations found so far: two answers for one key, or a failure that a caller cannot act on.
    pub wrong: Vec<String>,
}

impl Tally {
    /// Counts an answer.
    pub fn told(&mut self, told: &Told) {
        self.answers += 1;
        if told.ok {
            let first = self
                .succeeded
                .entry(told.key)
                .or_insert_with(|| told.data.clone());
            if *first != told.data {
                let key = told.key;
                self.wrong
                    .push(format!("key {key}: answered {first} and {}", told.data));
            }
        } else if !is_honest(told) {
            self.wrong
                .push(format!("an answer nobody expects: {told:?}"));
        }
    }
}

/// True for a failure that a caller can act on: the key is in use or in doubt, or the store is unavailable for a
/// moment.
fn is_honest(told: &Told) -> bool {
    match told.code.as_deref() {
        Some("CONFLICT") => matches!(
            told.reason.as_deref(),
            Some("in_flight" | "in_doubt" | "version")
        ),
        // Not retryable are those that only an operator can settle; the last pass finds each such key in doubt.
        Some("UPSTREAM_ERROR" | "TIMEOUT") => true,
        Some(_) | None => false,
    }
}

/// The result of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Keys that ended with an answer.
    pub succeeded: usize,
    /// Keys whose calls are answered as in doubt.
    pub in_doubt: usize,
    /// The violations; empty if there are none.
    pub wrong: Vec<String>,
}

/// Calls every key once more, without disturbance, and compares. A server may still do what a dead process has asked it
/// for, so a key that is in flight is called again after `expire_leases` has let time pass.
pub fn check(
    arena: &Arena,
    start: &Start,
    tally: &mut Tally,
    expire_leases: &dyn Fn() -> Result<()>,
) -> Result<Verdict> {
    let mut verdict = Verdict {
        wrong: std::mem::take(&mut tally.wrong),
        ..Verdict::default()
    };
    let mut ends = BTreeMap::new();
    for _ in 0..PASSES_MAX {
        expire_leases()?;
        let mut last = Tally::default();
        let running = arena.start(start)?;
        while let Ok(line) = running.lines.recv() {
            let told = super::parse(&line)?;
            last.told(&told);
            ends.insert(told.key, told);
        }
        verdict.wrong.append(&mut last.wrong);
        if running.finish(&mut last)? {
            verdict.wrong.push("a worker died in peace".to_owned());
        }
        let is_flying = |told: &Told| told.reason.as_deref() == Some("in_flight");
        if !ends.values().any(is_flying) {
            break;
        }
    }
    let effects = match start.kind {
        // Counted by the answer itself: the counter that was committed with it.
        Kind::Write | Kind::ConfirmedWrite => ends
            .iter()
            .filter_map(|(key, told)| {
                let count = told.data.get("count")?.as_u64()?;
                Some((*key, usize::try_from(count).ok()?))
            })
            .collect(),
        Kind::Operator
        | Kind::Retry
        | Kind::Downstream
        | Kind::Reconcile
        | Kind::ConfirmedDownstream => arena.effects(start.kind)?,
    };
    for (key, answers) in arena.approvals(start.kind)? {
        if answers > 1 {
            let wrong = format!("key {key}: the user had to confirm {answers} times");
            verdict.wrong.push(wrong);
        }
    }
    for key in start.keys.clone() {
        let effects = effects.get(&key).copied().unwrap_or_default();
        let told = ends.get(&key);
        verdict.one(start, key, effects, told, tally.succeeded.get(&key));
    }
    expire_leases()?;
    let spent = money(&arena.store, &start.user, start.kind)?;
    verdict.adds_up(spent);
    Ok(verdict)
}

/// The amounts that the pot of a tool has reserved and spent, after the claims of lost owners are swept. Every call
/// costs one.
fn money(store: &str, user_id: &str, kind: Kind) -> Result<(i64, i64)> {
    let look = async {
        let store = worker::open(store).await?;
        while !store.sweep(1_000).await?.is_empty() {}
        let pots = store.pots(Some(user_id), 1_000).await?;
        let pot = pots.into_iter().find(|pot| pot.key.name == kind.tool());
        Ok(pot.map_or((0, 0), |pot| (pot.reserved, pot.spent)))
    };
    // On a thread of its own: the caller may be inside a runtime already.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(look)
        });
        thread
            .join()
            .map_err(|_| anyhow!("the thread has panicked"))?
    })
}

/// Maximum number of final passes over keys that are in flight.
const PASSES_MAX: usize = 20;

impl Verdict {
    /// Checks that every success is paid for once, and that every call in doubt still has its reservation.
    pub(crate) fn adds_up(&mut self, (reserved, spent): (i64, i64)) {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let expected = (count(self.in_doubt), count(self.succeeded));
        if (reserved, spent) != expected {
            self.wrong.push(format!(
                "{spent} was spent for {} calls that succeeded, {reserved} is set aside for {} in doubt",
                self.succeeded, self.in_doubt
            ));
        }
    }

    pub(crate) fn one(
        &mut self,
        start: &Start,
        key: u32,
        effects: usize,
        told: Option<&Told>,
        acknowledged: Option<&Value>,
    ) {
        let Some(told) = told else {
            self.wrong.push(format!("key {key}: no answer at the end"));
            return;
        };
        let is_in_doubt = told.reason.as_deref() == Some("in_doubt");
        self.succeeded += usize::from(told.ok);
        self.in_doubt += usize::from(is_in_doubt);
        if let Some(first) = acknowledged
            && (!told.ok || told.data != *first)
        {
            let lost = format!("key {key}: {first} was acknowledged, at the end it is {told:?}");
            self.wrong.push(lost);
        }
        if told.ok && effects == 0 {
            self.wrong
                .push(format!("key {key}: succeeded without an effect"));
        }
        // Running it twice does no harm there, so only there it may have happened twice.
        let may_repeat = match start.kind {
            Kind::Retry | Kind::Downstream | Kind::ConfirmedDownstream => true,
            Kind::Write | Kind::Operator | Kind::Reconcile | Kind::ConfirmedWrite => false,
        };
        if effects > 1 && !may_repeat && !start.together {
            self.wrong.push(format!("key {key}: {effects} effects"));
        }
        let may_be_in_doubt = match start.kind {
            Kind::Operator => true,
            Kind::Downstream | Kind::ConfirmedDownstream => start.outlasts_windows,
            Kind::Write | Kind::Retry | Kind::Reconcile | Kind::ConfirmedWrite => false,
        };
        if !(told.ok || (is_in_doubt && may_be_in_doubt)) {
            self.wrong.push(format!("key {key}: ended as {told:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(ok: bool, reason: Option<&str>, data: Value) -> Told {
        Told {
            key: 7,
            ok,
            code: (!ok).then(|| "CONFLICT".to_owned()),
            reason: reason.map(str::to_owned),
            retryable: false,
            data,
            replayed: true,
        }
    }

    #[track_caller]
    fn check_one(
        kind: Kind,
        effects: usize,
        end: &Told,
        acknowledged: Option<&Value>,
        wrong: &[&str],
    ) {
        let mut verdict = Verdict::default();
        let start = Start::new(kind, 7..8);
        verdict.one(&start, 7, effects, Some(end), acknowledged);
        let found: Vec<_> = verdict.wrong.iter().map(String::as_str).collect();
        assert_eq!(found.len(), wrong.len(), "{found:?}");
        for (found, wrong) in found.iter().zip(wrong) {
            assert!(found.contains(wrong), "{found}");
        }
    }

    /// The drivers can fail: they find every violation.
    #[test]
    fn a_lost_a_doubled_and_a_made_up_effect_are_found() {
        let (one, other) = (json!({"n": 1}), json!({"n": 2}));
        let good = told(true, None, one.clone());
        check_one(Kind::Operator, 1, &good, Some(&one), &[]);
        check_one(Kind::Operator, 2, &good, None, &["2 effects"]);
        check_one(Kind::Reconcile, 2, &good, None, &["2 effects"]);
        check_one(Kind::Downstream, 2, &good, None, &[]);
        check_one(Kind::Write, 0, &good, None, &["without an effect"]);
        check_one(Kind::Write, 1, &good, Some(&other), &["acknowledged"]);
        let doubt = told(false, Some("in_doubt"), Value::Null);
        check_one(Kind::Operator, 1, &doubt, None, &[]);
        check_one(Kind::Operator, 1, &doubt, Some(&one), &["acknowledged"]);
        check_one(Kind::Retry, 1, &doubt, None, &["ended as"]);
        let flying = told(false, Some("in_flight"), Value::Null);
        check_one(Kind::Operator, 1, &flying, None, &["ended as"]);
    }

    #[test]
    fn money_that_does_not_add_up_is_found() {
        for (spent, is_wrong) in [((1, 2), false), ((0, 2), true), ((1, 3), true)] {
            let mut verdict = Verdict {
                succeeded: 2,
                in_doubt: 1,
                ..Verdict::default()
            };
            verdict.adds_up(spent);
            assert_eq!(!verdict.wrong.is_empty(), is_wrong, "{spent:?}");
        }
    }

    #[test]
    fn two_answers_for_one_key_and_dishonest_errors_are_found() {
        let mut tally = Tally::default();
        tally.told(&told(true, None, json!(1)));
        tally.told(&told(true, None, json!(2)));
        tally.told(&told(false, Some("key_reused"), Value::Null));
        assert_eq!(tally.wrong.len(), 2, "{:?}", tally.wrong);
    }
}
