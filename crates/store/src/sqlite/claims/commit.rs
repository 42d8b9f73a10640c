//! Commits: key, state and record atomically.

use countersign::ledger::{
    Claim, ClaimState, Commit, CommitAnswer, DocumentRead, DocumentWrite, Held, KeyChange, Outcome,
    Scope, ShapeRead, SpendChange, SpendEnd,
};
use countersign::scribe::FencedRecord;
use countersign_contract::RequestId;
use rusqlite::{OptionalExtension as _, params};

use super::stored;
use crate::sqlite::documents;
use crate::sqlite::failure::Failure;
use crate::sqlite::log::entry::{Sealed, keep};
use crate::sqlite::pots;
use crate::sqlite::time::later;
use crate::sqlite::values::signed;
use crate::sqlite::writer::{Done, Session};

/// A commit whose record is sealed.
pub(super) struct Unit {
    key: Option<Key>,
    reads: Vec<DocumentRead>,
    shapes: Vec<ShapeRead>,
    writes: Vec<DocumentWrite>,
    spend: Option<SpendChange>,
    record: Sealed,
    /// The record in its place if the commit is fenced.
    if_fenced: Option<FencedRecord>,
    /// True if a key or a document of the record's user is written.
    is_of_user: bool,
}

/// Change of the call's idempotency key by the commit.
enum Key {
    Take { take: Take, outcome: Outcome },
    Settle { claim: Claim, outcome: Outcome },
}

struct Take {
    scope: Scope,
    fingerprint: [u8; 32],
    parts: Vec<u8>,
    after: u32,
    request_id: RequestId,
}

impl From<Commit> for Unit {
    fn from(commit: Commit) -> Self {
        let is_of_user = commit.writes_of(commit.record.user_id());
        let may_be_fenced = matches!(commit.key, Some(KeyChange::Settle { .. }));
        let (record, if_fenced) = commit.record.seal_for_commit(may_be_fenced);
        Self {
            is_of_user,
            key: commit.key.map(Key::from),
            reads: commit.reads,
            shapes: commit.shapes,
            writes: commit.writes,
            spend: commit.spend,
            if_fenced,
            record: record.into(),
        }
    }
}

impl From<KeyChange> for Key {
    fn from(key: KeyChange) -> Self {
        match key {
            KeyChange::Take {
                scope,
                fingerprint,
                parts,
                after,
                outcome,
                request_id,
            } => Self::Take {
                take: Take {
                    scope,
                    fingerprint,
                    parts,
                    after,
                    request_id,
                },
                outcome,
            },
            KeyChange::Settle { claim, outcome } => Self::Settle { claim, outcome },
        }
    }
}

/// Applies a commit. It reads before it writes, so that only a repeated commit may have to undo its writes.
pub(super) fn commit(
    session: &mut Session<'_>,
    unit: &Unit,
) -> Result<Done<CommitAnswer>, Failure> {
    if unit.is_of_user && unit.record.has_lost_key(session.connection)? {
        let answer = earlier_answer(session, unit)?;
        return Ok(Done::Kept(answer.unwrap_or(CommitAnswer::Erased)));
    }
    let moved = documents::moved(session.connection, &unit.reads, &unit.shapes)?;
    if let Some(stop) = lapsed(session, unit)?.or(moved) {
        return stopped(session, unit, stop);
    }
    let is_ours = match &unit.key {
        None => true,
        Some(Key::Take { take, outcome }) => {
            if let Some(held) = take_and_settle(session, take, outcome)? {
                let held = CommitAnswer::Held(held);
                return Ok(Done::Kept(earlier_answer(session, unit)?.unwrap_or(held)));
            }
            true
        }
        Some(Key::Settle { claim, outcome }) => settle(session, claim, outcome)?,
    };
    if !is_ours {
        return fenced(session, unit);
    }
    if !keep(session, &unit.record)? {
        let answer = earlier_answer(session, unit)?;
        return Ok(Done::Undone(answer.unwrap_or(CommitAnswer::Committed)));
    }
    for write in &unit.writes {
        documents::write(session.connection, write)?;
    }
    if let Some(spend) = &unit.spend {
        pots::end(session.connection, &spend.id, &spend.end)?;
    }
    Ok(Done::Kept(CommitAnswer::Committed))
}

