//! Mistakes that the types of a manifest cannot express, each with the key that it is at.

mod request;
mod service;

pub(crate) use request::default_place;
pub(crate) use service::{is_free_header, is_header};

use std::collections::{BTreeMap, BTreeSet};

use countersign::catalog;
use countersign_contract::Effect;
use countersign_contract::ToolName;
use countersign_contract::tool::{Change, Confirmation, KeyRule, Recovery};

use crate::declare::Undeclared;

use super::{Complaint, ErrorRule, Manifest, Step, ToolEntry, Upstream, UpstreamKind};

/// Gathers complaints below one place of the configuration.
pub(super) struct Checker<'c> {
    at: Vec<Step>,
    found: &'c mut Vec<Complaint>,
}

impl Checker<'_> {
    /// A checker below a key.
    fn key(&mut self, key: &str) -> Checker<'_> {
        self.step(Step::Key(key.to_owned()))
    }

    /// A checker below an item of a list.
    fn item(&mut self, at: usize) -> Checker<'_> {
        self.step(Step::Item(at))
    }

    fn step(&mut self, step: Step) -> Checker<'_> {
        let mut at = self.at.clone();
        at.push(step);
        Checker {
            at,
            found: self.found,
        }
    }

    fn complain(&mut self, message: impl Into<String>) {
        self.found.push(Complaint {
            at: self.at.clone(),
            message: message.into(),
        });
    }

    /// Complains about a text that is no JSON pointer.
    fn pointer(&mut self, text: &str) {
        if !text.is_empty() && !text.starts_with('/') {
            self.complain(format!(
                "{text:?} is not a JSON pointer; it has to start with /"
            ));
        }
    }

    /// Complains about a number outside these bounds.
    fn within(&mut self, value: u64, least: u64, most: u64) {
        if !(least..=most).contains(&value) {
            self.complain(format!("{value} is not between {least} and {most}"));
        }
    }
}

pub(super) fn manifest(manifest: &Manifest, is_built_in: &dyn Fn(&str) -> bool) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut root = Checker {
        at: Vec::new(),
        found: &mut found,
    };
    let mut names = BTreeSet::new();
    for (at, upstream) in manifest.upstream.iter().enumerate() {
        let mut place = root.key("upstream");
        let mut place = place.item(at);
        if !names.insert(upstream.name.as_str()) {
            let name = &upstream.name;
            place.key("name").complain(format!(
                "there is another upstream {name:?}; rename one of them"
            ));
        }
        let is_plain = |other: &Upstream| other.kind == UpstreamKind::Mcp && !other.prefix;
        let first = manifest.upstream.iter().position(is_plain);
        if let Some(first) = first.filter(|first| !upstream.prefix && *first < at) {
            let message = format!(
                "only one MCP server may set prefix = false, and upstream[{first}] already does"
            );
            place.key("prefix").complain(message);
        }
        service::check(upstream, &mut place);
    }
    entries(manifest, is_built_in, &mut root);
    for complaint in &mut found {
        at_its_entry(manifest, complaint);
    }
    found
}

/// Moves a mistake of an argument to the entry that speaks of the argument: the tool is checked with all of its entries joined.
fn at_its_entry(manifest: &Manifest, complaint: &mut Complaint) {
    let [_, Step::Item(at), Step::Key(table), Step::Key(key), ..] = complaint.at.as_slice() else {
        return;
    };
    let Some(entry) = manifest.tool.get(*at).filter(|_| table == "arguments") else {
        return;
    };
    let says = |own: &ToolEntry| own.name == entry.name && own.arguments.contains_key(key);
    if !says(entry)
        && let Some(other) = manifest.tool.iter().position(says)
        && let Some(step) = complaint.at.get_mut(1)
    {
        *step = Step::Item(other);
    }
}

/// The mistakes in the request of one tool and in the places of its arguments.
pub(crate) fn complaints_about_request(tool: &ToolEntry) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut place = Checker {
        at: Vec::new(),
        found: &mut found,
    };
    request::check(tool, &mut place);
    found
}

