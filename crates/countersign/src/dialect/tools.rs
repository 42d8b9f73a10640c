//! The list of tools in a provider's format.

use std::collections::BTreeMap;

use countersign_contract::tool::{Behaviour, Confirmation};
use countersign_contract::{ReplyEnvelope, ToolName, ToolSpec};
use serde_json::Value;

use super::call::ProviderCall;
use super::error::{DecodeError, ToolListError};
use super::raw::Node;
use super::schema::{self, Form, NoteKind, PropertyNames};
use super::stream::Joiner;
use super::tokens::{self, Trimmed};
use crate::again;
use crate::alias::{alias, in_text};

/// Options of a tool list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolListOptions {
    /// True if the provider should enforce the schema, if it can.
    ///
    /// OpenAI's models then send null for parameters that they would leave out; the binder drops it.
    pub strict: bool,
    /// The budget, in [estimated](super::estimate) tokens.
    pub max_tokens: Option<usize>,
    /// Gemini only: `parameters` in its subset of `OpenAPI` instead of `parametersJsonSchema`.
    pub openapi: bool,
    /// True if the list has everything that a program can use, beside what a model acts on: every bound and example.
    /// For MCP also the schema of the answer in depth, and the tool's behaviour in `_meta`.
    pub whole: bool,
}

/// The tools in a provider's format.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolList {
    /// The value of the request's `tools` member.
    pub json: Value,
    /// Texts that were cut to keep the budget, in the order in which they were cut.
    pub trimmed: Vec<Trimmed>,
    /// Parts of the declarations that the dialect could not express.
    pub notes: Vec<Note>,
    /// The [estimated](super::estimate) tokens of `json`.
    pub tokens: usize,
}

/// A part of one tool's declaration that the dialect could not express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The tool.
    pub tool: ToolName,
    /// The part.
    pub kind: NoteKind,
}

