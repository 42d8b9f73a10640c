//! Erasure leaves nothing (A21, A22): thousands of personal values go through every parameter of every tool and every
//! field of the envelope; then their users are erased, and every table, file, log line and bundle is searched for them.
//!
//! Alone in its binary: the decision to log a line at all is made once for the whole process.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod values;

use std::fmt::{Debug, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};

use aho_corasick::AhoCorasick;
use countersign::archive::{Archive, Export, SCOPE_ERASE, SCOPE_OPEN};
use countersign::clock::ManualClock;
use countersign::contract::{Actor, ActorType, RequestEnvelope, SnapshotId};
use countersign::ids::SequentialIds;
use countersign::ledger::{LogQuery, Store};
use countersign::rules::Rules;
use countersign::sample::{MemorySearch, Vat};
use countersign::sequencer::{LastStop, Sequencer, Tick};
use countersign::{Catalog, Credential, Executor, Principal, ToolCall};
use countersign_commerce::rulebook::RuleFiles;
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use values::Values;

/// The number of values; the users' own ids are among them.
const VALUES: usize = 5_000;

/// The number of users that share them.
const USERS: usize = 8;

static RULES: LazyLock<Rules> = LazyLock::new(|| RuleFiles::embedded().unwrap().rules().unwrap());

/// A21, A22: on a file.
#[tokio::test]
async fn an_erasure_leaves_nothing_in_any_file() {
    let log = Sink::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("a.db"), SqliteOptions::default()).unwrap();
    let world = World::on(Arc::new(store));
    let mut values = world.fill(VALUES).await;
    let before = files(folder.path());
    let search = Search::of(&values);
    // The search finds existing values: the store files by user.
    assert!(search.hits(&[("files", before)]) != Vec::<String>::new());
    let bundle = world.erase_all(&mut values).await;
    world
        .executor
        .execute(ToolCall::new(
            "cart.create",
            "{}",
            Principal::user("u_after"),
        ))
        .await;
    drop(world);
    let log = log.0.lock().unwrap().clone();
    assert!(
        log.contains("tool_call") || log.contains("request_id"),
        "nothing was logged: {log}"
    );
    let places = [
        ("files", files(folder.path())),
        ("log", log.into_bytes()),
        ("bundle", bundle),
    ];
    let hits = search.hits(&places);
    assert_eq!(
        hits,
        Vec::<String>::new(),
        "{} hits of {VALUES} values",
        hits.len()
    );
}

/// A21, A22: in the tables of a server. Values in binary columns are searched in the hexadecimal that it dumps.
#[tokio::test]
async fn an_erasure_leaves_nothing_in_any_table() {
    let shared = shared_postgres();
    let url = shared.fresh_database();
    let options = PostgresOptions::new(&url).connections_max(4);
    let store = PostgresStore::open(options).await.unwrap();
    let world = World::on(Arc::new(store));
    let mut values = world.fill(VALUES / 5).await;
    let search = Search::of(&values);
    assert!(search.hits(&[("tables", tables(&shared.pg_dump(), &url))]) != Vec::<String>::new());
    let bundle = world.erase_all(&mut values).await;
    let places = [
        ("tables", tables(&shared.pg_dump(), &url)),
        ("bundle", bundle),
    ];
    let hits = search.hits(&places);
    assert_eq!(hits, Vec::<String>::new(), "{} hits", hits.len());
}

struct World {
    executor: Executor,
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    ids: Arc<SequentialIds>,
}

impl World {
    fn on(store: Arc<dyn Store>) -> Self {
        let clock = ManualClock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
        let (clock, ids) = (Arc::new(clock), Arc::new(SequentialIds::new()));
        let builder = Catalog::builder()
            .tool(MemorySearch::new(["a note"]))
            .tool(Vat);
        let executor = Executor::builder(countersign_commerce::tools(builder).build().unwrap())
            .store(store.clone())
            .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
            .clock(clock.clone())
            .ids(ids.clone())
            .rules(RULES.clone())
            .build();
        Self {
            executor,
            store,
            clock,
            ids,
        }
    }

