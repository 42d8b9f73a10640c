//! Backups and their way back, as an operator does it: every path ends in a valid log, or in an error that says what to do.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use countersign_testkit::patience::Watchdog;
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A data folder and the command that works in it.
struct Place {
    folder: TempDir,
    store: Option<String>,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            store: None,
        }
    }

    fn on(store: &str) -> Self {
        Self {
            store: Some(store.to_owned()),
            ..Self::new()
        }
    }

    fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let _watchdog = Watchdog::start();
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(args)
            .env("COUNTERSIGN_DATA", self.folder.path().join("data"))
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY");
        if let Some(store) = &self.store {
            command.env("COUNTERSIGN_STORE", store);
        }
        command.output().unwrap()
    }

    #[track_caller]
    fn ask(&self, code: i32, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    #[track_caller]
    fn told(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    #[track_caller]
    fn note(&self, text: &str) {
        let arguments = json!({ "text": text }).to_string();
        self.ask(0, &["call", "notes.add", "--args", &arguments]);
    }

    /// The notes that there are.
    #[track_caller]
    fn notes(&self) -> Vec<String> {
        let reply = self.ask(0, &["call", "notes.list"]);
        let notes = reply["data"].as_array().unwrap().iter();
        notes
            .map(|note| note["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// A backup with a name of its own.
    #[track_caller]
    fn backup(&self, name: &str) -> String {
        let file = self.folder.path().join(name);
        let file = file.to_str().unwrap().to_owned();
        self.ask(0, &["store", "backup", &file]);
        file
    }

    #[track_caller]
    fn restore(&self, code: i32, args: &[&str]) -> Value {
        self.ask(code, &[&["store", "restore"], args].concat())
    }

    /// Everything in the log is valid, and it goes on.
    #[track_caller]
    fn check_valid(&self) -> Value {
        let report = self.ask(0, &["verify", "--all"]);
        assert_eq!(report["valid"], true, "{report:#}");
        self.ask(0, &["call", "notes.list"]);
        self.ask(0, &["verify", "--all"])
    }

    /// The keys of another folder, and nothing else of it.
    fn with_keys_of(self, other: &Self) -> Self {
        fs::create_dir_all(self.data("")).unwrap();
        for name in ["master.key", "log.key", "log.pub"] {
            write_secret(&self.data(name), &fs::read(other.data(name)).unwrap());
        }
        self
    }
}

fn write_secret(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).unwrap().write_all(bytes).unwrap();
}

/// U16: a backup is verified, has no keys, is not overwritten, and is opened by a restore only.
#[test]
fn a_backup_is_one_file_that_only_a_restore_opens() {
    let place = Place::new();
    place.note("milk");
    let file = place.folder.path().join("backup.db");
    let file = file.to_str().unwrap();
    let made = place.ask(0, &["store", "backup", file]);
    assert_eq!(
        (&made["records"], &made["signed"], &made["keys"]),
        (&json!(1), &json!(1), &Value::Null)
    );
    for suffix in ["-wal", "-shm", "-journal", ".lock", ".keys"] {
        assert!(!Path::new(&format!("{file}{suffix}")).exists(), "{suffix}");
    }
    let told = place.told(2, &["store", "backup", file]);
    assert!(told.contains("already exists"), "{told}");
    let bytes = fs::read(file).unwrap();
    let master = fs::read_to_string(place.data("master.key")).unwrap();
    assert!(!has(&bytes, master.trim().as_bytes()));

    let direct = ["verify", "--all", "--store", &format!("sqlite:{file}")];
    let told = place.told(2, &direct);
    assert!(
        told.contains("the data is a copy") && told.contains("`countersign store restore`"),
        "{told}"
    );
    assert!(fs::read(file).unwrap() == bytes, "it is as it was made");
    place.check_valid();
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// N1 (g): if the store that went on is there, documents come back, and no erasure, no revocation and no hold since the backup is undone.
/// The log is the newest one.
#[test]
fn what_happened_since_the_backup_stays() {
    let place = Place::new();
    place.note("kept");
    let key = |user: &str| {
        let made = place.ask(0, &["keys", "create", "--user", user, "--label", "a key"]);
        made["key"]["id"].as_str().unwrap().to_owned()
    };
    let (revoked, erased) = (key("ann"), key("bob"));
    let file = place.backup("backup.db");
    place.note("newer");
    place.ask(0, &["keys", "revoke", &revoked]);
    place.ask(0, &["evidence", "erase", "bob", "--reason", "asked"]);
    place.ask(0, &["evidence", "hold", "ann", "--reason", "a case"]);
    let before = place.ask(0, &["verify", "--all"])["size"].as_u64().unwrap();

    let outcome = place.restore(0, &[&file]);
    assert_eq!(
        (&outcome["outcome"], &outcome["removed"]),
        (&json!("put_back"), &json!(1)),
        "{outcome:#}"
    );
    assert_eq!(place.notes(), ["kept"]);
    let keys = place.ask(0, &["keys", "list"]);
    let keys = keys.as_array().unwrap();
    assert!(!keys.iter().any(|key| key["id"] == *erased), "{keys:#?}");
    let states: Vec<&Value> = keys.iter().map(|key| &key["state"]).collect();
    assert_eq!(states, ["revoked"], "{keys:#?}");
    assert_eq!(
        place
            .ask(0, &["evidence", "holds"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let after = place.check_valid()["size"].as_u64().unwrap();
    assert!(after > before, "{after}");
}

/// N1 (g): documents of a user who was erased since stay gone.
#[test]
fn an_erased_user_does_not_come_back() {
    let place = Place::new();
    place.note("forget this");
    let file = place.backup("backup.db");
    place.ask(0, &["evidence", "erase", "u_local", "--reason", "asked"]);
    let outcome = place.restore(0, &[&file]);
    assert_eq!(outcome["users_erased"], 1, "{outcome:#}");
    assert_eq!(place.notes(), [""; 0]);
    place.check_valid();
    // The user comes back as a new one, whom the backup does not know.
    place.note("new");
    place.restore(0, &[&file]);
    assert_eq!(place.notes(), ["new"]);
    place.check_valid();
}

/// N1 (b): the store is gone and the folder's newest checkpoint is newer than the backup. That is refused; accepted, a new log
/// goes on, which links the old one, and in which no key works again.
#[test]
fn a_lost_log_is_continued_by_a_new_one() {
    let place = Place::new();
    place.note("first");
    let made = place.ask(0, &["keys", "create", "--user", "ann", "--label", "a key"]);
    assert!(made["secret"].is_string());
    let file = place.backup("backup.db");
    let held = fs::read(place.data("checkpoint")).unwrap();
    let old_log = fs::read_to_string(place.data("log.pub")).unwrap();
    place.note("second");
    for name in ["countersign.db", "countersign.db-wal", "countersign.db-shm"] {
        fs::remove_file(place.data(name)).ok();
    }
    let told = place.told(3, &["store", "restore", &file]);
    assert!(
        told.contains("1 signed record would be lost") && told.contains("--accept-loss"),
        "{told}"
    );
    assert!(
        !place.data("countersign.db").exists(),
        "nothing was changed"
    );
    // N1 (a): nor with the checkpoint from the time of the backup in the place of the newest.
    fs::write(place.data("checkpoint"), held).unwrap();
    let told = place.told(3, &["store", "restore", &file]);
    assert!(told.contains("1 signed record would be lost"), "{told}");

    let outcome = place.restore(0, &[&file, "--accept-loss"]);
    assert_eq!(
        (&outcome["outcome"], &outcome["lost_records"]),
        (&json!("new_log"), &json!(1)),
        "{outcome:#}"
    );
    assert_eq!(place.notes(), ["first"]);
    assert_eq!(place.ask(0, &["keys", "list"]), json!([]));
    let report = place.check_valid();
    assert_ne!(report["origin"], old_log.split('+').next().unwrap());
    let earlier = &report["earlier_logs"][0];
    assert_eq!(earlier["log_key"], old_log.trim());
    assert_eq!(
        (&earlier["signed"], &earlier["newest"]),
        (&json!(2), &json!(3))
    );
    assert!(!place.data("log.key.next").exists());
    // A backup of the new log comes back like any other.
    let again = place.backup("again.db");
    place.note("third");
    assert_eq!(place.restore(0, &[&again])["outcome"], "put_back");
    place.check_valid();
    let told = place.told(2, &["store", "restore", &file]);
    assert!(told.contains("made with other keys"), "{told}");
}

/// N1: a kept checkpoint of the old log is recognised after a new log was begun: it is compared with what is left of the
/// old log, and one that contradicts it is a fault.
#[test]
fn a_kept_checkpoint_of_the_old_log_is_compared() {
    let place = Place::new();
    let keep = |name: &str| {
        let file = place.folder.path().join(name);
        fs::copy(place.data("checkpoint"), &file).unwrap();
        file.to_str().unwrap().to_owned()
    };
    place.note("first");
    let here = keep("here");
    place.note("second");
    let file = place.backup("backup.db");
    // The same log goes on in two folders: another history under the same name.
    let fork = Place::new().with_keys_of(&place);
    fs::copy(place.data("countersign.db"), fork.data("countersign.db")).unwrap();
    fork.note("another third");
    fork.note("another fourth");
    let forked = place.folder.path().join("forked");
    fs::copy(fork.data("checkpoint"), &forked).unwrap();
    fork.note("another fifth");
    let longer = fork.data("checkpoint");
    place.note("third");
    let lost = keep("lost");
    place.note("fourth");
    let newest = keep("newest");
    for name in ["countersign.db", "countersign.db-wal", "countersign.db-shm"] {
        fs::remove_file(place.data(name)).ok();
    }
    place.restore(0, &[&file, "--accept-loss"]);
    place.note("after");
    let told = |code: i32, held: &str| {
        let output = place.run(&["verify", "--all", "--held", held]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let report = told(0, &here);
    assert!(
        report.contains("kept checkpoint: 1 record of ")
            && report.contains("this log begins with exactly these records")
            && report.contains("not checked: whether the log was rewritten or cut"),
        "{report}"
    );
    let report = told(0, &newest);
    assert!(
        report.contains("it is the checkpoint that this log names, and 2 of its records are lost"),
        "{report}"
    );
    let report = told(0, &lost);
    assert!(
        report.contains("1 of its records are lost, so that it could not be compared")
            && report.contains("not checked: the kept checkpoint"),
        "{report}"
    );
    let held = place.ask(0, &["verify", "--all", "--quick", "--held", &newest]);
    assert_eq!(held["held_earlier"]["standing"], "newest", "{held:#}");
    // Of the same size with another root, and of more records than are known.
    let report = told(3, forked.to_str().unwrap());
    assert!(
        report.contains("wrong: the checkpoint that was kept is of an earlier log, and its 4 records are not those"),
        "{report}"
    );
    let report = told(3, longer.to_str().unwrap());
    assert!(
        report.contains("is of an earlier log and of 5 records, and this log knows of 4"),
        "{report}"
    );
    let text = fs::read_to_string(&newest).unwrap();
    fs::write(
        place.folder.path().join("changed"),
        text.replacen("4\n", "3\n", 1),
    )
    .unwrap();
    let changed = place.folder.path().join("changed");
    assert!(told(3, changed.to_str().unwrap()).contains("is not valid"));
}

/// N1: the store is lost, and nothing was signed after the backup: the log goes on.
#[test]
fn a_newest_backup_goes_on_with_its_log() {
    let place = Place::new();
    place.note("first");
    let file = place.backup("backup.db");
    let log = fs::read(place.data("log.pub")).unwrap();
    fs::write(place.data("countersign.db"), b"what a broken disk left").unwrap();
    assert_eq!(place.restore(0, &[&file])["outcome"], "same_log");
    assert_eq!(place.notes(), ["first"]);
    assert_eq!(fs::read(place.data("log.pub")).unwrap(), log);
    place.check_valid();
    let replaced = fs::read_dir(place.data("replaced")).unwrap();
    let kept = replaced.filter(|file| {
        let bytes = fs::read(file.as_ref().unwrap().path()).unwrap();
        bytes == b"what a broken disk left"
    });
    assert_eq!(kept.count(), 1, "the broken file is kept");
}

/// N1 (c): a fresh folder with the keys cannot know what came after the backup.
#[test]
fn a_fresh_folder_begins_a_new_log() {
    let old = Place::new();
    old.note("first");
    let file = old.backup("backup.db");
    old.note("second");
    let fresh = Place::new();
    let told = fresh.told(2, &["store", "restore", &file]);
    assert!(told.contains("master.key is missing"), "{told}");
    let fresh = fresh.with_keys_of(&old);
    let told = fresh.told(3, &["store", "restore", &file]);
    assert!(
        told.contains("shows whether the log had more") && told.contains("--accept-loss"),
        "{told}"
    );
    // A checkpoint that somebody has brought along shows no end either.
    fs::copy(old.data("checkpoint"), fresh.data("checkpoint")).unwrap();
    fresh.restore(3, &[&file]);
    let outcome = fresh.restore(0, &[&file, "--accept-loss"]);
    assert_eq!(outcome["outcome"], "new_log");
    assert_eq!(fresh.notes(), ["first"]);
    fresh.check_valid();
    // The old log goes on as it was: there are two logs, and two names.
    old.note("third");
    let origin = |place: &Place| place.ask(0, &["verify", "--all"])["origin"].clone();
    assert_ne!(origin(&old), origin(&fresh));
}

/// The keys come with the backup where they were asked for.
#[test]
fn keys_come_along_where_they_were_asked_for() {
    let old = Place::new();
    old.note("first");
    let file = old.folder.path().join("all.db");
    let file = file.to_str().unwrap();
    let made = old.ask(0, &["store", "backup", file, "--with-keys"]);
    assert_eq!(made["keys"], format!("{file}.keys"));
    let fresh = Place::new();
    fresh.restore(0, &[file, "--accept-loss"]);
    assert_eq!(fresh.notes(), ["first"]);
    fresh.check_valid();
}

/// Restored by root, in a folder of a service: the service can open what was restored, also after a refusal.
#[test]
fn restored_files_belong_to_the_owner_of_the_folder() {
    use std::os::unix::fs::{MetadataExt as _, chown};

    const SERVICE: u32 = 65_534;
    let place = Place::new();
    place.note("first");
    let file = place.backup("backup.db");
    place.note("second");
    fs::remove_file(place.data("countersign.db")).unwrap();
    // Only root can give files away; under another account every file has one owner.
    if chown(place.data(""), Some(SERVICE), Some(SERVICE)).is_err() {
        return;
    }
    let owners = || {
        let files = fs::read_dir(place.data("")).unwrap();
        let owner = |file: fs::DirEntry| (file.file_name(), file.metadata().unwrap().uid());
        let foreign = files.map(|file| owner(file.unwrap()));
        foreign
            .filter(|(_, uid)| *uid != SERVICE)
            .collect::<Vec<_>>()
    };
    place.told(3, &["store", "restore", &file]);
    assert_eq!(owners(), []);
    let told = place.told(0, &["store", "restore", &file, "--accept-loss"]);
    assert!(told.contains("given to user id 65534"), "{told}");
    assert_eq!(owners(), []);
}

/// N1 (d), (e), (f): half a file, other keys and a store that is in use are refused, and nothing is changed.
#[test]
fn what_cannot_be_restored_is_refused() {
    let place = Place::new();
    place.note("first");
    let file = place.backup("backup.db");
    let whole = fs::read(&file).unwrap();
    let half = place.folder.path().join("half.db");
    let half = half.to_str().unwrap();
    for bytes in [whole.len() / 2, 4096, 5000, 1, 0] {
        fs::write(half, &whole[..bytes]).unwrap();
        let told = place.told(3, &["store", "restore", half]);
        assert!(
            told.contains("the backup is damaged or incomplete"),
            "{bytes}: {told}"
        );
    }
    let mut flipped = whole.clone();
    let kind = br#""kind":"call""#;
    let at = whole.windows(kind.len()).position(|part| part == kind);
    flipped[at.unwrap() + kind.len() - 2] ^= 1;
    fs::write(half, &flipped).unwrap();
    let told = place.told(3, &["store", "restore", half]);
    assert!(told.contains("the backup is damaged"), "{told}");

    // The log does not cover claims; the digest of the backup covers everything.
    let keyed = ["--key", "k1", "--user", "u_claim"];
    let add = ["call", "notes.add", "--args", "{text: 'milk'}"];
    place.ask(0, &[add, keyed].concat());
    let whole = fs::read(place.backup("keyed.db")).unwrap();
    let name = b"u_claimnotes.add";
    let places = whole.windows(name.len()).enumerate();
    let places: Vec<usize> = places
        .filter_map(|(at, part)| (part == name).then_some(at))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(half, &flipped).unwrap();
        let told = place.told(3, &["store", "restore", half]);
        assert!(
            told.contains("the backup is damaged") && told.contains("use another one"),
            "{told}"
        );
    }
    let other = Place::new();
    other.note("other");
    let told = other.told(2, &["store", "restore", &file]);
    assert!(told.contains("made with other keys"), "{told}");
    other.check_valid();
    let told = place.told(2, &["store", "restore", "nothing.db"]);
    assert!(
        told.contains("the backup nothing.db does not exist"),
        "{told}"
    );
    assert_eq!(place.notes(), ["first"]);
    place.check_valid();
}

/// N1 (a): a database and its checkpoint that were copied back by hand are noticed, with every way of copying.
#[test]
fn an_old_database_with_its_own_checkpoint_is_not_signed_for() {
    let place = Place::new();
    place.note("first");
    let names = ["countersign.db", "checkpoint"];
    let old = names.map(|name| fs::read(place.data(name)).unwrap());
    let backup = fs::read(place.backup("backup.db")).unwrap();
    place.note("second");
    for (name, bytes) in names.iter().zip(&old) {
        fs::write(place.data(name), bytes).unwrap();
    }
    let told = place.told(3, &["call", "notes.list"]);
    assert!(
        told.contains("the log was rolled back") && told.contains("`countersign store restore`"),
        "{told}"
    );
    place.ask(3, &["verify", "--all"]);
    place.restore(3, &[]);
    // A backup is not even opened.
    fs::write(place.data("countersign.db"), backup).unwrap();
    let told = place.told(2, &["call", "notes.list"]);
    assert!(told.contains("the data is a copy"), "{told}");
    place.restore(3, &[]);
    assert_eq!(place.restore(0, &["--accept-loss"])["outcome"], "new_log");
    assert_eq!(place.notes(), ["first"]);
    place.check_valid();
}

/// A restore that was cut off after the store was bound to the new log, and before its key was in its place.
#[test]
fn a_restore_that_was_cut_off_goes_on() {
    let place = Place::new();
    place.note("first");
    let log = fs::read(place.data("log.key")).unwrap();
    let public = fs::read(place.data("log.pub")).unwrap();
    let file = place.backup("backup.db");
    let kept = ["checkpoint", "log.signed"].map(|name| fs::read(place.data(name)).unwrap());
    place.note("second");
    fs::remove_file(place.data("countersign.db")).unwrap();
    place.restore(0, &[&file, "--accept-loss"]);
    // Everything in the folder but the store is as it was before.
    fs::rename(place.data("log.key"), place.data("log.key.next")).unwrap();
    write_secret(&place.data("log.key"), &log);
    fs::write(place.data("log.pub"), public).unwrap();
    for (name, bytes) in ["checkpoint", "log.signed"].iter().zip(kept) {
        fs::write(place.data(name), bytes).unwrap();
    }
    place.check_valid();
    assert_eq!(place.notes(), ["first"]);
    assert!(!place.data("log.key.next").exists());
}

/// N1 (a), (c), (g) on PostgreSQL: tables that come from a dump are a copy, and go on like one.
#[test]
fn a_database_from_a_dump_is_restored() {
    let server = shared_postgres();
    let url = server.fresh_database();
    let place = Place::on(&url);
    place.note("first");
    let made = place.ask(0, &["keys", "create", "--user", "ann", "--label", "a key"]);
    let id = made["key"]["id"].as_str().unwrap();
    let told = place.told(2, &["store", "backup", "x.db"]);
    assert!(told.contains("pg_dump"), "{told}");
    let dump = place.folder.path().join("dump.sql");
    free_lease(&url);
    place.ask(0, &["call", "notes.list"]);
    dumped(&url, &dump);
    place.note("second");
    free_lease(&url);
    place.ask(0, &["keys", "revoke", id]);

    let copy = server.fresh_database();
    loaded(&copy, &dump);
    let restored = Place {
        store: Some(copy.clone()),
        ..place
    };
    let told = restored.told(2, &["call", "notes.list"]);
    assert!(
        told.contains("the data is a copy") && told.contains("`countersign store restore`"),
        "{told}"
    );
    let told = restored.told(3, &["store", "restore"]);
    assert!(told.contains("would be lost"), "{told}");
    // In a fresh folder nothing shows what came after.
    let fresh = Place::on(&copy).with_keys_of(&restored);
    let told = fresh.told(3, &["store", "restore"]);
    assert!(told.contains("shows whether the log had more"), "{told}");

    let outcome = restored.restore(0, &["--accept-loss"]);
    assert_eq!(outcome["outcome"], "new_log", "{outcome:#}");
    assert_eq!(restored.notes(), ["first"]);
    assert_eq!(
        restored.ask(0, &["keys", "list"]),
        json!([]),
        "no key came back"
    );
    let report = restored.check_valid();
    assert_eq!(report["earlier_logs"].as_array().unwrap().len(), 1);
    assert_eq!(restored.restore(0, &[])["outcome"], "same_log");
}

/// A command leaves the right to sign behind for ten seconds, as a process does that was killed; the next one gets it at once.
fn free_lease(url: &str) {
    let free = "UPDATE log_head SET lease_until = now() - interval '1 second'";
    let done = Command::new(program("psql"))
        .args(["-q", "-c", free])
        .arg(url)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn dumped(url: &str, to: &Path) {
    let dump = program("pg_dump");
    let done = Command::new(dump)
        .args(["--no-owner", "--file"])
        .arg(to)
        .arg(url)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn loaded(url: &str, from: &Path) {
    let done = Command::new(program("psql"))
        .args(["-v", "ON_ERROR_STOP=1", "-q", "-f"])
        .arg(from)
        .arg(url)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// The server's own programs lie beside each other.
fn program(name: &str) -> PathBuf {
    let programs = countersign_testkit::postgres::Programs::find().unwrap();
    programs.psql.with_file_name(name)
}

/// U16, N1 (f): a server makes the backup while it serves; a restore does not wait for the server, and is refused.
#[test]
fn a_server_makes_backups_and_is_not_restored_under() {
    use std::io::BufRead as _;

    let place = Place::new();
    place.note("first");
    let _watchdog = Watchdog::start();
    let mut server = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["serve", "--json", "--listen", "127.0.0.1:0"])
        .env("COUNTERSIGN_DATA", place.folder.path().join("data"))
        .env("COUNTERSIGN_OPERATOR", "tester")
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = server.stdout.as_mut().unwrap();
    std::io::BufReader::new(stdout)
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("url"), "{line}");

    place.note("second");
    let file = place.backup("backup.db");
    place.note("third");
    let told = place.told(2, &["store", "restore", &file]);
    assert!(told.contains("stop the server first"), "{told}");
    assert_eq!(place.notes().len(), 3);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(place.restore(0, &[&file])["outcome"], "put_back");
    assert_eq!(place.notes(), ["first", "second"]);
    place.check_valid();
}
