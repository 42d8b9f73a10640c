//! A tool: the request that it makes, what becomes of the answer, and how a call to it behaves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use countersign_contract::evidence::Retention;
use countersign_contract::parameter::{Leniency, OnOptionalError};
use countersign_contract::tool::{
    Change, Confirmation, EvidenceRule, KeyRule, Payment, Recovery, Replay, UnknownKeys,
};
use countersign_contract::{ConflictReason, Effect, ErrorCode, Severity};

use super::argument::{ArgumentEntry, ParameterEntry};

/// A tool, or what is said about one that another entry defines.
///
/// Entries of the same name are joined: what a later one says wins. So a file that was imported can stay as it was written, and the
/// overrides stand beside it. Exactly one of the entries names the `upstream`.
///
/// An entry without `request` is a tool that was written for Countersign: the arguments are sent as a JSON object to
/// `POST {base_url}/tools/{name}` (docs/http-tool.md).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    /// Name of the tool: letters, digits, `_`, `-` and dots, such as `crm.create_ticket`.
    pub name: String,
    /// Name under which the tool is offered and called, in place of `name`. Entries go on naming it by `name`, and so does the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_as: Option<String>,
    /// Name of the upstream that the tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// False if the tool is left out of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model and for planners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Version of the tool; it is part of every record. The default is a digest of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Request that a call makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestEntry>,
    /// JSON Schema 2020-12 of the arguments, with an object at its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// Parameters, for a tool that is declared without JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<ParameterEntry>>,
    /// Place of each argument in the request, and what is said of it on top of its schema. A key that starts with `/` is a JSON pointer to
    /// a member inside an argument, such as `"/body/ssn"`; `*` in it stands for every item of a list, as in `"/lines/*/note"`. What such
    /// an entry says is about that member only: its kind, sensitivity, leniency, description, whether it is preset or hidden. Objects on
    /// the way to a preset member are made if the call leaves them out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentEntry>,
    /// Examples of whole calls, as a model should write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<Vec<Map<String, Value>>>,
    /// JSON Schema 2020-12 of the answer, after `response` has been applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Reading of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseEntry>,
    /// Pages that are fetched one after the other and joined, for a read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Pagination>,
    /// Mapping of answers to the closed error codes. The first rule that fits decides; without one the status does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<ErrorRule>>,
    /// Look-up of what became of a call whose answer was lost; for `recovery.reconcile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<ReconcileEntry>,

    /// Effect of a call. `write` and `external` mean the same here: something is changed behind the upstream. The default is `read` for
    /// `GET` and `HEAD`, else `external`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Change that a call makes to what was there before: the hints `destructiveHint` and `idempotentHint` of MCP follow from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// False if a call reaches nothing beyond the upstream's own data: the hint `openWorldHint` of MCP. The default is true for a call that
    /// changes something, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    /// `required` if the reply waits for its evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceRule>,
    /// Time for which an answer may be relied on, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// Confirmation by the user before a call runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirmation>,
    /// Relation to payments. A tool that captures money is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<Payment>,
    /// Rule for the idempotency key of a call that changes something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyRule>,
    /// Arguments that make two calls the same one, as JSON pointers such as `/order_id`: a call without a key gets one from them. All
    /// arguments count if the list is empty. Used with `key = "derive"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_fields: Option<Vec<String>>,
    /// Time for which a repeat is answered with the first result, beyond `ttl_seconds`, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_retention_seconds: Option<u64>,
    /// Recovery of a call whose outcome is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Replay of recorded calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Retention class of the sealed payload of its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Longest time of a call, all attempts included, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// `strict` if only JSON is accepted that the schema accepts as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leniency: Option<Leniency>,
    /// Furthest repair of arguments that may run; beyond it the call is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_severity: Option<Severity>,
    /// Answer to a member that the schema does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_keys: Option<UnknownKeys>,
    /// Answer to a call in which an optional argument cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_optional_error: Option<OnOptionalError>,
    /// `simulate` if the upstream honours `Countersign-Dry-Run: true` and then changes nothing. With `validate` a dry run does not
    /// reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRunRule>,

    /// Settings that an importer has guessed, such as `effect`. A setting that a later entry sets is no guess any more. `countersign
    /// lint` lists the guesses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guessed: Vec<String>,
    /// Origin of an imported entry; written by the importer, kept with the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// Dry runs of a tool that changes something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DryRunRule {
    /// The call is checked up to the request; the upstream is not called.
    #[default]
    Validate,
    /// The upstream is called with `Countersign-Dry-Run: true` and changes nothing.
    Simulate,
}

/// Origin of an imported entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Imported {
    /// Document that it was imported from.
    pub document: String,
    /// Operation in the document: method and path.
    pub operation: String,
    /// Digest of the operation, to find out on the next import whether it has changed.
    pub digest: String,
}

