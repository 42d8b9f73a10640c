//! What the log keeps of a call or of an operator's act: one record, one leaf of the tree.
//!
//! A record is permanent, so it holds nothing that has to be forgotten: users appear as subjects
//! (keyed digests whose key can be destroyed), arguments and answers as salted commitments beside their
//! redacted form. What was really sent and answered is the [`Payload`], which is sealed and kept apart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::envelope::{ActorType, Client, Source, Warning};
use crate::error::ErrorBody;
use crate::error_code::ErrorCode;
use crate::id::{RequestId, SnapshotId};
use crate::record::{BindSummary, PhaseTimes};

/// One record of the log. Its canonical JSON is the leaf.
///
/// # Example
///
/// ```
/// use countersign_contract::evidence::{EvidenceRecord, RecordKind};
/// use countersign_contract::{SnapshotId, canonical};
///
/// let id = SnapshotId::new("ev_1")?;
/// let record = EvidenceRecord::new(RecordKind::Config, id, "2026-11-15T12:00:00Z");
/// let leaf = canonical::to_string(&serde_json::to_value(&record)?)?;
/// assert_eq!(leaf, r#"{"at":"2026-11-15T12:00:00Z","id":"ev_1","kind":"config","v":1}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EvidenceRecord {
    /// The version of this shape: 1.
    pub v: u8,
    /// What it is a record of.
    pub kind: RecordKind,
    /// Its name; `evidence.snapshot_id` of a reply.
    pub id: SnapshotId,
    /// When the call arrived or the act was done, RFC 3339.
    pub at: String,
    /// On whose behalf or about whom: a digest under the user's own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The call (A2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Who triggered it (A3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<RecordedActor>,
    /// Whose credential proved it, where that is somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<RecordedActor>,
    /// Who handed the right to call on, newest first, as the credential says (RFC 8693).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegation: Vec<RecordedActor>,
    /// The trace that the call is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The tool that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<RecordedTool>,
    /// Which revision of the policy decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_revision: Option<String>,
    /// What it was called with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RecordedArguments>,
    /// What the binder had to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<BindSummary>,
    /// The rule sets that the answer depends on: name and version (A15).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, String>,
    /// How its key stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<RecordedKey>,
    /// Whether nothing was to be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<RecordedReply>,
    /// The records that this one rests on; together they are a decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// What else the answer rests on, as the tool named it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Where the time went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseTimes>,
    /// Digest of the sealed payload's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Digest>,
    /// For how long the payload is kept.
    #[serde(default, skip_serializing_if = "Retention::is_standard")]
    pub retention: Retention,
    /// What an act that is no call was about: names and numbers, nothing personal.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub act: Value,
}

/// What a record is about. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A call that reached its tool, or was answered from an earlier one.
    Call,
    /// A call that was refused before its tool.
    Denial,
    /// A user's decision about a call.
    Approval,
    /// Somebody opened a sealed payload.
    Access,
    /// A user was erased.
    Erasure,
    /// The operator changed something: a start, a key, a hold, a rule set.
    Config,
    /// An operator said what became of a call that was in doubt.
    Resolution,
    /// A checkpoint of the log itself, as it was when this process took over.
    Checkpoint,
}

/// For how long a payload is kept; how long each is, is the operator's setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// Of no use soon: look-ups, refusals.
    Short,
    /// What a draft order rests on.
    #[default]
    Standard,
    /// What a dispute may ask for.
    Long,
}

/// An actor as the log names it: a person by subject, a program by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedActor {
    /// A person, a program that acts for one, or the platform itself.
    #[serde(rename = "type")]
    pub kind: ActorType,
    /// The subject of a person; the id of anything else.
    pub id: String,
}

/// The tool of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedTool {
    /// The canonical name; what was asked for where there is no such tool.
    pub name: String,
    /// Its own version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest of its declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// Digest of the program that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Digest>,
}

/// The arguments of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedArguments {
    /// Commits to what the tool was given; opened by the salt in the payload.
    pub commitment: Digest,
    /// The same with everything sensitive replaced; null where that is too large.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub redacted: Value,
}

/// The key of a record's call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedKey {
    /// Digest of the key under the user's own key.
    pub key: String,
    /// Which attempt this was; 0 where the call ran nothing.
    pub attempt: u32,
    /// How the key stands after this call: `succeeded`, `failed`, `released`, `in_doubt`, `replayed`,
    /// `refused`, `fenced`, or `unknown` where the store did not say whether it has committed.
    pub state: String,
}

/// How a record's call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedReply {
    /// None when it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Commits to `data`; opened by the salt in the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Digest>,
    /// For how long it could be relied on (A8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// When that window ends, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
}

/// A record that another one rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name.
    pub id: SnapshotId,
    /// The hash of its leaf, so that the name cannot be given to another record later.
    pub leaf: Digest,
}

/// What was really sent and answered. Sealed under the user's key, kept apart from the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// The version of this shape: 1.
    pub v: u8,
    /// On whose behalf.
    pub user_id: String,
    /// Who triggered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<crate::Actor>,
    /// The conversation or visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// BCP 47.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// ISO 4217.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// IANA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The application in front of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// What the clock said when the tool started, RFC 3339; a replay runs at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_at: Option<String>,
    /// What the tool was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Opening>,
    /// What it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Opening>,
    /// Why it did not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// What the caller was told besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// A value and the salt that opens the commitment to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// 32 bytes, lower-case hexadecimal.
    pub salt: String,
    /// The value itself.
    pub value: Value,
}

impl EvidenceRecord {
    /// A record with nothing but what every record has.
    pub fn new(kind: RecordKind, id: SnapshotId, at: impl Into<String>) -> Self {
        Self {
            v: 1,
            kind,
            id,
            at: at.into(),
            subject: None,
            request_id: None,
            actor: None,
            principal: None,
            delegation: Vec::new(),
            trace_id: None,
            tool: None,
            policy_revision: None,
            arguments: None,
            binding: None,
            rules: BTreeMap::new(),
            idempotency: None,
            dry_run: false,
            reply: None,
            links: Vec::new(),
            sources: Vec::new(),
            phases: None,
            payload: None,
            retention: Retention::default(),
            act: Value::Null,
        }
    }
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Call,
        Self::Denial,
        Self::Approval,
        Self::Access,
        Self::Erasure,
        Self::Config,
        Self::Resolution,
        Self::Checkpoint,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Denial => "denial",
            Self::Approval => "approval",
            Self::Access => "access",
            Self::Erasure => "erasure",
            Self::Config => "config",
            Self::Resolution => "resolution",
            Self::Checkpoint => "checkpoint",
        }
    }
}

impl Retention {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Short, Self::Standard, Self::Long];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Standard => "standard",
            Self::Long => "long",
        }
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands a reference to the field"
    )]
    fn is_standard(&self) -> bool {
        matches!(self, Self::Standard)
    }
}
