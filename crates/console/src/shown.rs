//! Times, durations, sizes and JSON as people read them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
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

/// `12.9 ms`. No line breaks between a number and its unit.
pub(crate) fn took(us: u64) -> String {
    match us {
        0..1_000 => format!("{us}\u{a0}µs"),
        1_000..10_000 => tenths(us, 1_000, "ms"),
        10_000..1_000_000 => format!("{}\u{a0}ms", us / 1_000),
        1_000_000..60_000_000 => tenths(us, 1_000_000, "s"),
        _ => {
            let (minutes, seconds) = (us / 60_000_000, us / 1_000_000 % 60);
            format!("{minutes}\u{a0}min {seconds}\u{a0}s")
        }
    }
}

/// Shortest time of waiting for a person that pages mention. Looking for an answer that is not there takes less.
const NOTICED_US: u64 = 100_000;

/// A time of waiting for a person, if it is one that people notice.
pub(crate) fn noticed(waited_us: u64) -> Option<u64> {
    (waited_us >= NOTICED_US).then_some(waited_us)
}

/// A question to a person and its answer, as the API tells them.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Decision {
    pub(crate) asked_at: Timestamp,
    pub(crate) answered_at: Timestamp,
    evidence: String,
}

impl Decision {
    /// Time between the question and the answer.
    pub(crate) fn took_us(&self) -> u64 {
        let took = self.answered_at.duration_since(self.asked_at);
        u64::try_from(took.as_micros()).unwrap_or_default()
    }
}

/// `0.4`, `12` or `1,234`: milliseconds, for a column of them.
pub(crate) fn millis(us: u64) -> String {
    match us {
        0..10_000 => format!("{}.{}", us / 1_000, us / 100 % 10),
        _ => number(us / 1_000),
    }
}

fn tenths(value: u64, unit: u64, name: &str) -> String {
    format!("{}.{}\u{a0}{name}", value / unit, value * 10 / unit % 10)
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
        0..1_000 => format!("{value}\u{a0}B"),
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

impl Difference {
    /// Maximum length of a value in a table, in characters.
    const SHOWN_MAX: usize = 120;

    pub(crate) fn before_text(&self) -> String {
        excerpt(&self.before, Self::SHOWN_MAX)
    }

    pub(crate) fn after_text(&self) -> String {
        excerpt(&self.after, Self::SHOWN_MAX)
    }
}

/// The first characters of a text, with a sign if there are more.
pub(crate) fn excerpt(text: &str, max: usize) -> String {
    let mut signs = text.chars();
    let mut start: String = signs.by_ref().take(max).collect();
    if signs.next().is_some() {
        start.push('…');
    }
    start
}

/// Maximum number of differences that are listed.
const LISTED_MAX: usize = 100;

/// The places at which two values differ.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// The first of them.
    pub(crate) listed: Vec<Difference>,
    /// Number of those that are not listed.
    pub(crate) more: usize,
}

/// The places at which two values differ: as many as people look at, and how many more there are.
pub(crate) fn differences(before: &Value, after: &Value) -> Differences {
    let mut found = Differences::default();
    compare(Some(before), Some(after), String::new(), &mut found);
    found
}

