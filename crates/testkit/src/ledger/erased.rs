//! Calls that run while their user is erased, through real executors as several processes have them: no effect comes back as half,
//! an effect elsewhere that has happened is answered and recorded, and the log verifies whole.

use std::sync::Arc;

use countersign::archive::verify::Verification;
use countersign::archive::{Archive, SCOPE_ERASE};
use countersign::clock::ManualClock;
use countersign::ids::RandomIds;
use countersign::ledger::{Durability, Entry, Error, LogRow, Store};
use countersign::sequencer::{LastStop, Sequencer};
use countersign::state::Collection;
use countersign::unavailable::Unavailable;
use countersign::{
    Arguments, BoxFuture, CallContext, Catalog, DynTool, Executor, Principal, Reply, ToolCall,
    ToolError,
};
use countersign_contract::tool::{Effect, Input};
use countersign_contract::{
    Actor, ActorType, ErrorCode, RecordKind, ReplyEnvelope, RequestEnvelope, ToolName, ToolSpec,
};
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use serde_json::json;
use tokio::sync::Semaphore;

use super::build::entry;
use super::{Checked, Fresh, all_records, race};

const NOTES: Collection = Collection::of_user("note");
const STOCK: Collection = Collection::shared("stock");

/// Tool that writes a document of the user and a shared one, and can be held between the two.
struct Slow {
    spec: ToolSpec,
    gate: Arc<Gate>,
}

/// Gate at which a call waits.
struct Gate {
    entered: Semaphore,
    open: Semaphore,
}

impl Gate {
    fn shut() -> Arc<Self> {
        Arc::new(Self {
            entered: Semaphore::new(0),
            open: Semaphore::new(0),
        })
    }

    /// An open gate, at which no call waits.
    fn open() -> Arc<Self> {
        let gate = Self::shut();
        gate.open.add_permits(Semaphore::MAX_PERMITS);
        gate
    }

    async fn pass(&self) {
        self.entered.add_permits(1);
        let open = self.open.acquire().await;
        open.expect("nobody closes it").forget();
    }

    /// Returns when this number of calls is in the middle.
    async fn until_entered(&self, calls: u32) {
        let entered = self.entered.acquire_many(calls).await;
        entered.expect("nobody closes it").forget();
    }
}

impl DynTool for Slow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            let state = ctx.state();
            if self.spec.behaviour.effect == Effect::Read {
                self.gate.pass().await;
                return Ok(json!("read").into());
            }
            state.put(&NOTES, "n", &"tea").await?;
            let left: Option<u32> = state.get(&STOCK, "tea").await?;
            state
                .put(&STOCK, "tea", &(left.unwrap_or_default() + 1))
                .await?;
            self.gate.pass().await;
            Ok(json!("done").into())
        })
    }
}

/// A process: an executor, and what an operator does there.
struct Process {
    executor: Executor,
    archive: Archive,
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
}

impl Process {
    fn of(store: Arc<dyn Store>, gate: &Arc<Gate>) -> Self {
        let start = "2026-11-15T12:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::starting_at(start));
        let ids = Arc::new(RandomIds::default());
        let tools = [
            ("slow.read", Effect::Read),
            ("slow.write", Effect::Write),
            ("slow.send", Effect::External),
        ];
        let catalog = tools.into_iter().fold(Catalog::builder(), |catalog, tool| {
            let (name, effect) = tool;
            let mut spec = ToolSpec::new(ToolName::new(name).expect("a name"), "")
                .input(Input::Schema(json!({"type": "object"})));
            spec.behaviour.effect = effect;
            catalog.dyn_tool(Arc::new(Slow {
                spec,
                gate: gate.clone(),
            }))
        });
        let executor = Executor::builder(catalog.build().expect("tools that can be registered"))
            .store(store.clone())
            .clock(clock.clone())
            .ids(ids.clone())
            .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
            .build();
        let archive = Archive::new(
            store.clone(),
            executor.vault().clone(),
            clock.clone(),
            ids,
            signing_key().verifying_key(),
        );
        Self {
            executor,
            archive,
            store,
            clock,
        }
    }

