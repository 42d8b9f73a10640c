//! `GET /v1/policy`: who may call what, as the policy in force says it; `GET /v1/policy/explain`: which line of which policy decided
//! a recorded call; `GET /v1/policy/report`: what rules did, and what observed ones would have done.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::archive;
use countersign::contract::{ErrorCode, SnapshotId};
use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::answer::{self, Refusal};
use super::query::{self, Options};
use super::{headers, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::policy::{Explanation, Review, RuleReport};

#[derive(Serialize)]
struct Shown<'p> {
    review: Review,
    /// The file as it was written; empty if there is none.
    text: &'p str,
}

/// Shows the policy, for callers who may see what operators see.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    sight::operators_only(&caller)?;
    let policy = gateway.identity().policy().current();
    let review = policy.review_catalog(gateway.executor().catalog());
    Ok(answer::json(&Shown {
        review: review.told_in(headers::reader(&headers)),
        text: policy.text(),
    }))
}

/// A decision about a recorded call, and the record that it is read from.
#[derive(Serialize)]
struct Explained {
    record: SnapshotId,
    /// True if the policy that the record names is still stored, so that lines of its file can be named.
    is_policy_kept: bool,
    #[serde(flatten)]
    explanation: Explanation,
}

/// `GET /v1/policy/explain?record=ID`: explains a call that the caller may see. What only the file says is for callers who may see what
/// operators see; others learn what their record and the declaration of the tool say.
pub(super) async fn explain(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["record"])?;
    let name = options.get("record").ok_or_else(|| {
        Refusal::new(ErrorCode::InvalidArgument, "record is missing")
            .field("/record")
            .hint("send ?record= with the id of a record, as GET /v1/calls lists them")
    })?;
    let id = sight::find(&gateway, &caller.principal, name).await?;
    let shown = gateway.archive().show(&id).await?;
    let record = &shown.record;
    if record.reply.is_none() {
        let message = "this record has no answer, so no policy decided it";
        return Err(Refusal::new(ErrorCode::InvalidArgument, message)
            .field("/record")
            .hint("name the record of a call"));
    }
    let revision = record.policy_revision.clone().unwrap_or_default();
    let live = gateway.identity().policy().clone();
    let kept = tokio::task::spawn_blocking(move || live.of_revision(&revision)).await;
    let policy = kept.ok().flatten();
    let tool = record.tool.as_ref();
    let entry = tool.and_then(|tool| gateway.executor().catalog().get(&tool.name));
    let spec = entry.as_ref().map(|entry| entry.spec());
    let user_id = &shown.row.user_id;
    let known = policy.as_deref().filter(|_| sight::is_operator(&caller));
    let explanation = Explanation::of_record(record, user_id, known, spec);
    Ok(answer::json(&Explained {
        record: id,
        is_policy_kept: policy.is_some(),
        explanation,
    }))
}

/// Period of a report, if none is asked for.
const REPORT_PERIOD: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Maximum number of calls that a report looks at.
const REPORT_CALLS_MAX: usize = 5_000;

/// What rules did since a time.
#[derive(Serialize)]
struct Reported {
    since: Timestamp,
    #[serde(flatten)]
    report: RuleReport,
}

/// `GET /v1/policy/report`: counts the calls for which observed rules held, with `all=true` also those of enforced ones; for callers
/// who may see what operators see.
pub(super) async fn report(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["since", "all"])?;
    sight::operators_only(&caller)?;
    let all = options.parsed("all", "true or false")?.unwrap_or(false);
    let executor = gateway.executor();
    let since = options.time("since", executor.now())?;
    let since = match since {
        Some(since) => since,
        None => executor
            .now()
            .checked_sub(REPORT_PERIOD)
            .map_err(|_| query::wrong("since", "a time after 1970"))?,
    };
    let report = RuleReport::of(&**executor.store(), since, REPORT_CALLS_MAX, all).await;
    let report = report.map_err(archive::Error::from)?;
    Ok(answer::json(&Reported { since, report }))
}
