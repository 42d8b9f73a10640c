//! `bind --dialect`: a model's whole text, with its calls written in it.

use std::io::Write as _;
use std::str::FromStr;

use countersign::contract::{BindStatus, Issue, IssueCode};
use countersign::dialect::ProviderCall;
use countersign::dialect::written::{self, TextFormat};
use countersign_args::{Binder, Bound, Reading};

use super::{Bind, lines};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Format of calls in a model's text; `text` finds it by its marks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextDialect(Option<TextFormat>);

impl FromStr for TextDialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "text" => Ok(Self(None)),
            name => match name.parse() {
                Ok(format) => Ok(Self(Some(format))),
                Err(error) => Err(format!("{error}, or text")),
            },
        }
    }
}

impl Bind {
    /// Binds every call of a text; `binder` knows the declaration of a tool by its name.
    pub(super) fn bind_calls(
        &self,
        terminal: &mut Terminal,
        text: &str,
        TextDialect(format): TextDialect,
        reading: &Reading,
        binder: &dyn Fn(&str) -> Result<Binder, Failure>,
    ) -> Result<Exit, Failure> {
        let read = written::read(text, format).map_err(anyhow::Error::new)?;
        let mut exit = Exit::Ok;
        for call in &read.calls {
            // A tool that does not exist says nothing about the other calls.
            let bound = match binder(&call.name) {
                Ok(binder) => bound(call, &binder, reading),
                Err(failure) => {
                    let message = failure.error.to_string();
                    let mut issue = Issue::new(IssueCode::NotFound, "", message);
                    issue.suggestion = failure.hint;
                    Bound::refused(vec![issue])
                }
            };
            if !bound.is_executable() {
                exit = Exit::Refused;
            }
            if terminal.is_for_programs() {
                let line = lines::line_of(&bound);
                let name = serde_json::Value::from(call.name.as_str());
                // A line is an object with at least one member.
                let rest = line.strip_prefix('{').unwrap_or_default();
                writeln!(terminal.data(), "{{\"name\":{name},{rest}")?;
            } else {
                terminal.say(&call.name)?;
                self.show(terminal, &call.arguments.text, &bound)?;
            }
        }
        if read.truncated {
            exit = Exit::Refused;
            terminal.say("the text ends inside thinking or inside a call")?;
        } else if read.calls.is_empty() {
            exit = Exit::Refused;
            terminal.say("there is no call in the text")?;
        }
        Ok(exit)
    }
}

/// Binds one call; what was cut off or has two readings does not run, whatever it looks like.
fn bound(call: &ProviderCall, binder: &Binder, reading: &Reading) -> Bound {
    let mut bound = binder.bind_with(&call.arguments.text, reading);
    if let Some(refusal) = call.refusal() {
        bound.status = if call.truncated {
            BindStatus::Incomplete
        } else {
            BindStatus::Refused
        };
        let mut issues = refusal.details.issues;
        issues.append(&mut bound.issues);
        bound.issues = issues;
    }
    bound
}
