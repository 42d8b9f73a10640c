//! `/search`: one box for whatever people have in hand: a request, a record, an approval, an order, a user, a tool, a session, a leaf, an
//! idempotency key. Names that callers chose are looked for under each user's key, so where there are too many users the user is
//! written before the name.

use askama::Template;
use axum::response::Response;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{self, Stop, see_other};
use crate::ask::{Answered, segment};
use crate::frame::Frame;
use crate::session::Visit;

#[derive(Template, Serialize)]
#[template(path = "search.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    asked: String,
    /// Address of the page of what was meant.
    found: Option<String>,
    /// True if there are too many users to look through all of them.
    is_user_needed: bool,
}

impl Page {
    /// Kinds of names that are found, each with an example.
    fn kinds(&self) -> [(&'static str, &'static str); 9] {
        let w = self.frame.w;
        [
            (w.tool, "catalog.search_offers"),
            (w.user, "u_1"),
            (w.a_request, "req_01a1e209-3e99-736c-842c-57d140cc68f6"),
            (w.snapshot, "ev_01a1e209-3e99-736c-842c-57d140cc68f6"),
            (w.an_approval, "ap_c82e6fc784cc2d0b741360f2ca9f1eb3"),
            (w.an_order, "order_59k22c50w38smrz3"),
            (w.session, "visit-7, u_1 visit-7"),
            (w.idempotency, "order-77, u_1 order-77"),
            (w.leaf_hash, "sha256:3555e020…"),
        ]
    }
}

/// Leads to the page of what was meant; the JSON twin says where it is.
pub(crate) async fn find(visit: Visit) -> Result<Response, Stop> {
    let asked = visit.asked("q").unwrap_or_default().trim().to_owned();
    let mut search = Search {
        visit: &visit,
        is_user_needed: false,
    };
    let found = search.find(&asked).await;
    if let Some(found) = &found
        && !visit.wants_json
    {
        return Ok(see_other(found));
    }
    let is_user_needed = found.is_none() && search.is_user_needed;
    let frame = visit.frame(visit.words.search, "").await;
    let page = Page {
        frame,
        asked,
        found,
        is_user_needed,
    };
    answer::page(&visit, &page)
}

/// One search, which asks route after route.
struct Search<'v> {
    visit: &'v Visit,
    is_user_needed: bool,
}

impl Search<'_> {
    /// The page of what was meant.
    async fn find(&mut self, asked: &str) -> Option<String> {
        if asked.is_empty() {
            return None;
        }
        let name = segment(asked);
        if self.has(&format!("/v1/tools/{name}")).await {
            return Some(format!("/tools/{name}"));
        }
        if asked.starts_with("ap_") && self.has(&format!("/v1/approvals/{name}")).await {
            return Some(format!("/approvals/{name}"));
        }
        if self.has(&format!("/v1/calls/{name}")).await {
            return Some(format!("/calls/{name}"));
        }
        // An order, a record, or the hash of a leaf.
        if let Some(record) = self.there(&format!("/v1/evidence/{name}")).await {
            let id = record_id(&record, "/record/id")?;
            // What a call has made is looked for by people who ask what happened, not how.
            let is_record = asked == id || asked.starts_with("sha256:");
            let page = if is_record { "calls" } else { "cases" };
            let name = if is_record { segment(&id) } else { name };
            return Some(format!("/{page}/{name}"));
        }
        if self.has(&format!("/v1/sessions/{name}?limit=1")).await {
            return Some(format!("/sessions/{name}"));
        }
        if let Some((user, name)) = asked.split_once(char::is_whitespace)
            && let Some(page) = self.of_user(user, name.trim_start()).await
        {
            return Some(page);
        }
        if let Some(call) = self.of_key(&format!("key={name}")).await {
            return Some(call);
        }
        let of_user = self.visit.calls(&[("user", asked)], 1).await.ok()?;
        (!of_user.calls.is_empty()).then(|| format!("/calls?user={name}"))
    }

    /// The page of a call or a session of this user, by a name that the caller chose: a request id, a session, or an idempotency key.
    async fn of_user(&mut self, user: &str, name: &str) -> Option<String> {
        let (user, name) = (segment(user), segment(name));
        let call = self.there(&format!("/v1/calls/{name}?user={user}")).await;
        if let Some(id) = call.and_then(|call| record_id(&call, "/records/0/record/id")) {
            return Some(format!("/calls/{}", segment(&id)));
        }
        let session = format!("/v1/sessions/{name}?limit=1&user={user}");
        let session = self.there(&session).await;
        if let Some(id) = session.and_then(|session| record_id(&session, "/session")) {
            return Some(format!("/sessions/{}", segment(&id)));
        }
        self.of_key(&format!("key={name}&user={user}")).await
    }

    /// The call that took an idempotency key.
    async fn of_key(&mut self, query: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Taken {
            calls: Vec<Call>,
        }
        #[derive(Deserialize)]
        struct Call {
            evidence: String,
        }
        let taken = self.there(&format!("/v1/calls?{query}")).await?;
        let taken: Taken = taken.read().ok()?;
        let call = taken.calls.into_iter().next()?;
        Some(format!("/calls/{}", segment(&call.evidence)))
    }

    async fn has(&mut self, path: &str) -> bool {
        self.there(path).await.is_some()
    }

    /// The answer at a path, if there is something. Notes whether the user has to be named.
    async fn there(&mut self, path: &str) -> Option<Answered> {
        let answered = self.visit.ask(Method::GET, path, None).await.ok()?;
        if answered.status == StatusCode::BAD_REQUEST {
            let error: Option<Value> = serde_json::from_slice(&answered.body).ok();
            let field = error
                .as_ref()
                .and_then(|it| it.pointer("/error/details/field"));
            self.is_user_needed |= field.is_some_and(|field| field == "/user");
        }
        answered.status.is_success().then_some(answered)
    }
}

fn record_id(answered: &Answered, pointer: &str) -> Option<String> {
    let body: Value = serde_json::from_slice(&answered.body).ok()?;
    let id = body.pointer(pointer).and_then(Value::as_str)?;
    Some(id.to_owned())
}
