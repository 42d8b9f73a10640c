//! Recorded calls, verified and computed again (A16).

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use countersign::clock::{Clock, ManualClock};
use countersign::contract::tool::Replay;
use countersign::contract::{RecordKind, SnapshotId};
use countersign::ids::{RandomIds, SequentialIds};
use countersign::ledger::{Integration, Log, LogQuery, MemoryStore, Sequencing};
use countersign::replay::{
    Breach, Error, Local, Options, Replayed, Replayer, RulesAt, Standing, Verdict,
};
use countersign::rules::Rules;
use countersign::scribe::Act;
use countersign::vault::Vault;
use countersign::{Catalog, Principal, ToolError};
use countersign_evidence::seal::MasterKey;
use countersign_testkit::faulty::FaultyStore;
use countersign_testkit::ledger::build::disposed_now;
use serde_json::{Value, json};

use crate::world::{Probe, World, call_as};

/// The price of something in a country: arguments, rules, time, and an id that is another one each time.
fn pricing(name: &str) -> Probe {
    Probe::read(name)
        .with(|behaviour| {
            let volatile = vec!["/quote_id".to_owned()];
            behaviour.replay = Replay::Pure { volatile };
        })
        .body(|ctx, arguments| {
            let quote_id = format!("{:016x}", ctx.child().span_id);
            Box::pin(async move {
                let vat = ctx.rules("vat")?;
                let country = arguments["country"].as_str().unwrap();
                let Some(rate) = vat.data[country].as_f64() else {
                    return Err(ToolError::not_found("there is no such country"));
                };
                let cents = arguments["cents"].as_f64().unwrap();
                Ok(json!({
                    "quote_id": quote_id,
                    "total": {"cents": cents * (1.0 + rate / 1e4), "rate": rate},
                    "at": ctx.now().to_string(),
                })
                .into())
            })
        })
}

fn rules(rates: &[Value]) -> Rules {
    let add = |rules: countersign::rules::RulesBuilder, rates: &Value| {
        rules.version("vat", rates.clone()).unwrap()
    };
    rates.iter().fold(Rules::builder(), add).build()
}

fn old() -> Value {
    json!({"DE": 1900, "FR": 2000, "IT": 2200})
}

/// One value is another one.
fn new() -> Value {
    json!({"DE": 1900, "FR": 2100, "IT": 2200})
}

fn catalog(probe: Probe) -> Catalog {
    Catalog::builder()
        .dyn_tool(Arc::new(probe))
        .build()
        .unwrap()
}

/// A world with this number of recorded prices, each at its own time, and a replayer.
async fn recorded(calls: u64) -> (World, Replayer) {
    let probes = [pricing("a.price"), Probe::read("b.world")];
    let world = World::made(probes, MemoryStore::keeping_log, |builder, _| {
        builder.rules(rules(&[old()]))
    });
    for n in 0..calls {
        let country = ["DE", "FR", "IT", "XX"][usize::try_from(n % 4).unwrap()];
        let arguments = json!({"country": country, "cents": 999 + n});
        let user = Principal::user(format!("u_{}", n % 3));
        world
            .execute(call_as(user, "a.price", &arguments, &json!({})))
            .await;
        world.advance_seconds(1);
    }
    let replayer = replayer(&world, auditor()).unwrap();
    (world, replayer)
}

fn auditor() -> Principal {
    Principal::user("auditor").scope("evidence:open")
}

fn replayer(world: &World, by: Principal) -> Result<Replayer, Error> {
    let ids = Arc::new(SequentialIds::new());
    let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
    let vault = Vault::new(world.store.clone(), master, world.clock.clone(), ids);
    let replayer = Replayer::new(world.store.clone(), Arc::new(vault), by)?;
    let ids = Arc::new(RandomIds::new(world.clock.clone()));
    Ok(replayer.with(world.clock.clone(), ids))
}

async fn all(replayer: &Replayer, local: Local) -> (countersign::replay::Report, Vec<Replayed>) {
    let mut each = Vec::new();
    let options = Options { parallel: 4 };
    let report = replayer
        .replay_all(LogQuery::default(), Arc::new(local), options, |one| {
            each.push(one.clone());
        })
        .await
        .unwrap();
    (report, each)
}

async fn ids(world: &World) -> Vec<SnapshotId> {
    let log = world.log().await.into_iter();
    log.map(|(_, stored)| stored.row.id).collect()
}

