//! Paces (rate limits) in PostgreSQL: one statement for each call, by the database's clock.
//!
//! The rows of a call are locked in the order of their keys; then all of them are updated or none. A missing
//! row cannot be locked. If only one is missing, it is inserted with its first call counted; if another process
//! inserted it first, nothing is done and the statement is run again. Several missing rows are first inserted
//! empty, and the statement is run again to find them.

use std::cmp::Reverse;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::ledger::{Error, Pace, PaceAnswer, PaceKey, PaceRule, Paces};
use tokio_postgres::Row;

use super::failure::Failure;
use super::{Params, PostgresStore, micros, rows};

/// Maximum retries of counting a call while others insert its rows.
const RACES_MAX: u32 = 20;

/// Time for which an expired row is kept: the process that has just inserted it will look for it.
const SLACK: Duration = Duration::from_mins(1);

/// Maximum rows that one statement removes, and maximum such statements in one sweep.
const SWEPT_MAX: usize = 10_000;
const SWEEPS_MAX: u32 = 50;

/// The rule of [`PaceRule::take`], for all rows of a call at once. `now()` is when the statement began: a call
/// that waits for a row is counted at that moment, which never allows more calls.
const COUNT: &str = "WITH k AS MATERIALIZED (SELECT t.*, \
       (extract(epoch FROM now()) * 1000000)::bigint AS at \
       FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[]) \
         WITH ORDINALITY AS t (key, cost, span, calls_max, n)), \
     locked AS MATERIALIZED (SELECT p.key, p.until, p.calls FROM k \
       CROSS JOIN LATERAL (SELECT * FROM pace p WHERE p.key = k.key FOR UPDATE) p), \
     seen AS MATERIALIZED (SELECT k.*, l.key IS NULL AS is_absent, \
         greatest(coalesce(l.until, k.at), k.at) AS until, \
         CASE WHEN l.until > k.at THEN l.calls ELSE 0 END AS calls \
       FROM k LEFT JOIN locked l ON l.key = k.key), \
     next AS MATERIALIZED (SELECT n, key, at, is_absent, \
         CASE WHEN calls_max IS NULL THEN until + cost \
           WHEN calls = 0 THEN at + span ELSE until END AS until, \
         CASE WHEN calls_max IS NULL THEN 0 ELSE calls + 1 END AS calls, \
         CASE WHEN calls_max IS NULL THEN until + cost - at - span \
           WHEN calls < calls_max THEN 0 ELSE until - at END AS wait \
       FROM seen), \
     verdict AS MATERIALIZED (SELECT bool_and(wait <= 0) AS fits, \
         count(*) FILTER (WHERE is_absent) AS absent FROM next), \
     made AS (INSERT INTO pace (key, until, calls) \
       SELECT x.key, CASE v.absent WHEN 1 THEN x.until ELSE x.at END, \
         CASE v.absent WHEN 1 THEN x.calls ELSE 0 END \
       FROM next x CROSS JOIN verdict v WHERE x.is_absent AND v.fits ORDER BY x.n \
       ON CONFLICT DO NOTHING RETURNING 1), \
     taken AS MATERIALIZED (SELECT x.* FROM next x CROSS JOIN verdict v \
       WHERE v.fits AND v.absent <= 1 AND (SELECT count(*) FROM made) = v.absent), \
     changed AS (UPDATE pace p SET until = x.until, calls = x.calls \
       FROM taken x WHERE p.key = x.key AND NOT x.is_absent) \
     SELECT x.n, x.wait, v.fits, EXISTS (SELECT 1 FROM taken) AS is_done \
     FROM next x CROSS JOIN verdict v";

