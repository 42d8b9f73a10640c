//! `/policy`: who may call what, as the policy in force says it; `/policy/explain`: which line decided a call;
//! `/policy/report`: what rules that are only observed would have done.

use askama::Template;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::approvals::Because;
use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;

mod review;

use review::{Applied, NamedRow, Review, RuleRow, ToolRow};

#[derive(Template, Serialize)]
#[template(path = "policy.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    review: Review,
    #[serde(skip)]
    tools: Vec<ToolRow>,
    #[serde(skip)]
    over_all: Vec<Applied>,
    #[serde(skip)]
    rules: Vec<RuleRow>,
    #[serde(skip)]
    agents: Vec<NamedRow>,
    #[serde(skip)]
    scopes: Vec<NamedRow>,
    /// The file, as it was written; empty where there is none.
    text: String,
}

/// The policy as the API shows it.
#[derive(Deserialize)]
struct Shown {
    review: Review,
    text: String,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let Shown { review, text } = visit.get_as_operator("/v1/policy").await?;
    let w = visit.words;
    let page = Page {
        frame: visit.frame(w.policy, "policy").await,
        tools: review.tools(w),
        over_all: review.over_all(w),
        rules: review.rules(w),
        agents: review.agents(w),
        scopes: review.scopes(),
        text,
        review,
    };
    answer::page(&visit, &page)
}

#[derive(Template, Serialize)]
#[template(path = "policy_report.html")]
struct Report {
    #[serde(skip)]
    frame: Frame,
    #[serde(flatten)]
    reported: Reported,
    /// Number of days that the report covers.
    days: u16,
    /// True if enforced rules are counted, too.
    all: bool,
    #[serde(skip)]
    rows: Vec<ReportRow>,
    #[serde(skip)]
    periods: [u16; 3],
}

/// The report as the API gives it.
#[derive(Deserialize, Serialize)]
struct Reported {
    since: String,
    calls: u64,
    is_complete: bool,
    rules: Vec<RuleCount>,
}

#[derive(Deserialize, Serialize)]
struct RuleCount {
    rule: String,
    then: String,
    enforced: bool,
    calls: u64,
    tools: Vec<String>,
    users: u64,
    newest: String,
    newest_evidence: String,
}

struct ReportRow {
    rule: String,
    says: &'static str,
    tone: &'static str,
    enforced: bool,
    calls: u64,
    users: u64,
    tools: String,
    newest: String,
    evidence: String,
}

/// Periods that the page offers, in days.
const PERIODS: [u16; 3] = [1, 7, 30];

/// Shows the decisions of rules in observe mode.
pub(crate) async fn report(visit: Visit) -> Result<Response, Stop> {
    let asked = visit.asked("days").and_then(|days| days.parse().ok());
    let days = PERIODS.into_iter().find(|days| asked == Some(*days));
    let days = days.unwrap_or(7);
    let all = visit.asked("all") == Some("true");
    let now = visit.console.gateway.executor().now();
    let since = now.checked_sub(SignedDuration::from_hours(24 * i64::from(days)));
    let since = since.unwrap_or(Timestamp::UNIX_EPOCH);
    let path = format!("/v1/policy/report?since={since}&all={all}");
    let reported: Reported = visit.get_as_operator(&path).await?;
    let w = visit.words;
    let rows = reported.rules.iter().map(|rule| {
        let (says, tone) = match rule.then.as_str() {
            "confirm" => (w.ruled_confirm, "warn"),
            "four_eyes" => (w.ruled_four_eyes, "warn"),
            "failed" => (w.ruled_failed, "bad"),
            _ => (w.ruled_deny, "bad"),
        };
        ReportRow {
            rule: rule.rule.clone(),
            says,
            tone,
            enforced: rule.enforced,
            calls: rule.calls,
            users: rule.users,
            tools: rule.tools.join(", "),
            newest: shown::moment(&rule.newest),
            evidence: rule.newest_evidence.clone(),
        }
    });
    let page = Report {
        frame: visit.frame(w.policy_report, "policy").await,
        rows: rows.collect(),
        periods: PERIODS,
        days,
        all,
        reported,
    };
    answer::page(&visit, &page)
}

#[derive(Template, Serialize)]
#[template(path = "explain.html")]
struct Why {
    #[serde(skip)]
    frame: Frame,
    #[serde(flatten)]
    explained: Explained,
    #[serde(skip)]
    decided: &'static str,
    #[serde(skip)]
    tone: &'static str,
}

/// A decision about a call as the API explains it.
#[derive(Deserialize, Serialize)]
struct Explained {
    record: String,
    policy: String,
    tool: String,
    decision: String,
    is_policy_kept: bool,
    because: Vec<Because>,
    /// The entry that decided, as it stands in the file. Shown to operators, while that policy is kept.
    excerpt: Vec<Line>,
}

/// A line of the policy file.
#[derive(Deserialize, Serialize)]
struct Line {
    line: usize,
    text: String,
}

/// Shows the line of the policy that decided a call.
pub(crate) async fn explain(visit: Visit) -> Result<Response, Stop> {
    let record = visit.asked("record").unwrap_or_default();
    let path = format!("/v1/policy/explain?record={}", segment(record));
    let explained: Explained = visit.get(&path).await?;
    let w = visit.words;
    let (decided, tone) = match explained.decision.as_str() {
        "allow" => (w.ruled_allow, "ok"),
        "confirm" => (w.ruled_confirm, "warn"),
        "four_eyes" => (w.ruled_four_eyes, "warn"),
        _ => (w.ruled_deny, "bad"),
    };
    let page = Why {
        frame: visit.frame(w.why_decided, "policy").await,
        explained,
        decided,
        tone,
    };
    answer::page(&visit, &page)
}
