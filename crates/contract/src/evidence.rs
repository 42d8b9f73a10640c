//! A record of the evidence log: one call or one operator's act, one leaf of the tree.
//!
//! A record is permanent, so it has only harmless content: ids that the gateway made, keyed digests whose key is destroyed when the user is
//! erased, salted commitments, and values that a declaration limits to a closed list. Everything else is in the [`Payload`], which is
//! sealed under the user's key and kept apart.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::envelope::{ActorType, Client, Source, Warning};
use crate::error::ErrorBody;
use crate::error_code::ErrorCode;
use crate::id::{RequestId, SnapshotId};
use crate::record::{BindSummary, PhaseTimes};
use crate::trace::Trace;

mod exact;
mod leaf;
mod link;
mod refusals;

pub use exact::Exact;
pub use leaf::LeafError;
pub use link::{Freshness, Link, LinkRole};
pub use refusals::CountedRefusals;

/// The version of records and payloads that is written. Version 1 is still read.
pub const VERSION: u8 = 2;

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
/// assert_eq!(leaf, r#"{"at":"2026-11-15T12:00:00Z","id":"ev_1","kind":"config","v":2}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EvidenceRecord {
    /// The version of this shape: 2, or 1 in records of older programs.
    pub v: u8,
    /// Kind of the record.
    pub kind: RecordKind,
    /// Id of the record; `evidence.snapshot_id` of a reply.
    pub id: SnapshotId,
    /// Time at which the call arrived or the act was done, RFC 3339.
    pub at: String,
    /// User that the record is about: a digest under the user's own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Id of the call (A2): the request id if the gateway made it; `rq_` and a digest under the user's key if the
    /// caller chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Actor that triggered the call (A3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<RecordedActor>,
    /// Holder of the credential, if it is not the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<RecordedActor>,
    /// Actors that delegated the right to call, newest first, from the credential (RFC 8693).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegation: Vec<RecordedActor>,
    /// The credential that proved the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<RecordedCredential>,
    /// Version 1 only: the trace that the call is part of. Version 2 has it in the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Tool of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<RecordedTool>,
    /// Revision of the policy that decided: the digest of its text if it comes from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_revision: Option<String>,
    /// The arguments of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RecordedArguments>,
    /// Result of binding: status and number of repairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<BindSummary>,
    /// Rule sets that the answer depends on: name and version (A15).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, String>,
    /// Rule sets of the records that this one depends on: name and versions (A15).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inherited_rules: BTreeMap<String, BTreeSet<String>>,
    /// State of the idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<RecordedKey>,
    /// True for a dry run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Commitment to the text that a person was shown before they answered; the payload opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Digest>,
    /// Result of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<RecordedReply>,
    /// Earlier records that this call depends on or looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Version 1 only: other sources that the tool named. Version 2 has them in the payload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Time in each phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseTimes>,
    /// Digest of the sealed payload's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Digest>,
    /// Retention class of the payload.
    #[serde(default, skip_serializing_if = "Retention::is_standard")]
    pub retention: Retention,
    /// Details of an act that is not a call: ids, counts and words from a closed list.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub act: Value,
}

/// Kind of a record. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A call that reached its tool, or was answered from an earlier one.
    Call,
    /// A call that was refused before its tool ran, or a denied act.
    Denial,
    /// A user's decision about a call.
    Approval,
    /// A person opened a sealed payload, or a caller read a resource or a prompt of an upstream.
    Access,
    /// A user was erased.
    Erasure,
    /// The operator changed something: a start, a key, a hold, a rule set.
    Config,
    /// A call is about to change something in another system.
    Intent,
    /// An operator resolved a call that was in doubt.
    Resolution,
    /// A checkpoint of the log, as it was when this process took over signing.
    Checkpoint,
}

/// Retention class of a payload. The operator sets the time of each class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// Look-ups and refusals.
    Short,
    /// Quotes and other answers that draft orders depend on.
    #[default]
    Standard,
    /// Orders and payments, which a dispute may need.
    Long,
}

/// An actor in the log: a person by a digest, a program by the id that its credential proves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedActor {
    /// A person, a program that acts for one, or the platform itself.
    #[serde(rename = "type")]
    pub kind: ActorType,
    /// The id of a proved program; else a digest under the user's key.
    pub id: String,
}

