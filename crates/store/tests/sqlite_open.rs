//! Opening a file: the lock, the schema's version, and the traces of the previous run.

use std::fs;
use std::path::Path;

use countersign::ledger::{
    Claims as _, HeldState, Keyring as _, Lapse, Log as _, NotOurs, Pots as _, ReserveAnswer,
    WrappedKey,
};
use countersign_contract::tool::Recovery;
use countersign_store::sqlite::{OpenError, PreviousRun, SqliteOptions, SqliteStore};
use countersign_testkit::ledger::build::{
    bound_to, commit, entry, has_succeeded, held, ours, record_id, request, reserve, scope, settle,
    succeeded,
};
use rusqlite::Connection;

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(path, SqliteOptions::default())
}

fn refused(path: &Path) -> String {
    let error = open(path).expect_err("it should not open").to_string();
    error.replace(&path.display().to_string(), "FILE")
}

/// Copies what a killed process leaves behind: the file and its write-ahead log, not marked as closed.
fn killed(path: &Path, image: &Path) {
    for suffix in ["", "-wal"] {
        let with = |path: &Path| format!("{}{suffix}", path.display());
        fs::copy(with(path), with(image)).expect("it can be copied");
    }
}

#[test]
fn a_file_has_one_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let first = open(&path).expect("a new file");
    assert_eq!(
        refused(&path),
        "FILE is in use by another process; stop that one, use another file, or use PostgreSQL for more \
         than one process"
    );
    drop(first);
    open(&path).expect("the first one is gone");
}

#[test]
fn a_file_is_its_owners_to_read() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let _store = open(&path).expect("a new file");
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let file = format!("{}{suffix}", path.display());
        let mode = fs::metadata(file)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{suffix}");
    }
}

#[test]
fn another_schema_is_refused() {
    let edit = |sql: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        drop(open(&path).expect("a new file"));
        let database = Connection::open(&path).expect("it is a database");
        database.execute_batch(sql).expect("it can be edited");
        drop(database);
        refused(&path)
    };
    assert_eq!(
        edit("UPDATE migration SET checksum = x'00' WHERE number = 1"),
        "migration 0001_store was applied with other statements than this program has; use the release \
         that made the store"
    );
    assert_eq!(
        edit("PRAGMA user_version = 99"),
        "the store has schema 99, this program knows up to 11; use the program that last opened it, or a \
         newer one"
    );
}

#[tokio::test]
async fn what_is_damaged_is_not_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let restore = "keep the file and its -wal as they are, and restore a backup";

    fs::write(&path, vec![b'x'; 8192]).expect("it can be written");
    assert_eq!(
        refused(&path),
        format!("the database is damaged: file is not a database; {restore}")
    );
    fs::remove_file(&path).expect("it is there");

    let store = open(&path).expect("a new file");
    for n in 0..3 {
        let record = commit(&format!("ev_{n}"));
        store.commit(record).await.expect("it is committed");
    }
    let sequencing = countersign::ledger::Sequencing {
        holder: "test".to_owned(),
        lease: std::time::Duration::ZERO,
    };
    store
        .integrate(&sequencing, 10)
        .await
        .expect("it is taken in");
    drop(store);
    let edited = |sql: &str| {
        let image = folder.path().join("edited.db");
        fs::copy(&path, &image).expect("it can be copied");
        let database = Connection::open(&image).expect("it is a database");
        database.execute_batch(sql).expect("it can be edited");
        drop(database);
        refused(&image)
    };
    for (sql, what) in [
        (
            "UPDATE tile SET hashes = zeroblob(length(hashes))",
            "the tree of 3 leaves: its tiles do not have the root of its head",
        ),
        ("DELETE FROM tile", "tile 0/0 of width 3"),
        (
            "UPDATE head SET size = 2",
            "the tree of 2 leaves: its tiles do not have the root of its head",
        ),
        ("DELETE FROM head", "the head of the log"),
        (
            "DELETE FROM record WHERE idx > 0",
            "the log: the tree has 3 leaves and the records end at 1",
        ),
    ] {
        let expected = format!("the database is damaged: {what}; {restore}");
        assert_eq!(edited(sql), expected, "{sql}");
    }
}

