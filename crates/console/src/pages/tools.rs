//! `/tools`: what may be called.

use askama::Template;
use axum::response::Response;
use countersign::contract::ToolSpec;
use countersign::contract::tool::EvidenceRule;
use serde::Serialize;

use super::docs;
use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;

#[derive(Template, Serialize)]
#[template(path = "tools.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    tools: Vec<Row>,
    /// Time since which calls are counted; there for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_since: Option<String>,
    #[serde(skip)]
    since_text: Option<String>,
}

/// A tool of the list.
#[derive(Serialize)]
struct Row {
    name: String,
    title: String,
    description: String,
    #[serde(skip)]
    description_html: String,
    behaviour: Badges,
    calls: u64,
    #[serde(skip)]
    calls_text: String,
    errors: String,
    p99: String,
}

/// The behaviour of a tool in a few words.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Badges {
    pub(crate) effect: &'static str,
    pub(crate) changes: bool,
    pub(crate) confirmed: bool,
    pub(crate) evidence: bool,
    pub(crate) ttl_seconds: Option<u32>,
}

impl Badges {
    pub(crate) fn of(spec: &ToolSpec) -> Self {
        let behaviour = &spec.behaviour;
        Self {
            effect: behaviour.effect.as_str(),
            changes: behaviour.effect.changes_something(),
            confirmed: behaviour.confirmation.is_asked(),
            evidence: behaviour.evidence == EvidenceRule::Required,
            ttl_seconds: behaviour.ttl_seconds,
        }
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let specs: Vec<ToolSpec> = visit.get("/v1/tools").await?;
    let frame = visit.frame(visit.words.tools, "tools").await;
    let gateway = &visit.console.gateway;
    let now = gateway.executor().now();
    let figures = frame.is_operator.then(|| gateway.pulse().figures(now));
    let counted_since = frame
        .is_operator
        .then(|| gateway.counted_since().to_string());
    let figures = figures.unwrap_or_default();
    let row = |spec: ToolSpec| {
        let of = figures
            .tools
            .iter()
            .find(|tool| tool.tool == spec.name.as_str());
        let first = spec.description.lines().next().unwrap_or_default();
        Row {
            behaviour: Badges::of(&spec),
            title: spec.title.clone().unwrap_or_default(),
            description_html: docs::line(first),
            description: first.to_owned(),
            name: spec.name.to_string(),
            calls: of.map_or(0, |of| of.calls),
            calls_text: of.map(|of| shown::number(of.calls)).unwrap_or_default(),
            errors: of
                .map(|of| shown::share(of.errors, of.calls))
                .unwrap_or_default(),
            p99: of.map(|of| shown::took(of.p99_us)).unwrap_or_default(),
        }
    };
    let tools = specs.into_iter().map(row).collect();
    let since = counted_since.as_deref().map(shown::moment);
    let page = Page {
        since_text: since.map(|since| visit.words.counted_since.replace("{}", &since)),
        counted_since,
        frame,
        tools,
    };
    answer::page(&visit, &page)
}
