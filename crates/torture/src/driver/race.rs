//! Many processes on one PostgreSQL, all with the same keys.

use anyhow::Result;

use super::check::Verdict;
use super::{Arena, Start, Tally, check};
use crate::tools::Kind;

/// Who races for what.
pub struct Race<'a> {
    /// Where.
    pub arena: &'a Arena,
    /// Which tool.
    pub kind: Kind,
    /// How many processes.
    pub processes: u32,
    /// How many keys, each called by every process.
    pub keys: u32,
    /// Whose keys they are.
    pub user: &'a str,
    /// Whether all calls count in one document.
    pub together: bool,
    /// Makes leases end, where a clock would have to.
    pub expire_leases: &'a dyn Fn() -> Result<()>,
    /// Something that happens while they race, such as a restart of the server; called until it says
    /// that it is done.
    pub meanwhile: &'a mut dyn FnMut() -> Result<bool>,
}

/// Lets processes race and checks what is left.
pub fn race(plan: &mut Race<'_>) -> Result<(Tally, Verdict)> {
    let mut start = Start::new(plan.kind, 0..plan.keys);
    plan.user.clone_into(&mut start.user);
    start.together = plan.together;
    let mut running = Vec::new();
    for process in 0..plan.processes {
        // Each begins elsewhere, so that every key is somebody's first.
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
