//! Pots in PostgreSQL.
//!
//! Every transaction that changes pots locks them first, always in the order of their keys, so that there is no
//! deadlock. A reservation is ended by deleting it, in the same statement that updates its pots: a second
//! attempt to end it finds nothing.

use std::sync::LazyLock;

use countersign::BoxFuture;
use countersign::ledger::{
    Claim, Draw, Error, Overdrawn, POT_KEPT, PotKey, PotRow, Pots, ReservationId, Reserve,
    ReserveAnswer, Scope, longer, overdrawn,
};
use countersign_contract::SnapshotId;
use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::claims::counted;
use super::connect::within;
use super::failure::{Failure, Meaning};
use super::{PostgresStore, micros, rows, signed, unsigned};

/// Maximum attempts of a reservation while others interfere, or after the connection broke.
const TRIES_MAX: u32 = 10;

impl Pots for PostgresStore {
    fn reserve<'a>(&'a self, request: &'a Reserve) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        Box::pin(async move {
            let mut tries = 0;
            let over = loop {
                let reserved = within(self.patience() * 2, self.reserve_once(request));
                match reserved.await {
                    Err(failure) if self.is_worth_a_try(&failure, &mut tries) => {}
                    reserved => break reserved?,
                }
            };
            Ok(over.map_or(ReserveAnswer::Reserved, ReserveAnswer::Over))
        })
    }

    fn check<'a>(&'a self, draws: &'a [Draw]) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        Box::pin(async move {
            let columns = Columns::of(draws);
            let params: super::Params<'_> = &[
                &columns.user_ids,
                &columns.names,
                &columns.holders,
                &columns.currencies,
                &columns.windows,
            ];
            let found = self.read(&LOOK, params).await?;
            let over = over(&found, &columns, draws);
            Ok(over.map_or(ReserveAnswer::Reserved, ReserveAnswer::Over))
        })
    }

    fn release<'a>(&'a self, id: &'a ReservationId) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            static RELEASE: LazyLock<String> = LazyLock::new(|| {
                end("SELECT $1::text AS user_id, $2::text AS id, false AS is_spent")
            });
            let params: super::Params<'_> = &[&id.user_id, &id.id.as_str()];
            self.run_again(&RELEASE, params).await?;
            Ok(())
        })
    }

    fn reserved<'a>(
        &'a self,
        claim: &'a Claim,
    ) -> BoxFuture<'a, Result<Option<ReservationId>, Error>> {
        Box::pin(async move {
            let Scope { user_id, tool, key } = &claim.scope;
            let (tool, key) = (tool.as_str(), key.0.as_slice());
            let query = "SELECT user_id, id FROM reservation WHERE user_id = $1 AND tool = $2 \
                 AND key_digest = $3 AND attempt = $4 AND n = 0";
            let params: super::Params<'_> = &[&user_id, &tool, &key, &i64::from(claim.attempt)];
            let found = self.read(query, params).await?;
            Ok(found.first().map(reservation_id).transpose()?)
        })
    }

    fn pots<'a>(
        &'a self,
        user_id: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<PotRow>, Error>> {
        Box::pin(async move {
            let query = "SELECT * FROM pot WHERE $1::text IS NULL OR user_id = $1 \
                 ORDER BY user_id, name, holder, currency, window_seconds, window_start LIMIT $2";
            let found = self.read(query, &[&user_id, &rows(limit)]).await?;
            Ok(found.iter().map(pot_row).collect())
        })
    }
}

/// The draws of a call in the order of their pots.
struct Columns<'d> {
    /// Indexes into the call's draws, in the order of the pots.
    order: Vec<usize>,
    user_ids: Vec<&'d str>,
    names: Vec<&'d str>,
    holders: Vec<&'d str>,
    currencies: Vec<&'d str>,
    windows: Vec<i64>,
}

