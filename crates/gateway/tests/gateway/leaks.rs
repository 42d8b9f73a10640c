//! A21: known personal data is sent through every part of the gateway, and then every sink is searched for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::approve::Wanted;
use countersign::archive::{Archive, Export};
use countersign::clock::{Clock, SystemClock};
use countersign::contract::envelope::Client;
use countersign::contract::trace::Trace;
use countersign::contract::{Actor, ActorType, ApprovalState, Effect, RequestEnvelope};
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{LogQuery, Store};
use countersign::observe::{Observer, Origin, Surface};
use countersign::sequencer::{LastStop, Sequencer, Tick};
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_evidence::note::SigningKey;
use countersign_gateway::identity::Identity;
use countersign_gateway::metrics::Metrics;
use countersign_gateway::telemetry::{Options, Traces};
use countersign_gateway::{Gateway, Server, Settings};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::patience::until;
use serde_json::json;

use crate::captured::CAPTURED;
use crate::collector::Collector;

mod courier;
mod personal;
mod wire;

use courier::{Courier, Legacy, MODES};
use personal::{NEEDLES, PASSPORT, PERSONAL, USER, as_request_id, everything, found_in};
use wire::Wire;

struct World {
    folder: tempfile::TempDir,
    gateway: Gateway,
    store: Arc<SqliteStore>,
    sequencer: Sequencer,
    collector: Collector,
    traces: Arc<Traces>,
    wire: Wire,
    /// Answers to the user: everything that is searched for must be in them.
    replies: Mutex<Vec<u8>>,
}

impl World {
    async fn start() -> Self {
        std::sync::LazyLock::force(&CAPTURED);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("countersign.db");
        let store = Arc::new(SqliteStore::open(file, SqliteOptions::default()).unwrap());
        let collector = Collector::start().await;
        let metrics = Arc::new(Metrics::new());
        let dropped = metrics.spans_dropped();
        let traces = Traces::start(&collector.url, &Options::default(), dropped).unwrap();
        let traces = Arc::new(traces);
        let observers: Vec<Arc<dyn Observer>> = vec![metrics.clone(), traces.clone()];
        let executor = Executor::builder(catalog())
            .store(store.clone())
            .clock(clock.clone())
            .ids(ids.clone())
            .observer(Arc::new(observers))
            .build();
        let key = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
        let archive = Archive::new(
            store.clone(),
            executor.vault().clone(),
            clock,
            ids.clone(),
            key.verifying_key(),
        );
        let gateway = Gateway::new(
            executor,
            archive,
            ids,
            Identity::loopback(),
            Settings::default(),
        )
        .with_metrics(metrics);
        let stop = LastStop::default();
        let sequencer = Sequencer::builder(store.clone(), key)
            .start(stop)
            .await
            .unwrap();
        let any_port = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(gateway.clone(), any_port).await.unwrap();
        let wire = Wire::new(format!("http://{}", server.address().unwrap()));
        tokio::spawn(server.run(std::future::pending()));
        Self {
            folder,
            gateway,
            store,
            sequencer,
            collector,
            traces,
            wire,
            replies: Mutex::default(),
        }
    }

    async fn send(&self, tool: &str, arguments: impl Into<Arc<str>>, envelope: RequestEnvelope) {
        let principal = Principal::user(USER).acting_for_others();
        let call = ToolCall::new(tool, arguments, principal).envelope(envelope);
        let origin = Origin {
            surface: Surface::Provider,
            call_id: Some(everything().into()),
        };
        let reply = self.gateway.call(call.origin(origin)).await;
        let reply = serde_json::to_vec(&reply).unwrap();
        self.replies.lock().unwrap().extend(reply);
    }

    /// Makes a call that the user has to confirm: asked, answered with a reason, and run.
    async fn confirm(&self, text: &str) {
        let arguments = arguments(text, "ok").swap_remove(0);
        self.send("courier.buy", &*arguments, RequestEnvelope::default())
            .await;
        let approvals = self.gateway.executor().approvals();
        let user = Principal::user(USER);
        let wanted = Wanted {
            state: Some(ApprovalState::Pending),
            ..Wanted::default()
        };
        let open = approvals.list(&user, &wanted).await.unwrap();
        assert_eq!(open.len(), 1);
        let counted = String::from_utf8(self.metrics().await).unwrap();
        assert!(
            counted.contains("\ncountersign_approvals_pending 1\n"),
            "{counted}"
        );
        let reason = Some("for 欧阳张伟, the knee operation");
        approvals.approve(&open[0].id, &user, reason).await.unwrap();
        self.send("courier.buy", arguments, RequestEnvelope::default())
            .await;
    }

