//! `/in-doubt`: calls whose effect may or may not have happened, and what an operator found out about those that are chosen.
//!
//! Those that are ticked are settled by a request each; all that match, by one request for all of them. Either way each has a record of its
//! own.

use askama::Template;
use axum::response::Response;
use http::StatusCode;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{self, Stop};
use crate::ask::with_query;
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown;
use crate::words::Words;

/// Maximum number of calls on a page.
const LISTED: usize = 100;

/// Maximum number of calls that are settled at once, by the API.
const SETTLED_MAX: usize = 1_000;

/// Ages that can be chosen: name in the address, and hours.
const AGES: [(&str, i64); 4] = [("1h", 1), ("1d", 24), ("7d", 7 * 24), ("30d", 30 * 24)];

#[derive(Template, Serialize)]
#[template(path = "doubts.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    calls: Vec<Doubt>,
    filter: Filter,
    #[serde(skip)]
    ages: Vec<(&'static str, String)>,
    /// Address of the page with the oldest; `None` if this is that page.
    #[serde(skip)]
    first: Option<String>,
    /// Address of the page with newer ones.
    #[serde(skip)]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// All calls that match, as far as they can be settled at once.
    matching: Matching,
    #[serde(skip)]
    settle_all: String,
    /// Outcomes of the selected calls.
    outcomes: Vec<Outcome>,
    /// Outcome of all calls that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    together: Option<Together>,
}

/// The calls that match the filter, the oldest first.
#[derive(Default, Serialize)]
struct Matching {
    /// Number of them, at most as many as are settled at once.
    count: usize,
    /// Time of the newest of them.
    until: String,
    /// True if there are more.
    more: bool,
}

impl Matching {
    /// Counts the calls of a list. The time of the newest is the edge: what becomes doubtful later is not part of what was looked at.
    fn of(listed: &Listed) -> Self {
        let newest = listed.claims.last();
        Self {
            count: listed.claims.len(),
            until: newest.map(|one| one.claimed_at.clone()).unwrap_or_default(),
            more: listed.next_cursor.is_some(),
        }
    }
}

/// Outcome of all calls that matched, as the API returns it.
#[derive(Deserialize, Serialize)]
struct Together {
    settled: u64,
    not_settled: Vec<NotSettled>,
    more: bool,
    #[serde(default, skip_serializing)]
    sentence: String,
    #[serde(default, skip_serializing)]
    not_sentence: String,
}

#[derive(Deserialize, Serialize)]
struct NotSettled {
    user_id: String,
    tool: String,
    key: String,
    why: String,
}

impl Together {
    fn told(mut self, w: &Words) -> Self {
        self.sentence = w.settled_all.replace("{}", &shown::number(self.settled));
        let left = shown::number(self.not_settled.len() as u64);
        self.not_sentence = w.not_settled.replace("{}", &left);
        self
    }

    /// Calls that were not settled, as many as a page shows, with the reason in words.
    fn left(&self, w: &Words) -> Vec<(&NotSettled, &'static str)> {
        let left = self.not_settled.iter().take(LISTED);
        let why = |one: &NotSettled| match one.why.as_str() {
            "not_in_doubt" => w.not_in_doubt,
            _ => w.settling_failed,
        };
        left.map(|one| (one, why(one))).collect()
    }
}

/// Filter of the list; empty if there is none.
#[derive(Clone, Default, Serialize)]
struct Filter {
    tool: String,
    user: String,
    /// Only calls that are at least so old.
    age: String,
}

impl Filter {
    /// True if all calls in doubt are listed.
    fn is_empty(&self) -> bool {
        self.tool.is_empty() && self.user.is_empty() && self.age.is_empty()
    }

    /// Address of a page of the list; the first page has no cursor.
    fn address(&self, cursor: &str) -> String {
        let options = [
            ("tool", self.tool.as_str()),
            ("user", &self.user),
            ("age", &self.age),
            ("cursor", cursor),
        ];
        with_query("/in-doubt", options)
    }
}

/// A call in doubt as the API lists it.
#[derive(Deserialize, Serialize)]
struct Doubt {
    user_id: String,
    tool: String,
    key: String,
    attempt: u32,
    request_id: String,
    claimed_at: String,
    #[serde(default, skip_serializing)]
    moment: String,
    #[serde(default, skip_serializing)]
    ago: String,
}