impl<'d> Columns<'d> {
    fn of(draws: &'d [Draw]) -> Self {
        let mut sorted: Vec<(&PotKey, usize)> = draws
            .iter()
            .enumerate()
            .map(|(index, draw)| (&draw.pot, index))
            .collect();
        sorted.sort_unstable();
        let column = |of: fn(&'d PotKey) -> &'d str| {
            let column = sorted.iter().map(|(pot, _)| of(pot));
            column.collect::<Vec<&str>>()
        };
        Self {
            user_ids: column(|pot| &pot.user_id),
            names: column(|pot| &pot.name),
            holders: column(|pot| &pot.holder),
            currencies: column(|pot| &pot.currency),
            windows: sorted
                .iter()
                .map(|(pot, _)| signed(pot.window_seconds))
                .collect(),
            order: sorted.iter().map(|(_, index)| *index).collect(),
        }
    }
}

/// Selects the keys of the requested pots, each in its current window; `n` counts them from 1. The time is that of
/// `window_time`: a clock that jumps opens no window.
const KEYS: &str = "(SELECT t.*, CASE WHEN t.window_seconds = 0 THEN 0 \
        ELSE floor(m.seconds / t.window_seconds)::bigint * t.window_seconds END \
        AS window_start, floor(m.seconds)::bigint AS now_seconds \
     FROM (SELECT extract(epoch FROM CASE WHEN at IS NULL THEN now() \
         WHEN now() BETWEEN at - interval '300 seconds' AND at + interval '72 hours' \
           THEN greatest(now(), at) ELSE at END) AS seconds FROM time_mark WHERE one = 1) m, \
       unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) \
       WITH ORDINALITY AS t (user_id, name, holder, currency, window_seconds, n)) k";

/// Condition that a row of `pot` matches a row of keys.
const SAME: &str = "p.user_id = k.user_id AND p.name = k.name AND p.holder = k.holder \
     AND p.currency = k.currency AND p.window_seconds = k.window_seconds \
     AND p.window_start = k.window_start";

const FOUND: &str = "k.n, k.window_start, coalesce(p.reserved, 0) AS reserved, \
     coalesce(p.spent, 0) AS spent, k.now_seconds";

static LOOK: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {FOUND} FROM {KEYS} LEFT JOIN pot p ON {SAME} ORDER BY k.n"));

static MAKE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO pot (user_id, name, holder, currency, window_seconds, window_start, reserved, \
            spent) \
         SELECT user_id, name, holder, currency, window_seconds, window_start, 0, 0 FROM {KEYS} \
         ORDER BY n ON CONFLICT DO NOTHING"
    )
});

/// Locks the pots one by one, in the given order.
static LOCK: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FOUND} FROM {KEYS} \
         CROSS JOIN LATERAL (SELECT * FROM pot p WHERE {SAME} FOR UPDATE) p ORDER BY k.n"
    )
});

/// Takes the amounts. The pots are already locked, so their order does not matter.
static TAKE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH taken AS (SELECT k.*, greatest(a.amount, 0) AS reserved, a.amount, a.place \
           FROM {KEYS} JOIN unnest($6::bigint[], $7::integer[]) \
             WITH ORDINALITY AS a (amount, place, n) ON a.n = k.n), \
         drawn AS (UPDATE pot p SET reserved = p.reserved + k.reserved FROM taken k WHERE {SAME}) \
         INSERT INTO reservation (user_id, id, n, pot_user_id, name, holder, currency, \
            window_seconds, window_start, amount, lapse, lease_until, tool, key_digest, attempt) \
         SELECT $8::text, $9::text, place, user_id, name, holder, currency, window_seconds, \
            window_start, amount, $10::smallint, now() + $11::bigint * interval '1 microsecond', \
            $12::text, $13::bytea, $14::bigint FROM taken"
    )
});

/// Ends reservations, and counts them: `ends` gives `user_id`, `id` and whether each is spent. Where the real amounts are
/// known, `actual` gives them by `user_id`, `id` and `n`.
pub(super) fn end_with(ends: &str, actual: &str) -> String {
    format!(
        "WITH ends AS MATERIALIZED ({ends}), \
         gone AS (DELETE FROM reservation r USING ends e WHERE r.user_id = e.user_id AND r.id = e.id \
           RETURNING r.*, e.is_spent), \
         k AS MATERIALIZED (SELECT g.pot_user_id AS user_id, g.name, g.holder, g.currency, \
             g.window_seconds, g.window_start, sum(greatest(g.amount, 0))::bigint AS reserved, \
             sum(CASE WHEN g.is_spent THEN coalesce(a.amount, g.amount) ELSE 0 END)::bigint AS spent \
           FROM gone g LEFT JOIN ({actual}) a \
             ON a.user_id = g.user_id AND a.id = g.id AND a.n = g.n \
           GROUP BY 1, 2, 3, 4, 5, 6), \
         locked AS MATERIALIZED (SELECT p.* FROM k JOIN pot p ON {SAME} \
           ORDER BY p.user_id, p.name, p.holder, p.currency, p.window_seconds, p.window_start \
           FOR UPDATE OF p), \
         changed AS (UPDATE pot p SET reserved = p.reserved - k.reserved, \
             spent = greatest(p.spent + k.spent, 0) \
           FROM k WHERE {SAME} AND (SELECT count(*) FROM locked) > 0) \
         SELECT count(*) FROM gone WHERE n = 0"
    )
}

