//! Backups of a file that others write to: as of one moment, complete and verified, or none at all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign::ledger::{Claims as _, Durability, Installations as _, Log as _, NotOurs};
use countersign::sequencer::{LastStop, Sequencer};
use countersign_evidence::note::SigningKey;
use countersign_store::sqlite::{BackupError, BackupPhase, OpenError, SqliteOptions, SqliteStore};
use countersign_testkit::ledger::build::{bound_to, commit, document, entry, with_write, write};
use countersign_testkit::patience::{until, within};

fn open(path: &Path) -> SqliteStore {
    let options = SqliteOptions {
        binding: Some(bound_to(1)),
        ..SqliteOptions::default()
    };
    SqliteStore::open(path, options).unwrap()
}

async fn sequencer(store: &Arc<SqliteStore>) -> Sequencer {
    let key = SigningKey::from_seed("example.com/log", &[1; 32]).unwrap();
    let sequencer = Sequencer::builder(store.clone(), key);
    sequencer.start(LastStop::default()).await.unwrap()
}

/// U16: a backup ends under constant writes, has only whole commits, and is signed.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_ends_under_constant_writes() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&folder.path().join("store.db")));
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let signing = tokio::spawn(sequencer(&store).await.run(async { drop(ended.await) }));
    let written = Arc::new(AtomicU64::new(0));
    let writing = {
        let (store, written) = (store.clone(), written.clone());
        tokio::spawn(async move {
            for n in 0.. {
                // Two documents in one commit: a copy has both or none.
                let (one, other) = (format!("one-{n}"), format!("other-{n}"));
                let both = with_write(
                    commit(&format!("ev_{n}")),
                    write(&document("pair", &one), 0, Some(&"x".repeat(2_000))),
                );
                let both = with_write(both, write(&document("pair", &other), 0, Some("y")));
                store.commit(both).await.unwrap();
                written.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    until(async || written.load(Ordering::Relaxed) >= 300).await;
    let copy = folder.path().join("copy.db");
    let mut phases = Vec::new();
    let mut note = |progress: countersign_store::sqlite::BackupProgress| {
        if phases.last() != Some(&progress.phase) {
            phases.push(progress.phase);
        }
    };
    let report = within(store.backup(&copy, &mut note)).await.unwrap();
    assert_eq!(phases, [BackupPhase::Copy, BackupPhase::Verify]);
    writing.abort();
    drop(end);
    signing.await.unwrap().unwrap();
    assert!(report.records >= 300, "{report:?}");
    assert!(
        report.signed > 0 && report.signed <= report.records,
        "{report:?}"
    );

    let rows = rusqlite::Connection::open(&copy).unwrap();
    let count = |sql: &str| rows.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let records = count("SELECT count(*) FROM record");
    assert_eq!(u64::try_from(records).unwrap(), report.records);
    assert_eq!(count("SELECT count(*) FROM document"), 2 * records);
}

/// N1: only a restore opens a copy, and no other file is overwritten.
#[tokio::test]
async fn a_copy_is_a_copy_until_it_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&folder.path().join("store.db")));
    let record = entry("ev_1", "u_1").into();
    store.append(record, Durability::Committed).await.unwrap();
    sequencer(&store).await.tick().await.unwrap();
    let copy = folder.path().join("copy.db");
    let report = store.backup(&copy, &mut |_| {}).await.unwrap();
    // The record, which is from long ago, and one that says that the clock is ahead of it.
    assert_eq!((report.records, report.signed), (2, 2));
    let again = store.backup(&copy, &mut |_| {}).await;
    assert!(matches!(again, Err(BackupError::Exists { .. })));
    let mut options = SqliteOptions {
        binding: Some(bound_to(1)),
        ..SqliteOptions::default()
    };
    let opened = SqliteStore::open(&copy, options.clone());
    assert!(matches!(
        opened,
        Err(OpenError::Installation(NotOurs::Copy))
    ));
    options.binding.as_mut().unwrap().accepts_copy = true;
    let restored = SqliteStore::open(&copy, options).unwrap();
    assert!(restored.installation().await.unwrap().unwrap().is_copy);
    assert_eq!(restored.head().await.unwrap().size, 2);
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("part"))
        .collect();
    assert_eq!(left, [""; 0], "nothing unfinished is left");
}

/// A backup that was damaged where the log does not look (a claim, a document, a budget) is not restored.
#[tokio::test]
async fn a_damaged_row_is_found_outside_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&folder.path().join("store.db")));
    let keyed = with_write(
        commit("ev_1"),
        write(&document("notes", "one"), 0, Some("milk")),
    );
    store.commit(keyed).await.unwrap();
    sequencer(&store).await.tick().await.unwrap();
    let path = |name: &str| folder.path().join(name);
    store.backup(&path("copy.db"), &mut |_| {}).await.unwrap();
    for change in [
        "INSERT INTO claim (user_id, tool, key, state, attempt, recovery, recovery_seconds, first_claim, claimed_at, \
         request_id, fingerprint, parts) VALUES ('u', 't', x'00', 2, 1, 0, 0, 0, 0, 'r', x'00', x'00')",
        "UPDATE document SET version = version + 1",
        "DELETE FROM document",
        "UPDATE backup_digest SET sha256 = x'00'",
        "CREATE TABLE other (one INTEGER)",
    ] {
        std::fs::copy(path("copy.db"), path("changed.db")).unwrap();
        let other = rusqlite::Connection::open(path("changed.db")).unwrap();
        other.execute(change, []).unwrap();
        drop(other);
        let copied =
            SqliteStore::copy_file(&path("changed.db"), &path("restored.db"), &mut |_| {}).await;
        assert!(
            matches!(copied, Err(BackupError::Damaged { .. })),
            "{change}: {copied:?}"
        );
        assert!(!path("restored.db").exists(), "{change}");
    }
    // As it was made it is restored, and the digest of one moment does not go on with the store.
    SqliteStore::copy_file(&path("copy.db"), &path("restored.db"), &mut |_| {})
        .await
        .unwrap();
    let restored = rusqlite::Connection::open(path("restored.db")).unwrap();
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'backup_digest'";
    let left: i64 = restored.query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

/// A16: a store whose log was changed gets no backup.
#[tokio::test]
async fn a_log_that_was_changed_is_not_backed_up() {
    for change in [
        "UPDATE record SET leaf = x'7b7d' WHERE idx = 0",
        "UPDATE checkpoint SET note = replace(note, 'example.com', 'example.org')",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let store = Arc::new(open(&path));
        for id in ["ev_1", "ev_2"] {
            let record = entry(id, "u_1").into();
            store.append(record, Durability::Committed).await.unwrap();
        }
        sequencer(&store).await.tick().await.unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(other.execute(change, []).unwrap(), 1, "{change}");
        let copy = folder.path().join("copy.db");
        let made = store.backup(&copy, &mut |_| {}).await;
        assert!(
            matches!(made, Err(BackupError::Rows(_) | BackupError::Checkpoint(_))),
            "{change}: {made:?}"
        );
        assert!(!copy.exists());
    }
}
