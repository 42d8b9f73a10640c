//! The declaration of a tool, made from its entry: the schema that a model is shown and that arguments are bound against, and the
//! behaviour.

mod composed;

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign::catalog::{self, Catalog};
use countersign::{Arguments, BoxFuture, CallContext, DynTool, Reply, ToolError};
use countersign_contract::id::InvalidId;
use countersign_contract::parameter::{Leniency, OnOptionalError, Sensitivity};
use countersign_contract::schema::ext;
use countersign_contract::tool::{BindPolicy, Change, Idempotency, KeyRule, Recovery};
use countersign_contract::{
    Behaviour, Digest, Effect, ErrorCode, Input, Parameter, ToolName, ToolSpec, ValueKind,
};
use serde_json::{Map, Value, json};

use crate::manifest::{ArgumentEntry, ParameterEntry, ToolEntry, Way};

use composed::Composed;

/// The argument by which a model chooses a filter.
pub(crate) const SELECT: &str = "select";

/// An entry cannot be made into a declaration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undeclared {
    /// The name is not a valid tool name. Usually it has a space or another character that names do not have.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// A setting of an argument does not fit the schema, usually because the argument is misspelt.
    #[error("the argument {argument:?}: {message}")]
    Argument {
        /// Key of the setting: the name of the argument, or the pointer to a member of one.
        argument: String,
        /// The mistake, and what to do about it.
        message: String,
    },
}

/// The declaration of a tool.
pub fn spec_of(entry: &ToolEntry) -> Result<ToolSpec, Undeclared> {
    let name = ToolName::new(entry.shown())?;
    let description = entry.description.clone().unwrap_or_default();
    let spec = ToolSpec::new(name, description)
        .input(input_of(entry)?)
        .version(version_of(entry))
        .behaviour(behaviour_of(entry));
    Ok(ToolSpec {
        title: entry.title.clone(),
        output: entry.output.clone(),
        ..spec
    })
}

/// The names of the declared arguments, hidden ones included.
pub(crate) fn argument_names(entry: &ToolEntry) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some(parameters) = &entry.parameters {
        names.extend(parameters.iter().map(|parameter| parameter.name.clone()));
    }
    if let Some(schema) = &entry.input {
        names.append(&mut Composed::of(schema.clone()).names());
    }
    names
}

fn input_of(entry: &ToolEntry) -> Result<Input, Undeclared> {
    let parameters = entry.parameters.as_deref().unwrap_or_default();
    let own = match &entry.input {
        Some(schema) => Input::Schema(Value::Object(schema.clone())),
        None => Input::parameters(parameters.iter().map(ParameterEntry::parameter)),
    };
    input_over(own, entry)
}

/// A declared input with what an entry says on top of it.
pub(crate) fn input_over(own: Input, entry: &ToolEntry) -> Result<Input, Undeclared> {
    let chooses = entry.response.as_ref().is_some_and(|it| it.select_by_model);
    let is_silent = entry.arguments.values().all(says_nothing);
    if is_silent && entry.examples.is_none() && !chooses {
        return Ok(own);
    }
    let mut schema = match own.json_schema() {
        Value::Object(schema) => Composed::of(schema),
        _ => Composed::of(Map::new()),
    };
    for (key, argument) in &entry.arguments {
        let way = Way::of(key);
        let fault = |message: String| Undeclared::Argument {
            argument: key.clone(),
            message,
        };
        if argument.is_hidden() {
            let is_declared = schema.hide(&way).map_err(fault)?;
            // The operator may add an argument that is not declared; a pointer leads to something that is.
            if !is_declared && way.argument().is_none() {
                return Err(fault(NO_MEMBER.to_owned()));
            }
        } else if !says_nothing(argument) {
            let mut set = |property: &mut Map<String, Value>| describe(property, argument);
            if !schema.describe(&way, &mut set).map_err(fault)? {
                let message = match way.argument() {
                    Some(_) => NO_ARGUMENT,
                    None => NO_MEMBER,
                };
                return Err(fault(message.to_owned()));
            }
        }
    }
    let mut schema = schema.finish();
    if chooses {
        add_select(&mut schema)?;
    }
    if let Some(examples) = &entry.examples {
        schema.insert("examples".to_owned(), json!(examples));
    }
    Ok(Input::Schema(Value::Object(schema)))
}

const NO_ARGUMENT: &str =
    "the schema has no such property at its root; declare it there, or correct the name";

const NO_MEMBER: &str =
    "the pointer leads to no declared member; correct it, or declare the member";

