//! Clocks that lie, at every start and while the store is open, forward and back: nothing is lost, nothing runs twice,
//! and no jump goes unnoticed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use countersign::archive::verify::Verification;
use countersign::archive::{Archive, SCOPE_ERASE};
use countersign::clock::Clock;
use countersign::contract::{ReplyEnvelope, RequestEnvelope, SnapshotId};
use countersign::ids::RandomIds;
use countersign::ledger::{Disposal, Log as _, Vitals as _};
use countersign::retention::RetentionPlan;
use countersign::sequencer::{LastStop, Sequencer};
use countersign::{Executor, Principal, ToolCall};
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::driver::Dice;
use crate::point::{End, Fate};
use crate::tools::{self, Kind};
use crate::worker::MASTER;

/// Expected and forbidden effects of a run.
#[derive(Debug, Default)]
pub struct Clocks {
    /// Starts, each with a clock of its own.
    pub starts: u32,
    /// Times at which a clock was too far off to be believed.
    pub jumps: u32,
    /// Calls that were answered.
    pub calls: u32,
    /// Payloads that are gone before their time.
    pub lost: u32,
    /// Calls that ran a second time under their key.
    pub doubled: u32,
    /// Unexpected answers, and a log that does not verify.
    pub wrong: u32,
    /// Jumps that the store did not tell of, or in spite of which something was removed.
    pub unnoticed: u32,
    /// Each violation in words.
    pub violations: Vec<String>,
}

/// Errors of a clock, in hours: none, an hour, and from some days to ten years.
const LIES: [i64; 10] = [0, 0, 0, -1, -960, 960, 26_280, -26_280, 87_600, -87_600];

/// An error from which on it has to be noticed, in hours: the longest time without a believed clock is less.
const NOTICED: i64 = 120;

/// New keys of one start.
const KEYS: u32 = 6;

/// A clock that tells the truth, and a lie beside it. Time that passes is always the truth.
struct Lying {
    start: Timestamp,
    passed_hours: AtomicI64,
    lie_hours: AtomicI64,
}

impl Lying {
    fn truth(&self) -> Timestamp {
        self.start + SignedDuration::from_hours(self.passed_hours.load(Ordering::SeqCst))
    }
}

impl Clock for Lying {
    fn now(&self) -> Timestamp {
        self.truth() + SignedDuration::from_hours(self.lie_hours.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        let hours = self.passed_hours.load(Ordering::SeqCst);
        Duration::from_hours(u64::try_from(hours).unwrap_or_default())
    }
}

/// A run in one SQLite file.
struct Run<'a> {
    file: &'a Path,
    ledger: &'a Path,
    clock: Arc<Lying>,
    dice: Dice,
    /// The payloads, and when they were really written.
    written: BTreeMap<SnapshotId, Timestamp>,
    keys: u32,
    report: Clocks,
}

/// Starts this often, each time with a clock that may lie, and calls new and old keys.
pub async fn clocks(folder: &Path, starts: u32, seed: u64) -> Result<Clocks> {
    let clock = Lying {
        start: "2026-11-15T12:00:00Z".parse()?,
        passed_hours: AtomicI64::new(0),
        lie_hours: AtomicI64::new(0),
    };
    let mut run = Run {
        file: &folder.join("clocks.db"),
        ledger: &folder.join("effects"),
        clock: Arc::new(clock),
        dice: Dice(seed | 1),
        written: BTreeMap::new(),
        keys: 0,
        report: Clocks::default(),
    };
    for _ in 0..starts {
        run.start().await?;
    }
    run.end().await?;
    Ok(run.report)
}

/// A store with what works on it.
struct Open {
    store: Arc<SqliteStore>,
    executor: Executor,
    sequencer: Sequencer,
    archive: Archive,
}