/// A request template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestEntry {
    /// Method.
    pub method: Method,
    /// Path below the upstream's `base_url`, with `{name}` for arguments that belong into it.
    pub path: String,
    /// Format of the body. The default is `json` if an argument goes into the body, else there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyFormat>,
    /// Media type of the body, in place of the one that belongs to the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// `Accept` header. The default asks for JSON and takes anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    /// Fixed headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Fixed query parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
}

/// HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// TRACE
    Trace,
}

/// Format of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    /// `application/json`.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data`.
    Multipart,
    /// A text as it is: one argument with `in = "whole_body"`.
    Text,
    /// Bytes: one argument with `in = "whole_body"`, in base64.
    Bytes,
}

/// Reading of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResponseEntry {
    /// Format of the answer.
    pub format: ResponseFormat,
    /// JSON pointer to the part of the answer that becomes `data`. An answer without it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Headers of the answer that become members of `data`, as `{ id = "location" }`, for services that answer `201` with an address
    /// and no body. Data that is not an object becomes the member `body` beside them. A header that is missing gives no member.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// jq filter that makes `data` from the answer (or from the part that `data` names). It is checked before any call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// True if a model may choose a filter: the tool gets an argument `select`. It is applied last and checked before the call.
    pub select_by_model: bool,
    /// JSON pointer to the upstream's error code in an error answer. Common places are looked at without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// JSON pointer to the upstream's message in an error answer. Common places are looked at without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Answer that does not fit `output`.
    pub on_mismatch: OnMismatch,
}

/// Format of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// By the answer's media type: JSON as JSON, text as text, anything else as base64.
    #[default]
    Auto,
    /// JSON, whatever the media type says. Anything else is an error.
    Json,
    /// Text.
    Text,
    /// Base64 of the bytes.
    Base64,
}

/// Rule for an answer that does not fit the declared schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnMismatch {
    /// The answer is handed on with the warning `ANSWER_NOT_AS_DECLARED`, or `ANSWER_NOT_CHECKED` if it cannot be checked: it is larger
    /// than 512 KiB, or the schema has a keyword that is not supported.
    #[default]
    Warn,
    /// A read fails with `UPSTREAM_ERROR`, also if its answer cannot be checked. A call that changed something is handed on with the
    /// warning, because it happened.
    Refuse,
}

/// Pages that are fetched one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pagination {
    /// Way to the next page.
    pub by: PageBy,
    /// JSON pointer to the list of a page. The lists of all pages are joined there. The root if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub items: String,
    /// Most pages of one call. All pages together also have the upstream's `response_bytes_max`.
    #[serde(default = "pages_max")]
    pub pages_max: u32,
    /// Most items of one call.
    #[serde(default = "items_max")]
    pub items_max: u32,
}

/// Way to the next page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PageBy {
    /// A cursor of the answer is sent with the next request.
    Cursor {
        /// Parameter of the cursor.
        parameter: String,
        /// Place of the parameter.
        #[serde(default, rename = "in", skip_serializing_if = "PagePlace::is_query")]
        place: PagePlace,
        /// JSON pointer to the next cursor. The last page has none, null, or an empty text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
        /// JSON pointer within the last item of a page to the cursor, such as `/id`, for services that continue after an item. An
        /// empty page is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_item: Option<String>,
        /// JSON pointer to a boolean that is false on the last page, such as `/has_more`. With `last_item` it saves the request
        /// for the empty page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<String>,
    },
    /// The number of the page is sent with each request. An empty page is the last one.
    Page {
        /// Parameter of the number.
        parameter: String,
        /// Place of the parameter.
        #[serde(default, rename = "in", skip_serializing_if = "PagePlace::is_query")]
        place: PagePlace,
        /// Number of the first page.
        #[serde(default = "first_page")]
        first: u64,
    },
    /// The number of items before the page is sent with each request. An empty page is the last one.
    Offset {
        /// Parameter of the offset.
        parameter: String,
        /// Place of the parameter.
        #[serde(default, rename = "in", skip_serializing_if = "PagePlace::is_query")]
        place: PagePlace,
    },
    /// The `Link` header with `rel="next"` (RFC 8288), within the same upstream.
    Link {},
    /// The answer has the address of the next page, within the same upstream.
    NextUrl {
        /// JSON pointer to the address, absolute or relative. The last page has none, null, or an empty text.
        next: String,
    },
}

/// Place of a parameter that pages are asked for with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PagePlace {
    /// The query.
    #[default]
    Query,
    /// A member of the JSON body.
    Body,
}

impl PagePlace {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands over a reference"
    )]
    fn is_query(&self) -> bool {
        *self == Self::Query
    }
}

