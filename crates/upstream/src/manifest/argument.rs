//! An argument of a tool: its place in the request, and the operator's settings on top of the schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use countersign_contract::parameter::{Leniency, OnOptionalError, Sensitivity};
use countersign_contract::{Parameter, ValueKind};

/// An argument of a tool. Every member is optional.
///
/// An argument without a place goes where it is expected: into the path if the template names it, into the query of `GET`, `HEAD` and
/// `DELETE`, else into the body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArgumentEntry {
    /// Place of the argument in the request.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Name in the request, if it differs from that of the argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Serialization of lists and objects, as OpenAPI defines it. The default is `simple` for paths and headers, `form` for queries,
    /// cookies and form bodies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<Style>,
    /// True if each item of a list or object is a parameter of its own. The default is true for `form` and `deepObject`, else false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explode: Option<bool>,
    /// True if the reserved characters `:/?[]@!$'()*,=` of a query value are sent as they are. Those that would begin another parameter or
    /// end the query (`&`, `;`, `#`, `+`) are always escaped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_reserved: Option<bool>,
    /// True if the value is sent as JSON text instead of by a style: OpenAPI's `content: application/json` of a parameter or a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_json: Option<bool>,
    /// A part of a multipart body that is a file: the argument is its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FilePart>,

    /// Fixed value. The model is not shown the argument, and a caller that sends it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Value>,
    /// Value taken from the call itself. The model is not shown the argument, and a caller that sends it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_call: Option<CallMember>,
    /// True if the argument is never sent: the model is not shown it, and a caller that sends it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,

    /// Description for the model, in place of the schema's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Value as a model should send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// Value for a call that leaves the argument out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Kind of the value, on top of the schema: `timestamp` for a string that is a point in time, for instance. The type that the schema has
    /// stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ValueKind>,
    /// Other names under which a model may send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aliases: Option<Vec<String>>,
    /// Sensitivity: a `personal` or `secret` value is redacted before every sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Sensitivity>,
    /// True if its numbers say nothing about a person, so that the permanent record may show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harmless: Option<bool>,
    /// `strict` if the value must already be of its own type: for money, ids and phone numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leniency: Option<Leniency>,
    /// Answer to a call in which this optional argument cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_optional_error: Option<OnOptionalError>,
}

/// Place of an argument in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A `{name}` of the path template.
    Path,
    /// The query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
    /// A member of the body.
    Body,
    /// The whole body: a list, a text or an object of its own.
    WholeBody,
}

/// Serialization of a list or an object in a path, query, header, cookie or form (OpenAPI 3.1, section 4.8.12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Style {
    /// `color=blue,black`, or `color=blue&color=black` with `explode`.
    Form,
    /// `blue,black`.
    Simple,
    /// `.blue.black`.
    Label,
    /// `;color=blue,black`.
    Matrix,
    /// `color=blue%20black`.
    SpaceDelimited,
    /// `color=blue|black`.
    PipeDelimited,
    /// `color[R]=100&color[G]=200`, to any depth; lists inside have `[0]`, `[1]` and so on.
    DeepObject,
}

impl Style {
    /// The default of `explode` for this style.
    pub const fn explodes(self) -> bool {
        match self {
            Self::Form | Self::DeepObject => true,
            Self::Simple
            | Self::Label
            | Self::Matrix
            | Self::SpaceDelimited
            | Self::PipeDelimited => false,
        }
    }
}

/// A file in a multipart body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FilePart {
    /// Encoding of the argument.
    pub encoding: FileEncoding,
    /// File name that the part has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// Media type of the part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// Encoding of an argument that is a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileEncoding {
    /// Base64, decoded before it is sent. A text that is not base64 is refused.
    #[default]
    Base64,
    /// Text, sent as UTF-8.
    Text,
}

/// A member of the call that an argument can be filled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallMember {
    /// The user on whose behalf the call runs.
    UserId,
    /// The id of the actor that calls.
    ActorId,
    /// The id of the call.
    RequestId,
    /// The conversation or visit; absent if the caller names none.
    SessionId,
    /// The caller's locale; absent if the caller names none.
    Locale,
    /// The caller's currency; absent if the caller names none.
    Currency,
    /// The caller's time zone; absent if the caller names none.
    Timezone,
    /// The key that is the same for every attempt of the call; absent for a call that has none.
    IdempotencyKey,
}

/// A parameter of a tool, declared without JSON Schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterEntry {
    /// Name of the argument.
    pub name: String,
    /// Kind of the value.
    #[serde(default = "string")]
    pub kind: ValueKind,
    /// Description for the model.
    #[serde(default)]
    pub description: String,
    /// True if it must be given. A parameter with a default is never required.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub required: bool,
    /// True if it is a list of such values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub list: bool,
    /// True if it is an object from names to such values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub map: bool,
    /// Texts that are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Members of an object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Self>,
    /// Value for a call that leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Value as a model should send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// Smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub minimum: Option<serde_json::Number>,
    /// Largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub maximum: Option<serde_json::Number>,
    /// Shortest text, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Longest text, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Regular expression that the text must contain a match of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

impl ParameterEntry {
    /// The parameter as a declaration in Rust would have it.
    pub fn parameter(&self) -> Parameter {
        let mut made = Parameter::new(&*self.name, self.kind, &*self.description);
        if !self.allowed.is_empty() {
            made.allowed = Parameter::one_of("", &self.allowed, "").allowed;
            made.kind = match self.kind {
                ValueKind::String => ValueKind::EnumToken,
                other => other,
            };
        }
        made.fields = self.fields.iter().map(Self::parameter).collect();
        made.example.clone_from(&self.example);
        made.bounds.minimum.clone_from(&self.minimum);
        made.bounds.maximum.clone_from(&self.maximum);
        made.bounds.min_length = self.min_length;
        made.bounds.max_length = self.max_length;
        made.bounds.pattern.clone_from(&self.pattern);
        if self.map {
            made = made.map();
        } else if self.list {
            made = made.list();
        }
        if !self.required {
            made = made.optional();
        }
        match &self.default {
            Some(value) => made.default_value(value.clone()),
            None => made,
        }
    }
}

fn yes() -> bool {
    true
}

fn string() -> ValueKind {
    ValueKind::String
}