async fn one(replayer: &Replayer, id: &SnapshotId, local: &Local) -> Verdict {
    replayer.replay(id, local).await.unwrap().verdict
}

/// A16: a thousand recorded calls, refusals among them, are computed again to the last digit, although a
/// newer version of their rules is in force and it is another day.
#[tokio::test]
async fn recorded_calls_compute_to_what_was_recorded() {
    let (world, replayer) = recorded(1_000).await;
    world.advance_seconds(24 * 60 * 60);
    let today = rules(&[old(), new()]);
    let (report, each) = all(
        &replayer,
        replayer.local(catalog(pricing("a.price")), today, RulesAt::Recorded),
    )
    .await;
    assert_eq!(
        (report.tools["a.price"].identical, report.total()),
        (1_000, 1_000)
    );
    assert!(report.is_clean());
    assert_eq!(each.len(), 1_000);
    let query = LogQuery {
        kind: Some(RecordKind::Access),
        limit: 10_000,
        ..LogQuery::default()
    };
    // A22: each opening is written down, and nothing else is.
    assert_eq!(
        Log::records(&*world.store, &query).await.unwrap().len(),
        1_000
    );
    assert_eq!(world.log().await.len(), 2_000);
    let (access, _) = world
        .log()
        .await
        .into_iter()
        .find(|(leaf, _)| leaf["kind"] == "access")
        .unwrap();
    assert_eq!(access["act"]["reason"], "replay");
}

/// Against a candidate's rules, exactly those answers differ that rest on the changed value, and the report names the
/// place.
#[tokio::test]
async fn a_changed_value_changes_exactly_what_rests_on_it() {
    let (world, replayer) = recorded(40).await;
    let candidate = rules(&[old(), new()]);
    let local = replayer.local(catalog(pricing("a.price")), candidate, RulesAt::InForce);
    let (report, _) = all(&replayer, local).await;
    let tool = &report.tools["a.price"];
    assert_eq!((tool.identical, tool.drifted), (30, 10));
    let fields = [("/total/cents", 10), ("/total/rate", 10)];
    assert_eq!(
        tool.fields,
        fields.map(|(path, n)| (path.to_owned(), n)).into()
    );
    let french: Vec<_> = ids(&world)
        .await
        .into_iter()
        .take(40)
        .skip(1)
        .step_by(4)
        .collect();
    for differing in &report.differing {
        assert!(french.contains(&differing.id));
        let Verdict::Drift(differences) = &differing.verdict else {
            panic!("{differing:?}");
        };
        assert_eq!(
            (
                &differences[1].path,
                &differences[1].recorded,
                &differences[1].computed
            ),
            (
                &"/total/rate".to_owned(),
                &Some(json!(2000)),
                &Some(json!(2100))
            )
        );
    }
}

/// Another code is reported as such, in both directions.
#[tokio::test]
async fn a_changed_code_is_told() {
    let (_world, replayer) = recorded(4).await;
    let candidate = rules(&[json!({"DE": 1900, "FR": 2000, "XX": 0})]);
    let local = replayer.local(catalog(pricing("a.price")), candidate, RulesAt::InForce);
    let (report, _) = all(&replayer, local).await;
    let codes = [("NOT_FOUND", "OK"), ("OK", "NOT_FOUND")];
    let codes = codes.map(|(then, now)| ((then.to_owned(), now.to_owned()), 1));
    assert_eq!(report.tools["a.price"].codes, codes.into());
}