/// A rule that maps an answer to an error code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorRule {
    /// Statuses that the rule is about, as `404`, `4xx` or `500-599`. Any status if it is left out, 2xx included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// JSON pointer into the answer. The rule fits if there is a value that is neither null nor false, and that equals `equals` if
    /// that is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Value that `pointer` has to lead to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// Error code of the reply.
    pub code: ErrorCode,
    /// Message of the reply, in place of the upstream's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Hint of the reply: what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Reason of a `CONFLICT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ConflictReason>,
    /// True if such an answer means that nothing was changed, so that the call may be made again. It is assumed of every code but
    /// `TIMEOUT` and `UPSTREAM_ERROR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_effect: Option<bool>,
}

/// Look-up of what became of a call whose answer was lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReconcileEntry {
    /// Request of the look-up. Path, query and headers may name arguments of the call, and `{idempotency_key}`. Without it the tool
    /// was written for Countersign, and its twin is asked: `POST {base_url}/tools/{name}/reconcile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestEntry>,
    /// Tool that looks the call up, for a tool of an MCP server: another one of the same server, by its whole name such as
    /// `crm.find_ticket`. It has to be approved, and an entry has to confirm that it reads: `effect = "read"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Arguments of `tool`. A string may name arguments of the call, and `{idempotency_key}`; one that is nothing but such a name has the
    /// argument's own type. Other values are sent as they are.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// JSON pointer to the thing that the call made. The call happened if there is a value that is not null and not an empty list; of
    /// a list the first item counts. The root if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub found: String,
    /// Statuses that mean that the call did not happen.
    #[serde(default = "not_found")]
    pub absent: Vec<u16>,
}

fn pages_max() -> u32 {
    10
}

fn items_max() -> u32 {
    1_000
}

fn first_page() -> u64 {
    1
}

fn not_found() -> Vec<u16> {
    vec![404]
}

impl Method {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
        }
    }

    /// True if a request with it changes nothing, as HTTP defines it.
    pub const fn is_safe(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Options | Self::Trace => true,
            Self::Post | Self::Put | Self::Patch | Self::Delete => false,
        }
    }

    /// True if arguments without a place go into the body.
    pub const fn has_body(self) -> bool {
        match self {
            Self::Post | Self::Put | Self::Patch => true,
            Self::Get | Self::Head | Self::Delete | Self::Options | Self::Trace => false,
        }
    }
}

impl ToolEntry {
    /// An entry that says nothing but its name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// True if the entry defines a tool, and does not only say something about one.
    pub fn is_definition(&self) -> bool {
        self.upstream.is_some()
    }

    /// The name under which the tool is offered.
    pub fn shown(&self) -> &str {
        self.shown_as.as_deref().unwrap_or(&self.name)
    }

    /// The effect: as declared, or as the method has it.
    pub fn effect(&self) -> Effect {
        let by_method = match &self.request {
            Some(request) if request.method.is_safe() => Effect::Read,
            Some(_) | None => Effect::External,
        };
        match self.effect.unwrap_or(by_method) {
            Effect::Read => Effect::Read,
            Effect::Write | Effect::External => Effect::External,
        }
    }

    /// Joins a later entry of the same name into this one: the later one's settings win.
    pub fn join(&mut self, later: Self) {
        macro_rules! later_wins {
            ($($member:ident),+ $(,)?) => {$(
                if later.$member.is_some() {
                    self.guessed.retain(|guess| guess != stringify!($member));
                    self.$member = later.$member;
                }
            )+};
        }
        later_wins!(
            shown_as,
            upstream,
            enabled,
            title,
            description,
            version,
            request,
            input,
            parameters,
            examples,
            output,
            response,
            pagination,
            errors,
            reconcile,
            effect,
            change,
            open_world,
            evidence,
            ttl_seconds,
            confirm,
            payment,
            key,
            key_fields,
            key_retention_seconds,
            recovery,
            replay,
            retention,
            deadline_ms,
            leniency,
            max_severity,
            unknown_keys,
            on_optional_error,
            dry_run,
            imported,
        );
        for (name, argument) in later.arguments {
            self.arguments.entry(name).or_default().join(argument);
        }
        self.guessed.extend(later.guessed);
    }
}

impl ArgumentEntry {
    fn join(&mut self, later: Self) {
        macro_rules! later_wins {
            ($($member:ident),+ $(,)?) => {$(
                if later.$member.is_some() {
                    self.$member = later.$member;
                }
            )+};
        }
        later_wins!(
            place,
            name,
            style,
            explode,
            allow_reserved,
            as_json,
            file,
            preset,
            from_call,
            hidden,
            description,
            example,
            default,
            kind,
            aliases,
            sensitivity,
            harmless,
            leniency,
            on_optional_error,
        );
    }

    /// True if the model is not shown the argument, and a caller that sends it is refused.
    pub fn is_hidden(&self) -> bool {
        self.hidden == Some(true) || self.preset.is_some() || self.from_call.is_some()
    }
}