    fn call(&self, tool: &str, key: &str) -> impl Future<Output = ReplyEnvelope> + Send + 'static {
        let envelope = RequestEnvelope {
            idempotency_key: (!key.is_empty()).then(|| key.to_owned()),
            ..RequestEnvelope::default()
        };
        let call = ToolCall::new(tool, "{}", Principal::user("u_1")).envelope(envelope);
        let executor = self.executor.clone();
        async move { executor.execute(call).await }
    }

    async fn erase(&self) -> Checked {
        let actor = Actor {
            kind: ActorType::System,
            id: "desk".to_owned(),
        };
        let by = Principal::new(actor, "").scope(SCOPE_ERASE);
        let erased = self.archive.erase("u_1", &by, "asked").await;
        erased.map(drop).map_err(told)
    }

    /// Signs everything and verifies the whole log; nothing is found.
    async fn verify(&self) -> Checked {
        self.store.flush().await?;
        let stop = LastStop {
            held: None,
            is_unclean: false,
        };
        let sequencer = Sequencer::builder(self.store.clone(), signing_key())
            .clock(self.clock.clone())
            .lease(std::time::Duration::ZERO)
            .start(stop);
        let mut sequencer = sequencer.await.map_err(told)?;
        sequencer.tick().await.map_err(told)?;
        let verification = Verification::default();
        let report = self.archive.verify_all(&verification, |_, _| {}).await;
        let report = report.map_err(told)?;
        assert!(report.is_valid(), "{report:?}");
        Ok(())
    }

    async fn stock(&self) -> Result<u64, Error> {
        let place = countersign::ledger::DocumentKey {
            user_id: String::new(),
            collection: "stock".to_owned(),
            id: "tea".to_owned(),
        };
        Ok(self.store.document(&place).await?.version)
    }

    /// Checks that nothing can be found by the user's name.
    async fn check_gone(&self) -> Checked {
        assert!(!self.archive.knows_user("u_1").await.map_err(told)?);
        let scan = self.store.scan("u_1", "note", "", None, 10).await?;
        assert_eq!(scan.documents, []);
        Ok(())
    }
}

fn signing_key() -> SigningKey {
    SigningKey::from_seed("example.com/log", &[1; 32]).expect("a name of a log")
}

fn told(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Unavailable::new("archive", error).into()
}

/// The records of calls, and who they are filed under.
async fn calls(store: &dyn Store) -> Result<Vec<LogRow>, Error> {
    store.flush().await?;
    let all = all_records(store).await?.into_iter();
    let of_calls = all.filter(|row| row.request_id.is_some());
    Ok(of_calls.collect())
}

/// A17, A19: the write that ran is not made, neither the user's part nor the shared one; the caller gets an error, and a record without a
/// name says so.
pub(super) async fn a_write_of_a_user_erased_meanwhile_is_not_made(fresh: &Fresh) -> Checked {
    for key in ["k_1", ""] {
        let gate = Gate::shut();
        let one = Process::of(fresh.handle(0), &gate);
        let other = Process::of(fresh.handle(1), &Gate::open());
        let before = calls(&*fresh.store).await?.len();
        let stock = one.stock().await?;
        let running = tokio::spawn(one.call("slow.write", key));
        gate.until_entered(1).await;
        other.erase().await?;
        gate.open.add_permits(1);
        let reply = running.await.expect("it does not panic");
        let error = reply.error.expect("it is refused");
        assert_eq!(error.code, ErrorCode::Conflict, "{error:?}");
        assert!(error.message.to_string().contains("erased"), "{error:?}");
        one.check_gone().await?;
        assert_eq!(one.stock().await?, stock);
        let recorded = calls(&*fresh.store).await?;
        assert_eq!(recorded.len(), before + 1);
        assert!(recorded.iter().all(|row| row.user_id.is_empty()));
        one.verify().await?;
    }
    Ok(())
}

/// A9, A19: an external effect has happened: the caller gets its answer, shared documents are written, and its record stays without a name.
pub(super) async fn an_effect_of_a_user_erased_meanwhile_is_recorded(fresh: &Fresh) -> Checked {
    for key in ["k_1", ""] {
        let gate = Gate::shut();
        let one = Process::of(fresh.handle(0), &gate);
        let other = Process::of(fresh.handle(1), &Gate::open());
        let stock = one.stock().await?;
        let running = tokio::spawn(one.call("slow.send", key));
        gate.until_entered(1).await;
        other.erase().await?;
        gate.open.add_permits(1);
        let reply = running.await.expect("it does not panic");
        assert!(reply.ok, "{reply:?}");
        let evidence = reply.evidence.expect("there is a log");
        let record = fresh.store.record(&evidence.snapshot_id).await?;
        let record = record.expect("it is kept");
        assert_eq!((&*record.row.user_id, record.row.code), ("", None));
        assert_eq!(record.payload, None);
        one.check_gone().await?;
        assert_eq!(one.stock().await?, stock + 1);
        one.verify().await?;
    }
    Ok(())
}

/// A19: a read whose record is sealed in the background, after the erasure.
pub(super) async fn a_read_of_a_user_erased_meanwhile_leaves_no_name(fresh: &Fresh) -> Checked {
    let gate = Gate::shut();
    let one = Process::of(fresh.handle(0), &gate);
    let other = Process::of(fresh.handle(1), &Gate::open());
    let running = tokio::spawn(one.call("slow.read", ""));
    gate.until_entered(1).await;
    other.erase().await?;
    gate.open.add_permits(1);
    let reply = running.await.expect("it does not panic");
    assert!(reply.ok, "{reply:?}");
    let recorded = calls(&*fresh.store).await?;
    let names: Vec<&str> = recorded.iter().map(|row| &*row.user_id).collect();
    assert_eq!(names, [""]);
    one.check_gone().await?;
    one.verify().await
}

