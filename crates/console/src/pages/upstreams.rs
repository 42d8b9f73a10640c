//! `/upstreams`: the servers behind this one.

use askama::Template;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;

use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;

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
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let status = visit.status().await;
    let frame = visit.framed(visit.words.upstreams, "upstreams", &status);
    let Some(server) = &status.server else {
        return Err(Stop::forbidden(&visit));
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
        }
    });
    let page = Page {
        upstreams: upstreams.collect(),
        config: server.get("config").cloned().unwrap_or_default(),
        frame,
    };
    answer::page(&visit, &page)
}
