//! `countersign bind`: binds arguments without running a tool.

mod explain;
mod lines;
mod written;

use std::io::{IsTerminal as _, Read, Write as _, stdin};
use std::path::{Path, PathBuf};

use countersign::contract::BindStatus;
use countersign_args::{Binder, Bound, Reading};
use serde_json::Value;

use super::{BEHIND_ARGS, check_timezone, issue_table};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceFlags;
use crate::terminal::Terminal;
use crate::{catalog, json};
use written::TextDialect;

/// Validate and repair arguments that a model wrote; show every change
///
/// stdout has the value, stderr has every repair and every error. Without TOOL and --schema the text is only parsed.
/// With --schema, properties that the schema does not mention are kept, unless it forbids them. Exit code 1 if the text
/// is refused or incomplete.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign bind memory.search --args \"{query: 'agent state', limit: '2',}\"
  countersign bind --schema search.json --args-file answer.txt --json
  countersign bind --schema search.json - <answer.txt
  countersign bind memory.search --explain --args \"{query: 'agent state', limit: '2',}\"
  countersign bind --dialect text - <message.txt
  countersign bind --jsonl <calls.jsonl >bound.jsonl

With --jsonl each line of stdin is {\"schema\": <JSON Schema or null>, \"raw\": \"<text>\"}, and each line of
stdout is {\"status\": …, \"value\": …, \"issues\": […]}, in the same order. A line that cannot be read gets the
status refused. The exit code is 0.")]
pub(crate) struct Bind {
    /// Tool whose arguments they are; `-` reads the text from stdin
    #[arg(value_name = "TOOL", conflicts_with = "jsonl")]
    tool: Option<String>,

    /// Read the text from stdin
    #[arg(value_name = "-", value_parser = only_stdin, conflicts_with_all = ["args", "args_file", "jsonl"])]
    stdin: Option<String>,

    /// File with the JSON Schema of the arguments
    #[arg(long, value_name = "FILE", conflicts_with = "jsonl")]
    schema: Option<PathBuf>,

    /// Text of the arguments
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["args_file", "jsonl"], allow_hyphen_values = true)]
    args: Option<String>,

    /// File with the text
    #[arg(long, value_name = "FILE", conflicts_with = "jsonl")]
    args_file: Option<PathBuf>,

    /// Bind every line of stdin, each with its own schema
    #[arg(long)]
    jsonl: bool,

    /// The text is a model's whole answer with calls written in it; `text` finds out how, or name the format
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["jsonl", "partial"])]
    dialect: Option<TextDialect>,

    /// Show the text with marks under what was read as something else
    #[arg(long, conflicts_with_all = ["jsonl", "partial"])]
    explain: bool,

    /// The text is incomplete: show only the part that later text cannot change
    #[arg(long, conflicts_with = "jsonl")]
    partial: bool,

    /// Locale for parsing numbers, such as de-DE
    #[arg(long, value_name = "LOCALE")]
    locale: Option<String>,

    /// Time zone for timestamps without an offset, such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
}

