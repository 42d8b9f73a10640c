//! `/sessions/{id}`: the calls of one session as a tree and on one line of time, while it runs and after.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use countersign::contract::record::PhaseTimes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::named;
use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown::{self, Decision};
use crate::words::Words;

/// Deepest indentation of the tree.
const DEPTH_MAX: usize = 6;

/// Width of the line of time, in the units of its box.
const WIDTH: u64 = 1_000;

/// Least width of a call on it.
const LEAST: u64 = 14;

/// A session as the API shows it.
#[derive(Deserialize, Serialize)]
struct Strand {
    session: String,
    calls: Vec<Call>,
    is_cut: bool,
    known_since: String,
}

#[derive(Deserialize, Serialize)]
struct Call {
    at: String,
    user_id: String,
    tool: Option<String>,
    code: String,
    dry_run: bool,
    evidence: String,
    request_id: Option<String>,
    phases: PhaseTimes,
    rests_on: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
}

impl Call {
    /// Begin and duration of waiting for a person, if people notice it.
    fn waited(&self) -> Option<(u64, u64)> {
        if let Some(decision) = &self.decision {
            let began = u64::try_from(decision.asked_at.as_microsecond());
            return Some((began.unwrap_or_default(), decision.took_us()));
        }
        let us = shown::noticed(self.phases.awaiting_approval_us)?;
        Some((self.began_us(), us))
    }

    fn took_us(&self) -> u64 {
        let PhaseTimes {
            queued_us,
            awaiting_approval_us,
            executing_us,
            settling_us,
        } = self.phases;
        queued_us + awaiting_approval_us + executing_us + settling_us
    }

    fn began_us(&self) -> u64 {
        let at = self.at.parse::<Timestamp>().unwrap_or_default();
        u64::try_from(at.as_microsecond()).unwrap_or_default()
    }
}

#[derive(Template, Serialize)]
#[template(path = "session.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    #[serde(flatten)]
    session: Strand,
    #[serde(skip)]
    rows: Vec<Row>,
    #[serde(skip)]
    sums: Sums,
    #[serde(skip)]
    since_text: String,
}

#[derive(Template)]
#[template(path = "session_rows.html")]
struct Rows<'p> {
    w: &'static Words,
    rows: &'p [Row],
}

/// A call in the order of the tree.
struct Row {
    depth: usize,
    tool: String,
    code: String,
    tone: &'static str,
    dry_run: bool,
    evidence: String,
    at: String,
    moment: String,
    after: String,
    took: String,
    waited: String,
    x: u64,
    width: u64,
    waited_x: u64,
    waited_width: u64,
}

/// The session in figures.
struct Sums {
    calls: String,
    errors: usize,
    user: String,
    began: String,
    lasted: String,
}

/// Maximum number of calls on the page, which stays below 100 KB with them.
const SHOWN_MAX: usize = 150;

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response, Stop> {
    let path = format!("/v1/sessions/{}?limit={SHOWN_MAX}", segment(named(&id)));
    let session: Strand = visit.get(&path).await?;
    let rows = rows(&session.calls);
    if visit.asked("part") == Some("rows") {
        let w = visit.words;
        return answer::html(&Rows { w, rows: &rows });
    }
    let since = shown::moment(&session.known_since);
    let page = Page {
        since_text: visit.words.session_note.replace("{}", &since),
        frame: visit.frame(visit.words.session, "calls").await,
        sums: sums(&session.calls),
        session,
        rows,
    };
    answer::page(&visit, &page)
}

fn span_of(calls: &[Call]) -> (u64, u64) {
    let began = calls.iter().map(Call::began_us).min().unwrap_or_default();
    let ended = calls.iter().map(|call| call.began_us() + call.took_us());
    (began, ended.max().unwrap_or(began))
}

fn sums(calls: &[Call]) -> Sums {
    let (began, ended) = span_of(calls);
    let is_error = |call: &&Call| call.code != "OK" && call.code != "NEEDS_USER_CONFIRMATION";
    let first = calls.first();
    Sums {
        calls: shown::number(calls.len() as u64),
        errors: calls.iter().filter(is_error).count(),
        user: first.map(|call| call.user_id.clone()).unwrap_or_default(),
        began: first
            .map(|call| shown::moment(&call.at))
            .unwrap_or_default(),
        lasted: shown::took(ended - began),
    }
}

