//! Report of the rules of a policy, counted from the records of calls: what they did, and what those that are only observed
//! would have done. Nothing is opened: a record names the rules that held for its call.

use std::collections::{BTreeMap, BTreeSet};

use countersign::contract::SnapshotId;
use countersign::ledger::{self, LogQuery, LogRow, Store};
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::RecordedRule;

/// Number of records that are read at once.
const PAGE: usize = 1000;

/// Report of rules over a period.
#[derive(Debug, Clone, Serialize)]
pub struct RuleReport {
    /// Number of calls that were looked at.
    pub calls: usize,
    /// False if there are older calls in the period, which were not looked at.
    pub is_complete: bool,
    /// Rules that held for at least one call, by name.
    pub rules: Vec<ReportedRule>,
}

/// A rule that held for calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedRule {
    /// Name of the rule, or of the entry that decided.
    pub rule: String,
    /// Outcome of the calls, actual or in observe mode: `deny`, `confirm`, `four_eyes`, or `failed`.
    pub then: String,
    /// False if the rule was only observed.
    pub enforced: bool,
    /// Number of calls for which it held.
    pub calls: u64,
    /// Tools of these calls.
    pub tools: BTreeSet<String>,
    /// Number of users on whose behalf they were made.
    pub users: usize,
    /// Time of the newest one.
    pub newest: String,
    /// Its record.
    pub newest_evidence: String,
}

/// The part of a record that a report looks at. The rest is passed over: there are many records.
#[derive(Deserialize)]
struct Ruled {
    at: String,
    #[serde(default)]
    reply: Option<IgnoredAny>,
    #[serde(default)]
    act: RuledAct,
}

#[derive(Default, Deserialize)]
struct RuledAct {
    #[serde(default)]
    rules: Vec<RecordedRule>,
}

/// Calls of a rule, while they are counted.
struct Counted {
    calls: u64,
    tools: BTreeSet<String>,
    users: BTreeSet<String>,
    newest: (String, String),
}

impl RuleReport {
    /// Counts the newest calls since a time, at most `calls_max`. Rules that were enforced are left out unless `all` is set.
    pub async fn of(
        store: &dyn Store,
        since: Timestamp,
        calls_max: usize,
        all: bool,
    ) -> Result<Self, ledger::Error> {
        let mut query = LogQuery {
            since: Some(since),
            limit: PAGE,
            ..LogQuery::default()
        };
        let mut rules: BTreeMap<RecordedRule, Counted> = BTreeMap::new();
        let mut calls = 0_usize;
        let mut is_complete = true;
        'pages: loop {
            let page = store.records(&query).await?;
            let Some(last) = page.last() else { break };
            query.before = Some((last.at, last.id.clone()));
            let of_calls = page.iter().filter(|row| row.request_id.is_some());
            let of_calls: Vec<&LogRow> = of_calls.collect();
            let ids: Vec<SnapshotId> = of_calls.iter().map(|row| row.id.clone()).collect();
            for (row, leaf) in of_calls.into_iter().zip(store.leaves_of(&ids).await?) {
                let record = leaf.and_then(|(_, leaf)| serde_json::from_slice::<Ruled>(&leaf).ok());
                // Intents and approvals of a call have its id, and no answer.
                let Some(record) = record.filter(|record| record.reply.is_some()) else {
                    continue;
                };
                if calls == calls_max {
                    is_complete = false;
                    break 'pages;
                }
                calls += 1;
                count(&mut rules, row, record);
            }
        }
        let rules = rules.into_iter();
        let rules = rules.filter(|(rule, _)| all || rule.is_observed());
        Ok(Self {
            calls,
            is_complete,
            rules: rules.map(ReportedRule::of).collect(),
        })
    }
}

fn count(rules: &mut BTreeMap<RecordedRule, Counted>, row: &LogRow, record: Ruled) {
    for rule in record.act.rules {
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

impl ReportedRule {
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
