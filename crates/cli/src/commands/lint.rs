//! `countersign lint`: whether a configuration can be used, with everything behind it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use countersign_config::{Document, FILE_NAME, Loaded, Mistake, Mistakes};
use serde::Serialize;
use serde_json::json;

use super::counted;
use crate::answer::write_json;
use crate::config::Texts;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceFlags;
use crate::table::visible;
use crate::telemetry;
use crate::terminal::Terminal;

mod behind;
mod tools;

pub(crate) use tools::unconfirmed;

/// Check a configuration: the file, policy, rules, secrets, tools and upstreams
///
/// Changes nothing, and sends nothing without --connect. A server does not start with errors; it starts with warnings.
/// Exit code 1 if there are errors.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign lint
  countersign lint etc/countersign.toml --connect
  countersign lint --strict --json | jq '.findings[]'")]
pub(crate) struct Lint {
    /// File to check [default: --config, or countersign.toml in the working folder]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Also connect to each upstream
    #[arg(long)]
    connect: bool,

    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    /// No server starts with it.
    Error,
    /// An operator should look at it.
    Warning,
}

/// A finding.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    #[serde(flatten)]
    pub(super) mistake: Mistake,
}

/// Gathers the findings.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    fn error(&mut self, mistake: Mistake) {
        self.add(Severity::Error, mistake);
    }

    fn warn(&mut self, mistake: Mistake) {
        self.add(Severity::Warning, mistake);
    }

    fn add(&mut self, severity: Severity, mistake: Mistake) {
        // What two looks find is told once.
        if !self.0.iter().any(|known| known.mistake == mistake) {
            self.0.push(Finding { severity, mistake });
        }
    }

    fn errors(&mut self, mistakes: Mistakes) {
        let Mistakes(mistakes) = mistakes;
        for mistake in mistakes {
            self.error(mistake);
        }
    }

    fn count(&self, severity: Severity) -> usize {
        let of_it = |finding: &&Finding| finding.severity == severity;
        self.0.iter().filter(of_it).count()
    }
}

impl Lint {
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let usual = || PathBuf::from(FILE_NAME);
        let path = self.file.clone().or_else(|| flags.config.clone());
        let path = path.unwrap_or_else(usual);
        let (findings, tools) = examine(&path, flags, self.connect)?;
        self.tell(&path, &findings, tools, terminal)
    }

    fn tell(
        &self,
        path: &Path,
        findings: &Findings,
        tools: Option<usize>,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let errors = findings.count(Severity::Error);
        let warnings = findings.count(Severity::Warning);
        let is_ok = errors == 0 && (warnings == 0 || !self.strict);
        let exit = if is_ok { Exit::Ok } else { Exit::Refused };
        let file = path.display().to_string();
        if terminal.is_for_programs() {
            let answer = json!({
                "file": file,
                "ok": is_ok,
                "tools": tools,
                "findings": findings.0,
            });
            write_json(terminal, &answer)?;
            return Ok(exit);
        }
        for finding in &findings.0 {
            let word = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let line = visible(&finding.mistake.to_string());
            writeln!(terminal.data(), "{word}: {line}")?;
        }
        let tools = counted(tools.unwrap_or_default(), "tool", "tools");
        let errors_said = counted(errors, "error", "errors");
        let warnings_said = counted(warnings, "warning", "warnings");
        if errors > 0 {
            terminal.say(format_args!("{file}: {errors_said}, {warnings_said}"))?;
        } else if warnings > 0 {
            terminal.say(format_args!("{file} is valid; {tools}, {warnings_said}"))?;
        } else {
            terminal.say(format_args!("ok: {file} is valid; {tools}"))?;
        }
        Ok(exit)
    }
}

/// Checks a file with everything behind it; with the number of its tools, where they can be counted.
pub(super) fn examine(
    path: &Path,
    flags: &PlaceFlags,
    is_to_connect: bool,
) -> Result<(Findings, Option<usize>), Failure> {
    let texts = Texts::read(path).map_err(|error| {
        Failure::unreadable(path.display(), error)
            .hint("name a file, or create one with `countersign init`")
    })?;
    let mut findings = Findings::default();
    let (document, mistakes) = texts.examine(path);
    let is_whole = mistakes.is_empty();
    findings.errors(Mistakes(mistakes));
    let loaded = document
        .map(|document| loaded(document, flags))
        .transpose()?;
    let tools = match loaded {
        Some(Ok(loaded)) if is_whole => {
            let tools = tools::look(&loaded, is_to_connect, &mut findings)?;
            behind::look(&loaded, &tools, &mut findings);
            Some(tools.len())
        }
        // What does not need the tools is looked at in the same go.
        Some(Ok(loaded)) => {
            behind::look(&loaded, &[], &mut findings);
            None
        }
        Some(Err(mistakes)) => {
            findings.errors(mistakes);
            None
        }
        None => None,
    };
    findings.0.sort_by(|a, b| {
        let place = |one: &Finding| (one.severity, one.mistake.line, one.mistake.column);
        place(a).cmp(&place(b))
    });
    Ok((findings, tools))
}

/// The file with environment and flags on top, as a server would have it.
fn loaded(document: Document, flags: &PlaceFlags) -> Result<Result<Loaded, Mistakes>, Failure> {
    let mut given = flags.layers()?;
    given.extend(telemetry::environment()?);
    Ok(Loaded::new(Some(document), given))
}