/// The credential behind a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordedCredential {
    /// An API key of this gateway.
    ApiKey {
        /// The id of the key, never the key itself.
        id: String,
    },
    /// A token of an issuer.
    Token {
        /// The issuer, as the policy names it.
        issuer: String,
        /// `jti`, as a digest under the user's key; `None` if the token has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
}

/// The tool of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedTool {
    /// Canonical name, or the name in the call if there is no such tool.
    pub name: String,
    /// Its own version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest of its declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// SHA-256 of the executable that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Digest>,
}

/// The arguments of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedArguments {
    /// Commitment to the arguments that the tool got; `None` if they could not be bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Digest>,
    /// Commitment to the text that the caller sent; `None` if it is the same text, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Digest>,
    /// Values that the declaration makes harmless: choices, booleans, and numbers that it calls public.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub public: Value,
    /// Version 1 only: the arguments with everything sensitive replaced.
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
    /// Number of the attempt; 0 if nothing ran.
    pub attempt: u32,
    /// State of the key after this call: `succeeded`, `failed`, `released`, `abandoned` (as if its owner had died),
    /// `in_doubt`, `replayed`, `refused`, `fenced`, or `unknown` if the store did not confirm the commit.
    pub state: String,
}

/// Result of a call in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedReply {
    /// Error code; `None` if the call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Commitment to `data`; the salt in the payload opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Digest>,
    /// Time for which the answer was valid, in seconds (A8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// End of that validity, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
}

/// Contents of a call: what was sent, shown and answered. Sealed under the user's key and stored apart from the log.
///
/// Every commitment of the record is opened with a salt that is derived from `salt` and the name of the
/// value, so that one value can be shown to a stranger without giving the others away.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// The version of this shape: 2.
    pub v: u8,
    /// 32 random bytes, lower-case hexadecimal.
    pub salt: String,
    /// User for whom the call was made.
    pub user_id: String,
    /// Actor that triggered the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<crate::Actor>,
    /// The request id that the caller chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Tool name in the call, if there is no such tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// `jti` of the token that proved the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// Id of the conversation or visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Locale, BCP 47.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Currency, ISO 4217.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Time zone, IANA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The application in front of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// The span of the call, and the caller's span above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Clock time at which the tool started, RFC 3339. A replay runs at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_at: Option<String>,
    /// Arguments that the tool got.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub arguments: Option<Exact>,
    /// The arguments as the caller sent them, byte for byte; `None` if that is the text of `arguments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The arguments with everything sensitive replaced; `None` if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<Value>,
    /// Answer of the tool.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub data: Option<Exact>,
    /// Error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Warnings of the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Other sources that the tool named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Text that a person was shown before they answered.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub shown: Option<Exact>,
    /// Reason of the operator, in their own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A value and the salt that opens the commitment to it.
///
/// Exactly one of `value` and `text` is there: the text where the committed bytes are not canonical JSON, such as
/// arguments with an integer beyond 2^53 or the raw text of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// 32 bytes, lower-case hexadecimal.
    pub salt: String,
    /// The value, whose canonical JSON was committed to.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub value: Option<Value>,
    /// The committed bytes themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Reads `null` as a value; only an absent member is `None`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl EvidenceRecord {
    /// Creates a record with the members that every record has.
    pub fn new(kind: RecordKind, id: SnapshotId, at: impl Into<String>) -> Self {
        Self {
            v: VERSION,
            kind,
            id,
            at: at.into(),
            subject: None,
            request_id: None,
            actor: None,
            principal: None,
            delegation: Vec::new(),
            credential: None,
            trace_id: None,
            tool: None,
            policy_revision: None,
            arguments: None,
            binding: None,
            rules: BTreeMap::new(),
            inherited_rules: BTreeMap::new(),
            idempotency: None,
            dry_run: false,
            shown: None,
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
    pub const ALL: [Self; 9] = [
        Self::Call,
        Self::Denial,
        Self::Approval,
        Self::Access,
        Self::Erasure,
        Self::Config,
        Self::Intent,
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
            Self::Intent => "intent",
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
