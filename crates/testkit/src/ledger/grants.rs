//! Standing grants through real executors, as several processes have them: their uses are counted in the store's commits.

use std::sync::atomic::Ordering;

use countersign::grant::{self, Wanted};
use countersign::ids::{IdSource as _, RandomIds};
use countersign::ledger::Error;
use countersign::scribe::Act;
use countersign::unavailable::Unavailable;
use countersign::{Executor, Principal, ToolCall};
use countersign_contract::grant::GrantAmount;
use countersign_contract::tool::{AmountUnit, Effect};
use countersign_contract::{
    Actor, ActorType, ErrorCode, Grant, GrantState, NewGrant, RecordKind, ReplyEnvelope,
    RequestEnvelope, Retention, ToolName,
};
use serde_json::json;

use super::approvals::Processes;
use super::{Checked, Fresh, race};

/// Number of calls that race.
const CALLERS: usize = 12;

/// Number of calls that the grant allows.
const USES: u32 = 4;

fn agent() -> Actor {
    Actor {
        kind: ActorType::Agent,
        id: "a_7".to_owned(),
    }
}

async fn make(
    executor: &Executor,
    calls: Option<u32>,
    parent: Option<String>,
) -> Result<Grant, Error> {
    Box::pin(make_with(executor, calls, parent, None)).await
}

async fn make_with(
    executor: &Executor,
    calls: Option<u32>,
    parent: Option<String>,
    amount: Option<GrantAmount>,
) -> Result<Grant, Error> {
    let new = NewGrant {
        user_id: None,
        to: agent(),
        tools: vec![ToolName::new("count.up").expect("a name")],
        when: None,
        calls,
        amount,
        until: "2027-06-15T12:00:00Z".to_owned(),
        parent,
    };
    let made = executor.grants().make(&Principal::user("u_1"), &new).await;
    made.map_err(store_error)
}

async fn call(executor: &Executor, n: usize, key: Option<String>) -> ReplyEnvelope {
    let envelope = RequestEnvelope {
        idempotency_key: key,
        ..RequestEnvelope::default()
    };
    let arguments = json!({ "n": n }).to_string();
    let call = ToolCall::new("count.up", arguments, Principal::new(agent(), "u_1"));
    executor.execute(call.envelope(envelope)).await
}

async fn shown(executor: &Executor, id: &str) -> Result<Grant, Error> {
    let shown = executor.grants().show(id, &Principal::user("u_1")).await;
    shown.map_err(store_error)
}

fn store_error(error: grant::Error) -> Error {
    match error {
        grant::Error::Store(error) => error,
        other => Unavailable::new("grants", other).into(),
    }
}

/// Checks that of racing calls exactly as many run as the grant allows; all others are asked about.
async fn no_more_than_allowed(fresh: &Fresh, effect: Effect, keyed: bool) -> Checked {
    let processes = Processes::of(fresh, effect);
    let parent = make(&processes.nth(0), Some(USES), None).await?;
    // A grant of its own without a number: the parent's counts.
    let child = make(&processes.nth(1), None, Some(parent.id.clone())).await?;
    let replies = race(CALLERS, |n| {
        let executor = processes.nth(n);
        let key = keyed.then(|| format!("k-{n}"));
        async move { Ok(call(&executor, n, key).await) }
    })
    .await?;
    let (ran, asked): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.ok);
    assert!(ran.len() <= USES as usize, "{replies:#?}");
    for reply in asked {
        let error = reply.error.as_ref().expect("a refusal has an error");
        assert_eq!(error.code, ErrorCode::NeedsUserConfirmation, "{error:?}");
    }
    // A call that lost a race has given its use back, so what is left can be used.
    for n in ran.len()..USES as usize {
        let reply = call(&processes.nth(n), 100 + n, None).await;
        assert!(reply.ok, "{reply:#?}");
    }
    assert!(!call(&processes.nth(0), 200, None).await.ok);
    let used = shown(&processes.nth(0), &parent.id).await?;
    let counted = (used.used.calls, used.state);
    assert_eq!(counted, (u64::from(USES), GrantState::UsedUp));
    let of_child = shown(&processes.nth(0), &child.id).await?;
    assert_eq!(of_child.state, GrantState::UsedUp);
    if effect == Effect::External {
        assert_eq!(processes.outside.load(Ordering::SeqCst), USES);
    }
    Ok(())
}

/// Racing calls with an effect in the store.
pub(super) async fn racing_writes_never_overspend_a_grant(fresh: &Fresh) -> Checked {
    Box::pin(no_more_than_allowed(fresh, Effect::Write, false)).await
}

