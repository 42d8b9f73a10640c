//! `/calls`: the calls that there were, newest first, and live.

use std::convert::Infallible;
use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use countersign::contract::ErrorCode;
use futures_util::stream;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, watch};
use url::form_urlencoded::Serializer;

use super::keep;
use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;
use crate::words::Words;

/// Calls on one page.
const LISTED: usize = 50;

/// Minimum interval between two looks for new calls.
const PAUSE: Duration = Duration::from_millis(250);

/// Keep-alive interval of the event stream.
const BEAT: Duration = Duration::from_secs(15);

/// Filters of the list, as in the address.
const FILTERS: [&str; 5] = ["tool", "code", "user", "since", "until"];

/// A call as the API lists it.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct CallRow {
    pub(crate) at: String,
    pub(crate) user_id: String,
    pub(crate) tool: Option<String>,
    pub(crate) code: String,
    pub(crate) manner: String,
    pub(crate) evidence: String,
    pub(crate) request_id: String,
    /// The time as people read it.
    #[serde(default, skip_serializing)]
    pub(crate) moment: String,
    /// The same in short.
    #[serde(default, skip_serializing)]
    pub(crate) brief: String,
}

impl CallRow {
    /// Outcome: it worked, waits for a person, or failed.
    pub(crate) fn tone(&self) -> &'static str {
        match self.code.as_str() {
            "OK" => "ok",
            "NEEDS_USER_CONFIRMATION" => "warn",
            _ => "bad",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallList {
    pub(crate) calls: Vec<CallRow>,
    pub(crate) next_cursor: Option<String>,
}

impl Visit {
    /// Calls by the options of the API.
    pub(crate) async fn calls(
        &self,
        options: &[(&str, &str)],
        limit: usize,
    ) -> Result<CallList, Stop> {
        let query = Serializer::new(String::new())
            .extend_pairs(options)
            .append_pair("limit", &limit.to_string())
            .finish();
        let mut list: CallList = self.get(&format!("/v1/calls?{query}")).await?;
        let now = self.console.gateway.executor().now();
        for call in &mut list.calls {
            call.moment = shown::moment(&call.at);
            call.brief = shown::brief(&call.at, now);
        }
        Ok(list)
    }
}

/// The filters of the address.
#[derive(Debug, Default, Serialize)]
struct Filters {
    tool: String,
    code: String,
    user: String,
    since: String,
    until: String,
}

#[derive(Template, Serialize)]
#[template(path = "calls.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    filters: Filters,
    #[serde(skip)]
    is_filtered: bool,
    #[serde(skip)]
    codes: Vec<&'static str>,
    #[serde(skip)]
    tools: Vec<String>,
    calls: Vec<CallRow>,
    /// The address of the next page.
    next: Option<String>,
    /// The address of the rows alone.
    #[serde(skip)]
    rows: String,
    #[serde(skip)]
    is_first: bool,
    /// True if everything of the user that is asked for is held.
    #[serde(skip)]
    is_held: bool,
}

#[derive(Template)]
#[template(path = "calls_rows.html")]
struct Rows<'p> {
    w: &'static Words,
    calls: &'p [CallRow],
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let asked = |name: &str| visit.asked(name).unwrap_or_default();
    let mut options: Vec<(&str, &str)> = FILTERS
        .iter()
        .filter_map(|name| Some((*name, visit.asked(name)?)))
        .collect();
    let is_filtered = !options.is_empty();
    let address = |more: &[(&str, &str)]| {
        let query = Serializer::new(String::new())
            .extend_pairs(&options)
            .extend_pairs(more)
            .finish();
        format!("/calls?{query}")
    };
    let rows = address(&[("part", "rows")]);
    let cursor = visit.asked("cursor");
    let list = {
        let mut options = options.clone();
        options.extend(cursor.map(|cursor| ("cursor", cursor)));
        visit.calls(&options, LISTED).await?
    };
    if visit.asked("part") == Some("rows") {
        let (w, calls) = (visit.words, &list.calls);
        return answer::html(&Rows { w, calls });
    }
    let next = list.next_cursor.as_deref();
    let next = next.map(|cursor| address(&[("cursor", cursor)]));
    options.clear();
    let executor = visit.console.gateway.executor();
    let tools = executor
        .list(&visit.caller.principal)
        .await
        .unwrap_or_default();
    let is_held = match asked("user") {
        "" => false,
        user => keep::held(&visit, Some(user), &[]).await,
    };
    let page = Page {
        is_held,
        frame: visit.frame(visit.words.calls, "calls").await,
        filters: Filters {
            tool: asked("tool").to_owned(),
            code: asked("code").to_owned(),
            user: asked("user").to_owned(),
            since: asked("since").to_owned(),
            until: asked("until").to_owned(),
        },
        is_filtered,
        codes: std::iter::once("OK")
            .chain(ErrorCode::ALL.into_iter().map(ErrorCode::as_str))
            .collect(),
        tools: tools.iter().map(|entry| entry.name().to_string()).collect(),
        calls: list.calls,
        next,
        rows,
        is_first: cursor.is_none(),
    };
    answer::page(&visit, &page)
}

/// Tells a page that there are new calls (server-sent events). It asks for them itself, so that no page hears of a call that
/// they may not see.
pub(crate) async fn live(visit: Visit) -> Result<Response, Stop> {
    let Ok(room) = visit.console.streams.clone().try_acquire_owned() else {
        let status = StatusCode::TOO_MANY_REQUESTS;
        return Err(Stop::new(
            status,
            "RATE_LIMITED",
            visit.words.too_many_streams,
        ));
    };
    let beats = visit.console.gateway.pulse().beats();
    let stream = stream::unfold(
        Listening {
            visit,
            beats,
            _room: room,
        },
        async |mut listening| {
            let event = listening.next().await?;
            Some((Ok::<_, Infallible>(event), listening))
        },
    );
    Ok(answer::typed(
        Body::from_stream(stream),
        "text/event-stream",
    ))
}

struct Listening {
    visit: Visit,
    beats: watch::Receiver<u64>,
    _room: OwnedSemaphorePermit,
}

impl Listening {
    /// The next event; none when the server stops.
    async fn next(&mut self) -> Option<Bytes> {
        let gateway = &self.visit.console.gateway;
        tokio::select! {
            () = gateway.health().draining() => None,
            changed = self.beats.changed() => {
                changed.ok()?;
                // A burst is one look, and what is looked for is in the store by then.
                tokio::time::sleep(PAUSE).await;
                self.beats.mark_unchanged();
                let _ = gateway.executor().store().flush().await;
                Some(Bytes::from_static(b"event: calls\ndata: new\n\n"))
            }
            () = tokio::time::sleep(BEAT) => Some(Bytes::from_static(b": there\n\n")),
        }
    }
}
