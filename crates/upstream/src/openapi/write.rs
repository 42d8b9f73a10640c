//! The file that an import writes: configuration that a person reads, in an order that stays.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Import, Report};
use crate::manifest::{Manifest, ToolEntry, Upstream};

/// The text of the file. `upstreams` are written in place of those of the import if they are not empty: they belong to the operator.
pub fn toml(import: &Import, upstreams: &[Upstream]) -> String {
    let Import { manifest, report } = import;
    let mut out = head(report, manifest);
    let upstreams = if upstreams.is_empty() {
        &manifest.upstream
    } else {
        upstreams
    };
    for upstream in upstreams {
        upstream_entry(upstream, &mut out);
    }
    for (entry, told) in manifest.tool.iter().zip(&report.tools) {
        out.push('\n');
        for note in &told.notes {
            comment(note, &mut out);
        }
        if let Some(hint) = &told.hint {
            comment(&format!("its parameters look like pages: {hint}"), &mut out);
        }
        tool_entry(entry, &mut out);
    }
    out
}

/// Reads a file that an import wrote.
pub fn read(text: &str) -> Result<Manifest, toml::de::Error> {
    toml::from_str(text)
}

fn head(report: &Report, manifest: &Manifest) -> String {
    let mut out = String::new();
    let title = &report.title;
    let (tools, operations) = (manifest.tool.len(), report.operations);
    comment(
        &format!("Imported by countersign: {title}. {tools} tools of {operations} operations."),
        &mut out,
    );
    comment(
        "The next import writes the [[tool]] entries anew and keeps [[upstream]].",
        &mut out,
    );
    comment(
        "To change a tool, write an entry of the same name into countersign.toml, which includes this file:",
        &mut out,
    );
    comment(
        "what it says counts, and stays. Each effect is a guess by the method until such an entry sets it.",
        &mut out,
    );
    for note in &report.notes {
        comment(note, &mut out);
    }
    if !report.refused.is_empty() {
        comment("Refused:", &mut out);
        for refused in &report.refused {
            comment(
                &format!(
                    "  line {}, {}: {}",
                    refused.line, refused.operation, refused.reason
                ),
                &mut out,
            );
        }
    }
    out.push('\n');
    out
}

/// A comment in one line.
pub(crate) fn comment(text: &str, out: &mut String) {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let _ = writeln!(out, "# {text}");
}

/// Writes an upstream without the settings that are the default anyway.
pub(crate) fn upstream_entry(upstream: &Upstream, out: &mut String) {
    let written = serde_json::to_value(upstream).unwrap_or_default();
    let usual = serde_json::to_value(Upstream::http("", "")).unwrap_or_default();
    out.push_str("[[upstream]]\n");
    let first = ["name", "base_url"];
    let rest = written
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str());
    let rest = rest.filter(|key| !first.contains(key) && written.get(key) != usual.get(key));
    for key in first.into_iter().chain(rest.collect::<Vec<_>>()) {
        if let Some(value) = written.get(key) {
            line(key, value, out);
        }
    }
}

/// The members of an entry, in the order in which they are read. The rest follows them.
const ORDER: [&str; 10] = [
    "name",
    "upstream",
    "title",
    "description",
    "effect",
    "guessed",
    "request",
    "imported",
    "input",
    "arguments",
];

fn tool_entry(entry: &ToolEntry, out: &mut String) {
    let Ok(Value::Object(written)) = serde_json::to_value(entry) else {
        return;
    };
    out.push_str("[[tool]]\n");
    let rest = written
        .keys()
        .map(String::as_str)
        .filter(|key| !ORDER.contains(key));
    let plain = ORDER
        .into_iter()
        .filter(|key| !matches!(*key, "input" | "arguments"))
        .chain(rest);
    for key in plain {
        if let Some(value) = written.get(key) {
            line(key, value, out);
        }
    }
    if let Some(Value::Object(input)) = written.get("input") {
        table("tool.input", input, &["properties", "$defs"], out);
    }
    if let Some(Value::Object(arguments)) = written.get("arguments") {
        table("tool.arguments", arguments, &[], out);
    }
}

/// A table with one line a member; those of `below` are tables of their own.
fn table(name: &str, members: &Map<String, Value>, below: &[&str], out: &mut String) {
    let _ = writeln!(out, "[{name}]");
    for (key, value) in members
        .iter()
        .filter(|(key, _)| !below.contains(&key.as_str()))
    {
        line(key, value, out);
    }
    for key in below {
        if let Some(Value::Object(members)) = members.get(*key) {
            table(&format!("{name}.{}", quoted(key)), members, &[], out);
        }
    }
}

fn line(key: &str, value: &Value, out: &mut String) {
    let mut text = String::new();
    let written = value.serialize(toml::ser::ValueSerializer::new(&mut text));
    debug_assert!(written.is_ok(), "{key}: {value}");
    let _ = writeln!(out, "{} = {text}", quoted(key));
}

fn quoted(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(is_bare) {
        return key.to_owned();
    }
    let mut text = String::new();
    let _ = Value::from(key).serialize(toml::ser::ValueSerializer::new(&mut text));
    text
}