/// A19: a process that still holds the key of a user whom another one has erased writes nothing under it; the call that
/// comes after that is the first one of a new user.
pub(super) async fn a_process_that_has_not_heard_writes_nothing(fresh: &Fresh) -> Checked {
    let one = Process::of(fresh.handle(0), &Gate::open());
    let other = Process::of(fresh.handle(1), &Gate::open());
    for tool in ["slow.write", "slow.send"] {
        // Now it holds the key.
        let reply = one.call(tool, "k_1").await;
        assert!(reply.ok, "{reply:?}");
        other.erase().await?;
        other.check_gone().await?;
        let stock = other.stock().await?;
        let reply = one.call(tool, "k_2").await;
        let is_refused = reply.error.as_ref().map(|error| error.code);
        match is_refused {
            // A store of one process has told it.
            None => assert!(Arc::ptr_eq(&fresh.handle(0), &fresh.handle(1)), "{reply:?}"),
            Some(code) => {
                assert_eq!(code, ErrorCode::Conflict, "{reply:?}");
                assert_eq!(other.stock().await?, stock, "{tool}");
                other.check_gone().await?;
            }
        }
        let reply = one.call(tool, "k_3").await;
        assert!(reply.ok, "{reply:?}");
        assert!(other.archive.knows_user("u_1").await.map_err(told)?);
        other.verify().await?;
        // Whoever erases forgets the key.
        one.erase().await?;
    }
    other.verify().await
}

/// A17, A19: many calls of many kinds in two processes, with erasures in the middle: in every order, the whole log verifies and no record
/// is lost.
pub(super) async fn racing_calls_and_erasures_leave_a_valid_log(fresh: &Fresh) -> Checked {
    const ROUNDS: usize = 3;
    const CALLS: usize = 18;
    let processes: Vec<Arc<Process>> = (0..2)
        .map(|n| Arc::new(Process::of(fresh.handle(n), &Gate::open())))
        .collect();
    let mut answered = 0;
    for round in 0..ROUNDS {
        let done = race(CALLS + 1, |n| {
            let process = processes.get(n % 2).expect("one of two").clone();
            async move {
                if n == CALLS / 2 {
                    process.erase().await?;
                    return Ok(0);
                }
                let tool = ["slow.read", "slow.write", "slow.send"].get(n % 3);
                let key = format!("k_{round}_{n}");
                let call = process.call(tool.expect("one of three"), &key);
                call.await;
                Ok(1)
            }
        });
        answered += done.await?.into_iter().sum::<usize>();
        let one = processes.first().expect("one of two");
        one.verify().await?;
    }
    let recorded = calls(&*fresh.store).await?;
    let of_calls = recorded.iter().filter(|row| row.kind != RecordKind::Intent);
    assert!(of_calls.count() >= answered);
    // A user who came back in between is there under a key of their own; the last erasure takes that, too.
    let one = processes.first().expect("one of two");
    one.erase().await?;
    one.check_gone().await?;
    one.verify().await
}

/// A check that can fail: the record of a user without a key is what verification finds.
pub(super) async fn a_named_record_without_a_key_is_found(fresh: &Fresh) -> Checked {
    let one = Process::of(fresh.handle(0), &Gate::open());
    let reply = one.call("slow.write", "k_1").await;
    assert!(reply.ok, "{reply:?}");
    let evidence = reply.evidence.expect("there is a log");
    let kept = fresh.store.record(&evidence.snapshot_id).await?;
    let kept = kept.expect("it is kept");
    one.erase().await?;
    // The same leaf under another name, as a store without the check would have kept it.
    let mut record: serde_json::Value =
        serde_json::from_slice(&kept.leaf).expect("a record is JSON");
    let mut unchecked = entry("ev_unchecked", "u_1");
    if let Some(members) = record.as_object_mut() {
        members.insert("id".to_owned(), "ev_unchecked".into());
    }
    unchecked.leaf = countersign_contract::canonical::to_vec(&record).expect("small numbers");
    unchecked.at = kept.row.at;
    unchecked.tool = kept.row.tool;
    unchecked.request_id = kept.row.request_id;
    unchecked.payload = kept.payload;
    let unchecked = Entry {
        sealed_under: None,
        ..unchecked
    };
    let kept = fresh.store.append(unchecked.into(), Durability::Committed);
    kept.await?;
    let stop = LastStop {
        held: None,
        is_unclean: false,
    };
    let sequencer = Sequencer::builder(fresh.store.clone(), signing_key()).start(stop);
    let mut sequencer = sequencer.await.map_err(told)?;
    sequencer.tick().await.map_err(told)?;
    let report = one
        .archive
        .verify_all(&Verification::default(), |_, _| {})
        .await;
    let report = report.map_err(told)?;
    let codes: Vec<_> = report.findings.iter().map(|it| it.fault.code()).collect();
    assert_eq!(codes, ["key_missing"]);
    Ok(())
}