/// Same as [`end_with`], with the reserved amounts as the spent ones.
fn end(ends: &str) -> String {
    let nothing = "SELECT ''::text AS user_id, ''::text AS id, 0 AS n, 0::bigint AS amount LIMIT 0";
    end_with(ends, nothing)
}

impl PostgresStore {
    async fn reserve_once(&self, request: &Reserve) -> Result<Option<Overdrawn>, Failure> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let over = reserve(&transaction, request, None).await?;
        if over.is_none() {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        Ok(over)
    }

    /// Runs one idempotent statement, with retries.
    pub(super) async fn run_again(
        &self,
        sql: &str,
        params: super::Params<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let mut tries = 0;
        loop {
            match self.run(sql, params).await {
                Err(failure) if self.is_worth_a_try(&failure, &mut tries) => {}
                done => return done,
            }
        }
    }

    /// True if the work is to be retried: other transactions interfered, or the answer was lost. Only for work
    /// that is idempotent.
    fn is_worth_a_try(&self, failure: &Failure, tries: &mut u32) -> bool {
        *tries += 1;
        let may_retry = match failure.meaning() {
            Meaning::Again => true,
            Meaning::Lost => {
                self.forget_idle();
                true
            }
            Meaning::Locked | Meaning::Refused => false,
        };
        may_retry && *tries <= TRIES_MAX
    }

    /// Ends the reservations of lost owners and deletes old pots. Returns both counts.
    /// Ends the reservations of lost owners.
    pub(super) async fn end_lost(&self, limit: usize) -> Result<usize, Failure> {
        static LAPSE: LazyLock<String> = LazyLock::new(|| {
            end(
                "SELECT r.user_id, r.id, r.lapse = 1 AS is_spent FROM reservation r \
                 WHERE r.lease_until <= now() AND r.n = 0 AND NOT EXISTS (SELECT 1 FROM claim c \
                   WHERE c.user_id = r.user_id AND c.tool = r.tool AND c.key_digest = r.key_digest \
                     AND c.attempt = r.attempt AND c.state IN (1, 4)) \
                 ORDER BY r.lease_until LIMIT $1 FOR UPDATE OF r SKIP LOCKED",
            )
        });
        let lapsed = self.run_again(&LAPSE, &[&rows(limit)]).await?;
        Ok(counted(&lapsed))
    }
}

/// Removes pots long after their window.
pub(super) async fn drop_old(transaction: &Transaction<'_>, limit: i64) -> Result<usize, Failure> {
    const OLD: &str = "WITH old AS MATERIALIZED (SELECT * FROM pot WHERE window_seconds > 0 \
           AND reserved = 0 AND window_start + window_seconds + $2::bigint \
             <= floor(extract(epoch FROM now()))::bigint \
           LIMIT $1 FOR UPDATE SKIP LOCKED), \
         done AS (DELETE FROM pot p USING old k WHERE p.user_id = k.user_id AND p.name = k.name \
           AND p.holder = k.holder AND p.currency = k.currency \
           AND p.window_seconds = k.window_seconds AND p.window_start = k.window_start \
           RETURNING 1) \
         SELECT count(*) FROM done";
    let kept = signed(POT_KEPT.as_secs());
    let pots = transaction.query(OLD, &[&limit, &kept]).await?;
    Ok(counted(&pots))
}

/// Gives back the reservations of earlier attempts of a scope.
pub(super) async fn release_scope(
    transaction: &Transaction<'_>,
    scope: &Scope,
) -> Result<(), Failure> {
    static RELEASE: LazyLock<String> = LazyLock::new(|| {
        end("SELECT user_id, id, false AS is_spent FROM reservation \
             WHERE user_id = $1 AND tool = $2 AND key_digest = $3 AND n = 0")
    });
    let (tool, key) = (scope.tool.as_str(), scope.key.0.as_slice());
    let statement = transaction.prepare_cached(&RELEASE).await?;
    let params: super::Params<'_> = &[&scope.user_id, &tool, &key];
    transaction.query(&statement, params).await?;
    Ok(())
}

