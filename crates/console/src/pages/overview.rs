//! `/`: what needs a person, what is wrong, and how it goes.

use askama::Template;
use axum::response::Response;
use countersign_gateway::pulse::{Figures, Minute};
use serde::Serialize;
use serde_json::Value;

use super::calls::CallRow;
use crate::answer::{self, Stop};
use crate::frame::{Frame, ProblemNow};
use crate::session::Visit;
use crate::shown;

/// Minutes in the chart.
const CHARTED: i64 = 60;

/// Maximum number of listed calls and tools.
const LISTED: usize = 8;

#[derive(Template, Serialize)]
#[template(path = "overview.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    problems: Vec<ProblemNow>,
    approvals_waiting: usize,
    calls_in_doubt: u64,
    log: Log,
    /// There for operators.
    figures: Option<Figures>,
    #[serde(skip)]
    chart: Chart,
    #[serde(skip)]
    totals: Totals,
    #[serde(skip)]
    tools: Vec<ToolRow>,
    calls: Vec<CallRow>,
}

/// The signed log.
#[derive(Serialize)]
struct Log {
    is_signed: bool,
    records: String,
    age_seconds: u64,
}

/// The last hour.
#[derive(Default)]
struct Totals {
    calls: String,
    errors: String,
    error_share: String,
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

/// The bars of the chart, in the units of its box.
#[derive(Default)]
struct Chart {
    bars: Vec<Bar>,
    lines: Vec<(u64, String)>,
    times: Vec<(usize, String)>,
}

struct Bar {
    x: usize,
    y: u64,
    height: u64,
    errors_y: u64,
    errors_height: u64,
    title: String,
}

/// Positions of the bars, and the height of the highest.
const FOOT: u64 = 150;
const HEIGHT: u64 = 130;
const LEFT: usize = 44;
const STEP: usize = 15;

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let status = visit.status().await;
    let frame = visit.framed(visit.words.overview, "overview", &status);
    let calls = visit.calls(&[], LISTED).await?.calls;
    let gateway = &visit.console.gateway;
    // Figures are about everybody, so they are for those who see everybody.
    let figures = frame.is_operator.then(|| gateway.pulse().figures());
    let now = gateway.executor().now().as_second().div_euclid(60);
    let last = figures.as_ref().map(|figures| hour(&figures.minutes, now));
    let last = last.unwrap_or_default();
    let signing = |name: &str| status.signing.get(name);
    let page = Page {
        approvals_waiting: frame.waiting,
        calls_in_doubt: frame.in_doubt,
        problems: status.problems.clone(),
        log: Log {
            is_signed: signing("is_running") == Some(&Value::Bool(true)),
            records: shown::number(
                signing("checkpoint_size")
                    .and_then(Value::as_u64)
                    .unwrap_or(0),
            ),
            age_seconds: signing("checkpoint_age_seconds")
                .and_then(Value::as_u64)
                .unwrap_or(0),
        },
        chart: chart(&last, visit.words.calls),
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

fn chart(minutes: &[Minute], calls: &str) -> Chart {
    let most = minutes.iter().map(|minute| minute.calls).max().unwrap_or(0);
    if most == 0 {
        return Chart::default();
    }
    let top = round_up(most);
    let high = |count: u64| (count * HEIGHT).div_ceil(top);
    let bars = minutes.iter().enumerate().map(|(at, minute)| {
        let (height, errors_height) = (high(minute.calls), high(minute.errors));
        let time = clock(minute.minute);
        Bar {
            x: LEFT + at * STEP,
            y: FOOT - height,
            height,
            errors_y: FOOT - errors_height,
            errors_height,
            title: format!("{time} · {calls} {} · {}", minute.calls, minute.errors),
        }
    });
    let line = |count: u64| (FOOT - high(count), shown::number(count));
    Chart {
        bars: bars.collect(),
        lines: [0, top / 2, top].map(line).to_vec(),
        times: minutes
            .iter()
            .enumerate()
            .filter(|(_, minute)| minute.minute.rem_euclid(15) == 0)
            .map(|(at, minute)| (LEFT + at * STEP, clock(minute.minute)))
            .collect(),
    }
}

/// An even number with one leading digit that is not below.
fn round_up(count: u64) -> u64 {
    let unit = 10_u64.pow(count.max(1).ilog10());
    let top = count.div_ceil(unit) * unit;
    top + top % 2
}

fn clock(minute: i64) -> String {
    let of_day = minute.rem_euclid(24 * 60);
    format!("{:02}:{:02}", of_day / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_minute_has_a_bar_within_the_box() {
        let minutes = hour(
            &[Minute {
                minute: 1_000,
                calls: 37,
                errors: 5,
                repaired: 1,
            }],
            1_010,
        );
        let chart = chart(&minutes, "calls");
        assert_eq!((minutes.len(), chart.bars.len()), (60, 60));
        assert!(
            chart
                .bars
                .iter()
                .all(|bar| bar.y >= FOOT - HEIGHT && bar.y <= FOOT)
        );
        let highest = chart.bars.iter().max_by_key(|bar| bar.height).unwrap();
        assert_eq!(highest.title, "16:40 · calls 37 · 5");
        assert_eq!(
            (round_up(37), round_up(1), round_up(100), round_up(7)),
            (40, 2, 100, 8)
        );
    }
}
