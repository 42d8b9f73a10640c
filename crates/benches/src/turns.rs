//! Several ways to the same end, measured in turns: one round of each after the other, so that whatever else the machine does falls
//! on all of them. Wall time depends on that, so each round has the CPU time of the processes beside it.

use std::io::Result;
use std::time::Duration;

use crate::load::{Bound, Talk, measure};
use crate::process::Server;

/// Longest time of one round: a slow way is measured with fewer calls, not for hours.
pub const ROUND_MAX: Duration = Duration::from_secs(5);

/// A way that is measured.
pub struct Way<'s> {
    /// Its name in the table.
    pub name: &'static str,
    /// The process that is asked.
    pub front: &'s Server,
    /// Further processes that work for it.
    pub behind: Vec<&'s Server>,
    /// What is asked.
    pub talk: Talk,
}

/// One round of a way.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Median time of a call, in microseconds.
    pub p50: f64,
    /// Time within which 99 of 100 calls were answered, in microseconds.
    pub p99: f64,
    /// CPU time of all its processes for one call, in microseconds.
    pub cpu: f64,
    /// Calls a second.
    pub rate: f64,
}

impl Way<'_> {
    fn cpu(&self) -> Result<Duration> {
        let mut spent = self.front.cpu()?;
        for server in &self.behind {
            spent += server.cpu()?;
        }
        Ok(spent)
    }

    async fn round(&self, connections: u64, each: u64) -> Result<Round> {
        let before = self.cpu()?;
        let bound = Bound {
            each,
            within: ROUND_MAX,
        };
        let measured = measure(self.front.address, connections, bound, &self.talk).await?;
        let spent = self.cpu()?.saturating_sub(before);
        let mut times = measured.times;
        times.sort_unstable();
        let at = |percent: usize| {
            let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times.get(place).copied().unwrap_or_default().as_secs_f64() * 1e6
        };
        let count = f64::from(u32::try_from(times.len()).unwrap_or(u32::MAX));
        Ok(Round {
            p50: at(50),
            p99: at(99),
            cpu: spent.as_secs_f64() * 1e6 / count,
            rate: count / measured.took.as_secs_f64(),
        })
    }
}

/// Rounds of every way, in turns. The first round warms everything up and does not count.
pub async fn in_turns(
    ways: &[Way<'_>],
    connections: u64,
    rounds: usize,
    requests: u64,
) -> Result<Vec<Vec<Round>>> {
    let each = (requests / connections).max(1);
    let mut measured = vec![Vec::new(); ways.len()];
    for round in 0..=rounds {
        for (way, measured) in ways.iter().zip(&mut measured) {
            let one = way.round(connections, each).await?;
            if round > 0 {
                measured.push(one);
            }
        }
    }
    Ok(measured)
}

/// The middle of some numbers, and the smallest and largest of them.
pub fn spread(numbers: impl IntoIterator<Item = f64>) -> [f64; 3] {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    let at = |place: usize| numbers.get(place).copied().unwrap_or_default();
    [
        at(numbers.len() / 2),
        at(0),
        at(numbers.len().saturating_sub(1)),
    ]
}
