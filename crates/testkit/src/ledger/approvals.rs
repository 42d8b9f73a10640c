//! Approvals (A13) through real executors, as several processes have them: single use depends on the store's commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::approve::{self, SCOPE_ANSWER, Wanted};
use countersign::authorize::{AllowAll, Authorizer, Decision, Verdict};
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
    Actor, ActorType, Approval, ApprovalState, ErrorCode, RecordKind, ReplyEnvelope,
    RequestEnvelope, Retention, ToolName, ToolSpec, Warning,
};
use countersign_evidence::seal::MasterKey;
use serde_json::json;

use super::{Checked, Fresh, all_records, race};

/// Number of rounds of a race, because a single one could pass by luck.
const ROUNDS: usize = 6;

/// Number of calls that race.
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
pub(super) struct Processes {
    executors: Vec<Executor>,
    pub(super) outside: Arc<AtomicU32>,
    clock: Arc<ManualClock>,
}

impl Processes {
    pub(super) fn of(fresh: &Fresh, effect: Effect) -> Self {
        Self::made(fresh, effect, &Confirmation::Always)
    }

    /// Makes processes with two approvers for every call.
    fn strict(fresh: &Fresh) -> Self {
        let policy: Arc<dyn Authorizer> = Arc::new(FourEyes);
        Self::under(fresh, Effect::Write, &Confirmation::Never, &policy)
    }

    fn made(fresh: &Fresh, effect: Effect, confirmation: &Confirmation) -> Self {
        let policy: Arc<dyn Authorizer> = Arc::new(AllowAll::new());
        Self::under(fresh, effect, confirmation, &policy)
    }

    fn under(
        fresh: &Fresh,
        effect: Effect,
        confirmation: &Confirmation,
        policy: &Arc<dyn Authorizer>,
    ) -> Self {
        let start = "2026-11-15T12:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::starting_at(start));
        let outside = Arc::new(AtomicU32::new(0));
        let executors = (0..CALLERS)
            .map(|n| {
                let behaviour = (effect, confirmation.clone());
                let store = (fresh.handle(n), policy.clone());
                process(store, clock.clone(), behaviour, outside.clone())
            })
            .collect();
        Self {
            executors,
            outside,
            clock,
        }
    }

    pub(super) fn nth(&self, n: usize) -> Executor {
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
    (store, policy): (Arc<dyn Store>, Arc<dyn Authorizer>),
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
        .authorizer(policy)
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

/// Checks that of racing calls one runs; the others change nothing and are asked about, all with one new question.
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

/// Racing calls without keys, with an effect in the store.
pub(super) async fn racing_writes_use_an_approval_once(fresh: &Fresh) -> Checked {
    one_of_many_gets_it(fresh, Effect::Write, false).await
}

/// Racing calls with a key each, with an effect in the store.
pub(super) async fn racing_keyed_writes_use_an_approval_once(fresh: &Fresh) -> Checked {
    one_of_many_gets_it(fresh, Effect::Write, true).await
}

/// Racing calls without keys, with an external effect.
pub(super) async fn racing_effects_elsewhere_use_an_approval_once(fresh: &Fresh) -> Checked {
    one_of_many_gets_it(fresh, Effect::External, false).await
}

/// Racing calls with a key each, with an external effect.
pub(super) async fn racing_keyed_effects_elsewhere_use_an_approval_once(fresh: &Fresh) -> Checked {
    one_of_many_gets_it(fresh, Effect::External, true).await
}

/// The same call from many processes at once makes one question.
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

/// Lets an approval and a denial race: one of them counts, and one record says which.
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
        // Each round leaves one question, one answer, and one that did not count.
        assert_eq!(answered.count(), 3 * (round + 1));
        processes.clock.advance(std::time::Duration::from_mins(16));
    }
    Ok(())
}

/// The user with the right to answer for others, too, and so one person twice.
fn approver(id: &str) -> Principal {
    Principal::user(id).scope(SCOPE_ANSWER)
}

