//! Times, durations, sizes and JSON as people read them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::words::Words;

/// `17 Nov 2026, 14:41:07 UTC`, from RFC 3339.
pub(crate) fn moment(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => at.strftime("%-d %b %Y, %H:%M:%S UTC").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// `14:41:07` of today, else `16 Nov, 14:41`.
pub(crate) fn brief(text: &str, now: Timestamp) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) if now.as_second().div_euclid(86_400) == at.as_second().div_euclid(86_400) => {
            at.strftime("%H:%M:%S").to_string()
        }
        Ok(at) => at.strftime("%-d %b, %H:%M").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// `4 min ago`, or `in 9 min`.
pub(crate) fn distance(text: &str, now: Timestamp, w: &Words) -> String {
    let Ok(at) = text.parse::<Timestamp>() else {
        return text.to_owned();
    };
    let seconds = at.duration_since(now).as_secs();
    let span = span(seconds.unsigned_abs(), w);
    let form = if seconds > 0 { w.in_time } else { w.time_ago };
    form.replace("{}", &span)
}

fn span(seconds: u64, w: &Words) -> String {
    match seconds {
        0..120 => format!("{seconds} {}", w.seconds),
        120..7_200 => format!("{} {}", seconds / 60, w.minutes),
        7_200..172_800 => format!("{} {}", seconds / 3_600, w.hours),
        _ => format!("{} {}", seconds / 86_400, w.days),
    }
}

/// `12.9 ms`.
pub(crate) fn took(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..10_000 => tenths(us, 1_000, "ms"),
        10_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..60_000_000 => tenths(us, 1_000_000, "s"),
        _ => format!("{} min {} s", us / 60_000_000, us / 1_000_000 % 60),
    }
}

fn tenths(value: u64, unit: u64, name: &str) -> String {
    format!("{}.{} {name}", value / unit, value * 10 / unit % 10)
}

/// `1,234,567`.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `3.8 %` of something; empty where there is nothing.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let tenths = part.saturating_mul(1_000) / whole;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// `1.2 MB`.
pub(crate) fn bytes(value: u64) -> String {
    match value {
        0..1_000 => format!("{value} B"),
        1_000..1_000_000 => tenths(value, 1_000, "kB"),
        1_000_000..1_000_000_000 => tenths(value, 1_000_000, "MB"),
        _ => tenths(value, 1_000_000_000, "GB"),
    }
}

/// The first and last signs of a long name.
pub(crate) fn short(text: &str) -> String {
    let signs: Vec<char> = text.chars().collect();
    if signs.len() <= 24 {
        return text.to_owned();
    }
    let head: String = signs.iter().take(14).collect();
    let tail: String = signs.iter().skip(signs.len() - 6).collect();
    format!("{head}…{tail}")
}

/// A place at which two answers differ. What one of them lacks is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) before: String,
    pub(crate) after: String,
}

/// The places at which two values differ, as far as people look.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(Some(before), Some(after), String::new(), &mut found);
    found
}

fn compare(
    before: Option<&Value>,
    after: Option<&Value>,
    path: String,
    found: &mut Vec<Difference>,
) {
    /// Maximum number of differences that are listed.
    const LISTED_MAX: usize = 100;
    if before == after || found.len() == LISTED_MAX {
        return;
    }
    match (before, after) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                compare(a.get(name), b.get(name), format!("{path}/{escaped}"), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                compare(a.get(at), b.get(at), format!("{path}/{at}"), found);
            }
        }
        (before, after) => {
            let text = |value: Option<&Value>| value.map(ToString::to_string);
            found.push(Difference {
                path,
                before: text(before).unwrap_or_default(),
                after: text(after).unwrap_or_default(),
            });
        }
    }
}

/// A line of JSON text: its place, and what is to be said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) notes: Vec<String>,
}

/// JSON line by line; what was changed has a note.
pub(crate) fn lines(value: &Value, notes: &BTreeMap<String, Vec<String>>) -> Vec<Line> {
    let mut lines = Vec::new();
    write(value, "", "", "", notes, &mut lines);
    lines
}

/// Maximum lines of a value on a page.
pub(crate) const LINES_MAX: usize = 400;

/// The first lines, and whether there are more.
pub(crate) fn cut(mut lines: Vec<Line>) -> (Vec<Line>, bool) {
    let is_cut = lines.len() > LINES_MAX;
    lines.truncate(LINES_MAX);
    (lines, is_cut)
}

