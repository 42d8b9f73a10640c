//! `kill -9` at every point and at any moment, until every call has been answered nevertheless.

use anyhow::Result;

use super::check::Verdict;
use super::{Arena, Start, Tally, check};
use crate::point::Point;
use crate::tools::Kind;

/// A plan of kills.
pub struct Kills<'a> {
    /// The program, store and ledger of the workers.
    pub arena: &'a Arena,
    /// The tool that they call.
    pub kind: Kind,
    /// The number of kills.
    pub kills: u32,
    /// Seed of the random numbers; the same seed repeats a run.
    pub seed: u64,
    /// Makes the leases of dead owners expire, instead of waiting for the clock; called every few rounds.
    pub expire_leases: &'a dyn Fn() -> Result<()>,
    /// Called after each kill.
    pub progress: &'a dyn Fn(),
}

/// The number of keys of one worker.
const KEYS: u32 = 12;

/// The number of workers that run, and may die, over the same keys.
const ROUNDS: u32 = 4;

/// Kills workers and checks the result; returns the number of keys and the verdict.
pub fn kills(plan: &Kills<'_>) -> Result<(u32, Verdict)> {
    let mut dice = Dice(plan.seed | 1);
    let mut tally = Tally::default();
    let (mut killed, mut round) = (0, 0);
    while killed < plan.kills {
        let from = round / ROUNDS * KEYS;
        let mut start = Start::new(plan.kind, from..from + KEYS);
        start.turn = dice.below(KEYS);
        let was_killed = if dice.below(2) == 0 {
            let point = Point::ALL.get(dice.below(Point::ALL.len() as u32) as usize);
            start.die = point.map(|point| (*point, 1 + dice.below(KEYS)));
            plan.arena.run(&start, &mut tally)?
        } else {
            let mut running = plan.arena.start(&start)?;
            running.wait_for(dice.below(KEYS) as usize, &mut tally)?;
            running.kill()?;
            running.finish(&mut tally)?
        };
        if was_killed {
            killed += 1;
            (plan.progress)();
        }
        round += 1;
        if round % ROUNDS == ROUNDS / 2 {
            (plan.expire_leases)()?;
        }
    }
    let keys = (round / ROUNDS + 1) * KEYS;
    let start = Start::new(plan.kind, 0..keys);
    let verdict = check(plan.arena, &start, &mut tally, plan.expire_leases)?;
    Ok((keys, verdict))
}

/// Random numbers that a seed repeats (xorshift).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 32) % u64::from(limit.max(1))).unwrap_or_default()
    }
}