impl Bind {
    /// The configuration is looked at where a tool is named.
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        check_timezone(self.timezone.as_deref())?;
        let reading = Reading::new(self.locale.as_deref(), self.timezone.as_deref());
        if self.jsonl {
            lines::bind_lines(&mut stdin().lock(), terminal.data(), &reading)?;
            return Ok(Exit::Ok);
        }
        if let Some(dialect) = self.dialect {
            return self.bind_written(flags, terminal, dialect, &reading);
        }
        let binder = self.binder(flags, terminal)?;
        if self.partial {
            return self.show_partial(terminal, &binder, reading);
        }
        let text = self.text()?;
        let bound = binder.bind_with(&text, &reading);
        if terminal.is_for_programs() {
            writeln!(terminal.data(), "{}", lines::line_of(&bound))?;
        } else {
            self.show(terminal, &text, &bound)?;
        }
        Ok(match bound.status {
            BindStatus::Exact | BindStatus::Repaired => Exit::Ok,
            BindStatus::Incomplete | BindStatus::Refused => Exit::Refused,
        })
    }

    /// Shows what became of a text: with marks under it, or as its value and the changes.
    fn show(&self, terminal: &mut Terminal, text: &str, bound: &Bound) -> Result<(), Failure> {
        if !self.explain {
            return show(terminal, bound);
        }
        let is_coloured = terminal.paint().is_on();
        let shown = explain::explain(text, &bound.issues, is_coloured);
        write!(terminal.data(), "{shown}")?;
        Ok(terminal.say(lines::status(bound.status))?)
    }

    /// Binds the calls of a model's whole text: against the tool or schema that is named, or each against its own tool.
    fn bind_written(
        &self,
        flags: &PlaceFlags,
        terminal: &mut Terminal,
        dialect: TextDialect,
        reading: &Reading,
    ) -> Result<Exit, Failure> {
        let text = self.text()?;
        if self.schema.is_some() || self.tool.as_deref().is_some_and(|tool| tool != "-") {
            let binder = self.binder(flags, terminal)?;
            return self.bind_calls(terminal, &text, dialect, reading, &|_| Ok(binder.clone()));
        }
        let options = flags.read(terminal)?;
        let catalog = catalog::declared(options.loaded())?;
        let binder = |name: &str| -> Result<Binder, Failure> {
            Ok(catalog::find(&catalog, name)?.binder().clone())
        };
        self.bind_calls(terminal, &text, dialect, reading, &binder)
    }

    /// Shows the part of the arguments that is certain while their text still arrives. An incomplete text is not a failure.
    fn show_partial(
        &self,
        terminal: &mut Terminal,
        binder: &Binder,
        reading: Reading,
    ) -> Result<Exit, Failure> {
        let mut stream = binder.stream_with(reading);
        stream.push(&self.text()?);
        let certain = stream.snapshot().unwrap_or_default().to_string();
        if terminal.is_for_programs() {
            let line = lines::line(BindStatus::Incomplete, &certain, &[]);
            writeln!(terminal.data(), "{line}")?;
        } else {
            writeln!(terminal.data(), "{}", json::pretty(&certain))?;
            terminal.say("certain so far")?;
        }
        Ok(Exit::Ok)
    }

    fn binder(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Binder, Failure> {
        match (self.tool.as_deref(), &self.schema) {
            (Some("-") | None, None) => Ok(Binder::undeclared()),
            (Some("-") | None, Some(path)) => {
                let text = read_file(path)?;
                let not_json = |error| {
                    let message = format!("{} is not JSON: {error}", path.display());
                    Failure::new(message).hint("--schema takes a file with one JSON Schema")
                };
                let schema: Value = serde_json::from_str(&text).map_err(not_json)?;
                let unusable = |error| {
                    let context = format!("cannot bind against {}", path.display());
                    anyhow::Error::new(error).context(context)
                };
                Ok(Binder::from_schema(&schema, lines::POLICY).map_err(unusable)?)
            }
            (Some(name), Some(_)) if Path::new(name).is_file() => {
                let message = format!(
                    "{name} is a file, and the first argument of this command is the name of a tool"
                );
                Err(Failure::new(message).hint(format!(
                    "give the arguments with --args-file {name}, with --args TEXT, or on stdin with `-`"
                )))
            }
            (Some(name), Some(_)) => {
                let message =
                    format!("{name} has a schema of its own, so --schema cannot be used with it");
                Err(Failure::new(message).hint("leave out TOOL or --schema; arguments are given with --args TEXT, --args-file FILE, or `-` for stdin"))
            }
            (Some(name), None) => {
                let options = flags.read(terminal)?;
                let catalog = catalog::declared(options.loaded())?;
                Ok(catalog::find(&catalog, name)?.binder().clone())
            }
        }
    }

    fn text(&self) -> Result<String, Failure> {
        if let Some(text) = &self.args {
            if text == "-" {
                return Err(Failure::new("the arguments are the text \"-\"")
                    .hint("to read stdin, write `-` without --args"));
            }
            return Ok(text.clone());
        }
        if let Some(path) = self
            .args_file
            .as_deref()
            .filter(|path| *path != Path::new("-"))
        {
            return read_file(path);
        }
        let asked =
            self.stdin.is_some() || self.args_file.is_some() || self.tool.as_deref() == Some("-");
        if !asked && stdin().is_terminal() {
            return Err(Failure::new("no arguments given")
                .hint("give --args TEXT or --args-file FILE, or `-` to read stdin"));
        }
        let mut text = String::new();
        stdin()
            .lock()
            .take(TEXT_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(|error| Failure::unreadable("stdin", error))?;
        Ok(text)
    }
}

/// The usual mistake of a new user is to give the text without `--args`.
fn only_stdin(word: &str) -> Result<String, String> {
    match word {
        "-" => Ok(word.to_owned()),
        _ => Err(BEHIND_ARGS.to_owned()),
    }
}

/// Maximum number of bytes that are read: more than the binder accepts, so that the binder refuses longer texts with its own message.
const TEXT_BYTES_MAX: u64 = 64 * 1024 * 1024;

fn read_file(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::unreadable(path.display(), error))
}

fn show(terminal: &mut Terminal, bound: &Bound) -> Result<(), Failure> {
    if let Some(arguments) = &bound.arguments {
        writeln!(terminal.data(), "{}", json::pretty(arguments.as_json()))?;
    }
    terminal.say(lines::status(bound.status))?;
    let table = issue_table(&bound.issues);
    if !table.is_empty() {
        terminal.say(table)?;
    }
    Ok(())
}
