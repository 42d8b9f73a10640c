//! The reference page, `docs/configuration.md`: a text for the start, and a table for each section.

use std::fmt::Write as _;

use serde_json::Value;

use crate::schema::{self, Section, Setting};

/// Text before the tables.
const HEAD: &str = include_str!("page/head.md");

/// The whole page; `policy` is the schema of a policy file.
pub fn page(policy: &Value) -> String {
    let mut page = HEAD.to_owned();
    let policy = schema::policy_sections(policy);
    for section in schema::sections().iter().chain(&policy) {
        section_of(section, &mut page);
    }
    page
}

fn section_of(section: &Section, page: &mut String) {
    let heading = match (section.key.as_str(), section.is_list) {
        ("", _) => "Outside of all tables".to_owned(),
        (key, true) => format!("`[[{key}]]`"),
        (key, false) => format!("`[{key}]`"),
    };
    let _ = write!(page, "\n## {heading}\n\n");
    if !section.key.is_empty() && !section.text.is_empty() {
        let _ = write!(page, "{}\n\n", section.text);
    }
    page.push_str(
        "| key | value | meaning | also set by | takes effect |\n|---|---|---|---|---|\n",
    );
    for setting in &section.settings {
        row(setting, page);
    }
    let mut told: Vec<&[Setting]> = Vec::new();
    for setting in &section.settings {
        let parts = setting.parts.as_slice();
        // Two settings of one kind, such as two credentials, have the same members.
        if !parts.is_empty() && !told.contains(&parts) {
            parts_of(name_of(&setting.key), parts, page);
            told.push(parts);
        }
    }
}

/// The members of the tables in a setting's value.
fn parts_of(name: &str, parts: &[Setting], page: &mut String) {
    let _ = write!(
        page,
        "\n### In `{name}`\n\n| key | value | meaning |\n|---|---|---|\n"
    );
    for part in parts {
        let (key, value) = (&part.key, value_of(part));
        let _ = writeln!(page, "| `{key}` | {value} | {} |", escaped(&part.text));
    }
}

fn row(setting: &Setting, page: &mut String) {
    let (name, value) = (name_of(&setting.key), value_of(setting));
    let mut also: Vec<String> = Vec::new();
    also.extend(setting.env.as_ref().map(|name| format!("`{name}`")));
    also.extend(setting.flag.as_ref().map(|name| format!("`{name}`")));
    let when = if setting.is_live {
        "at once"
    } else {
        "at the next start"
    };
    let _ = writeln!(
        page,
        "| `{name}` | {value} | {} | {} | {when} |",
        escaped(&setting.text),
        also.join(", ")
    );
}

/// Name of a setting in its section.
fn name_of(key: &str) -> &str {
    match key.split_once("[].") {
        Some((_, name)) => name,
        None => key.rsplit('.').next().unwrap_or(key),
    }
}

/// Form and default of a value.
fn value_of(setting: &Setting) -> String {
    let form = escaped(&setting.form);
    match &setting.default {
        None => form,
        Some(default) => format!("{form}; default `{}`", in_toml(default)),
    }
}

/// Within a cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A value as the file has it.
pub(crate) fn in_toml(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => format!("{text:?}"),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
