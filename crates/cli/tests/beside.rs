//! Commands beside a running server: the same output, the same records and the same exit codes as without one, and no
//! word to a listener that is not the server of the folder.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use countersign_testkit::patience::Watchdog;
use countersign_testkit::postgres::shared_postgres;
use serde_json::Value;
use tempfile::TempDir;

#[path = "beside/script.rs"]
mod script;

/// A data folder, and the commands that are run on it.
struct Installation {
    folder: TempDir,
    /// Path of the data below the folder.
    data: PathBuf,
    /// The store, if it is not the one in the folder.
    store: Option<String>,
    _watchdog: Watchdog,
}

/// Output and exit code of a command.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Seen {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl Seen {
    /// It was refused, or could not be done.
    #[track_caller]
    fn no(self) -> Self {
        assert!(matches!(self.code, Some(1 | 2)), "{self:?}");
        self
    }
}

impl Installation {
    fn new() -> Self {
        Self::in_data("data")
    }

    /// One whose data is this deep below a temporary folder.
    fn in_data(data: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            data: folder.path().join(data),
            folder,
            store: None,
            _watchdog: Watchdog::start(),
        }
    }

    fn on(store: String) -> Self {
        Self {
            store: Some(store),
            ..Self::new()
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("COUNTERSIGN_DATA", &self.data)
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY");
        if let Some(store) = &self.store {
            command.env("COUNTERSIGN_STORE", store);
        }
        command
    }

    fn run(&self, words: &[&str]) -> Seen {
        let output = self.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Seen {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    fn serve(&self, words: &[&str]) -> Server {
        self.serve_to(words, Stdio::null())
    }

    /// Starts a server that writes its log to this file.
    fn serve_to(&self, words: &[&str], log: Stdio) -> Server {
        let words = [&["serve", "--json", "--listen", "127.0.0.1:0"], words].concat();
        let mut child = self
            .command(&words)
            // The server has an account's name of its own; records have the name of whoever asked.
            .env("COUNTERSIGN_OPERATOR", "server")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let url = said["url"].as_str().unwrap().to_owned();
        Server { child, url }
    }
}

/// A server that is there until this is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn signal(&mut self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap();
    }

    fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every command does the same beside a server as without one, but for those that begin with one of these.
#[track_caller]
fn check_same(alone: &Installation, beside: &Installation, but: &[&str]) {
    for installation in [alone, beside] {
        installation.run(&["call", "notes.list"]).ok();
    }
    let without = script::play(alone);
    let mut server = beside.serve(&[]);
    let with = script::play(beside);
    assert_eq!(without.len(), with.len());
    assert!(without.len() > 50, "{}", without.len());
    let is_compared = |step: &&script::Step| !but.iter().any(|but| step.words.starts_with(but));
    let without: Vec<_> = without.iter().filter(is_compared).collect();
    let with: Vec<_> = with.iter().filter(is_compared).collect();
    let differ: Vec<_> = without.iter().zip(&with).filter(|(a, b)| a != b).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    assert_eq!(script::records(alone), script::records(beside));
    server.signal("-TERM");
    beside.run(&["verify", "--all", "--thorough"]).ok();
    assert!(!beside.file("countersign.sock").exists());
}

/// A13, A16, A18, A19: on SQLite, whose file the server has for itself.
#[test]
fn commands_do_the_same_beside_a_server_on_sqlite() {
    check_same(&Installation::new(), &Installation::new(), &[]);
}

/// The same on PostgreSQL. There a command that comes soon after another one leaves the signing to it, so how far the log
/// is differs for some seconds.
#[test]
fn commands_do_the_same_beside_a_server_on_postgres() {
    let postgres = shared_postgres();
    let installation = || Installation::on(postgres.fresh_database());
    let but = ["call-show", "evidence show", "verify --all", "doctor"];
    check_same(&installation(), &installation(), &but);
}

/// Commands prove themselves over TCP if the path is too long for a socket, and do the same as with one.
#[test]
fn commands_do_the_same_where_there_is_no_socket() {
    let deep = format!("{}/{}", "d".repeat(60), "e".repeat(60));
    let beside = Installation::in_data(&deep);
    check_same(&Installation::in_data(&deep), &beside, &[]);
}

/// The operator's name in the records is that of the caller, not the server's.
#[test]
fn records_name_whoever_asked() {
    let installation = Installation::new();
    let _server = installation.serve(&[]);
    installation
        .run(&["call", "notes.list", "--user", "u_7"])
        .ok();
    let held = installation.run(&["evidence", "hold", "u_7", "--reason", "r", "--json"]);
    let id = held.ok().json()["evidence"].as_str().unwrap().to_owned();
    let shown = installation.run(&["evidence", "show", &id, "--json"]).ok();
    assert_eq!(shown.json()["record"]["actor"]["id"], "operator/tester");
}

/// A19: the server's policy decides about a call that a command makes beside it.
#[test]
fn the_policy_of_the_server_decides_about_calls() {
    let installation = Installation::new();
    let policy = installation.folder.path().join("policy.toml");
    fs::write(&policy, "revision = \"closed\"").unwrap();
    let policy = policy.display().to_string();
    let _server = installation.serve(&["--policy", &policy]);
    let seen = installation.run(&["call", "notes.list", "--json"]);
    assert_eq!(seen.code, Some(1), "{seen:?}");
    assert_eq!(seen.json()["error"]["code"], "FORBIDDEN");
}

/// A server that was killed leaves its socket; commands work without it, and the next server takes its place.
#[test]
fn a_killed_servers_socket_is_in_nobodys_way() {
    let installation = Installation::new();
    let mut server = installation.serve(&[]);
    let socket = installation.file("countersign.sock");
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o7777, 0o600);
    server.signal("-KILL");
    assert!(socket.exists());
    installation.run(&["call", "notes.list"]).ok();
    installation.run(&["keys", "list"]).ok();
    assert!(
        socket.exists(),
        "it is nobody's, and stays until a server comes"
    );
    let mut server = installation.serve(&[]);
    let seen = installation.run(&["doctor"]).ok();
    assert!(seen.out.contains("works at http://127.0.0.1:"), "{seen:?}");
    server.signal("-TERM");
    assert!(!socket.exists() && !installation.file("server.json").exists());
    let left = fs::read_dir(&installation.data).unwrap();
    let left = left.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".sock")
    });
    assert_eq!(left.count(), 0);
}

