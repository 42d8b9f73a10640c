//! The declaration as a page for people (B18), made from the same data as everything else.
//!
//! Texts of a declaration may come from a third party's manifest, so nothing in them may end a table cell or start a tag.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::parameter::{
    Bounds, Cardinality, CaseRule, Leniency, OnOptionalError, Parameter, Sensitivity, ValueKind,
};
use crate::schema;
use crate::tool::{
    Behaviour, Confirmation, Effect, EvidenceRule, Input, KeyRule, Payment, Terms, ToolSpec,
    UnknownKeys,
};

/// Writes a tool's declaration as a Markdown page: its purpose, its behaviour, its parameters, and a call as it is sent.
///
/// # Example
///
/// ```
/// use countersign_contract::{Input, Parameter, ToolName, ToolSpec, ValueKind, markdown};
///
/// let spec = ToolSpec::new(ToolName::new("memory.search")?, "Finds notes by keyword.")
///     .input(Input::parameters([Parameter::new("query", ValueKind::String, "what to look for")]));
/// let page = markdown::tool_page(&spec);
/// assert!(page.starts_with("# memory.search\n"));
/// assert!(page.contains("| `query` | string | yes | what to look for |"));
/// # Ok::<(), countersign_contract::id::InvalidId>(())
/// ```
pub fn tool_page(spec: &ToolSpec) -> String {
    let mut page = String::new();
    let title = spec.title.as_deref().unwrap_or(spec.name.as_str());
    let _ = writeln!(page, "# {}\n", line(title));
    let _ = writeln!(
        page,
        "{} · version {}\n",
        code(spec.name.as_str()),
        code(&spec.version)
    );
    let _ = writeln!(page, "{}\n", spec.description.trim().replace('<', "&lt;"));

    page.push_str("## Behaviour\n\n");
    for sentence in behaviour(&spec.behaviour) {
        let _ = writeln!(page, "- {sentence}");
    }

    page.push_str("\n## Parameters\n\n");
    let parameters = match &spec.input {
        Input::Parameters(parameters) => parameters.clone(),
        Input::Schema(schema) => schema::to_parameters(schema),
        Input::Undeclared => {
            page.push_str("None are declared: any object is passed on as it was parsed.\n");
            return page;
        }
    };
    if parameters.is_empty() {
        page.push_str("None.\n");
    } else {
        page.push_str(
            "| name | type | required | description | allowed | default | example | bounds |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        rows(&mut page, &parameters, "", 0);
    }
    let _ = write!(
        page,
        "\n## Example\n\n```json\n{:#}\n```\n",
        example_call(spec, &parameters)
    );
    page
}

/// Describes the behaviour of a tool, one sentence a trait, in Markdown.
pub fn behaviour(behaviour: &Behaviour) -> Vec<String> {
    let mut sentences = vec![match behaviour.effect {
        Effect::Read => "**Reads only**: a call changes nothing.".to_owned(),
        Effect::Write => {
            "**Writes**: the change is committed together with the call's record.".to_owned()
        }
        Effect::External => {
            "**Acts elsewhere**: what it changes lies outside this system.".to_owned()
        }
    }];
    sentences.extend(confirmation(behaviour));
    match behaviour.payment {
        Payment::None => {}
        Payment::Intent => sentences
            .push("**Payment**: it prepares a payment that the user still has to make.".into()),
        Payment::Capture => {
            sentences.push("**Payment**: it takes the money; no agent may call it.".into());
        }
    }
    if behaviour.effect.changes_something() {
        let key = match behaviour.idempotency.key {
            KeyRule::Optional => "optional; with one, a call has its effect at most once",
            KeyRule::Required => "required",
            KeyRule::Derive => "made from user, tool and arguments where it is missing",
        };
        let kept = seconds(behaviour.idempotency.retention_seconds);
        sentences.push(format!(
            "**Key**: {key}; a repeat gets the first answer for {kept}."
        ));
    }
    match behaviour.evidence {
        EvidenceRule::Recorded => {}
        EvidenceRule::Required => {
            sentences.push("**Evidence**: the reply waits until its evidence is durable.".into());
        }
    }
    if let Some(ttl) = behaviour.ttl_seconds {
        sentences.push(format!(
            "**Freshness**: an answer holds for {}.",
            seconds(ttl.into())
        ));
    }
    sentences.push(format!("**Deadline**: {} ms.", behaviour.deadline_ms));
    let reading = match behaviour.binding.leniency {
        Leniency::Lenient => "repaired where nothing is lost",
        Leniency::Strict => "taken only exactly as declared",
    };
    let unknown = match behaviour.binding.unknown_keys {
        UnknownKeys::Refuse => "refused",
        UnknownKeys::Drop => "left out",
        UnknownKeys::Keep => "kept where the schema allows them",
    };
    let unreadable = match behaviour.binding.on_optional_error {
        OnOptionalError::Refuse => "",
        OnOptionalError::Tell => "; optional ones that cannot be read count as absent",
    };
    sentences.push(format!(
        "**Arguments**: {reading}; unknown ones are {unknown}{unreadable}."
    ));
    sentences
}

/// The user's part in a call: sentences about confirmation.
fn confirmation(behaviour: &Behaviour) -> Vec<String> {
    let mut sentences = match &behaviour.confirmation {
        Confirmation::Never => Vec::new(),
        Confirmation::Always => vec!["**Confirmation**: the user confirms every call.".to_owned()],
        Confirmation::Terms(Terms { exact, ceiling }) => vec![format!(
            "**Confirmation**: the user confirms `{}` up to the amount in `{}`; a lower one needs no new \
             answer.",
            exact.join("`, `"),
            ceiling.amount
        )],
    };
    if !behaviour.narrowing.is_empty() {
        let pointers: Vec<_> = behaviour
            .narrowing
            .iter()
            .map(|narrowing| format!("`{}`", narrowing.pointer))
            .collect();
        sentences.push(format!(
            "**Narrowing**: the approver may make {} smaller.",
            pointers.join(", ")
        ));
    }
    sentences
}

/// A span in the largest unit that it is a whole number of.
fn seconds(seconds: u64) -> String {
    let units = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let fits = |(unit, _): &(u64, &str)| seconds >= *unit && seconds.is_multiple_of(*unit);
    let (unit, name) = units.into_iter().find(fits).unwrap_or((1, "second"));
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// Writes one row per parameter, then those of its fields, indented and with their whole path.
fn rows(page: &mut String, parameters: &[Parameter], prefix: &str, depth: usize) {
    for parameter in parameters {
        let path = format!("{prefix}{}", parameter.name);
        let value = |value: &Option<Value>| value.as_ref().map(|v| code(&v.to_string()));
        let _ = writeln!(
            page,
            "| {}{} | {} | {} | {} | {} | {} | {} | {} |",
            "&emsp;".repeat(depth),
            code(&path),
            type_of(parameter),
            if parameter.is_required() { "yes" } else { "no" },
            line(&parameter.description),
            allowed(parameter),
            value(&parameter.default).unwrap_or_default(),
            value(&parameter.example).unwrap_or_default(),
            bounds(&parameter.bounds),
        );
        let step = match parameter.cardinality {
            Cardinality::One | Cardinality::Optional => ".",
            Cardinality::List { .. } => "[].",
            Cardinality::Map { .. } => ".*.",
        };
        rows(page, &parameter.fields, &format!("{path}{step}"), depth + 1);
    }
}

/// Describes the type of a parameter in words: `list of object`, `string, personal`.
pub fn type_of(parameter: &Parameter) -> String {
    let kind = parameter.kind.as_str().replace('_', " ");
    let mut text = match parameter.cardinality {
        Cardinality::One | Cardinality::Optional => kind,
        Cardinality::List { .. } => format!("list of {kind}"),
        Cardinality::Map { .. } => format!("map of {kind}"),
    };
    match parameter.sensitivity {
        Sensitivity::Public => {}
        Sensitivity::Personal => text.push_str(", personal"),
        Sensitivity::Secret => text.push_str(", secret"),
    }
    match parameter.leniency {
        None | Some(Leniency::Lenient) => {}
        Some(Leniency::Strict) => text.push_str(", strict"),
    }
    match parameter.on_optional_error {
        None | Some(OnOptionalError::Refuse) => {}
        Some(OnOptionalError::Tell) => text.push_str(", absent where it cannot be read"),
    }
    text
}

fn allowed(parameter: &Parameter) -> String {
    let Some(allowed) = &parameter.allowed else {
        return String::new();
    };
    let values: Vec<_> = allowed.values.iter().map(|value| code(value)).collect();
    let case = match allowed.case {
        CaseRule::Fold => "",
        CaseRule::Exact => " (exact spelling)",
    };
    values.join(", ") + case
}

/// Describes the bounds of a value in words: `1 to 50`, `at most 64 characters`; empty if all is allowed.
pub fn bounds(bounds: &Bounds) -> String {
    let mut parts = Vec::new();
    let mut range = |low: Option<String>, high: Option<String>, unit: &str| match (low, high) {
        (Some(low), Some(high)) => parts.push(format!("{low} to {high}{unit}")),
        (Some(low), None) => parts.push(format!("at least {low}{unit}")),
        (None, Some(high)) => parts.push(format!("at most {high}{unit}")),
        (None, None) => {}
    };
    let spelt = |limit: Option<u64>| limit.map(|limit| limit.to_string());
    let number = |limit: &Option<serde_json::Number>| limit.as_ref().map(ToString::to_string);
    range(number(&bounds.minimum), number(&bounds.maximum), "");
    range(
        spelt(bounds.min_length),
        spelt(bounds.max_length),
        " characters",
    );
    range(spelt(bounds.min_items), spelt(bounds.max_items), " items");
    if let Some(pattern) = &bounds.pattern {
        parts.push(format!("matches {}", code(pattern)));
    }
    parts.join(", ")
}

/// Builds a call as it is sent: the required parameters, and those with an example or a default.
fn example_call(spec: &ToolSpec, parameters: &[Parameter]) -> Value {
    let mut call = Map::new();
    call.insert(
        "arguments".into(),
        Value::Object(example_members(parameters)),
    );
    if spec.behaviour.effect.changes_something() {
        call.insert("idempotency_key".into(), "k_1".into());
    }
    Value::Object(call)
}

/// Makes example arguments: the declared examples and defaults, and values of the right shape for what else is required.
pub fn example_members(parameters: &[Parameter]) -> Map<String, Value> {
    let shown = |parameter: &Parameter| {
        let told = parameter
            .example
            .clone()
            .or_else(|| parameter.default.clone());
        told.or_else(|| parameter.is_required().then(|| made_up(parameter)))
    };
    parameters
        .iter()
        .filter_map(|parameter| Some((parameter.name.clone(), shown(parameter)?)))
        .collect()
}

/// A value of the right shape, where the declaration shows none.
fn made_up(parameter: &Parameter) -> Value {
    let allowed = parameter
        .allowed
        .as_ref()
        .and_then(|allowed| allowed.values.first());
    let number = parameter
        .bounds
        .minimum
        .clone()
        .map_or(json!(1), Value::Number);
    let one = match parameter.kind {
        ValueKind::String | ValueKind::EnumToken => json!(allowed.map_or("text", String::as_str)),
        ValueKind::Boolean => json!(true),
        ValueKind::Integer | ValueKind::Number => number,
        ValueKind::Object => Value::Object(example_members(&parameter.fields)),
        ValueKind::Array => json!([]),
        ValueKind::Timestamp => json!("2026-01-31T12:00:00Z"),
        ValueKind::Uri => json!("https://example.com/"),
        ValueKind::AttachmentReference => json!("att_1"),
    };
    match parameter.cardinality {
        Cardinality::One | Cardinality::Optional => one,
        Cardinality::List { .. } => json!([one]),
        Cardinality::Map { .. } => json!({ "name": one }),
    }
}

/// Text in one line that cannot end its table cell or start a tag.
fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('|', "\\|").replace('<', "&lt;")
}

/// A code span in one line; a text with backticks gets a longer fence.
fn code(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let text = text.replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    if longest == 0 {
        return format!("`{text}`");
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

#[cfg(test)]
mod tests;
