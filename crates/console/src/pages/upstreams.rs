//! `/upstreams`: the servers behind this one.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown;

#[derive(Template, Serialize)]
#[template(path = "upstreams.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    upstreams: Vec<Upstream>,
    config: Value,
}

#[derive(Serialize)]
struct Upstream {
    name: String,
    /// Further facts from the API, name and value.
    more: Vec<(String, String)>,
    /// What it said when it was asked a moment ago.
    probe: Option<Probe>,
}

/// An upstream that was asked a moment ago, as the API tells it.
#[derive(Deserialize, Serialize)]
struct Probe {
    is_up: bool,
    said: String,
    took_us: u64,
    listed: Option<usize>,
    approved: Option<usize>,
    pin: Option<String>,
    differences: Vec<String>,
    #[serde(default, skip_serializing)]
    took: String,
}

/// Asks an upstream whether it is there.
pub(crate) async fn test(Path(name): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let path = format!("/v1/upstreams/{}/test", segment(&name));
    let mut probe: Probe = visit.post(&path, &json!({})).await?;
    probe.took = shown::took(probe.took_us);
    page(visit, Some((name, probe))).await
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    page(&visit, None).await
}

async fn page(visit: &Visit, mut asked: Option<(String, Probe)>) -> Result<Response, Stop> {
    let status = visit.status().await;
    let frame = visit.framed(visit.words.upstreams, "upstreams", &status);
    let Some(server) = &status.server else {
        return Err(Stop::forbidden(visit));
    };
    let listed = server.get("upstreams").and_then(Value::as_array);
    let upstreams = listed.into_iter().flatten().map(|one| {
        let members = one.as_object().into_iter().flatten();
        let more = members
            .filter(|(name, _)| *name != "name")
            .map(|(name, value)| {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                (name.replace('_', " "), text)
            });
        Upstream {
            name: one
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            more: more.collect(),
            probe: None,
        }
    });
    let mut upstreams: Vec<Upstream> = upstreams.collect();
    for one in &mut upstreams {
        if let Some((_, probe)) = asked.take_if(|(name, _)| *name == one.name) {
            one.probe = Some(probe);
        }
    }
    let page = Page {
        upstreams,
        config: server.get("config").cloned().unwrap_or_default(),
        frame,
    };
    answer::page(visit, &page)
}