/// A call that cannot be computed again says why.
#[tokio::test]
async fn what_cannot_be_computed_says_why() {
    let (world, replayer) = recorded(2).await;
    world.send("b.world", &json!({}), &json!({})).await;
    world.send("z.unknown", &json!({}), &json!({})).await;
    let ids = ids(&world).await;
    let local = |probe: Probe, rates: Value| {
        replayer.local(catalog(probe), rules(&[rates]), RulesAt::Recorded)
    };
    let price = local(pricing("a.price"), old());
    assert_eq!(
        one(&replayer, &ids[2], &local(Probe::read("b.world"), old())).await,
        Verdict::NotPure
    );
    assert_eq!(one(&replayer, &ids[2], &price).await, Verdict::NoSuchTool);
    assert_eq!(
        one(&replayer, &ids[3], &price).await,
        Verdict::NothingToCompare
    );
    let missing = one(&replayer, &ids[0], &local(pricing("a.price"), new())).await;
    assert!(
        matches!(missing, Verdict::MissingRules { ref name, .. } if name == "vat"),
        "{missing:?}"
    );

    let other = pricing("a.price").with(|behaviour| behaviour.ttl_seconds = Some(5));
    let done = replayer
        .replay(&ids[0], &local(other, old()))
        .await
        .unwrap();
    assert_eq!(done.verdict, Verdict::Identical);
    let definition = done.definition.unwrap();
    assert_ne!(definition.recorded, definition.computed);

    let nowhere = SnapshotId::new("ev_999").unwrap();
    let error = replayer.replay(&nowhere, &price).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no record ev_999");
    let nobody = replayer_of_nobody(&world);
    assert!(matches!(nobody, Err(Error::NotAllowed)));
}

fn replayer_of_nobody(world: &World) -> Result<Replayer, Error> {
    replayer(world, Principal::user("auditor"))
}

/// A pure tool that writes, panics or takes for ever does no harm in a replay.
#[tokio::test(start_paused = true)]
async fn a_replay_changes_nothing_and_survives_everything() {
    const COUNTERS: countersign::state::Collection = countersign::state::Collection::of_user("n");
    type Body = fn(&Mutex<u32>);
    let pure = |body: Body| {
        let runs = Mutex::new(0);
        Probe::write("n.set")
            .with(|behaviour| behaviour.replay = Replay::Pure { volatile: vec![] })
            .body(move |ctx, _| {
                body(&runs);
                let is_late = *runs.lock().unwrap() > 100;
                Box::pin(async move {
                    if is_late {
                        std::future::pending::<()>().await;
                    }
                    ctx.state().put(&COUNTERS, "n", &1).await?;
                    Ok(json!(ctx.downstream_key().is_some()).into())
                })
            })
    };
    let world = World::logging([pure(|_| {})]);
    world.send("n.set", &json!({}), &json!({})).await;
    world
        .send("n.set", &json!({}), &json!({"dry_run": true}))
        .await;
    let ids = ids(&world).await;
    let replayer = replayer(&world, auditor()).unwrap();
    let local = |probe| replayer.local(catalog(probe), Rules::default(), RulesAt::Recorded);
    assert_eq!(
        one(&replayer, &ids[0], &local(pure(|_| {}))).await,
        Verdict::Identical
    );
    assert_eq!(
        one(&replayer, &ids[1], &local(pure(|_| {}))).await,
        Verdict::Identical
    );
    let panics = one(&replayer, &ids[0], &local(pure(|_| panic!("no")))).await;
    assert!(
        matches!(
            panics,
            Verdict::OtherCode {
                recorded: None,
                computed: Some(_)
            }
        ),
        "{panics:?}"
    );
    let late = one(
        &replayer,
        &ids[0],
        &local(pure(|runs| *runs.lock().unwrap() = 101)),
    )
    .await;
    assert!(matches!(late, Verdict::OtherCode { .. }), "{late:?}");
    let key = countersign::ledger::DocumentKey {
        user_id: "u_1".to_owned(),
        collection: "n".to_owned(),
        id: "n".to_owned(),
    };
    let document = countersign::ledger::Documents::document(&*world.store, &key)
        .await
        .unwrap();
    assert_eq!(document.version, 1, "the call itself");
}

/// Time stands still for a pure tool while it runs, so that a replay can give it the same one.
#[tokio::test]
async fn a_pure_tool_sees_one_time() {
    let clock = Arc::new(OnceLock::<Arc<ManualClock>>::new());
    let telling = || {
        let clock = clock.clone();
        Probe::read("a.now")
            .with(|behaviour| behaviour.replay = Replay::Pure { volatile: vec![] })
            .body(move |ctx, _| {
                clock.get().unwrap().advance(Duration::from_secs(1));
                Box::pin(async { Ok(json!(ctx.now().to_string()).into()) })
            })
    };
    let world = World::logging([telling()]);
    clock.set(world.clock.clone()).unwrap();
    let reply = world.send("a.now", &json!({}), &json!({})).await;
    assert_eq!(reply["data"], "2026-11-15T12:00:00Z");
    let id = ids(&world).await.remove(0);
    let replayer = replayer(&world, auditor()).unwrap();
    let local = replayer.local(catalog(telling()), Rules::default(), RulesAt::Recorded);
    assert_eq!(one(&replayer, &id, &local).await, Verdict::Identical);
}

