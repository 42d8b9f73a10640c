//! The definition of a tool as an MCP server gives it, and the entry that it makes.

use countersign_contract::tool::Change;
use countersign_contract::{Digest, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::connection::json_bytes;
use crate::manifest::{Secret, ToolEntry, Upstream};
use crate::scrub;

/// Largest definition that is listed, in bytes of JSON: every model reads it in front of every call.
const DEFINITION_BYTES_MAX: usize = 256 << 10;

/// A tool as its server defines it: everything that a model or a caller sees of it. It is what an operator approves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Name at the server.
    pub name: String,
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of the structured answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// The server's own claims about the effect of a call, which cannot be checked.
    #[serde(default, skip_serializing_if = "Hints::is_silent")]
    pub annotations: Hints,
}

/// A server's claims about the effect of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    /// True if a call changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// True if a call may remove or replace something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// True if the same call again changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// True if a call reaches beyond the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Hints {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands over a reference"
    )]
    fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

impl Definition {
    /// The definition in a list.
    pub(super) fn of(tool: &rmcp::model::Tool) -> Self {
        let hints = tool.annotations.as_ref();
        let titled = hints.and_then(|own| own.title.clone());
        Self {
            name: tool.name.to_string(),
            title: tool.title.clone().or(titled),
            description: tool.description.as_ref().map(ToString::to_string),
            input_schema: (*tool.input_schema).clone(),
            output_schema: tool.output_schema.as_ref().map(|own| (**own).clone()),
            annotations: hints.map_or_else(Hints::default, |own| Hints {
                read_only_hint: own.read_only_hint,
                destructive_hint: own.destructive_hint,
                idempotent_hint: own.idempotent_hint,
                open_world_hint: own.open_world_hint,
            }),
        }
    }

    /// The same without secrets in its texts.
    pub(super) fn without(self, secrets: &[Secret]) -> Self {
        if secrets.is_empty() {
            return self;
        }
        let text = |own: String| scrub::text(&own, secrets);
        Self {
            name: text(self.name),
            title: self.title.map(text),
            description: self.description.map(text),
            input_schema: scrub::object(self.input_schema, secrets),
            output_schema: self.output_schema.map(|own| scrub::object(own, secrets)),
            annotations: self.annotations,
        }
    }

    /// Checks that the definition is small enough to be listed. The error is the reason why it is not.
    pub(super) fn check_size(&self) -> Result<(), String> {
        let bytes = json_bytes(self);
        if bytes > DEFINITION_BYTES_MAX {
            return Err(format!(
                "its definition has {bytes} bytes, and at most {DEFINITION_BYTES_MAX} are listed"
            ));
        }
        Ok(())
    }

    /// Digest of the definition: another definition has another one.
    pub fn digest(&self) -> Digest {
        let written = serde_json::to_value(self).unwrap_or_default();
        // A schema without a canonical form still has a text.
        Digest::of_canonical(&written)
            .unwrap_or_else(|_| Digest::of_bytes(written.to_string().as_bytes()))
    }

    /// Builds the entry of the tool, before overrides. The effect is a guess: unless the operator says otherwise, a call counts as one that
    /// changes something, even if the server hints that it does not.
    pub fn entry(&self, upstream: &Upstream) -> ToolEntry {
        let mut input = self.input_schema.clone();
        input.entry("type").or_insert_with(|| json!("object"));
        // The dialect is said to be 2020-12 wherever nothing else is; the binder knows one dialect.
        input.remove("$schema");
        let mut output = self.output_schema.clone();
        if let Some(own) = &mut output {
            own.remove("$schema");
        }
        let text = self.description.as_deref().map(str::trim);
        let text = text.filter(|text| !text.is_empty()).map(str::to_owned);
        let text = text.or_else(|| self.title.clone());
        let text = text.unwrap_or_else(|| format!("The tool {} of {}.", self.name, upstream.name));
        ToolEntry {
            upstream: Some(upstream.name.clone()),
            title: self.title.clone(),
            description: Some(text),
            version: Some(self.digest().to_string()),
            input: Some(input),
            output: output.map(Value::Object),
            change: (self.annotations.read_only_hint == Some(true)).then_some(Change::Nothing),
            guessed: vec!["effect".to_owned()],
            ..ToolEntry::named(tool_name(&upstream.prefix(), &self.name))
        }
    }
}

/// Returns the name of a server's tool in the catalog: the upstream's prefix and the tool's own name. It does not depend on any other tool
/// or upstream. A name that the catalog does not allow is rewritten, and ends in a checksum of the original.
pub fn tool_name(prefix: &str, tool: &str) -> String {
    let plain = format!("{prefix}{tool}");
    if ToolName::new(&*plain).is_ok() {
        return plain;
    }
    let digest = Digest::of_bytes(tool.as_bytes()).to_string();
    let checksum: String = digest.chars().rev().take(8).collect();
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let letters = plain.chars().map(|c| if is_letter(c) { c } else { '_' });
    let room = NAME_CHARS_MAX - checksum.len() - 1;
    let letters: String = letters.take(room).collect();
    format!("{letters}-{checksum}")
}

/// Most characters of a name in the catalog.
const NAME_CHARS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// A name is as the server has it wherever that is possible, and two names never become one.
    #[test]
    fn names_are_stable_and_apart() {
        assert_eq!(tool_name("fs.", "read_file"), "fs.read_file");
        assert_eq!(tool_name("fs.", "a.b-c"), "fs.a.b-c");
        let names = [
            "a b",
            "a/b",
            "a?b",
            "日本",
            &"x".repeat(300),
            &"x".repeat(301),
        ];
        let made: Vec<String> = names.iter().map(|name| tool_name("fs.", name)).collect();
        for (at, name) in made.iter().enumerate() {
            assert!(ToolName::new(name).is_ok(), "{name}");
            assert!(name.starts_with("fs."), "{name}");
            assert!(
                !made.iter().skip(at + 1).any(|other| other == name),
                "{name}"
            );
        }
    }
}
