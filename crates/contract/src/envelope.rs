//! The two envelopes (standard §4.1, §4.2): the request of every call, and its reply.
//!
//! For the caller every member is optional: the gateway fills in missing ones. The record always has all of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::error::ErrorBody;
use crate::id::{RequestId, SnapshotId};
use crate::issue::{Issue, IssueCode, Severity};
use crate::trace::Trace;

/// The request envelope as it arrives. Every member is optional; null is the same as a missing member.
///
/// # Example
///
/// ```
/// use countersign_contract::RequestEnvelope;
///
/// let envelope: RequestEnvelope = serde_json::from_str(
///     r#"{"actor": {"type": "agent", "id": "a_7"}, "user_id": "u_123", "idempotency_key": null}"#,
/// )?;
/// assert!(envelope.request_id.is_none() && envelope.idempotency_key.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestEnvelope {
    /// Id of the call, unique along the whole chain (A2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Actor that triggered the call (A3); it must agree with the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// User for whom the call is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Id of the conversation or visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// BCP 47 locale, such as `en-US`: used to read numbers and dates, and to write messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Currency, ISO 4217, such as `USD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Time zone, IANA, such as `America/Los_Angeles`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Application in front of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// True for a dry run: shows what would happen and changes nothing (A4).
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<bool>"))]
    pub dry_run: bool,
    /// Idempotency key: a write runs at most once for this user, tool and key (A5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Trace ids, passed on to every downstream call (A6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// The actor that triggered a call. It decides who is responsible.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// Kind of the actor.
    #[serde(rename = "type")]
    pub kind: ActorType,
    /// Id of the actor.
    pub id: String,
}

/// The three kinds of actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ActorType {
    /// A person.
    User,
    /// A program that acts for a person.
    Agent,
    /// The platform itself.
    System,
}

impl ActorType {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }
}

/// The application in front of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Platform.
    pub app: App,
    /// Version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The platform of an application. The standard lists three; another name is accepted, and the reply has a warning.
///
/// # Example
///
/// ```
/// use countersign_contract::envelope::App;
///
/// assert_eq!(App::from("ios"), App::Ios);
/// assert_eq!(App::from("kiosk"), App::Other("kiosk".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum App {
    /// A browser.
    Web,
    /// An iPhone or iPad.
    Ios,
    /// An Android device.
    Android,
    /// A name that the standard does not list.
    Other(String),
}

impl App {
    /// The names that the standard lists.
    pub const LISTED: [&str; 3] = ["web", "ios", "android"];

    /// The name, as it was sent.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Web => "web",
            Self::Ios => "ios",
            Self::Android => "android",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for App {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

impl From<String> for App {
    fn from(name: String) -> Self {
        match name.as_str() {
            "web" => Self::Web,
            "ios" => Self::Ios,
            "android" => Self::Android,
            _ => Self::Other(name),
        }
    }
}

impl From<App> for String {
    fn from(app: App) -> Self {
        match app {
            App::Other(name) => name,
            App::Web | App::Ios | App::Android => app.as_str().to_owned(),
        }
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for App {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "App".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [{ "enum": Self::LISTED }, { "type": "string" }],
            "description": "One of the listed names; another one is accepted with a warning.",
        })
    }
}

/// The reply envelope: `ok` with `data`, or not `ok` with `error`; never both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ReplyEnvelope {
    /// The call that this answers.
    pub request_id: RequestId,
    /// True if the call succeeded.
    pub ok: bool,
    /// Answer of the tool; null if `ok` is false.
    pub data: Value,
    /// Warnings about a call that succeeded.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Error, if `ok` is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Time for which `data` is valid, in seconds (A8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// Reference to the evidence of this reply (A9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// True if this was a dry run, which changed nothing (A4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// True if this is the stored answer of an earlier call with the same key (A18).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// A warning about a call that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Warning {
    /// A change that the binder made to an argument.
    Issue(Issue),
    /// A remark of the tool.
    Remark {
        /// A short name of the remark, of the tool's own; not an error code.
        code: String,
        /// One sentence.
        message: String,
    },
}

/// Reference to the evidence of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Evidence id: names the record of this call.
    pub snapshot_id: SnapshotId,
    /// Sources that the answer depends on.
    pub sources: Vec<Source>,
    /// Newest checkpoint of the log when the reply was made. Keep it: it proves later that nothing before it was
    /// changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointRef>,
}

/// Short form of a checkpoint of the log. A caller who keeps it can prove later that nothing before it was removed or
/// changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct CheckpointRef {
    /// Number of records in the log.
    pub size: u64,
    /// Root hash over them.
    pub root: Digest,
}

/// One source of a reply: for a tool call the digest of the canonical JSON of its `data` (A9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Source {
    /// Kind of the source, such as `tool`, `rule_set`, `document`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the source.
    pub name: String,
    /// `sha256:` and the digest of the canonical JSON.
    pub hash: String,
    /// Time at which it was read, RFC 3339.
    pub ts: String,
}

impl ReplyEnvelope {
    /// Creates a successful reply.
    pub fn success(request_id: RequestId, data: Value) -> Self {
        Self {
            request_id,
            ok: true,
            data,
            warnings: Vec::new(),
            error: None,
            ttl_seconds: None,
            evidence: None,
            dry_run: false,
            replayed: false,
        }
    }

    /// Creates an error reply.
    pub fn failure(request_id: RequestId, error: ErrorBody) -> Self {
        Self {
            ok: false,
            error: Some(error),
            ..Self::success(request_id, Value::Null)
        }
    }

    /// Returns the HTTP status of this reply.
    pub fn http_status(&self) -> u16 {
        self.error
            .as_ref()
            .map_or(200, |error| error.code.http_status())
    }
}

impl Warning {
    /// Returns the code of the warning.
    pub fn code(&self) -> &str {
        match self {
            Self::Issue(issue) => issue.code.as_str(),
            Self::Remark { code, .. } => code,
        }
    }

    /// Returns the severity of the change that it warns of; a remark changed nothing.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Issue(issue) => issue.severity,
            Self::Remark { .. } => IssueCode::MoreIssues.severity(),
        }
    }
}

/// Real clients send null for a member they do not set; that must not be an error.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