impl Run<'_> {
    async fn open(&self) -> Result<Open> {
        let options = SqliteOptions {
            clock: self.clock.clone(),
            ..SqliteOptions::default()
        };
        let store = Arc::new(SqliteStore::open(self.file, options)?);
        let fate = Fate::new(None, 1, End::Death);
        let ids = Arc::new(RandomIds::new(self.clock.clone()));
        let executor = Executor::builder(tools::catalog(self.ledger, &fate)?)
            .store(store.clone())
            .clock(self.clock.clone())
            .ids(ids.clone())
            .kms(Arc::new(MasterKey::from_bytes(&MASTER)))
            .build();
        let key = SigningKey::from_seed("example.com/clocks", &[7; 32])?;
        let archive = Archive::new(
            store.clone(),
            executor.vault().clone(),
            self.clock.clone(),
            ids.clone(),
            key.verifying_key(),
        );
        let sequencer = Sequencer::builder(store.clone(), key)
            .clock(self.clock.clone())
            .ids(ids)
            .start(LastStop::default())
            .await?;
        Ok(Open {
            store,
            executor,
            sequencer,
            archive,
        })
    }

    fn lie(&mut self) -> i64 {
        let which = self.dice.below(LIES.len() as u32) as usize;
        let lie = LIES.get(which).copied().unwrap_or_default();
        self.clock.lie_hours.store(lie, Ordering::SeqCst);
        lie
    }

    async fn start(&mut self) -> Result<()> {
        let hours = 1 + i64::from(self.dice.below(20));
        self.clock.passed_hours.fetch_add(hours, Ordering::SeqCst);
        // A first clock has nothing that it could contradict.
        let is_first = self.report.starts == 0;
        let lie = if is_first { 0 } else { self.lie() };
        let mut open = self.open().await?;
        self.report.starts += 1;
        self.look(&open, lie).await?;
        for _ in 0..KEYS {
            self.keys += 1;
            self.call(&open, self.keys).await;
            let earlier = 1 + self.dice.below(self.keys);
            self.call(&open, earlier).await;
        }
        // Now it lies while it runs.
        let lie = self.lie();
        self.look(&open, lie).await?;
        open.sequencer.tick().await?;
        Ok(())
    }

    /// Maintains the store by a clock that is so many hours off, and looks whether that is noticed.
    async fn look(&mut self, open: &Open, lie: i64) -> Result<()> {
        if lie == 0 {
            // Lies may have kept the clock from being believed for days: then an operator looks at it.
            believe(&open.archive).await?;
        }
        let disposal = open.sequencer.maintain().await?.disposal;
        let passage = open.store.vitals().await?.passage;
        let has_jumped = passage.is_some_and(|passage| passage.jump().is_some());
        self.report.jumps += u32::from(has_jumped);
        let is_removed = matches!(disposal, Disposal::Done(done) if !done.is_empty());
        if lie.abs() >= NOTICED && (!has_jumped || is_removed) {
            self.report.unnoticed += 1;
            self.violation(format!(
                "a clock that is {lie} hours off was believed: {disposal:?}"
            ));
        }
        Ok(())
    }

    async fn call(&mut self, open: &Open, key: u32) {
        let envelope = RequestEnvelope {
            idempotency_key: Some(format!("k{key}")),
            ..RequestEnvelope::default()
        };
        let arguments = json!({ "n": key }).to_string();
        let call = ToolCall::new(
            Kind::Write.tool(),
            arguments,
            Principal::user("u_1".to_owned()),
        );
        let reply = open.executor.execute(call.envelope(envelope)).await;
        self.report.calls += 1;
        if reply.ok {
            if reply.data.get("count") != Some(&json!(1)) {
                self.report.doubled += 1;
                self.violation(format!("key {key} ran again: {}", reply.data));
            }
        } else if !is_expired(&reply) {
            self.report.wrong += 1;
            self.violation(format!("key {key}: {:?}", reply.error));
        }
        if let Some(evidence) = reply.evidence {
            self.written
                .insert(evidence.snapshot_id, self.clock.truth());
        }
    }

    /// Tells the truth at last, and counts what is gone.
    async fn end(&mut self) -> Result<()> {
        self.clock.lie_hours.store(0, Ordering::SeqCst);
        let mut open = self.open().await?;
        believe(&open.archive).await?;
        open.store.flush().await?;
        open.sequencer.tick().await?;
        let short = RetentionPlan::default().short.context("it has an end")?;
        let kept_for = SignedDuration::try_from(short)? - SignedDuration::from_hours(72);
        let truth = self.clock.truth();
        for (id, at) in std::mem::take(&mut self.written) {
            let stored = open.store.record(&id).await?;
            let is_there = stored.is_some_and(|stored| stored.payload.is_some());
            if truth < at + kept_for && !is_there {
                self.report.lost += 1;
                self.violation(format!("the payload of {id}, written at {at}, is gone"));
            }
        }
        let whole = Verification::default();
        let report = open.archive.verify_all(&whole, |_, _| {}).await?;
        if !report.is_valid() {
            self.report.wrong += 1;
            self.violation(format!("the log does not verify: {:?}", report.findings));
        }
        Ok(())
    }

    fn violation(&mut self, what: String) {
        self.report.violations.push(what);
    }
}

/// Has an operator say that the clock is right.
async fn believe(archive: &Archive) -> Result<()> {
    let operator = Principal::user("operator").scope(SCOPE_ERASE);
    archive
        .trust_clock(&operator, "compared with a watch")
        .await?;
    Ok(())
}

/// True if the key is refused because its answer is past its retention, by whatever clock.
fn is_expired(reply: &ReplyEnvelope) -> bool {
    let reason = reply.error.as_ref().and_then(|error| error.details.reason);
    reason.is_some_and(|reason| reason.as_str() == "key_expired")
}
