//! Frame of every page: navigation, the number of approvals that wait for the person who looks, and the signed-in caller.

use countersign_gateway::caller::Proof;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::with_query;
use crate::assets;
use crate::pages::page_of;
use crate::session::Visit;
use crate::words::Words;

/// Frame of a page.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) w: &'static Words,
    pub(crate) title: String,
    /// The entry of the navigation.
    pub(crate) current: &'static str,
    pub(crate) csrf: String,
    pub(crate) who: String,
    pub(crate) proof: &'static str,
    pub(crate) is_open: bool,
    pub(crate) waiting: usize,
    pub(crate) in_doubt: u64,
    pub(crate) is_operator: bool,
    pub(crate) version: &'static str,
    /// Origin that the browser used.
    pub(crate) url: String,
    /// The JSON twin.
    pub(crate) twin: String,
}

/// The parts of `GET /v1/status` that pages show.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatusNow {
    pub(crate) problems: Vec<ProblemNow>,
    pub(crate) program: Value,
    pub(crate) policy: Value,
    pub(crate) caller: Value,
    pub(crate) signing: Value,
    pub(crate) server: Option<Value>,
}

/// Something that is wrong.
#[derive(Debug, Clone, Default, Deserialize, serde::Serialize)]
#[serde(default)]
pub(crate) struct ProblemNow {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl StatusNow {
    /// True if requests need a credential.
    pub(crate) fn wants_credential(&self) -> bool {
        self.caller.get("credentials_required") == Some(&Value::Bool(true))
    }

    /// A number of the part for operators.
    pub(crate) fn of_server(&self, name: &str) -> u64 {
        let value = self.server.as_ref().and_then(|server| server.get(name));
        value.and_then(Value::as_u64).unwrap_or_default()
    }
}

impl StatusNow {
    /// Approvals that wait: of all users for an operator, else those that the caller may see.
    fn waiting(&self) -> u64 {
        if self.server.is_some() {
            return self.of_server("approvals_open");
        }
        let own = self.caller.get("approvals_open").and_then(Value::as_u64);
        own.unwrap_or_default()
    }
}

impl Visit {
    /// Status from the API. Without it the page is still shown.
    pub(crate) async fn status(&self) -> StatusNow {
        self.get("/v1/status").await.unwrap_or_default()
    }

    /// Frame of a page.
    pub(crate) async fn frame(&self, title: &str, current: &'static str) -> Frame {
        let status = self.status().await;
        self.framed(title, current, &status)
    }

    /// The same for a page that has asked already.
    pub(crate) fn framed(&self, title: &str, current: &'static str, status: &StatusNow) -> Frame {
        let actor = &self.caller.principal.actor;
        let who = match self.caller.proof {
            Proof::Loopback => self.words.this_machine.to_owned(),
            Proof::Operator | Proof::ApiKey | Proof::Token => actor.id.clone(),
        };
        let page = page_of(&self.path);
        let path = page.trim_end_matches('/');
        let twin = if path.is_empty() { "/overview" } else { path };
        let query = self.query.iter();
        let query = query.map(|(name, value)| (name.as_str(), value.as_str()));
        Frame {
            w: self.words,
            title: title.to_owned(),
            current,
            csrf: self.csrf.to_string(),
            who,
            proof: match self.caller.proof {
                Proof::Loopback => self.words.proof_open,
                Proof::ApiKey => self.words.proof_key,
                Proof::Token => self.words.proof_token,
                Proof::Operator => self.words.proof_operator,
            },
            is_open: self.caller.proof == Proof::Loopback,
            waiting: usize::try_from(status.waiting()).unwrap_or_default(),
            in_doubt: status.of_server("calls_in_doubt"),
            is_operator: status.server.is_some(),
            version: &assets::VERSION,
            url: self.url.clone(),
            twin: with_query(&format!("{twin}.json"), query),
        }
    }
}
