//! The real command over several processes: what one run commits, the next ones find, prove, open, hold and
//! erase.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use countersign::contract::Digest;
use countersign_testkit::patience::Watchdog;
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
            folder: tempfile::tempdir().expect("a folder can be made"),
            store: None,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run(&self, args: &[&str]) -> Output {
        let _watchdog = Watchdog::start();
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(args)
            .env("COUNTERSIGN_DATA", self.data())
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY");
        if let Some(store) = &self.store {
            command.env("COUNTERSIGN_STORE", store);
        }
        command
            .output()
            .expect("cargo has built the command before its tests")
    }

    /// Runs a command that ends with this exit code, and returns its JSON answer; null if it has none.
    #[track_caller]
    fn ask(&self, code: i32, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        if output.stdout.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }

    /// Runs a command that ends with this exit code, and returns its stderr.
    #[track_caller]
    fn told(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).expect("the command writes UTF-8")
    }

    /// The standard output of a command for people.
    #[track_caller]
    fn shown(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("the command writes UTF-8")
    }

    /// Keeps a note; the name of its evidence.
    #[track_caller]
    fn note(&self, text: &str) -> String {
        let arguments = json!({ "text": text }).to_string();
        let reply = self.ask(0, &["call", "notes.add", "--args", &arguments]);
        evidence(&reply)
    }

    #[track_caller]
    fn verified(&self) -> Value {
        self.ask(0, &["verify", "--all"])
    }
}

fn evidence(reply: &Value) -> String {
    let id = reply.pointer("/evidence/snapshot_id");
    let id = id.and_then(Value::as_str);
    id.expect("a call that keeps something has evidence")
        .to_owned()
}

/// A5, A18: a repeat in another process gets the first answer, and nothing happens a second time.
#[test]
fn a_key_counts_in_the_next_process() {
    let place = Place::new();
    let call = |text: &str| {
        let arguments = json!({ "text": text }).to_string();
        let args = [
            "call",
            "notes.add",
            "--args",
            &arguments,
            "--key",
            "k_1",
            "--json",
        ];
        let output = place.run(&args);
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), reply)
    };
    let (_, first) = call("buy milk");
    let (code, second) = call("buy milk");
    assert_eq!((code, &second["data"]), (Some(0), &first["data"]));
    assert_eq!(second["replayed"], true);
    let (code, other) = call("buy tea");
    assert_eq!(code, Some(1));
    assert_eq!(other["error"]["details"]["reason"], "key_reused");
    let notes = place.ask(0, &["call", "notes.list"]);
    assert_eq!(notes["data"].as_array().unwrap().len(), 1);
    assert_eq!(place.verified()["findings"], json!([]));
}

/// A5, A17: in the next process, too, a failure without an effect lets the key take corrected arguments.
#[test]
fn a_failure_releases_the_key_for_a_corrected_call() {
    let place = Place::new();
    let cart = place.ask(0, &["call", "cart.create"]);
    let add = |code: i32, sku: &str| {
        let arguments = json!({"cart_id": cart["data"]["cart_id"], "sku": sku, "quantity": 1});
        let arguments = arguments.to_string();
        place.ask(
            code,
            &[
                "call",
                "cart.add_item",
                "--args",
                &arguments,
                "--key",
                "k_1",
            ],
        )
    };
    assert_eq!(add(1, "SKU-9999-01")["error"]["code"], "NOT_FOUND");
    let added = add(0, "SKU-0001-01");
    assert_eq!(added["data"]["lines"][0]["sku"], "SKU-0001-01");
    assert_eq!(add(0, "SKU-0001-01")["replayed"], true);
    let refused = add(1, "SKU-9999-01");
    assert_eq!(refused["error"]["details"]["reason"], "key_reused");
    assert_eq!(refused["error"]["details"]["differing"], json!(["/sku"]));
    assert_eq!(place.verified()["findings"], json!([]));
}

