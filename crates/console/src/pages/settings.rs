//! `/settings`: every setting with its value and its origin.

use askama::Template;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;

use crate::Setting;
use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;

#[derive(Template, Serialize)]
#[template(path = "settings.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    settings: Vec<Setting>,
    program: Value,
    store: Value,
    #[serde(skip)]
    facts: Vec<(&'static str, String)>,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let status = visit.status().await;
    let frame = visit.framed(visit.words.settings, "settings", &status);
    let Some(server) = &status.server else {
        return Err(Stop::forbidden(&visit));
    };
    let w = visit.words;
    let store = server.get("store").cloned().unwrap_or_default();
    let text = |value: &Value, name: &str| {
        let found = value.get(name);
        found.map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        })
    };
    let size = |name: &str| store.get(name).and_then(Value::as_u64).map(shown::bytes);
    let records = store
        .get("records")
        .and_then(Value::as_u64)
        .map(shown::number);
    let since = text(&status.program, "started_at")
        .as_deref()
        .map(shown::moment);
    let facts = [
        (w.fact_version, text(&status.program, "version")),
        (w.fact_started, since),
        (w.fact_build, text(&status.program, "build")),
        (w.fact_store, text(&store, "kind")),
        (w.fact_records, records),
        (w.fact_size, size("bytes")),
        (w.fact_free, size("free_bytes")),
        (w.policy, text(&status.policy, "revision")),
    ];
    let page = Page {
        settings: visit.console.settings.clone(),
        facts: facts
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
        program: status.program,
        store,
        frame,
    };
    answer::page(&visit, &page)
}