    /// Calls every tool again and again, with personal values wherever there is text.
    async fn fill(&self, count: usize) -> Values {
        let mut values = Values::new(USERS);
        let entries = self.executor.catalog().list();
        let mut round = 0;
        while values.made() < count {
            for entry in &entries {
                let schema = entry.spec().json_schema();
                let user = values.user(round);
                let (name, raw) = match round % 4 {
                    // Arguments of the declared form, with personal values.
                    0 | 1 => (
                        entry.name().to_string(),
                        fitting(&schema, &mut values).to_string(),
                    ),
                    // Undeclared members and values of other types.
                    2 => (
                        entry.name().to_string(),
                        other(&schema, &mut values).to_string(),
                    ),
                    // Prose around it, or a tool that there is not.
                    _ if round % 8 == 3 => {
                        let text =
                            format!("{} said: {}", values.next(), fitting(&schema, &mut values));
                        (entry.name().to_string(), text)
                    }
                    _ => (
                        values.next().replace(' ', "_"),
                        json!({"q": values.next()}).to_string(),
                    ),
                };
                self.send(&name, raw, &user, round, &mut values).await;
                round += 1;
            }
        }
        values
    }

    async fn send(&self, tool: &str, raw: String, user: &str, round: usize, values: &mut Values) {
        let envelope = envelope(round, values);
        let principal = match round % 3 {
            0 => Principal::user(user),
            // An agent that only the envelope names, and a credential with an id of the issuer's.
            1 => {
                let actor = Actor {
                    kind: ActorType::Agent,
                    id: "shop-agent".to_owned(),
                };
                let token = Credential::Token {
                    issuer: "https://issuer.example".to_owned(),
                    jti: Some(values.next()),
                };
                Principal::new(actor, user)
                    .proved_by(token)
                    .acting_for_others()
            }
            _ => Principal::user(user).acting_for_others(),
        };
        let mut envelope = envelope;
        if principal.may_act_for_others {
            envelope["user_id"] = json!(user);
            envelope["actor"] = json!({"type": "agent", "id": values.next()});
        }
        let envelope: RequestEnvelope = serde_json::from_value(envelope).unwrap();
        let call = ToolCall::new(tool, raw, principal).envelope(envelope);
        self.executor.execute(call).await;
    }

    /// Erases all users, and exports everything that is left as a bundle.
    async fn erase_all(&self, values: &mut Values) -> Vec<u8> {
        let operator = Principal::user("operator")
            .scope(SCOPE_ERASE)
            .scope(SCOPE_OPEN);
        let key = SigningKey::from_seed("log.example/personal", &[5; 32]).unwrap();
        let archive = Archive::new(
            self.store.clone(),
            self.executor.vault().clone(),
            self.clock.clone(),
            self.ids.clone(),
            key.verifying_key(),
        );
        self.store.flush().await.unwrap();
        // An auditor opens the records before the erasure, and gives a reason in free text.
        for user in 0..USERS {
            let user = values.user(user);
            for row in self.newest(Some(&user)).await.into_iter().take(3) {
                archive.open(&row, &operator, &values.next()).await.unwrap();
            }
        }
        for user in 0..USERS {
            let user = values.user(user);
            let erasure = archive
                .erase(&user, &operator, &values.next())
                .await
                .unwrap();
            assert!(erasure.erased.payloads > 0, "{user} has left nothing");
        }
        let stop = LastStop {
            held: None,
            is_unclean: false,
        };
        let mut sequencer = Sequencer::builder(self.store.clone(), key)
            .start(stop)
            .await
            .unwrap();
        while !matches!(sequencer.tick().await.unwrap(), Tick::Idle) {}
        let ids = self.newest(None).await;
        assert!(ids.len() > 100, "{} records", ids.len());
        let bundle = archive.export(&ids, Export::Sealed, None).await.unwrap();
        bundle.to_json().into_bytes()
    }

    async fn newest(&self, user: Option<&str>) -> Vec<SnapshotId> {
        let query = LogQuery {
            user_id: user.map(str::to_owned),
            limit: 1_000,
            ..LogQuery::default()
        };
        let rows = self.store.records(&query).await.unwrap();
        rows.into_iter().map(|row| row.id).collect()
    }
}

