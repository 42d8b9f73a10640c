//! A status, line by line.

use serde_json::Value;

use crate::commands::counted;
use crate::table::Table;

/// Lists the status, as a name and a sentence each.
pub(super) fn of(status: &Value) -> Vec<(&'static str, String)> {
    let at = |pointer: &str| status.pointer(pointer).filter(|value| !value.is_null());
    let text = |pointer: &str| at(pointer).and_then(Value::as_str).map(str::to_owned);
    let number = |pointer: &str| at(pointer).and_then(Value::as_u64);
    let mut lines = Vec::new();
    lines.push(("server", server(status)));
    if let Some(revision) = text("/policy/revision") {
        let since = text("/policy/since").map(|since| format!(" since {since}"));
        lines.push(("policy", format!("{revision}{}", since.unwrap_or_default())));
    }
    lines.extend(rejected(status));
    lines.extend(configuration(status));
    lines.push(("store", store(status)));
    if let Some(active) = number("/server/keys/active") {
        let ended = number("/server/keys/ended").unwrap_or_default();
        lines.push(("API keys", format!("{active} active, {ended} ended")));
    }
    let required = at("/caller/credentials_required").and_then(Value::as_bool);
    lines.push((
        "credentials",
        if required == Some(false) {
            "not required on this machine".to_owned()
        } else {
            "required".to_owned()
        },
    ));
    lines.push(("signing", signing(status)));
    if let Some(calls) = number("/recording/calls") {
        let count = |member: &str| number(&format!("/recording/{member}")).unwrap_or_default();
        let (unused, unmatched) = (count("unused"), count("unmatched"));
        let line = format!("answers: {calls} calls, {unused} unused, {unmatched} unmatched");
        lines.push(("recording", line));
    }
    let doubt = number("/server/calls_in_doubt").map(|count| format!(", {count} in doubt"));
    let open = number("/server/approvals_open").map(|count| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        format!(", {}", counted(count, "open approval", "open approvals"))
    });
    let running = number("/server/calls_running").unwrap_or_default();
    let calls = format!(
        "{running} running{}{}",
        doubt.unwrap_or_default(),
        open.unwrap_or_default()
    );
    lines.push(("calls", calls));
    if let Some(tools) = number("/server/tools") {
        lines.push(("tools", tools.to_string()));
    }
    let upstreams = at("/server/upstreams").and_then(Value::as_array);
    let name = |upstream: &Value| {
        let name = upstream.get("name")?.as_str()?;
        Some(match upstream.get("health").and_then(Value::as_str) {
            Some("away") => format!("{name} (away)"),
            Some("changed") => format!("{name} (changed definitions)"),
            _ => name.to_owned(),
        })
    };
    let upstreams: Vec<String> = upstreams.into_iter().flatten().filter_map(name).collect();
    lines.push((
        "upstreams",
        if upstreams.is_empty() {
            "none".to_owned()
        } else {
            upstreams.join(", ")
        },
    ));
    lines
}

/// The configuration file, and what of it does not count.
fn configuration(status: &Value) -> Vec<(&'static str, String)> {
    let at = |pointer: &str| status.pointer(pointer).filter(|value| !value.is_null());
    let text = |pointer: &str| at(pointer).and_then(Value::as_str).map(str::to_owned);
    let mut lines = Vec::new();
    if let Some(file) = text("/server/config/file") {
        let since = text("/server/config/since").unwrap_or_default();
        lines.push(("configuration", format!("{file} since {since}")));
    }
    if let Some(refused) = text("/server/config/refused/message") {
        let when = text("/server/config/refused/at").unwrap_or_default();
        let key = text("/server/config/refused/key").unwrap_or_default();
        lines.push(("refused configuration", format!("{when}: {key}: {refused}")));
    }
    let waiting = at("/server/config/at_next_start").and_then(Value::as_array);
    let waiting: Vec<&str> = waiting
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !waiting.is_empty() {
        lines.push(("at the next start", waiting.join(", ")));
    }
    lines
}

/// The last policy file that was not accepted; it may have been mended since.
fn rejected(status: &Value) -> Option<(&'static str, String)> {
    let policy = status.get("policy")?;
    let text = |pointer: &str| policy.pointer(pointer).and_then(Value::as_str);
    let (when, why) = (text("/rejected/at")?, text("/rejected/message")?);
    let is_mended = policy.get("is_file_in_force") == Some(&Value::Bool(true));
    let mended = if is_mended { " (mended since)" } else { "" };
    Some(("rejected policy", format!("{when}: {why}{mended}")))
}