/// Erases a user. Reservations of the user's open calls in other users' pots count as spent: no call will ever
/// report that they were not.
pub(super) async fn erase(transaction: &Transaction<'_>, user_id: &str) -> Result<(), Failure> {
    let ends = "SELECT user_id, id, true AS is_spent FROM reservation \
         WHERE user_id = $1 AND n = 0";
    transaction.query(&end(ends), &[&user_id]).await?;
    let pots = "DELETE FROM pot WHERE user_id = $1";
    transaction.execute(pots, &[&user_id]).await?;
    Ok(())
}

/// Makes a reservation within a transaction. The caller must not commit it if a pot has too little.
pub(super) async fn reserve(
    transaction: &Transaction<'_>,
    request: &Reserve,
    claim: Option<&Claim>,
) -> Result<Option<Overdrawn>, Failure> {
    let ReservationId { user_id, id } = &request.id;
    let id = id.as_str();
    let known = "SELECT 1 FROM reservation WHERE user_id = $1 AND id = $2 AND n = 0";
    let known = transaction.prepare_cached(known).await?;
    let params: super::Params<'_> = &[user_id, &id];
    if transaction.query_opt(&known, params).await?.is_some() {
        return Ok(None);
    }
    let columns = Columns::of(&request.draws);
    let keys: [&(dyn tokio_postgres::types::ToSql + Sync); 5] = [
        &columns.user_ids,
        &columns.names,
        &columns.holders,
        &columns.currencies,
        &columns.windows,
    ];
    let make = transaction.prepare_cached(&MAKE).await?;
    transaction.execute(&make, &keys).await?;
    let lock = transaction.prepare_cached(&LOCK).await?;
    let found = transaction.query(&lock, &keys).await?;
    if let Some(over) = over(&found, &columns, &request.draws) {
        return Ok(Some(over));
    }
    let drawn = columns.order.iter().filter_map(|index| {
        let draw = request.draws.get(*index)?;
        Some((draw.amount, i32::try_from(*index).unwrap_or(i32::MAX)))
    });
    let (amounts, places): (Vec<i64>, Vec<i32>) = drawn.unzip();
    let (tool, key, attempt) = match claim {
        Some(Claim { scope, attempt }) => (
            Some(scope.tool.as_str()),
            Some(scope.key.0.as_slice()),
            Some(i64::from(*attempt)),
        ),
        None => (None, None, None),
    };
    let take = transaction.prepare_cached(&TAKE).await?;
    let [user_ids, names, holders, currencies, windows] = keys;
    let (lapse, lease) = (request.lapse as i16, micros(request.lease));
    transaction
        .execute(
            &take,
            &[
                user_ids, names, holders, currencies, windows, &amounts, &places, user_id, &id,
                &lapse, &lease, &tool, &key, &attempt,
            ],
        )
        .await?;
    Ok(None)
}

/// Returns the pot that has too little, if there is one.
fn over(found: &[Row], columns: &Columns<'_>, draws: &[Draw]) -> Option<Overdrawn> {
    let over = found.iter().filter_map(|row| {
        let n = usize::try_from(row.get::<_, i64>("n")).ok()?;
        let index = *columns.order.get(n.checked_sub(1)?)?;
        let (reserved, spent) = (row.get("reserved"), row.get("spent"));
        overdrawn(
            index,
            draws.get(index)?,
            reserved,
            spent,
            row.get("now_seconds"),
        )
    });
    over.fold(None, |longest, over| longer(longest, Some(over)))
}

pub(super) fn pot_row(row: &Row) -> PotRow {
    PotRow {
        key: pot_key(row, "user_id"),
        window_start: row.get("window_start"),
        reserved: row.get("reserved"),
        spent: row.get("spent"),
    }
}

/// Reads the key of a pot whose owner is in this column.
pub(super) fn pot_key(row: &Row, user_id: &str) -> PotKey {
    PotKey {
        user_id: row.get(user_id),
        name: row.get("name"),
        holder: row.get("holder"),
        currency: row.get("currency"),
        window_seconds: unsigned(row.get("window_seconds")),
    }
}

pub(super) fn reservation_id(row: &Row) -> Result<ReservationId, Failure> {
    let id = SnapshotId::new(row.get::<_, &str>("id"));
    Ok(ReservationId {
        user_id: row.get("user_id"),
        id: id.map_err(|_| Failure::damaged("the id of a reservation"))?,
    })
}