/// Every field of the envelope, in turns: most are refused if they are not of the right form.
fn envelope(round: usize, values: &mut Values) -> Value {
    let mut envelope = json!({
        "request_id": values.next_graphic(),
        "session_id": values.next(),
        "idempotency_key": values.next(),
    });
    let hexadecimal = |digits: usize, value: &str| {
        let digits_only: String = value.chars().filter(char::is_ascii_hexdigit).collect();
        format!("{:0>digits$}", digits_only.to_lowercase())
    };
    match round % 7 {
        0 => envelope["locale"] = json!(values.next()),
        1 => envelope["currency"] = json!(values.next()),
        2 => envelope["timezone"] = json!(values.next()),
        3 => envelope["client"] = json!({"app": values.next(), "version": values.next()}),
        4 => envelope["trace"] = json!({"trace_id": hexadecimal(32, &values.next())}),
        5 => {
            let (span, parent) = (values.next(), values.next());
            envelope["trace"] =
                json!({"span_id": span, "parent_span_id": hexadecimal(16, &parent)});
        }
        _ => envelope["dry_run"] = json!(true),
    }
    envelope
}

/// Arguments of the declared shape.
fn fitting(schema: &Value, values: &mut Values) -> Value {
    if let Some(choices) = schema["enum"].as_array() {
        return choices[0].clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let mut members = Map::new();
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                members.insert(name.clone(), fitting(member, values));
            }
            if schema["additionalProperties"].is_object() {
                members.insert(
                    values.next(),
                    fitting(&schema["additionalProperties"], values),
                );
            }
            Value::Object(members)
        }
        Some("array") => json!([fitting(&schema["items"], values)]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => values.next_number(),
        _ => json!(values.next()),
    }
}

/// Arguments of another shape: unknown names, values of other types.
fn other(schema: &Value, values: &mut Values) -> Value {
    let mut members = Map::new();
    for name in schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        members.insert(
            name.clone(),
            json!([values.next(), {"deep": values.next()}]),
        );
    }
    members.insert(values.next(), json!({values.next(): values.next()}));
    Value::Object(members)
}

/// All values at once, as they are and in hexadecimal.
struct Search {
    values: Vec<String>,
    plain: AhoCorasick,
    hexadecimal: AhoCorasick,
}

impl Search {
    fn of(values: &Values) -> Self {
        let values = values.all();
        let hexadecimal = values.iter().map(|value| {
            value.bytes().fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").unwrap();
                text
            })
        });
        Self {
            plain: AhoCorasick::new(&values).unwrap(),
            hexadecimal: AhoCorasick::new(hexadecimal).unwrap(),
            values,
        }
    }

    /// The values found, with their places; repeats in a row are merged, and at most 40 are returned.
    fn hits(&self, places: &[(&str, Vec<u8>)]) -> Vec<String> {
        let mut hits = Vec::new();
        for (name, bytes) in places {
            assert!(!bytes.is_empty(), "there is nothing to search in {name}");
            for found in [&self.plain, &self.hexadecimal] {
                for hit in found.find_iter(bytes) {
                    let from = hit.start().saturating_sub(60);
                    let around = &bytes[from..(hit.end() + 20).min(bytes.len())];
                    let around = String::from_utf8_lossy(around);
                    hits.push(format!(
                        "{} in {name}: …{around}…",
                        self.values[hit.pattern()]
                    ));
                }
            }
        }
        hits.dedup();
        hits.truncate(40);
        hits
    }
}

/// Every byte of every file.
fn files(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        bytes.extend(std::fs::read(file.unwrap().path()).unwrap());
    }
    bytes
}

/// Every row of every table.
fn tables(pg_dump: &Path, url: &str) -> Vec<u8> {
    let dump = Command::new(pg_dump)
        .args(["--data-only", "--inserts", url])
        .output()
        .unwrap();
    assert!(
        dump.status.success(),
        "{}",
        String::from_utf8_lossy(&dump.stderr)
    );
    dump.stdout
}

/// All log output, as one text.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<String>>);

impl Visit for Sink {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Sink {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
