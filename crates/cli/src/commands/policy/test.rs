//! `countersign policy test`: cases with the decision that is expected, for CI.

use std::path::{Path, PathBuf};

use countersign::Catalog;
use countersign::clock::{Clock as _, SystemClock};
use countersign_gateway::policy::{Policy, Ruling};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Source;
use super::ask::{Asked, Who};
use super::explain::line;
use crate::answer::write_json;
use crate::commands::counted;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::junit::{self, Case, CaseResult};
use crate::place::PlaceOptions;
use crate::terminal::Terminal;
use crate::{catalog, policy};

/// Decide cases under a policy, and compare with what is expected
///
/// Exit code 1 where a case is decided otherwise. Nothing is called and nothing is recorded.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign policy test cases.toml --policy policy.toml
  countersign policy test cases.json --junit report.xml

A case, in TOML or JSON:
  [[cases]]
  name = \"large orders are asked about\"
  as = \"agent:shopper\"
  user = \"ann\"
  scopes = [\"tools:call\"]
  tool = \"notes.add\"
  args = { text = \"milk\" }
  expect = \"confirm\"        # allow, confirm, four_eyes or deny
  by = \"[[rules]] large\"    # the entry that decides; may be left out")]
pub(crate) struct Test {
    /// The file with the cases
    #[arg(value_name = "FILE")]
    cases: PathBuf,

    /// Also write the results to this file, in the XML format of `JUnit`
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    source: Source,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    cases: Vec<Expected>,
}

/// A case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    name: String,
    expect: Wanted,
    /// The entry that decides.
    by: Option<String>,
    #[serde(rename = "as")]
    who: Option<Who>,
    user: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    tool: String,
    args: Option<Value>,
    session: Option<String>,
    currency: Option<String>,
    at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    Allow,
    Confirm,
    FourEyes,
    Deny,
}

/// Result of a case.
#[derive(Serialize)]
struct Tested {
    name: String,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Test {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let cases = read(&self.cases)?;
        let (options, policy) = self.source.read(options, terminal)?;
        let loaded = options.loaded();
        let catalog = catalog::declared(loaded)?;
        let fits = policy::fits(&policy, &catalog);
        fits.map_err(|error| policy::refused(loaded, error))?;
        let file = policy::file_of(loaded);
        let now = SystemClock::new().now();
        let tested: Vec<Case> = cases
            .iter()
            .map(|case| Case {
                name: case.name.clone(),
                result: match case.failure(&policy, &catalog, now, file.as_deref()) {
                    None => CaseResult::Passed,
                    Some(failure) => CaseResult::Failed(failure),
                },
            })
            .collect();
        if let Some(path) = &self.junit {
            let suite = self.cases.display().to_string();
            std::fs::write(path, junit::xml(&suite, &tested)).map_err(|error| {
                Failure::new(format!("{} cannot be written: {error}", path.display()))
            })?;
        }
        write(terminal, tested)
    }
}

fn write(terminal: &mut Terminal, tested: Vec<Case>) -> Result<Exit, Failure> {
    let failed = tested
        .iter()
        .filter(|case| case.failure().is_some())
        .count();
    let exit = if failed == 0 { Exit::Ok } else { Exit::Refused };
    if terminal.is_for_programs() {
        let tested = tested.into_iter().map(|case| Tested {
            passed: case.failure().is_none(),
            failure: case.failure().map(str::to_owned),
            name: case.name,
        });
        write_json(terminal, &tested.collect::<Vec<_>>())?;
        return Ok(exit);
    }
    for case in &tested {
        if let Some(failure) = case.failure() {
            terminal.say(format_args!("failed: {}: {failure}", case.name))?;
        }
    }
    let all = counted(tested.len(), "case", "cases");
    if failed == 0 {
        terminal.say(format_args!("ok: {all}"))?;
    } else {
        terminal.say(format_args!("{failed} of {all} failed"))?;
    }
    Ok(exit)
}

fn read(path: &Path) -> Result<Vec<Expected>, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("{shown} cannot be read: {error}")))?;
    let is_json = path
        .extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("json"));
    let cases: Result<Cases, String> = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    let cases = cases.map_err(|error| Failure::new(format!("{shown}: {error}")))?;
    if cases.cases.is_empty() {
        return Err(Failure::new(format!("{shown} has no cases")));
    }
    Ok(cases.cases)
}

impl Expected {
    fn asked(&self) -> Asked {
        Asked {
            who: self.who.clone(),
            user: self.user.clone(),
            scopes: self.scopes.clone(),
            tool: self.tool.clone(),
            args: self.args.as_ref().map(Value::to_string),
            session: self.session.clone(),
            currency: self.currency.clone(),
            at: self.at,
        }
    }

    /// Describes the fault of a decision; `None` if it is the expected one.
    fn failure(
        &self,
        policy: &Policy,
        catalog: &Catalog,
        now: Timestamp,
        file: Option<&Path>,
    ) -> Option<String> {
        let wanted = match self.expect {
            Wanted::Allow => Ruling::Allow,
            Wanted::Confirm => Ruling::Confirm,
            Wanted::FourEyes => Ruling::FourEyes,
            Wanted::Deny => Ruling::Deny,
        };
        let explanation = match self.asked().explain(policy, catalog, now) {
            Ok(explanation) => explanation,
            Err(failure) => return Some(format!("{:#}", failure.error)),
        };
        let because = explanation.because.first();
        let by = because.map_or("no entry", |it| it.entry.as_str());
        let why = because.map_or_else(String::new, |it| format!(": {}", line(it, file)));
        if explanation.decision != wanted {
            let (wanted, found) = (wanted.as_str(), explanation.decision.as_str());
            return Some(format!("expected {wanted}, and it is {found}{why}"));
        }
        match &self.by {
            Some(wanted) if wanted != by => {
                Some(format!("expected {wanted} to decide, and {by} does"))
            }
            Some(_) | None => None,
        }
    }
}
