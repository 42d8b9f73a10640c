//! Declaration of a tool (B1): name, description, input, and its behaviour as data, so that executor, console, documents and provider
//! annotations all read the same.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error_code::ErrorCode;
use crate::evidence::Retention;
use crate::id::ToolName;
use crate::issue::Severity;
use crate::parameter::{Leniency, OnOptionalError, Parameter};

/// The whole declaration of a tool; it can be read without running anything.
///
/// # Example
///
/// ```
/// use countersign_contract::{Input, Parameter, ToolName, ToolSpec, ValueKind};
///
/// let spec = ToolSpec::new(ToolName::new("memory.search")?, "Finds notes by keyword.")
///     .input(Input::parameters([Parameter::new("query", ValueKind::String, "what to look for")]));
/// assert_eq!(spec.json_schema()["required"][0], "query");
/// # Ok::<(), countersign_contract::id::InvalidId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ToolSpec {
    /// Unique in a catalog.
    pub name: ToolName,
    /// For people, where the name alone is too terse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// For the model and for planners.
    pub description: String,
    /// The tool's own version or build hash; it is part of every record.
    pub version: String,
    /// What it takes.
    pub input: Input,
    /// What it answers in `data`, as JSON Schema, where it is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// How it behaves.
    pub behaviour: Behaviour,
}

/// What a tool takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum Input {
    /// Declared parameters.
    Parameters(Vec<Parameter>),
    /// JSON Schema 2020-12 with an object at its root: tools from a manifest bring this.
    Schema(Value),
    /// Nothing is declared: the arguments are only parsed, with a warning (B8).
    Undeclared,
}

/// What a tool does and what is asked of a call to it. All of it is data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// What it changes.
    pub effect: Effect,
    /// What that does to what was there before: a hint for hosts, which ask the user more often about what destroys.
    #[serde(skip_serializing_if = "Change::is_default")]
    pub change: Change,
    /// Whether the reply waits for its evidence.
    pub evidence: EvidenceRule,
    /// For how long its answer may be relied on (A8).
    pub ttl_seconds: Option<u32>,
    /// Whether the user must confirm first (A13).
    pub confirmation: Confirmation,
    /// What an approver may make smaller before the call runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub narrowing: Vec<Narrowing>,
    /// What it has to do with money that changes hands (A13).
    #[serde(skip_serializing_if = "Payment::is_none")]
    pub payment: Payment,
    /// Whether a call needs a key, and for how long its result is kept.
    pub idempotency: Idempotency,
    /// What is done about an external effect of which nobody knows whether it happened.
    pub recovery: Recovery,
    /// Whether a recorded call can be computed again and compared.
    pub replay: Replay,
    /// For how long the sealed payload of its records is kept.
    pub retention: Retention,
    /// How long a call may take, all attempts included.
    pub deadline_ms: u64,
    /// How far the binder may go.
    pub binding: BindPolicy,
}

/// What a call to a tool changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    #[default]
    Read,
    /// State that is committed together with the call's record.
    Write,
    /// Something elsewhere: an HTTP service, a payment, an e-mail.
    External,
}

/// What a call does to what was there before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It may replace or remove something, and each time it may be something else.
    #[default]
    Replaces,
    /// It only adds something.
    Adds,
    /// It sets something: the same call again changes nothing more.
    Sets,
}

impl Change {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands over a reference"
    )]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Effect {
    /// Every effect, in the order of their weight.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::External];

    /// The name on the wire and in policies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::External => "external",
        }
    }

    /// True if a repeat could change something a second time.
    pub const fn changes_something(self) -> bool {
        match self {
            Self::Read => false,
            Self::Write | Self::External => true,
        }
    }
}

/// Whether a reply waits until its record is durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EvidenceRule {
    /// Recorded with the next batch; the reply does not wait.
    #[default]
    Recorded,
    /// The reply leaves only after its evidence is durable, and names it (A14).
    Required,
}

/// Whether the user must confirm a call before it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// Never.
    #[default]
    Never,
    /// Every call: payments and sensitive operations. The answer counts for these arguments only.
    Always,
    /// Every call, and the answer counts for these terms: purchases whose price may still fall.
    Terms(Terms),
}

