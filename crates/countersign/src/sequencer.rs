//! The sequencer: integrates committed records into the tree and signs checkpoints.
//!
//! A signer must never sign two histories. So before each signature the tree has to be the continuation of the newest
//! known checkpoint: the one that the operator kept outside of the store, the one in the store, and the ones signed
//! since. A store that was rolled back to a backup, or rewritten, is refused, and the error says what was found.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::envelope::CheckpointRef;
use countersign_contract::{Digest, RecordKind, Retention};
use countersign_evidence::checkpoint::{Checkpoint, CheckpointError};
use countersign_evidence::note::SigningKey;
use countersign_evidence::tile::TileWriter;
use countersign_evidence::tree;
use serde_json::{Value, json};

use crate::archive::growth::{NotGrown, grown, tiles};
use crate::clock::{Clock, SystemClock};
use crate::ids::{IdSource, RandomIds};
use crate::ledger::{
    self, Disposal, Durability, Entry, Head, Integration, Sequencing, Store, Swept,
};
use crate::newest::NewestCheckpoint;
use crate::scribe::{Act, Draft};

mod maintain;
mod prompt;
mod run;

pub use prompt::Prompt;

/// Errors for which nothing is signed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed. Usually the database cannot be reached, or the disk is full.
    #[error(transparent)]
    Store(#[from] ledger::Error),
    /// The tree does not continue the signed one. Usually an old backup was put back.
    #[error("the evidence log cannot be signed: {0}")]
    NotGrown(NotGrown),
    /// The checkpoint that the operator kept is not one of this log. Usually it belongs to another log key.
    #[error("the checkpoint outside of the store is not valid: {0}")]
    Held(CheckpointError),
    /// The newest checkpoint in the store is not one of this log. Usually the store belongs to another log key.
    #[error("the newest checkpoint in the store is not valid: {0}")]
    Stored(CheckpointError),
    /// The key cannot sign for this log. Usually the key in use is that of another log.
    #[error("the checkpoint cannot be signed: {0}")]
    Sign(CheckpointError),
    /// The checkpoint could not be written outside of the store; it is not published before that.
    /// Usually the disk of the data folder is full, or the folder is not writable.
    #[error("the checkpoint could not be kept outside of the store")]
    NotKept(#[source] BoxError),
}

/// Error of the callback that keeps checkpoints.
pub type BoxError = Box<dyn StdError + Send + Sync>;

type Keep = Box<dyn Fn(&str) -> Result<(), BoxError> + Send + Sync>;

/// State of the last run's end, as the operator knows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastStop<'a> {
    /// The newest signed note that was kept outside of the store.
    pub held: Option<&'a str>,
    /// True if the last run did not end in order: then records of plain reads may be missing.
    pub is_unclean: bool,
}

/// Builder for a [`Sequencer`].
pub struct SequencerBuilder {
    store: Arc<dyn Store>,
    key: SigningKey,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    sequencing: Sequencing,
    newest: NewestCheckpoint,
    keep: Keep,
    prompt: Prompt,
    is_brief: bool,
}

/// Integrates records and signs checkpoints. One for each process; the store's lease lets one of them work at a time.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use countersign::ledger::MemoryStore;
/// use countersign::sequencer::{LastStop, Sequencer, Tick};
/// use countersign_evidence::note::SigningKey;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Arc::new(MemoryStore::new().keeping_log());
/// let key = SigningKey::from_seed("example.com/log", &[7; 32])?;
/// let stop = LastStop { held: None, is_unclean: true };
/// let mut sequencer = Sequencer::builder(store, key).start(stop).await?;
/// assert!(matches!(sequencer.tick().await?, Tick::Grown { added: 1, .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sequencer {
    parts: SequencerBuilder,
    /// The newest known checkpoint; the tree has to grow from here.
    known: Option<Checkpoint>,
    /// The size of the newest checkpoint of another process at the last look.
    followed: u64,
    /// True if the program's log says that the clock has jumped.
    has_jumped: bool,
    /// True if the clock was looked at since the start.
    has_looked: bool,
    /// Records of the start that could not be written yet, the last one first.
    owed: Vec<(RecordKind, Value)>,
}

/// Result of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tick {
    /// The tree has a new signed checkpoint.
    Grown {
        /// Number of records that this round has integrated.
        added: usize,
        /// The checkpoint.
        checkpoint: Checkpoint,
    },
    /// No record was waiting.
    Idle,
    /// Another process integrates; its newest checkpoint was taken over.
    NotOurs,
}

/// Result of maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Maintained {
    /// Counts of the claims' sweep.
    pub swept: Swept,
    /// What was removed because its time was over.
    pub disposal: Disposal,
}

/// Maximum number of records of one integration.
const BATCH: usize = 4_096;

impl SequencerBuilder {
    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of ids.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Sets the holder's name, which no other process has.
    pub fn holder(mut self, name: impl Into<String>) -> Self {
        self.sequencing.holder = name.into();
        self
    }

