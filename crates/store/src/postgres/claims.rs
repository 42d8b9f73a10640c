//! Claims in PostgreSQL.

use std::sync::LazyLock;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::ledger::{
    Claim, ClaimAnswer, ClaimQuery, ClaimRequest, ClaimRow, ClaimState, Claims, Commit,
    CommitAnswer, Error, Forgotten, Held, HeldState, KeyDigest, Names, Overdrawn, Reserve, Scope,
    Swept,
};
use countersign_contract::tool::Recovery;
use countersign_contract::{RequestId, ToolName};
use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::connect::within;
use super::failure::{Failure, Meaning};
use super::held::{self, attempt, held, state};
use super::keyring::key_name;
use super::{PostgresStore, micros, pots, rows};

/// Maximum rounds of one claim while other processes change the row.
const ROUNDS_MAX: u32 = 32;

/// Maximum times a claim is resumed after its connection broke.
const BREAKS_MAX: u32 = 3;

impl Claims for PostgresStore {
    fn lookup<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Option<Held>, Error>> {
        Box::pin(async move {
            static LOOKUP: LazyLock<String> =
                LazyLock::new(|| format!("SELECT {} FROM claim c {OF_SCOPE}", held::COLUMNS));
            let key = scope.key.0.as_slice();
            let params: super::Params<'_> = &[&scope.user_id, &scope.tool.as_str(), &key];
            let found = self.read(&LOOKUP, params).await?;
            Ok(found.first().map(held).transpose()?)
        })
    }

    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>> {
        Box::pin(async move { Ok(self.take(request).await?) })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<CommitAnswer, Error>> {
        Box::pin(async move { Ok(self.inner.lanes.commit(commit).await?) })
    }

    fn claims<'a>(&'a self, query: &'a ClaimQuery) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        Box::pin(async move {
            let state = query.state.map(|state| state as i16);
            let tool = query.tool.as_ref().map(ToolName::as_str);
            let key = query.key.as_ref().map(|key| key.0.as_slice());
            let after = query.after.as_ref();
            let after_at = after.map(|(at, _)| *at);
            let after_user = after.map(|(_, scope)| scope.user_id.as_str());
            let after_tool = after.map(|(_, scope)| scope.tool.as_str());
            let after_key = after.map(|(_, scope)| scope.key.0.as_slice());
            let found = self
                .read_anew(
                    "SELECT user_id, tool, key_digest, state, attempt, request_id, claimed_at, \
                            lease_until, parts \
                     FROM claim \
                     WHERE ($1::smallint IS NULL OR state = $1) \
                       AND ($2::text IS NULL OR user_id = $2) \
                       AND ($4::text IS NULL OR tool = $4) \
                       AND ($5::bytea IS NULL OR key_digest = $5) \
                       AND ($6::timestamptz IS NULL OR claimed_at <= $6) \
                       AND ($7::timestamptz IS NULL OR (claimed_at, user_id, tool, key_digest) > ($7, $8::text, $9::text, $10::bytea)) \
                     ORDER BY claimed_at, user_id, tool, key_digest LIMIT $3",
                    &[
                        &state,
                        &query.user_id,
                        &rows(query.limit),
                        &tool,
                        &key,
                        &query.until,
                        &after_at,
                        &after_user,
                        &after_tool,
                        &after_key,
                    ],
                )
                .await?;
            Ok(found.iter().map(shown).collect::<Result<_, _>>()?)
        })
    }

    fn claims_of<'a>(
        &'a self,
        keys: &'a [(String, KeyDigest)],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        Box::pin(async move {
            let users: Vec<&str> = keys.iter().map(|(user_id, _)| user_id.as_str()).collect();
            let digests: Vec<&[u8]> = keys.iter().map(|(_, key)| key.0.as_slice()).collect();
            // The primary key has the tool between user and key, so the tools of each user are walked through first,
            // one look-up each.
            let found = self
                .read_anew(
                    "WITH RECURSIVE meant (of_user, of_key, of_tool) AS ( \
                         SELECT of_user, of_key, (SELECT min(tool) FROM claim WHERE user_id = of_user) \
                         FROM unnest($1::text[], $2::bytea[]) AS asked (of_user, of_key) \
                         UNION ALL \
                         SELECT of_user, of_key, \
                             (SELECT min(tool) FROM claim WHERE user_id = of_user AND tool > of_tool) \
                         FROM meant WHERE of_tool IS NOT NULL) \
                     SELECT user_id, tool, key_digest, state, attempt, request_id, claimed_at, \
                            lease_until, parts \
                     FROM meant JOIN claim \
                         ON user_id = of_user AND tool = of_tool AND key_digest = of_key \
                     ORDER BY claimed_at, user_id, tool, key_digest LIMIT $3",
                    &[&users, &digests, &rows(limit)],
                )
                .await?;
            Ok(found.iter().map(shown).collect::<Result<_, _>>()?)
        })
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, Error>> {
        Box::pin(async move { Ok(self.sweep_now(limit).await?) })
    }
}

