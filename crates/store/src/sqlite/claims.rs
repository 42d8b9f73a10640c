//! Claims: the state machine of an idempotency key. There is one writer, so a decision and its write are
//! atomic.

mod commit;
pub(super) mod row;

use countersign::BoxFuture;
use countersign::ledger::{
    Claim, ClaimAnswer, ClaimQuery, ClaimRequest, ClaimRow, ClaimState, Claims, Commit,
    CommitAnswer, Error, Forgotten, Held, KeyDigest, Names, Scope, Swept,
};
use countersign_contract::ToolName;
use rusqlite::{Connection, Rows, params};

use super::SqliteStore;
use super::failure::Failure;
use super::keyring::is_lost;
use super::pots;
use super::time::{later, micros};
use super::values::{bounded, bytes32};
use super::writer::{Done, Session};
use row::{SELECT, SELECT_ONE, Stored, recovery_numbers};

impl Claims for SqliteStore {
    fn lookup<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Option<Held>, Error>> {
        Box::pin(async move {
            let stored = self.readers.point(|connection| stored(connection, scope))?;
            let now = self.time.now();
            Ok(stored.map(|stored| stored.held(now)).transpose()?)
        })
    }

    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>> {
        let request = request.clone();
        Box::pin(async move {
            let claimed = self.writer.run(move |session| {
                Ok(match claim(session, &request)? {
                    over @ ClaimAnswer::Over(_) => Done::Undone(over),
                    answer @ (ClaimAnswer::Ours(_)
                    | ClaimAnswer::Held(_)
                    | ClaimAnswer::Erased
                    | ClaimAnswer::Exhausted { .. }) => Done::Kept(answer),
                })
            });
            Ok(claimed.await?)
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<CommitAnswer, Error>> {
        Box::pin(async move {
            // Sealed here, in the caller's task, so that the writer only writes.
            let unit = commit::Unit::from(commit);
            let committed = self
                .writer
                .run(move |session| commit::commit(session, &unit));
            Ok(committed.await?)
        })
    }

    fn claims<'a>(&'a self, query: &'a ClaimQuery) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        let query = query.clone();
        self.list(move |connection| claims(connection, &query))
    }

    fn claims_of<'a>(
        &'a self,
        keys: &'a [(String, KeyDigest)],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        let keys = keys.to_vec();
        self.list(move |connection| claims_of(connection, &keys, limit))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, Error>> {
        Box::pin(async move {
            let swept = self
                .writer
                .run(move |session| sweep(session, bounded(limit)).map(Done::Kept));
            Ok(swept.await?)
        })
    }
}

fn stored(connection: &Connection, scope: &Scope) -> Result<Option<Stored>, Failure> {
    let mut statement = connection.prepare_cached(SELECT_ONE)?;
    let mut rows = statement.query(params![scope.user_id, scope.tool.as_str(), scope.key.0])?;
    rows.next()?.map(Stored::read).transpose()
}

fn claim(session: &mut Session<'_>, request: &ClaimRequest) -> Result<ClaimAnswer, Failure> {
    let now = session.now;
    let user_id = &request.scope.user_id;
    if is_lost(session.connection, user_id, request.sealed_under)? {
        return Ok(ClaimAnswer::Erased);
    }
    if insert_running(session, request)? {
        return paid(session, request, 1);
    }
    let row = stored(session.connection, &request.scope)?
        .ok_or_else(|| Failure::damaged("the index of the claims"))?;
    let is_same = row.fingerprint == request.fingerprint;
    let is_free = match row.state {
        ClaimState::Released => true,
        ClaimState::Running if is_same && row.lease_is_over(now) => {
            // A clock that is set back does not begin the time again in which a service knows a key.
            if !row.may_take_over(now.max(session.believed)) {
                mark_in_doubt(session, &request.scope)?;
                let row = Stored {
                    state: ClaimState::InDoubt,
                    ..row
                };
                return Ok(ClaimAnswer::Held(row.held(now)?));
            }
            true
        }
        ClaimState::Running
        | ClaimState::Succeeded
        | ClaimState::Failed
        | ClaimState::InDoubt
        | ClaimState::Tombstone => false,
    };
    if !is_free {
        return Ok(ClaimAnswer::Held(row.held(now)?));
    }
    if row.attempt >= request.attempts_max {
        return Ok(ClaimAnswer::Exhausted {
            attempts: row.attempt,
        });
    }
    take_again(session, request, row.attempt + 1)?;
    paid(session, request, row.attempt + 1)
}

/// Returns the claim that was just taken if its reservation fits the pots; otherwise the caller undoes it.
fn paid(
    session: &Session<'_>,
    request: &ClaimRequest,
    attempt: u32,
) -> Result<ClaimAnswer, Failure> {
    let over = pots::take_with_claim(session, request, attempt)?;
    Ok(over.map_or_else(|| ours(request, attempt), ClaimAnswer::Over))
}

fn ours(request: &ClaimRequest, attempt: u32) -> ClaimAnswer {
    ClaimAnswer::Ours(Claim {
        scope: request.scope.clone(),
        attempt,
    })
}

fn insert_running(session: &Session<'_>, request: &ClaimRequest) -> Result<bool, Failure> {
    let mut statement = session.connection.prepare_cached(
        "INSERT INTO claim (user_id, tool, key, state, attempt, recovery, recovery_seconds, first_claim,
             claimed_at, lease_until, request_id, fingerprint, parts)
         VALUES (?1, ?2, ?3, 1, 1, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (user_id, tool, key) DO NOTHING",
    )?;
    let scope = &request.scope;
    let (recovery, recovery_seconds) = recovery_numbers(request.recovery);
    let inserted = statement.execute(params![
        scope.user_id,
        scope.tool.as_str(),
        scope.key.0,
        recovery,
        recovery_seconds,
        session.now,
        later(session.now, request.lease),
        request.request_id.as_str(),
        request.fingerprint,
        request.parts,
    ])?;
    Ok(inserted > 0)
}

fn take_again(session: &Session<'_>, request: &ClaimRequest, attempt: u32) -> Result<(), Failure> {
    let mut statement = session.connection.prepare_cached(
        "UPDATE claim SET state = 1, attempt = ?4, recovery = ?5, recovery_seconds = ?6, claimed_at = ?7,
             lease_until = ?8, until = NULL, request_id = ?9, fingerprint = ?10, parts = ?11
         WHERE user_id = ?1 AND tool = ?2 AND key = ?3",
    )?;
    let scope = &request.scope;
    let (recovery, recovery_seconds) = recovery_numbers(request.recovery);
    statement.execute(params![
        scope.user_id,
        scope.tool.as_str(),
        scope.key.0,
        attempt,
        recovery,
        recovery_seconds,
        session.now,
        later(session.now, request.lease),
        request.request_id.as_str(),
        request.fingerprint,
        request.parts,
    ])?;
    Ok(())
}

fn mark_in_doubt(session: &Session<'_>, scope: &Scope) -> Result<(), Failure> {
    let mut statement = session.connection.prepare_cached(
        "UPDATE claim SET state = 4, lease_until = NULL
         WHERE user_id = ?1 AND tool = ?2 AND key = ?3 AND state = 1",
    )?;
    statement.execute(params![scope.user_id, scope.tool.as_str(), scope.key.0])?;
    Ok(())
}

fn claims(connection: &Connection, query: &ClaimQuery) -> Result<Vec<ClaimRow>, Failure> {
    // The state is written out, so that the index over open claims is used.
    let of_state = query.state.map_or_else(
        || "1".to_owned(),
        |state| format!("state = {}", state as u8),
    );
    let of_user = query
        .user_id
        .as_ref()
        .map_or("?1 IS NULL", |_| "user_id = ?1");
    let after = query.after.as_ref();
    let behind = after.map_or(
        "?6 IS NULL AND ?7 IS NULL AND ?8 IS NULL AND ?9 IS NULL",
        |_| "(claimed_at, user_id, tool, key) > (?6, ?7, ?8, ?9)",
    );
    let mut statement = connection.prepare(&format!(
        "{SELECT} WHERE {of_state} AND {of_user} AND (?2 IS NULL OR tool = ?2)
             AND (?3 IS NULL OR key = ?3) AND (?4 IS NULL OR claimed_at <= ?4) AND {behind}
         ORDER BY claimed_at, user_id, tool, key LIMIT ?5"
    ))?;
    shown(statement.query(params![
        query.user_id,
        query.tool.as_ref().map(ToolName::as_str),
        query.key.map(|key| key.0),
        query.until.map(micros),
        bounded(query.limit),
        after.map(|(at, _)| micros(*at)),
        after.map(|(_, scope)| scope.user_id.as_str()),
        after.map(|(_, scope)| scope.tool.as_str()),
        after.map(|(_, scope)| scope.key.0),
    ])?)
}

/// The claims of these keys. The primary key has the tool between user and key, so the tools of each user are walked
/// through first, one look-up each.
fn claims_of(
    connection: &Connection,
    keys: &[(String, KeyDigest)],
    limit: usize,
) -> Result<Vec<ClaimRow>, Failure> {
    let keys = keys.iter().map(|(user_id, key)| (user_id, key.to_string()));
    let keys = serde_json::json!(keys.collect::<Vec<_>>()).to_string();
    let mut statement = connection.prepare_cached(&format!(
        "WITH RECURSIVE meant (of_user, of_key, of_tool) AS (
             SELECT value ->> 0, unhex(value ->> 1),
                 (SELECT min(tool) FROM claim WHERE user_id = value ->> 0)
             FROM json_each(?1)
             UNION ALL
             SELECT of_user, of_key,
                 (SELECT min(tool) FROM claim WHERE user_id = of_user AND tool > of_tool)
             FROM meant WHERE of_tool IS NOT NULL)
         {SELECT} WHERE (user_id, tool, key) IN (
             SELECT of_user, of_tool, of_key FROM meant WHERE of_tool IS NOT NULL)
         ORDER BY claimed_at, user_id, tool, key LIMIT ?2"
    ))?;
    shown(statement.query(params![keys, bounded(limit)])?)
}

fn shown(mut rows: Rows<'_>) -> Result<Vec<ClaimRow>, Failure> {
    let mut claims = Vec::new();
    while let Some(row) = rows.next()? {
        claims.push(Stored::read(row)?.shown(row)?);
    }
    Ok(claims)
}

fn sweep(session: &Session<'_>, limit: i64) -> Result<Swept, Failure> {
    let (connection, now) = (session.connection, session.now);
    let mut in_doubt = connection.prepare_cached(
        "UPDATE claim SET state = 4, lease_until = NULL WHERE rowid IN (
             SELECT rowid FROM claim WHERE state = 1 AND lease_until <= ?1 AND (
                 recovery IN (0, 3) OR recovery = 2 AND first_claim + recovery_seconds * 800000 <= ?3)
             ORDER BY claimed_at LIMIT ?2)",
    )?;
    Ok(Swept {
        in_doubt: in_doubt.execute([now, limit, now.max(session.believed)])?,
        lapsed: pots::end_lost(session, limit)?,
    })
}

