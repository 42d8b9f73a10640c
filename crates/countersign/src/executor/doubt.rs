//! Calls in doubt that no caller repeats: the tool is asked what became of them (A17).
//!
//! A call without a key of its caller's, or of a model that gave up, isn't repeated. Its arguments are sealed with
//! its intent, so its look-up needs no repeat. Every replica may look; a look-up changes nothing, and the commit that
//! settles a claim names its attempt, so that one of them settles it, once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_args::Arguments;
use countersign_contract::evidence::{Exact, Payload};
use countersign_contract::tool::Recovery;
use countersign_contract::{
    Actor, ActorType, Digest, EvidenceRecord, RecordKind, SnapshotId, TraceContext,
};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;

use super::Executor;
use super::reconcile::{Found, LookUp, Reconciliation};
use super::record::digested;
use super::run::with_notes;
use crate::cancel::Cancellation;
use crate::catalog::Entry;
use crate::context::{CallContext, Request};
use crate::extensions::Extensions;
use crate::ledger::{Claim, ClaimQuery, ClaimRow, ClaimState, Error, HeldState, LogQuery, Scope};
use crate::payload::Opened;
use crate::state::State;
use crate::tool::Reply;

/// Result of asking a tool what became of a call in doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookedUp {
    /// The effect happened. Repeats get what the look-up found; this is the record.
    Happened(SnapshotId),
    /// The effect did not happen, and the same call may be made again; this is the record.
    DidNotHappen(SnapshotId),
    /// The effect was not found, but a request may still be on its way.
    TooEarly {
        /// Time after which a "not found" counts.
        retry_after: Duration,
    },
    /// The tool could not tell.
    Unknown,
    /// The tool has no look-up, or is not there any more.
    NoLookUp,
    /// The arguments of the call are not stored: they have a declared secret, their retention is over, or an older
    /// version made the call.
    NotKept,
    /// The call is not in doubt, or another one was faster.
    NotInDoubt,
}

/// The calls in doubt that were asked about, and the time of the next question about each.
#[derive(Debug, Default)]
pub struct Doubts {
    asked: BTreeMap<(Scope, u32), Next>,
    /// The last call of the pass before, if there were more behind it.
    after: Option<(Timestamp, Scope)>,
}

/// The next question about a call in doubt.
#[derive(Debug, Clone, Copy)]
struct Next {
    /// Time of the question, in the clock's monotonic time.
    at: Duration,
    /// Delay before the question after it.
    wait: Duration,
}

/// Mean interval of looks at the calls in doubt.
const LOOK: Duration = Duration::from_secs(10);

/// Delay before a call is asked about a second time; it doubles with each question.
const WAIT: Duration = Duration::from_secs(20);

/// Maximum delay between two questions about a call.
const WAIT_MAX: Duration = Duration::from_hours(1);

/// Maximum number of calls that one pass asks about.
const ASKED_MAX: usize = 16;

/// Number of claims that are listed at once, and maximum number of such lists of one pass.
const PAGE: usize = 256;
const PAGES_MAX: usize = 16;

/// Maximum number of calls whose next question is planned. Without a plan a call is asked about at once.
const PLANNED_MAX: usize = 16_384;

/// Maximum number of intents of one request id that are looked at.
const INTENTS_MAX: usize = 64;