/// Racing calls with a key each, with an external effect.
pub(super) async fn racing_effects_elsewhere_never_overspend_a_grant(fresh: &Fresh) -> Checked {
    Box::pin(no_more_than_allowed(fresh, Effect::External, true)).await
}

/// Racing calls of about 1,000 euros each, under a grant of 4,100 euros a day: four of them run, whichever process they are in.
pub(super) async fn racing_calls_never_overspend_the_amount_of_a_grant(fresh: &Fresh) -> Checked {
    for (effect, keyed) in [(Effect::Write, false), (Effect::External, true)] {
        let processes = Processes::of(fresh, effect);
        let amount = GrantAmount {
            limit: "4100".to_owned(),
            currency: "EUR".to_owned(),
            at: Some("/n".to_owned()),
            currency_at: None,
            unit: AmountUnit::Major,
        };
        let first = processes.nth(0);
        let grant = Box::pin(make_with(&first, None, None, Some(amount))).await?;
        let base = if keyed { 1000 } else { 1020 };
        let replies = race(CALLERS, |n| {
            let executor = processes.nth(n);
            let key = keyed.then(|| format!("amount-{n}"));
            async move { Ok(call(&executor, base + n, key).await) }
        })
        .await?;
        let ran = replies.iter().filter(|reply| reply.ok).count();
        assert!(ran <= USES as usize, "{replies:#?}");
        for n in ran..USES as usize {
            let reply = call(
                &processes.nth(n),
                900 + n,
                keyed.then(|| format!("later-{n}")),
            )
            .await;
            assert!(reply.ok, "{reply:#?}");
        }
        let last = keyed.then(|| "last".to_owned());
        assert!(!call(&processes.nth(0), 950, last).await.ok);
        let used = shown(&processes.nth(1), &grant.id).await?;
        assert_eq!(used.used.calls, u64::from(USES));
        let revoked = processes.nth(0);
        let by = Principal::user("u_1");
        let revoked = revoked.grants().revoke(&grant.id, &by, None).await;
        revoked.map_err(store_error)?;
    }
    Ok(())
}

/// Calls that race with a revocation: none runs after it, and what ran is counted.
pub(super) async fn a_revocation_ends_a_grant_everywhere(fresh: &Fresh) -> Checked {
    let processes = Processes::of(fresh, Effect::Write);
    let grant = make(&processes.nth(0), None, None).await?;
    let ran = race(CALLERS, |n| {
        let (executor, id) = (processes.nth(n), grant.id.clone());
        async move {
            if n > 0 {
                return Ok(call(&executor, n, None).await.ok);
            }
            let by = Principal::user("u_1");
            let revoked = executor.grants().revoke(&id, &by, Some("enough")).await;
            revoked.map(|_| false).map_err(store_error)
        }
    })
    .await?;
    let ran = ran.iter().filter(|ran| **ran).count();
    let used = shown(&processes.nth(1), &grant.id).await?;
    assert_eq!(
        (used.used.calls, used.state),
        (ran as u64, GrantState::Revoked)
    );
    for n in 0..CALLERS {
        assert!(!call(&processes.nth(n), 100 + n, None).await.ok);
    }
    Ok(())
}

/// Grants survive the process, and go with their user.
pub(super) async fn grants_survive_a_restart_and_go_with_their_user(fresh: &Fresh) -> Checked {
    let grant = {
        let processes = Processes::of(fresh, Effect::Write);
        let grant = make(&processes.nth(0), Some(3), None).await?;
        assert!(call(&processes.nth(0), 0, None).await.ok);
        grant
    };
    let processes = Processes::of(fresh, Effect::Write);
    assert!(call(&processes.nth(1), 1, None).await.ok);
    assert_eq!(shown(&processes.nth(1), &grant.id).await?.used.calls, 2);
    let act = Act {
        kind: RecordKind::Erasure,
        at: processes.nth(0).now(),
        user_id: String::new(),
        actor: None,
        about: json!({"event": "erase"}),
        retention: Retention::Short,
    };
    let executor = processes.nth(0);
    let entry = act.entry(RandomIds::default().snapshot_id(), None);
    fresh.handle(0).erase("u_1", &[], entry).await?;
    executor.vault().forget("u_1");
    let (by, wanted) = (Principal::user("u_1"), Wanted::default());
    let left = executor.grants().list(&by, &wanted).await;
    assert!(left.map_err(store_error)?.is_empty());
    assert!(fresh.handle(1).pots(Some("u_1"), 10).await?.is_empty());
    Ok(())
}