/// A1: every member of the request envelope can be given, and arrives.
#[test]
fn the_whole_envelope_can_be_given() {
    let place = Place::new();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let options = [
        ("--user", "u_7"),
        ("--actor", "agent:a_7"),
        ("--request-id", "r_1"),
        ("--session", "s_1"),
        ("--locale", "de-DE"),
        ("--currency", "EUR"),
        ("--timezone", "Europe/Berlin"),
        ("--client", "ios/4.2"),
        ("--key", "k_1"),
        ("--trace", trace),
    ];
    let mut call = vec!["call", "notes.add", "--args", r#"{"text": "buy milk"}"#];
    call.extend(options.iter().flat_map(|(name, value)| [*name, *value]));
    let reply = place.ask(0, &call);
    assert_eq!(reply["request_id"], "r_1");
    assert_eq!(place.ask(0, &call)["replayed"], true);
    let opened = ["evidence", "open", &evidence(&reply), "--reason", "a test"];
    let opened = place.ask(0, &opened);
    for (member, expected) in [
        ("user_id", json!("u_7")),
        ("actor", json!({"type": "agent", "id": "a_7"})),
        ("session_id", json!("s_1")),
        ("locale", json!("de-DE")),
        ("currency", json!("EUR")),
        ("timezone", json!("Europe/Berlin")),
        ("client", json!({"app": "ios", "version": "4.2"})),
    ] {
        assert_eq!(opened[member], expected, "{member}");
    }
    let shown = place.ask(0, &["call-show", "r_1"]);
    assert!(shown[0]["request_id"].as_str().unwrap().starts_with("rq_"));
    let trace = &opened["trace"];
    assert_eq!(trace["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    let spans = [
        "--span-id",
        "00f067aa0ba902b7",
        "--parent-span-id",
        "b7ad6b7169203331",
    ];
    place.ask(
        0,
        &[&["call", "notes.list", "--request-id", "r_2"][..], &spans].concat(),
    );
    let dry = [
        "call",
        "notes.add",
        "--args",
        r#"{"text": "x"}"#,
        "--dry-run",
    ];
    assert_eq!(place.ask(0, &dry)["dry_run"], true);
}

/// A2, A16: commands find a call by the id that its caller chose, with and without its user.
#[test]
fn a_call_is_found_by_the_id_that_its_caller_chose() {
    let place = Place::new();
    let arguments = r#"{"country": "DE", "net_cents": 100}"#;
    let call = || {
        let call = ["call", "sample.vat", "--args", arguments, "--user", "u_7"];
        let reply = place.ask(0, &[&call[..], &["--request-id", "order-4711"]].concat());
        evidence(&reply)
    };
    let first = call();
    for user in [&[][..], &["--user", "u_7"]] {
        let ask = |words: &[&str]| place.ask(0, &[words, &["order-4711"], user].concat());
        let replayed = ask(&["replay"]);
        assert_eq!(
            (&replayed[0]["evidence"], &replayed[0]["result"]),
            (&json!(first), &json!("identical"))
        );
        let verified = ask(&["replay", "--mode", "verify"]);
        assert_eq!(verified[0]["result"], "intact");
        assert_eq!(ask(&["evidence", "show"])["record"]["id"], json!(first));
        let opened = ask(&["evidence", "open", "--reason", "a test"]);
        assert_eq!(opened["request_id"], "order-4711");
        let bundle = ask(&["evidence", "export"]);
        assert_eq!(bundle["records"].as_array().map(Vec::len), Some(1));
    }
    let another = place.told(1, &["replay", "order-4711", "--user", "u_8"]);
    assert!(
        another.contains("no call or order has the id \"order-4711\""),
        "{another}"
    );
    // Of two calls under one id, a command for one record names both, and a replay does both.
    let second = call();
    let several = place.told(2, &["evidence", "show", "order-4711"]);
    assert!(several.contains("2 records"), "{several}");
    assert!(several.contains(&first) && several.contains(&second));
    let both = place.ask(0, &["replay", "order-4711"]);
    assert_eq!(both.as_array().map(Vec::len), Some(2));
}

/// A15: a record names the program that ran the tool by the SHA-256 of its file.
#[test]
fn a_record_names_the_program_that_ran_the_tool() {
    let place = Place::new();
    let id = place.note("tea");
    let shown = place.ask(0, &["evidence", "show", &id]);
    let program = std::fs::read(env!("CARGO_BIN_EXE_countersign")).expect("it can be read");
    let digest = Digest::of_bytes(&program).to_string();
    assert_eq!(shown["record"]["tool"]["build"], digest);
}

/// A4: a dry run shows the answer and keeps nothing.
#[test]
fn a_dry_run_keeps_nothing() {
    let place = Place::new();
    let args = [
        "call",
        "notes.add",
        "--args",
        r#"{"text": "x"}"#,
        "--dry-run",
    ];
    assert_eq!(place.ask(0, &args)["data"]["id"], "n_0001");
    assert_eq!(place.ask(0, &["call", "notes.list"])["data"], json!([]));
}

/// Commands that are started together take turns and all succeed.
#[test]
fn commands_at_the_same_moment_wait_for_each_other() {
    let place = Place::new();
    place.note("first");
    std::thread::scope(|scope| {
        for number in 0..4 {
            let place = &place;
            scope.spawn(move || place.note(&format!("note {number}")));
        }
    });
    let notes = place.ask(0, &["call", "notes.list"]);
    assert_eq!(notes["data"].as_array().unwrap().len(), 5);
    place.verified();
    let doctor = place.ask(0, &["doctor"]);
    // Another program may have the usual port.
    let points = doctor.as_array().unwrap().iter();
    let points = points.filter(|point| point["what"] != "port");
    assert_eq!(points.filter(|point| point["state"] != "ok").count(), 0);
}

/// One byte of a record in the database file is found, and the record is named; exit code 3.
#[test]
fn a_flipped_byte_is_named() {
    let place = Place::new();
    place.note("first");
    let id = place.note("second");
    place.note("third");
    place.verified();
    let path = place.data().join("countersign.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // The leaf spells the record's name, as canonical JSON does; the row does not.
    let needle = format!("\"id\":\"{id}\",");
    let at = find(&bytes, needle.as_bytes()).expect("the leaf is in the file");
    let kind = find(&bytes[at..], b"\"call\"").expect("the kind follows the name");
    bytes[at + kind + 1] = b'b';
    std::fs::write(&path, bytes).unwrap();
    let report = place.ask(3, &["verify", "--all"]);
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|finding| finding["index"] == 1),
        "{report}"
    );
    let told = place.shown(3, &["verify", "--all"]);
    assert!(
        told.contains("wrong: record 1") && told.ends_with("not valid\n"),
        "{told}"
    );
}

/// A saved progress, genuine or planted, does not count for a run without `--resume`.
#[test]
fn a_planted_progress_hides_nothing() {
    let place = Place::new();
    let id = place.note("first");
    let progress = json!({"quick": false, "progress": place.verified()["progress"]});
    let path = place.data().join("countersign.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = find(&bytes, format!("\"id\":\"{id}\",").as_bytes()).expect("the leaf is in the file");
    let kind = find(&bytes[at..], b"\"call\"").expect("the kind follows the name");
    bytes[at + kind + 1] = b'b';
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(place.data().join("verify.progress"), progress.to_string()).unwrap();
    place.ask(3, &["verify", "--all"]);
    std::fs::write(place.data().join("verify.progress"), progress.to_string()).unwrap();
    let told = place.told(0, &["verify", "--all", "--resume"]);
    assert!(told.starts_with("note: continuing at record 1"), "{told}");
}

