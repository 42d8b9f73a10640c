//! Declaration of a tool (B1): name, description, input, and its behaviour as data, so that executor, console, documents and provider
//! annotations all read the same.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error_code::ErrorCode;
use crate::evidence::Retention;
use crate::id::ToolName;
use crate::issue::Severity;
use crate::parameter::{Leniency, OnOptionalError, Parameter};

/// The declaration of a tool. It can be read without running anything.
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
    /// Name, unique in a catalog.
    pub name: ToolName,
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model and for planners.
    pub description: String,
    /// The tool's own version or build hash; it is part of every record.
    pub version: String,
    /// Arguments.
    pub input: Input,
    /// JSON Schema of `data`, if it is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Behaviour of the tool.
    pub behaviour: Behaviour,
}

/// Declaration of the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum Input {
    /// Declared parameters.
    Parameters(Vec<Parameter>),
    /// JSON Schema 2020-12 with an object at its root. Tools from a manifest use this.
    Schema(Value),
    /// Nothing is declared: the arguments are only parsed, with a warning (B8).
    Undeclared,
}

/// Behaviour of a tool, and the rules for calls to it. All of it is data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// Effect of a call.
    pub effect: Effect,
    /// Kind of change, as a hint for hosts: they ask the user more often about destructive tools.
    #[serde(skip_serializing_if = "Change::is_default")]
    pub change: Change,
    /// False if a call reaches nothing beyond the data of the service, as a hint for hosts. `None` if it follows from the effect: true for
    /// an external one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    /// Rule whether the reply waits for its evidence.
    pub evidence: EvidenceRule,
    /// Time for which an answer is valid, in seconds (A8).
    pub ttl_seconds: Option<u32>,
    /// Confirmation by the user before a call (A13).
    pub confirmation: Confirmation,
    /// Parameters that an approver may make smaller before the call runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub narrowing: Vec<Narrowing>,
    /// Relation to payments (A13).
    #[serde(skip_serializing_if = "Payment::is_none")]
    pub payment: Payment,
    /// Rules for idempotency keys and stored answers.
    pub idempotency: Idempotency,
    /// Recovery of an external effect whose outcome is unknown.
    pub recovery: Recovery,
    /// Rule whether a recorded call can be computed again and compared.
    pub replay: Replay,
    /// Retention class of the sealed payloads.
    pub retention: Retention,
    /// Maximum time of a call in milliseconds, all attempts included.
    pub deadline_ms: u64,
    /// Limits for repairs by the binder.
    pub binding: BindPolicy,
}

/// Effect of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing.
    #[default]
    Read,
    /// Changes state in the store, which is committed together with the call's record.
    Write,
    /// Changes something in another system: an HTTP service, a payment, an e-mail.
    External,
}

/// Kind of change that a call makes to existing data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It may replace or remove data, and a repeat may change something else.
    #[default]
    Replaces,
    /// It only adds something.
    Adds,
    /// It sets a value: the same call again changes nothing more.
    Sets,
    /// The server hints that it changes nothing, and no operator has confirmed it. Such a call is authorized like one that changes
    /// something; a repeat without a key is made again, because its answer may be another one by now.
    Nothing,
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

/// Rule whether a reply waits until its record is durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EvidenceRule {
    /// The record is written with the next batch; the reply does not wait.
    #[default]
    Recorded,
    /// The reply is sent only after its evidence is durable, and names it (A14).
    Required,
}

/// Confirmation of calls by the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// No confirmation.
    #[default]
    Never,
    /// Every call: payments and sensitive operations. The answer counts for these arguments only.
    Always,
    /// Every call, and the answer counts for these terms: purchases whose price may still fall.
    Terms(Terms),
}

/// A parameter that an approver may make smaller, and how. Other parameters cannot be changed, and nothing can be
/// made larger.
///
/// It goes with confirmations that count for all arguments; [`Terms`] have a ceiling already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Narrowing {
    /// JSON pointer to the parameter, through objects only.
    pub pointer: String,
    /// Way in which it can be made smaller.
    pub to: Narrower,
}

/// Ways in which a parameter can be made smaller. Closed.
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
    /// Creates a rule for a number that may be lowered.
    pub fn lower(pointer: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            to: Narrower::Lower,
        }
    }

    /// Creates a rule for a list from which items may be removed.
    pub fn fewer(pointer: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            to: Narrower::Fewer,
        }
    }

    /// Creates a rule for a set or an object from which values or members may be removed.
    pub fn subset(pointer: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            to: Narrower::Subset,
        }
    }
}