/// Two approvers: of answers that race, those of one person count once, and those of two are two.
pub(super) async fn racing_approvers_are_two(fresh: &Fresh) -> Checked {
    let processes = Processes::strict(fresh);
    let reply = call(&processes.nth(0), None).await;
    let id = approval_id(&reply).expect("the call has to be confirmed");
    let answer = |n: usize, by: Principal| {
        let (executor, id) = (processes.nth(n), id.clone());
        async move {
            match executor.approvals().approve(&id, &by, None).await {
                Ok(approval) => Ok(Some(approval.state)),
                Err(approve::Error::SameApprover | approve::Error::NotOpen { .. }) => Ok(None),
                Err(error) => Err(store_error(error)),
            }
        }
    };
    let answers = race(CALLERS, |n| answer(n, approver("u_1"))).await?;
    let counted: Vec<_> = answers.into_iter().flatten().collect();
    assert_eq!(
        counted,
        [ApprovalState::Pending],
        "one person is one approver"
    );
    assert!(!call(&processes.nth(2), None).await.ok);
    let answers = race(2, |n| answer(n, approver(&format!("d_{n}")))).await?;
    let counted: Vec<_> = answers.into_iter().flatten().collect();
    assert_eq!(counted, [ApprovalState::Approved], "one more is enough");
    assert!(call(&processes.nth(3), None).await.ok);
    Ok(())
}

/// U13: after a no, no process asks anything new about the tool in the session, and none that starts later.
pub(super) async fn a_no_holds_new_questions_back_everywhere(fresh: &Fresh) -> Checked {
    let processes = Processes::of(fresh, Effect::Write);
    let id = approval_id(&call(&processes.nth(0), None).await).expect("an approval");
    let by = Principal::user("u_1");
    let declined = processes.nth(1).approvals().deny(&id, &by, None).await;
    declined.map_err(store_error)?;
    let later = Processes::of(fresh, Effect::Write);
    for executor in [processes.nth(2), later.nth(0)] {
        for arguments in [r#"{"n": 1}"#, r#"{"n": 2}"#] {
            let other = ToolCall::new("count.up", arguments, Principal::user("u_1"));
            let reply = executor.execute(other).await;
            let error = reply.error.expect("nothing is asked");
            assert_eq!(error.code, ErrorCode::Forbidden);
            assert!(
                error.details.extra.contains_key("ask_again_at"),
                "{error:?}"
            );
        }
    }
    assert_eq!(listed(&processes.nth(0)).await?.len(), 1);
    processes.clock.advance(std::time::Duration::from_mins(2));
    let other = ToolCall::new("count.up", r#"{"n": 1}"#, Principal::user("u_1"));
    let reply = processes.nth(3).execute(other).await;
    assert!(approval_id(&reply).is_some());
    Ok(())
}

/// An answer that does not count leaves one record, however often and from wherever it is tried.
pub(super) async fn racing_refusals_leave_one_record(fresh: &Fresh) -> Checked {
    let processes = Processes::of(fresh, Effect::Write);
    let id = approval_id(&call(&processes.nth(0), None).await).expect("an approval");
    let recorded = async || -> Result<usize, Error> {
        let all = all_records(&*fresh.store).await?.into_iter();
        let all = all.filter(|row| row.kind == RecordKind::Approval);
        Ok(all.count())
    };
    assert_eq!(recorded().await?, 1, "the question");
    race(CALLERS, |n| {
        let (executor, id) = (processes.nth(n), id.clone());
        async move {
            let by = Principal::user("u_2");
            let refused = executor.approvals().approve(&id, &by, None).await;
            assert!(matches!(refused, Err(approve::Error::Unknown(_))));
            Ok(())
        }
    })
    .await?;
    assert_eq!(recorded().await?, 2, "and one refusal");
    // It does not stand in the way of the answer that counts.
    let by = Principal::user("u_1");
    let answered = processes.nth(0).approvals().approve(&id, &by, None).await;
    answered.map_err(store_error)?;
    assert!(call(&processes.nth(1), None).await.ok);
    Ok(())
}

/// A policy that wants two approvers for everything.
#[derive(Debug)]
struct FourEyes;

impl Authorizer for FourEyes {
    fn decide<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let decision = Decision {
            verdict: Verdict::Allow,
            policy_revision: "four-eyes".into(),
            must_confirm: true,
            approval_valid_for: None,
            four_eyes: true,
            cool_down: None,
            unkeyed_writes: None,
            unkeyed_window: None,
            conditions: None,
        };
        Box::pin(std::future::ready(Ok(decision)))
    }
}

/// Questions and answers survive a restart: a process that starts later knows them.
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