impl Doubt {
    /// The name of the call in the form. No name of a tool has a tilde.
    fn name(&self) -> String {
        let Self {
            user_id,
            tool,
            key,
            attempt,
            ..
        } = self;
        format!("{attempt}.{key}.{tool}~{user_id}")
    }
}

/// Outcome of one call.
#[derive(Serialize)]
struct Outcome {
    user_id: String,
    tool: String,
    key: String,
    #[serde(skip)]
    tone: &'static str,
    /// Confirmation, or the reason why the call was not settled.
    text: String,
    evidence: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    claims: Vec<Doubt>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Settled {
    evidence: String,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let asked = |name| visit.asked(name).unwrap_or_default().to_owned();
    let filter = Filter {
        tool: asked("tool"),
        user: asked("user"),
        age: asked("age"),
    };
    let page = page(&visit, filter, visit.asked("cursor")).await?;
    answer::page(&visit, &page)
}

/// Asks for calls in doubt, the oldest first.
async fn listed_of(
    visit: &Visit,
    filter: &Filter,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Listed, Stop> {
    let now = visit.console.gateway.executor().now();
    let age = AGES.iter().find(|(name, _)| *name == filter.age);
    let until = age.and_then(|(_, hours)| now.checked_sub(SignedDuration::from_hours(*hours)).ok());
    let until = until.map(|until| until.to_string()).unwrap_or_default();
    let limit = limit.to_string();
    let options = [
        ("state", "in_doubt"),
        ("limit", &limit),
        ("tool", &filter.tool),
        ("user", &filter.user),
        ("until", &until),
        ("cursor", cursor.unwrap_or_default()),
    ];
    let path = with_query("/v1/claims", options);
    visit.get_as_operator(&path).await
}

async fn page(visit: &Visit, filter: Filter, cursor: Option<&str>) -> Result<Page, Stop> {
    let now = visit.console.gateway.executor().now();
    let mut listed = listed_of(visit, &filter, LISTED, cursor).await?;
    let matching = if cursor.is_none() && listed.next_cursor.is_none() {
        Matching::of(&listed)
    } else {
        Matching::of(&listed_of(visit, &filter, SETTLED_MAX, None).await?)
    };
    let form = if matching.more {
        visit.words.settle_oldest
    } else {
        visit.words.settle_all
    };
    let settle_all = form.replace("{}", &shown::number(matching.count as u64));
    for doubt in &mut listed.claims {
        doubt.moment = shown::moment(&doubt.claimed_at);
        doubt.ago = shown::distance(&doubt.claimed_at, now, visit.words);
    }
    let next = listed.next_cursor.as_deref();
    Ok(Page {
        frame: visit.frame(visit.words.in_doubt_page, "doubts").await,
        calls: listed.claims,
        ages: ages(visit.words),
        first: cursor.map(|_| filter.address("")),
        next: next.map(|cursor| filter.address(cursor)),
        filter,
        next_cursor: listed.next_cursor,
        matching,
        settle_all,
        outcomes: Vec::new(),
        together: None,
    })
}

/// The ages that can be chosen, in words.
fn ages(w: &Words) -> Vec<(&'static str, String)> {
    let text = |hours: i64| match hours {
        1..24 => format!("{hours} {}", w.hours),
        _ => format!("{} {}", hours / 24, w.days),
    };
    AGES.map(|(name, hours)| (name, text(hours))).to_vec()
}

/// Settles the chosen calls, or all that match. The API asks for the scope and the reason, and keeps a record of both for each call.
pub(crate) async fn settle(posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let wrong = |message: &str| Stop::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message);
    let chosen = posted.fields.iter().filter(|(name, _)| name == "call");
    let chosen: Vec<Chosen> = chosen
        .map(|(_, name)| Chosen::read(name).ok_or_else(|| wrong(visit.words.not_in_doubt)))
        .collect::<Result<_, _>>()?;
    let reason = posted.get("reason").trim();
    let is_all = posted.get("all") == "true";
    if !is_all && (chosen.is_empty() || chosen.len() > LISTED) {
        return Err(wrong(visit.words.no_doubt_chosen));
    }
    let mut found = json!({"reason": reason});
    let Some(members) = found.as_object_mut() else {
        return Err(Stop::broken());
    };
    match posted.get("outcome") {
        "happened" => {
            let given: Result<Value, _> = serde_json::from_str(posted.get("answer"));
            let given = given.map_err(|_| wrong(visit.words.answer_no_json))?;
            members.insert("outcome".to_owned(), "happened".into());
            members.insert("answer".to_owned(), given);
        }
        "not" => {
            members.insert("outcome".to_owned(), "did_not_happen".into());
        }
        _ => return Err(wrong(visit.words.no_outcome_chosen)),
    }
    let filter = Filter {
        tool: posted.get("tool").to_owned(),
        user: posted.get("user").to_owned(),
        age: posted.get("age").to_owned(),
    };
    let (mut outcomes, mut together) = (Vec::new(), None);
    if is_all {
        let count: Option<usize> = posted.get("count").parse().ok();
        let count = count.ok_or_else(|| wrong(visit.words.no_doubt_chosen))?;
        for (name, value) in [("tool", &filter.tool), ("user", &filter.user)] {
            if !value.is_empty() {
                members.insert(name.to_owned(), value.as_str().into());
            }
        }
        members.insert("until".to_owned(), posted.get("until").into());
        members.insert("count".to_owned(), count.into());
        let settled = visit.post::<Together>("/v1/claims/settle/all", &found);
        together = Some(settled.await?.told(visit.words));
    } else {
        for one in chosen {
            outcomes.push(one.settle(visit, &found).await?);
        }
    }
    let page = Page {
        outcomes,
        together,
        ..page(visit, filter, None).await?
    };
    answer::page(visit, &page)
}

/// A call that was ticked, as it stood on the page.
struct Chosen {
    user_id: String,
    tool: String,
    key: String,
    attempt: u32,
}

impl Chosen {
    fn read(name: &str) -> Option<Self> {
        let (attempt, rest) = name.split_once('.')?;
        let (key, rest) = rest.split_once('.')?;
        let (tool, user_id) = rest.split_once('~')?;
        Some(Self {
            user_id: user_id.to_owned(),
            tool: tool.to_owned(),
            key: key.to_owned(),
            attempt: attempt.parse().ok()?,
        })
    }

