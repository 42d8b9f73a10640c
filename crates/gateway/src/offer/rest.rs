//! The handle of a cut answer: the record that holds the whole of it, and where the next part begins.
//!
//! Nothing is kept for a handle. The parts come from the sealed payload of the call's own record, so a handle holds for as long as that is kept,
//! through restarts and on every replica, for the very caller who was answered, and until the user is erased.

use std::fmt;
use std::str::FromStr;

use countersign::archive;
use countersign::contract::{
    ErrorBody, ErrorCode, Language, Message as _, ReplyEnvelope, SnapshotId, Warning, canonical,
};
use countersign::dialect::ANSWER_CUT;
use countersign::executor::Reader;
use serde_json::Value;

use super::Offer;
use super::cut::{self, Place, Position, Unit};
use crate::gateway::Gateway;
use crate::http::answer::Refusal;
use crate::words::Say;

/// The smallest and the largest size that a handle may name.
const BYTES: std::ops::RangeInclusive<usize> = 64..=4 << 20;

/// Maximum number of places that a note names.
const NAMED_MAX: usize = 4;

/// Place of the rest of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Handle {
    record: SnapshotId,
    bytes_max: usize,
    at: Position,
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position {
            place,
            from,
            within,
        } = self.at;
        let Self {
            record, bytes_max, ..
        } = self;
        write!(f, "{record}.{bytes_max}.{place}.{from}.{within}")
    }
}

impl FromStr for Handle {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut steps = text.trim().split('.');
        let record = steps.next().ok_or(())?;
        let mut number = || steps.next()?.parse::<usize>().ok();
        let (bytes_max, place, from) = (number(), number(), number());
        let within = number();
        let handle = Self {
            record: SnapshotId::new(record).map_err(|_| ())?,
            bytes_max: bytes_max.filter(|it| BYTES.contains(it)).ok_or(())?,
            at: Position {
                place: place.ok_or(())?,
                from: from.ok_or(())?,
                within: within.ok_or(())?,
            },
        };
        match steps.next() {
            None => Ok(handle),
            Some(_) => Err(()),
        }
    }
}

impl Gateway {
    /// A reply that is no longer than this caller wants answers of this tool to be; `None` if it is short enough already, or could not be
    /// fetched again.
    pub(crate) fn shortened(
        &self,
        offer: &Offer,
        tool: &str,
        reply: &ReplyEnvelope,
        language: Language,
    ) -> Option<ReplyEnvelope> {
        let entry = self.executor().catalog().get(tool)?;
        let bytes_max = offer.result_bytes_max(&entry)?;
        let evidence = reply.evidence.as_ref().filter(|_| reply.ok)?;
        if cut::size_of(&reply.data) <= bytes_max {
            return None;
        }
        // The form in which the record keeps it: a part is cut from that.
        let kept = canonical::to_string(&reply.data).ok()?;
        let kept: Value = serde_json::from_str(&kept).ok()?;
        let cut = cut::cut(&kept, bytes_max)?;
        let handle = Handle {
            record: evidence.snapshot_id.clone(),
            bytes_max,
            at: Position {
                place: 0,
                from: cut.places.first()?.kept,
                within: 0,
            },
        };
        let note = Say::AnswerCut {
            places: places(&cut.places, language),
            handle: handle.to_string(),
        };
        let note = Warning::Remark {
            code: ANSWER_CUT.to_owned(),
            message: note.text(language),
        };
        let ReplyEnvelope {
            request_id,
            ok,
            data: _,
            warnings,
            error,
            ttl_seconds,
            evidence,
            dry_run,
            replayed,
        } = reply;
        Some(ReplyEnvelope {
            request_id: request_id.clone(),
            ok: *ok,
            data: cut.data,
            warnings: std::iter::once(note)
                .chain(warnings.iter().cloned())
                .collect(),
            error: error.clone(),
            ttl_seconds: *ttl_seconds,
            evidence: evidence.clone(),
            dry_run: *dry_run,
            replayed: *replayed,
        })
    }

    /// The next part of an answer that was cut, for the caller who was answered.
    pub(super) async fn fetch_rest(
        &self,
        handle: &str,
        reader: &Reader<'_>,
    ) -> Result<Value, ErrorBody> {
        let unknown = || ErrorBody::new(ErrorCode::NotFound, Say::NoRest).hint(Say::HandleAsGiven);
        let handle: Handle = handle.parse().map_err(|()| unknown())?;
        let failed = |error: archive::Error| match error {
            archive::Error::NoRecord { .. } => unknown(),
            error => Refusal::from(error).body().clone(),
        };
        let answered = self.archive().answered(&handle.record, reader).await;
        let answered = answered.map_err(failed)?;
        let tool = answered.tool().ok_or_else(unknown)?;
        self.executor().admit_reading(reader, tool).await?;
        let whole = self.archive().read_again(&answered, reader).await;
        let gone = || ErrorBody::new(ErrorCode::NotFound, Say::RestGone).hint(Say::CallAgain);
        let whole = whole.map_err(failed)?.ok_or_else(gone)?;
        let whole = whole.value().map_err(|_| gone())?;
        let mut part = cut::part(&whole, handle.bytes_max, handle.at).ok_or_else(unknown)?;
        part.data
            .insert("is_last".to_owned(), part.next.is_none().into());
        if let Some(at) = part.next {
            let next = Handle { at, ..handle };
            part.data
                .insert("next_handle".to_owned(), next.to_string().into());
        }
        Ok(Value::Object(part.data))
    }
}

/// The missing parts, in words.
fn places(places: &[Place], language: Language) -> String {
    let named = places.iter().take(NAMED_MAX).map(|place| {
        let path = match place.path.as_str() {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        let (kept, of) = (place.kept.to_string(), place.of.to_string());
        let say = match place.unit {
            Unit::Items => Say::CutItems { path, kept, of },
            Unit::Members => Say::CutMembers { path, kept, of },
            Unit::Characters => Say::CutCharacters { path, kept, of },
        };
        say.text(language)
    });
    let mut named: Vec<String> = named.collect();
    if places.len() > NAMED_MAX {
        named.push("…".to_owned());
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_was_given() {
        let text = "ev_01jd0000000000000000000000.8000.0.40.0";
        let handle: Handle = text.parse().unwrap();
        assert_eq!((handle.bytes_max, handle.at.from), (8000, 40));
        assert_eq!(handle.to_string(), text);
        for wrong in [
            "",
            "ev_1",
            "ev_01jd0000000000000000000000.8000.0.40",
            "ev_01jd0000000000000000000000.8000.0.40.0.1",
            "ev_01jd0000000000000000000000.1.0.40.0",
            "ev_01jd0000000000000000000000.99999999999.0.40.0",
            "ev_01jd0000000000000000000000.8000.-1.40.0",
        ] {
            assert_eq!(wrong.parse::<Handle>(), Err(()), "{wrong}");
        }
    }
}
