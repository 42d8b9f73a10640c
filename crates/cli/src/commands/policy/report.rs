//! `countersign policy report`: what rules have done, and what those that are only observed would have done.

use countersign_gateway::moment::Moment;
use countersign_gateway::policy::RuleReport;
use serde::{Deserialize, Serialize};

use crate::answer::write_table;
use crate::commands::counted;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::{Place, store_failed};
use crate::table::Table;
use crate::terminal::Terminal;

/// Show what rules that are only observed would have done, from the records of calls
///
/// Nothing is opened: a record names the rules that held for its call.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign policy report
  countersign policy report --since 7d --all --json")]
pub(crate) struct Report {
    /// Only calls since then: a time, a date, or 2h for two hours ago
    #[arg(long, value_name = "TIME", default_value = "7d")]
    since: Moment,

    /// Also rules that were enforced
    #[arg(long)]
    all: bool,
}

impl Operation for Report {
    const NAME: &'static str = "policy report";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let since = self.since.before(place.clock.now());
        let store = place.store();
        let report = RuleReport::of(&*store, since, usize::MAX, self.all);
        let report = place.wait(report)?.map_err(store_failed)?;
        write(terminal, &report)
    }
}

fn write(terminal: &mut Terminal, report: &RuleReport) -> Result<Exit, Failure> {
    let mut table = Table::new([
        "RULE", "THEN", "CALLS", "USERS", "TOOLS", "NEWEST", "EVIDENCE",
    ]);
    for row in &report.rules {
        let then = if row.enforced {
            row.then.clone()
        } else {
            format!("would {}", row.then)
        };
        let tools: Vec<&str> = row.tools.iter().map(String::as_str).collect();
        table.row([
            &row.rule,
            &then,
            &row.calls.to_string(),
            &row.users.to_string(),
            &tools.join(", "),
            &row.newest,
            &row.newest_evidence,
        ]);
    }
    let calls = counted(report.calls, "call", "calls");
    write_table(
        terminal,
        &report.rules,
        table,
        &format!("no such rule held for any of {calls}"),
    )?;
    Ok(Exit::Ok)
}