const OF_SCOPE: &str = "WHERE c.user_id = $1 AND c.tool = $2 AND c.key_digest = $3";

/// Takes a scope that is free: absent, released, or given up by an owner that may be replaced. It and an
/// erasure wait for each other, so no claim is made under a key that is no longer the user's. The time in which a service
/// knows a key ends by the latest time that was believed: a clock that is set back does not begin it again.
const TAKE: &str = "WITH owner AS MATERIALIZED (SELECT 1 FROM user_key k WHERE k.user_id = $1 \
        AND (k.id IS NULL OR k.id = $12) FOR KEY SHARE) \
     INSERT INTO claim AS c (user_id, tool, key_digest, state, attempt, fingerprint, \
        parts, recovery, recovery_seconds, request_id, token, first_claim, claimed_at, lease_until) \
     SELECT $1::text, $2::text, $3::bytea, 1, 1, $4::bytea, $5::bytea, $6::smallint, $7::bigint, \
            $8::text, $9::text, now(), now(), now() + $10::bigint * interval '1 microsecond' \
     WHERE $12::bytea IS NULL OR EXISTS (SELECT 1 FROM owner) \
     ON CONFLICT (user_id, tool, key_digest) DO UPDATE \
     SET state = 1, attempt = c.attempt + 1, fingerprint = EXCLUDED.fingerprint, \
         parts = EXCLUDED.parts, recovery = EXCLUDED.recovery, \
         recovery_seconds = EXCLUDED.recovery_seconds, request_id = EXCLUDED.request_id, \
         token = EXCLUDED.token, claimed_at = EXCLUDED.claimed_at, lease_until = EXCLUDED.lease_until \
     WHERE c.attempt < $11 \
       AND (c.state = 0 OR c.state = 1 AND c.fingerprint = EXCLUDED.fingerprint \
            AND c.lease_until <= EXCLUDED.claimed_at AND (c.recovery = 1 OR c.recovery = 2 AND \
                 greatest(now(), (SELECT at FROM time_mark WHERE one = 1)) \
                   < c.first_claim + c.recovery_seconds * interval '800 milliseconds')) \
     RETURNING attempt";

/// Reads the state of a scope that was not free.
static STANDS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, c.token, c.recovery = 1 OR c.recovery = 2 AND \
            greatest(now(), (SELECT at FROM time_mark WHERE one = 1)) \
              < c.first_claim + c.recovery_seconds * interval '800 milliseconds' AS may_take \
         FROM claim c {OF_SCOPE}",
        held::COLUMNS
    )
});

/// Gives up an owner whose lease is over.
static GIVE_UP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE claim c SET state = 4, lease_until = NULL {OF_SCOPE} \
         AND c.attempt = $4 AND c.state = 1 AND c.lease_until <= now() RETURNING {}",
        held::COLUMNS
    )
});

impl PostgresStore {
    async fn take(&self, request: &ClaimRequest) -> Result<ClaimAnswer, Failure> {
        // Claiming again with the same token is safe: if the first attempt succeeded, the row has this token.
        let token = self.claiming();
        let mut breaks = 0;
        for _ in 0..ROUNDS_MAX {
            match self.take_once(request, &token).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(failure) if failure.is_lost() && breaks < BREAKS_MAX => {
                    breaks += 1;
                    self.forget_idle();
                }
                // Other transactions changed the same pots at the same time.
                Err(failure) if failure.meaning() == Meaning::Again => {}
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::Contended {
            what: "a claim",
            tries: ROUNDS_MAX,
        })
    }

