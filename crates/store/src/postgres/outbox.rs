//! The outbox in PostgreSQL. Keeping a look locks the table of notices against other keepers; senders take rows that no
//! other sender holds.

use std::time::Duration;

use countersign::BoxFuture;
use countersign::ledger::{
    Delivery, DeliveryEnd, DeliveryId, DeliveryRow, Error, FailedDeliveries, Look, Notice,
    NoticeRow, Outbox,
};
use countersign_contract::ToolName;
use jiff::Timestamp;
use tokio_postgres::Row;

use super::connect::within;
use super::failure::Failure;
use super::{PostgresStore, micros, rows, unsigned};

/// One keeper at a time; readers and senders go on.
const LOCK: &str = "LOCK TABLE notice IN SHARE ROW EXCLUSIVE MODE";

const INSERT: &str = "INSERT INTO notice (id, kind, subject, tool, since, page, at, seen_at) \
     SELECT f.id, f.kind, f.subject, f.tool, f.since, f.page, now(), now() \
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[]) \
       WITH ORDINALITY AS f (id, kind, subject, tool, since, page, n) \
     WHERE NOT EXISTS (SELECT 1 FROM notice o WHERE o.kind = f.kind AND o.subject = f.subject \
       AND o.gone_at IS NULL) ORDER BY f.n RETURNING id";

const REFRESH: &str = "UPDATE notice o SET seen_at = now() \
     FROM unnest($1::text[], $2::text[]) AS f (kind, subject) \
     WHERE o.kind = f.kind AND o.subject = f.subject AND o.gone_at IS NULL \
       AND o.seen_at <= now() - $3::bigint * interval '1 microsecond'";

const WANT: &str = "INSERT INTO notice_delivery (notice_id, target, next_at, give_up_at) \
     SELECT o.id, f.target, now(), now() + $4::bigint * interval '1 microsecond' \
     FROM unnest($1::text[], $2::text[], $3::text[]) AS f (kind, subject, target) \
     JOIN notice o ON o.kind = f.kind AND o.subject = f.subject AND o.gone_at IS NULL \
     ON CONFLICT DO NOTHING";

const END_GONE: &str = "UPDATE notice o SET gone_at = now() \
     WHERE o.gone_at IS NULL AND o.kind = ANY($1::text[]) \
       AND o.seen_at <= now() - $4::bigint * interval '1 microsecond' \
       AND NOT EXISTS (SELECT 1 FROM unnest($2::text[], $3::text[]) AS f (kind, subject) \
         WHERE f.kind = o.kind AND f.subject = o.subject)";

const REMOVE: &str = "WITH gone AS (DELETE FROM notice o WHERE o.gone_at IS NOT NULL \
       AND o.seq <= (SELECT seq FROM notice ORDER BY seq DESC LIMIT 1 OFFSET $1::bigint) \
       AND NOT EXISTS (SELECT 1 FROM notice_delivery d WHERE d.notice_id = o.id \
         AND d.delivered_at IS NULL AND d.failed_at IS NULL AND d.give_up_at > now()) \
       RETURNING o.id) \
     DELETE FROM notice_delivery d USING gone WHERE d.notice_id = gone.id";

const GIVE_UP: &str = "UPDATE notice_delivery SET failed_at = now() \
     WHERE delivered_at IS NULL AND failed_at IS NULL AND next_at <= now() \
       AND give_up_at <= now() AND attempts > 0";

const TAKE: &str = "WITH due AS MATERIALIZED (SELECT notice_id, target FROM notice_delivery \
       WHERE delivered_at IS NULL AND failed_at IS NULL AND next_at <= now() \
         AND target = ANY($1::text[]) ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED), \
     taken AS (UPDATE notice_delivery d SET attempts = d.attempts + 1, \
         next_at = now() + $3::bigint * interval '1 microsecond' \
       FROM due WHERE d.notice_id = due.notice_id AND d.target = due.target \
       RETURNING d.notice_id, d.target, d.attempts) \
     SELECT n.*, t.target, t.attempts FROM taken t JOIN notice n ON n.id = t.notice_id \
     ORDER BY n.seq";

