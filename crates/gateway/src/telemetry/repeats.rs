//! Repeated warnings and errors: the first of an interval is logged, the others are summarized in one line.
//! While a disk is full every call fails alike, and the log must not fill another one.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::LogFormat;

/// Interval in which lines are counted together.
const INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of kinds that are counted at once; one more ends all of them.
const KINDS_MAX: usize = 256;

/// Lines that are the same except for numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Kind(pub(super) u64);

/// Omitted lines.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    kinds: HashMap<Kind, Count>,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    /// Number of omitted lines, and the last of them.
    left_out: Option<(u64, String)>,
}

impl Repeats {
    /// Writes a line to the chunk, or counts it.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        line: String,
        now: Instant,
        format: LogFormat,
        chunk: &mut String,
    ) {
        if let Some(count) = self.kinds.get_mut(&kind)
            && now.duration_since(count.since) < INTERVAL
        {
            let before = count.left_out.take().map_or(0, |(count, _)| count);
            count.left_out = Some((before.saturating_add(1), line));
            return;
        }
        self.end(now, format, chunk);
        if self.kinds.len() >= KINDS_MAX {
            self.end_all(format, chunk);
        }
        chunk.push_str(&line);
        let count = Count {
            since: now,
            left_out: None,
        };
        self.kinds.insert(kind, count);
    }

    /// Writes the summaries of intervals that are over.
    pub(super) fn end(&mut self, now: Instant, format: LogFormat, chunk: &mut String) {
        let is_over = |_: &Kind, count: &mut Count| now.duration_since(count.since) >= INTERVAL;
        for (_, count) in self.kinds.extract_if(is_over) {
            write(count, format, chunk);
        }
    }

    /// Writes all summaries.
    pub(super) fn end_all(&mut self, format: LogFormat, chunk: &mut String) {
        for (_, count) in self.kinds.drain() {
            write(count, format, chunk);
        }
    }

    /// Returns the time until the next check, if lines were omitted.
    pub(super) fn next(&self) -> Option<Duration> {
        let has_left_out = self.kinds.values().any(|count| count.left_out.is_some());
        has_left_out.then_some(INTERVAL)
    }
}

/// Writes the last omitted line, with the number of all of them.
fn write(count: Count, format: LogFormat, chunk: &mut String) {
    let Some((left_out, line)) = count.left_out else {
        return;
    };
    let line = line.trim_end_matches('\n');
    match format {
        LogFormat::Text => {
            let _fits = writeln!(chunk, "{line} repeated={left_out}");
        }
        LogFormat::Json => {
            let members = line.strip_suffix('}').unwrap_or(line);
            let _fits = writeln!(chunk, "{members},\"repeated\":{left_out}}}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U10: in every interval the first is a line, and the others are one line with their number.
    #[test]
    fn a_flood_is_two_lines_an_interval() {
        let (mut repeats, mut chunk) = (Repeats::default(), String::new());
        let start = Instant::now();
        for n in 0..1_000 {
            let now = start + Duration::from_millis(n * 15);
            let line = format!("{{\"n\":{n}}}\n");
            repeats.add(Kind(1), line, now, LogFormat::Json, &mut chunk);
        }
        repeats.add(
            Kind(2),
            "other\n".to_owned(),
            start,
            LogFormat::Text,
            &mut chunk,
        );
        repeats.end_all(LogFormat::Json, &mut chunk);
        repeats.end_all(LogFormat::Json, &mut chunk);
        insta::assert_snapshot!(chunk, @r#"
        {"n":0}
        {"n":666,"repeated":666}
        {"n":667}
        other
        {"n":999,"repeated":332}
        "#);
        assert_eq!(repeats.next(), None);
    }

    #[test]
    fn no_more_kinds_are_counted_than_there_is_room_for() {
        let (mut repeats, mut chunk) = (Repeats::default(), String::new());
        let now = Instant::now();
        for kind in 0..2 * KINDS_MAX as u64 {
            for _ in 0..2 {
                let line = "line\n".to_owned();
                repeats.add(Kind(kind), line, now, LogFormat::Text, &mut chunk);
            }
            assert!(repeats.kinds.len() <= KINDS_MAX);
        }
        assert_eq!(chunk.matches("repeated=1\n").count(), KINDS_MAX);
        assert!(repeats.next().is_some());
        repeats.end(now + INTERVAL, LogFormat::Text, &mut chunk);
        assert_eq!(chunk.matches("repeated=1\n").count(), 2 * KINDS_MAX);
    }
}