/// A16: a damaged page is reported when it is read, and by a check of the whole file.
#[tokio::test]
async fn a_spoilt_page_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path).expect("a new file");
    for n in 0..40 {
        let record = commit(&format!("ev_{n}"));
        store.commit(record).await.expect("it is committed");
    }
    store.check().await.expect("it is whole");
    drop(store);
    let root: u64 = Connection::open(&path)
        .and_then(|database| {
            let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'record_id'";
            database.query_row(sql, [], |row| row.get::<_, i64>(0))
        })
        .map(|page| u64::try_from(page).expect("pages are counted from one"))
        .expect("it has the index");
    let mut bytes = fs::read(&path).expect("it can be read");
    let start = usize::try_from((root - 1) * 4096).expect("a small file");
    bytes[start..start + 4096].fill(0xff);
    fs::write(&path, bytes).expect("it can be written");

    let store = open(&path).expect("nothing of it was needed");
    for told in [
        store.record(&record_id("ev_1")).await.map(|_| ()),
        store.check().await,
    ] {
        let told = told.expect_err("it is damaged").to_string();
        assert!(told.starts_with("the database file ("), "{told}");
        assert!(told.ends_with(" in the store is damaged"), "{told}");
    }
}

/// Design decision 13: every run reports that an earlier one did not close the store, until the log has the record of it.
#[tokio::test]
async fn a_lost_run_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, image) = (
        folder.path().join("store.db"),
        folder.path().join("image.db"),
    );
    let store = open(&path).expect("a new file");
    assert_eq!(store.previous_run(), PreviousRun::None);
    store
        .append(
            entry("ev_1", "u_1").into(),
            countersign::ledger::Durability::Batched,
        )
        .await
        .expect("there is room");
    store.flush().await.expect("it is written");
    killed(&path, &image);
    drop(store);
    let closed = open(&path).expect("it was closed");
    assert_eq!(closed.previous_run(), PreviousRun::Closed);

    let after_the_kill = open(&image).expect("the log is read back");
    assert!(matches!(
        after_the_kill.previous_run(),
        PreviousRun::Lost { .. }
    ));
    let kept = after_the_kill
        .record(&record_id("ev_1"))
        .await
        .expect("it can be read");
    assert!(kept.is_some(), "what was flushed is there");
    drop(after_the_kill);
    let again = open(&image).expect("it was closed");
    assert!(matches!(again.previous_run(), PreviousRun::Lost { .. }));
    again.lost_run_recorded().await.expect("it is written");
    drop(again);
    let recorded = open(&image).expect("it was closed");
    assert_eq!(recorded.previous_run(), PreviousRun::Closed);
}

/// A17, A19: an owner whose process is gone loses its claim at once, whatever its lease. The claim's recovery
/// decides what follows, and the owner's answer still counts if it was not overtaken.
#[tokio::test]
async fn the_owners_of_a_killed_run_are_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, image) = (
        folder.path().join("store.db"),
        folder.path().join("image.db"),
    );
    let store = open(&path).expect("a new file");
    let recoveries = [
        ("operator", Recovery::Operator),
        ("reconcile", Recovery::Reconcile { grace_seconds: 60 }),
        ("retry", Recovery::Retry),
        (
            "downstream",
            Recovery::DownstreamKey {
                window_seconds: 3_600,
            },
        ),
    ];
    let asked = |(key, recovery): &(&str, Recovery)| {
        let mut request = request(&scope(key));
        request.recovery = *recovery;
        request
    };
    for recovery in &recoveries {
        ours(store.claim(&asked(recovery)).await.expect("it answers"));
    }
    let done = ours(
        store
            .claim(&request(&scope("done")))
            .await
            .expect("it answers"),
    );
    store
        .commit(settle(&done, succeeded("yes"), "ev_1"))
        .await
        .expect("it answers");
    killed(&path, &image);

    let store = open(&image).expect("the log is read back");
    for recovery in &recoveries[..2] {
        let stands = held(store.claim(&asked(recovery)).await.expect("it answers"));
        assert_eq!(stands.state, HeldState::InDoubt, "{recovery:?}");
    }
    for recovery in &recoveries[2..] {
        let stands = store.lookup(&scope(recovery.0)).await.expect("it answers");
        assert_eq!(stands.expect("it is claimed").state, HeldState::Abandoned);
        let ours = ours(store.claim(&asked(recovery)).await.expect("it answers"));
        assert_eq!(ours.attempt, 2, "{recovery:?}");
    }
    let stands = store.lookup(&scope("done")).await.expect("it answers");
    assert_eq!(stands.expect("it is settled").state, has_succeeded("yes"));
}