/// Every entry by itself, and the tools that they make together.
fn entries(manifest: &Manifest, is_built_in: &dyn Fn(&str) -> bool, root: &mut Checker<'_>) {
    let mut definitions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut whole: BTreeMap<String, ToolEntry> = BTreeMap::new();
    for tool in manifest.joined() {
        whole.insert(tool.name.clone(), tool);
    }
    for (at, entry) in manifest.tool.iter().enumerate() {
        let mut place = root.key("tool");
        let mut place = place.item(at);
        if let Err(error) = ToolName::new(&*entry.name) {
            place.key("name").complain(error.to_string());
        }
        if let Some(shown) = &entry.shown_as {
            let is_other = |other: &ToolEntry| other.name != entry.name && other.shown() == shown;
            if let Err(error) = ToolName::new(&**shown) {
                place.key("shown_as").complain(error.to_string());
            } else if whole.values().any(is_other) || is_built_in(shown) {
                let message = "another tool has this name; choose another";
                place.key("shown_as").complain(message);
            }
        }
        // Only the hint of a server is without a confirmed effect.
        if entry.change == Some(Change::Nothing) {
            let message = "a tool that changes nothing has effect = \"read\"; leave this out";
            place.key("change").complain(message);
        }
        let Some(tool) = whole.get(&entry.name) else {
            continue;
        };
        if let Some(upstream) = &entry.upstream {
            match manifest.upstream(upstream).map(|it| it.kind) {
                Some(UpstreamKind::Http) => {}
                Some(UpstreamKind::Mcp) => {
                    let message = "an MCP server defines its tools itself: leave this out, and call the tool \
                                   by the name of the server, a dot, and its own name";
                    place.key("upstream").complain(message);
                }
                None => {
                    let message =
                        format!("there is no upstream {upstream:?}; add it as [[upstream]]");
                    place.key("upstream").complain(message);
                }
            }
            if is_built_in(&entry.name) {
                let message = "a tool of the program has this name; choose another";
                place.key("name").complain(message);
            }
            if let Some(first) = definitions.insert(&entry.name, at) {
                let message =
                    format!("tool[{first}] defines this tool already; name the upstream once");
                place.key("upstream").complain(message);
            } else {
                // The mistakes of a joined tool stand at the entry that defines it.
                tool_entry(tool, &mut place);
            }
        } else if manifest.server_of(&entry.name).is_some_and(|server| {
            server.prefix || !(tool.is_definition() || is_built_in(&entry.name))
        }) {
            of_server(entry, tool, &mut place);
            look_up(entry, tool, manifest, &whole, &mut place);
        } else if !tool.is_definition() && !is_built_in(&entry.name) {
            let message = "no entry defines this tool: name its upstream, or correct the name";
            place.key("name").complain(message);
        }
    }
}

/// An entry about a tool that an MCP server defines: what belongs to HTTP would be ignored.
fn of_server(entry: &ToolEntry, tool: &ToolEntry, place: &mut Checker<'_>) {
    let said = [
        ("request", entry.request.is_some()),
        ("input", entry.input.is_some()),
        ("parameters", entry.parameters.is_some()),
        ("pagination", entry.pagination.is_some()),
        ("version", entry.version.is_some()),
    ];
    for (key, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
        let message = "it is not for a tool of an MCP server; leave it out";
        place.key(key).complain(message);
    }
    let reconciles = |tool: &ToolEntry| matches!(tool.recovery, Some(Recovery::Reconcile { .. }));
    if reconciles(entry) && tool.reconcile.is_none() {
        let message = "say which tool of the server looks a lost call up: add reconcile.tool";
        place.key("reconcile").complain(message);
    }
    if entry.reconcile.is_some() && !reconciles(tool) {
        let message = "it is not used without recovery.reconcile";
        place.key("reconcile").complain(message);
    }
    errors(entry, place);
}

/// The look-up of a tool of an MCP server: a call of another tool of the same server that only reads.
fn look_up(
    entry: &ToolEntry,
    tool: &ToolEntry,
    manifest: &Manifest,
    whole: &BTreeMap<String, ToolEntry>,
    place: &mut Checker<'_>,
) {
    let Some(own) = &entry.reconcile else { return };
    let mut place = place.key("reconcile");
    if own.request.is_some() {
        let message = "it is not for a tool of an MCP server; use tool and arguments";
        place.key("request").complain(message);
    }
    place.key("found").pointer(&own.found);
    for (name, value) in &own.arguments {
        if let Some(Err(error)) = value.as_str().map(super::Template::parse) {
            place.key("arguments").key(name).complain(error.to_string());
        }
    }
    let Some(name) = &own.tool else {
        let message = "say which tool of the server looks a lost call up";
        place.key("tool").complain(message);
        return;
    };
    let server = |name: &str| manifest.server_of(name).map(|own| own.name.as_str());
    if server(name) != server(&entry.name) || *name == tool.name {
        let message = format!("{name:?} is no other tool of the same MCP server");
        place.key("tool").complain(message);
    } else if whole.get(name).and_then(|own| own.effect) != Some(Effect::Read) {
        let message = format!("confirm that {name} changes nothing: add effect = \"read\" to it");
        place.key("tool").complain(message);
    }
}

