//! The declared look-up of a call whose answer was lost: another tool of the same server that only reads.

use countersign::{CallContext, Reconciled, Reply, ToolError};
use countersign_contract::tool::Recovery;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use super::answer::text_of;
use super::definition::tool_name;
use super::pins::Pin;
use super::server::Approved;
use crate::declare;
use crate::http::answer::{Read, json_of};
use crate::http::reconcile::{Finder, KEY};
use crate::http::tool::ToolFault;
use crate::manifest::{Piece, ReconcileEntry, Secret, Template, ToolEntry, Upstream};
use crate::scrub;

/// The look-up of a tool.
pub(super) struct Lookup {
    /// The tool that is asked, as it was approved.
    pub(super) approved: Approved,
    arguments: Vec<(String, Written)>,
    found: String,
}

/// An argument of the look-up.
enum Written {
    /// A value as the entry has it.
    Fixed(Value),
    /// An argument of the call, with its own type.
    Argument(String),
    /// A text with values in it.
    Text(Template),
}

impl Lookup {
    /// The look-up that an entry declares; `None` if it declares none. The tool that is asked has to be in the approved set, and what its
    /// arguments name has to be an argument of the call.
    pub(super) fn of(
        entry: &ToolEntry,
        pin: &Pin,
        upstream: &Upstream,
    ) -> Result<Option<Self>, ToolFault> {
        let (Some(Recovery::Reconcile { .. }), Some(declared)) = (entry.recovery, &entry.reconcile)
        else {
            return Ok(None);
        };
        let ReconcileEntry {
            tool: Some(asked),
            arguments,
            found,
            request: _,
            absent: _,
        } = declared
        else {
            return Ok(None);
        };
        let fault = |why: String| ToolFault::LookUp {
            tool: entry.name.clone(),
            why,
        };
        let prefix = upstream.prefix();
        let mut approved = pin.tools.values();
        let definition = approved.find(|own| tool_name(&prefix, &own.name) == *asked);
        let definition = definition.ok_or_else(|| {
            fault(format!(
                "{asked} is not among the approved tools of {}",
                upstream.name
            ))
        })?;
        let declared = declare::argument_names(entry);
        let is_known = |name: &str| {
            name == KEY || declared.contains(name) || entry.arguments.contains_key(name)
        };
        let mut written = Vec::new();
        for (name, value) in arguments {
            let (own, named) = Written::of(value).map_err(|error| fault(error.to_string()))?;
            if let Some(unknown) = named.iter().find(|own| !is_known(own)) {
                let why = format!(
                    "the argument {name} names {{{unknown}}}, which the call does not have"
                );
                return Err(fault(why));
            }
            written.push((name.clone(), own));
        }
        Ok(Some(Self {
            approved: Approved::new(&*definition.name, definition),
            arguments: written,
            found: found.clone(),
        }))
    }

    /// The arguments of the look-up, from those of the call; `None` if one of them is missing, because the look-up would find something
    /// else.
    pub(super) fn arguments(&self, ctx: &CallContext, values: &JsonObject) -> Option<JsonObject> {
        let value = |name: &str| match (name, ctx.downstream_key()) {
            (KEY, Some(key)) => Some(Value::from(key)),
            (_, _) => values.get(name).filter(|own| !own.is_null()).cloned(),
        };
        let filled = self.arguments.iter().map(|(name, written)| {
            let own = match written {
                Written::Fixed(value) => value.clone(),
                Written::Argument(name) => value(name)?,
                Written::Text(template) => Value::from(text(template, &value)?),
            };
            Some((name.clone(), own))
        });
        filled.collect()
    }

    /// Reads the answer. An error of the tool says nothing about the call.
    pub(super) async fn read(
        &self,
        result: CallToolResult,
        sent: &[Secret],
        finder: Finder<'_>,
    ) -> Result<Reconciled<Reply>, ToolError> {
        if result.is_error == Some(true) {
            return Ok(Reconciled::Unknown);
        }
        let structured = result.structured_content.map(Read::from);
        let body = structured.or_else(|| json_of(&text_of(&result.content)?).ok());
        match body {
            Some(Read { value, digits }) => {
                let value = scrub::value(value, sent);
                finder.found_in(Read { value, digits }, &self.found).await
            }
            None => Ok(Reconciled::Unknown),
        }
    }
}

impl Written {
    /// The argument, and the names in it.
    fn of(value: &Value) -> Result<(Self, Vec<String>), crate::manifest::TemplateError> {
        let Some(text) = value.as_str() else {
            return Ok((Self::Fixed(value.clone()), Vec::new()));
        };
        let template = Template::parse(text)?;
        let names = template.names().map(str::to_owned).collect();
        let own = match template.pieces() {
            [Piece::Name(name)] => Self::Argument(name.clone()),
            _ => Self::Text(template),
        };
        Ok((own, names))
    }
}

/// Fills in a text; `None` if a value is missing, or has no text of its own.
fn text(template: &Template, value: &impl Fn(&str) -> Option<Value>) -> Option<String> {
    let mut text = String::new();
    for piece in template.pieces() {
        match piece {
            Piece::Text(own) => text.push_str(own),
            Piece::Name(name) => match value(name)? {
                Value::String(own) => text.push_str(&own),
                own @ (Value::Number(_) | Value::Bool(_)) => text.push_str(&own.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            },
        }
    }
    Some(text)
}
