//! The lines of one look at a server.

use unicode_width::UnicodeWidthStr as _;

use super::{Call, Snapshot};
use crate::paint::{Paint, Tone};
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
    let mut lines = flow(&title(snapshot, server, keys), columns, paint);
    lines.extend(flow(&counts(snapshot), columns, paint));
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

/// A piece of a line, with its meaning if it has one.
type Part = (String, Option<Tone>);

/// Puts pieces beside each other, as many as fit on a line. A piece that is wider than the terminal is cut.
fn flow(parts: &[Part], columns: usize, paint: Paint) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for (text, tone) in parts {
        let text = fit(text, columns);
        let width = text.width();
        let shown = tone.map_or_else(|| text.clone(), |tone| paint.tone(tone, &text));
        match lines.last_mut() {
            Some(line) if used + 2 + width <= columns => {
                line.push_str("  ");
                line.push_str(&shown);
                used += 2 + width;
            }
            Some(_) | None => {
                lines.push(shown);
                used = width;
            }
        }
    }
    lines
}

fn title(snapshot: &Snapshot, server: Option<&str>, keys: &str) -> Vec<Part> {
    let up = match snapshot.up_seconds {
        Some(seconds) => format!("up {}", up(seconds)),
        None => "no server runs".to_owned(),
    };
    let at = snapshot.at.split('.').next().unwrap_or_default();
    let parts = ["countersign", server.unwrap_or_default(), &up];
    let parts = parts.map(str::to_owned).into_iter();
    let parts = parts.chain([format!("{at}Z"), keys.to_owned()]);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(|part| (part, None)).collect()
}

fn counts(snapshot: &Snapshot) -> Vec<Part> {
    let counted = |what: &str, count: u64, tone: Tone| {
        let tone = (count > 0).then_some(tone);
        (format!("{what} {count}"), tone)
    };
    let plain = |what: &str, count: u64| (format!("{what} {count}"), None);
    let errors = snapshot.errors_last_minute;
    let mut parts = vec![
        plain("calls/min", snapshot.calls_last_minute),
        counted("errors/min", errors, Tone::Bad),
    ];
    let running = snapshot.running.map(|count| plain("running", count as u64));
    let doubts = snapshot.in_doubt;
    let doubts = doubts.map(|count| counted("in doubt", count, Tone::Bad));
    let waiting = snapshot.approvals_open;
    let waiting = waiting.map(|count| counted("approvals waiting", count as u64, Tone::Warn));
    let unsigned = snapshot.unsigned.map(|count| plain("unsigned", count));
    parts.extend([running, doubts, waiting, unsigned].into_iter().flatten());
    parts
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

    /// Pieces go on in the next line where there is no room; colours take none.
    #[test]
    fn pieces_flow() {
        let parts = [
            ("calls 7".to_owned(), None),
            ("errors 1".to_owned(), Some(Tone::Bad)),
            ("running 0".to_owned(), None),
        ];
        let off = Paint::new(false);
        assert_eq!(flow(&parts, 80, off), ["calls 7  errors 1  running 0"]);
        assert_eq!(flow(&parts, 17, off), ["calls 7  errors 1", "running 0"]);
        assert_eq!(flow(&parts, 8, off).len(), 3);
        assert_eq!(flow(&parts[..1], 4, off), ["cal…"]);
        let on = flow(&parts, 17, Paint::new(true));
        assert_eq!(on[0], "calls 7  \u{1b}[1;31merrors 1\u{1b}[0m");
    }

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
