//! The outbox. There is one writer, so looking and keeping, and looking and leasing, are atomic.

use std::time::Duration;

use countersign::BoxFuture;
use countersign::ledger::{
    Delivery, DeliveryEnd, DeliveryId, DeliveryRow, Error, FailedDeliveries, Finding, Look, Notice,
    NoticeRow, Outbox,
};
use countersign_contract::ToolName;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::failure::Failure;
use super::time::{later, micros, timestamp};
use super::values::{bounded, parsed, parsed_option, unsigned};
use super::writer::Done;

impl Outbox for SqliteStore {
    fn keep_notices<'a>(&'a self, look: &'a Look) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let look = look.clone();
        Box::pin(async move {
            let kept = self
                .writer
                .run(move |session| keep(session.connection, &look, session.now).map(Done::Kept));
            Ok(kept.await?)
        })
    }

    fn take_deliveries<'a>(
        &'a self,
        targets: &'a [String],
        lease: Duration,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        let targets = targets.to_vec();
        Box::pin(async move {
            let now = self.time.now();
            // An idle outbox costs no write.
            let is_due = self.readers.point(|connection| {
                let mut due = connection.prepare_cached(
                    "SELECT 1 FROM notice_delivery WHERE delivered_at IS NULL \
                     AND failed_at IS NULL AND next_at <= ?1",
                )?;
                Ok(due.exists([now])?)
            });
            if !is_due? {
                return Ok(Vec::new());
            }
            let taken = self.writer.run(move |session| {
                let (connection, now) = (session.connection, session.now);
                take(connection, &targets, later(now, lease), limit, now).map(Done::Kept)
            });
            Ok(taken.await?)
        })
    }

    fn end_delivery<'a>(
        &'a self,
        delivery: &'a DeliveryId,
        end: &'a DeliveryEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let (delivery, end) = (delivery.clone(), end.clone());
        Box::pin(async move {
            let ended = self.writer.run(move |session| {
                ended(session.connection, &delivery, &end, session.now).map(Done::Kept)
            });
            Ok(ended.await?)
        })
    }

    fn retry_deliveries<'a>(
        &'a self,
        target: &'a str,
        give_up_after: Duration,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        let target = target.to_owned();
        Box::pin(async move {
            let retried = self.writer.run(move |session| {
                let mut retry = session.connection.prepare_cached(
                    "UPDATE notice_delivery SET failed_at = NULL, next_at = ?2, give_up_at = ?3
                     WHERE target = ?1 AND delivered_at IS NULL AND failed_at IS NOT NULL",
                )?;
                let give_up_at = later(session.now, give_up_after);
                let count = retry.execute(params![target, session.now, give_up_at])?;
                Ok(Done::Kept(count))
            });
            Ok(retried.await?)
        })
    }

    fn notices(&self, limit: usize) -> BoxFuture<'_, Result<Vec<NoticeRow>, Error>> {
        self.list(move |connection| {
            let mut statement = connection.prepare(
                "SELECT id, kind, subject, tool, since, page, at, gone_at FROM notice
                 ORDER BY seq DESC LIMIT ?1",
            )?;
            let mut rows = statement.query([bounded(limit)])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let notice = notice(row)?;
                found.push(NoticeRow {
                    deliveries: deliveries(connection, &notice.id)?,
                    notice,
                    at: timestamp(row.get(6)?),
                    gone_at: row.get::<_, Option<i64>>(7)?.map(timestamp),
                });
            }
            Ok(found)
        })
    }

    fn failed_deliveries(&self) -> BoxFuture<'_, Result<Vec<FailedDeliveries>, Error>> {
        self.list(|connection| {
            let mut statement = connection.prepare(
                "SELECT target, count(*), min(failed_at) FROM notice_delivery
                 WHERE delivered_at IS NULL AND failed_at IS NOT NULL
                 GROUP BY target ORDER BY target",
            )?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(FailedDeliveries {
                    target: row.get(0)?,
                    count: unsigned(row.get(1)?),
                    since: timestamp(row.get(2)?),
                });
            }
            Ok(found)
        })
    }
}

