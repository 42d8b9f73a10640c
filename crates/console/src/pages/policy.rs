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

/// Maximum number of lines of an entry that are shown.
const EXCERPT_MAX: usize = 12;

#[derive(Template, Serialize)]
#[template(path = "explain.html")]
struct Why {
    #[serde(skip)]
    frame: Frame,
    #[serde(flatten)]
    explained: Explained,
    /// The entry that decided, as it stands in the file: number and text of each line. Shown to operators, while that policy is in force.
    excerpt: Vec<(usize, String)>,
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
    // Only operators are shown the file; others see the page without it.
    let shown = visit.get::<Shown>("/v1/policy").await.ok();
    let in_force = shown.filter(|shown| shown.review.policy == explained.policy);
    let line = explained.because.first().and_then(|entry| entry.line);
    let excerpt = match (in_force, line) {
        (Some(shown), Some(line)) => excerpt(&shown.text, line),
        (Some(_) | None, _) => Vec::new(),
    };
    let page = Why {
        frame: visit.frame(w.why_decided, "policy").await,
        explained,
        excerpt,
        decided,
        tone,
    };
    answer::page(&visit, &page)
}

/// The entry that begins at a line of a file, up to the next one. Empty if no entry begins there: lines of a policy inside of
/// `countersign.toml` count from the beginning of that file.
fn excerpt(text: &str, line: usize) -> Vec<(usize, String)> {
    let first = text.lines().nth(line.saturating_sub(1));
    if !first.is_some_and(|first| first.trim_start().starts_with('[')) {
        return Vec::new();
    }
    let lines = text.lines().enumerate().skip(line.saturating_sub(1));
    let lines = lines.map(|(at, text)| (at + 1, text.to_owned()));
    let is_in = |(at, text): &(usize, String)| {
        let text = text.trim();
        *at == line || !text.is_empty() && !text.starts_with('[')
    };
    lines.take_while(is_in).take(EXCERPT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_ends_with_its_entry() {
        let text = "a = 1\n\n[[rules]]\nname = \"x\"\nthen = \"deny\"\n[[rules]]\nname = \"y\"\n";
        let lines = |line| {
            let found = excerpt(text, line).into_iter();
            found.map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(
            (lines(3), lines(6), lines(9)),
            (vec![3, 4, 5], vec![6, 7], vec![])
        );
    }
}