/// Terms that a user agrees to, if that is less than every argument.
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
    /// JSON pointers to the arguments that must not change. Other arguments may change.
    pub exact: Vec<String>,
    /// Amount that may fall but not rise.
    pub ceiling: Ceiling,
}

/// Maximum amount that a user agrees to pay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// JSON pointer to the amount: a number, or a decimal as text.
    pub amount: String,
    /// JSON pointer to its currency, which has to stay as it was.
    pub currency: String,
    /// Unit of the amount.
    #[serde(default, skip_serializing_if = "AmountUnit::is_major")]
    pub unit: AmountUnit,
}

/// Unit of an amount of money.
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

/// Relation of a tool to payments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Payment {
    /// No relation to payments.
    #[default]
    None,
    /// It prepares a payment that a person still has to make: a draft order, a payment link.
    Intent,
    /// It takes the money. Agents may not do that, so no catalog accepts such a tool.
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

/// Rules for idempotency keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Idempotency {
    /// Rule whether a call needs a key.
    pub key: KeyRule,
    /// JSON pointers to the arguments that identify a call, if a key is derived; all arguments if it is empty. A call
    /// with the same values there and other values elsewhere conflicts with the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Time for which a repeat gets the stored answer after its validity, in seconds; 24 hours by default (A20).
    pub retention_seconds: u64,
    /// Error codes that are final: a repeat gets the same error again and does not run.
    pub final_codes: Vec<ErrorCode>,
    /// Maximum number of attempts under one key, if a call fails without an effect.
    pub attempts_max: u32,
    /// Maximum time that a second caller of a running key waits for the first, in milliseconds.
    pub join_ms: u64,
}

/// Recovery of an external effect ([`Effect::External`]) whose outcome is unknown, because its owner died or its
/// answer was lost. An [`Effect::Write`] needs none: it is committed with its call or not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The call is in doubt until an operator resolves it. Nothing runs again by itself.
    #[default]
    Operator,
    /// Running it twice does no harm: the next caller with the key runs it again.
    Retry,
    /// The downstream service honours an idempotency key: the next caller runs it again with the same key, as long as
    /// the service remembers it.
    DownstreamKey {
        /// Time for which the service remembers keys, in seconds; four fifths of it are used.
        window_seconds: u64,
    },
    /// The tool can look up whether it happened.
    Reconcile {
        /// Maximum time that a request can be on its way, in seconds: "not found" counts only after that.
        grace_seconds: u64,
    },
}

/// Rule whether a recorded call can be computed again and compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Replay {
    /// The answer depends on the outside world: only its record is verified.
    #[default]
    Recorded,
    /// The same arguments, rule sets and time give the same answer.
    Pure {
        /// JSON pointers into `data` whose values differ each time, such as the id of a quote.
        #[serde(default)]
        volatile: Vec<String>,
    },
}

/// Rule whether a call needs an idempotency key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeyRule {
    /// With a key the call runs at most once, without one each time it is sent.
    #[default]
    Optional,
    /// A call without a key is refused.
    Required,
    /// A call without a key gets one from its user, tool and arguments.
    Derive,
}

/// Limits for repairs by the binder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BindPolicy {
    /// `strict` accepts only valid JSON that matches the declaration.
    pub leniency: Leniency,
    /// Highest severity of a repair that may run; beyond it the call is refused.
    pub max_severity: Severity,
    /// Handling of unknown members.
    pub unknown_keys: UnknownKeys,
    /// Handling of a call in which an optional parameter cannot be read.
    #[serde(skip_serializing_if = "OnOptionalError::is_refuse")]
    pub on_optional_error: OnOptionalError,
}

/// Handling of unknown members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnknownKeys {
    /// Refused, with a suggestion.
    #[default]
    Refuse,
    /// Left out, with an issue.
    Drop,
    /// Kept, unless the schema forbids it, as JSON Schema does by default. For binding against a bare schema; a tool
    /// should declare its arguments.
    Keep,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            effect: Effect::default(),
            change: Change::default(),
            open_world: None,
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
    /// Creates a read-only tool without parameters; the methods below refine it.
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
