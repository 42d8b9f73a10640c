//! Declaration of a tool's parameter: the friendly front of the schema tree (B2–B5).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The ten kinds of value (B3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// Text, never promoted to anything else.
    String,
    /// True or false.
    Boolean,
    /// A whole number of 64 bits.
    Integer,
    /// A finite number.
    Number,
    /// An object; `fields` may describe its members.
    Object,
    /// A list of anything.
    Array,
    /// A point in time, RFC 3339.
    Timestamp,
    /// An absolute URI.
    Uri,
    /// One of `allowed`.
    EnumToken,
    /// The id of an attachment of the conversation.
    AttachmentReference,
}

impl ValueKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::String,
        Self::Boolean,
        Self::Integer,
        Self::Number,
        Self::Object,
        Self::Array,
        Self::Timestamp,
        Self::Uri,
        Self::EnumToken,
        Self::AttachmentReference,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::Array => "array",
            Self::Timestamp => "timestamp",
            Self::Uri => "uri",
            Self::EnumToken => "enum_token",
            Self::AttachmentReference => "attachment_reference",
        }
    }
}

/// Number of values, and whether the parameter may be left out (B4).
///
/// Whether a parameter is required follows from its cardinality alone, so an optional parameter
/// that is required cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Cardinality {
    /// Exactly one.
    One,
    /// One or none.
    Optional,
    /// A list.
    List {
        /// True if the list is required.
        required: bool,
    },
    /// An object from names to values.
    Map {
        /// True if the map is required.
        required: bool,
    },
}

impl Cardinality {
    /// True if the parameter must be given.
    pub const fn is_required(self) -> bool {
        match self {
            Self::One => true,
            Self::Optional => false,
            Self::List { required } | Self::Map { required } => required,
        }
    }
}

/// Allowed values of a string (B5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct AllowedValues {
    /// The members, in the order in which they are shown.
    pub values: Vec<String>,
    /// Rule for other spellings.
    #[serde(default)]
    pub case: CaseRule,
    /// Other names of a member: `(member, alias)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<(String, String)>,
}

/// Rule for the spelling of enum values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CaseRule {
    /// Case, spaces, `_` and `-` are folded, with an issue.
    #[default]
    Fold,
    /// Only the exact spelling.
    Exact,
}

/// Sensitivity of a parameter's values: decides where they may be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// Nothing is declared. Detectors look for personal data before every sink.
    #[default]
    Public,
    /// Says something about a person (name, address, phone): redacted before every sink (A21).
    Personal,
    /// A credential or an identity number: redacted, and never shown again.
    Secret,
}

/// Leniency of the binder for one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Leniency {
    /// Every lossless repair, each with an issue.
    Lenient,
    /// The value must already have its declared type: for money, ids and phone numbers.
    Strict,
}

/// Handling of a call in which an optional parameter cannot be read (B9). An unreadable required parameter always
/// refuses the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnOptionalError {
    /// The call is refused.
    #[default]
    Refuse,
    /// The tool runs: the parameter is absent, and the tool gets the error and the original text.
    Tell,
}

impl OnOptionalError {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Tell => "tell",
        }
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands a reference to the field"
    )]
    pub(crate) fn is_refuse(&self) -> bool {
        match self {
            Self::Refuse => true,
            Self::Tell => false,
        }
    }
}

/// One declared parameter.
///
/// # Example
///
/// ```
/// use countersign_contract::{Cardinality, Parameter, ValueKind};
/// use serde_json::json;
///
/// let limit = Parameter::new("limit", ValueKind::Integer, "how many snippets at most")
///     .optional()
///     .default_value(3)
///     .range(Some(1.into()), Some(50.into()));
/// assert_eq!(limit.cardinality, Cardinality::Optional);
/// assert_eq!(
///     limit.json_schema(),
///     json!({"type": "integer", "description": "how many snippets at most", "default": 3,
///            "minimum": 1, "maximum": 50, "x-kind": "integer"})
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Parameter {
    /// Name of the member.
    pub name: String,
    /// Kind of the value.
    pub kind: ValueKind,
    /// Number of values, and whether it may be left out.
    pub cardinality: Cardinality,
    /// Description for the model and for people.
    pub description: String,
    /// Allowed values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<AllowedValues>,
    /// Members of an object; empty if any members are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Parameter>,
    /// Default, filled in by the executor if the parameter is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Example of a value, as a model should send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// Bounds on the value.
    #[serde(default, skip_serializing_if = "Bounds::is_empty")]
    pub bounds: Bounds,
    /// Other names that a model may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Sensitivity of its values.
    #[serde(default)]
    pub sensitivity: Sensitivity,
    /// True if its numbers say nothing about a person, so that the permanent record may show them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
    /// Leniency, if it differs from the tool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leniency: Option<Leniency>,
    /// True if a decimal may be cut to an integer, with an issue. Off by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncate: bool,
    /// Handling of a call in which it cannot be read, if it differs from the tool's. `Tell` is for optional
    /// parameters only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_optional_error: Option<OnOptionalError>,
}