/// Drops the replies of settled claims past their retention. A tombstone stays: the digests, and the attempt.
pub(super) fn drop_replies(
    connection: &Connection,
    now: i64,
    limit: i64,
) -> Result<usize, Failure> {
    let mut statement = connection.prepare_cached(
        "UPDATE claim SET state = 5, reply = NULL, parts = x'', until = NULL WHERE rowid IN (
             SELECT rowid FROM claim WHERE until <= ?1 AND state IN (2, 3) ORDER BY until LIMIT ?2)",
    )?;
    Ok(statement.execute([now, limit])?)
}

/// Removes the tombstones that an operator wants to be forgotten.
pub(super) fn forget(connection: &Connection, which: &Forgotten) -> Result<Names, Failure> {
    let mut statement = connection.prepare(
        "DELETE FROM claim WHERE rowid IN (
             SELECT rowid FROM claim WHERE state = 5 AND claimed_at < ?1
                 AND (?2 IS NULL OR user_id = ?2) AND (?3 IS NULL OR tool = ?3)
                 AND (?4 IS NULL OR key = ?4)
             ORDER BY claimed_at LIMIT ?5)
         RETURNING tool, key",
    )?;
    let mut rows = statement.query(params![
        micros(which.claimed_before),
        which.user_id,
        which.tool.as_ref().map(ToolName::as_str),
        which.key.map(|key| key.0),
        bounded(which.limit),
    ])?;
    let mut forgotten = Names::default();
    while let Some(row) = rows.next()? {
        let tool: String = row.get(0)?;
        forgotten.add_key(&tool, &KeyDigest(bytes32(row, 1)?));
    }
    Ok(forgotten)
}
