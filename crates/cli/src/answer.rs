//! Output of a command: one JSON value for programs, a table or lines for people.

use std::io::Write as _;

use countersign::contract::Actor;
use serde::Serialize;

use crate::failure::Failure;
use crate::json;
use crate::table::{Table, visible};
use crate::terminal::Terminal;

/// Writes one line of JSON for programs, or formatted JSON for people.
pub(crate) fn write_json(terminal: &mut Terminal, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)?;
    let written = if terminal.is_for_programs() {
        let mut line = String::with_capacity(text.len());
        json::compact(&text, &mut line);
        line
    } else {
        json::pretty(&text)
    };
    Ok(writeln!(terminal.data(), "{written}")?)
}

/// Writes the value for programs, or its lines for people, each with a name.
pub(crate) fn write_lines(
    terminal: &mut Terminal,
    value: &impl Serialize,
    lines: &[(&str, String)],
) -> Result<(), Failure> {
    if terminal.is_for_programs() {
        return write_json(terminal, value);
    }
    let out = terminal.data();
    for (name, value) in lines {
        writeln!(out, "{name}: {}", visible(value))?;
    }
    Ok(())
}

/// An actor for people.
pub(crate) fn named(actor: &Actor) -> String {
    format!("{} {}", actor.kind.as_str(), actor.id)
}

/// Writes the value for programs, or the table for people. An empty table is replaced by the sentence `nothing`.
pub(crate) fn write_table(
    terminal: &mut Terminal,
    value: &impl Serialize,
    table: Table,
    nothing: &str,
) -> Result<(), Failure> {
    if terminal.is_for_programs() {
        return write_json(terminal, value);
    }
    if table.is_empty() {
        return Ok(terminal.say(nothing)?);
    }
    let table = table.on(terminal);
    Ok(writeln!(terminal.data(), "{table}")?)
}