/// Returns the answer if the commit relies on a reservation that was given up; otherwise `None`.
fn lapsed(session: &Session<'_>, unit: &Unit) -> Result<Option<CommitAnswer>, Failure> {
    let Some(spend) = &unit.spend else {
        return Ok(None);
    };
    let is_held = match spend.end {
        SpendEnd::SpentHere(_) => pots::is_reserved(session.connection, &spend.id)?,
        SpendEnd::Spent(_) | SpendEnd::Released => true,
    };
    Ok((!is_held).then_some(CommitAnswer::Lapsed))
}

/// Answers a commit whose documents changed or whose reservation lapsed. An earlier answer of the same commit,
/// or the loss of its claim, takes precedence.
fn stopped(
    session: &mut Session<'_>,
    unit: &Unit,
    moved: CommitAnswer,
) -> Result<Done<CommitAnswer>, Failure> {
    if let Some(answer) = earlier_answer(session, unit)? {
        return Ok(Done::Kept(answer));
    }
    Ok(Done::Kept(match &unit.key {
        None => moved,
        Some(Key::Take { take, .. }) => match not_free(session, take)? {
            Some(held) => CommitAnswer::Held(held),
            None => moved,
        },
        Some(Key::Settle { claim, .. }) if is_open(session, claim)? => moved,
        Some(Key::Settle { .. }) => return fenced(session, unit),
    }))
}

/// Keeps only the record of an owner that was overtaken.
fn fenced(session: &mut Session<'_>, unit: &Unit) -> Result<Done<CommitAnswer>, Failure> {
    let place = session.tip.next;
    let fenced = unit.if_fenced.as_ref();
    let fenced = fenced.map(|fenced| unit.record.with_leaf(fenced.leaf()));
    if keep(session, fenced.as_ref().unwrap_or(&unit.record))? {
        mark_fenced(session, place)?;
        return Ok(Done::Kept(CommitAnswer::Fenced));
    }
    let answer = earlier_answer(session, unit)?;
    Ok(Done::Kept(answer.unwrap_or(CommitAnswer::Fenced)))
}

/// Returns the answer that the same commit got before; `None` if its record is not kept.
fn earlier_answer(session: &Session<'_>, unit: &Unit) -> Result<Option<CommitAnswer>, Failure> {
    let mut statement = session
        .connection
        .prepare_cached("SELECT fenced FROM record WHERE id = ?1")?;
    let answer = statement.query_row([unit.record.id()], |row| {
        let is_fenced: bool = row.get(0)?;
        Ok(if is_fenced {
            CommitAnswer::Fenced
        } else {
            CommitAnswer::Committed
        })
    });
    Ok(answer.optional()?)
}

fn mark_fenced(session: &Session<'_>, place: u64) -> Result<(), Failure> {
    let mut statement = session
        .connection
        .prepare_cached("UPDATE record SET fenced = 1 WHERE idx = ?1")?;
    statement.execute([signed(place)])?;
    Ok(())
}

/// Takes and settles the scope. If the scope is not free, writes nothing and returns its state.
fn take_and_settle(
    session: &Session<'_>,
    take: &Take,
    outcome: &Outcome,
) -> Result<Option<Held>, Failure> {
    let end = End::of(outcome, session);
    if insert(session, take, &end)? {
        return Ok(None);
    }
    let held = not_free(session, take)?;
    if held.is_none() {
        update(session, take, &end)?;
    }
    Ok(held)
}

fn not_free(session: &Session<'_>, take: &Take) -> Result<Option<Held>, Failure> {
    let Some(row) = stored(session.connection, &take.scope)? else {
        return Ok(None);
    };
    if row.state == ClaimState::Released && row.attempt == take.after {
        return Ok(None);
    }
    row.held(session.now).map(Some)
}

