//! A5, A17, T8: an effect at an HTTP service, and processes that die in the middle of it: ours between the intent and the effect, ours
//! between the effect and its settling, the service before and after its effect. Afterwards the same call is made again.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use countersign::contract::RecordKind;
use countersign::ledger::{ClaimQuery, LogQuery};
use countersign_testkit::patience::Watchdog;
use countersign_testkit::postgres::shared_postgres;
use countersign_torture::server;
use countersign_torture::tools::Ledger;
use countersign_torture::worker::open;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign-torture");

/// The recoveries that a tool can declare, each with its name.
const RECOVERIES: [&str; 3] = ["operator", "downstream_key", "reconcile"];

struct Scene {
    folder: tempfile::TempDir,
    store: String,
    port: u16,
}

/// A service in a process of its own; it is killed when this is dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Scene {
    fn new(store: impl FnOnce(&std::path::Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            store: store(folder.path()),
            port: listener.local_addr().unwrap().port(),
            folder,
        }
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("effects")
    }

    /// Starts the service, and waits until it listens.
    fn serve(&self, act: &str) -> Service {
        let child = Command::new(PROGRAM)
            .args(["service", "--address", &format!("127.0.0.1:{}", self.port)])
            .args(["--act", act, "--ledger"])
            .arg(self.ledger())
            .stdin(Stdio::null())
            .spawn();
        let service = Service(child.unwrap());
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            std::thread::yield_now();
        }
        service
    }

    /// Makes the call in a process of its own.
    fn call(&self, recovery: &str, key: Option<&str>) -> Output {
        let recovery = match recovery {
            "operator" => json!("operator"),
            "downstream_key" => json!({"downstream_key": {"window_seconds": 3600}}),
            _ => json!({"reconcile": {"grace_seconds": 0}}),
        };
        let manifest = json!({
            "upstream": [{
                "name": "svc", "base_url": format!("http://127.0.0.1:{}", self.port),
                "allow_private": ["loopback"], "headers": {"X-Caller-Pid": "{pid}"},
                "retries": {"attempts_max": 2, "backoff_ms": 1, "backoff_max_ms": 2},
            }],
            "tool": [{
                "name": "svc.order", "upstream": "svc", "description": "Orders.", "recovery": recovery,
                "parameters": [{"name": "n", "kind": "integer"}],
            }],
        });
        let path = self.folder.path().join("manifest.json");
        std::fs::write(&path, manifest.to_string()).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["call", "--store", &self.store, "--manifest"]);
        command.arg(path);
        if let Some(key) = key {
            command.args(["--key", key]);
        }
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// The numbers of claims and intents in the store.
    fn kept(&self) -> (usize, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = open(&self.store).await.unwrap();
            let claims = ClaimQuery {
                limit: 10,
                ..ClaimQuery::default()
            };
            let intents = LogQuery {
                kind: Some(RecordKind::Intent),
                limit: 10,
                ..LogQuery::default()
            };
            (
                store.claims(&claims).await.unwrap().len(),
                store.records(&intents).await.unwrap().len(),
            )
        })
    }

    fn expire_leases(&self) {
        // One process owns a SQLite file: the leases of the dead are over when it opens.
        if self.store.starts_with("postgres") {
            server::expire_leases(&self.store).unwrap();
        }
    }
}

/// A reply as one line.
fn told(output: &Output) -> String {
    if output.status.signal() == Some(9) {
        return "killed".to_owned();
    }
    let reply: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| unreachable!("{}", String::from_utf8_lossy(&output.stderr)));
    if reply["ok"] == true {
        return format!("ok {}", reply["data"]);
    }
    let error = &reply["error"];
    let reason = error["details"]["reason"].as_str().unwrap_or_default();
    format!("{} {reason}", error["code"].as_str().unwrap())
        .trim()
        .to_owned()
}

/// Runs every case and returns one line for each: the process that died, the replies of the first and the second call,
/// the claims and intents kept, and the number of effects.
fn play(scene: &dyn Fn() -> Scene) -> String {
    let mut lines = Vec::new();
    for act in [
        "caller-before",
        "caller-after",
        "service-before",
        "service-after",
    ] {
        for recovery in RECOVERIES {
            let scene = scene();
            let service = scene.serve(act);
            let first = told(&scene.call(recovery, Some("k")));
            let (claims, intents) = scene.kept();
            scene.expire_leases();
            drop(service);
            let _service = scene.serve("nothing");
            let second = told(&scene.call(recovery, Some("k")));
            let third = told(&scene.call(recovery, Some("k")));
            assert_eq!(second, third, "{act} {recovery}");
            let effects = Ledger::at(scene.ledger()).lines().unwrap();
            lines.push(format!(
                "{act} {recovery}: {first}, {claims} claim, {intents} intent; then {second}; {} effects",
                effects.len()
            ));
        }
    }
    lines.join("\n")
}

const EXPECTED: &str = "\
caller-before operator: killed, 1 claim, 1 intent; then CONFLICT in_doubt; 0 effects
caller-before downstream_key: killed, 1 claim, 1 intent; then ok {\"order\":0}; 1 effects
caller-before reconcile: killed, 1 claim, 1 intent; then ok {\"order\":0}; 1 effects
caller-after operator: killed, 1 claim, 1 intent; then CONFLICT in_doubt; 1 effects
caller-after downstream_key: killed, 1 claim, 1 intent; then ok {\"order\":0}; 1 effects
caller-after reconcile: killed, 1 claim, 1 intent; then ok {\"order\":0}; 1 effects
service-before operator: UPSTREAM_ERROR, 1 claim, 1 intent; then CONFLICT in_doubt; 0 effects
service-before downstream_key: UPSTREAM_ERROR, 1 claim, 1 intent; then ok {\"order\":0}; 1 effects
service-before reconcile: UPSTREAM_ERROR, 1 claim, 1 intent; then ok {\"order\":0}; 1 effects
service-after operator: UPSTREAM_ERROR, 1 claim, 1 intent; then CONFLICT in_doubt; 1 effects
service-after downstream_key: UPSTREAM_ERROR, 1 claim, 1 intent; then ok {\"order\":0}; 1 effects
service-after reconcile: UPSTREAM_ERROR, 1 claim, 1 intent; then ok {\"order\":0}; 1 effects";

/// A17, A18, T8: on SQLite.
#[test]
fn deaths_around_an_effect_on_sqlite() {
    let _watchdog = Watchdog::after(Duration::from_mins(9));
    let scene = || Scene::new(|folder| folder.join("a.db").to_string_lossy().into_owned());
    assert_eq!(play(&scene), EXPECTED);
}

/// A17, A18, T8: on PostgreSQL.
#[test]
fn deaths_around_an_effect_on_postgres() {
    let _watchdog = Watchdog::after(Duration::from_mins(9));
    let server = shared_postgres();
    let scene = || Scene::new(|_| server.fresh_database());
    assert_eq!(play(&scene), EXPECTED);
}

/// T8: a call without a key that dies in its effect leaves a claim and an intent, under a key of ours.
#[test]
fn a_call_without_a_key_leaves_its_trace() {
    let _watchdog = Watchdog::start();
    for act in ["caller-before", "caller-after"] {
        let scene = Scene::new(|folder| folder.join("a.db").to_string_lossy().into_owned());
        let _service = scene.serve(act);
        assert_eq!(told(&scene.call("operator", None)), "killed");
        assert_eq!(scene.kept(), (1, 1), "{act}");
    }
}