/// A command that needs the file for itself reports that, and why.
#[test]
fn what_needs_the_server_stopped_says_why() {
    let installation = Installation::new();
    let _server = installation.serve(&[]);
    let migrate = ["store", "migrate", "--to", "postgres://127.0.0.1:1/none"];
    for words in [&migrate[..], &["serve", "--listen", "0"]] {
        let seen = installation.run(words);
        assert_eq!(seen.code, Some(2), "{seen:?}");
        assert!(
            seen.err.contains("this command needs the file for itself")
                && seen.err.contains("hint: stop the server first: process "),
            "{seen:?}"
        );
    }
}

/// An operation whose command is gone delays nothing: the store is closed in order by SIGTERM.
#[test]
fn a_command_that_is_killed_holds_nothing_up() {
    let installation = Installation::new();
    let mut server = installation.serve(&[]);
    for _ in 0..12 {
        let mut child = installation
            .command(&["verify", "--all"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    installation.run(&["verify", "--all"]).ok();
    server.signal("-TERM");
    let seen = installation.run(&["doctor"]).ok();
    assert!(seen.out.contains("last shutdown  clean"), "{seen:?}");
}

/// Refuses with this, and does nothing.
#[track_caller]
fn check_refused(installation: &Installation, says: &str) {
    for words in [
        &["keys", "revoke", "0000000000000000"][..],
        &["keys", "create", "--user", "ann"],
        &["calls"],
        &["call", "notes.list"],
    ] {
        let seen = installation.run(words);
        assert_eq!(seen.code, Some(2), "{words:?} {seen:?}");
        assert!(seen.err.contains(says), "{words:?} {seen:?}");
        assert!(seen.err.contains("is not asked"), "{words:?} {seen:?}");
        assert_eq!(seen.out, "");
    }
    let seen = installation.run(&["doctor"]);
    assert_eq!(seen.code, Some(1), "{seen:?}");
    assert!(seen.out.contains(says), "{seen:?}");
}

/// U8: a socket that others could have made, or that another account owns, is not asked.
#[test]
fn a_socket_that_others_could_have_made_is_refused() {
    let installation = Installation::new();
    installation.run(&["call", "notes.list"]).ok();
    let socket = installation.file("countersign.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let chmod = |path: &PathBuf, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(&socket, 0o666);
    check_refused(&installation, "other accounts can use it (mode 0666)");
    chmod(&socket, 0o600);
    chmod(&installation.data, 0o777);
    check_refused(&installation, "other accounts can write to its folder");
    chmod(&installation.data, 0o700);
    // Only root can give files away.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        std::os::unix::fs::chown(&socket, Some(65_534), None).unwrap();
        check_refused(&installation, "it belongs to account 65534");
    }
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "").unwrap();
    check_refused(&installation, "this is not the socket of a server");
    fs::remove_file(&socket).unwrap();
    std::os::unix::fs::symlink("elsewhere", &socket).unwrap();
    check_refused(&installation, "this is not the socket of a server");
    fs::remove_file(&socket).unwrap();
    installation.run(&["calls"]).ok();
}

/// An account that owns nothing here.
const NOBODY: &str = "65534";

/// Runs Python under another account; each line of the script is one attempt, and says how it ended.
fn as_nobody(script: &str) -> String {
    let run = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .args(["python3", "-c", script])
        // A Python of our own account is none of theirs.
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

/// Attempts to talk to the listener, and to put another socket in its place.
fn attempts(socket: &std::path::Path) -> [String; 2] {
    let path = socket.display();
    let connect = format!(
        "import socket\n\
         s = socket.socket(socket.AF_UNIX)\n\
         s.settimeout(20)\n\
         try:\n    \
             s.connect('{path}')\n    \
             s.sendall(b'GET /v1/operator HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')\n    \
             print('heard', s.recv(9))\n\
         except OSError as error:\n    \
             print(type(error).__name__)"
    );
    let plant = format!(
        "import os, socket\n\
         try:\n    \
             os.path.lexists('{path}') and os.unlink('{path}')\n    \
             s = socket.socket(socket.AF_UNIX)\n    \
             s.bind('{path}')\n    \
             os.chmod('{path}', 0o600)\n    \
             print('planted')\n\
         except OSError as error:\n    \
             print(type(error).__name__)"
    );
    [connect, plant]
}

/// U8: the socket attacked from another account: it is not let in, gets not one byte if it is, cannot take the socket's place, and a socket
/// that it has planted before the server started is neither asked nor followed.
#[test]
fn another_account_gets_nothing_at_the_socket() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!(
            "NOT RUN: only root can become another account. What decides is tested without: \
             `only_the_same_account_and_root_are_the_operator` and `a_folder_that_others_may_write_into_has_no_socket` in the gateway, \
             `a_socket_that_others_could_have_made_is_refused` here."
        );
        return;
    }
    let installation = Installation::new();
    installation.run(&["call", "notes.list"]).ok();
    let socket = installation.file("countersign.sock");
    let chmod = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(installation.folder.path(), 0o755);
    chmod(&installation.data, 0o755);
    let [connect, plant] = attempts(&socket);
    let mut server = installation.serve(&[]);
    // Not let in by the file, nor by the server where the file lets it in.
    assert_eq!(as_nobody(&connect), "PermissionError");
    chmod(&socket, 0o666);
    let seen = as_nobody(&connect);
    let is_hung_up = ["heard b''", "ConnectionResetError", "BrokenPipeError"].contains(&&*seen);
    assert!(is_hung_up, "{seen}");
    chmod(&socket, 0o600);
    assert_eq!(as_nobody(&plant), "PermissionError");
    installation.run(&["calls"]).ok();
    // A folder that everybody may write into while the server runs: the socket is taken away and replaced.
    chmod(&installation.data, 0o777);
    assert_eq!(as_nobody(&plant), "planted");
    check_refused(&installation, "it belongs to account 65534");
    chmod(&installation.data, 0o755);
    check_refused(&installation, "it belongs to account 65534");
    server.signal("-TERM");
    // Neither does a server start over what somebody has planted, be it a socket or a link to something of theirs.
    let check_no_server = |says: &str| {
        let seen = installation.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(seen.code, Some(2), "{seen:?}");
        assert!(seen.err.contains(says), "{seen:?}");
    };
    check_no_server("it belongs to account 65534");
    fs::remove_file(&socket).unwrap();
    let theirs = installation.folder.path().join("theirs");
    fs::write(&theirs, "theirs").unwrap();
    std::os::unix::fs::symlink(&theirs, &socket).unwrap();
    check_refused(&installation, "this is not the socket of a server");
    check_no_server("this is not the socket of a server");
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    fs::remove_file(&socket).unwrap();
    let mut server = installation.serve(&[]);
    installation.run(&["calls"]).ok();
    server.signal("-TERM");
    // Nor where others may write.
    chmod(&installation.data, 0o777);
    check_no_server("others may write into the folder");
    check_no_server("chmod go-w");
}

/// A listener that answers 200 to everything, and keeps the requests.
fn answer_everything(mut stream: impl std::io::Read + std::io::Write, heard: &Mutex<String>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..length]);
        heard.lock().unwrap().push_str(&text);
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n";
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// U8: a listener at the socket is not taken for the server because it answers 200.
#[test]
fn a_fake_server_at_the_socket_is_refused() {
    let installation = Installation::new();
    installation.run(&["call", "notes.list"]).ok();
    let socket = installation.file("countersign.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
    let heard = Arc::new(Mutex::new(String::new()));
    let sink = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sink = sink.clone();
            std::thread::spawn(move || answer_everything(stream, &sink));
        }
    });
    check_refused(&installation, "cannot prove that it is the server of");
    let heard = heard.lock().unwrap();
    assert!(heard.contains("GET /v1/operator "), "{heard}");
    assert!(!heard.contains("POST"), "{heard}");
}

