//! A call of the demo and its answer, as the steps read it.

use countersign::contract::{Actor, ActorType, ReplyEnvelope, RequestEnvelope};
use countersign::{Principal, ToolCall};
use countersign_commerce::money::Money;
use serde::Serialize;
use serde_json::Value;

/// Agent that makes every call of the demo; each call says which user it acts for.
const AGENT: &str = "shopping-agent";

/// A call, as an agent sends it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ask {
    pub(super) user: String,
    pub(super) tool: &'static str,
    /// Arguments as the model wrote them.
    pub(super) arguments: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    pub(super) dry_run: bool,
}

/// A call with its reply.
pub(super) struct Answer {
    pub(super) ask: Ask,
    /// The whole envelope.
    pub(super) reply: Value,
}

impl Ask {
    pub(super) fn new(user: &str, tool: &'static str, arguments: impl Into<String>) -> Self {
        Self {
            user: user.to_owned(),
            tool,
            arguments: arguments.into(),
            key: None,
            dry_run: false,
        }
    }

    pub(super) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(super) fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Returns the caller: the agent, acting for its user.
    pub(super) fn principal(&self) -> Principal {
        let actor = Actor {
            kind: ActorType::Agent,
            id: AGENT.to_owned(),
        };
        Principal::new(actor, self.user.as_str())
    }

    /// The call that the executor is given.
    pub(super) fn call(&self) -> ToolCall {
        let envelope = RequestEnvelope {
            currency: Some("EUR".to_owned()),
            dry_run: self.dry_run,
            idempotency_key: self.key.clone(),
            ..RequestEnvelope::default()
        };
        ToolCall::new(self.tool, self.arguments.as_str(), self.principal()).envelope(envelope)
    }

    pub(super) fn answered(self, reply: &ReplyEnvelope) -> Answer {
        Answer {
            ask: self,
            reply: serde_json::to_value(reply).unwrap_or_default(),
        }
    }
}

impl Answer {
    pub(super) fn is_ok(&self) -> bool {
        self.reply.get("ok") == Some(&Value::Bool(true))
    }

    /// True if it is the stored answer of an earlier call.
    pub(super) fn is_replayed(&self) -> bool {
        self.reply.get("replayed") == Some(&Value::Bool(true))
    }

    /// Returns the value at a JSON pointer of `data`.
    pub(super) fn data(&self, pointer: &str) -> Option<&Value> {
        self.reply.get("data")?.pointer(pointer)
    }

    pub(super) fn text(&self, pointer: &str) -> Option<String> {
        self.data(pointer)?.as_str().map(str::to_owned)
    }

    /// An amount of `data`.
    pub(super) fn money(&self, pointer: &str) -> Option<Money> {
        serde_json::from_value(self.data(pointer)?.clone()).ok()
    }

    /// An amount as people write it.
    pub(super) fn price(&self, pointer: &str) -> String {
        self.money(pointer)
            .map_or("-".to_owned(), |money| money.to_string())
    }

    /// A time of `data`, to the second, in UTC.
    pub(super) fn moment(&self, pointer: &str) -> String {
        let text = self.text(pointer).unwrap_or_default();
        let seconds = text.split('.').next().unwrap_or_default();
        format!("{} UTC", seconds.trim_end_matches('Z').replace('T', " "))
    }

    /// The name of its evidence.
    pub(super) fn evidence(&self) -> Option<String> {
        let id = self.reply.pointer("/evidence/snapshot_id")?;
        id.as_str().map(str::to_owned)
    }

    /// The code of a refusal.
    pub(super) fn code(&self) -> Option<&str> {
        self.reply.pointer("/error/code")?.as_str()
    }

    /// A detail of a refusal.
    pub(super) fn detail(&self, name: &str) -> Option<&Value> {
        self.reply.pointer("/error/details")?.get(name)
    }

    /// The codes of the warnings.
    pub(super) fn warnings(&self) -> Vec<&Value> {
        let list = self.reply.get("warnings").and_then(Value::as_array);
        list.map_or(Vec::new(), |list| list.iter().collect())
    }

    pub(super) fn is_warned(&self, code: &str) -> bool {
        let mut warnings = self.warnings().into_iter();
        warnings.any(|warning| warning.get("code").and_then(Value::as_str) == Some(code))
    }

    /// Summarizes the outcome in one line.
    pub(super) fn summary(&self) -> String {
        if let Some(code) = self.code() {
            let message = self.reply.pointer("/error/message");
            let message = message.and_then(Value::as_str).unwrap_or_default();
            return format!("{code}: {message}");
        }
        let mut line = match (self.ask.dry_run, self.is_replayed()) {
            (true, _) => "ok (dry run)".to_owned(),
            (false, true) => "ok (the stored answer)".to_owned(),
            (false, false) => "ok".to_owned(),
        };
        let seconds = self.reply.get("ttl_seconds").and_then(Value::as_u64);
        let seconds = seconds.map(|seconds| format!("holds for {seconds} s"));
        let evidence = self.evidence().map(|id| format!("evidence {id}"));
        for more in [seconds, evidence].into_iter().flatten() {
            line.push_str(", ");
            line.push_str(&more);
        }
        line
    }
}
