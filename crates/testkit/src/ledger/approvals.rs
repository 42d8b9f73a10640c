//! Approvals (A13) through real executors, as several processes have them: what is promised about single
//! use is a promise about the store's commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::approve::{self, SCOPE_ANSWER, Wanted};
use countersign::clock::ManualClock;
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{Error, Store};
use countersign::observe::{Origin, Surface};
use countersign::scribe::Act;
use countersign::state::Collection;
use countersign::unavailable::Unavailable;
use countersign::{
    Arguments, BoxFuture, CallContext, Catalog, DynTool, Executor, Principal, Reply, ToolCall,
    ToolError,
};
use countersign_contract::tool::{Confirmation, Effect, Input};
use countersign_contract::{
    Actor, ActorType, Approval, ErrorCode, RecordKind, ReplyEnvelope, RequestEnvelope, Retention,
    ToolName, ToolSpec, Warning,
};
use countersign_evidence::seal::MasterKey;
use serde_json::json;

use super::{Checked, Fresh, all_records, race};

/// How often a race is run: each could go well by luck.
const ROUNDS: usize = 6;

/// How many calls race.
const CALLERS: usize = 6;

const COUNTS: Collection = Collection::of_user("count");

/// Counts, in the state and outside of it.
struct Counter {
    spec: ToolSpec,
    outside: Arc<AtomicU32>,
}

impl DynTool for Counter {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            if self.spec.behaviour.effect == Effect::External {
                self.outside.fetch_add(1, Ordering::SeqCst);
                return Ok(Reply::default());
            }
            let before: Option<u32> = ctx.state().get(&COUNTS, "n").await?;
            let after = before.unwrap_or_default() + 1;
            ctx.state().put(&COUNTS, "n", &after).await?;
            Ok(json!(after).into())
        })
    }
}

/// Processes that share a store.
struct Processes {
    executors: Vec<Executor>,
    outside: Arc<AtomicU32>,
    clock: Arc<ManualClock>,
}

impl Processes {
    fn of(fresh: &Fresh, effect: Effect) -> Self {
        Self::made(fresh, effect, &Confirmation::Always)
    }

    fn made(fresh: &Fresh, effect: Effect, confirmation: &Confirmation) -> Self {
        let start = "2026-11-15T12:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::starting_at(start));
        let outside = Arc::new(AtomicU32::new(0));
        let executors = (0..CALLERS)
            .map(|n| {
                let behaviour = (effect, confirmation.clone());
                process(fresh.handle(n), clock.clone(), behaviour, outside.clone())
            })
            .collect();
        Self {
            executors,
            outside,
            clock,
        }
    }

    fn nth(&self, n: usize) -> Executor {
        let nth = self.executors.get(n % CALLERS);
        nth.expect("one of the processes").clone()
    }

    /// Asks once and gets the answer yes.
    async fn approve(&self) -> Result<(), Error> {
        let reply = call(&self.nth(0), None).await;
        let id = approval_id(&reply).expect("the call has to be confirmed");
        let by = Principal::user("u_1");
        let answered = self.nth(1).approvals().approve(&id, &by, None).await;
        answered.map(drop).map_err(store_error)
    }
}

fn process(
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    (effect, confirmation): (Effect, Confirmation),
    outside: Arc<AtomicU32>,
) -> Executor {
    let mut spec = ToolSpec::new(ToolName::new("count.up").expect("a name"), "")
        .input(Input::Schema(json!({"type": "object"})));
    spec.behaviour.effect = effect;
    spec.behaviour.confirmation = confirmation;
    let tool = Arc::new(Counter { spec, outside });
    let catalog = Catalog::builder().dyn_tool(tool).build();
    Executor::builder(catalog.expect("a tool that can be registered"))
        .store(store)
        .clock(clock)
        .ids(Arc::new(RandomIds::default()))
        .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
        .build()
}

async fn call(executor: &Executor, key: Option<String>) -> ReplyEnvelope {
    let envelope = RequestEnvelope {
        idempotency_key: key,
        ..RequestEnvelope::default()
    };
    let call = ToolCall::new("count.up", "{}", Principal::user("u_1"));
    executor.execute(call.envelope(envelope)).await
}

