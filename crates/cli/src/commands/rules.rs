//! `countersign rules`: the rule sets, their versions and their content.

use std::io::Write as _;

use serde::Serialize;

use crate::answer::{write_json, write_table};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::place::PlaceOptions;
use crate::rules::{Known, Origin, RuleOptions, Version};
use crate::table::Table;
use crate::terminal::Terminal;

/// Number of digits of a version that people are shown.
const DIGITS_SHOWN: usize = 12;

/// Minimum number of digits that name a version.
const DIGITS_MIN: usize = 6;

/// List rule sets with all versions, or show one
///
/// The version is the SHA-256 of the file. Every record names the versions that it used. Versions that were in force are
/// kept in the data folder, so that recorded calls can be replayed.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "\
Examples:
  countersign rules
  countersign rules --json
  countersign rules show fx
  countersign rules show vat > vat.json"
)]
pub(crate) struct RulesCommand {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    rules: RuleOptions,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Show(Show),
}

/// Write one version to stdout
#[derive(Debug, clap::Args)]
struct Show {
    /// Name of the rule set
    #[arg(value_name = "NAME")]
    name: String,

    /// Label, or first digits of the version [default: the version in force]
    #[arg(value_name = "VERSION")]
    version: Option<String>,

    #[command(flatten)]
    rules: RuleOptions,
}

/// One version with its text.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    version: String,
    label: Option<&'a str>,
    in_force: bool,
    text: &'a str,
}

/// A version of a list.
#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    version: String,
    label: Option<&'a str>,
    in_force: bool,
    from: &'static str,
}

impl RulesCommand {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        match &self.command {
            Some(Command::Show(show)) => show.run(options, terminal),
            None => {
                let known = known(&self.rules, options, terminal)?;
                list(&known, terminal)
            }
        }
    }
}

fn known(
    rules: &RuleOptions,
    options: &PlaceOptions,
    terminal: &mut Terminal,
) -> Result<Known, Failure> {
    let options = options.with(rules.given()?)?;
    let folder = Folder::existing(options.names()?.0).ok();
    let known = RuleOptions::configured(&options.config().rules).known(folder.as_ref())?;
    for problem in &known.problems {
        terminal.say(format_args!("warning: {problem}"))?;
    }
    Ok(known)
}

fn list(known: &Known, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let mut table = Table::new(["NAME", "VERSION", "LABEL", "IN FORCE", "FROM"]);
    let mut values = Vec::new();
    for version in &known.versions {
        let label = version.label.as_deref();
        let from = version.origin.as_str();
        let in_force = if version.is_in_force { "yes" } else { "" };
        let digits: String = digits(version).chars().take(DIGITS_SHOWN).collect();
        table.row([&version.name, &digits, label.unwrap_or("-"), in_force, from]);
        values.push(Listed {
            name: &version.name,
            version: version.digest.to_string(),
            label,
            in_force: version.is_in_force,
            from,
        });
    }
    write_table(terminal, &values, table, "no rules")?;
    Ok(Exit::Ok)
}

impl Show {
    fn run(&self, options: &PlaceOptions, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let known = known(&self.rules, options, terminal)?;
        let of_name = || known.versions.iter().filter(|one| one.name == self.name);
        if of_name().next().is_none() {
            let names: Vec<&str> = known.rules.names().collect();
            let message = format!("rule set {:?} does not exist", self.name);
            return Err(Failure::new(message).hint(format!("choose one of {}", names.join(", "))));
        }
        let mut found: Vec<&Version> = match &self.version {
            None => of_name().filter(|one| one.is_in_force).collect(),
            Some(wanted) => of_name().filter(|one| is_named(one, wanted)).collect(),
        };
        // A file that was edited has the label of what is kept of it, and is meant.
        if found.iter().any(|one| one.origin != Origin::Kept) {
            found.retain(|one| one.origin != Origin::Kept);
        }
        let [version] = found.as_slice() else {
            let message = format!(
                "{} versions of {} are named {:?}",
                found.len(),
                self.name,
                self.version.as_deref().unwrap_or_default()
            );
            return Err(Failure::new(message).hint("`countersign rules` lists the versions"));
        };
        let text = known.text(version)?;
        if terminal.is_for_programs() {
            let shown = Shown {
                name: &version.name,
                version: version.digest.to_string(),
                label: version.label.as_deref(),
                in_force: version.is_in_force,
                text: &text,
            };
            write_json(terminal, &shown)?;
        } else {
            write!(terminal.data(), "{text}")?;
        }
        Ok(Exit::Ok)
    }
}

/// The digits of a version, without the name of the digest.
fn digits(version: &Version) -> String {
    let text = version.digest.to_string();
    text.trim_start_matches("sha256:").to_owned()
}

fn is_named(version: &Version, wanted: &str) -> bool {
    let wanted_digits = wanted.trim_start_matches("sha256:");
    version.label.as_deref() == Some(wanted)
        || (wanted_digits.len() >= DIGITS_MIN && digits(version).starts_with(wanted_digits))
}