fn tool_entry(tool: &ToolEntry, place: &mut Checker<'_>) {
    if tool
        .description
        .as_deref()
        .is_none_or(|text| text.trim().is_empty())
    {
        let message = "a tool needs a description: it is what a model chooses it by";
        place.key("description").complain(message);
    }
    input(tool, place);
    request::check(tool, place);
    errors(tool, place);
    recovery(tool, place);
    if let Some(ms) = tool.deadline_ms {
        place.key("deadline_ms").within(ms, 1, 24 * 60 * 60 * 1_000);
    }
    if tool.effect() == Effect::Read && tool.confirm.as_ref().is_some_and(Confirmation::is_asked) {
        let message = "a read is not confirmed; declare the effect, or leave this out";
        place.key("confirm").complain(message);
    }
    for (at, field) in tool.key_fields.iter().flatten().enumerate() {
        let mut place = place.key("key_fields");
        let mut place = place.item(at);
        if !field.starts_with('/') {
            place.complain(format!("{field:?} is not a JSON pointer; write /{field}"));
        }
    }
    let is_derived = matches!(tool.key, None | Some(KeyRule::Derive));
    if tool.key_fields.as_ref().is_some_and(|it| !it.is_empty()) && !is_derived {
        let message = "key fields are for key = \"derive\"";
        place.key("key_fields").complain(message);
    }
}

fn input(tool: &ToolEntry, place: &mut Checker<'_>) {
    if tool.input.is_some() && tool.parameters.is_some() {
        let message = "declare the arguments once: as input or as parameters";
        place.key("parameters").complain(message);
    }
    if let Some(schema) = &tool.input
        && schema.get("type").and_then(|kind| kind.as_str()) != Some("object")
    {
        let message = "the schema of the arguments needs type = \"object\" at its root";
        place.key("input").complain(message);
    }
    if let Some(select) = tool.response.as_ref().and_then(|it| it.select.as_deref())
        && let Err(error) = crate::select::Filter::parse(select)
    {
        let mut place = place.key("response");
        place.key("select").complain(error.to_string());
    }
    // A schema that cannot be bound against is found before it is used.
    match crate::declare::spec_of(tool) {
        Ok(spec) => {
            let key = if tool.input.is_some() {
                "input"
            } else {
                "parameters"
            };
            match crate::declare::probe(spec) {
                // These are complained about at their own keys.
                Ok(()) | Err(catalog::Error::KeyFields { .. }) => {}
                Err(error) => place.key(key).complain(error.to_string()),
            }
        }
        // The name is complained about already.
        Err(Undeclared::Name(_)) => {}
        Err(Undeclared::Argument { argument, message }) => {
            place.key("arguments").key(&argument).complain(message);
        }
    }
}

fn errors(tool: &ToolEntry, place: &mut Checker<'_>) {
    for (at, rule) in tool.errors.iter().flatten().enumerate() {
        let mut place = place.key("errors");
        let mut place = place.item(at);
        let ErrorRule {
            status,
            pointer,
            equals,
            ..
        } = rule;
        if status.is_none() && pointer.is_none() {
            place.complain("a rule without status and pointer would fit every answer");
        }
        if let Some(text) = status
            && super::Statuses::parse(text).is_none()
        {
            let message = format!("{text:?} is none of 404, 4xx, 500-599");
            place.key("status").complain(message);
        }
        if let Some(text) = pointer {
            place.key("pointer").pointer(text);
        }
        if equals.is_some() && pointer.is_none() {
            place.key("equals").complain("it needs a pointer");
        }
    }
}

fn recovery(tool: &ToolEntry, place: &mut Checker<'_>) {
    let reconciles = matches!(tool.recovery, Some(Recovery::Reconcile { .. }));
    match &tool.reconcile {
        None if reconciles && tool.request.is_some() => {
            let message = "say how a lost call is looked up: add reconcile.request";
            place.key("reconcile").complain(message);
        }
        Some(_) if !reconciles => {
            let message = "it is not used without recovery.reconcile";
            place.key("reconcile").complain(message);
        }
        Some(own) => {
            let mut place = place.key("reconcile");
            if own.tool.is_some() || !own.arguments.is_empty() {
                let message = "it is for a tool of an MCP server; use request";
                place.key("tool").complain(message);
            }
            if own.request.is_none() && tool.request.is_some() {
                place
                    .key("request")
                    .complain("say which request looks it up");
            }
            place.key("found").pointer(&own.found);
        }
        None => {}
    }
    if tool.effect() == Effect::Read && tool.recovery.is_some() {
        place.key("recovery").complain("a read needs no recovery");
    }
}