impl Paces for PostgresStore {
    fn keep_pace<'a>(&'a self, paces: &'a [Pace]) -> BoxFuture<'a, Result<PaceAnswer, Error>> {
        Box::pin(async move {
            if paces.is_empty() {
                return Ok(PaceAnswer::Admitted);
            }
            let columns = Columns::of(paces);
            let params: Params<'_> = &[
                &columns.keys,
                &columns.costs,
                &columns.spans,
                &columns.calls_max,
            ];
            for _ in 0..RACES_MAX {
                // If the answer is lost with its connection, the call may be counted twice.
                let found = self.run_again(COUNT, params).await?;
                if let Some(answer) = columns.answer(&found) {
                    return Ok(answer);
                }
            }
            Err(Failure::Contended {
                what: "a count of calls",
                tries: RACES_MAX,
            }
            .into())
        })
    }

    fn until_whole<'a>(&'a self, key: &'a PaceKey) -> BoxFuture<'a, Result<Duration, Error>> {
        const WAIT: &str = "SELECT greatest(until - (extract(epoch FROM now()) * 1000000)::bigint, 0) \
             AS wait FROM pace WHERE key = $1";
        Box::pin(async move {
            let key: &[u8] = &key.0;
            let found = self.run_again(WAIT, &[&key]).await?;
            let wait = found.first().map_or(0, |row| row.get::<_, i64>("wait"));
            Ok(Duration::from_micros(super::unsigned(wait)))
        })
    }
}

/// The paces of a call in the order of their keys.
struct Columns<'p> {
    /// Indexes into the call's paces, in the order of the keys.
    order: Vec<usize>,
    keys: Vec<&'p [u8]>,
    costs: Vec<i64>,
    spans: Vec<i64>,
    /// `None` if the pace is even.
    calls_max: Vec<Option<i64>>,
}

impl<'p> Columns<'p> {
    fn of(paces: &'p [Pace]) -> Self {
        let mut sorted: Vec<(usize, &Pace)> = paces.iter().enumerate().collect();
        sorted.sort_unstable_by_key(|(_, pace)| pace.key);
        let mut columns = Self {
            order: Vec::new(),
            keys: Vec::new(),
            costs: Vec::new(),
            spans: Vec::new(),
            calls_max: Vec::new(),
        };
        for (index, pace) in sorted {
            let (cost, span, calls_max) = match pace.rule {
                PaceRule::Even { cost, burst } => (micros(cost), micros(burst), None),
                PaceRule::Window { calls_max, within } => (0, micros(within), Some(calls_max)),
            };
            columns.order.push(index);
            columns.keys.push(&pace.key.0);
            columns.costs.push(cost);
            columns.spans.push(span);
            columns
                .calls_max
                .push(calls_max.map(|calls| i64::from(calls.max(1))));
        }
        columns
    }

    /// Reads the answer. `None` if other calls interfered and the statement must be run again.
    fn answer(&self, found: &[Row]) -> Option<PaceAnswer> {
        if found.iter().any(|row| row.get("is_done")) {
            return Some(PaceAnswer::Admitted);
        }
        let refused = found.iter().filter(|row| !row.get::<_, bool>("fits"));
        let waits = refused.filter_map(|row| {
            let place = usize::try_from(row.get::<_, i64>("n"))
                .ok()?
                .checked_sub(1)?;
            Some((row.get::<_, i64>("wait"), *self.order.get(place)?))
        });
        let (wait, which) = waits.max_by_key(|(wait, which)| (*wait, Reverse(*which)))?;
        Some(PaceAnswer::Limited {
            which,
            retry_after: Duration::from_micros(super::unsigned(wait)),
        })
    }
}

impl PostgresStore {
    /// Removes the rows that no longer matter, without counting them. The table is unlogged, so this is quick.
    pub(super) async fn sweep_paces(&self) -> Result<(), Failure> {
        const OLD: &str = "WITH old AS MATERIALIZED (SELECT key FROM pace \
               WHERE until <= (extract(epoch FROM now()) * 1000000)::bigint - $2::bigint \
               LIMIT $1 FOR UPDATE SKIP LOCKED), \
             gone AS (DELETE FROM pace p USING old WHERE p.key = old.key RETURNING 1) \
             SELECT count(*) FROM gone";
        let (limit, slack) = (rows(SWEPT_MAX), micros(SLACK));
        for _ in 0..SWEEPS_MAX {
            let gone = self.run(OLD, &[&limit, &slack]).await?;
            if super::claims::counted(&gone) < SWEPT_MAX {
                break;
            }
        }
        Ok(())
    }
}