fn write(
    value: &Value,
    pointer: &str,
    lead: &str,
    end: &str,
    notes: &BTreeMap<String, Vec<String>>,
    lines: &mut Vec<Line>,
) {
    let indent = |lead: &str| {
        let depth = lead.chars().take_while(|sign| *sign == ' ').count();
        " ".repeat(depth)
    };
    let push = |text: String, lines: &mut Vec<Line>| {
        let notes = notes.get(pointer).cloned().unwrap_or_default();
        lines.push(Line { text, notes });
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            push(format!("{lead}{{"), lines);
            let last = members.len() - 1;
            for (at, (name, member)) in members.iter().enumerate() {
                let key = Value::from(name.as_str());
                let lead = format!("{}  {key}: ", indent(lead));
                let comma = if at == last { "" } else { "," };
                write(member, &below(pointer, name), &lead, comma, notes, lines);
            }
            lines.push(bare(format!("{}}}{end}", indent(lead))));
        }
        Value::Array(items) if !items.is_empty() => {
            push(format!("{lead}["), lines);
            let last = items.len() - 1;
            for (at, item) in items.iter().enumerate() {
                let lead = format!("{}  ", indent(lead));
                let comma = if at == last { "" } else { "," };
                let place = below(pointer, &at.to_string());
                write(item, &place, &lead, comma, notes, lines);
            }
            lines.push(bare(format!("{}]{end}", indent(lead))));
        }
        scalar => push(format!("{lead}{scalar}{end}"), lines),
    }
}

fn bare(text: String) -> Line {
    Line {
        text,
        notes: Vec::new(),
    }
}

/// A JSON pointer one step deeper.
pub(crate) fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_told_by_place() {
        let a = serde_json::json!({"n": 1, "l": [1, 2], "o": {"a/b": true}, "gone": null});
        let b = serde_json::json!({"n": 2, "l": [1], "o": {"a/b": true}, "new": "x"});
        let all: Vec<_> = differences(&a, &b)
            .into_iter()
            .map(|one| (one.path, one.before, one.after))
            .collect();
        let of = |path: &str, a: &str, b: &str| (path.to_owned(), a.to_owned(), b.to_owned());
        let expected = [
            of("/gone", "null", ""),
            of("/l/1", "2", ""),
            of("/n", "1", "2"),
            of("/new", "", "\"x\""),
        ];
        assert_eq!(all, expected);
        assert!(differences(&a, &a).is_empty());
    }

    #[test]
    fn figures_are_short() {
        for (us, text) in [
            (0, "0 µs"),
            (999, "999 µs"),
            (1_250, "1.2 ms"),
            (12_900, "12 ms"),
            (1_900_000, "1.9 s"),
            (258_000_000, "4 min 18 s"),
        ] {
            assert_eq!(took(us), text);
        }
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(999), "999");
        assert_eq!(
            (share(3, 1_000), share(0, 0)),
            ("0.3 %".into(), String::new())
        );
        assert_eq!(
            (bytes(12), bytes(1_250_000)),
            ("12 B".into(), "1.2 MB".into())
        );
        assert_eq!(
            moment("2026-11-17T14:41:07.5Z"),
            "17 Nov 2026, 14:41:07 UTC"
        );
        assert_eq!(moment("<b>"), "<b>");
        let now = "2026-11-17T20:00:00Z".parse().unwrap();
        assert_eq!(brief("2026-11-17T14:41:07.5Z", now), "14:41:07");
        assert_eq!(brief("2026-11-16T14:41:07.5Z", now), "16 Nov, 14:41");
    }

    #[test]
    fn a_note_stands_at_its_line() {
        let value = json!({"items": [{"quantity": 2}], "a/b": {}});
        let notes = BTreeMap::from([("/items/0/quantity".to_owned(), vec!["was '2'".to_owned()])]);
        let lines = lines(&value, &notes);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let whole = texts.join("\n");
        assert_eq!(serde_json::from_str::<Value>(&whole).unwrap(), value);
        let with_note = lines.iter().find(|line| !line.notes.is_empty()).unwrap();
        assert_eq!(with_note.text.trim(), "\"quantity\": 2");
        assert_eq!(below("/x", "a/b~"), "/x/a~1b~0");
    }
}