    /// Returns the replies to another user with the same keys.
    async fn replies_to_others(&self) -> Vec<u8> {
        let mut replies = Vec::new();
        for tool in TOOLS {
            for (number, mode) in (0..9).flat_map(|number| MODES.map(|mode| (number, mode))) {
                let call = ToolCall::new(tool, "{}", Principal::user("u_other"));
                let call = call.envelope(keyed(format!("k_{number}_{mode}")));
                let reply = self.gateway.call(call).await;
                replies.extend(serde_json::to_vec(&reply).unwrap());
            }
        }
        replies
    }

    async fn metrics(&self) -> Vec<u8> {
        let answer = reqwest::get(format!("{}/metrics", self.wire.url)).await;
        answer.unwrap().bytes().await.unwrap().to_vec()
    }

    /// Returns everything that leaves the process or stays behind, except the store itself.
    async fn sinks(&mut self) -> Vec<(&'static str, Vec<u8>)> {
        let sequencer = &mut self.sequencer;
        until(async || !matches!(sequencer.tick().await.unwrap(), Tick::Grown { .. })).await;
        assert!(self.traces.flush(Duration::from_secs(30)).await);
        let metrics = self.metrics().await;
        let (leaves, bundle) = self.evidence().await;
        vec![
            ("the log", CAPTURED.written().await),
            ("our own events", CAPTURED.plain()),
            ("spans", self.collector.bytes()),
            ("metrics", metrics),
            ("leaves", leaves),
            ("a bundle", bundle),
        ]
    }

    async fn evidence(&self) -> (Vec<u8>, Vec<u8>) {
        let store: &dyn Store = &*self.store;
        let head = store.head().await.unwrap();
        let leaves = store.leaves(0, head.size as usize).await.unwrap();
        assert_eq!(leaves.len() as u64, head.size);
        let query = LogQuery {
            limit: 100,
            ..LogQuery::default()
        };
        let rows = store.records(&query).await.unwrap();
        let ids: Vec<_> = rows.into_iter().map(|row| row.id).collect();
        let archive = self.gateway.archive();
        let bundle = archive.export(&ids, Export::Sealed, None).await.unwrap();
        let leaves = leaves.into_iter().flat_map(|leaf| leaf.bytes).collect();
        (leaves, serde_json::to_vec(&bundle).unwrap())
    }

    /// Returns the database and its side files, byte for byte.
    fn files(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            bytes.extend(std::fs::read(entry.unwrap().path()).unwrap());
        }
        bytes
    }
}

fn catalog() -> Catalog {
    Catalog::builder()
        .dyn_tool(Arc::new(Courier::new("courier.ask", Effect::Read)))
        .dyn_tool(Arc::new(Courier::new("courier.note", Effect::Write)))
        .dyn_tool(Arc::new(Courier::new("courier.send", Effect::External)))
        .dyn_tool(Arc::new(
            Courier::new("courier.buy", Effect::Write).confirmed(),
        ))
        .handler("courier.legacy", Legacy)
        .build()
        .unwrap()
}

const TOOLS: [&str; 4] = [
    "courier.ask",
    "courier.note",
    "courier.send",
    "courier.legacy",
];

/// Returns the fault of a sink.
fn leak_of(sink: &str, bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return Some(format!("{sink} has nothing in it"));
    }
    let found = found_in(bytes);
    let shown = around(bytes, found.first()?);
    Some(format!("{found:?} in {sink}: {shown}"))
}

/// Returns the text around a needle, to find the leak.
fn around(bytes: &[u8], needle: &str) -> String {
    let text = String::from_utf8_lossy(bytes);
    let at = text.find(needle).unwrap_or_default();
    let start = text.floor_char_boundary(at.saturating_sub(300));
    let end = text.floor_char_boundary((at + 200).min(text.len()));
    text[start..end].escape_debug().to_string()
}