/// A store that cannot be opened any more does not hold, and that is not the caller's mistake.
#[test]
fn a_damaged_file_is_not_valid() {
    let place = Place::new();
    place.note("first");
    let path = place.data().join("countersign.db");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..4096]).unwrap();
    let told = place.told(3, &["verify", "--all"]);
    assert!(told.contains("the database is damaged"), "{told}");
}

/// A missing key is not replaced beside a store: under a new key the data could be neither read nor continued.
#[test]
fn a_key_that_is_missing_is_not_replaced() {
    let place = Place::new();
    place.note("first");
    for name in ["master.key", "log.key"] {
        let path = place.data().join(name);
        let key = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let told = place.told(2, &["call", "notes.list"]);
        assert!(
            told.contains("is missing") && told.contains("backup"),
            "{told}"
        );
        assert!(!path.exists(), "{name}");
        write_secret(&path, &key);
    }
    place.note("second");
    place.verified();
}

/// A database that was rolled back to a backup is refused before anything is signed: exit code 3.
#[test]
fn a_rolled_back_store_is_not_signed_for() {
    let place = Place::new();
    place.note("first");
    let path = place.data().join("countersign.db");
    let backup = std::fs::read(&path).unwrap();
    place.note("second");
    std::fs::write(&path, backup).unwrap();
    let told = place.told(3, &["call", "notes.list"]);
    assert!(told.contains("the log was rolled back"), "{told}");
    place.ask(3, &["verify", "--all"]);
    assert_eq!(place.ask(1, &["doctor"]).as_array().unwrap().len(), 17);
}

