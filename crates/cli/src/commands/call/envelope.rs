//! The options of `call` that say who calls, for whom and from where: the request envelope (A1).

use countersign::contract::envelope::Client;
use countersign::contract::trace::{InvalidTrace, Trace};
use countersign::contract::{Actor, ActorType, RequestEnvelope, RequestId, TraceContext};
use countersign::{Principal, ToolCall};
use serde::{Deserialize, Serialize};

use crate::commands::check_timezone;
use crate::failure::Failure;

/// The request envelope, an option a member.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Envelope")]
pub(super) struct EnvelopeOptions {
    /// User of the call
    #[arg(long, value_name = "USER", default_value = "u_local")]
    pub(super) user: String,

    /// Caller: user:ID, agent:ID or system:ID [default: the user]
    #[arg(long, value_name = "TYPE:ID", value_parser = actor, hide_default_value = true)]
    actor: Option<Actor>,

    /// Id of this call, for audit and replay [default: a new one]
    #[arg(long, value_name = "ID", value_parser = request_id)]
    request_id: Option<RequestId>,

    /// Session, such as a conversation, that the call belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Idempotency key: a write with the same key runs at most once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Simulate the call; change nothing
    #[arg(long)]
    dry_run: bool,

    /// Locale for parsing numbers, such as de-DE
    #[arg(long, value_name = "LOCALE")]
    locale: Option<String>,

    /// Currency, an ISO 4217 code such as EUR
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,

    /// Time zone for timestamps without an offset, such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,

    /// Application of the user, such as ios/4.2 (web, ios, android)
    #[arg(long, value_name = "APP[/VERSION]", value_parser = client)]
    client: Option<Client>,

    /// Trace of the caller, as a W3C traceparent
    #[arg(long, value_name = "TRACEPARENT", value_parser = traceparent)]
    trace: Option<Traceparent>,

    /// Span of the caller without a traceparent: 16 hexadecimal digits
    #[arg(long, value_name = "ID", value_parser = span_id, conflicts_with = "trace")]
    span_id: Option<String>,

    /// Parent of that span
    #[arg(long, value_name = "ID", value_parser = span_id, requires = "span_id")]
    parent_span_id: Option<String>,
}

impl EnvelopeOptions {
    /// Refuses values that the executor would silently leave out.
    pub(super) fn check(&self) -> Result<(), Failure> {
        check_timezone(self.timezone.as_deref())
    }

    /// Builds a call with this envelope. The operator who starts the command owns the data folder, so the actor that they name counts.
    pub(super) fn call(&self, tool: &str, args: &str) -> ToolCall {
        // Nothing proves the actor's name, so it is the envelope's: the record has a digest of it.
        let principal = match &self.actor {
            Some(actor) if actor.kind != ActorType::User => {
                let command = Actor {
                    kind: actor.kind,
                    id: "cli".to_owned(),
                };
                Principal::new(command, self.user.as_str()).acting_for_others()
            }
            Some(actor) => Principal::new(actor.clone(), self.user.as_str()),
            None => Principal::user(self.user.as_str()),
        };
        let trace = self.span_id.as_ref().map(|span_id| Trace {
            trace_id: None,
            span_id: Some(span_id.clone()),
            parent_span_id: self.parent_span_id.clone(),
        });
        let call = ToolCall::new(tool, args, principal).envelope(RequestEnvelope {
            request_id: self.request_id.clone(),
            actor: self
                .actor
                .clone()
                .filter(|actor| actor.kind != ActorType::User),
            user_id: None,
            session_id: self.session.clone(),
            locale: self.locale.clone(),
            currency: self.currency.clone(),
            timezone: self.timezone.clone(),
            client: self.client.clone(),
            dry_run: self.dry_run,
            idempotency_key: self.key.clone(),
            trace,
        });
        match self.trace {
            Some(Traceparent(trace)) => call.trace(trace),
            None => call,
        }
    }
}

/// The caller's trace; it is sent as the header has it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Traceparent(TraceContext);

impl From<Traceparent> for String {
    fn from(trace: Traceparent) -> Self {
        trace.0.to_string()
    }
}

impl TryFrom<String> for Traceparent {
    type Error = InvalidTrace;

    fn try_from(text: String) -> Result<Self, InvalidTrace> {
        text.parse().map(Self)
    }
}

fn actor(text: &str) -> Result<Actor, String> {
    let form = "write it as user:ID, agent:ID or system:ID";
    let (kind, id) = text.split_once(':').ok_or(form)?;
    let kind = match kind {
        "user" => ActorType::User,
        "agent" => ActorType::Agent,
        "system" => ActorType::System,
        other => return Err(format!("{other:?} isn't a type of actor; {form}")),
    };
    if id.is_empty() {
        return Err(format!("the id is empty; {form}"));
    }
    let id = id.to_owned();
    Ok(Actor { kind, id })
}

fn request_id(text: &str) -> Result<RequestId, String> {
    RequestId::new(text).map_err(|_| "a request id is 1 to 128 visible ASCII characters".to_owned())
}

fn client(text: &str) -> Result<Client, String> {
    let (app, version) = match text.split_once('/') {
        Some((app, version)) => (app, Some(version)),
        None => (text, None),
    };
    if app.is_empty() || version.is_some_and(str::is_empty) {
        return Err("write it as APP or APP/VERSION, such as ios/4.2".to_owned());
    }
    Ok(Client {
        app: app.into(),
        version: version.map(str::to_owned),
    })
}

fn traceparent(text: &str) -> Result<Traceparent, String> {
    text.parse().map(Traceparent).map_err(|error| {
        format!(
            "{error}; one looks like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, \
             and a lone span goes behind --span-id"
        )
    })
}

fn span_id(text: &str) -> Result<String, String> {
    let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 16 || !text.bytes().all(is_hex) || text.bytes().all(|byte| byte == b'0') {
        return Err("a span id is 16 lower-case hexadecimal digits, not all zero".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A1: what cannot be a member is refused before anything is called.
    #[test]
    fn members_that_cannot_be_are_refused() {
        for text in [
            "",
            "a_7",
            "agent",
            "agent:",
            "robot:a_7",
            "Agent:a_7",
            ":a_7",
        ] {
            assert!(actor(text).is_err(), "{text:?}");
        }
        assert_eq!(
            actor("agent:a:7").map(|actor| actor.id),
            Ok("a:7".to_owned())
        );
        for text in ["", "/", "ios/", "/4.2"] {
            assert!(client(text).is_err(), "{text:?}");
        }
        let version = client("web/4.2/b").map(|client| client.version);
        assert_eq!(version, Ok(Some("4.2/b".to_owned())));
        for text in [
            "",
            "0000000000000000",
            "00F067AA0BA902B7",
            "00f067aa0ba902b",
            "00f067aa0ba902bz",
        ] {
            assert!(span_id(text).is_err(), "{text:?}");
        }
        assert!(request_id("").is_err() && request_id("a b").is_err() && request_id("r_1").is_ok());
        assert!(traceparent("00f067aa0ba902b7").is_err());
    }
}