/// True if an entry is about the request only.
fn says_nothing(argument: &ArgumentEntry) -> bool {
    let ArgumentEntry {
        place: _,
        name: _,
        style: _,
        explode: _,
        allow_reserved: _,
        as_json: _,
        file: _,
        preset: _,
        from_call: _,
        hidden: _,
        description,
        example,
        default,
        kind,
        aliases,
        sensitivity,
        harmless,
        leniency,
        on_optional_error,
    } = argument;
    !argument.is_hidden()
        && description.is_none()
        && example.is_none()
        && default.is_none()
        && kind.is_none()
        && aliases.is_none()
        && sensitivity.is_none()
        && harmless.is_none()
        && leniency.is_none()
        && on_optional_error.is_none()
}

/// Writes an entry's settings of an argument into its schema.
fn describe(property: &mut Map<String, Value>, argument: &ArgumentEntry) -> Result<(), String> {
    if let Some(kind) = argument.kind {
        add_kind(property, kind)?;
    }
    let mut set = |keyword: &str, value: Option<Value>| {
        if let Some(value) = value {
            property.insert(keyword.to_owned(), value);
        }
    };
    set("description", argument.description.clone().map(Value::from));
    set("examples", argument.example.clone().map(|it| json!([it])));
    set("default", argument.default.clone());
    set(ext::ALIASES, argument.aliases.clone().map(Value::from));
    let sensitivity = argument.sensitivity.map(|it| match it {
        Sensitivity::Public => "public".into(),
        Sensitivity::Personal => "personal".into(),
        Sensitivity::Secret => "secret".into(),
    });
    set(ext::SENSITIVITY, sensitivity);
    set(ext::HARMLESS, argument.harmless.map(Value::from));
    let leniency = argument.leniency.map(|it| match it {
        Leniency::Lenient => "lenient".into(),
        Leniency::Strict => "strict".into(),
    });
    set(ext::LENIENCY, leniency);
    let rule = argument.on_optional_error.map(OnOptionalError::as_str);
    set(ext::ON_OPTIONAL_ERROR, rule.map(Value::from));
    Ok(())
}

/// Adds the rules of a kind to a foreign schema: its format, and its type if the schema has none. The type that the upstream wants on the
/// wire stays.
fn add_kind(property: &mut Map<String, Value>, kind: ValueKind) -> Result<(), String> {
    let own = Input::parameters([Parameter::new("it", kind, "")]).json_schema();
    let own = own.pointer("/properties/it").and_then(Value::as_object);
    for (keyword, value) in own.into_iter().flatten() {
        let foreign = match keyword.as_str() {
            "type" => type_of(property),
            other => property.get(other),
        };
        match (keyword.as_str(), foreign) {
            ("description", _) => {}
            ("type", Some(foreign)) => {
                let types = foreign
                    .as_array()
                    .map_or(std::slice::from_ref(foreign), Vec::as_slice);
                let is_whole = types.contains(&"integer".into()) && *value == "number";
                // A type that there is not is complained about with the schema.
                let is_type = types.iter().all(|it| TYPES.iter().any(|known| it == known));
                if is_type && !types.contains(value) && !is_whole {
                    let kind = kind.as_str();
                    return Err(format!(
                        "the schema has the type {foreign}, which no value of kind {kind} has; choose another kind"
                    ));
                }
            }
            (ext::KIND, _) | (_, None) => drop(property.insert(keyword.clone(), value.clone())),
            (_, Some(_)) => {}
        }
    }
    Ok(())
}

/// The types of JSON Schema.
const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

/// The type that a schema or a part of it declares.
fn type_of(schema: &Map<String, Value>) -> Option<&Value> {
    let parts = schema.get("allOf").and_then(Value::as_array);
    let parts = parts.into_iter().flatten().filter_map(Value::as_object);
    let own = schema.get("type");
    own.or_else(|| parts.into_iter().find_map(type_of))
}

fn add_select(schema: &mut Map<String, Value>) -> Result<(), Undeclared> {
    if Composed::of(schema.clone()).names().contains(SELECT) {
        return Err(Undeclared::Argument {
            argument: SELECT.to_owned(),
            message: "the tool has an argument of this name; select_by_model cannot add another"
                .to_owned(),
        });
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        let select = json!({
            "type": "string",
            "maxLength": 500,
            "description": "Optional jq filter that is applied to the answer, such as \
                            \".items | map({id, name})\": ask for what is needed only.",
        });
        properties.insert(SELECT.to_owned(), select);
    }
    Ok(())
}

