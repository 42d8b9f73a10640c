//! The lines of one look at a server.

use super::{Call, Snapshot};
use crate::paint::Paint;
use crate::table::{Table, fit, visible};
use crate::terminal::Terminal;

/// Maximum number of tools in a frame.
const TOOLS_MAX: usize = 8;

/// Width of a frame where the width of the terminal is not known.
const COLUMNS_USUAL: usize = 120;

/// All lines, the important ones first. Each fits the terminal.
pub(super) fn lines(
    snapshot: &Snapshot,
    server: Option<&str>,
    keys: &str,
    terminal: &Terminal,
) -> Vec<String> {
    let paint = terminal.paint();
    let columns = terminal.columns().unwrap_or(COLUMNS_USUAL);
    let mut lines = vec![title(snapshot, server, keys, columns)];
    lines.push(counts(snapshot, paint));
    for problem in &snapshot.problems {
        let problem = fit(&format!("problem: {}", visible(problem)), columns);
        lines.push(paint.labelled(&problem));
    }
    if !snapshot.tools.is_empty() {
        let mut table = Table::new(["CALLS", "ERRORS", "P50", "P99", "TOOL"]);
        for tool in snapshot.tools.iter().take(TOOLS_MAX) {
            table.row([
                &tool.calls.to_string(),
                &tool.errors.to_string(),
                &duration(tool.p50_us),
                &duration(tool.p99_us),
                &tool.name,
            ]);
        }
        lines.push(String::new());
        lines.extend(split(table, paint, columns));
        let more = snapshot.tools.len().saturating_sub(TOOLS_MAX);
        if more > 0 {
            lines.push(paint.quiet(&format!("… and {more} more")));
        }
    }
    lines.push(String::new());
    if snapshot.calls.is_empty() {
        lines.push(paint.quiet("no calls yet"));
        return lines;
    }
    let mut table = Table::new(["TIME", "USER", "TOOL", "CODE", "TOOK", "REQUEST ID"]);
    for call in &snapshot.calls {
        row(&mut table, call);
    }
    lines.extend(split(table, paint, columns));
    lines
}

fn row(table: &mut Table, call: &Call) {
    // Only the time of the day: what is shown is what happens now.
    let time = call.at.split_once('T').map_or("", |(_, time)| time);
    let time = time.get(..8).unwrap_or(time);
    let took = call.took_us.map_or_else(|| "-".to_owned(), duration);
    table.row([
        time,
        &call.user_id,
        call.tool.as_deref().unwrap_or("-"),
        &call.code,
        &took,
        call.request_id.as_deref().unwrap_or("-"),
    ]);
}

fn split(table: Table, paint: Paint, columns: usize) -> Vec<String> {
    let text = table.painted(paint).within(Some(columns)).to_string();
    text.lines().map(str::to_owned).collect()
}

fn title(snapshot: &Snapshot, server: Option<&str>, keys: &str, columns: usize) -> String {
    let mut parts = vec!["countersign".to_owned()];
    parts.extend(server.map(str::to_owned));
    parts.push(match snapshot.up_seconds {
        Some(seconds) => format!("up {}", up(seconds)),
        None => "no server runs".to_owned(),
    });
    parts.push(snapshot.at.split('.').next().unwrap_or_default().to_owned() + "Z");
    if !keys.is_empty() {
        parts.push(keys.to_owned());
    }
    fit(&parts.join("  "), columns)
}

fn counts(snapshot: &Snapshot, paint: Paint) -> String {
    let errors = snapshot.errors_last_minute;
    let errors_text = format!("errors/min {errors}");
    let mut parts = vec![format!("calls/min {}", snapshot.calls_last_minute)];
    parts.push(if errors > 0 {
        paint.bad(&errors_text)
    } else {
        errors_text
    });
    let running = snapshot.running.map(|count| format!("running {count}"));
    parts.extend(running);
    if let Some(count) = snapshot.in_doubt {
        let text = format!("in doubt {count}");
        parts.push(if count > 0 { paint.bad(&text) } else { text });
    }
    if let Some(count) = snapshot.approvals_open {
        let text = format!("approvals waiting {count}");
        parts.push(if count > 0 { paint.warn(&text) } else { text });
    }
    parts.extend(snapshot.unsigned.map(|count| format!("unsigned {count}")));
    parts.join("  ")
}

/// A duration as people read it.
fn duration(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", us / 1_000),
        _ => format!("{}.{} s", us / 1_000_000, us / 100_000 % 10),
    }
}

fn up(seconds: i64) -> String {
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (_, _) => format!("{hours}h{minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let check = |us, expected: &str| assert_eq!(duration(us), expected);
        check(0, "0 µs");
        check(999, "999 µs");
        check(1_000, "1 ms");
        check(999_999, "999 ms");
        check(1_000_000, "1.0 s");
        check(61_950_000, "61.9 s");
        assert_eq!(
            (up(59), up(61), up(3_661)),
            ("59s".into(), "1m01s".into(), "1h01m".into())
        );
    }
}