/// Bounds on one value, or on each item of a list or map.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Bounds {
    /// Minimum of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<f64>"))]
    pub minimum: Option<serde_json::Number>,
    /// Maximum of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<f64>"))]
    pub maximum: Option<serde_json::Number>,
    /// Minimum length of a string, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Maximum length of a string, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Regular expression that must match somewhere in the string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Minimum number of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Maximum number of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
}

impl Bounds {
    /// True if nothing is bounded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Parameter {
    /// Creates a required parameter with one value; the methods below refine it.
    pub fn new(name: impl Into<String>, kind: ValueKind, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            cardinality: Cardinality::One,
            description: description.into(),
            allowed: None,
            fields: Vec::new(),
            default: None,
            example: None,
            bounds: Bounds::default(),
            aliases: Vec::new(),
            sensitivity: Sensitivity::Public,
            harmless: false,
            leniency: None,
            truncate: false,
            on_optional_error: None,
        }
    }

    /// Creates a parameter that takes one of these strings, in any case.
    pub fn one_of<T: Into<String>>(
        name: impl Into<String>,
        values: impl IntoIterator<Item = T>,
        description: impl Into<String>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        let mut parameter = Self::new(name, ValueKind::EnumToken, description);
        parameter.allowed = Some(AllowedValues {
            values,
            case: CaseRule::Fold,
            aliases: Vec::new(),
        });
        parameter
    }

    /// Makes it optional.
    pub fn optional(mut self) -> Self {
        self.cardinality = match self.cardinality {
            Cardinality::One | Cardinality::Optional => Cardinality::Optional,
            Cardinality::List { .. } => Cardinality::List { required: false },
            Cardinality::Map { .. } => Cardinality::Map { required: false },
        };
        self
    }

    /// Makes it a required list.
    pub fn list(mut self) -> Self {
        self.cardinality = Cardinality::List {
            required: self.cardinality.is_required(),
        };
        self
    }

    /// Makes it a required object from names to values.
    pub fn map(mut self) -> Self {
        self.cardinality = Cardinality::Map {
            required: self.cardinality.is_required(),
        };
        self
    }

    /// Sets the default, which the executor fills in if the parameter is absent; makes it optional.
    pub fn default_value(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self.optional()
    }

    /// Sets an example, as a model should send it.
    pub fn example(mut self, value: impl Into<Value>) -> Self {
        self.example = Some(value.into());
        self
    }

    /// Sets the fields of the object.
    pub fn fields(mut self, fields: Vec<Self>) -> Self {
        self.fields = fields;
        self
    }

    /// Sets the minimum and the maximum of a number.
    pub fn range(
        mut self,
        minimum: Option<serde_json::Number>,
        maximum: Option<serde_json::Number>,
    ) -> Self {
        self.bounds.minimum = minimum;
        self.bounds.maximum = maximum;
        self
    }

    /// Sets the sensitivity: personal, or a secret.
    pub fn sensitivity(mut self, sensitivity: Sensitivity) -> Self {
        self.sensitivity = sensitivity;
        self
    }

    /// Marks its numbers as not personal, such as a count or a limit. The permanent record shows them.
    pub fn harmless(mut self) -> Self {
        self.harmless = true;
        self
    }

    /// Requires the declared type: the binder converts nothing.
    pub fn strict(mut self) -> Self {
        self.leniency = Some(Leniency::Strict);
        self
    }

    /// Allows cutting a decimal to an integer, with an issue.
    pub fn truncate(mut self) -> Self {
        self.truncate = true;
        self
    }

    /// Sets the handling of a call in which it cannot be read.
    pub fn on_optional_error(mut self, rule: OnOptionalError) -> Self {
        self.on_optional_error = Some(rule);
        self
    }

    /// True if the parameter must be given.
    pub const fn is_required(&self) -> bool {
        self.cardinality.is_required()
    }

    /// Returns the part of the tool's JSON Schema for this parameter.
    pub fn json_schema(&self) -> Value {
        crate::schema::of_parameter(self)
    }
}