const DELIVERED: &str = "UPDATE notice_delivery SET delivered_at = now(), failed_at = NULL \
     WHERE notice_id = $1 AND target = $2 AND delivered_at IS NULL";

const FAILED: &str = "UPDATE notice_delivery SET last_error = $5, \
       next_at = now() + $4::bigint * interval '1 microsecond', \
       failed_at = CASE WHEN give_up_at < now() + $4::bigint * interval '1 microsecond' \
         THEN now() END \
     WHERE notice_id = $1 AND target = $2 AND attempts = $3 \
       AND delivered_at IS NULL AND failed_at IS NULL";

const RETRY: &str = "UPDATE notice_delivery SET failed_at = NULL, next_at = now(), \
       give_up_at = now() + $2::bigint * interval '1 microsecond' \
     WHERE target = $1 AND delivered_at IS NULL AND failed_at IS NOT NULL RETURNING 1";

const FAILED_BY_TARGET: &str = "SELECT target, count(*) AS count, min(failed_at) AS since \
     FROM notice_delivery WHERE delivered_at IS NULL AND failed_at IS NOT NULL \
     GROUP BY target ORDER BY target";

impl Outbox for PostgresStore {
    fn keep_notices<'a>(&'a self, look: &'a Look) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        Box::pin(async move { Ok(within(self.patience() * 2, self.keep_look(look)).await?) })
    }

    fn take_deliveries<'a>(
        &'a self,
        targets: &'a [String],
        lease: Duration,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        Box::pin(async move {
            self.run(GIVE_UP, &[]).await?;
            // A lease whose answer is lost is over in its time.
            let params: super::Params<'_> = &[&targets, &rows(limit), &micros(lease)];
            let taken = self.run(TAKE, params).await?;
            let taken = taken.iter().map(delivery);
            Ok(taken.collect::<Result<_, Failure>>()?)
        })
    }

    fn end_delivery<'a>(
        &'a self,
        delivery: &'a DeliveryId,
        end: &'a DeliveryEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let DeliveryId {
                notice_id,
                target,
                attempt,
            } = delivery;
            // Ending an attempt twice is the same as once, so it is retried after a broken connection.
            match end {
                DeliveryEnd::Delivered => self.read(DELIVERED, &[notice_id, target]).await?,
                DeliveryEnd::Failed { retry_after, error } => {
                    let (attempt, wait) = (i64::from(*attempt), micros(*retry_after));
                    self.read(FAILED, &[notice_id, target, &attempt, &wait, error])
                        .await?
                }
            };
            Ok(())
        })
    }

    fn retry_deliveries<'a>(
        &'a self,
        target: &'a str,
        give_up_after: Duration,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(async move {
            let retried = self.run(RETRY, &[&target, &micros(give_up_after)]).await?;
            Ok(retried.len())
        })
    }

    fn notices(&self, limit: usize) -> BoxFuture<'_, Result<Vec<NoticeRow>, Error>> {
        Box::pin(async move { Ok(self.newest(limit).await?) })
    }

    fn failed_deliveries(&self) -> BoxFuture<'_, Result<Vec<FailedDeliveries>, Error>> {
        Box::pin(async move {
            let found = self.read(FAILED_BY_TARGET, &[]).await?;
            let failed = found.iter().map(|row| FailedDeliveries {
                target: row.get("target"),
                count: unsigned(row.get("count")),
                since: row.get("since"),
            });
            Ok(failed.collect())
        })
    }
}

impl PostgresStore {
    async fn keep_look(&self, look: &Look) -> Result<Vec<String>, Failure> {
        let columns = Columns::of(look);
        let (refresh, gone) = (micros(look.refresh_after()), micros(look.gone_after));
        let (give_up, kept) = (micros(look.give_up_after), rows(look.kept_max));
        let complete: Vec<&str> = look.complete.iter().map(|kind| kind.as_str()).collect();
        let Columns {
            ids,
            kinds,
            subjects,
            tools,
            since,
            pages,
            wanted: (kinds_wanted, subjects_wanted, targets),
        } = &columns;
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        transaction.batch_execute(LOCK).await?;
        let new = transaction
            .query(INSERT, &[ids, kinds, subjects, tools, since, pages])
            .await?;
        transaction
            .execute(REFRESH, &[kinds, subjects, &refresh])
            .await?;
        transaction
            .execute(WANT, &[kinds_wanted, subjects_wanted, targets, &give_up])
            .await?;
        transaction
            .execute(END_GONE, &[&complete, kinds, subjects, &gone])
            .await?;
        transaction.execute(REMOVE, &[&kept]).await?;
        transaction.commit().await?;
        Ok(new.iter().map(|row| row.get("id")).collect())
    }

