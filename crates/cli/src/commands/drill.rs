//! `countersign drill`: the guarantees, tried on this configuration and policy.

use std::path::PathBuf;

use serde_json::json;

use crate::answer::write_table;
use crate::drill::{self, Outcome, Tried};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::junit::{self, Case, CaseResult};
use crate::place::PlaceOptions;
use crate::table::Table;
use crate::terminal::Terminal;

/// Try the guarantees on this configuration and policy, in a scratch store
///
/// Repeats, races, a killed process, approvals, a changed byte, a backup: each line says whether the guarantee held here. No upstream is
/// called, and the real store is not opened. Ends with code 1 if a guarantee was broken.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign drill
  countersign drill --junit drill.xml
  countersign drill --backup /backups
  countersign drill --json | jq '.[] | select(.outcome != \"held\")'")]
pub(crate) struct Drill {
    /// Also write the results as `JUnit` XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Also restore the newest backup of the real store into the scratch folder and verify it: a file, or a folder of them
    #[arg(long, value_name = "FILE|FOLDER")]
    backup: Option<PathBuf>,

    /// Make every effect happen so often, to see that the checks can fail
    #[arg(long, hide = true, default_value_t = 1)]
    times: usize,
}

impl Drill {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let bar = terminal.bar(0, "guarantees tried");
        let tried = drill::run(options, self.times, self.backup.as_deref(), |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        let tried = tried?;
        if let Some(path) = &self.junit {
            let cases: Vec<Case> = tried.iter().map(case).collect();
            std::fs::write(path, junit::xml("countersign drill", &cases)).map_err(|error| {
                Failure::new(format!("{} cannot be written: {error}", path.display()))
            })?;
        }
        let is_broken = |tried: &Tried| matches!(tried.outcome, Outcome::Broken(_));
        let exit = if tried.iter().any(is_broken) {
            Exit::Refused
        } else {
            Exit::Ok
        };
        let rows: Vec<_> = tried.iter().map(row).collect();
        let mut table = Table::new(["OUTCOME", "GUARANTEE", "MS", "SEEN"]);
        for tried in &tried {
            let took = tried.took.as_millis().to_string();
            let outcome = &tried.outcome;
            table.row([outcome.as_str(), tried.guarantee, &took, outcome.because()]);
        }
        write_table(terminal, &rows, table, "no guarantee was tried")?;
        Ok(exit)
    }
}

fn row(tried: &Tried) -> serde_json::Value {
    json!({
        "guarantee": tried.guarantee,
        "outcome": tried.outcome.as_str(),
        "seen": tried.outcome.because(),
        "ms": u64::try_from(tried.took.as_millis()).unwrap_or(u64::MAX),
    })
}

fn case(tried: &Tried) -> Case {
    Case {
        name: tried.guarantee.to_owned(),
        result: match &tried.outcome {
            Outcome::Held(_) => CaseResult::Passed,
            Outcome::Broken(why) => CaseResult::Failed(why.clone()),
            Outcome::NotChecked(why) => CaseResult::Skipped(why.clone()),
        },
    }
}