/// Returns values that are declared as personal, undeclared, in a map, as names, and broken in every way.
fn arguments(text: &str, mode: &str) -> Vec<String> {
    let quoted = json!(text).to_string();
    vec![
        json!({"mode": mode, "recipient": text, "passport": PASSPORT}).to_string(),
        json!({"mode": mode, "note": format!("for {text} at once"), "passport": PASSPORT})
            .to_string(),
        json!({"mode": mode, "extra": {"to": format!("to {text}"), text: 1}}).to_string(),
        json!({"mode": mode, text: text}).to_string(),
        json!({"mode": text, "recipient": text}).to_string(),
        json!({"mode": mode, "count": text}).to_string(),
        format!("{{mode: '{mode}', note: {quoted}, note: {quoted}"),
        format!("I will send it to {text} now."),
        format!("\u{0}{text}"),
    ]
}

fn keyed(key: String) -> RequestEnvelope {
    RequestEnvelope {
        idempotency_key: Some(key),
        ..RequestEnvelope::default()
    }
}

/// Returns envelopes with personal data in every member.
fn envelopes(text: &str) -> Vec<RequestEnvelope> {
    let id = || Some(text.to_owned());
    vec![
        RequestEnvelope {
            request_id: as_request_id(text),
            ..RequestEnvelope::default()
        },
        RequestEnvelope {
            trace: Some(Trace {
                trace_id: id(),
                span_id: id(),
                parent_span_id: id(),
            }),
            ..RequestEnvelope::default()
        },
        RequestEnvelope {
            session_id: Some(text.to_owned()),
            client: Some(Client {
                app: text.into(),
                version: Some(text.to_owned()),
            }),
            ..keyed(text.to_owned())
        },
        RequestEnvelope {
            actor: Some(Actor {
                kind: ActorType::Agent,
                id: text.to_owned(),
            }),
            ..RequestEnvelope::default()
        },
        RequestEnvelope {
            locale: Some(text.to_owned()),
            ..RequestEnvelope::default()
        },
        RequestEnvelope {
            timezone: Some(text.to_owned()),
            currency: Some(text.to_owned()),
            ..RequestEnvelope::default()
        },
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn personal_data_reaches_no_sink() {
    let mut world = World::start().await;
    let all = everything();
    for tool in TOOLS {
        for mode in MODES {
            for (number, arguments) in arguments(&all, mode).into_iter().enumerate() {
                let envelope = keyed(format!("k_{number}_{mode}"));
                // The second time it is a repeat.
                world.send(tool, &*arguments, envelope.clone()).await;
                world.send(tool, arguments, envelope).await;
            }
        }
    }
    for text in PERSONAL {
        for arguments in arguments(text, "ok") {
            world
                .send("courier.ask", arguments, RequestEnvelope::default())
                .await;
        }
        for envelope in envelopes(text) {
            world
                .send("courier.note", r#"{"mode": "ok"}"#, envelope)
                .await;
        }
        world.send(text, "{}", RequestEnvelope::default()).await;
        world.confirm(text).await;
        world.wire.http(text, &arguments(text, "remark")).await;
        world.wire.mcp(text, &arguments(text, "remark")).await;
        world.wire.provider(text, &arguments(text, "error")).await;
    }
    // It went through the tools, so it could be found.
    let found = found_in(&world.replies.lock().unwrap());
    let missing: Vec<_> = NEEDLES
        .into_iter()
        .filter(|needle| !found.contains(needle))
        .collect();
    assert_eq!(missing, [""; 0]);
    assert!(world.wire.answered() > 100, "{}", world.wire.answered());
    let mut leaks = Vec::new();
    leaks.extend(leak_of("others' replies", &world.replies_to_others().await));
    for (sink, bytes) in world.sinks().await {
        leaks.extend(leak_of(sink, &bytes));
        if String::from_utf8_lossy(&bytes).contains(USER) {
            leaks.push(format!("the user in {sink}: {}", around(&bytes, USER)));
        }
    }
    // A store files by its users, so their name is in it.
    let files = String::from_utf8_lossy(&world.files()).replace(USER, "");
    leaks.extend(leak_of("the database", files.as_bytes()));
    assert!(leaks.is_empty(), "{}", leaks.join("\n\n"));
}