fn approval_id(reply: &ReplyEnvelope) -> Option<String> {
    let error = reply.error.as_ref()?;
    assert_eq!(error.code, ErrorCode::NeedsUserConfirmation, "{error:?}");
    let id = error.details.extra.get("approval_id")?;
    id.as_str().map(str::to_owned)
}

fn store_error(error: approve::Error) -> Error {
    match error {
        approve::Error::Store(error) => error,
        other => Unavailable::new("approvals", other).into(),
    }
}

async fn listed(executor: &Executor) -> Result<Vec<Approval>, Error> {
    let actor = Actor {
        kind: ActorType::System,
        id: "desk".to_owned(),
    };
    let desk = Principal::new(actor, "desk").scope(SCOPE_ANSWER);
    let listed = executor.approvals().list(&desk, &Wanted::default()).await;
    listed.map_err(store_error)
}

/// A5: the same write of a model, without a key, sent to many processes at once and to another one later: one effect.
pub(super) async fn unkeyed_writes_of_a_model_happen_once(fresh: &Fresh) -> Checked {
    for effect in [Effect::Write, Effect::External] {
        let processes = Processes::made(fresh, effect, &Confirmation::Never);
        let user = if effect == Effect::Write {
            "u_1"
        } else {
            "u_2"
        };
        let send = |n: usize| {
            let executor = processes.nth(n);
            let origin = Origin {
                surface: Surface::Mcp,
                call_id: None,
            };
            let call = ToolCall::new("count.up", "{}", Principal::user(user)).origin(origin);
            async move { Ok(executor.execute(call).await) }
        };
        let mut replies = race(CALLERS, send).await?;
        replies.push(send(1).await?);
        assert!(replies.iter().all(|reply| reply.ok), "{replies:#?}");
        let made = replies.iter().filter(|reply| !reply.replayed).count();
        assert_eq!(made, 1, "{replies:#?}");
        let is_told = |reply: &ReplyEnvelope| {
            let mut warnings = reply.warnings.iter();
            warnings
                .any(|one| matches!(one, Warning::Remark { code, .. } if code == "REPEATED_CALL"))
        };
        let told = replies.iter().filter(|reply| is_told(reply)).count();
        assert_eq!(told, CALLERS, "all but the first");
    }
    Ok(())
}

/// One runs; the others change nothing and are asked about, all with one new question.
async fn one_of_many_gets_it(fresh: &Fresh, effect: Effect, keyed: bool) -> Checked {
    let processes = Processes::of(fresh, effect);
    for round in 1..=ROUNDS {
        processes.approve().await?;
        let replies = race(CALLERS, |n| {
            let executor = processes.nth(n);
            let key = keyed.then(|| format!("k-{round}-{n}"));
            async move { Ok(call(&executor, key).await) }
        })
        .await?;
        let (ran, asked): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.ok);
        assert_eq!(ran.len(), 1, "{replies:#?}");
        let mut ids: Vec<_> = asked.iter().map(|reply| approval_id(reply)).collect();
        ids.dedup();
        assert!(matches!(ids.as_slice(), [Some(_)]), "{ids:?}");
        let counted = match effect {
            Effect::External => processes.outside.load(Ordering::SeqCst),
            Effect::Read | Effect::Write => {
                let last = ran.first().and_then(|reply| reply.data.as_u64());
                u32::try_from(last.unwrap_or_default()).unwrap_or_default()
            }
        };
        assert_eq!(counted as usize, round, "one effect a round");
    }
    Ok(())
}

/// Without keys, where the effect is in the store.
pub(super) async fn racing_writes_use_an_approval_once(fresh: &Fresh) -> Checked {
    one_of_many_gets_it(fresh, Effect::Write, false).await
}

/// With a key each, where the effect is in the store.
pub(super) async fn racing_keyed_writes_use_an_approval_once(fresh: &Fresh) -> Checked {
    one_of_many_gets_it(fresh, Effect::Write, true).await
}

/// Without keys, where the effect is elsewhere.
pub(super) async fn racing_effects_elsewhere_use_an_approval_once(fresh: &Fresh) -> Checked {
    one_of_many_gets_it(fresh, Effect::External, false).await
}

/// With a key each, where the effect is elsewhere.
pub(super) async fn racing_keyed_effects_elsewhere_use_an_approval_once(fresh: &Fresh) -> Checked {
    one_of_many_gets_it(fresh, Effect::External, true).await
}

