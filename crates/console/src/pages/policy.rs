//! `/policy`: who may call what, as the policy in force says it.

use askama::Template;
use axum::response::Response;
use countersign_gateway::policy::OTHERS;
use serde::{Deserialize, Serialize};

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
    /// The file, as it was written; empty where there is none.
    text: String,
}

/// The policy as the API shows it.
#[derive(Deserialize)]
struct Shown {
    review: Review,
    text: String,
}

#[derive(Deserialize, Serialize)]
struct Review {
    policy: String,
    tools: Vec<Tool>,
    warnings: Vec<Warning>,
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize, Serialize)]
struct Tool {
    name: String,
    effect: String,
    callable: bool,
    needs: Vec<Vec<String>>,
    confirmed: bool,
    agents: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Warning {
    message: String,
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

struct Row {
    name: String,
    effect: String,
    callable: bool,
    confirmed: bool,
    needs: String,
    agents: String,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let Shown { review, text } = visit.get_as_operator("/v1/policy").await?;
    let any_of = |needs: &[Vec<String>]| {
        let each = needs.iter().map(|one_of| one_of.join(" | "));
        each.collect::<Vec<_>>().join(", ")
    };
    let tools = review.tools.iter().map(|tool| Row {
        name: tool.name.clone(),
        effect: tool.effect.clone(),
        callable: tool.callable,
        confirmed: tool.confirmed,
        needs: any_of(&tool.needs),
        agents: match tool.agents.as_slice() {
            // No entry names an agent, so every agent is one of the others.
            [only] if only == OTHERS => visit.words.any.to_owned(),
            named => named.join(", "),
        },
    });
    let page = Page {
        frame: visit.frame(visit.words.policy, "policy").await,
        tools: tools.collect(),
        text,
        review,
    };
    answer::page(&visit, &page)
}