/// The calls as a tree: a call stands below the first call of the session that it rests on, and else at the edge.
fn rows(calls: &[Call]) -> Vec<Row> {
    let places: BTreeMap<&str, usize> = calls
        .iter()
        .enumerate()
        .map(|(at, call)| (call.evidence.as_str(), at))
        .collect();
    let parent = |at: usize, call: &Call| {
        let mut above = call.rests_on.iter();
        above.find_map(|id| places.get(id.as_str()).copied().filter(|above| *above < at))
    };
    let mut below: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        below.entry(parent(at, call)).or_default().push(at);
    }
    let span = span_of(calls);
    let mut rows = Vec::new();
    // Newest last; a stack holds them the other way round.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let push = |open: &mut Vec<(usize, usize)>, above: Option<usize>, depth: usize| {
        let children = below.get(&above).into_iter().flatten().rev();
        open.extend(children.map(|at| (*at, depth)));
    };
    push(&mut open, None, 0);
    while let Some((at, depth)) = open.pop() {
        if let Some(call) = calls.get(at) {
            rows.push(row(call, depth.min(DEPTH_MAX), span));
        }
        push(&mut open, Some(at), depth + 1);
    }
    rows
}

fn row(call: &Call, depth: usize, (began, ended): (u64, u64)) -> Row {
    let whole = (ended - began).max(1);
    let part = |us: u64| us.saturating_mul(WIDTH) / whole;
    let width = part(call.took_us()).clamp(LEAST, WIDTH);
    let after = call.began_us() - began;
    let waited = call.waited();
    let waited_width = waited.map_or(0, |(_, us)| part(us).clamp(LEAST, WIDTH));
    let waited_x = waited.map_or(0, |(at, _)| part(at.saturating_sub(began)));
    Row {
        depth,
        tool: call.tool.clone().unwrap_or_else(|| "?".to_owned()),
        tone: match call.code.as_str() {
            "OK" => "ok",
            "NEEDS_USER_CONFIRMATION" => "warn",
            _ => "bad",
        },
        code: call.code.clone(),
        dry_run: call.dry_run,
        evidence: call.evidence.clone(),
        moment: shown::moment(&call.at),
        at: call.at.clone(),
        after: format!("+{}", shown::took(after)),
        took: shown::took(call.took_us()),
        waited: waited.map(|(_, us)| shown::took(us)).unwrap_or_default(),
        x: part(after).min(WIDTH - width),
        width,
        waited_x: waited_x.min(WIDTH - waited_width),
        waited_width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(evidence: &str, second: u64, took_us: u64, rests_on: &[&str]) -> Call {
        Call {
            at: format!("2026-11-17T12:00:{second:02}Z"),
            user_id: "ann".to_owned(),
            tool: Some(evidence.to_owned()),
            code: "OK".to_owned(),
            dry_run: false,
            evidence: evidence.to_owned(),
            request_id: None,
            phases: PhaseTimes {
                executing_us: took_us,
                ..PhaseTimes::default()
            },
            rests_on: rests_on.iter().map(ToString::to_string).collect(),
            decision: None,
        }
    }

    /// A call stands below what it rests on; nothing is lost, also where records rest on each other or on others.
    #[test]
    fn calls_make_a_tree() {
        let calls = [
            call("search", 0, 1_000, &[]),
            call("quote", 1, 1_000, &["search"]),
            call("note", 2, 1_000, &["elsewhere"]),
            call("order", 3, 7_000_000, &["quote"]),
            call("odd", 4, 0, &["odd"]),
        ];
        let rows = rows(&calls);
        let tree: Vec<_> = rows
            .iter()
            .map(|row| (row.tool.as_str(), row.depth))
            .collect();
        let expected = [
            ("search", 0),
            ("quote", 1),
            ("order", 2),
            ("note", 0),
            ("odd", 0),
        ];
        assert_eq!(tree, expected);
        for row in &rows {
            assert!(row.x + row.width <= WIDTH, "{}", row.tool);
            assert!(row.width >= LEAST);
        }
        assert_eq!((rows[2].x, rows[2].width), (300, 700));
        assert_eq!(sums(&calls).lasted, "10.0\u{a0}s");
    }
}
