//! `/policy`: who may call what, as the policy in force says it.

use askama::Template;
use axum::response::Response;
use countersign::contract::ToolSpec;
use countersign_gateway::policy::Review;
use serde::Serialize;

use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;

#[derive(Template, Serialize)]
#[template(path = "policy.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    review: Review,
    #[serde(skip)]
    tools: Vec<Row>,
    #[serde(skip)]
    warnings: Vec<String>,
    /// The file, as it was written; empty where there is none.
    text: String,
}

struct Row {
    name: String,
    effect: &'static str,
    callable: bool,
    confirmed: bool,
    needs: String,
    agents: String,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let frame = visit.frame(visit.words.policy, "policy").await;
    if !frame.is_operator {
        return Err(Stop::forbidden(&visit));
    }
    let gateway = &visit.console.gateway;
    let entries = gateway.executor().catalog().list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    let policy = gateway.identity().policy().current();
    let review = policy.review(&specs);
    let any_of = |needs: &[Vec<String>]| {
        let each = needs.iter().map(|one_of| one_of.join(" | "));
        each.collect::<Vec<_>>().join(", ")
    };
    let tools = review.tools.iter().map(|tool| Row {
        name: tool.name.clone(),
        effect: tool.effect,
        callable: tool.callable,
        confirmed: tool.confirmed,
        needs: any_of(&tool.needs),
        agents: tool.agents.join(", "),
    });
    let page = Page {
        tools: tools.collect(),
        warnings: review
            .warnings
            .iter()
            .map(|warning| warning.message.clone())
            .collect(),
        text: policy.text().to_owned(),
        review,
        frame,
    };
    answer::page(&visit, &page)
}