/// The same call from many processes at once is one question.
pub(super) async fn racing_questions_are_one(fresh: &Fresh) -> Checked {
    let processes = Processes::of(fresh, Effect::Write);
    let replies = race(CALLERS, |n| {
        let executor = processes.nth(n);
        async move { Ok(call(&executor, None).await) }
    })
    .await?;
    let mut ids: Vec<_> = replies.iter().map(approval_id).collect();
    ids.dedup();
    assert!(matches!(ids.as_slice(), [Some(_)]), "{ids:?}");
    assert_eq!(listed(&processes.nth(0)).await?.len(), 1);
    Ok(())
}

/// Of a yes and a no at the same moment one counts, and one record says which.
pub(super) async fn racing_answers_count_once(fresh: &Fresh) -> Checked {
    let processes = Processes::of(fresh, Effect::Write);
    for round in 0..ROUNDS {
        let reply = call(&processes.nth(0), None).await;
        let id = approval_id(&reply).expect("the call has to be confirmed");
        let answers = race(2, |n| {
            let (executor, id) = (processes.nth(n), id.clone());
            async move {
                let by = Principal::user("u_1");
                let approvals = executor.approvals();
                let answered = match n {
                    0 => approvals.approve(&id, &by, None).await,
                    _ => approvals.deny(&id, &by, None).await,
                };
                match answered {
                    Ok(approval) => Ok(Some(approval.state)),
                    Err(approve::Error::NotOpen { .. }) => Ok(None),
                    Err(error) => Err(store_error(error)),
                }
            }
        })
        .await?;
        let counted: Vec<_> = answers.into_iter().flatten().collect();
        let shown = listed(&processes.nth(0)).await?;
        let state = shown.first().map(|approval| approval.state);
        assert_eq!(counted.iter().copied().next(), state, "round {round}");
        assert_eq!(counted.len(), 1, "round {round}");
        let answered = all_records(&*fresh.store).await?;
        let answered = answered
            .iter()
            .filter(|row| row.kind == RecordKind::Approval);
        // Each round leaves one question and one answer.
        assert_eq!(answered.count(), 2 * (round + 1));
        processes.clock.advance(std::time::Duration::from_mins(16));
    }
    Ok(())
}

/// A process that starts later knows what was asked and answered before.
pub(super) async fn questions_and_answers_survive_a_restart(fresh: &Fresh) -> Checked {
    let before = Processes::of(fresh, Effect::Write);
    let reply = call(&before.nth(0), None).await;
    let id = approval_id(&reply).expect("the call has to be confirmed");
    drop(before);
    let between = Processes::of(fresh, Effect::Write);
    assert_eq!(
        approval_id(&call(&between.nth(0), None).await),
        Some(id.clone())
    );
    let by = Principal::user("u_1");
    let answered = between.nth(0).approvals().approve(&id, &by, None).await;
    answered.map_err(store_error)?;
    drop(between);
    let after = Processes::of(fresh, Effect::Write);
    assert!(call(&after.nth(0), None).await.ok);
    assert!(!call(&after.nth(1), None).await.ok, "it is used");
    Ok(())
}

/// An erased user's questions are gone, and so is, with the next cleaning, what named the user.
pub(super) async fn an_erased_user_leaves_no_question(fresh: &Fresh) -> Checked {
    let processes = Processes::of(fresh, Effect::Write);
    let executor = processes.nth(0);
    call(&executor, None).await;
    assert_eq!(listed(&executor).await?.len(), 1);
    let act = Act {
        kind: RecordKind::Erasure,
        at: "2026-11-15T12:00:00Z".parse().expect("a time"),
        user_id: "u_1".to_owned(),
        actor: None,
        about: json!({"event": "erased"}),
        retention: Retention::Short,
    };
    let id = RandomIds::default().snapshot_id();
    fresh.store.erase("u_1", &[], act.entry(id, None)).await?;
    executor.vault().forget("u_1");
    assert_eq!(listed(&executor).await?, vec![]);
    let expire = async || executor.approvals().expire(10).await.map_err(store_error);
    assert_eq!(expire().await?, 1);
    assert_eq!(expire().await?, 0);
    Ok(())
}
