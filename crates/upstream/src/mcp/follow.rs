//! The tools of a server in a catalog, kept up to date: those that were approved and are still as they were.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use countersign::{BoxFuture, Catalog};
use countersign_contract::Digest;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::connection::Changes;
use super::pins::{self, Pin, Pins};
use super::server::Server;
use super::shelf::Shelf;

/// Writes down that the first list of a server was approved by being seen.
pub trait Witness: fmt::Debug + Send + Sync {
    /// Keeps a durable record of it. False if it cannot be kept: then nothing is approved, and the next list is tried again.
    fn first_use<'a>(&'a self, approved: &'a FirstUse) -> BoxFuture<'a, bool>;
}

/// A first list that is about to be approved by being seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstUse {
    /// Name of the upstream.
    pub upstream: String,
    /// Digest of the definitions.
    pub pin: Digest,
    /// Names of the tools at the server.
    pub tools: Vec<String>,
}

/// Servers that are followed. Dropping it stops that.
#[derive(Debug, Default)]
pub struct Following {
    tasks: JoinSet<()>,
}

/// Task that keeps the tools of a server up to date in a catalog.
pub(crate) struct Follower {
    pub(crate) server: Arc<Server>,
    /// The tools of this server and of the others.
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) catalog: Catalog,
    /// Folder of the pins.
    pub(crate) folder: PathBuf,
    /// Recorder of approvals of first lists; `None` if nothing is recorded.
    pub(crate) witness: Option<Arc<dyn Witness>>,
}

/// Wait after a first failure; it doubles with each further one.
const AGAIN: Duration = Duration::from_secs(1);

/// Time between two looks at the file of the pins.
const LOOK: Duration = Duration::from_secs(1);

/// Longest wait.
const AGAIN_MAX: Duration = Duration::from_mins(1);

impl Following {
    pub(crate) fn add(&mut self, follower: Follower) {
        self.tasks.spawn(async move {
            tokio::join!(follower.run(), follower.server.pool.keep_swept());
        });
    }
}

impl Follower {
    async fn run(&self) {
        let refresh = Duration::from_secs(self.server.entry.discovery.refresh_seconds);
        let mut changes: Option<Changes> = None;
        let mut again = AGAIN;
        loop {
            let wait = if self.server.discover().await.is_ok() {
                again = AGAIN;
                if changes.is_none() {
                    changes = self.server.changes().await;
                }
                refresh
            } else {
                changes = None;
                let wait = again;
                again = (again * 2).min(AGAIN_MAX);
                wait.min(refresh)
            };
            self.publish().await;
            let told = async {
                match &mut changes {
                    Some(own) => own.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.server.changed.notified() => self.server.tell_change(),
                () = self.approval() => {}
                is_told = told => if is_told {
                    self.server.tell_change();
                } else {
                    changes = None;
                },
                () = sleep(wait) => {}
            }
        }
    }

    /// Returns when the file approves something else, or nothing any more: by a command, or by a new version of it.
    async fn approval(&self) {
        let path = self.folder.join(pins::FILE);
        let written = || std::fs::metadata(&path).and_then(|own| own.modified()).ok();
        let mut before = None;
        loop {
            let now = Some(written());
            if now != before {
                before = now;
                let name = self.server.name();
                let pins = Pins::read(&self.folder);
                if let Err(error) = &pins {
                    tracing::warn!(upstream = name, %error, "the file of approved tools could not be read, so no tool of this upstream counts as approved");
                }
                let pin = pins.unwrap_or_default().upstreams.remove(name);
                let is_other = match pin {
                    Some(pin) => self.server.take_over(pin),
                    None => self.server.withdraw(),
                };
                if is_other {
                    return;
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Lists the tools once, within this time, and puts them into the catalog.
    pub(crate) async fn once(&self, limit: Duration) {
        let _ = timeout(limit, self.server.discover()).await;
        self.publish().await;
    }

    /// Makes the catalog have the approved tools.
    async fn publish(&self) {
        self.approve_first().await;
        self.shelf.publish(&self.catalog);
    }

    /// Approves the first list of a server that is trusted so far. The record of it comes first, as with an operator's approval.
    async fn approve_first(&self) {
        let server = &self.server;
        if !server.trusts_first_use() || server.was_approved() {
            return;
        }
        let Some(listed) = server.listed() else {
            return;
        };
        let pin = Pin::of(listed);
        if let Some(witness) = &self.witness {
            let first = FirstUse {
                upstream: server.name().to_owned(),
                pin: pin.digest,
                tools: pin.tools.keys().cloned().collect(),
            };
            if !witness.first_use(&first).await {
                return;
            }
        }
        let (folder, name, seen) = (self.folder.clone(), server.name().to_owned(), pin.clone());
        // Another writer may have the lock of the file.
        let kept = spawn_blocking(move || Pins::approve_first(&folder, &name, seen)).await;
        let kept = kept.ok().and_then(Result::ok);
        match kept.and_then(|mut pins| pins.upstreams.remove(server.name())) {
            Some(kept) => server.put_in_force(kept, true),
            // A folder that cannot be written keeps nothing beyond this run.
            None => server.put_in_force(pin, false),
        }
    }
}