fn insert(session: &Session<'_>, take: &Take, end: &End<'_>) -> Result<bool, Failure> {
    let mut statement = session.connection.prepare_cached(
        "INSERT INTO claim (user_id, tool, key, state, attempt, recovery, recovery_seconds,
             first_claim, claimed_at, until, request_id, fingerprint, parts, reply)
         VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (user_id, tool, key) DO NOTHING",
    )?;
    let inserted = statement.execute(params![
        take.scope.user_id,
        take.scope.tool.as_str(),
        take.scope.key.0,
        end.state as u8,
        take.after.saturating_add(1),
        session.now,
        end.until,
        take.request_id.as_str(),
        take.fingerprint,
        take.parts,
        end.reply,
    ])?;
    Ok(inserted > 0)
}

fn update(session: &Session<'_>, take: &Take, end: &End<'_>) -> Result<(), Failure> {
    let mut statement = session.connection.prepare_cached(
        "UPDATE claim SET state = ?4, attempt = ?5, recovery = 0, recovery_seconds = 0,
             claimed_at = ?6, lease_until = NULL, until = ?7, request_id = ?8, fingerprint = ?9, parts = ?10,
             reply = ?11
         WHERE user_id = ?1 AND tool = ?2 AND key = ?3",
    )?;
    statement.execute(params![
        take.scope.user_id,
        take.scope.tool.as_str(),
        take.scope.key.0,
        end.state as u8,
        take.after.saturating_add(1),
        session.now,
        end.until,
        take.request_id.as_str(),
        take.fingerprint,
        take.parts,
        end.reply,
    ])?;
    Ok(())
}

fn is_open(session: &Session<'_>, claim: &Claim) -> Result<bool, Failure> {
    let row = stored(session.connection, &claim.scope)?;
    Ok(row.is_some_and(|row| {
        let is_open = matches!(row.state, ClaimState::Running | ClaimState::InDoubt);
        row.attempt == claim.attempt && is_open
    }))
}

/// Settles the claim. False if it is no longer this attempt's.
fn settle(session: &Session<'_>, claim: &Claim, outcome: &Outcome) -> Result<bool, Failure> {
    let end = End::of(outcome, session);
    let mut statement = session.connection.prepare_cached(
        "UPDATE claim SET state = ?5, lease_until = ?8, until = ?6, reply = ?7
         WHERE user_id = ?1 AND tool = ?2 AND key = ?3 AND attempt = ?4 AND state IN (1, 4)",
    )?;
    let settled = statement.execute(params![
        claim.scope.user_id,
        claim.scope.tool.as_str(),
        claim.scope.key.0,
        claim.attempt,
        end.state as u8,
        end.until,
        end.reply,
        end.lease_until,
    ])?;
    Ok(settled > 0)
}

/// A call's outcome as columns.
struct End<'o> {
    state: ClaimState,
    reply: Option<&'o [u8]>,
    until: Option<i64>,
    lease_until: Option<i64>,
}

impl<'o> End<'o> {
    fn of(outcome: &'o Outcome, session: &Session<'_>) -> Self {
        let now = session.now;
        let from = now.max(session.believed);
        let (state, kept) = match outcome {
            Outcome::Succeeded { reply, keep } => (ClaimState::Succeeded, Some((reply, *keep))),
            Outcome::Failed { reply, keep } => (ClaimState::Failed, Some((reply, *keep))),
            Outcome::Released => (ClaimState::Released, None),
            Outcome::Abandoned => (ClaimState::Running, None),
            Outcome::InDoubt => (ClaimState::InDoubt, None),
        };
        Self {
            state,
            reply: kept.map(|(reply, _)| reply.as_slice()),
            until: kept.map(|(_, keep)| later(from, keep)),
            // Expired from the beginning.
            lease_until: (state == ClaimState::Running).then_some(now),
        }
    }
}