    /// Sets the lease: other processes take over only after this much silence.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.sequencing.lease = lease;
        self
    }

    /// Sets the shared cell for the newest checkpoint.
    pub fn newest(mut self, newest: NewestCheckpoint) -> Self {
        self.newest = newest;
        self
    }

    /// Sets a callback that gets every new signed note before it is published, to keep it outside of the store. If the
    /// callback fails, the checkpoint is not published and the next round tries again.
    pub fn on_checkpoint(
        mut self,
        keep: impl Fn(&str) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.keep = Box::new(keep);
        self
    }

    /// Sets a prompt, through which other tasks can ask for a round.
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompt = prompt;
        self
    }

    /// Leaves out the record of the start, for a process that runs one command; it is written only if the last run was
    /// lost.
    pub fn briefly(mut self) -> Self {
        self.is_brief = true;
        self
    }

    /// Checks that the store's tree is the continuation of everything that was signed, and writes the
    /// records of this start. Refuses to sign for any other tree.
    pub async fn start(self, last: LastStop<'_>) -> Result<Sequencer, Error> {
        let mut sequencer = Sequencer {
            parts: self,
            known: None,
            followed: 0,
            has_jumped: false,
            has_looked: false,
            owed: Vec::new(),
        };
        if !sequencer.parts.store.keeps_log() {
            return Ok(sequencer);
        }
        let key = sequencer.parts.key.verifying_key();
        let open = |note| Checkpoint::open(note, &key);
        let held = last.held.map(open).transpose().map_err(Error::Held)?;
        let stored = sequencer.parts.store.checkpoint().await?;
        let stored = stored.as_deref().map(open).transpose();
        let stored = stored.map_err(Error::Stored)?;
        let tree = sequencer.parts.store.head().await?;
        for checkpoint in [&held, &stored].into_iter().flatten() {
            sequencer.check_growth(checkpoint, &tree).await?;
        }
        sequencer.known = [held, stored].into_iter().flatten().max_by_key(|c| c.size);
        if let Some(known) = &sequencer.known {
            sequencer.parts.newest.set(short(known));
        }
        sequencer.owe_start(last.is_unclean);
        match sequencer.write_owed().await {
            // A store that takes no writes is still read, so the start is written down later.
            Err(error) if !error.is_final() => {
                let error = &error as &dyn StdError;
                tracing::warn!(error, "the start is not recorded yet; it is tried again");
            }
            written => written?,
        }
        Ok(sequencer)
    }
}

impl Sequencer {
    /// Signs the tree of this store with this key, whose name is the log's origin.
    pub fn builder(store: Arc<dyn Store>, key: SigningKey) -> SequencerBuilder {
        let clock = Arc::new(SystemClock::new());
        let ids = Arc::new(RandomIds::new(clock.clone()));
        let sequencing = Sequencing {
            // Two processes of one name would both believe that the lease is theirs.
            holder: ids.snapshot_id().to_string(),
            lease: Duration::from_secs(10),
        };
        SequencerBuilder {
            store,
            key,
            clock,
            ids,
            sequencing,
            newest: NewestCheckpoint::new(),
            keep: Box::new(|_| Ok(())),
            prompt: Prompt::default(),
            is_brief: false,
        }
    }

    /// The newest checkpoint that is known.
    pub fn known(&self) -> Option<&Checkpoint> {
        self.known.as_ref()
    }

    /// Integrates all waiting records, and signs the tree if it has grown.
    pub async fn tick(&mut self) -> Result<Tick, Error> {
        let mut added = 0;
        if !self.parts.store.keeps_log() {
            return Ok(Tick::Idle);
        }
        self.write_owed().await?;
        loop {
            let parts = &self.parts;
            let integrated = parts.store.integrate(&parts.sequencing, BATCH).await?;
            let (head, more) = match integrated {
                Integration::NotOurs => return self.follow().await.map(|()| Tick::NotOurs),
                Integration::Done { head, added } => (head, added),
            };
            added += more;
            if more < BATCH {
                return self.sign(&head, added).await;
            }
        }
    }

    async fn sign(&mut self, head: &Head, added: usize) -> Result<Tick, Error> {
        let parts = &self.parts;
        if let Some(known) = &self.known {
            self.check_growth(known, head).await?;
            if known.size == head.size {
                return Ok(Tick::Idle);
            }
        } else if head.size == 0 {
            return Ok(Tick::Idle);
        }
        let known = self.known.as_ref().map_or(0, |known| known.size);
        if head.size.saturating_sub(added as u64) > known {
            self.check_unsigned(known, head).await?;
        }
        let checkpoint = Checkpoint::new(parts.key.name(), head.size, head.root);
        let note = checkpoint.sign(&parts.key).map_err(Error::Sign)?;
        parts.store.add_checkpoint(head, &note).await?;
        self.publish(checkpoint.clone(), &note)?;
        Ok(Tick::Grown { added, checkpoint })
    }

