//! Excuses: differences between a document and a tool that the import explains. Each excuse is for one rule at one place, which a note names.

use countersign::contract::{ErrorCode, ReplyEnvelope};
use countersign_upstream::ToolEntry;
use countersign_upstream::manifest::{ArgumentEntry, Place};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::original::{Leaves, collect};

/// A rule of the document that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A rule at a place.
    Rule {
        /// JSON pointer from the parameter, or from the body.
        at: String,
        keyword: String,
        /// Members that are too many.
        unexpected: Vec<String>,
    },
    /// A value fits several branches of a `oneOf`.
    SeveralBranches,
    /// None of these fits; each is excused if everything that is broken in it is.
    Any(Vec<Vec<Self>>),
}

/// The part of a request that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A parameter, by its place and name in the document.
    Parameter {
        place: String,
        name: String,
    },
    Body,
}

impl Broken {
    /// Everything that is broken, as a validator reports it.
    pub(crate) fn of(errors: &[ValidationError<'_>]) -> Vec<Self> {
        errors.iter().map(Self::of_one).collect()
    }

    fn of_one(error: &ValidationError<'_>) -> Self {
        match error.kind() {
            ValidationErrorKind::OneOfMultipleValid { .. } => Self::SeveralBranches,
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                let branches = context.iter().filter(|it| !it.is_empty());
                Self::Any(branches.map(|it| Self::of(it)).collect())
            }
            kind => Self::Rule {
                at: error.instance_path().to_string(),
                keyword: kind.keyword().to_owned(),
                unexpected: match kind {
                    ValidationErrorKind::AdditionalProperties { unexpected } => unexpected.clone(),
                    _ => Vec::new(),
                },
            },
        }
    }

    /// The same, below this pointer.
    pub(crate) fn below(self, pointer: &str) -> Self {
        match self {
            Self::Rule {
                at,
                keyword,
                unexpected,
            } => Self::Rule {
                at: format!("{pointer}{at}"),
                keyword,
                unexpected,
            },
            Self::SeveralBranches => Self::SeveralBranches,
            Self::Any(all) => {
                let below = |own: Vec<Self>| own.into_iter().map(|it| it.below(pointer)).collect();
                Self::Any(all.into_iter().map(below).collect())
            }
        }
    }
}

/// What the import has left out of the rules of one tool.
pub(crate) struct Excuses<'e> {
    entry: &'e ToolEntry,
    input: Value,
    /// Pointers of rules in the schema of the tool that are not checked.
    unchecked: Vec<&'e str>,
}

impl<'e> Excuses<'e> {
    /// Those of a tool, with the notes of the import about it.
    pub(crate) fn new(entry: &'e ToolEntry, notes: &'e [String]) -> Self {
        let pointer = |note: &'e String| note.split_once(" is not checked: ").map(|it| it.0);
        Self {
            entry,
            input: Value::Object(entry.input.clone().unwrap_or_default()),
            unchecked: notes.iter().filter_map(pointer).collect(),
        }
    }

    /// True if each broken rule is one that the import has left out at this very place. A `oneOf` is an `anyOf` in every tool
    /// (docs/openapi-import.md).
    pub(crate) fn cover(&self, whose: &Whose, broken: &[Broken]) -> bool {
        broken.iter().all(|it| match it {
            Broken::SeveralBranches => true,
            Broken::Any(all) => all.iter().any(|own| self.cover(whose, own)),
            Broken::Rule {
                at,
                keyword,
                unexpected,
            } => {
                let Some(place) = self.place(whose, at) else {
                    return false;
                };
                let schemas = schemas_at(&self.input, &place);
                let is_named = schemas.iter().any(|(pointer, _)| {
                    let rule = format!("{pointer}/{keyword}");
                    self.unchecked.contains(&rule.as_str())
                });
                let declares = |name: &String| {
                    let mut all = schemas.iter();
                    all.any(|(_, own)| own["properties"].get(name).is_some())
                };
                is_named && unexpected.iter().all(declares)
            }
        })
    }

    /// The pointer into the arguments of a place in the request; `None` if no argument is there.
    fn place(&self, whose: &Whose, at: &str) -> Option<String> {
        let arguments = self.input["properties"].as_object();
        let mut names = arguments.into_iter().flat_map(Map::keys);
        let wire = |name: &str| {
            let own = self.entry.arguments.get(name);
            own.and_then(|own| own.name.clone())
                .unwrap_or_else(|| name.to_owned())
        };
        match whose {
            Whose::Parameter { place, name } => {
                let is_it = |own: &&String| {
                    let is_there = match self.place_of(own) {
                        Place::Path => place == "path",
                        Place::Query => place == "query",
                        Place::Header => place == "header",
                        Place::Cookie => place == "cookie",
                        Place::Body => place == "formdata",
                        Place::WholeBody => false,
                    };
                    is_there && wire(own) == *name
                };
                names.find(is_it).map(|own| format!("/{own}{at}"))
            }
            Whose::Body => {
                let is_whole = |own: &&String| self.place_of(own) == Place::WholeBody;
                if let Some(own) = names.clone().find(is_whole) {
                    return Some(format!("/{own}{at}"));
                }
                let Some(below) = at.strip_prefix('/') else {
                    return Some(String::new());
                };
                let (first, rest) = below.split_once('/').unwrap_or((below, ""));
                let first = first.replace("~1", "/").replace("~0", "~");
                let is_it = |own: &&String| self.place_of(own) == Place::Body && wire(own) == first;
                let own = names.find(is_it)?;
                let joint = if rest.is_empty() { "" } else { "/" };
                Some(format!("/{own}{joint}{rest}"))
            }
        }
    }

