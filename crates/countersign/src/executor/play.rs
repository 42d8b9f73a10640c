//! The way of a call that a recording answers: no confirmation, no claim, no run, nothing to commit but the record.

use std::num::NonZeroU32;

use countersign_contract::envelope::Warning;
use serde_json::{Value, json};

use super::Executor;
use super::bind::Bound;
use super::confirm::Confirmed;
use super::run::Done;
use super::settle::Settled;
use super::stop::Stop;
use super::trail::{Trail, micros};
use crate::context::Notes;
use crate::recording::{Answer, FROM_RECORDING, Player};
use crate::tool::{Reply, ToolError};
use crate::words::Say;

impl Executor {
    /// Answers a bound call from the recording.
    pub(super) fn play(
        &self,
        player: &Player,
        bound: Bound,
        trail: &mut Trail,
    ) -> Result<Settled, Stop> {
        // No key is taken, so none stands in the record.
        trail.facts.key = None;
        let entry = bound.allowed.entry.clone();
        let dry_run = bound.allowed.request.dry_run;
        let answered = player.answer(&entry, &bound.arguments, dry_run);
        let Answer {
            order,
            outcome,
            ttl_seconds,
            remarks,
            by_kind,
        } = answered.map_err(|unknown| {
            let nearest = unknown.nearest.as_ref();
            let paths = nearest.into_iter().flat_map(|it| &it.differences);
            let paths: Vec<&str> = paths.map(|it| it.path.as_str()).collect();
            tracing::error!(
                tool = %entry.name(),
                nearest = nearest.map(|it| it.order),
                differences = paths.join(" "),
                "the call is not in the recording, so nothing was run"
            );
            Stop::from(unknown.into_body())
        })?;
        let ended = self.parts.clock.monotonic();
        trail.record.phases.queued_us = micros(ended.saturating_sub(trail.arrived));
        trail.facts.circumstances.ran_at = Some(trail.time_at(ended));
        trail.facts.order = u32::try_from(order).ok().and_then(NonZeroU32::new);
        let issues = bound.issues.iter().cloned().map(Warning::Issue);
        let remarks = remarks.into_iter().map(|remark| Warning::Remark {
            code: remark.code,
            message: remark.message,
        });
        if !by_kind.is_empty() {
            let paths = by_kind.join(", ");
            trail.warn("MATCHED_BY_KIND", &Say::MatchedByKind { paths });
        }
        let done = Done {
            warnings: issues.chain(remarks).collect(),
            notes: Notes::default(),
            answer: match outcome {
                Ok(data) => Ok(Reply {
                    data,
                    ttl_seconds,
                    ..Reply::default()
                }),
                // As it was told then: what it means for a key was decided then.
                Err(body) => Err(ToolError::from(*body).without_effect()),
            },
            ended,
        };
        let confirmed = Confirmed {
            bound,
            approved: None,
            granted: None,
        };
        let (claimed, _) = self.context_of(confirmed, trail);
        let recorded = self.record(done, &claimed, trail);
        Ok(Settled::RecordOnly(Box::new(recorded)))
    }

    /// Member `act` of a record: the recording that answers, and the call in it that did. Null if the tools answer.
    pub(super) fn played_from(&self, order: Option<NonZeroU32>) -> Value {
        let Some(player) = &self.parts.player else {
            return Value::Null;
        };
        let mut act = json!({"event": FROM_RECORDING, "recording": player.digest().to_string()});
        if let (Some(members), Some(order)) = (act.as_object_mut(), order) {
            members.insert("order".to_owned(), order.get().into());
        }
        act
    }
}
