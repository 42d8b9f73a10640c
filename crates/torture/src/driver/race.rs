//! Many processes on one PostgreSQL, all with the same keys.

use anyhow::Result;

use super::check::Verdict;
use super::{Arena, Start, Tally, check};
use crate::tools::Kind;

/// A plan of a race.
pub struct Race<'a> {
    /// The program, store and ledger of the workers.
    pub arena: &'a Arena,
    /// The tool that they call.
    pub kind: Kind,
    /// The number of processes.
    pub processes: u32,
    /// The number of keys; every process calls each of them.
    pub keys: u32,
    /// The user that calls, and so the owner of the keys.
    pub user: &'a str,
    /// True if all calls count in one document.
    pub together: bool,
    /// Makes leases expire, instead of waiting for the clock.
    pub expire_leases: &'a dyn Fn() -> Result<()>,
    /// A disturbance during the race, such as a restart of the server; called until it returns true.
    pub meanwhile: &'a mut dyn FnMut() -> Result<bool>,
}

/// Lets processes race and checks the result.
pub fn race(plan: &mut Race<'_>) -> Result<(Tally, Verdict)> {
    let mut start = Start::new(plan.kind, 0..plan.keys);
    plan.user.clone_into(&mut start.user);
    start.together = plan.together;
    let mut running = Vec::new();
    for process in 0..plan.processes {
        // Each begins elsewhere, so that every key is called first by some process.
        start.turn = process * plan.keys / plan.processes.max(1);
        running.push(plan.arena.start(&start)?);
    }
    while !(plan.meanwhile)()? {}
    let mut tally = Tally::default();
    for worker in running {
        worker.finish(&mut tally)?;
    }
    start.turn = 0;
    let verdict = check(plan.arena, &start, &mut tally, plan.expire_leases)?;
    Ok((tally, verdict))
}