/// A parameter that an approver may make smaller, and in which way. What is not declared cannot be changed, and nothing can be made larger.
///
/// It goes with confirmations that count for all arguments; [`Terms`] have a ceiling already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Narrowing {
    /// JSON pointer to the parameter, through objects only.
    pub pointer: String,
    /// The way.
    pub to: Narrower,
}

/// The ways in which a parameter can be made smaller. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Narrower {
    /// A lower number, not below zero; or a lower decimal as text.
    Lower,
    /// Some of the items of a list, in their order.
    Fewer,
    /// Some of the values of a list in which the order means nothing, or some of the members of an object.
    Subset,
}

impl Narrowing {
    /// A number that may be lowered.
    pub fn lower(pointer: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            to: Narrower::Lower,
        }
    }

    /// A list of which items may be left out.
    pub fn fewer(pointer: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            to: Narrower::Fewer,
        }
    }

    /// A set of which values, or an object of which members, may be left out.
    pub fn subset(pointer: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            to: Narrower::Subset,
        }
    }
}

/// What a user agrees to, where that is less than every argument.
///
/// # Example
///
/// ```
/// use countersign_contract::tool::{AmountUnit, Ceiling, Confirmation, Terms};
///
/// let confirmation = Confirmation::Terms(Terms {
///     exact: vec!["/merchant".into(), "/items".into()],
///     ceiling: Ceiling {
///         amount: "/total".into(),
///         currency: "/currency".into(),
///         unit: AmountUnit::Major,
///     },
/// });
/// assert!(confirmation.is_asked());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// JSON pointers into the arguments, of what has to stay exactly as it was. What no pointer names
    /// may change.
    pub exact: Vec<String>,
    /// What may fall and not rise.
    pub ceiling: Ceiling,
}

/// An amount that a user agrees to pay at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// JSON pointer to the amount: a number, or a decimal as text.
    pub amount: String,
    /// JSON pointer to its currency, which has to stay as it was.
    pub currency: String,
    /// How the amount is written.
    #[serde(default, skip_serializing_if = "AmountUnit::is_major")]
    pub unit: AmountUnit,
}

/// How an amount of money is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AmountUnit {
    /// `12.50` is twelve and a half euros.
    #[default]
    Major,
    /// `1250` is twelve and a half euros: a whole number of the smallest unit.
    Minor,
}

/// What a tool has to do with money that changes hands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Payment {
    /// Nothing.
    #[default]
    None,
    /// It prepares a payment that a person still has to make: a draft order, a payment link.
    Intent,
    /// It takes the money. No agent may, so no catalog takes such a tool.
    Capture,
}

impl Confirmation {
    /// True if the user is asked at all.
    pub const fn is_asked(&self) -> bool {
        match self {
            Self::Never => false,
            Self::Always | Self::Terms(_) => true,
        }
    }
}

impl AmountUnit {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands a reference to the field"
    )]
    pub(crate) fn is_major(&self) -> bool {
        match self {
            Self::Major => true,
            Self::Minor => false,
        }
    }
}

impl Payment {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands a reference to the field"
    )]
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// The key of a call: whether it is needed, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Idempotency {
    /// Whether a call without a key is accepted.
    pub key: KeyRule,
    /// JSON pointers to the arguments that make two calls the same one, where a key is derived; all arguments if it is empty. A
    /// call that has the same values there and differs elsewhere conflicts with the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// For how long, beyond its window of validity, a repeat is answered with the first result; 24
    /// hours unless said otherwise (A20).
    pub retention_seconds: u64,
    /// Failures that are final: a repeat gets them again instead of a new try.
    pub final_codes: Vec<ErrorCode>,
    /// How often a call that failed without an effect may be tried again under one key.
    pub attempts_max: u32,
    /// How long a second caller of a running key waits for the first, in milliseconds.
    pub join_ms: u64,
}

