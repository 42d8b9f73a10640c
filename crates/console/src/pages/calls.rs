//! `/calls`: the calls that there were, newest first, and live.

use std::convert::Infallible;
use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use countersign::contract::ErrorCode;
use countersign::contract::evidence::RecordedActor;
use futures_util::stream;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::call::kind_of;
use super::keep;
use crate::answer::{self, Stop};
use crate::ask::with_query;
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;
use crate::words::Words;

/// Calls on one page.
const LISTED: usize = 50;

/// Minimum interval between two events of one page.
const PAUSE: Duration = Duration::from_millis(250);

/// Keep-alive interval of the event stream.
const BEAT: Duration = Duration::from_secs(15);

/// Filters of the list, as in the address.
const FILTERS: [&str; 11] = [
    "tool", "code", "user", "since", "until", "session", "actor", "slow_ms", "version", "replayed",
    "repaired",
];

/// Duration from which a call is marked as slow, if the reader has not said.
const SLOW_MS: u64 = 1_000;

/// A call as the API lists it.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct CallRow {
    pub(crate) at: String,
    pub(crate) user_id: String,
    pub(crate) tool: Option<String>,
    pub(crate) code: String,
    pub(crate) manner: String,
    /// Actor that triggered the call.
    #[serde(default)]
    pub(crate) actor: Option<RecordedActor>,
    /// Holder of the credential, if it is not the actor.
    #[serde(default)]
    pub(crate) principal: Option<RecordedActor>,
    /// Duration, without waiting for a person.
    #[serde(default)]
    pub(crate) took_us: Option<u64>,
    /// Time of waiting for a person.
    #[serde(default)]
    pub(crate) waited_us: Option<u64>,
    #[serde(default)]
    pub(crate) replayed: bool,
    #[serde(default)]
    pub(crate) repaired: bool,
    /// True if it took at least as long as the reader calls slow.
    #[serde(default)]
    pub(crate) slow: bool,
    pub(crate) evidence: String,
    pub(crate) request_id: String,
    /// The time as people read it.
    #[serde(default, skip_serializing)]
    pub(crate) moment: String,
    /// The same in short.
    #[serde(default, skip_serializing)]
    pub(crate) brief: String,
    /// The actor, and the holder of the credential: kind, id, and the id in short.
    #[serde(skip)]
    pub(crate) callers: Vec<(&'static str, String, String)>,
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

    /// Time of waiting for a person, if it is one that people notice.
    pub(crate) fn waited(&self) -> Option<String> {
        self.waited_us.and_then(shown::noticed).map(shown::took)
    }

    /// Duration in milliseconds; empty if the record has none.
    pub(crate) fn millis(&self) -> String {
        self.took_us.map(shown::millis).unwrap_or_default()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallList {
    pub(crate) calls: Vec<CallRow>,
    pub(crate) next_cursor: Option<String>,
    scan: Option<Scanned>,
    sessions_known_since: Option<String>,
}

/// A scan that ended before the page was full, as the API tells it.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct Scanned {
    records: u64,
    back_to: String,
}

impl Visit {
    /// Calls by the options of the API.
    pub(crate) async fn calls(
        &self,
        options: &[(&str, &str)],
        limit: usize,
    ) -> Result<CallList, Stop> {
        let limit = limit.to_string();
        let asked = options.iter().copied().chain([("limit", limit.as_str())]);
        let mut list: CallList = self.get(&with_query("/v1/calls", asked)).await?;
        let now = self.console.gateway.executor().now();
        let least = options.iter().find(|(name, _)| *name == "slow_ms");
        let least = least.and_then(|(_, text)| text.parse().ok());
        let slow_us = least.unwrap_or(SLOW_MS).saturating_mul(1_000);
        for call in &mut list.calls {
            call.moment = shown::moment(&call.at);
            call.brief = shown::brief(&call.at, now);
            call.slow = call.took_us.is_some_and(|us| us >= slow_us);
            let callers = call.actor.iter().chain(&call.principal).map(|one| {
                let kind = kind_of(one.kind, self.words);
                (kind, one.id.clone(), shown::short(&one.id))
            });
            call.callers = callers.collect();
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
    session: String,
    actor: String,
    slow_ms: String,
    version: String,
    replayed: String,
    repaired: String,
}

impl Filters {
    /// True if one of the filters is set that few readers need.
    fn has_rare(&self) -> bool {
        let rare = [
            &self.until,
            &self.session,
            &self.actor,
            &self.slow_ms,
            &self.version,
            &self.replayed,
            &self.repaired,
        ];
        rare.iter().any(|filter| !filter.is_empty())
    }

    fn of(visit: &Visit) -> Self {
        let asked = |name| visit.asked(name).unwrap_or_default().to_owned();
        Self {
            tool: asked("tool"),
            code: asked("code"),
            user: asked("user"),
            since: asked("since"),
            until: asked("until"),
            session: asked("session"),
            actor: asked("actor"),
            slow_ms: asked("slow_ms"),
            version: asked("version"),
            replayed: asked("replayed"),
            repaired: asked("repaired"),
        }
    }
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
    /// End of the scan, if it reached its bound before the page was full.
    scan: Option<Scanned>,
    #[serde(skip)]
    scan_text: Option<String>,
    /// Calls before this time are not known to belong to a session; only if one was asked for.
    sessions_known_since: Option<String>,
    #[serde(skip)]
    session_text: Option<String>,
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
    let options: Vec<(&str, &str)> = FILTERS
        .iter()
        .filter_map(|name| Some((*name, visit.asked(name)?)))
        .collect();
    let is_filtered = !options.is_empty();
    let address = |more: &[(&str, &str)]| {
        let options = options.iter().chain(more);
        with_query("/calls", options.copied())
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
    let executor = visit.console.gateway.executor();
    let tools = executor
        .list(&visit.caller.principal)
        .await
        .unwrap_or_default();
    let is_held = match visit.asked("user") {
        None => false,
        user => keep::held(&visit, user, &[]).await,
    };
    let w = visit.words;
    let scan_text = list.scan.as_ref().map(|scan| {
        let looked = w.scan_note.replace("{}", &shown::number(scan.records));
        looked.replace("{at}", &shown::moment(&scan.back_to))
    });
    let since = list.sessions_known_since.as_deref().map(shown::moment);
    let page = Page {
        is_held,
        scan_text,
        session_text: since.map(|since| w.session_note.replace("{}", &since)),
        frame: visit.frame(visit.words.calls, "calls").await,
        filters: Filters::of(&visit),
        is_filtered,
        codes: std::iter::once("OK")
            .chain(ErrorCode::ALL.into_iter().map(ErrorCode::as_str))
            .collect(),
        tools: tools.iter().map(|entry| entry.name().to_string()).collect(),
        calls: list.calls,
        scan: list.scan,
        sessions_known_since: list.sessions_known_since,
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
            news: News::of(beats),
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
    news: News,
    _room: OwnedSemaphorePermit,
}

impl Listening {
    /// The next event; none when the server stops.
    async fn next(&mut self) -> Option<Bytes> {
        let gateway = &self.visit.console.gateway;
        tokio::select! {
            () = gateway.health().draining() => None,
            heard = self.news.heard() => {
                heard?;
                self.news.due().await;
                // What is looked for is in the store by then.
                let _ = gateway.executor().store().flush().await;
                Some(Bytes::from_static(b"event: calls\ndata: new\n\n"))
            }
            () = tokio::time::sleep(BEAT) => Some(Bytes::from_static(b": there\n\n")),
        }
    }
}

/// New calls, at most once in a [`PAUSE`]: the first one at once, a burst behind it as one.
struct News {
    beats: watch::Receiver<u64>,
    /// Time from which the next event may be sent.
    from: Instant,
}

impl News {
    fn of(beats: watch::Receiver<u64>) -> Self {
        Self {
            beats,
            from: Instant::now(),
        }
    }

    /// Returns when there is a new call; `None` when there will be no more.
    async fn heard(&mut self) -> Option<()> {
        self.beats.changed().await.ok()
    }

    /// Returns when the event may be sent. Calls that came until then are part of it.
    async fn due(&mut self) {
        tokio::time::sleep_until(self.from).await;
        self.from = Instant::now() + PAUSE;
        self.beats.mark_unchanged();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The event of the first call is sent at once, those that follow share one event after the pause, and after a rest it is at once again.
    #[tokio::test(start_paused = true)]
    async fn the_first_event_is_sent_at_once() {
        let sender = watch::Sender::new(0);
        let mut news = News::of(sender.subscribe());
        let begun = Instant::now();
        let mut told = Vec::new();
        // Calls at the same moment, and the time in which nothing happens after the event.
        for (calls, rest) in [(1, 0), (5, 100), (1, 1_000), (1, 0)] {
            for _ in 0..calls {
                sender.send_modify(|beats| *beats += 1);
            }
            news.heard().await.unwrap();
            news.due().await;
            told.push(begun.elapsed().as_millis());
            assert!(!news.beats.has_changed().unwrap(), "a burst is one event");
            tokio::time::advance(Duration::from_millis(rest)).await;
        }
        assert_eq!(told, [0, 250, 500, 1_500]);
        drop(sender);
        assert_eq!(news.heard().await, None);
    }
}