fn compare(before: Option<&Value>, after: Option<&Value>, path: String, found: &mut Differences) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                compare(a.get(name), b.get(name), below(&path, name), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                compare(a.get(at), b.get(at), format!("{path}/{at}"), found);
            }
        }
        (_, _) if found.listed.len() == LISTED_MAX => found.more += 1,
        (before, after) => {
            let text = |value: Option<&Value>| value.map(ToString::to_string);
            found.listed.push(Difference {
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

/// Maximum size of a value on a page, in bytes of HTML: a page with three of them stays below 100 KB.
pub(crate) const PANE_BYTES_MAX: usize = 17_000;

/// Size of the elements around a line or a note, in bytes.
const AROUND_LINE: usize = 32;

/// Size of a text in HTML, in bytes: five signs are written as entities.
pub(crate) fn escaped_len(text: &str) -> usize {
    text.len() + 4 * text.matches(is_escaped).count()
}

const fn is_escaped(sign: char) -> bool {
    matches!(sign, '&' | '<' | '>' | '"' | '\'')
}

/// The longest beginning of a text that needs no more than this many bytes of HTML.
pub(crate) fn fitting(text: &str, bytes: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, sign)| {
        used += if is_escaped(*sign) {
            5
        } else {
            sign.len_utf8()
        };
        used > bytes
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// The first lines, and whether there are more.
pub(crate) fn cut(lines: Vec<Line>) -> (Vec<Line>, bool) {
    let mut left = PANE_BYTES_MAX;
    let mut kept = Vec::new();
    for mut line in lines {
        let notes = line.notes.iter();
        let notes: usize = notes.map(|note| escaped_len(note) + AROUND_LINE).sum();
        let size = escaped_len(&line.text) + AROUND_LINE + notes;
        if size > left || kept.len() == LINES_MAX {
            // A line that is longer than a page is begun.
            let room = left.saturating_sub(AROUND_LINE + notes);
            if kept.len() < LINES_MAX && room > 0 {
                line.text = format!("{}…", fitting(&line.text, room));
                kept.push(line);
            }
            return (kept, true);
        }
        left -= size;
        kept.push(line);
    }
    (kept, false)
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
            .listed
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
        assert!(differences(&a, &a).listed.is_empty());
    }

    /// What is not listed is counted.
    #[test]
    fn further_differences_are_counted() {
        let of = |value: u32| (0..250).map(|_| json!({"n": value})).collect::<Value>();
        let found = differences(&of(1), &of(2));
        assert_eq!((found.listed.len(), found.more), (LISTED_MAX, 150));
        let last = found.listed.last().unwrap();
        assert_eq!(last.path, "/99/n");
        let found = differences(&json!("a".repeat(500)), &json!(1));
        assert_eq!(found.listed[0].before_text().chars().count(), 121);
        assert_eq!((found.listed[0].before.len(), found.more), (502, 0));
    }

    /// A value takes no more room on a page than it may, however it is written.
    #[test]
    fn values_are_cut_by_their_size() {
        let size = |lines: &[Line]| -> usize {
            let sizes = lines.iter().map(|line| escaped_len(&line.text));
            sizes.map(|size| size + AROUND_LINE).sum()
        };
        let quotes = json!(["\"".repeat(40_000)]);
        let rows: Value = (0..1_000)
            .map(|at| json!({"sku": at, "title": "<b>"}))
            .collect();
        for value in [&quotes, &rows] {
            let (kept, is_cut) = cut(lines(value, &BTreeMap::new()));
            assert!(is_cut && kept.len() > 1 && kept.len() <= LINES_MAX);
            assert!(size(&kept) <= PANE_BYTES_MAX + '…'.len_utf8());
        }
        let small = lines(&json!({"a": [1, 2, 3]}), &BTreeMap::new());
        assert_eq!(cut(small.clone()), (small, false));
        assert_eq!(fitting("a<b", 5), "a");
        assert_eq!(fitting("a<b", 6), "a<");
        assert_eq!(fitting("é", 1), "");
    }

    #[test]
    fn figures_are_short() {
        for (us, text) in [
            (0, "0\u{a0}µs"),
            (999, "999\u{a0}µs"),
            (1_250, "1.2\u{a0}ms"),
            (12_900, "12\u{a0}ms"),
            (1_900_000, "1.9\u{a0}s"),
            (258_000_000, "4\u{a0}min 18\u{a0}s"),
        ] {
            assert_eq!(took(us), text);
        }
        for (us, text) in [(0, "0.0"), (450, "0.4"), (9_999, "9.9"), (12_900, "12")] {
            assert_eq!(millis(us), text);
        }
        assert_eq!(millis(1_234_567_000), "1,234,567");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(999), "999");
        assert_eq!(
            (share(3, 1_000), share(0, 0)),
            ("0.3 %".into(), String::new())
        );
        assert_eq!(
            (bytes(12), bytes(1_250_000)),
            ("12\u{a0}B".into(), "1.2\u{a0}MB".into())
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
