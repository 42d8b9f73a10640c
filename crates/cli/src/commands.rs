//! The commands, one file each, with its options, its help and its run.

pub(crate) mod approvals;
pub(crate) mod attention;
pub(crate) mod bind;
pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod case;
pub(crate) mod claims;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod console;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drill;
pub(crate) mod evidence;
pub(crate) mod grants;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod lint;
mod lookup;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod notify;
pub(crate) mod policy;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod rules;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod tools;
pub(crate) mod top;
pub(crate) mod upstreams;
pub(crate) mod verify;
pub(crate) mod witness;
pub(crate) mod wrap;

use countersign::contract::{ErrorCode, Issue, RecordKind};
use jiff::tz::TimeZone;

use crate::failure::Failure;
use crate::table::Table;

/// Said where the text stands alone on the command line.
const BEHIND_ARGS: &str = "write the arguments after --args";

/// Builds a table of the binder's repairs and refusals, for people.
fn issue_table<'i>(issues: impl IntoIterator<Item = &'i Issue>) -> Table {
    let mut table = Table::new(["SEVERITY", "CODE", "PATH", "BEFORE → AFTER", "MESSAGE"]);
    for issue in issues {
        let severity = serde_json::to_value(issue.severity).unwrap_or_default();
        let after = issue.after.as_ref().map(ToString::to_string);
        let change = match (&issue.before, after) {
            (Some(before), Some(after)) => format!("{before} → {after}"),
            (Some(before), None) => before.clone(),
            (None, Some(after)) => format!("→ {after}"),
            (None, None) => String::new(),
        };
        let message = match &issue.suggestion {
            Some(suggestion) => format!("{}; {suggestion}", issue.message),
            None => issue.message.clone(),
        };
        table.row([
            severity.as_str().unwrap_or_default(),
            issue.code.as_str(),
            &issue.path,
            &change,
            &message,
        ]);
    }
    table
}

/// Checks the reason of an operator's action: it needs at least one visible character.
fn reason(text: &str) -> Result<String, String> {
    let is_said = |c: char| !c.is_whitespace() && !c.is_control();
    if text.chars().any(is_said) {
        return Ok(text.to_owned());
    }
    Err("the reason needs at least one visible character".to_owned())
}

/// Kind of a record, for people. A call whose user has yet to confirm it did not reach its tool, so its record is a denial; but no person
/// has denied it. Programs get the kind as the record has it.
pub(crate) fn shown_kind(kind: RecordKind, code: Option<ErrorCode>) -> &'static str {
    match (kind, code) {
        (RecordKind::Denial, Some(ErrorCode::NeedsUserConfirmation)) => "question",
        (kind, _) => kind.as_str(),
    }
}

/// Formats a count with its noun.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Refuses a time zone that is not known. The binder would leave it out silently.
fn check_timezone(timezone: Option<&str>) -> Result<(), Failure> {
    match timezone {
        Some(name) if TimeZone::get(name).is_err() => {
            Err(Failure::new(format!("unknown time zone {name:?}"))
                .hint("use an IANA name such as Europe/Berlin"))
        }
        Some(_) | None => Ok(()),
    }
}
