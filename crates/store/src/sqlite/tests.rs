//! Tests that need the store's private parts.

mod batches;
mod clock;
mod contents;
mod disk;
mod texts;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::Duration;

use countersign::ledger::{Log as _, Sequencing};
use countersign_testkit::ledger::build::record_id;
use tempfile::TempDir;

use super::writer::Done;
use super::*;
use crate::transfer::{Row, Source as _};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(folder: &Path) -> SqliteStore {
    open_with_room(folder, &Arc::new(AtomicU64::new(u64::MAX)))
}

/// Opens a store on a disk with the free space that the test sets.
fn open_with_room(folder: &Path, room: &Arc<AtomicU64>) -> SqliteStore {
    let room = room.clone();
    let probe: Probe = Box::new(move || Some(room.load(Ordering::SeqCst)));
    SqliteStore::open_with(&folder.join("store.db"), SqliteOptions::default(), probe)
        .expect("the file can be opened")
}

/// Keeps the writer busy until the sender is dropped, so that every later job shares one batch.
fn block_writer(store: &SqliteStore) -> mpsc::Sender<()> {
    let (sender, blocked) = mpsc::channel::<()>();
    let (started, starts) = mpsc::channel();
    let writer = store.writer.clone();
    std::thread::spawn(move || {
        writer.run_blocking(move |_| {
            started.send(()).ok();
            blocked.recv().ok();
            Ok(Done::Kept(()))
        })
    });
    starts.recv().expect("the writer has begun");
    sender
}

/// Polls a future once; it goes on when it is awaited.
fn begun<T>(future: BoxFuture<'_, T>) -> BoxFuture<'_, T> {
    let mut future = future;
    let polled = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it waits for the writer");
    future
}

async fn is_kept(store: &SqliteStore, id: &str) -> bool {
    let record = store.record(&record_id(id)).await.expect("it can be read");
    record.is_some()
}

/// Returns the records in the tree, in its order.
async fn integrated(store: &SqliteStore) -> Vec<String> {
    let sequencing = Sequencing {
        holder: "test".to_owned(),
        lease: Duration::ZERO,
    };
    store
        .integrate(&sequencing, 1_000)
        .await
        .expect("it is taken in");
    let mut ids = Vec::new();
    let mut dump = store.dump().expect("it can be read");
    for row in dump.next_batch(10_000).await.expect("it can be read") {
        if let Row::Record(record) = row {
            assert_eq!(record.index, Some(ids.len() as u64));
            ids.push(record.row.id.to_string());
        }
    }
    ids
}