/// A bundle is checked without the store, by both programs; one that was changed is not valid.
#[test]
fn a_bundle_is_checked_by_strangers() {
    let place = Place::new();
    let id = place.note("private words");
    let file = place.folder.path().join("bundle.json");
    let path = file.to_str().unwrap();
    place.told(0, &["evidence", "export", &id, "-o", path]);
    let bundle = std::fs::read_to_string(&file).unwrap();
    assert!(!bundle.contains("private words"));
    let reason = ["--content", "opened", "--reason", "a test"];
    place.told(
        0,
        &[&["evidence", "export", &id, "-o", path][..], &reason].concat(),
    );
    let bundle = std::fs::read_to_string(&file).unwrap();
    assert!(bundle.contains("private words"));
    let accesses = place.ask(0, &["evidence", "list", "--kind", "access"]);
    assert_eq!(accesses.as_array().unwrap().len(), 1);

    let key = place.data().join("log.pub");
    let stranger = Place::new();
    let verify = ["verify", path, "--key", key.to_str().unwrap()];
    assert_eq!(stranger.ask(0, &verify)["valid"], true);
    let unkeyed = stranger.ask(4, &["verify", path]);
    assert_eq!(
        (&unkeyed["verdict"], &unkeyed["valid"]),
        (&json!("consistent"), &json!(false))
    );
    let told = stranger.shown(4, &["verify", path]);
    assert!(
        told.ends_with("\nconsistent, signer not checked\n"),
        "{told}"
    );
    assert!(!stranger.data().exists(), "a bundle needs no folder");
    std::fs::write(&file, bundle.replace("private words", "other words")).unwrap();
    let report = stranger.ask(3, &verify);
    assert!(!report["findings"].as_array().unwrap().is_empty());
}

/// A21: an erased user's content is gone and every proof is still valid; a hold forbids the erasure.
#[test]
fn a_hold_forbids_to_erase_and_erasing_breaks_no_proof() {
    let place = Place::new();
    let id = place.note("forget this");
    let open = ["evidence", "open", &id, "--reason", "a test"];
    assert_eq!(place.ask(0, &open)["arguments"]["text"], "forget this");
    place.ask(0, &["evidence", "hold", &id, "--reason", "a case"]);
    let erase = [
        "evidence",
        "erase",
        "u_local",
        "--reason",
        "asked by u_local",
    ];
    let told = place.told(1, &erase);
    assert!(
        told.contains("under a hold: a case")
            && told.contains(&format!(
                "`countersign evidence release {id} --reason TEXT`"
            )),
        "{told}"
    );
    place.ask(0, &["evidence", "release", &id, "--reason", "it is over"]);
    // The note, and why it was opened, held and released.
    assert_eq!(place.ask(0, &erase)["payloads"], 4);
    assert_eq!(place.verified()["payloads_gone"], 4);
    let told = place.told(1, &open);
    assert!(told.contains("was erased"), "{told}");
    let shown = place.ask(0, &["evidence", "show", &id]);
    assert_eq!(shown["proof"]["state"], "signed");
    assert_eq!(shown["user_id"], "");
    assert_eq!(place.ask(0, &["call", "notes.list"])["data"], json!([]));
}