fn server(status: &Value) -> String {
    let text = |pointer: &str| status.pointer(pointer).and_then(Value::as_str);
    let Some(address) = text("/address") else {
        return "not running".to_owned();
    };
    let up = status
        .pointer("/program/up_seconds")
        .and_then(Value::as_u64);
    let mut line = format!(
        "{address}, version {}, up {}",
        text("/program/version").unwrap_or_default(),
        duration(up.unwrap_or_default())
    );
    if let Some(process) = status.get("process").and_then(Value::as_u64) {
        line = format!("{line}, process {process}");
    }
    if let Some(build) = text("/program/build") {
        line = format!("{line}, build {build}");
    }
    line
}

fn store(status: &Value) -> String {
    let Some(store) = status
        .pointer("/server/store")
        .filter(|store| !store.is_null())
    else {
        return "does not answer".to_owned();
    };
    let number = |member: &str| store.get(member).and_then(Value::as_u64);
    let text = |member: &str| store.get(member).and_then(Value::as_str);
    let mut parts = vec![text("kind").unwrap_or_default().to_owned()];
    parts.extend(number("bytes").map(bytes));
    let records = usize::try_from(number("records").unwrap_or_default()).unwrap_or(usize::MAX);
    parts.push(counted(records, "record", "records"));
    let is_writable = store.get("is_writable").and_then(Value::as_bool);
    parts.push(
        if is_writable == Some(true) {
            "writable"
        } else {
            "NOT WRITABLE"
        }
        .to_owned(),
    );
    match (number("free_bytes"), text("kind")) {
        (Some(free), _) => parts.push(format!("{} free", bytes(free))),
        // The disk is the database server's, which does not say.
        (None, Some("postgres")) => {
            parts.push("free disk unknown (the database server's)".to_owned());
        }
        (None, Some(_) | None) => {}
    }
    parts.extend(text("last_commit").map(|at| format!("last commit {at}")));
    parts.join(", ")
}

fn signing(status: &Value) -> String {
    let number = |pointer: &str| status.pointer(pointer).and_then(Value::as_u64);
    if status
        .pointer("/signing/is_running")
        .and_then(Value::as_bool)
        == Some(false)
    {
        return "STOPPED".to_owned();
    }
    let Some(size) = number("/signing/checkpoint_size") else {
        return "unknown".to_owned();
    };
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut line = format!("checkpoint of {}", counted(size, "record", "records"));
    if let (Some(age), true) = (
        number("/signing/checkpoint_age_seconds"),
        status.get("address").is_some(),
    ) {
        line = format!("{line}, known for {}", duration(age));
    }
    if let Some(unsigned) = number("/signing/unsigned_records") {
        line = format!("{line}, {unsigned} not signed yet");
    }
    line
}

/// Builds a table of the limits, with the rest of each.
pub(super) fn limits(status: &Value) -> Table {
    let mut table = Table::new(["LIMIT", "LEFT", "OF", "PER"]);
    for limit in status
        .get("limits")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let number = |member: &str| {
            limit
                .get(member)
                .and_then(Value::as_u64)
                .unwrap_or_default()
        };
        let text = |member: &str| limit.get(member).and_then(Value::as_str);
        let name = match text("tool") {
            Some(tool) => format!("tool {tool}"),
            None => text("limit").unwrap_or_default().to_owned(),
        };
        let (left, calls) = (number("left").to_string(), number("calls").to_string());
        table.row([&name, &left, &calls, &duration(number("per_seconds"))]);
    }
    table
}

/// Builds a table of the budgets, with the rest of each.
pub(super) fn budgets(status: &Value) -> Table {
    let mut table = Table::new(["BUDGET", "OF EACH", "LEFT", "OF", "WHOLE AGAIN"]);
    for budget in status
        .get("budgets")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |member: &str| budget.get(member).and_then(Value::as_str).unwrap_or("-");
        table.row([
            text("name"),
            text("scope"),
            text("left"),
            text("limit"),
            text("resets_at"),
        ]);
    }
    table
}

/// `2h 3m`, `45s`.
fn duration(seconds: u64) -> String {
    match (
        seconds / 86_400,
        seconds / 3_600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, 0) => format!("{minutes}m"),
        (0, 0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (0, hours, 0, _) => format!("{hours}h"),
        (0, hours, minutes, _) => format!("{hours}h {minutes}m"),
        (days, 0, ..) => format!("{days}d"),
        (days, hours, ..) => format!("{days}d {hours}h"),
    }
}

/// `1.2 MB`.
fn bytes(count: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let mut unit = "bytes";
    let mut tenths = u128::from(count) * 10;
    for next in units {
        if tenths < 10_000 {
            break;
        }
        tenths /= 1_000;
        unit = next;
    }
    if unit == "bytes" {
        return format!("{count} bytes");
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        let check = |seconds, expected: &str| assert_eq!(duration(seconds), expected);
        check(0, "0s");
        check(60, "1m");
        check(7_380, "2h 3m");
        check(86_400, "1d");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(1_234_567), "1.2 MB");
        assert_eq!(bytes(u64::MAX), "18446744.0 TB");
    }
}
