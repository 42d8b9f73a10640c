//! `/upstreams`: the servers behind this one, each as it was when it was asked last.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::frame::{Frame, StatusNow};
use crate::session::{Posted, Visit};
use crate::shown;
use crate::words::Words;

#[derive(Template, Serialize)]
#[template(path = "upstreams.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    upstreams: Vec<UpstreamNow>,
    /// Name of the one that was asked just now.
    asked: Option<String>,
    config: Value,
    #[serde(skip)]
    file: ConfigFile,
}

/// The configuration file in force, as people read it; members that the server does not have are empty.
#[derive(Debug, PartialEq, Eq)]
struct ConfigFile {
    path: String,
    since: String,
    digest: String,
}

impl ConfigFile {
    fn of(config: &Value) -> Self {
        let member = |name: &str| text(config.get(name).filter(|value| !value.is_null()));
        Self {
            path: member("file"),
            since: shown::moment(&member("since")),
            digest: member("digest"),
        }
    }
}

/// An upstream as the API tells it.
#[derive(Deserialize, Serialize)]
pub(crate) struct UpstreamNow {
    pub(crate) name: String,
    pub(crate) health: String,
    asked_at: Option<String>,
    last: Option<Probe>,
    last_error: Option<Failed>,
    #[serde(skip)]
    pub(crate) tone: &'static str,
    #[serde(skip)]
    pub(crate) word: &'static str,
    /// Time of the last question, as people read it.
    #[serde(skip)]
    pub(crate) asked: String,
}

/// A question without an answer.
#[derive(Deserialize, Serialize)]
struct Failed {
    at: String,
    message: String,
    #[serde(skip)]
    when: String,
}

/// Newest answer of an upstream, or the reason for which there is none.
#[derive(Deserialize, Serialize)]
struct Probe {
    is_up: bool,
    said: String,
    took_us: u64,
    listed: Option<usize>,
    approved: Option<usize>,
    pin: Option<String>,
    differences: Vec<String>,
    #[serde(default)]
    changes: Vec<Changed>,
    /// The answer in the reader's language; empty if there is none, and then what was said is why.
    #[serde(skip)]
    listed_text: String,
    #[serde(skip)]
    took: String,
}

/// A place at which the definition of a tool is not the approved one.
#[derive(Deserialize, Serialize)]
struct Changed {
    tool: String,
    path: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl Changed {
    fn before_text(&self) -> String {
        text(self.before.as_ref())
    }

    fn after_text(&self) -> String {
        text(self.after.as_ref())
    }
}

/// A value on one line; a text without its quotes.
fn text(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

impl UpstreamNow {
    fn named(mut self, now: Timestamp, w: &'static Words) -> Self {
        (self.tone, self.word) = match self.health.as_str() {
            "up" => ("ok", w.health_up),
            "away" => ("bad", w.health_away),
            "changed" => ("warn", w.health_changed),
            _ => ("", w.health_unknown),
        };
        let asked = self.asked_at.as_deref();
        let asked = asked.map(|at| shown::distance(at, now, w));
        self.asked = asked.unwrap_or_default();
        if let Some(error) = &mut self.last_error {
            error.when = shown::distance(&error.at, now, w);
        }
        if let Some(last) = &mut self.last {
            last.listed_text = match last.listed {
                Some(count) => w.lists_tools.replace("{}", &shown::number(count as u64)),
                None if last.is_up => w.upstream_up.to_owned(),
                None => String::new(),
            };
            last.took = shown::took(last.took_us);
        }
        self
    }

    pub(crate) fn is_away(&self) -> bool {
        self.health == "away"
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.health == "changed"
    }

    /// Newest answer, or reason for which there is none.
    pub(crate) fn said(&self) -> &str {
        self.last.as_ref().map_or("", |last| last.said.as_str())
    }

    /// Newest failure; empty if there was none.
    pub(crate) fn error(&self) -> &str {
        let error = self.last_error.as_ref();
        error.map_or("", |error| error.message.as_str())
    }
}

/// The upstreams of the status, those that need a person first.
pub(crate) fn all(status: &StatusNow, now: Timestamp, w: &'static Words) -> Vec<UpstreamNow> {
    let listed = status.server.as_ref();
    let listed = listed.and_then(|server| server.get("upstreams")?.as_array());
    let read = |one: &Value| serde_json::from_value::<UpstreamNow>(one.clone()).ok();
    let mut upstreams: Vec<UpstreamNow> = listed
        .into_iter()
        .flatten()
        .filter_map(read)
        .map(|one| one.named(now, w))
        .collect();
    upstreams.sort_by_key(|one| (!one.is_away(), !one.is_changed()));
    upstreams
}

/// Asks an upstream whether it is there.
pub(crate) async fn test(Path(name): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let path = format!("/v1/upstreams/{}/test", segment(&name));
    // What it says is in the status from now on.
    let _: Value = visit.post(&path, &json!({})).await?;
    page(visit, Some(name)).await
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    page(&visit, None).await
}

async fn page(visit: &Visit, asked: Option<String>) -> Result<Response, Stop> {
    let status = visit.status().await;
    let frame = visit.framed(visit.words.upstreams, "upstreams", &status);
    let Some(server) = &status.server else {
        return Err(Stop::forbidden(visit));
    };
    let now = visit.console.gateway.executor().now();
    let config = server.get("config").cloned().unwrap_or_default();
    let page = Page {
        upstreams: all(&status, now, visit.words),
        asked,
        file: ConfigFile::of(&config),
        config,
        frame,
    };
    answer::page(visit, &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts about the file are texts, without the quotes of JSON.
    #[test]
    fn the_file_is_told_without_quotes() {
        let config = json!({"file": "/etc/countersign.toml", "since": "2026-11-17T14:41:07Z", "digest": null});
        let expected = ConfigFile {
            path: "/etc/countersign.toml".to_owned(),
            since: "17 Nov 2026, 14:41:07 UTC".to_owned(),
            digest: String::new(),
        };
        assert_eq!(ConfigFile::of(&config), expected);
        assert_eq!(ConfigFile::of(&Value::Null).path, "");
    }
}
