//! A commit: key, state and record in one piece.

use countersign::ledger::{
    Claim, ClaimState, Commit, CommitAnswer, DocumentRead, DocumentWrite, KeyChange, Outcome,
    Scope, ShapeRead,
};
use countersign_contract::RequestId;
use rusqlite::params;

use super::stored;
use crate::sqlite::documents;
use crate::sqlite::failure::Failure;
use crate::sqlite::log::entry::{Sealed, keep};
use crate::sqlite::time::later;
use crate::sqlite::values::signed;
use crate::sqlite::writer::{Done, Session};

/// A commit whose record is sealed.
pub(super) struct Unit {
    key: Option<KeyChange>,
    reads: Vec<DocumentRead>,
    shapes: Vec<ShapeRead>,
    writes: Vec<DocumentWrite>,
    record: Sealed,
}

impl From<Commit> for Unit {
    fn from(commit: Commit) -> Self {
        Self {
            key: commit.key,
            reads: commit.reads,
            shapes: commit.shapes,
            writes: commit.writes,
            record: commit.record.seal().into(),
        }
    }
}

/// The record goes first: where it is kept already, this very commit was done before. Everything is
/// undone again where the rest does not hold.
pub(super) fn commit(
    session: &mut Session<'_>,
    unit: &Unit,
) -> Result<Done<CommitAnswer>, Failure> {
    let place = session.tip.next;
    if !keep(session, &unit.record)? {
        return Ok(Done::Kept(earlier_answer(session, &unit.record)?));
    }
    match &unit.key {
        None => {}
        Some(KeyChange::Take {
            scope,
            fingerprint,
            parts,
            after,
            outcome,
            request_id,
        }) => {
            let take = Take {
                scope,
                fingerprint,
                parts,
                attempt: after.saturating_add(1),
                request_id,
            };
            if let Some(answer) = take.settled(session, outcome)? {
                return Ok(Done::Undone(answer));
            }
        }
        Some(KeyChange::Settle { claim, outcome }) => {
            let is_ours = settle(session, claim, outcome)?;
            if !is_ours {
                mark_fenced(session, place)?;
                return Ok(Done::Kept(CommitAnswer::Fenced));
            }
        }
    }
    if let Some(moved) = documents::moved(session.connection, &unit.reads, &unit.shapes)? {
        return Ok(Done::Undone(moved));
    }
    for write in &unit.writes {
        documents::write(session.connection, write)?;
    }
    Ok(Done::Kept(CommitAnswer::Committed))
}

fn earlier_answer(session: &Session<'_>, record: &Sealed) -> Result<CommitAnswer, Failure> {
    let mut statement = session
        .connection
        .prepare_cached("SELECT fenced FROM record WHERE id = ?1")?;
    let is_fenced = statement.query_row([record.id()], |row| row.get(0))?;
    Ok(if is_fenced {
        CommitAnswer::Fenced
    } else {
        CommitAnswer::Committed
    })
}

fn mark_fenced(session: &Session<'_>, place: u64) -> Result<(), Failure> {
    let mut statement = session
        .connection
        .prepare_cached("UPDATE record SET fenced = 1 WHERE idx = ?1")?;
    statement.execute([signed(place)])?;
    Ok(())
}

struct Take<'u> {
    scope: &'u Scope,
    fingerprint: &'u [u8; 32],
    parts: &'u [u8],
    attempt: u32,
    request_id: &'u RequestId,
}

impl Take<'_> {
    /// Takes the scope and settles it; the answer where it is not free.
    fn settled(
        &self,
        session: &Session<'_>,
        outcome: &Outcome,
    ) -> Result<Option<CommitAnswer>, Failure> {
        let end = End::of(outcome, session.now);
        if self.insert(session, &end)? {
            return Ok(None);
        }
        let row = stored(session.connection, self.scope)?
            .ok_or_else(|| Failure::damaged("the index of the claims"))?;
        let is_free = row.state == ClaimState::Released
            && row.attempt.saturating_add(1) == self.attempt
            && row.fingerprint == *self.fingerprint;
        if !is_free {
            return Ok(Some(CommitAnswer::Held(row.held(session.now)?)));
        }
        self.update(session, &end)?;
        Ok(None)
    }

    fn insert(&self, session: &Session<'_>, end: &End<'_>) -> Result<bool, Failure> {
        let mut statement = session.connection.prepare_cached(
            "INSERT INTO claim (user_id, tool, key, state, attempt, recovery, recovery_seconds,
                 first_claim, claimed_at, until, request_id, fingerprint, parts, reply)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (user_id, tool, key) DO NOTHING",
        )?;
        let inserted = statement.execute(params![
            self.scope.user_id,
            self.scope.tool.as_str(),
            self.scope.key.0,
            end.state as u8,
            self.attempt,
            session.now,
            end.until,
            self.request_id.as_str(),
            self.fingerprint,
            self.parts,
            end.reply,
        ])?;
        Ok(inserted > 0)
    }

    fn update(&self, session: &Session<'_>, end: &End<'_>) -> Result<(), Failure> {
        let mut statement = session.connection.prepare_cached(
            "UPDATE claim SET state = ?4, attempt = ?5, recovery = 0, recovery_seconds = 0,
                 claimed_at = ?6, lease_until = NULL, until = ?7, request_id = ?8, parts = ?9, reply = ?10
             WHERE user_id = ?1 AND tool = ?2 AND key = ?3",
        )?;
        statement.execute(params![
            self.scope.user_id,
            self.scope.tool.as_str(),
            self.scope.key.0,
            end.state as u8,
            self.attempt,
            session.now,
            end.until,
            self.request_id.as_str(),
            self.parts,
            end.reply,
        ])?;
        Ok(())
    }
}

/// False where the claim is no longer this attempt's.
fn settle(session: &Session<'_>, claim: &Claim, outcome: &Outcome) -> Result<bool, Failure> {
    let end = End::of(outcome, session.now);
    let mut statement = session.connection.prepare_cached(
        "UPDATE claim SET state = ?5, lease_until = NULL, until = ?6, reply = ?7
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
    ])?;
    Ok(settled > 0)
}

/// An outcome as a row has it.
struct End<'o> {
    state: ClaimState,
    reply: Option<&'o [u8]>,
    until: Option<i64>,
}

impl<'o> End<'o> {
    fn of(outcome: &'o Outcome, now: i64) -> Self {
        let (state, kept) = match outcome {
            Outcome::Succeeded { reply, keep } => (ClaimState::Succeeded, Some((reply, *keep))),
            Outcome::Failed { reply, keep } => (ClaimState::Failed, Some((reply, *keep))),
            Outcome::Released => (ClaimState::Released, None),
            Outcome::InDoubt => (ClaimState::InDoubt, None),
        };
        Self {
            state,
            reply: kept.map(|(reply, _)| reply.as_slice()),
            until: kept.map(|(_, keep)| later(now, keep)),
        }
    }
}