    /// Settles it. One that was settled meanwhile is reported; without the right to settle, the page ends.
    async fn settle(self, visit: &Visit, found: &Value) -> Result<Outcome, Stop> {
        let mut body = found.clone();
        if let Some(members) = body.as_object_mut() {
            members.insert("user_id".to_owned(), self.user_id.as_str().into());
            members.insert("tool".to_owned(), self.tool.as_str().into());
            members.insert("key".to_owned(), self.key.as_str().into());
            members.insert("attempt".to_owned(), self.attempt.into());
        }
        let (tone, text, evidence) = match visit.post::<Settled>("/v1/claims/settle", &body).await {
            Ok(settled) => ("ok", visit.words.settled.to_owned(), Some(settled.evidence)),
            Err(stop) if stop.status == StatusCode::CONFLICT => {
                ("bad", visit.words.not_in_doubt.to_owned(), None)
            }
            Err(stop) => return Err(stop),
        };
        Ok(Outcome {
            user_id: self.user_id,
            tool: self.tool,
            key: self.key,
            tone,
            text,
            evidence,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a ticked call names it, whatever the user is called.
    #[test]
    fn a_ticked_call_is_found_again() {
        for user_id in ["ann", "a.b~c d", ""] {
            let doubt = Doubt {
                user_id: user_id.to_owned(),
                tool: "orders.create".to_owned(),
                key: "ab12".to_owned(),
                attempt: 3,
                request_id: String::new(),
                claimed_at: String::new(),
                moment: String::new(),
                ago: String::new(),
            };
            let read = Chosen::read(&doubt.name()).unwrap();
            assert_eq!(
                (&*read.user_id, &*read.tool, &*read.key, read.attempt),
                (user_id, "orders.create", "ab12", 3)
            );
        }
        assert!(Chosen::read("1.ab12.orders.create").is_none());
        assert!(Chosen::read("x.ab12.orders.create~ann").is_none());
    }
}