fn keep(connection: &Connection, look: &Look, now: i64) -> Result<Vec<String>, Failure> {
    let refreshed = earlier(now, look.refresh_after());
    let give_up_at = later(now, look.give_up_after);
    let (mut new, mut seen) = (Vec::new(), Vec::new());
    for finding in &look.findings {
        let id = if let Some((id, seen_at)) = open_of(connection, finding)? {
            if seen_at <= refreshed {
                let mut update =
                    connection.prepare_cached("UPDATE notice SET seen_at = ?2 WHERE id = ?1")?;
                update.execute(params![id, now])?;
            }
            id
        } else {
            insert(connection, &finding.notice, now)?;
            new.push(finding.notice.id.clone());
            finding.notice.id.clone()
        };
        for target in &finding.targets {
            let mut want = connection.prepare_cached(
                "INSERT INTO notice_delivery (notice_id, target, next_at, give_up_at)
                 VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?;
            want.execute(params![id, target, now, give_up_at])?;
        }
        seen.push(id);
    }
    end_gone(connection, look, &seen, now)?;
    remove_ended(connection, look.kept_max, now)?;
    Ok(new)
}

/// Returns the id of the open notice of a finding, and when the finding was last seen.
fn open_of(connection: &Connection, finding: &Finding) -> Result<Option<(String, i64)>, Failure> {
    let mut open = connection.prepare_cached(
        "SELECT id, seen_at FROM notice WHERE kind = ?1 AND subject = ?2 AND gone_at IS NULL",
    )?;
    let Notice { kind, subject, .. } = &finding.notice;
    let found = open.query_row(params![kind.as_str(), subject], |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    Ok(found.optional()?)
}

fn insert(connection: &Connection, notice: &Notice, now: i64) -> Result<(), Failure> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO notice (id, kind, subject, tool, since, page, at, seen_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
    )?;
    insert.execute(params![
        notice.id,
        notice.kind.as_str(),
        notice.subject,
        notice.tool.as_ref().map(ToolName::as_str),
        notice.since.map(micros),
        notice.page,
        now,
    ])?;
    Ok(())
}

/// Ends the notices whose findings no process has seen for long enough.
fn end_gone(
    connection: &Connection,
    look: &Look,
    seen: &[String],
    now: i64,
) -> Result<(), Failure> {
    for kind in &look.complete {
        let mut old = connection.prepare_cached(
            "SELECT id FROM notice WHERE kind = ?1 AND gone_at IS NULL AND seen_at <= ?2",
        )?;
        let ids = old.query_map(
            params![kind.as_str(), earlier(now, look.gone_after)],
            |row| row.get(0),
        )?;
        let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
        for id in ids.iter().filter(|id| !seen.contains(*id)) {
            let mut end =
                connection.prepare_cached("UPDATE notice SET gone_at = ?2 WHERE id = ?1")?;
            end.execute(params![id, now])?;
        }
    }
    Ok(())
}

/// Removes the oldest notices that have ended and have nothing to send.
fn remove_ended(connection: &Connection, kept_max: usize, now: i64) -> Result<(), Failure> {
    let mut old = connection.prepare_cached(
        "DELETE FROM notice AS n WHERE gone_at IS NOT NULL
             AND seq <= (SELECT seq FROM notice ORDER BY seq DESC LIMIT 1 OFFSET ?1)
             AND NOT EXISTS (SELECT 1 FROM notice_delivery AS d WHERE d.notice_id = n.id
                 AND d.delivered_at IS NULL AND d.failed_at IS NULL AND d.give_up_at > ?2)
         RETURNING id",
    )?;
    let ids = old.query_map([bounded(kept_max), now], |row| row.get(0))?;
    let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
    for id in ids {
        let mut deliveries =
            connection.prepare_cached("DELETE FROM notice_delivery WHERE notice_id = ?1")?;
        deliveries.execute([id])?;
    }
    Ok(())
}

fn take(
    connection: &Connection,
    targets: &[String],
    leased_until: i64,
    limit: usize,
    now: i64,
) -> Result<Vec<Delivery>, Failure> {
    let mut given_up = connection.prepare_cached(
        "UPDATE notice_delivery SET failed_at = ?1 WHERE delivered_at IS NULL
             AND failed_at IS NULL AND next_at <= ?1 AND give_up_at <= ?1 AND attempts > 0",
    )?;
    given_up.execute([now])?;
    let mut due = connection.prepare_cached(
        "SELECT n.id, n.kind, n.subject, n.tool, n.since, n.page, n.at, d.target, d.attempts
         FROM notice_delivery AS d JOIN notice AS n ON n.id = d.notice_id
         WHERE d.delivered_at IS NULL AND d.failed_at IS NULL AND d.next_at <= ?1
         ORDER BY d.next_at, n.seq",
    )?;
    let mut lease = connection.prepare_cached(
        "UPDATE notice_delivery SET attempts = ?3, next_at = ?4
         WHERE notice_id = ?1 AND target = ?2",
    )?;
    let mut rows = due.query([now])?;
    let mut taken = Vec::new();
    while let Some(row) = rows.next()?
        && taken.len() < limit
    {
        let target: String = row.get(7)?;
        if !targets.contains(&target) {
            continue;
        }
        let notice = notice(row)?;
        let attempt = row.get::<_, u32>(8)?.saturating_add(1);
        taken.push(Delivery {
            id: DeliveryId {
                notice_id: notice.id.clone(),
                target,
                attempt,
            },
            notice,
            at: timestamp(row.get(6)?),
        });
    }
    drop(rows);
    for Delivery { id, .. } in &taken {
        lease.execute(params![id.notice_id, id.target, id.attempt, leased_until])?;
    }
    Ok(taken)
}

fn ended(
    connection: &Connection,
    delivery: &DeliveryId,
    end: &DeliveryEnd,
    now: i64,
) -> Result<(), Failure> {
    let DeliveryId {
        notice_id,
        target,
        attempt,
    } = delivery;
    match end {
        DeliveryEnd::Delivered => {
            let mut delivered = connection.prepare_cached(
                "UPDATE notice_delivery SET delivered_at = ?3, failed_at = NULL
                 WHERE notice_id = ?1 AND target = ?2 AND delivered_at IS NULL",
            )?;
            delivered.execute(params![notice_id, target, now])?;
        }
        DeliveryEnd::Failed { retry_after, error } => {
            let mut failed = connection.prepare_cached(
                "UPDATE notice_delivery SET next_at = ?4, last_error = ?5,
                     failed_at = CASE WHEN give_up_at < ?4 THEN ?6 END
                 WHERE notice_id = ?1 AND target = ?2 AND attempts = ?3
                     AND delivered_at IS NULL AND failed_at IS NULL",
            )?;
            let next_at = later(now, *retry_after);
            failed.execute(params![notice_id, target, attempt, next_at, error, now])?;
        }
    }
    Ok(())
}

/// Reads a notice from the first six columns.
fn notice(row: &Row<'_>) -> Result<Notice, Failure> {
    Ok(Notice {
        id: row.get(0)?,
        kind: parsed(row, 1)?,
        subject: row.get(2)?,
        tool: parsed_option(row, 3)?,
        since: row.get::<_, Option<i64>>(4)?.map(timestamp),
        page: row.get(5)?,
    })
}

fn deliveries(connection: &Connection, notice_id: &str) -> Result<Vec<DeliveryRow>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT target, attempts, next_at, delivered_at, failed_at, last_error
         FROM notice_delivery WHERE notice_id = ?1 ORDER BY target",
    )?;
    let rows = statement.query_map([notice_id], |row| {
        Ok(DeliveryRow {
            target: row.get(0)?,
            attempts: row.get(1)?,
            next_at: timestamp(row.get(2)?),
            delivered_at: row.get::<_, Option<i64>>(3)?.map(timestamp),
            failed_at: row.get::<_, Option<i64>>(4)?.map(timestamp),
            last_error: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn earlier(at: i64, by: Duration) -> i64 {
    at.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX))
}