    async fn newest(&self, limit: usize) -> Result<Vec<NoticeRow>, Failure> {
        const NOTICES: &str = "SELECT * FROM notice ORDER BY seq DESC LIMIT $1";
        const DELIVERIES: &str = "SELECT * FROM notice_delivery WHERE notice_id = ANY($1::text[]) \
             ORDER BY notice_id, target";
        let found = self.read(NOTICES, &[&rows(limit)]).await?;
        let ids: Vec<&str> = found.iter().map(|row| row.get("id")).collect();
        let sent = self.read(DELIVERIES, &[&ids]).await?;
        let row = |row: &Row| {
            let notice = notice(row)?;
            let of_notice = |sent: &&Row| sent.get::<_, &str>("notice_id") == notice.id;
            Ok(NoticeRow {
                at: row.get("at"),
                gone_at: row.get("gone_at"),
                deliveries: sent.iter().filter(of_notice).map(delivery_row).collect(),
                notice,
            })
        };
        found.iter().map(row).collect()
    }
}

/// Columns of the findings of a look.
struct Columns<'l> {
    ids: Vec<&'l str>,
    kinds: Vec<&'l str>,
    subjects: Vec<&'l str>,
    tools: Vec<Option<&'l str>>,
    since: Vec<Option<Timestamp>>,
    pages: Vec<&'l str>,
    /// Kinds, subjects and targets.
    wanted: (Vec<&'l str>, Vec<&'l str>, Vec<&'l str>),
}

impl<'l> Columns<'l> {
    fn of(look: &'l Look) -> Self {
        let notices = || look.findings.iter().map(|finding| &finding.notice);
        let mut wanted = (Vec::new(), Vec::new(), Vec::new());
        for finding in &look.findings {
            for target in &finding.targets {
                wanted.0.push(finding.notice.kind.as_str());
                wanted.1.push(finding.notice.subject.as_str());
                wanted.2.push(target.as_str());
            }
        }
        Self {
            ids: notices().map(|notice| notice.id.as_str()).collect(),
            kinds: notices().map(|notice| notice.kind.as_str()).collect(),
            subjects: notices().map(|notice| notice.subject.as_str()).collect(),
            tools: notices()
                .map(|notice| notice.tool.as_ref().map(ToolName::as_str))
                .collect(),
            since: notices().map(|notice| notice.since).collect(),
            pages: notices().map(|notice| notice.page.as_str()).collect(),
            wanted,
        }
    }
}

fn notice(row: &Row) -> Result<Notice, Failure> {
    let kind: &str = row.get("kind");
    let tool: Option<&str> = row.get("tool");
    let tool = tool.map(str::parse).transpose();
    Ok(Notice {
        id: row.get("id"),
        kind: kind
            .parse()
            .map_err(|_| Failure::damaged("the kind of a notice"))?,
        subject: row.get("subject"),
        tool: tool.map_err(|_| Failure::damaged("the tool of a notice"))?,
        since: row.get("since"),
        page: row.get("page"),
    })
}

fn delivery(row: &Row) -> Result<Delivery, Failure> {
    let notice = notice(row)?;
    Ok(Delivery {
        id: DeliveryId {
            notice_id: notice.id.clone(),
            target: row.get("target"),
            attempt: attempts(row),
        },
        notice,
        at: row.get("at"),
    })
}

fn delivery_row(row: &Row) -> DeliveryRow {
    DeliveryRow {
        target: row.get("target"),
        attempts: attempts(row),
        next_at: row.get("next_at"),
        delivered_at: row.get("delivered_at"),
        failed_at: row.get("failed_at"),
        last_error: row.get("last_error"),
    }
}

fn attempts(row: &Row) -> u32 {
    u32::try_from(row.get::<_, i64>("attempts")).unwrap_or(u32::MAX)
}
