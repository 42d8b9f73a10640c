//! Many records at once: page by page, a few at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use countersign_contract::RecordKind;
use tokio::task::JoinSet;

use super::{Error, Replayed, Replayer, Report, Target};
use crate::ledger::{LogQuery, LogRow};

/// Options of replaying a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Number of replays that run in parallel; at least one.
    pub parallel: usize,
}

/// Eight at a time.
impl Default for Options {
    fn default() -> Self {
        Self { parallel: 8 }
    }
}

/// Number of rows that are fetched at once.
const PAGE: usize = 256;

impl Replayer {
    /// Replays the calls that a query finds, newest first, all of them: the query's `limit` is the maximum number, 0
    /// for no bound. `each` gets every result as it is done, in no order.
    pub async fn replay_all(
        &self,
        query: LogQuery,
        target: Arc<dyn Target>,
        options: Options,
        mut each: impl FnMut(&Replayed),
    ) -> Result<Report, Error> {
        let mut pages = Pages::new(query);
        let mut running = JoinSet::new();
        let mut report = Report::default();
        loop {
            while running.len() < options.parallel.max(1) {
                let Some(row) = pages.next(self).await? else {
                    break;
                };
                let (replayer, target) = (self.clone(), target.clone());
                running.spawn(async move { replayer.replay(&row.id, &*target).await });
            }
            let Some(done) = running.join_next().await else {
                return Ok(report);
            };
            let replayed = done??;
            each(&replayed);
            report.add(replayed);
        }
    }
}

struct Pages {
    query: LogQuery,
    left: usize,
    rows: VecDeque<LogRow>,
    is_last: bool,
}

impl Pages {
    fn new(mut query: LogQuery) -> Self {
        query.kind = Some(RecordKind::Call);
        let left = match query.limit {
            0 => usize::MAX,
            limit => limit,
        };
        query.limit = PAGE;
        Self {
            query,
            left,
            rows: VecDeque::new(),
            is_last: false,
        }
    }

    async fn next(&mut self, replayer: &Replayer) -> Result<Option<LogRow>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.rows.is_empty() && !self.is_last {
            let rows = replayer.store.records(&self.query).await?;
            self.is_last = rows.len() < PAGE;
            if let Some(oldest) = rows.last() {
                self.query.before = Some((oldest.at, oldest.id.clone()));
            }
            self.rows = rows.into();
        }
        let row = self.rows.pop_front();
        self.left -= usize::from(row.is_some());
        Ok(row)
    }
}
