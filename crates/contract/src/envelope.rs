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

/// The request envelope, as it arrives: every member may be missing, null counts as missing.
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
    /// Unique along the whole chain (A2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Who triggered the call (A3); must agree with the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// On whose behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The conversation or visit that the call belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// BCP 47, such as `en-US`: how numbers and dates are read and messages written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// ISO 4217, such as `USD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// IANA, such as `America/Los_Angeles`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The application in front of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// Show what would happen, change nothing (A4).
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<bool>"))]
    pub dry_run: bool,
    /// Makes a write happen at most once for this user, tool and key (A5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Carried on to every downstream call (A6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// Who triggered a call; responsibility is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// A person, a program that acts for one, or the platform itself.
    #[serde(rename = "type")]
    pub kind: ActorType,
    /// Who exactly.
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

/// The application in front of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its platform.
    pub app: App,
    /// Its version.
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
    /// Whether the call did what it was asked.
    pub ok: bool,
    /// What the tool answered; null when not `ok`.
    pub data: Value,
    /// What the caller should know although it worked.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Why it did not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// For how long `data` may be relied on (A8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// What proves it later (A9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Whether nothing was changed because the caller asked for a dry run (A4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Whether this is the stored answer of an earlier call with the same key (A18).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// Something the caller should know although the call worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Warning {
    /// The binder changed an argument.
    Issue(Issue),
    /// The tool has something to say.
    Remark {
        /// A short name of the remark, of the tool's own; not an error code.
        code: String,
        /// One sentence.
        message: String,
    },
}

/// Where the proof of a reply is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The snapshot that groups the records behind this reply.
    pub snapshot_id: SnapshotId,
    /// What it rests on.
    pub sources: Vec<Source>,
    /// The newest checkpoint of the log when the reply was made, for the caller to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointRef>,
}

/// A checkpoint of the log, in short: whoever keeps it can show later that nothing before it was cut or
/// changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct CheckpointRef {
    /// How many records the log had.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
}

/// One source of a reply: for a tool call the digest of the canonical JSON of its `data` (A9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Source {
    /// Such as `tool`, `rule_set`, `document`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which one.
    pub name: String,
    /// `sha256:` and the digest of the canonical JSON.
    pub hash: String,
    /// When it was taken, RFC 3339.
    pub ts: String,
}

impl ReplyEnvelope {
    /// A reply that worked.
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

    /// A reply that did not.
    pub fn failure(request_id: RequestId, error: ErrorBody) -> Self {
        Self {
            ok: false,
            error: Some(error),
            ..Self::success(request_id, Value::Null)
        }
    }

    /// The HTTP status that this reply travels with.
    pub fn http_status(&self) -> u16 {
        self.error
            .as_ref()
            .map_or(200, |error| error.code.http_status())
    }
}

impl Warning {
    /// The code, whichever kind of warning it is.
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
