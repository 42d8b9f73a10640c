//! `countersign policy report`: what rules have done, and what those that are only observed would have done.

use std::collections::{BTreeMap, BTreeSet};

use countersign::contract::EvidenceRecord;
use countersign::ledger::LogQuery;
use countersign_gateway::policy::RecordedRule;
use serde::{Deserialize, Serialize};

use crate::answer::write_table;
use crate::commands::counted;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::moment::Moment;
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

/// What a rule did.
#[derive(Debug, Serialize)]
struct Row {
    rule: String,
    then: String,
    enforced: bool,
    calls: u64,
    tools: BTreeSet<String>,
    users: usize,
    newest: String,
    newest_evidence: String,
}

/// Calls of a rule, while they are counted.
struct Counted {
    calls: u64,
    tools: BTreeSet<String>,
    users: BTreeSet<String>,
    newest: (String, String),
}

impl Operation for Report {
    const NAME: &'static str = "policy report";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut query = LogQuery {
            since: Some(self.since.before(place.clock.now())),
            limit: PAGE,
            ..LogQuery::default()
        };
        let mut rules: BTreeMap<RecordedRule, Counted> = BTreeMap::new();
        let mut calls = 0_usize;
        loop {
            let page = place.wait(place.store().records(&query))?;
            let page = page.map_err(store_failed)?;
            let Some(last) = page.last() else { break };
            query.before = Some((last.at, last.id.clone()));
            for row in page.into_iter().filter(|row| row.request_id.is_some()) {
                calls += 1;
                let stored = place.wait(place.store().record(&row.id))?;
                let Some(stored) = stored.map_err(store_failed)? else {
                    continue;
                };
                let Ok(record) = serde_json::from_slice::<EvidenceRecord>(&stored.leaf) else {
                    continue;
                };
                for rule in RecordedRule::all(&record) {
                    // The newest record comes first.
                    let counted = rules.entry(rule).or_insert_with(|| Counted {
                        calls: 0,
                        tools: BTreeSet::new(),
                        users: BTreeSet::new(),
                        newest: (record.at.clone(), row.id.to_string()),
                    });
                    counted.calls += 1;
                    counted.tools.extend(row.tool.clone());
                    counted.users.insert(row.user_id.clone());
                }
            }
        }
        let wanted = rules.into_iter();
        let wanted = wanted.filter(|(rule, _)| self.all || rule.is_observed());
        let rows: Vec<Row> = wanted.map(Row::of).collect();
        write(terminal, &rows, calls)
    }
}

/// Number of records that are read at once.
const PAGE: usize = 1000;

impl Row {
    fn of((rule, counted): (RecordedRule, Counted)) -> Self {
        let (newest, newest_evidence) = counted.newest;
        Self {
            enforced: !rule.is_observed(),
            rule: rule.rule,
            then: rule.then,
            calls: counted.calls,
            tools: counted.tools,
            users: counted.users.len(),
            newest,
            newest_evidence,
        }
    }
}

fn write(terminal: &mut Terminal, rows: &[Row], calls: usize) -> Result<Exit, Failure> {
    let mut table = Table::new([
        "RULE", "THEN", "CALLS", "USERS", "TOOLS", "NEWEST", "EVIDENCE",
    ]);
    for row in rows {
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
    let calls = counted(calls, "call", "calls");
    write_table(
        terminal,
        &rows,
        table,
        &format!("no such rule held for any of {calls}"),
    )?;
    Ok(Exit::Ok)
}
