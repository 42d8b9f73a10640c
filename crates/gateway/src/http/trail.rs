//! `/v1/log/trail`: the signed records in the order of the log, one line of JSON each, for systems that collect events.
//!
//! The answer is a stream: however much is asked for, one page of records is in memory. It ends early if the store fails on the
//! way; what arrived is whole lines, and the index of the last one is where a collector goes on.

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::archive::{Archive, TRAIL_PAGE_MAX, Trail, TrailForm};
use countersign::contract::ErrorCode;
use futures_util::stream;
use http::HeaderValue;

use super::SCOPE_CALLS;
use super::answer::{self, Refusal};
use super::query::Options;
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::words::Say;

/// Default and maximum number of lines of an answer.
const LIMIT: usize = 1_000;
const LIMIT_MAX: usize = 100_000;

/// Returns the signed records behind an index.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["format", "after", "limit", "users"])?;
    if !sight::sees_all(&caller.principal) {
        let message = Say::AllUsersRecords;
        return Err(
            Refusal::new(ErrorCode::Forbidden, message).hint(Say::UseScope {
                scope: SCOPE_CALLS.to_string(),
            }),
        );
    }
    let form = options.one_of("format", TrailForm::ALL, TrailForm::as_str)?;
    let next = Trail {
        after: options.parsed("after", "the index of a record")?,
        limit: options.limit(LIMIT, 1, LIMIT_MAX)?,
        with_users: options.parsed("users", "true or false")?.unwrap_or(false),
    };
    let mut lines = Lines {
        archive: gateway.archive().clone(),
        form: form.unwrap_or(TrailForm::Jsonl),
        next,
        read: String::new(),
    };
    // What fails at once is answered as an error; later there is only the end of the stream.
    lines.fetch().await?;
    let streamed = stream::try_unfold(lines, async |mut lines: Lines| {
        if lines.read.is_empty() {
            let fetched = lines.fetch().await;
            fetched.inspect_err(|error| {
                let error = countersign::redact::error_text(error);
                tracing::error!(error, "the audit trail was cut off");
            })?;
        }
        let page = std::mem::take(&mut lines.read);
        let page = (!page.is_empty()).then(|| Bytes::from(page));
        Ok::<_, countersign::archive::Error>(page.map(|page| (page, lines)))
    });
    let kind = HeaderValue::from_static("application/x-ndjson");
    Ok(answer::typed(Body::from_stream(Box::pin(streamed)), kind))
}

/// The rest of an answer.
struct Lines {
    archive: Archive,
    form: TrailForm,
    next: Trail,
    /// Lines that were read and not sent.
    read: String,
}

impl Lines {
    async fn fetch(&mut self) -> Result<(), countersign::archive::Error> {
        let entries = self.archive.trail(&self.next).await?;
        let Some(last) = entries.last() else {
            return Ok(());
        };
        self.next.after = Some(last.index);
        // A short page is the end of the signed log.
        self.next.limit = if entries.len() < TRAIL_PAGE_MAX {
            0
        } else {
            self.next.limit.saturating_sub(entries.len())
        };
        let origin = self.archive.log_key().name();
        let lines = entries.iter().map(|entry| entry.line(self.form, origin));
        self.read.extend(lines);
        Ok(())
    }
}