/// What is done about an external effect ([`Effect::External`]) of which nobody knows whether it
/// happened, because its owner died or its answer was lost. A [`Effect::Write`] needs none: it is
/// committed with its call or not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The call is in doubt until an operator resolves it. Nothing runs blindly.
    #[default]
    Operator,
    /// Running it twice does no harm: the next caller with the key runs it again.
    Retry,
    /// The downstream service honours a key: the next caller runs it again with the same one, as long
    /// as the service remembers it.
    DownstreamKey {
        /// For how long the service remembers; four fifths of it are used.
        window_seconds: u64,
    },
    /// The tool can look up whether it happened.
    Reconcile {
        /// How long a request may be on its way: a "not found" counts only after that.
        grace_seconds: u64,
    },
}

/// Whether a recorded call can be computed again and compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Replay {
    /// It asks the world: only its record is verified.
    #[default]
    Recorded,
    /// The same arguments, rule sets and time give the same answer.
    Pure {
        /// JSON pointers into `data` that differ each time all the same, such as a quote's id.
        #[serde(default)]
        volatile: Vec<String>,
    },
}

/// Whether a call needs a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeyRule {
    /// With a key at most once, without one as often as it is sent.
    #[default]
    Optional,
    /// A call without a key is refused.
    Required,
    /// A call without a key gets one from its user, tool and arguments.
    Derive,
}

/// How far the binder may go for a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BindPolicy {
    /// `strict` accepts only JSON that the declaration accepts as it is.
    pub leniency: Leniency,
    /// The furthest change that may run; beyond it the call is refused.
    pub max_severity: Severity,
    /// What becomes of a member that the declaration does not know.
    pub unknown_keys: UnknownKeys,
    /// What becomes of a call in which an optional parameter cannot be read.
    #[serde(skip_serializing_if = "OnOptionalError::is_refuse")]
    pub on_optional_error: OnOptionalError,
}

/// What becomes of a member that the declaration does not know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnknownKeys {
    /// Refused, with a suggestion.
    #[default]
    Refuse,
    /// Left out, with an issue.
    Drop,
    /// Kept where the schema does not forbid it: what JSON Schema itself says of a schema that is
    /// silent. For binding against a bare schema; a tool should know what it takes.
    Keep,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            effect: Effect::default(),
            change: Change::default(),
            evidence: EvidenceRule::default(),
            ttl_seconds: None,
            confirmation: Confirmation::default(),
            narrowing: Vec::new(),
            payment: Payment::default(),
            idempotency: Idempotency::default(),
            recovery: Recovery::default(),
            replay: Replay::default(),
            retention: Retention::default(),
            deadline_ms: 30_000,
            binding: BindPolicy::default(),
        }
    }
}

impl Default for Idempotency {
    fn default() -> Self {
        Self {
            key: KeyRule::default(),
            fields: Vec::new(),
            retention_seconds: 24 * 60 * 60,
            final_codes: Vec::new(),
            attempts_max: 10,
            join_ms: 5_000,
        }
    }
}

impl Default for BindPolicy {
    fn default() -> Self {
        Self {
            leniency: Leniency::Lenient,
            max_severity: Severity::Lossy,
            unknown_keys: UnknownKeys::default(),
            on_optional_error: OnOptionalError::default(),
        }
    }
}

impl Input {
    /// Declared parameters.
    pub fn parameters(parameters: impl IntoIterator<Item = Parameter>) -> Self {
        Self::Parameters(parameters.into_iter().collect())
    }

    /// The JSON Schema of the arguments; an undeclared input takes any object.
    pub fn json_schema(&self) -> Value {
        match self {
            Self::Parameters(parameters) => crate::schema::of_parameters(parameters),
            Self::Schema(schema) => schema.clone(),
            Self::Undeclared => serde_json::json!({ "type": "object" }),
        }
    }
}

impl ToolSpec {
    /// A read with no parameters; the methods below refine it.
    pub fn new(name: ToolName, description: impl Into<String>) -> Self {
        Self {
            name,
            title: None,
            description: description.into(),
            version: "0".to_owned(),
            input: Input::Parameters(Vec::new()),
            output: None,
            behaviour: Behaviour::default(),
        }
    }

    /// Sets the input.
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Sets the version or build hash.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets the behaviour.
    pub fn behaviour(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    /// The JSON Schema of its arguments (B18).
    pub fn json_schema(&self) -> Value {
        self.input.json_schema()
    }
}