/// After a rotation the old key is gone and everything still opens; interrupted, it goes on.
#[test]
fn keys_are_rotated() {
    let place = Place::new();
    let id = place.note("kept");
    let master = place.data().join("master.key");
    let old = std::fs::read(&master).unwrap();
    // The key of the user, and the one for what belongs to no user.
    assert_eq!(place.ask(0, &["keys", "rotate-master"])["rewrapped"], 2);
    assert_ne!(std::fs::read(&master).unwrap(), old);
    assert!(!place.data().join("master.key.old").exists());
    place.ask(0, &["evidence", "open", &id, "--reason", "a test"]);

    // As if it had been killed after the new key was in its place: nothing is wrapped by it yet.
    let before = std::fs::read(&master).unwrap();
    write_secret(&place.data().join("master.key.old"), &before);
    write_secret(&master, format!("{}\n", "5e".repeat(32)).as_bytes());
    place.told(0, &["call", "notes.list"]);
    // The key of the user, and the one for what belongs to no user.
    assert_eq!(place.ask(0, &["keys", "rotate-master"])["rewrapped"], 2);
    place.ask(0, &["evidence", "open", &id, "--reason", "a test"]);
    place.verified();
}

/// A key that others may read is refused, with what to do.
#[test]
fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.note("first");
    let master = place.data().join("master.key");
    std::fs::set_permissions(&master, std::fs::Permissions::from_mode(0o640)).unwrap();
    let told = place.told(2, &["call", "notes.list"]);
    let path = master.display();
    let expected = format!(
        "error: other accounts can read {path} (mode 0640)\nhint: run `chmod 600 {path}`\n"
    );
    assert_eq!(told, expected);
}

/// The same on PostgreSQL: calls, their evidence, a rotation that other processes have to notice.
#[test]
fn postgresql_is_another_store() {
    let server = countersign_testkit::postgres::shared_postgres();
    let place = Place {
        store: Some(server.fresh_database()),
        ..Place::new()
    };
    let add = [
        "call",
        "notes.add",
        "--args",
        r#"{"text": "milk"}"#,
        "--key",
        "k_1",
    ];
    let first = place.ask(0, &add);
    let second = place.ask(0, &add);
    assert_eq!(
        (&second["data"], &second["replayed"]),
        (&first["data"], &json!(true))
    );
    let id = evidence(&first);
    place.verified();
    // The key of the user, and the one for what belongs to no user.
    assert_eq!(place.ask(0, &["keys", "rotate-master"])["rewrapped"], 2);
    let old = place.data().join("master.key.old");
    assert!(old.exists(), "other processes may still use it");
    place.ask(0, &["keys", "rotate-master", "--finish"]);
    assert!(!old.exists());
    place.ask(0, &["evidence", "open", &id, "--reason", "a test"]);
    assert!(!place.data().join("countersign.db").exists());
    place.verified();
    let told = place.told(0, &["doctor"]);
    assert_eq!(told, "");
}

/// An unreachable address is reported without its password.
#[test]
fn a_password_is_not_told() {
    let place = Place {
        store: Some("postgres://app:s3cret@127.0.0.1:1/none".to_owned()),
        ..Place::new()
    };
    let told = place.told(2, &["call", "notes.list"]);
    assert!(
        told.contains("cannot use postgres://127.0.0.1:1/none"),
        "{told}"
    );
    assert!(!told.contains("s3cret"), "{told}");
    assert!(
        told.contains("hint: check that PostgreSQL runs") && told.contains("store.url"),
        "{told}"
    );
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}

fn write_secret(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(bytes));
    written.expect("the folder can be written");
}

/// A SQLite store moves to PostgreSQL: the same answers, the same log, and the file stays.
#[test]
fn a_store_moves_to_postgresql() {
    let server = countersign_testkit::postgres::shared_postgres();
    let mut place = Place::new();
    let keyed = [
        "call",
        "notes.add",
        "--args",
        r#"{"text": "kept"}"#,
        "--key",
        "k1",
    ];
    let first = place.ask(0, &keyed);
    place.note("another");
    let address = server.fresh_database();
    let report = place.ask(0, &["store", "migrate", "--to", &address]);
    assert_eq!(
        (&report["records"], &report["tree_size"]),
        (&json!(2), &json!(2))
    );
    let told = place.told(2, &["store", "migrate", "--to", &address]);
    assert!(told.contains("is not empty"), "{told}");
    place.store = Some(address);
    let again = place.ask(0, &keyed);
    assert_eq!(
        (&again["data"], &again["replayed"]),
        (&first["data"], &json!(true))
    );
    let notes = place.ask(0, &["call", "notes.list"]);
    assert_eq!(notes["data"].as_array().unwrap().len(), 2);
    place.verified();
}

