//! `/`: what needs a person, what is wrong, and how it goes.

use askama::Template;
use axum::response::Response;
use countersign_gateway::pulse::{Figures, Minute};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::calls::CallRow;
use super::upstreams::{self, UpstreamNow};
use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;
use crate::words::Words;

mod chart;
mod needs;

use chart::{Counts, Times};
use needs::{Attention, Need};

/// Minutes in the charts.
const CHARTED: i64 = 60;

/// Maximum number of listed calls and tools.
const LISTED: usize = 8;

#[derive(Template, Serialize)]
#[template(path = "overview.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    attention: Attention,
    #[serde(skip)]
    needs: Vec<Need>,
    approvals_waiting: usize,
    calls_in_doubt: u64,
    log: Log,
    /// Figures; operators only.
    figures: Option<Figures>,
    /// Upstreams; operators only.
    upstreams: Vec<UpstreamNow>,
    /// Time since which the figures are counted.
    counted_since: String,
    #[serde(skip)]
    since_text: String,
    #[serde(skip)]
    chart: Counts,
    #[serde(skip)]
    times: Times,
    #[serde(skip)]
    totals: Totals,
    #[serde(skip)]
    tools: Vec<ToolRow>,
    calls: Vec<CallRow>,
}

/// The signed log.
#[derive(Serialize)]
pub(super) struct Log {
    is_signed: bool,
    /// Number of records under the newest signature.
    signed: u64,
    #[serde(skip)]
    signed_text: String,
    /// Number of records that wait for one; there for operators.
    unsigned: u64,
    #[serde(skip)]
    waits: String,
    /// The last verification of the whole log since the server began.
    pub(super) verified: Option<Verified>,
    #[serde(skip)]
    pub(super) verified_text: String,
    age_seconds: u64,
}

/// A verification of the whole log, as the API tells it.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Verified {
    size: u64,
    at: String,
    is_valid: bool,
    with_records: bool,
}

impl Log {
    pub(super) fn of(signing: &Value, w: &Words) -> Self {
        let number = |name: &str| signing.get(name).and_then(Value::as_u64);
        let (signed, unsigned) = (number("checkpoint_size"), number("unsigned_records"));
        let (signed, unsigned) = (signed.unwrap_or_default(), unsigned.unwrap_or_default());
        let verified = signing.get("verified").cloned();
        let verified: Option<Verified> =
            verified.and_then(|verified| serde_json::from_value(verified).ok());
        let verified_text = verified.as_ref().map(|verified| {
            let form = if verified.is_valid {
                w.log_verified
            } else {
                w.log_faulty
            };
            form.replace("{size}", &shown::number(verified.size))
                .replace("{at}", &shown::moment(&verified.at))
        });
        Self {
            is_signed: signing.get("is_running") == Some(&Value::Bool(true)),
            signed,
            signed_text: shown::number(signed),
            unsigned,
            waits: w.log_waits.replace("{}", &shown::number(unsigned)),
            verified,
            verified_text: verified_text.unwrap_or_default(),
            age_seconds: number("checkpoint_age_seconds").unwrap_or_default(),
        }
    }

    /// True if a verification found something wrong.
    pub(super) fn is_faulty(&self) -> bool {
        self.verified.as_ref().is_some_and(|one| !one.is_valid)
    }
}

/// The last hour.
#[derive(Default)]
struct Totals {
    calls: String,
    errors: String,
    error_share: String,
    questions: String,
    repaired: String,
    repaired_share: String,
    has_errors: bool,
}

/// A tool with its figures.
struct ToolRow {
    name: String,
    calls: String,
    errors: String,
    has_errors: bool,
    p50: String,
    p99: String,
}

impl Page {
    /// True if nothing is wrong and nothing waits.
    fn is_quiet(&self) -> bool {
        self.needs.is_empty()
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let status = visit.status().await;
    let frame = visit.framed(visit.words.overview, "overview", &status);
    let calls = visit.calls(&[], LISTED).await?.calls;
    let gateway = &visit.console.gateway;
    let now_at = gateway.executor().now();
    // Figures are about everybody, so they are for those who see everybody.
    let figures = frame.is_operator.then(|| gateway.pulse().figures(now_at));
    let now = now_at.as_second().div_euclid(60);
    let last = figures.as_ref().map(|figures| hour(&figures.minutes, now));
    let last = last.unwrap_or_default();
    let w = visit.words;
    let since = gateway.counted_since().to_string();
    let attention = Attention::ask(&visit, &status).await;
    let upstreams = upstreams::all(&status, now_at, w);
    let page = Page {
        approvals_waiting: frame.waiting,
        calls_in_doubt: frame.in_doubt,
        needs: attention.needs(&frame, &upstreams, now_at, w),
        attention,
        log: Log::of(&status.signing, w),
        upstreams,
        since_text: w.counted_since.replace("{}", &shown::moment(&since)),
        counted_since: since,
        chart: chart::counts(&last, w.calls, w.with_error),
        times: chart::times(&last, w.p50, w.p99),
        totals: totals(&last),
        tools: figures.iter().flat_map(tool_rows).take(LISTED).collect(),
        figures,
        calls,
        frame,
    };
    answer::page(&visit, &page)
}

/// Every minute of the last hour, also those without a call.
fn hour(minutes: &[Minute], now: i64) -> Vec<Minute> {
    let from = now - CHARTED + 1;
    let of = |minute| minutes.iter().find(|known| known.minute == minute).cloned();
    (from..=now)
        .map(|minute| {
            of(minute).unwrap_or(Minute {
                minute,
                ..Minute::default()
            })
        })
        .collect()
}

fn totals(minutes: &[Minute]) -> Totals {
    let sum = |of: fn(&Minute) -> u64| minutes.iter().map(of).sum::<u64>();
    let (calls, errors) = (sum(|minute| minute.calls), sum(|minute| minute.errors));
    let repaired = sum(|minute| minute.repaired);
    Totals {
        calls: shown::number(calls),
        errors: shown::number(errors),
        error_share: shown::share(errors, calls),
        questions: shown::number(sum(|minute| minute.questions)),
        repaired: shown::number(repaired),
        repaired_share: shown::share(repaired, calls),
        has_errors: errors > 0,
    }
}

fn tool_rows(figures: &Figures) -> Vec<ToolRow> {
    let row = |tool: &countersign_gateway::pulse::ToolFigures| ToolRow {
        name: tool.tool.clone(),
        calls: shown::number(tool.calls),
        errors: shown::share(tool.errors, tool.calls),
        has_errors: tool.errors > 0,
        p50: shown::took(tool.p50_us),
        p99: shown::took(tool.p99_us),
    };
    figures.tools.iter().map(row).collect()
}
