//! The reference page, `docs/configuration.md`: a text for the start, and a table for each section.

use std::fmt::Write as _;

use serde_json::Value;

use crate::schema::{self, Section, Setting};

/// Text before the tables.
const HEAD: &str = include_str!("page/head.md");

/// The whole page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for section in schema::sections() {
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
}

fn row(setting: &Setting, page: &mut String) {
    let name = match setting.key.split_once("[].") {
        Some((_, name)) => name,
        None => setting.key.rsplit('.').next().unwrap_or(&setting.key),
    };
    let value = match &setting.default {
        None => escaped(&setting.form),
        Some(default) => {
            let form = escaped(&setting.form);
            format!("{form}; default `{}`", in_toml(default))
        }
    };
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