    /// Makes one attempt to take the scope. `None` if the row changed between the two statements: then neither
    /// result counts.
    async fn take_once(
        &self,
        request: &ClaimRequest,
        token: &str,
    ) -> Result<Option<ClaimAnswer>, Failure> {
        let scope = &request.scope;
        let (tool, key) = (scope.tool.as_str(), scope.key.0.as_slice());
        let (recovery, recovery_seconds) = columns(request.recovery);
        let take: super::Params<'_> = &[
            &scope.user_id,
            &tool,
            &key,
            &request.fingerprint.as_slice(),
            &request.parts,
            &recovery,
            &recovery_seconds,
            &request.request_id.as_str(),
            &token,
            &micros(request.lease),
            &i64::from(request.attempts_max),
            &key_name(request.sealed_under.as_ref()),
        ];
        let ours = |attempt| {
            let scope = scope.clone();
            Some(ClaimAnswer::Ours(Claim { scope, attempt }))
        };
        let ours_now = match &request.spend {
            None => self.run(TAKE, take).await?.first().map(attempt),
            Some(spend) => match self.take_paid(take, scope, spend).await? {
                Ok(attempt) => attempt,
                Err(over) => return Ok(Some(ClaimAnswer::Over(over))),
            },
        };
        if let Some(attempt) = ours_now {
            return Ok(ours(attempt));
        }
        let params: super::Params<'_> = &[&scope.user_id, &tool, &key];
        let stands = self.run(&STANDS, params).await?;
        let Some(row) = stands.first() else {
            let is_lost = self.has_lost_key(&scope.user_id, request.sealed_under);
            return Ok(is_lost.await?.then_some(ClaimAnswer::Erased));
        };
        let (stood, attempt) = (held(row)?, attempt(row));
        let is_same = stood.fingerprint == request.fingerprint;
        match (&stood.state, is_same) {
            (HeldState::Running { .. } | HeldState::Abandoned, true)
                if row.get::<_, &str>("token") == token =>
            {
                Ok(ours(attempt))
            }
            (HeldState::Released, _) => Ok(exhausted(request, attempt)),
            (HeldState::Abandoned, true) if row.get("may_take") => Ok(exhausted(request, attempt)),
            (HeldState::Abandoned, true) => {
                let attempt = i64::from(attempt);
                let params: super::Params<'_> = &[&scope.user_id, &tool, &key, &attempt];
                let given_up = self.run(&GIVE_UP, params).await?;
                let stood = given_up.first().map(held).transpose()?;
                Ok(stood.map(ClaimAnswer::Held))
            }
            (
                HeldState::Running { .. }
                | HeldState::Succeeded(_)
                | HeldState::Failed(_)
                | HeldState::InDoubt
                | HeldState::Expired,
                true,
            )
            | (_, false) => Ok(Some(ClaimAnswer::Held(stood))),
        }
    }

    /// Takes a free scope and reserves the money for it; does both or neither.
    async fn take_paid(
        &self,
        take: super::Params<'_>,
        scope: &Scope,
        spend: &Reserve,
    ) -> Result<Result<Option<u32>, Overdrawn>, Failure> {
        within(self.patience() * 2, async {
            let mut client = self.client().await?;
            let transaction = client.transaction().await?;
            let statement = transaction.prepare_cached(TAKE).await?;
            let Some(row) = transaction.query_opt(&statement, take).await? else {
                return Ok(Ok(None));
            };
            let claim = Claim {
                scope: scope.clone(),
                attempt: attempt(&row),
            };
            if claim.attempt > 1 {
                pots::release_scope(&transaction, scope).await?;
            }
            if let Some(over) = pots::reserve(&transaction, spend, Some(&claim)).await? {
                transaction.rollback().await?;
                return Ok(Err(over));
            }
            transaction.commit().await?;
            Ok(Ok(Some(claim.attempt)))
        })
        .await
    }

    async fn sweep_now(&self, limit: usize) -> Result<Swept, Failure> {
        let lapsed = self.end_lost(limit).await?;
        self.sweep_paces().await?;
        let in_doubt = swept(
            "state = 1 AND lease_until <= now() AND (recovery IN (0, 3) OR recovery = 2 AND \
                 greatest(now(), (SELECT at FROM time_mark WHERE one = 1)) \
                   >= first_claim + recovery_seconds * interval '800 milliseconds') \
                 ORDER BY lease_until",
            "UPDATE claim c SET state = 4, lease_until = NULL FROM over",
        );
        let in_doubt = self.run(&in_doubt, &[&rows(limit)]).await?;
        Ok(Swept {
            in_doubt: counted(&in_doubt),
            lapsed,
        })
    }
}

/// Drops the replies of settled claims past their retention. A tombstone stays: the digests, and the attempt.
pub(super) async fn drop_replies(
    transaction: &Transaction<'_>,
    limit: i64,
) -> Result<usize, Failure> {
    let dropped = swept(
        "state IN (2, 3) AND until <= now() ORDER BY until",
        "UPDATE claim c SET state = 5, reply = NULL, parts = '', until = NULL FROM over",
    );
    Ok(counted(&transaction.query(&dropped, &[&limit]).await?))
}

