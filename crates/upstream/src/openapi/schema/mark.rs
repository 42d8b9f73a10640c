//! Marks of rules that a converted schema does not have. A mark stands where the rule would, moves with its schema, and becomes a note that
//! names the place.

use serde_json::{Map, Value};

/// A rule of the document that the tool does not check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The type: no choice is of it.
    Type,
    /// The choices: there are too many.
    Choices,
    /// A part of an `allOf` that is closed, and joined with others.
    Closed,
}

const ALL: [Mark; 3] = [Mark::Type, Mark::Choices, Mark::Closed];

impl Mark {
    /// The member of a schema that is the mark.
    const fn key(self) -> &'static str {
        match self {
            Self::Type => "\0type",
            Self::Choices => "\0enum",
            Self::Closed => "\0additionalProperties",
        }
    }

    /// The reason, behind the keyword.
    const fn why(self) -> &'static str {
        match self {
            Self::Type => "no choice is of the type that is declared",
            Self::Choices => "there are too many choices",
            Self::Closed => {
                "it closes one part of an allOf, and the members of the other parts may be sent"
            }
        }
    }

    /// Marks a schema.
    pub(crate) fn put(self, schema: &mut Map<String, Value>) {
        schema.insert(self.key().to_owned(), true.into());
    }

    /// True if a schema has the mark.
    pub(crate) fn is_in(self, schema: &Value) -> bool {
        schema.get(self.key()).is_some()
    }
}

/// True for the name of a mark.
pub(crate) fn is_mark(name: &str) -> bool {
    ALL.iter().any(|mark| mark.key() == name)
}

/// The note about a rule that is not checked. `pointer` leads to the rule in the schema of the arguments.
pub(crate) fn note(pointer: &str, why: &str) -> String {
    format!("{pointer} is not checked: {why}")
}

/// Takes the marks out of a schema; their notes.
pub(crate) fn taken(schema: &mut Map<String, Value>) -> Vec<String> {
    let mut notes = Vec::new();
    take(schema, &mut Vec::new(), &mut notes);
    notes
}

fn take(schema: &mut Map<String, Value>, steps: &mut Vec<String>, notes: &mut Vec<String>) {
    for mark in ALL {
        if schema.remove(mark.key()).is_some() {
            let keyword = mark.key().trim_start_matches('\0');
            let pointer: String = steps.iter().flat_map(|step| ["/", &**step]).collect();
            notes.push(note(&format!("{pointer}/{keyword}"), mark.why()));
        }
    }
    for (name, value) in schema {
        steps.push(name.replace('~', "~0").replace('/', "~1"));
        match value {
            Value::Object(members) => take(members, steps, notes),
            Value::Array(items) => {
                let objects = items.iter_mut().enumerate();
                for (at, item) in objects.filter_map(|(at, it)| Some((at, it.as_object_mut()?))) {
                    steps.push(at.to_string());
                    take(item, steps, notes);
                    steps.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        steps.pop();
    }
}