/// A16: an erased user's calls can no longer be computed, those whose time is over neither; the others can.
#[tokio::test]
async fn what_is_erased_or_gone_is_told_apart() {
    let (world, replayer) = recorded(6).await;
    let act = Act {
        kind: RecordKind::Erasure,
        at: world.clock.now(),
        user_id: String::new(),
        actor: None,
        about: Value::Null,
        retention: countersign::contract::Retention::Standard,
    };
    let entry = act.entry(SnapshotId::new("ev_erasure").unwrap(), None);
    world.store.erase("u_1", &[], entry).await.unwrap();
    let local = || {
        replayer.local(
            catalog(pricing("a.price")),
            rules(&[old()]),
            RulesAt::Recorded,
        )
    };
    let (report, each) = all(&replayer, local()).await;
    assert_eq!(
        (
            report.tools["a.price"].identical,
            report.tools["a.price"].gone
        ),
        (4, 2)
    );
    assert_eq!(
        each.iter()
            .filter(|one| one.verdict == Verdict::Erased)
            .count(),
        2
    );
    world.advance_seconds(91 * 24 * 60 * 60);
    disposed_now(&*world.store, 100).await.unwrap();
    let (report, each) = all(&replayer, local()).await;
    assert_eq!(report.tools["a.price"].gone, 6);
    assert_eq!(
        each.iter()
            .filter(|one| one.verdict == Verdict::Gone)
            .count(),
        4
    );
}

/// A16: a record is verified against its hash, its payload and its place in the tree.
#[tokio::test]
async fn a_record_is_verified() {
    let (world, replayer) = recorded(3).await;
    let ids = ids(&world).await;
    let verified = replayer.verify(&ids[1]).await.unwrap();
    assert_eq!(
        (verified.standing, verified.has_payload),
        (Standing::Waiting, true)
    );
    assert!(verified.is_intact());
    let sequencing = Sequencing {
        holder: "one".to_owned(),
        lease: Duration::from_secs(10),
    };
    let done = world.store.integrate(&sequencing, 100).await.unwrap();
    assert!(
        matches!(done, Integration::Done { added: 4, .. }),
        "three calls and an opening"
    );
    let verified = replayer.verify(&ids[1]).await.unwrap();
    assert_eq!(verified.standing, Standing::Included { index: 1 });
    assert_eq!(verified.breaches, []);
}

/// A store that was tampered with is detected, for each kind of change.
#[tokio::test]
async fn a_record_that_was_changed_is_found() {
    type Change = fn(&mut countersign::ledger::StoredRecord);
    let changes: [(Change, &[Breach]); 5] = [
        (
            |stored| stored.leaf = b"{}".to_vec(),
            &[Breach::OtherRecord, Breach::NotInTree, Breach::OtherPayload],
        ),
        (|stored| stored.leaf.push(b' '), &[Breach::NotInTree]),
        (
            |stored| stored.payload.as_mut().unwrap()[20] ^= 1,
            &[Breach::OtherPayload],
        ),
        (
            |stored| stored.row.code = Some(countersign::contract::ErrorCode::Timeout),
            &[Breach::OtherRow],
        ),
        (|stored| stored.index = Some(0), &[Breach::NotInTree]),
    ];
    for (change, expected) in changes {
        let (world, _) = recorded(3).await;
        let id = ids(&world).await.remove(1);
        let sequencing = Sequencing {
            holder: "one".to_owned(),
            lease: Duration::from_secs(10),
        };
        world.store.integrate(&sequencing, 100).await.unwrap();
        let plan =
            |_, _| -> countersign::BoxFuture<'static, bool> { Box::pin(std::future::ready(false)) };
        let store = FaultyStore::new(world.store.clone(), plan).changing_records(change);
        let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
        let ids = Arc::new(SequentialIds::new());
        let vault = Vault::new(world.store.clone(), master, world.clock.clone(), ids);
        let replayer = Replayer::new(Arc::new(store), Arc::new(vault), auditor()).unwrap();
        assert_eq!(replayer.verify(&id).await.unwrap().breaches, expected);
    }
}