/// A13: who answers names the question; the answer counts for these arguments, once.
#[test]
fn the_operator_answers_a_question_by_its_id() {
    let place = Place::new();
    let clear = |code: i32, arguments: &str| {
        let call = ["call", "notes.clear", "--user", "u_7", "--args", arguments];
        place.ask(code, &call)
    };
    let asked = clear(1, "{}");
    let id = asked["error"]["details"]["approval_id"].as_str();
    let id = id.expect("it names the approval");
    let short = id.get(..10).expect("an id is longer");
    for too_little in ["", "ap_", short, "xxxxxxxxxxx"] {
        for answer in ["approve", "deny"] {
            let told = place.told(2, &["approvals", answer, too_little]);
            assert!(told.starts_with("error: the id is too short"), "{told}");
        }
    }
    let enough = id.get(..11).expect("an id is longer");
    let told = place.told(
        0,
        &["approvals", "approve", enough, "--reason", "asked by phone"],
    );
    let expected = "approved: the call of notes.clear of u_7 may be made once, until ";
    assert!(told.contains(expected), "{told}");
    let other = clear(1, r#"{"keep": 1}"#);
    let because = &other["error"]["details"]["asked_because"];
    assert_eq!(because, "arguments_changed");
    assert_eq!(clear(0, "{}")["data"], json!({"cleared": 0}));
    let used = place.ask(0, &["approvals", "list", "--state", "used"]);
    assert_eq!(
        used[0]["answer"]["by"],
        json!({"type": "system", "id": "operator/tester"})
    );
    let told = place.told(1, &["approvals", "deny", id]);
    assert!(told.contains("is used"), "{told}");
}

/// U7: a second folder with keys of its own on one database writes nothing, and its error says what to do.
#[test]
fn a_second_folder_on_one_database_brings_the_same_keys() {
    let url = countersign_testkit::postgres::shared_postgres().fresh_database();
    let on = |place: Place| Place {
        store: Some(url.clone()),
        ..place
    };
    let (first, second) = (on(Place::new()), on(Place::new()));
    first.note("milk");
    let told = second.told(2, &["call", "notes.list"]);
    assert!(
        told.contains("the data belongs to the master key ")
            && told.contains(
                "hint: copy master.key and log.key from the data folder that made this store"
            ),
        "{told}"
    );
    let size = first.ask(0, &["verify", "--all"])["size"].clone();
    assert_eq!(size, 1, "the second folder has written nothing");
    for name in ["master.key", "log.key", "log.pub"] {
        let key = std::fs::read(first.data().join(name)).unwrap();
        write_secret(&second.data().join(name), &key);
    }
    second.note("bread");
    assert_eq!(first.ask(0, &["verify", "--all"])["valid"], true);
}

/// U4: an erasure that is killed at any moment leaves the user with the keys, or neither.
#[test]
fn an_erasure_that_is_killed_leaves_both_or_none() {
    let place = Place::new();
    let mut erased = 0;
    for n in 0..10_u64 {
        let user = format!("u_{n}");
        place.ask(0, &["keys", "create", "--user", &user, "--label", "a key"]);
        let _watchdog = Watchdog::start();
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["evidence", "erase", &user, "--reason", "asked", "--json"])
            .env("COUNTERSIGN_DATA", place.data())
            .env("COUNTERSIGN_OPERATOR", "tester")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Another moment each time, up to its end.
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_millis(n * 15) {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let rows = place.ask(0, &["evidence", "list", "--user", &user]);
        let is_known = !rows.as_array().unwrap().is_empty();
        let keys = place.ask(0, &["keys", "list"]);
        let mut keys = keys.as_array().unwrap().iter();
        let has_key = keys.any(|key| key["actor"]["id"] == user.as_str());
        assert_eq!(has_key, is_known, "{user}");
        erased += usize::from(!is_known);
        if is_known {
            place.ask(0, &["evidence", "erase", &user, "--reason", "asked"]);
        }
    }
    assert_eq!(place.ask(0, &["keys", "list"]), json!([]));
    assert!(erased < 10, "some were killed before");
    place.verified();
}