    /// The place of an argument, with the default of its request.
    fn place_of(&self, name: &str) -> Place {
        let said = self.entry.arguments.get(name).and_then(|own| own.place);
        let request = self.entry.request.as_ref();
        let is_in_path = request.is_some_and(|own| own.path.contains(&format!("{{{name}}}")));
        let has_body = request.is_some_and(|own| own.method.has_body());
        said.unwrap_or(match (is_in_path, has_body) {
            (true, _) => Place::Path,
            (false, true) => Place::Body,
            (false, false) => Place::Query,
        })
    }

    /// True if a call was refused because of an argument that cannot be sent at its place, whatever the document says: the error names it,
    /// and it is a step `.` or `..` of the path, or a header with spaces around it.
    pub(crate) fn cover_refusal(&self, reply: &ReplyEnvelope, arguments: &Value) -> bool {
        let Some(error) = &reply.error else {
            return false;
        };
        let field = error.details.field.as_deref().unwrap_or_default();
        let Some(name) = field.strip_prefix('/') else {
            return false;
        };
        let name = name.replace("~1", "/").replace("~0", "~");
        let Some(value) = arguments.get(&name) else {
            return false;
        };
        let own = self.entry.arguments.get(&name);
        let place = self.place_of(&name);
        error.code == ErrorCode::InvalidArgument
            && (place == Place::Path && has_step(value)
                || place == Place::Header && is_spaced(value, own))
    }
}

/// True if a text of the value is a step, or would be one beside others.
fn has_step(value: &Value) -> bool {
    let mut texts = Leaves::new();
    collect(value, &mut texts);
    let is_step = |text: &String| {
        let mut steps = text.split(['/', '\\', ';', ',']);
        steps.any(|step| matches!(step, "." | ".."))
    };
    texts.iter().any(is_step)
}

/// True if the header begins or ends with a space: the first text does, or the last.
fn is_spaced(value: &Value, own: Option<&ArgumentEntry>) -> bool {
    let mut texts = Leaves::new();
    collect(value, &mut texts);
    let is_json = own.is_some_and(|own| own.as_json == Some(true));
    let is_first = texts.first().is_some_and(|it| it.starts_with(' '));
    let is_last = texts.last().is_some_and(|it| it.ends_with(' '));
    !is_json && (is_first || is_last)
}

/// The schemas that speak about the value at a pointer, each with its own pointer.
fn schemas_at<'s>(root: &'s Value, pointer: &str) -> Vec<(String, &'s Value)> {
    let mut here = same(root, vec![(String::new(), root)]);
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        let mut next = Vec::new();
        for (at, schema) in here {
            let mut add = |below: String, own: Option<&'s Value>| {
                next.extend(own.map(|own| (format!("{at}/{below}"), own)));
            };
            let properties = schema.get("properties");
            let own = properties.and_then(|it| it.get(&name));
            add(format!("properties/{step}"), own);
            if own.is_none() {
                add(
                    "additionalProperties".to_owned(),
                    schema.get("additionalProperties"),
                );
            }
            let patterns = schema.get("patternProperties").and_then(Value::as_object);
            for (pattern, own) in patterns.into_iter().flatten() {
                let pattern = pattern.replace('~', "~0").replace('/', "~1");
                add(format!("patternProperties/{pattern}"), Some(own));
            }
            if name.parse::<usize>().is_ok() {
                add("items".to_owned(), schema.get("items"));
                let first = schema
                    .get("prefixItems")
                    .and_then(|it| it.pointer(&format!("/{name}")));
                add(format!("prefixItems/{name}"), first);
            }
        }
        here = same(root, next);
    }
    here
}

/// The schemas and those of their parts that speak about the same value.
fn same<'s>(root: &'s Value, schemas: Vec<(String, &'s Value)>) -> Vec<(String, &'s Value)> {
    let mut all: Vec<(String, &'s Value)> = Vec::new();
    let mut waiting = schemas;
    while let Some((at, schema)) = waiting.pop() {
        if all.iter().any(|(known, _)| *known == at) {
            continue;
        }
        let target = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = target.and_then(|it| it.strip_prefix('#'))
            && let Some(own) = root.pointer(target)
        {
            waiting.push((target.to_owned(), own));
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = schema.get(keyword).and_then(Value::as_array);
            for (number, part) in parts.into_iter().flatten().enumerate() {
                waiting.push((format!("{at}/{keyword}/{number}"), part));
            }
        }
        all.push((at, schema));
    }
    all
}
