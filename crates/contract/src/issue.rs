//! Repairs and refusals of the binder: a closed set of codes, each with its severity.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Severity of a change, in rising order. A tool's policy names the highest that it accepts.
///
/// The order is the one that policies compare by, so `Severity::Retyped < Severity::Dropped`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Remark: nothing was changed.
    Note,
    /// The text was not JSON; its meaning is unchanged.
    Syntax,
    /// The type was changed without loss.
    Retyped,
    /// A name or an enum member was brought to its declared spelling.
    Normalised,
    /// A member that was sent is not passed on.
    Dropped,
    /// Information was lost; only where the parameter asked for it.
    Lossy,
    /// No safe reading exists; the call is refused.
    Error,
}

macro_rules! issue_codes {
    ($($(#[$doc:meta])* $variant:ident => ($wire:literal, $severity:ident),)+) => {
        /// Code of a change or refusal at one place of the arguments. Closed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
        pub enum IssueCode {
            $($(#[$doc])* #[serde(rename = $wire)] $variant,)+
        }

        impl IssueCode {
            /// Every code, mildest first.
            pub const ALL: [Self; [$($wire),+].len()] = [$(Self::$variant),+];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }

            /// Returns the severity of this change.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)+ }
            }
        }
    };
}

issue_codes! {
    /// The tool has no declaration, so its arguments were only parsed (B8).
    ToolDefinitionMissing => ("TOOL_DEFINITION_MISSING", Note),
    /// The text is kept although it is not of the declared form (a relative URI, B6).
    FormatKept => ("FORMAT_KEPT", Note),
    /// More changes were made than are listed.
    MoreIssues => ("MORE_ISSUES", Note),

    /// A Markdown code fence around the document was skipped.
    FenceStripped => ("FENCE_STRIPPED", Syntax),
    /// Prose around the document was skipped.
    ProseSkipped => ("PROSE_SKIPPED", Syntax),
    /// A tag or end-of-turn token around the document was skipped.
    TagStripped => ("TAG_STRIPPED", Syntax),
    /// A comma with nothing after it was ignored.
    TrailingComma => ("TRAILING_COMMA", Syntax),
    /// A comma was missing.
    MissingComma => ("MISSING_COMMA", Syntax),
    /// A closing bracket without an opening one was ignored.
    ExtraCloser => ("EXTRA_CLOSER", Syntax),
    /// A closing bracket was missing, or of the wrong kind.
    CloserInserted => ("CLOSER_INSERTED", Syntax),
    /// Another quote than `"` was used.
    QuoteStyle => ("QUOTE_STYLE", Syntax),
    /// A key had no quotes.
    KeyUnquoted => ("KEY_UNQUOTED", Syntax),
    /// A string had no quotes.
    ValueUnquoted => ("VALUE_UNQUOTED", Syntax),
    /// A comment was removed.
    CommentRemoved => ("COMMENT_REMOVED", Syntax),
    /// `True`, `False`, `None` or `undefined` was read as the literal it means.
    PythonLiteral => ("PYTHON_LITERAL", Syntax),
    /// A number was written in a form that JSON does not have (`+5`, `.5`, `007`, `1_000`).
    NumberForm => ("NUMBER_FORM", Syntax),
    /// An escape that JSON does not have was kept as it is.
    EscapeRepaired => ("ESCAPE_REPAIRED", Syntax),
    /// A string contained a raw control character.
    ControlChar => ("CONTROL_CHAR", Syntax),
    /// A quote inside a string was not escaped.
    InnerQuoteEscaped => ("INNER_QUOTE_ESCAPED", Syntax),
    /// A string had only one of its two quotes.
    QuoteInserted => ("QUOTE_INSERTED", Syntax),
    /// The braces around the members were missing.
    BracesAdded => ("BRACES_ADDED", Syntax),
    /// The arguments were written as a function call.
    CallSyntax => ("CALL_SYNTAX", Syntax),
    /// The whole document was encoded as a string.
    RootDecoded => ("ROOT_DECODED", Syntax),
    /// The same document, or the same member with the same value, occurred more than once.
    DuplicateCollapsed => ("DUPLICATE_COLLAPSED", Syntax),
    /// White space or a separator that JSON does not have was ignored.
    StrayText => ("STRAY_TEXT", Syntax),

    /// A string was read as an integer.
    TextToInteger => ("TEXT_TO_INTEGER", Retyped),
    /// A string was read as a number.
    TextToNumber => ("TEXT_TO_NUMBER", Retyped),
    /// Thousands separators were removed.
    GroupedNumber => ("GROUPED_NUMBER", Retyped),
    /// An integral decimal became an integer (`3.0`).
    NumberToInteger => ("NUMBER_TO_INTEGER", Retyped),
    /// A string was read as a boolean.
    TextToBoolean => ("TEXT_TO_BOOLEAN", Retyped),
    /// 0 or 1 was read as a boolean.
    NumberToBoolean => ("NUMBER_TO_BOOLEAN", Retyped),
    /// A number was read as a string.
    NumberToText => ("NUMBER_TO_TEXT", Retyped),
    /// A boolean was read as a string.
    BooleanToText => ("BOOLEAN_TO_TEXT", Retyped),
    /// A string was decoded into the object or list that it contains.
    ContainerDecoded => ("CONTAINER_DECODED", Retyped),
    /// A lone value became a list of one.
    ScalarWrapped => ("SCALAR_WRAPPED", Retyped),
    /// A list of one became its item.
    SingletonUnwrapped => ("SINGLETON_UNWRAPPED", Retyped),
    /// A string was split into a list.
    ListSplit => ("LIST_SPLIT", Lossy),
    /// A date or time was brought to its ISO form.
    DateNormalised => ("DATE_NORMALISED", Retyped),

    /// A key was brought to its declared spelling.
    KeyFolded => ("KEY_FOLDED", Normalised),
    /// A key was a declared alias.
    KeyAlias => ("KEY_ALIAS", Normalised),
    /// An enum member was brought to its declared spelling.
    EnumFolded => ("ENUM_FOLDED", Normalised),
    /// An enum member was a declared alias.
    EnumAlias => ("ENUM_ALIAS", Normalised),
    /// A wrapper such as `{"arguments": …}` was removed.
    ArgumentsUnwrapped => ("ARGUMENTS_UNWRAPPED", Normalised),
    /// A list around the one object was removed.
    RootListUnwrapped => ("ROOT_LIST_UNWRAPPED", Normalised),

    /// A null for an optional parameter counts as absent.
    NullDropped => ("NULL_DROPPED", Dropped),
    /// An empty string for an optional parameter of another type counts as absent.
    EmptyDropped => ("EMPTY_DROPPED", Dropped),
    /// A member that the declaration does not know was dropped, because the tool allows it.
    UnknownKeyDropped => ("UNKNOWN_KEY_DROPPED", Dropped),

    /// A decimal was cut to an integer, because the parameter allows it.
    IntegerTruncated => ("INTEGER_TRUNCATED", Lossy),
    /// A comma before three digits was taken for digit grouping, although the author's locale is not known.
    GroupingAssumed => ("GROUPING_ASSUMED", Lossy),
    /// An optional parameter cannot be read and counts as absent, because the tool asked for a warning instead of a refusal (B9).
    OptionalUnreadable => ("OPTIONAL_UNREADABLE", Lossy),

    /// No document was found in the text.
    NotFound => ("NOT_FOUND", Error),
    /// The text has two different readings.
    Ambiguous => ("AMBIGUOUS", Error),
    /// The text ends before the arguments are complete.
    Incomplete => ("INCOMPLETE", Error),
    /// A required member is missing.
    MissingRequired => ("MISSING_REQUIRED", Error),
    /// The value is of another type and has no lossless reading.
    TypeMismatch => ("TYPE_MISMATCH", Error),
    /// The only reading would lose information.
    Lossy => ("LOSSY", Error),
    /// The value is not one of the allowed values.
    EnumNoMatch => ("ENUM_NO_MATCH", Error),
    /// The declaration does not know this member.
    UnknownKey => ("UNKNOWN_KEY", Error),
    /// A member occurs twice with different values.
    DuplicateKey => ("DUPLICATE_KEY", Error),
    /// The value violates a bound, pattern or format.
    Constraint => ("CONSTRAINT", Error),
    /// The required change goes further than the policy allows.
    PolicyExceeded => ("POLICY_EXCEEDED", Error),
    /// The text is larger, deeper or longer than is read.
    LimitExceeded => ("LIMIT_EXCEEDED", Error),
}

impl std::fmt::Display for IssueCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One change or refusal, at one place.
///
/// # Example
///
/// ```
/// use countersign_contract::{Issue, IssueCode, Severity};
///
/// let issue: Issue = serde_json::from_str(
///     r#"{"code": "TEXT_TO_INTEGER", "severity": "retyped", "path": "/days", "span": [9, 12],
///         "before": "\"3\"", "after": 3, "message": "a string was read as the integer it spells"}"#,
/// )?;
/// assert_eq!(issue.code, IssueCode::TextToInteger);
/// // A tool that accepts changes of type, and none that goes further, runs this call.
/// assert!(issue.severity <= Severity::Retyped && issue.code.severity() == issue.severity);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Issue {
    /// Code.
    pub code: IssueCode,
    /// Severity; it follows from the code.
    pub severity: Severity,
    /// Place, as a JSON pointer (RFC 6901) into the bound value; empty for the whole.
    pub path: String,
    /// Place in the raw text, as `[start, end)` in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<[usize; 2]>,
    /// An excerpt of the raw text; redacted where the parameter is sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// New value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Expected form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// One sentence for a person or a model.
    pub message: String,
    /// Suggestion: what to send instead. Only with errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Issue {
    /// An issue with only its code, path and message.
    pub fn new(code: IssueCode, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            path: path.into(),
            span: None,
            before: None,
            after: None,
            expected: None,
            message: message.into(),
            suggestion: None,
        }
    }
}

/// Result of binding the text of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BindStatus {
    /// Strict JSON that the declaration accepts as it is: nothing was changed.
    Exact,
    /// The text was changed without loss; the issues list the changes.
    Repaired,
    /// The text ends before the arguments are complete. The value shows what arrived and is never executed.
    Incomplete,
    /// No safe reading exists.
    Refused,
}

impl BindStatus {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Repaired => "repaired",
            Self::Incomplete => "incomplete",
            Self::Refused => "refused",
        }
    }

    /// True if a call with these arguments may run.
    pub const fn is_executable(self) -> bool {
        match self {
            Self::Exact | Self::Repaired => true,
            Self::Incomplete | Self::Refused => false,
        }
    }
}
