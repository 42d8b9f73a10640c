//! What needs a person, as `GET /v1/attention` lists it: the gravest first, questions and calls in doubt as one each.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::docs;
use super::super::upstreams::UpstreamNow;
use crate::frame::{Frame, ProblemNow, StatusNow};
use crate::session::Visit;
use crate::shown;
use crate::words::Words;

/// The list of the API.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Attention {
    pub(super) items: Vec<Item>,
    pub(super) more: usize,
}

/// An item of the list.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Item {
    id: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    settle: String,
    page: String,
}

/// An item, or all items of one kind, for people.
pub(super) struct Need {
    pub(super) kind: String,
    /// Number of items that it stands for.
    pub(super) count: u64,
    gravity: Gravity,
    pub(super) what: String,
    /// User or agent whom it concerns.
    pub(super) whom: String,
    /// Time since when the oldest waits, and the same for people.
    pub(super) since: Option<(String, String)>,
    /// Instructions, as HTML: commands as code.
    pub(super) settle: String,
    pub(super) page: String,
    pub(super) button: &'static str,
}

impl Need {
    pub(super) fn tone(&self) -> &'static str {
        match self.gravity {
            Gravity::Broken => "bad",
            Gravity::Wrong | Gravity::Asked => "warn",
        }
    }
}

/// The order of the list. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gravity {
    /// Effects, evidence or calls may be lost.
    Broken,
    /// Something will fail, or was refused.
    Wrong,
    /// A person was asked.
    Asked,
}

impl Gravity {
    fn of(kind: &str) -> Self {
        match kind {
            "verification_failed"
            | "store_silent"
            | "store_read_only"
            | "signing_stopped"
            | "clock_jumped"
            | "witness_refuses"
            | "call_in_doubt"
            | AWAY => Self::Broken,
            QUESTION => Self::Asked,
            _ => Self::Wrong,
        }
    }
}

/// Kinds of items that are shown as one.
const QUESTION: &str = "question";
const DOUBT: &str = "call_in_doubt";

/// Kind of an upstream that lists other tools than were approved.
const CHANGED: &str = "definitions_changed";

/// Kind of an upstream that does not answer. It may be back by itself, so the API does not list it.
const AWAY: &str = "upstream_away";

impl Attention {
    /// The list of the API; without it, the problems of the status.
    pub(super) async fn ask(visit: &Visit, status: &StatusNow) -> Self {
        if let Ok(attention) = visit.get("/v1/attention").await {
            return attention;
        }
        Self {
            items: status.problems.iter().map(Item::of_problem).collect(),
            more: 0,
        }
    }

    /// Items on the page, the gravest first.
    pub(super) fn needs(
        &self,
        frame: &Frame,
        upstreams: &[UpstreamNow],
        now: Timestamp,
        w: &'static Words,
    ) -> Vec<Need> {
        let mut needs = Vec::new();
        for (kind, counted) in [(DOUBT, frame.in_doubt), (QUESTION, frame.waiting as u64)] {
            let items: Vec<&Item> = self.items.iter().filter(|item| item.kind == kind).collect();
            if let Some(first) = items.first() {
                let listed = items.len() as u64;
                let mut need = first.need(now, w);
                need.count = listed.max(counted);
                if need.count > 1 {
                    need.gathered(w);
                }
                needs.push(need);
            }
        }
        let single = self.items.iter();
        let single = single.filter(|item| item.kind != DOUBT && item.kind != QUESTION);
        needs.extend(single.map(|item| item.need(now, w)));
        let away = upstreams.iter().filter(|one| one.is_away());
        needs.extend(away.map(|one| of_away(one, w)));
        needs.sort_by_key(|need| need.gravity);
        needs
    }
}

impl Item {
    fn of_problem(problem: &ProblemNow) -> Self {
        Self {
            id: problem.code.clone(),
            kind: problem.code.clone(),
            since: None,
            what: problem.message.clone(),
            user_id: None,
            agent: None,
            tool: None,
            settle: problem.hint.clone(),
            page: "/".to_owned(),
        }
    }

    /// The description in the reader's language, where it is made of nothing but a name.
    fn what_for(&self, w: &'static Words) -> String {
        match (self.kind.as_str(), self.id.split_once(':')) {
            (CHANGED, Some((_, name))) => w.was_changed.replace("{}", name),
            (DOUBT, _) => format!("1 {}", w.doubt_one),
            _ => self.what.clone(),
        }
    }

    fn need(&self, now: Timestamp, w: &'static Words) -> Need {
        let since = self.since.map(|since| {
            let since = since.to_string();
            let text = shown::distance(&since, now, w);
            (since, text)
        });
        let whom = self.user_id.as_ref().or(self.agent.as_ref());
        Need {
            kind: self.kind.clone(),
            count: 1,
            gravity: Gravity::of(&self.kind),
            what: self.what_for(w),
            whom: whom.cloned().unwrap_or_default(),
            since,
            settle: docs::line(&self.settle),
            page: self.page.clone(),
            button: match self.page.split('/').nth(1).unwrap_or_default() {
                "approvals" => w.open_inbox,
                "in-doubt" => w.settle_them,
                "evidence" => w.evidence_log,
                "policy" => w.policy,
                "settings" => w.settings,
                "notifications" => w.notifications,
                "upstreams" => w.see_upstreams,
                _ => "",
            },
        }
    }
}

impl Need {
    /// Lets the oldest of several stand for all.
    fn gathered(&mut self, w: &'static Words) {
        let (form, page, settle) = match self.gravity {
            Gravity::Asked => (w.wait_many, "/approvals", "`countersign approvals list`"),
            Gravity::Broken | Gravity::Wrong => {
                (w.doubt_many, "/in-doubt", "`countersign claims list`")
            }
        };
        self.what = format!("{} {form}", shown::number(self.count));
        self.whom.clear();
        page.clone_into(&mut self.page);
        self.settle = docs::line(settle);
    }
}

fn of_away(one: &UpstreamNow, w: &'static Words) -> Need {
    Need {
        kind: AWAY.to_owned(),
        count: 1,
        gravity: Gravity::of(AWAY),
        what: w.was_away.replace("{}", &one.name),
        whom: String::new(),
        since: None,
        settle: docs::line(&format!("`{}`", one.said().replace('`', "'"))),
        page: "/upstreams".to_owned(),
        button: w.see_upstreams,
    }
}