/// A killed run's reservations are given back, except those that may have been spent elsewhere.
#[tokio::test]
async fn the_money_of_a_killed_run_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, image) = (
        folder.path().join("store.db"),
        folder.path().join("image.db"),
    );
    let store = open(&path).expect("a new file");
    for (id, lapse) in [("ev_write", Lapse::Release), ("ev_elsewhere", Lapse::Spend)] {
        let answer = store.reserve(&reserve(id, "u_1", lapse)).await;
        assert_eq!(answer.expect("it answers"), ReserveAnswer::Reserved);
    }
    let mut doubtful = request(&scope("k"));
    doubtful.spend = Some(reserve("ev_claimed", "u_1", Lapse::ByClaim));
    ours(store.claim(&doubtful).await.expect("it answers"));
    assert_eq!(store.sweep(10).await.expect("it answers").lapsed, 0);
    killed(&path, &image);

    let store = open(&image).expect("the log is read back");
    assert_eq!(store.sweep(10).await.expect("it answers").lapsed, 2);
    let pots = store.pots(Some("u_1"), 10).await.expect("it answers");
    let shown = pots.iter().map(|pot| (pot.reserved, pot.spent));
    assert_eq!(shown.collect::<Vec<_>>(), [(1_250, 1_250)]);
}

/// U7: a file belongs to the keys that created it; other keys are refused before anything is written.
#[tokio::test]
async fn a_file_belongs_to_its_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let open = |binding| {
        let options = SqliteOptions {
            binding: Some(binding),
            ..SqliteOptions::default()
        };
        SqliteStore::open(&path, options)
    };
    // As an earlier release left it: with keys of users, and nothing that says whose it is.
    let store = SqliteStore::open(&path, SqliteOptions::default()).expect("a new file");
    let wrapped = WrappedKey {
        id: None,
        master: "m_1".to_owned(),
        bytes: vec![1],
    };
    store
        .add_user_key("u_1", wrapped)
        .await
        .expect("it is kept");
    drop(store);
    let before = fs::read(&path).expect("it is there");
    let refused = open(bound_to(2))
        .expect_err("the keys are others")
        .to_string();
    assert_eq!(
        refused,
        "the keys in the store were not wrapped by the master key in use, m_2"
    );
    assert_eq!(fs::read(&path).expect("it is there"), before);

    drop(open(bound_to(1)).expect("its own keys"));
    let before = fs::read(&path).expect("it is there");
    let refused = open(bound_to(2))
        .expect_err("the keys are others")
        .to_string();
    assert_eq!(
        refused,
        "the data belongs to the master key m_1, and the one in use is m_2"
    );
    let mut log = bound_to(2);
    log.master = "m_1".to_owned();
    assert!(matches!(
        open(log),
        Err(OpenError::Installation(NotOurs::OtherLog { .. }))
    ));
    assert_eq!(fs::read(&path).expect("it is there"), before);
    drop(open(bound_to(1)).expect("its own keys"));
}