/// Removes the tombstones that an operator wants to be forgotten.
pub(super) async fn forget(
    transaction: &Transaction<'_>,
    which: &Forgotten,
) -> Result<Names, Failure> {
    let forgotten = removed(
        "state = 5 AND claimed_at < $2 AND ($3::text IS NULL OR user_id = $3) \
             AND ($4::text IS NULL OR tool = $4) AND ($5::bytea IS NULL OR key_digest = $5) \
             ORDER BY claimed_at",
        "DELETE FROM claim c USING over",
    );
    let tool = which.tool.as_ref().map(ToolName::as_str);
    let key = which.key.as_ref().map(|key| key.0.as_slice());
    let params: super::Params<'_> = &[
        &rows(which.limit),
        &which.claimed_before,
        &which.user_id,
        &tool,
        &key,
    ];
    let mut names = Names::default();
    for row in transaction.query(&forgotten, params).await? {
        names.add_key(row.get(0), &KeyDigest(held::digest(&row, "key_digest")?));
    }
    Ok(names)
}

/// Builds a statement like [`swept`] that names the claims.
fn removed(which: &str, what: &str) -> String {
    swept(which, what)
        .replace("RETURNING 1", "RETURNING c.tool, c.key_digest")
        .replace("count(*)", "tool, key_digest")
}

/// Builds a statement that changes claims which no other transaction has locked, and counts them. The claims
/// are selected first, in a materialized sub-select: as a part of the condition they could be selected more
/// than once.
fn swept(which: &str, what: &str) -> String {
    format!(
        "WITH over AS MATERIALIZED (SELECT user_id, tool, key_digest FROM claim WHERE {which} \
           LIMIT $1 FOR UPDATE SKIP LOCKED), \
         done AS ({what} WHERE c.user_id = over.user_id AND c.tool = over.tool \
           AND c.key_digest = over.key_digest RETURNING 1) \
         SELECT count(*) FROM done"
    )
}

/// Returns the count: the only column of the only row.
pub(super) fn counted(rows: &[Row]) -> usize {
    let count = rows.first().map_or(0, |row| row.get::<_, i64>(0));
    usize::try_from(count).unwrap_or_default()
}

/// Converts a recovery to its two columns: a number and a time in seconds.
pub(super) fn columns(recovery: Recovery) -> (i16, i64) {
    match recovery {
        Recovery::Operator => (0, 0),
        Recovery::Retry => (1, 0),
        Recovery::DownstreamKey { window_seconds } => (2, seconds(window_seconds)),
        Recovery::Reconcile { grace_seconds } => (3, seconds(grace_seconds)),
    }
}

/// Limits a time in seconds to a thousand years, so that it can be added to any other.
fn seconds(seconds: u64) -> i64 {
    micros(Duration::from_secs(seconds)) / 1_000_000
}

/// Returns [`ClaimAnswer::Exhausted`] if the scope has used all its attempts. `None` if it was just released:
/// then another round is worth it.
fn exhausted(request: &ClaimRequest, attempts: u32) -> Option<ClaimAnswer> {
    (attempts >= request.attempts_max).then_some(ClaimAnswer::Exhausted { attempts })
}

fn shown(row: &Row) -> Result<ClaimRow, Failure> {
    let state = state(row)?;
    let is_running = state == ClaimState::Running;
    Ok(ClaimRow {
        scope: scope(row)?,
        state,
        attempt: attempt(row),
        request_id: request_id(row.get("request_id"))?,
        claimed_at: row.get("claimed_at"),
        lease_until: row
            .get::<_, Option<_>>("lease_until")
            .filter(|_| is_running),
        parts: row.get::<_, &[u8]>("parts").into(),
    })
}

/// Reads the scope from a row that has all of its columns.
pub(super) fn scope(row: &Row) -> Result<Scope, Failure> {
    let tool: &str = row.get("tool");
    Ok(Scope {
        user_id: row.get("user_id"),
        tool: ToolName::new(tool).map_err(|_| Failure::damaged("the tool of a claim"))?,
        key: KeyDigest(held::digest(row, "key_digest")?),
    })
}

pub(super) fn request_id(text: &str) -> Result<RequestId, Failure> {
    RequestId::new(text).map_err(|_| Failure::damaged("a request id"))
}