    /// Takes over the newest checkpoint of another process, so that it cannot be taken back.
    async fn follow(&mut self) -> Result<(), Error> {
        let parts = &self.parts;
        let Some(note) = parts.store.checkpoint().await? else {
            return Ok(());
        };
        let theirs = Checkpoint::open(&note, &parts.key.verifying_key()).map_err(Error::Stored)?;
        let head = Head {
            size: theirs.size,
            root: theirs.root,
        };
        if let Some(known) = &self.known {
            self.check_growth(known, &head).await?;
            if known.size == theirs.size {
                return Ok(());
            }
        }
        self.publish(theirs, &note)
    }

    fn publish(&mut self, checkpoint: Checkpoint, note: &str) -> Result<(), Error> {
        (self.parts.keep)(note).map_err(Error::NotKept)?;
        self.parts.newest.set(short(&checkpoint));
        self.known = Some(checkpoint);
        Ok(())
    }

    /// Checks the leaves of the tree that no checkpoint covers, if other rounds or processes have added some of them: a
    /// tree that another program has grown is not signed.
    async fn check_unsigned(&self, from: u64, to: &Head) -> Result<(), Error> {
        let store = &*self.parts.store;
        let mut wanted = TileWriter::tiles_to_resume(from);
        wanted.extend(tree::tiles_for_frontier(from));
        let tiles = tiles(store, &wanted).await?;
        let damaged = || NotGrown::Damaged { size: to.size };
        let mut tree =
            TileWriter::resume(from, &tiles).map_err(|error| Error::NotGrown(error.into()))?;
        while tree.frontier().size() < to.size {
            let next = tree.frontier().size();
            let left = usize::try_from(to.size - next).unwrap_or(usize::MAX);
            let hashes = store.authenticated_leaves(next, left.min(BATCH)).await?;
            if hashes.is_empty() {
                return Err(Error::NotGrown(damaged()));
            }
            tree.append(&hashes);
        }
        if tree.frontier().root() == to.root {
            Ok(())
        } else {
            Err(Error::NotGrown(damaged()))
        }
    }

    async fn check_growth(&self, from: &Checkpoint, to: &Head) -> Result<(), Error> {
        match grown(&*self.parts.store, from, to).await {
            Ok(_) => Ok(()),
            Err(NotGrown::Store(error)) => Err(error.into()),
            Err(error) => Err(Error::NotGrown(error)),
        }
    }

    /// True if the records of the start could not be written yet.
    pub fn owes_start(&self) -> bool {
        !self.owed.is_empty()
    }

    fn owe_start(&mut self, is_unclean: bool) {
        if is_unclean {
            let size = self.known.as_ref().map(|known| known.size);
            let about = json!({
                "event": "unclean_start",
                "after": size.unwrap_or_default(),
                "holder": self.parts.sequencing.holder,
                "may_miss": "records of plain reads of the last moments",
            });
            self.owed.push((RecordKind::Config, about));
        }
        if let Some(known) = self.known.as_ref().filter(|_| !self.parts.is_brief) {
            let about = json!({"size": known.size, "root": Digest(known.root).to_string()});
            self.owed.push((RecordKind::Checkpoint, about));
        }
    }

    /// Writes the records of the start, after a look at the clock: a store without a mark begins with the time of its
    /// newest record.
    async fn write_owed(&mut self) -> Result<(), Error> {
        if !self.has_looked {
            self.observe_time().await?;
            self.has_looked = true;
        }
        while let Some((kind, about)) = self.owed.last().cloned() {
            self.write(kind, about).await?;
            self.owed.pop();
        }
        Ok(())
    }

    async fn write(&self, kind: RecordKind, about: Value) -> Result<(), Error> {
        let parts = &self.parts;
        let entry = entry(&*parts.clock, &*parts.ids, kind, about);
        let draft = Draft::from(entry);
        Ok(parts.store.append(draft, Durability::Committed).await?)
    }
}

/// The record of an act that no caller asked for.
fn entry(clock: &dyn Clock, ids: &dyn IdSource, kind: RecordKind, about: Value) -> Entry {
    let act = Act {
        kind,
        at: clock.now(),
        user_id: String::new(),
        actor: None,
        about,
        retention: Retention::Standard,
    };
    act.entry(ids.snapshot_id(), None)
}

impl fmt::Debug for Sequencer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.known.as_ref().map(|known| known.size);
        write!(
            f,
            "Sequencer({}, {size:?} signed)",
            self.parts.sequencing.holder
        )
    }
}

impl fmt::Debug for SequencerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SequencerBuilder({:?})", self.sequencing)
    }
}

impl Error {
    /// True if a retry cannot help: an operator has to look at the store.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::NotGrown(_)
            | Self::Held(_)
            | Self::Stored(_)
            | Self::Sign(_)
            | Self::Store(ledger::Error::Forked { .. } | ledger::Error::Damaged { .. }) => true,
            Self::Store(
                ledger::Error::Unavailable(_)
                | ledger::Error::DiskLow { .. }
                | ledger::Error::Full { .. }
                | ledger::Error::UnderHold { .. },
            )
            | Self::NotKept(_) => false,
        }
    }
}

fn short(checkpoint: &Checkpoint) -> CheckpointRef {
    CheckpointRef {
        size: checkpoint.size,
        root: Digest(checkpoint.root),
    }
}