fn behaviour_of(entry: &ToolEntry) -> Behaviour {
    let usual = Behaviour {
        effect: entry.effect(),
        ..Behaviour::default()
    };
    let recovery = match usual.effect {
        Effect::Read | Effect::Write => usual.recovery,
        Effect::External => entry.recovery.unwrap_or_default(),
    };
    Behaviour {
        recovery,
        ..behaviour_over(usual, entry)
    }
}

/// The change that an entry says. A server's hint is void once an operator has said what the effect is.
fn change_of(entry: &ToolEntry) -> Option<Change> {
    let is_guess = entry.guessed.iter().any(|setting| setting == "effect");
    entry
        .change
        .filter(|change| is_guess || *change != Change::Nothing)
}

/// A declared behaviour with what an entry says on top of it. Effect and recovery stay: they belong to the code of a tool.
pub(crate) fn behaviour_over(own: Behaviour, entry: &ToolEntry) -> Behaviour {
    let fields = entry.key_fields.clone().unwrap_or(own.idempotency.fields);
    let key = match entry.key {
        None if entry.key_fields.is_some() && !fields.is_empty() => KeyRule::Derive,
        None => own.idempotency.key,
        Some(key) => key,
    };
    let kept = entry.key_retention_seconds;
    Behaviour {
        effect: own.effect,
        change: change_of(entry).unwrap_or(own.change),
        open_world: entry.open_world.or(own.open_world),
        evidence: entry.evidence.unwrap_or(own.evidence),
        ttl_seconds: entry.ttl_seconds.or(own.ttl_seconds),
        confirmation: entry.confirm.clone().unwrap_or(own.confirmation),
        narrowing: own.narrowing,
        payment: entry.payment.unwrap_or(own.payment),
        idempotency: Idempotency {
            key,
            fields,
            retention_seconds: kept.unwrap_or(own.idempotency.retention_seconds),
            final_codes: own.idempotency.final_codes,
            attempts_max: own.idempotency.attempts_max,
            join_ms: own.idempotency.join_ms,
        },
        recovery: own.recovery,
        replay: entry.replay.clone().unwrap_or(own.replay),
        retention: entry.retention.unwrap_or(own.retention),
        deadline_ms: entry.deadline_ms.unwrap_or(own.deadline_ms),
        binding: BindPolicy {
            leniency: entry.leniency.unwrap_or(own.binding.leniency),
            max_severity: entry.max_severity.unwrap_or(own.binding.max_severity),
            unknown_keys: entry.unknown_keys.unwrap_or(own.binding.unknown_keys),
            on_optional_error: entry
                .on_optional_error
                .unwrap_or(own.binding.on_optional_error),
        },
    }
}

/// True if the upstream may get the request of a call twice: a read, a dry run, or a call that the upstream tells from
/// another by its key and of which the entry says that a repeat does no harm.
pub(crate) fn is_repeatable(spec: &ToolSpec, ctx: &CallContext) -> bool {
    match spec.behaviour.effect {
        Effect::Read => true,
        Effect::Write | Effect::External if ctx.is_dry_run() => true,
        Effect::Write | Effect::External => {
            let is_declared = match spec.behaviour.recovery {
                Recovery::Retry | Recovery::DownstreamKey { .. } => true,
                Recovery::Operator | Recovery::Reconcile { .. } => false,
            };
            is_declared && ctx.downstream_key().is_some()
        }
    }
}

/// The declared version, or a digest of the entry: a request that changes is another version of the tool.
fn version_of(entry: &ToolEntry) -> String {
    if let Some(version) = &entry.version {
        return version.clone();
    }
    let written = serde_json::to_value(entry).unwrap_or_default();
    let digest = Digest::of_canonical(&written);
    digest.map_or_else(|_| "0".to_owned(), |digest| digest.to_string())
}

/// Finds out whether a catalog would take such a tool.
pub(crate) fn probe(spec: ToolSpec) -> Result<(), catalog::Error> {
    let tool = Arc::new(Declared::new(spec));
    Catalog::builder().dyn_tool(tool).build().map(drop)
}

/// A tool that is only declared.
pub(crate) struct Declared(ToolSpec);

impl Declared {
    pub(crate) fn new(spec: ToolSpec) -> Self {
        Self(spec)
    }
}

impl DynTool for Declared {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        let error = ToolError::new(ErrorCode::NotFound, "this tool is declared only");
        Box::pin(std::future::ready(Err(error)))
    }
}