/// A dialect: one provider's format.
pub(super) trait Wire: Sync {
    /// The form of schemas and the names that properties may have.
    fn schema_form(&self, options: &ToolListOptions) -> (Form, PropertyNames);
    /// Maximum number of tools, and of their optional parameters, that the provider enforces in one request; `None` if
    /// there is no limit.
    fn strict_budget(&self) -> Option<StrictBudget> {
        None
    }
    /// True if the format has a place for a tool's examples.
    fn shows_examples(&self) -> bool {
        false
    }
    /// One tool.
    fn definition(&self, tool: &Declaration<'_>, options: &ToolListOptions) -> Value;
    /// The list around the tools.
    fn list(&self, definitions: Vec<Value>) -> Value {
        Value::Array(definitions)
    }
    /// The calls of a whole message.
    fn calls(&self, message: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError>;
    /// One event of a streamed message.
    fn push(&self, event: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError>;
    /// The answers to calls.
    fn results(&self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value;
    /// The assistant's message.
    fn message(&self, text: &str, calls: &[ProviderCall]) -> Value;
}

/// Limits of a provider's strict mode.
pub(super) struct StrictBudget {
    pub(super) tools: usize,
    pub(super) optional: usize,
}

/// One tool, ready to be written down.
pub(super) struct Declaration<'a> {
    pub(super) spec: &'a ToolSpec,
    pub(super) alias: &'a str,
    pub(super) description: String,
    pub(super) input: Value,
    pub(super) output: Option<Value>,
    pub(super) strict: bool,
    pub(super) examples: Vec<Value>,
}

/// One tool while its texts are being cut.
#[derive(Clone)]
pub(super) struct Draft<'a> {
    pub(super) spec: &'a ToolSpec,
    alias: String,
    pub(super) description: String,
    pub(super) input: Value,
    pub(super) output: Option<Value>,
    /// True if the provider's strict mode has room for it.
    is_within_strict: bool,
}

/// A tool as it is written down.
pub(super) struct Rendered {
    pub(super) json: Value,
    pub(super) notes: Vec<NoteKind>,
}

pub(super) fn list(
    wire: &dyn Wire,
    specs: &[&ToolSpec],
    is_tool: &dyn Fn(&str) -> bool,
    options: &ToolListOptions,
) -> Result<ToolList, ToolListError> {
    let mut drafts = drafts(specs, is_tool, options.whole)?;
    if let Some(budget) = wire.strict_budget().filter(|_| options.strict) {
        keep_within(&mut drafts, budget);
    }
    let render = |draft: &Draft<'_>| render(wire, draft, options);
    let fitted = tokens::fit(
        &mut drafts,
        &render,
        &|list| wire.list(list),
        options.max_tokens,
    )?;
    let mut notes = Vec::new();
    let mut definitions = Vec::new();
    for (draft, rendered) in drafts.iter().zip(fitted.rendered) {
        let tool = || draft.spec.name.clone();
        notes.extend(
            rendered
                .notes
                .into_iter()
                .map(|kind| Note { tool: tool(), kind }),
        );
        definitions.push(rendered.json);
    }
    Ok(ToolList {
        json: wire.list(definitions),
        trimmed: fitted.trimmed,
        notes,
        tokens: fitted.tokens,
    })
}

fn drafts<'a>(
    specs: &[&'a ToolSpec],
    is_tool: &dyn Fn(&str) -> bool,
    whole: bool,
) -> Result<Vec<Draft<'a>>, ToolListError> {
    let names_tool = |text: &str| in_text(text, is_tool) != text;
    let mut taken: BTreeMap<String, &ToolName> = BTreeMap::new();
    let mut drafts = Vec::new();
    for spec in specs {
        let alias = alias(&spec.name);
        if let Some(first) = taken.insert(alias.clone(), &spec.name) {
            return Err(ToolListError::NameTaken {
                alias,
                first: first.clone(),
                second: spec.name.clone(),
            });
        }
        let mut input = spec.json_schema();
        again::add_to(spec, &mut input);
        if !whole {
            schema::brief(&mut input, &names_tool);
        }
        drafts.push(Draft {
            spec,
            alias,
            description: in_text(&spec.description, is_tool),
            input: named(input, is_tool),
            output: spec.output.as_ref().map(|output| {
                if whole {
                    named(output.clone(), is_tool)
                } else {
                    schema::outline(output)
                }
            }),
            is_within_strict: true,
        });
    }
    Ok(drafts)
}

/// Gives the room of strict mode to tools that change something first: a wrong argument costs most there.
fn keep_within(drafts: &mut [Draft<'_>], mut budget: StrictBudget) {
    let writes = |draft: &Draft<'_>| draft.spec.behaviour.effect.changes_something();
    for is_turn_of_writes in [true, false] {
        for draft in drafts.iter_mut() {
            if writes(draft) != is_turn_of_writes {
                continue;
            }
            let optional = optional_in(&draft.input);
            draft.is_within_strict = budget.tools > 0 && optional <= budget.optional;
            if draft.is_within_strict {
                budget.tools -= 1;
                budget.optional -= optional;
            }
        }
    }
}

/// Number of optional properties of a schema, at every depth.
fn optional_in(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            let required = members.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
            let own = members.get("properties").and_then(Value::as_object);
            let own = own.map_or(0, |all| {
                all.keys().filter(|name| !is_required(name)).count()
            });
            own + members.values().map(optional_in).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(optional_in).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// A schema whose descriptions name tools as the model knows them.
fn named(mut schema: Value, is_tool: &dyn Fn(&str) -> bool) -> Value {
    match &mut schema {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    Value::String(text) if name == "description" => *text = in_text(text, is_tool),
                    Value::Object(_) | Value::Array(_) => *member = named(member.take(), is_tool),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = named(item.take(), is_tool);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

fn render(
    wire: &dyn Wire,
    draft: &Draft<'_>,
    options: &ToolListOptions,
) -> Result<Rendered, ToolListError> {
    let options = &ToolListOptions {
        strict: options.strict && draft.is_within_strict,
        ..*options
    };
    let example = schema::example(&draft.input).filter(|_| wire.shows_examples());
    let examples: Vec<Value> = example.into_iter().collect();
    let mut input = draft.input.clone();
    if !examples.is_empty() {
        schema::strip_examples(&mut input);
    }
    let (form, names) = wire.schema_form(options);
    let prepared =
        schema::prepare(&input, form, names).map_err(|located| ToolListError::Schema {
            tool: draft.spec.name.clone(),
            path: located.path,
            problem: located.problem,
        })?;
    let parts = [
        Some(draft.description.trim().to_owned()),
        prepared.remark,
        hints(&draft.spec.behaviour),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    let declaration = Declaration {
        spec: draft.spec,
        alias: &draft.alias,
        description: parts.join(" "),
        input: prepared.schema,
        output: draft.output.clone(),
        strict: prepared.strict,
        examples,
    };
    Ok(Rendered {
        json: wire.definition(&declaration, options),
        notes: prepared.notes,
    })
}

/// Hints that a model needs before it calls; never cut, because they change what the model does.
fn hints(behaviour: &Behaviour) -> Option<String> {
    let ttl = behaviour
        .ttl_seconds
        .map(|seconds| format!("Valid for {seconds} seconds."));
    let confirmation = match behaviour.confirmation {
        Confirmation::Never => None,
        Confirmation::Always | Confirmation::Terms(_) => {
            Some("The user has to confirm each call.".to_owned())
        }
    };
    match (ttl, confirmation) {
        (Some(ttl), Some(confirmation)) => Some(format!("{ttl} {confirmation}")),
        (ttl, confirmation) => ttl.or(confirmation),
    }
}

#[cfg(test)]
mod tests {
    use countersign_contract::{Effect, Input, Parameter, ValueKind};

    use super::*;
    use crate::dialect::Dialect;

    fn tool(name: &str, optional: usize, effect: Effect) -> ToolSpec {
        let parameter =
            |n: usize| Parameter::new(format!("p{n}"), ValueKind::String, "").optional();
        let parameters = (0..optional).map(parameter);
        let name = ToolName::new(name).unwrap();
        let mut spec =
            ToolSpec::new(name, "Use b.other first.").input(Input::parameters(parameters));
        spec.behaviour.effect = effect;
        spec.behaviour.idempotency.key = countersign_contract::tool::KeyRule::Derive;
        spec
    }

    /// The names of the tools that a list holds to their schemas.
    fn strict(specs: &[ToolSpec]) -> Vec<String> {
        let specs: Vec<_> = specs.iter().collect();
        let options = ToolListOptions {
            strict: true,
            ..ToolListOptions::default()
        };
        let list = Dialect::Anthropic.tools(&specs, &options).unwrap().json;
        let strict = list
            .as_array()
            .unwrap()
            .iter()
            .filter(|tool| tool["strict"] == true);
        strict
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Strict mode has room for a limited number of tools and optional parameters; tools that write come first (B15).
    #[test]
    fn strict_mode_is_spent_within_its_budget() {
        let many: Vec<_> = (0..30)
            .map(|n| tool(&format!("a.t{n}"), 0, Effect::Read))
            .collect();
        assert_eq!(strict(&many).len(), 20);
        let three = [
            tool("a.read", 10, Effect::Read),
            tool("a.write", 20, Effect::Write),
            tool("a.small", 4, Effect::Read),
        ];
        assert_eq!(strict(&three), ["a_write", "a_small"]);
    }

    /// Descriptions name the tools of the list as the list does, and leave all else as it is (B15).
    #[test]
    fn descriptions_use_the_names_of_the_list() {
        let specs = [
            tool("a.one", 0, Effect::Read),
            tool("b.other", 0, Effect::Read),
        ];
        let list = Dialect::OpenAi.tools(&[&specs[0], &specs[1]], &ToolListOptions::default());
        let list = list.unwrap().json;
        assert_eq!(list[0]["function"]["description"], "Use b_other first.");
        let alone = Dialect::OpenAi.tools(&[&specs[0]], &ToolListOptions::default());
        assert_eq!(
            alone.unwrap().json[0]["function"]["description"],
            "Use b.other first."
        );
    }
}