impl Executor {
    /// Asks tools about calls in doubt every few seconds, and never ends: a server spawns this.
    pub async fn keep_asking_about_doubts(&self) {
        let mut doubts = Doubts::default();
        loop {
            tokio::time::sleep(self.jittered(LOOK)).await;
            if let Err(error) = self.ask_about_doubts(&mut doubts).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "calls in doubt could not be looked up");
            }
        }
    }

    /// Asks tools about the calls in doubt that are past the grace of their tool and due. Bounded: what is left is asked
    /// about by a later pass. Returns the number of calls that are settled.
    pub async fn ask_about_doubts(&self, doubts: &mut Doubts) -> Result<usize, Error> {
        // An unsigned record proves nothing, and a recording has asked nobody.
        if self.is_unsigned() || self.parts.player.is_some() {
            return Ok(0);
        }
        let now = self.parts.clock.monotonic();
        let mut known = std::mem::take(&mut doubts.asked);
        let mut after = doubts.after.take();
        let is_whole = after.is_none();
        let mut is_last = false;
        let (mut asked, mut settled) = (0, 0);
        for _ in 0..PAGES_MAX {
            if is_last {
                break;
            }
            let query = ClaimQuery {
                state: Some(ClaimState::InDoubt),
                after: after.clone(),
                limit: PAGE,
                ..ClaimQuery::default()
            };
            let rows = self.parts.store.claims(&query).await?;
            is_last = rows.len() < PAGE;
            for row in rows {
                after = Some((row.claimed_at, row.scope.clone()));
                let Some(grace) = self.grace_of(&row.scope) else {
                    continue;
                };
                let name = (row.scope.clone(), row.attempt);
                let next = known.remove(&name);
                let is_due = match next {
                    Some(next) => next.at <= now,
                    None => self.is_past(row.claimed_at, grace),
                };
                if !is_due || asked >= ASKED_MAX {
                    doubts.asked.extend(next.map(|next| (name, next)));
                    continue;
                }
                asked += 1;
                let (is_settled, next) = self.ask_in_turn(&row, next, now).await;
                settled += usize::from(is_settled);
                doubts.asked.extend(next.map(|next| (name, next)));
            }
        }
        // What was not met in a pass over all of them is settled.
        if !(is_whole && is_last) {
            doubts.asked.extend(known);
        }
        if !is_last {
            doubts.after = after;
        }
        if doubts.asked.len() > PLANNED_MAX {
            doubts.asked.clear();
        }
        Ok(settled)
    }

    /// Asks about one call of a pass: true if that settled it, and the next question about it, if there is one. A call that cannot be
    /// asked about does not keep the others from their turn.
    async fn ask_in_turn(
        &self,
        row: &ClaimRow,
        next: Option<Next>,
        now: Duration,
    ) -> (bool, Option<Next>) {
        let wait = next.map_or(WAIT, |next| next.wait);
        let wait = match self.ask_about(row, None).await {
            Ok(found @ (LookedUp::Happened(_) | LookedUp::DidNotHappen(_))) => {
                tell_settled(row, &found);
                return (true, None);
            }
            Ok(LookedUp::NotInDoubt) => return (false, None),
            Ok(LookedUp::TooEarly { retry_after }) => retry_after,
            Ok(LookedUp::Unknown) => wait,
            Ok(LookedUp::NoLookUp | LookedUp::NotKept) => WAIT_MAX,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    request_id = %row.request_id,
                    "a call in doubt could not be looked up; this is retried"
                );
                wait
            }
        };
        let next = Next {
            at: now.saturating_add(self.jittered(wait)),
            wait: wait.saturating_mul(2).clamp(WAIT, WAIT_MAX),
        };
        (false, Some(next))
    }

    /// Asks the tool of a call in doubt what became of it, and settles the claim as it says, with a record that names the
    /// operator who asked, if one did.
    pub async fn ask_about(&self, row: &ClaimRow, by: Option<&Actor>) -> Result<LookedUp, Error> {
        let parts = &self.parts;
        let Some(held) = parts.store.lookup(&row.scope).await? else {
            return Ok(LookedUp::NotInDoubt);
        };
        if held.state != HeldState::InDoubt || held.attempt != row.attempt {
            return Ok(LookedUp::NotInDoubt);
        }
        let entry = parts.catalog.get(row.scope.tool.as_str());
        let Some((entry, grace)) = entry.zip(self.grace_of(&row.scope)) else {
            return Ok(LookedUp::NoLookUp);
        };
        let user_id = &row.scope.user_id;
        let Some(keys) = parts.vault.existing_key(user_id).await? else {
            return Ok(LookedUp::NotKept);
        };
        let Some((payload, arguments)) = self.kept_call(row, &keys).await? else {
            return Ok(LookedUp::NotKept);
        };
        let service_key = row.scope.service_key(&keys, &held.fingerprint);
        let ctx = self.context_of_kept(row, payload, &entry, &keys, service_key);
        let claim = Claim {
            scope: row.scope.clone(),
            attempt: row.attempt,
        };
        let look = LookUp {
            entry: &entry,
            ctx: &ctx,
            arguments: &arguments,
            keys: &keys,
            claim: &claim,
            by,
        };
        let settled = match self.reconcile(&look, held.age, grace).await? {
            Reconciliation::Happened(reply) => {
                let Some(found) = found_of(reply, &look) else {
                    return Ok(LookedUp::Unknown);
                };
                let settled = self.settle_lost(&look, Some(found)).await?;
                settled.map(LookedUp::Happened)
            }
            Reconciliation::DidNot(settled) => settled.map(LookedUp::DidNotHappen),
            Reconciliation::TooEarly { retry_after_ms } => {
                let retry_after = Duration::from_millis(retry_after_ms);
                return Ok(LookedUp::TooEarly { retry_after });
            }
            Reconciliation::Unknown => return Ok(LookedUp::Unknown),
        };
        Ok(settled.unwrap_or(LookedUp::NotInDoubt))
    }

    /// The grace of a tool that can look its calls up; `None` for every other tool.
    fn grace_of(&self, scope: &Scope) -> Option<Duration> {
        let entry = self.parts.catalog.get(scope.tool.as_str())?;
        match entry.spec().behaviour.recovery {
            Recovery::Reconcile { grace_seconds } => Some(Duration::from_secs(grace_seconds)),
            Recovery::Operator | Recovery::Retry | Recovery::DownstreamKey { .. } => None,
        }
    }

    /// Payload and arguments that the intent of a call keeps for its look-up, checked against its record.
    async fn kept_call(
        &self,
        row: &ClaimRow,
        keys: &UserKey,
    ) -> Result<Option<(Payload, Arguments)>, Error> {
        let query = LogQuery {
            user_id: Some(row.scope.user_id.clone()),
            kind: Some(RecordKind::Intent),
            request_id: Some(row.request_id.clone()),
            limit: INTENTS_MAX,
            ..LogQuery::default()
        };
        for found in self.parts.store.records(&query).await? {
            let Some(stored) = self.parts.store.record(&found.id).await? else {
                continue;
            };
            let Ok(record) = serde_json::from_slice::<EvidenceRecord>(&stored.leaf) else {
                continue;
            };
            let said = |member: &str| record.act.get(member).cloned().unwrap_or_default();
            let is_its = said("key") == row.scope.key.to_string() && said("attempt") == row.attempt;
            let sealed = stored
                .payload
                .filter(|sealed| is_its && record.payload == Some(Digest::of_bytes(sealed)));
            let Some(sealed) = sealed else { continue };
            let opened = Opened::open(keys, &row.scope.user_id, &found.id, &sealed);
            let Some(opened) = opened.ok().filter(|it| it.differing(&record).is_empty()) else {
                continue;
            };
            let text = opened.payload.arguments.as_ref().map(Exact::text);
            let arguments = text.and_then(|text| Arguments::from_json(text).ok());
            return Ok(arguments.map(|arguments| (opened.payload, arguments)));
        }
        Ok(None)
    }

    /// The context that the call had, as far as it is kept: without the caller's token, and without extensions.
    fn context_of_kept(
        &self,
        row: &ClaimRow,
        payload: Payload,
        entry: &Entry,
        keys: &Arc<UserKey>,
        downstream_key: String,
    ) -> CallContext {
        let parts = &self.parts;
        let user_id = row.scope.user_id.clone();
        let raw = payload.arguments.as_ref().map_or("", Exact::text).into();
        let limit = Duration::from_millis(entry.spec().behaviour.deadline_ms);
        CallContext {
            request: Request {
                request_id: row.request_id.clone(),
                actor: payload.actor.unwrap_or_else(|| Actor {
                    kind: ActorType::User,
                    id: user_id.clone(),
                }),
                user_id: user_id.clone(),
                session_id: payload.session_id,
                locale: payload.locale,
                currency: payload.currency,
                timezone: payload.timezone,
                client: payload.client,
                dry_run: false,
                idempotency_key: None,
            },
            raw,
            issues: Vec::new(),
            unreadable: Vec::new(),
            extensions: Extensions::new(),
            trace: TraceContext {
                trace_id: parts.ids.trace_id(),
                span_id: parts.ids.span_id(),
                parent_span_id: None,
                sampled: false,
            },
            trace_state: None,
            cancellation: Cancellation::never(),
            clock: parts.clock.clone(),
            ids: parts.ids.clone(),
            deadline: parts.clock.monotonic().saturating_add(limit),
            notes: Mutex::default(),
            state: State::new(
                parts.store.clone(),
                parts.vault.clone(),
                parts.ids.clone(),
                user_id,
                keys.clone(),
                false,
            ),
            rules: parts.rules.clone(),
            pinned: None,
            frozen_at: None,
            downstream_key: Some(downstream_key),
            caller_token: None,
        }
    }

    /// True if this much time has passed since a moment, by the executor's clock.
    fn is_past(&self, since: Timestamp, limit: Duration) -> bool {
        let passed = self.parts.clock.now().duration_since(since);
        Duration::try_from(passed).is_ok_and(|passed| passed >= limit)
    }

    /// Three to five quarters of a delay, so that replicas do not ask in step.
    fn jittered(&self, delay: Duration) -> Duration {
        let mut drawn = [0; 1];
        self.parts.ids.fill(&mut drawn);
        let share = 192 + u32::from(drawn[0] >> 1);
        delay.saturating_mul(share) / 256
    }
}

/// The answer that a look-up has found; `None` if the tool has to prove its answers and this one cannot be proved.
fn found_of(reply: Reply, look: &LookUp<'_>) -> Option<Found> {
    let behaviour = &look.entry.spec().behaviour;
    let (warnings, _, answer) = with_notes(look.ctx, Ok(reply));
    let answer = answer.and_then(|reply| digested(reply, look.entry, behaviour.evidence));
    let (mut reply, text) = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let code = error.code().as_str();
            tracing::warn!(
                code,
                "what a look-up found cannot be kept as an answer; the call stays in doubt"
            );
            return None;
        }
    };
    reply.ttl_seconds = reply.ttl_seconds.or(behaviour.ttl_seconds);
    Some(Found {
        reply,
        text,
        warnings,
    })
}

fn tell_settled(row: &ClaimRow, found: &LookedUp) {
    let happened = matches!(found, LookedUp::Happened(_));
    tracing::info!(
        tool = row.scope.tool.as_str(),
        request_id = %row.request_id,
        happened,
        "a call in doubt was looked up and settled"
    );
}
