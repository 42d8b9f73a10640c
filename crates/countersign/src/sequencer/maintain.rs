//! Maintenance: lost owners are given up, the clock is looked at, and what is past its time is removed.

use std::sync::Arc;

use countersign_contract::RecordKind;
use serde_json::{Value, json};

use super::{Error, Maintained, Sequencer, entry};
use crate::ledger::{Disposed, Passage, Removed, Swept, Told};

/// Maximum number of rows of a kind that one step of a sweep changes.
const SWEPT_MAX: usize = 256;

/// Maximum number of rows of a kind that one step removes; each step has a record.
const DISPOSED_MAX: usize = 1_024;

impl Sequencer {
    /// Does what time alone requires, a few rows at a time: gives up lost owners, looks at the clock, and removes what
    /// is past its time. Nothing is removed while the clock disagrees with the latest time that was believed.
    pub async fn maintain(&self) -> Result<Maintained, Error> {
        let swept = self.sweep().await?;
        self.observe_time().await?;
        let store = &self.parts.store;
        let disposal = store.dispose(DISPOSED_MAX, self.told(disposed)).await?;
        Ok(Maintained { swept, disposal })
    }

    pub(super) async fn sweep(&self) -> Result<Swept, Error> {
        Ok(self.parts.store.sweep(SWEPT_MAX).await?)
    }

    pub(super) async fn observe_time(&self) -> Result<Passage, Error> {
        Ok(self.parts.store.observe_time(self.told(observed)).await?)
    }

    /// Makes the record of what the store does.
    fn told<T: 'static>(&self, about: fn(&T) -> Value) -> Told<T> {
        let (clock, ids) = (self.parts.clock.clone(), self.parts.ids.clone());
        Arc::new(move |done: &T| entry(&*clock, &*ids, RecordKind::Config, about(done)))
    }
}

fn observed(passage: &Passage) -> Value {
    let (mark, clock) = (passage.mark.to_string(), passage.clock.to_string());
    match passage.jump() {
        Some(jump) => json!({
            "event": "clock_jumped",
            "direction": jump.as_str(),
            "believed": mark,
            "clock": clock,
        }),
        None => json!({"event": "clock_agrees", "believed": mark, "clock": clock}),
    }
}

fn disposed(removed: &Removed) -> Value {
    let Disposed {
        payloads,
        replies,
        pots,
    } = removed.counts;
    let mut about =
        json!({"event": "disposed", "payloads": payloads, "replies": replies, "pots": pots});
    if let Some(members) = about.as_object_mut().filter(|_| payloads > 0) {
        members.insert("records".to_owned(), removed.payloads.to_string().into());
    }
    about
}
