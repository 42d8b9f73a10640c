//! `countersign config`: the values that count, each with its origin, and the schema of the file.

use std::io::Write as _;

use countersign_config::{Row, schema};
use countersign_gateway::policy;
use serde_json::{Value, json};

use crate::answer::{write_json, write_table};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceFlags;
use crate::table::Table;
use crate::telemetry;
use crate::terminal::Terminal;

/// Show the configuration with the origin of each value, or its JSON Schema
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Show(Show),
    Schema(Schema),
}

/// List every setting with its effective value
///
/// Order of precedence: flag, environment variable, file, default. Secrets are never shown.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign config show
  countersign config show --origin
  countersign config show --origin --json | jq '.[] | select(.origin.from != \"default\")'")]
struct Show {
    /// Show the origin of each value: default, file and line, variable, or flag
    #[arg(long)]
    origin: bool,
}

/// Write the JSON Schema of countersign.toml, for editors
///
/// Many editors use the schema if the first line of the file is #:schema ./countersign.schema.json
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign config schema > countersign.schema.json")]
struct Schema {}

impl ConfigCommand {
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        match &self.command {
            Command::Show(show) => show.run(flags, terminal),
            Command::Schema(Schema {}) => {
                if terminal.is_for_programs() {
                    write_json(terminal, &schema::with_policy(&policy::schema()))?;
                } else {
                    let text = schema::text(&policy::schema());
                    write!(terminal.data(), "{text}")?;
                }
                Ok(Exit::Ok)
            }
        }
    }
}

impl Show {
    fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let options = flags.read(terminal)?.with(telemetry::environment()?)?;
        let rows = options.loaded().rows();
        let values: Vec<Value> = rows.iter().map(|row| self.value(row)).collect();
        let mut table = if self.origin {
            Table::new(["KEY", "FROM", "VALUE"])
        } else {
            Table::new(["KEY", "VALUE"])
        };
        for row in &rows {
            let (value, origin) = (in_toml(&row.value), row.origin.to_string());
            if self.origin {
                table.row([&*row.key, &origin, &value]);
            } else {
                table.row([&*row.key, &value]);
            }
        }
        write_table(terminal, &values, table, "no settings")?;
        // A socket that cannot be trusted is for the commands that need it to say.
        if let Ok(Some(running)) = options.running() {
            terminal.say(format_args!(
                "note: these are the values for commands started here. A server runs (process {}) and may have other flags and variables: its console shows its own values under /settings",
                running.about.pid
            ))?;
        }
        Ok(Exit::Ok)
    }

    fn value(&self, row: &Row) -> Value {
        if self.origin {
            json!({"key": row.key, "value": row.value, "origin": row.origin})
        } else {
            json!({"key": row.key, "value": row.value})
        }
    }
}

/// Formats a value as the file has it; `-` if there is none.
fn in_toml(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => value.to_string(),
    }
}