/// U8: the socket of another folder's server is refused, even under this folder's name.
#[test]
fn a_server_of_another_folder_is_refused() {
    let (ours, other) = (Installation::new(), Installation::new());
    ours.run(&["call", "notes.list"]).ok();
    let _server = other.serve(&[]);
    let socket = ours.file("countersign.sock");
    fs::hard_link(other.file("countersign.sock"), &socket).unwrap();
    check_refused(&ours, "belongs to the server of another folder");
}

/// The doctor of a second server does not contradict itself: what another server has signed is signed.
#[test]
fn the_doctor_of_a_second_server_knows_who_signs() {
    let store = shared_postgres().fresh_database();
    let (first, second) = (
        Installation::on(store.clone()),
        Installation::on(store.clone()),
    );
    first.run(&["call", "notes.list"]).ok();
    fs::create_dir(&second.data).unwrap();
    fs::set_permissions(&second.data, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["master.key", "log.key", "log.pub"] {
        fs::copy(first.file(name), second.file(name)).unwrap();
    }
    let found = |installation: &Installation, what: &str| {
        let points = installation.run(&["doctor", "--json"]).ok().json();
        let mut points = points.as_array().unwrap().iter();
        let point = points.find(|point| point["what"] == what).unwrap();
        assert_eq!(point["state"], "ok", "{point}");
        point["found"].as_str().unwrap().to_owned()
    };
    assert_eq!(found(&second, "signing"), "every record is signed");
    assert!(
        found(&second, "log").starts_with("1 record, 1 signed by another server of this store"),
        "{}",
        found(&second, "log")
    );
}

/// U8: a second server on the folder leaves the socket to the first, and commands find the second when the first has ended.
#[test]
fn a_second_server_leaves_the_socket_to_the_first() {
    let installation = Installation::on(shared_postgres().fresh_database());
    let mut first = installation.serve(&[]);
    let socket = installation.file("countersign.sock");
    let taken = fs::metadata(&socket).unwrap().ino();
    let log = installation.folder.path().join("second.log");
    let mut second = installation.serve_to(&[], fs::File::create(&log).unwrap().into());
    assert_eq!(fs::metadata(&socket).unwrap().ino(), taken);
    let asked = || installation.run(&["status", "--json"]).ok().json()["process"].clone();
    assert_eq!(asked(), first.child.id());
    let told = fs::read_to_string(&log).unwrap();
    assert!(
        told.contains("commands go to the server that was started first on this data folder"),
        "{told}"
    );
    let announced: Value =
        serde_json::from_slice(&fs::read(installation.file("server.json")).unwrap()).unwrap();
    assert_eq!(announced["pid"], first.child.id());
    first.signal("-TERM");
    assert!(!socket.exists());
    assert_eq!(asked(), second.child.id());
    second.signal("-TERM");
    let left = fs::read_dir(&installation.data).unwrap();
    let paths = left.map(|file| file.unwrap().path());
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    assert_eq!(paths.filter(is_socket).count(), 0);
}

/// U8: over TCP, a listener on the port of a server that is gone gets no request, and `keys revoke` says "ok" only for a key that it has
/// really revoked.
#[test]
fn a_fake_server_on_the_port_is_refused() {
    let installation = Installation::in_data(&"d".repeat(120));
    let mut server = installation.serve(&[]);
    assert!(!installation.file("countersign.sock").exists());
    let made = installation.run(&["keys", "create", "--user", "ann"]).ok();
    let id = made.out.split('_').nth(1).unwrap().to_owned();
    let announced = installation.file("server.json");
    assert_eq!(fs::metadata(&announced).unwrap().mode() & 0o777, 0o600);
    let left: Value = serde_json::from_slice(&fs::read(&announced).unwrap()).unwrap();
    let secret = left["secret"].as_str().unwrap();
    assert_eq!(
        bearer(server.address(), secret),
        401,
        "the secret is no credential"
    );
    server.signal("-KILL");

    let listener = TcpListener::bind(server.address()).unwrap();
    let heard = Arc::new(Mutex::new(String::new()));
    let sink = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sink = sink.clone();
            std::thread::spawn(move || answer_everything(stream, &sink));
        }
    });
    // The process that was announced lives, as far as anybody can tell.
    let mut alive = left.clone();
    alive["pid"] = std::process::id().into();
    fs::write(&announced, alive.to_string()).unwrap();
    check_refused(&installation, "cannot prove that it is the server of");
    {
        let heard = heard.lock().unwrap();
        assert!(heard.contains("POST /v1/operator/prove"), "{heard}");
        let heard = heard.to_lowercase();
        assert!(!heard.contains("authorization") && !heard.contains(secret));
    }
    // It is gone, whoever has its port.
    fs::write(&announced, left.to_string()).unwrap();
    installation.run(&["keys", "revoke", &id]).ok();
    let listed = installation.run(&["keys", "list", "--json"]).ok().json();
    assert_eq!(listed[0]["state"], "revoked");
}

fn bearer(address: &str, token: &str) -> u16 {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /v1/keys HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The operator's operations do not exist for callers, not even for those who have every scope.
#[test]
fn operations_do_not_exist_for_callers() {
    let installation = Installation::new();
    let server = installation.serve(&[]);
    let ask = |header: &str| {
        let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
        write!(
            stream,
            "POST /v1/operator/doctor HTTP/1.1\r\nhost: {}\r\n{header}connection: close\r\ncontent-length: 2\r\n\r\n{{}}",
            server.address()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    assert_eq!(ask(""), 404);
    let mut words = vec!["keys", "create", "--user", "ann"];
    for scope in [
        "keys:manage",
        "approvals:answer",
        "evidence:open",
        "calls:read",
    ] {
        words.extend(["--scope", scope]);
    }
    let key = installation.run(&words).ok().out;
    assert_eq!(
        ask(&format!("authorization: Bearer {}\r\n", key.trim())),
        404
    );
    assert_eq!(ask(""), 401);
}
