//! The points at which a worker dies: before or after an operation of the store, or inside its tool.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::BoxFuture;
use countersign::ledger::Store;
use countersign_testkit::faulty::{FaultyStore, Op, When};
use rustix::process::{Signal, getpid, kill_process};

/// A point in the path of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Before or after an operation of the store.
    Store(Op, When),
    /// In the tool, before its effect.
    BeforeEffect,
    /// In the tool, after its effect and before it answers.
    AfterEffect,
    /// After the call is answered, before the answer is written out.
    BeforeTelling,
}

impl Point {
    /// Every point, in the order in which a call passes them.
    pub const ALL: [Self; 15] = [
        Self::Store(Op::Keys, When::Before),
        Self::Store(Op::Keys, When::After),
        Self::Store(Op::Lookup, When::Before),
        Self::Store(Op::Lookup, When::After),
        Self::Store(Op::Claim, When::Before),
        Self::Store(Op::Claim, When::After),
        Self::Store(Op::Reserve, When::Before),
        Self::Store(Op::Reserve, When::After),
        Self::Store(Op::Read, When::Before),
        Self::Store(Op::Read, When::After),
        Self::BeforeEffect,
        Self::AfterEffect,
        Self::Store(Op::Commit, When::Before),
        Self::Store(Op::Commit, When::After),
        Self::BeforeTelling,
    ];
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Self::ALL.iter().position(|point| point == self);
        write!(f, "{}", place.unwrap_or(Self::ALL.len()))
    }
}

impl FromStr for Point {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let place: usize = text.parse()?;
        let point = Self::ALL.get(place).copied();
        point.ok_or_else(|| anyhow::anyhow!("there are {} points", Self::ALL.len()))
    }
}

/// The end of a worker at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The process is gone, as by `kill -9`.
    Death,
    /// The process is stopped until the driver resumes it.
    Pause,
}

/// A planned end: death or pause after a number of passes of a point.
#[derive(Debug, Clone)]
pub struct Fate {
    point: Option<Point>,
    end: End,
    left: Arc<AtomicU32>,
}

impl Fate {
    /// Plans the end for the `nth` pass of `point`; never if there is no point.
    pub fn new(point: Option<Point>, nth: u32, end: End) -> Self {
        Self {
            point,
            end,
            left: Arc::new(AtomicU32::new(nth.max(1))),
        }
    }

    /// Passes a point. On the planned pass the process dies or pauses.
    pub fn pass(&self, point: Point) {
        if self.point == Some(point) && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            match self.end {
                End::Death => die(),
                End::Pause => pause(),
            }
        }
    }

    /// Wraps a store so that its operations are points.
    pub fn over(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let fate = self.clone();
        let plan = move |op, when| -> BoxFuture<'static, bool> {
            fate.pass(Point::Store(op, when));
            Box::pin(std::future::ready(false))
        };
        Arc::new(FaultyStore::new(store, plan))
    }
}

/// Ends the process as `kill -9` does: nothing is written, closed or unlocked.
fn die() {
    // A process that could not kill itself would spoil the count, so it stays here until the driver kills it.
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}

/// Stops every thread, in the middle of the call, until the driver resumes the process.
///
/// The signal goes to the process, and the kernel may stop this thread a moment after the others. So this thread also
/// waits for the driver's line.
fn pause() {
    let _ = kill_process(getpid(), Signal::STOP);
    let _ = std::io::stdin().read_line(&mut String::new());
}
