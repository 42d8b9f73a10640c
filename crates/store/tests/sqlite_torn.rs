//! A write-ahead log that was cut off: every commit acknowledged before the cut is there, complete; of the
//! later ones there is nothing.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use countersign::ledger::Claims as _;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::ledger::build::{document, scope, succeeded, take, writing};
use rusqlite::{Connection, OpenFlags};

const COMMITS: u32 = 4;

/// A run that was killed after its last commit, with the length of the log at each acknowledgement.
struct Killed {
    database: Vec<u8>,
    log: Vec<u8>,
    acknowledged_at: Vec<usize>,
}

async fn killed(folder: &Path) -> Killed {
    let path = folder.join("store.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).expect("a new file");
    let log = folder.join("store.db-wal");
    let mut acknowledged_at = Vec::new();
    for n in 0..COMMITS {
        let name = n.to_string();
        let taken = take(&scope(&name), 0, succeeded("yes"), &format!("ev_{n}"));
        let order = document("orders", &name);
        let taken = writing(taken, &order, 0, Some(&"x".repeat(900)));
        store.commit(taken).await.expect("it is committed");
        let length = fs::metadata(&log).expect("it is there").len();
        acknowledged_at.push(usize::try_from(length).expect("a small file"));
    }
    Killed {
        database: fs::read(&path).expect("it can be read"),
        log: fs::read(&log).expect("it can be read"),
        acknowledged_at,
    }
}

impl Killed {
    /// Returns every sector boundary at which a disk may have stopped.
    fn places(&self) -> impl DoubleEndedIterator<Item = usize> {
        let first = self.acknowledged_at.first().map_or(0, |at| at - 16 * 512);
        (first / 512..=self.log.len() / 512).map(|sector| sector * 512)
    }

    fn image(&self, folder: &Path, log: &[u8]) -> PathBuf {
        let path = folder.join("image.db");
        for suffix in ["-shm", ".lock"] {
            fs::remove_file(format!("{}{suffix}", path.display())).ok();
        }
        fs::write(&path, &self.database).expect("it can be written");
        fs::write(folder.join("image.db-wal"), log).expect("it can be written");
        path
    }

    fn acknowledged_before(&self, place: usize) -> u32 {
        let before = self.acknowledged_at.iter().filter(|at| **at <= place);
        u32::try_from(before.count()).expect("there are few")
    }
}

/// Counts the rows of each part of the commits: key, state and record. Changes nothing.
fn counts(path: &Path) -> rusqlite::Result<(String, [u32; 4])> {
    // The file remembers where the log ended, which is another place now.
    fs::remove_file(format!("{}-shm", path.display())).ok();
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let checked = database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    let count = |table| {
        let sql = format!("SELECT count(*) FROM {table}");
        database.query_row(&sql, [], |row| row.get(0))
    };
    let counts = [
        count("claim")?,
        count("document")?,
        count("record")?,
        count("payload")?,
    ];
    Ok((checked, counts))
}

/// A18: the log is cut off or zeroed at every sector, from its end to before the first commit.
#[tokio::test]
async fn a_torn_log_keeps_what_was_acknowledged() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let killed = killed(folders[0].path()).await;
    let [cut, zeroed] = [1, 2].map(|n| killed.image(folders[n].path(), &killed.log));
    let log_of = |path: &Path| {
        let path = format!("{}-wal", path.display());
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .expect("it is there")
    };
    let (cut_log, zeroed_log) = (log_of(&cut), log_of(&zeroed));
    let mut last = COMMITS;
    for place in killed.places().rev() {
        cut_log.set_len(place as u64).expect("it can be cut");
        zeroed_log
            .write_all_at(&[0; 512], place as u64)
            .expect("it can be zeroed");
        last = killed.acknowledged_before(place);
        for path in [&cut, &zeroed] {
            let found = counts(path).expect("it can be read");
            assert_eq!(found, ("ok".to_owned(), [last; 4]), "torn at {place}");
        }
    }
    assert_eq!(last, 0);
}

/// The store goes on after a torn log: repeated calls are done once.
#[tokio::test]
async fn a_store_goes_on_after_a_torn_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let killed = killed(folder.path()).await;
    for place in [killed.acknowledged_at[1], killed.acknowledged_at[2] - 512] {
        let path = killed.image(folder.path(), &killed.log[..place]);
        let store = SqliteStore::open(&path, SqliteOptions::default()).expect("it opens");
        for n in 0..COMMITS {
            let taken = take(
                &scope(&n.to_string()),
                0,
                succeeded("yes"),
                &format!("ev_{n}"),
            );
            let done = store.commit(taken).await.expect("it answers");
            assert_eq!(done, countersign::ledger::CommitAnswer::Committed);
        }
        store.check().await.expect("it is whole");
        drop(store);
        let (_, [claims, documents, records, payloads]) = counts(&path).expect("it can be read");
        let survived = killed.acknowledged_before(place);
        assert_eq!(
            [claims, documents, records, payloads],
            [COMMITS, survived, COMMITS, COMMITS]
        );
    }
}
