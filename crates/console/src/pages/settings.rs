//! `/settings`: every setting with its value and its origin.

use std::collections::BTreeMap;

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
    #[serde(skip)]
    file: Option<String>,
}

impl Page {
    /// The origin of a setting. The file is named once, above the table, so only the line stands here.
    fn short<'r>(&self, row: &'r Setting) -> &'r str {
        let line = self.file.as_deref();
        let line = line.and_then(|file| row.origin.strip_prefix(file));
        line.unwrap_or(&row.origin)
    }
}

/// The file that most settings come from.
fn file_of(settings: &[Setting]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for setting in settings {
        let place = setting.origin.rsplit_once(':');
        if let Some((file, line)) = place
            && line.parse::<usize>().is_ok()
        {
            *counts.entry(file).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(file, _)| file.to_owned())
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
    let file = file_of(&visit.console.settings);
    let facts = [
        (w.config_file, file.clone()),
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
        file,
        program: status.program,
        store,
        frame,
    };
    answer::page(&visit, &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_one_that_most_settings_come_from() {
        let of = |origin: &str| Setting {
            key: "k".to_owned(),
            value: "v".to_owned(),
            origin: origin.to_owned(),
        };
        let settings = [
            of("/etc/c.toml:52"),
            of("default"),
            of("/etc/c.toml:7"),
            of("/other.toml:1"),
            of("--listen"),
        ];
        assert_eq!(file_of(&settings).as_deref(), Some("/etc/c.toml"));
        assert_eq!(file_of(&settings[1..2]), None);
    }
}
