//! Output of the demo: for people a heading, the call, its reply and the checks; for programs one line of JSON a step. Every claim is a
//! check, and failed checks are remembered.

use std::io::Write as _;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::ask::{Answer, Ask};
use crate::answer::write_json;
use crate::failure::Failure;
use crate::paint::Tone;
use crate::table::{Table, visible, wrapped};
use crate::terminal::Terminal;

/// Width of the column of names in front of values.
const NAME_COLUMNS: usize = 32;

/// Line width of the story if the width of the terminal is not known.
const COLUMNS_USUAL: usize = 110;

/// Pause after a line, for a person to read it.
const LINE_PAUSE: Duration = Duration::from_millis(120);

/// Pause after a step.
const STEP_PAUSE: Duration = Duration::from_millis(1_200);

/// Output of the demo, which collects the checks of each step.
pub(super) struct Stage<'t> {
    terminal: &'t mut Terminal,
    is_slow: bool,
    columns: usize,
    steps: usize,
    step: Step,
    checks: usize,
    failed: Vec<String>,
}

/// State of the step that is being played.
#[derive(Default, Serialize)]
struct Step {
    #[serde(rename = "step")]
    number: usize,
    of: usize,
    name: &'static str,
    title: &'static str,
    calls: Vec<Call>,
    /// Findings other than replies, for programs.
    facts: serde_json::Map<String, Value>,
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct Call {
    #[serde(flatten)]
    ask: Ask,
    reply: Value,
}

#[derive(Serialize)]
struct Check {
    claim: String,
    holds: bool,
}

/// Result of all steps: their number, the number of checks, and the claims that failed.
pub(crate) struct Tally {
    pub(crate) steps: usize,
    pub(crate) checks: usize,
    pub(crate) failed: Vec<String>,
}

impl<'t> Stage<'t> {
    pub(super) fn new(terminal: &'t mut Terminal, steps: usize, is_slow: bool) -> Self {
        let columns = terminal.columns().unwrap_or(COLUMNS_USUAL);
        Self {
            terminal,
            is_slow,
            columns,
            steps,
            step: Step::default(),
            checks: 0,
            failed: Vec::new(),
        }
    }

    /// The next step.
    pub(super) fn begin(&mut self, name: &'static str, title: &'static str) -> Result<(), Failure> {
        self.step = Step {
            number: self.step.number + 1,
            of: self.steps,
            name,
            title,
            ..Step::default()
        };
        let heading = format!("[{:>2}/{}] {title}", self.step.number, self.steps);
        self.print(&format!("\n{}", self.toned(Tone::Strong, &heading)))
    }

    /// The step is over.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        if self.terminal.is_for_programs() {
            write_json(self.terminal, &self.step)?;
            self.terminal.flush()?;
        } else if self.is_slow {
            std::thread::sleep(STEP_PAUSE);
        }
        Ok(())
    }

    /// Shows a call and its outcome.
    pub(super) fn call(&mut self, answer: &Answer) -> Result<(), Failure> {
        let ask = &answer.ask;
        let mut with = String::new();
        if let Some(key) = &ask.key {
            with = format!("  key {key}");
        }
        if ask.dry_run {
            with.push_str("  dry run");
        }
        let sent = format!("  agent of {} → {}{with}", ask.user, ask.tool);
        self.print(&sent)?;
        for line in ask.arguments.lines() {
            for line in wrapped(&short(&visible(line)), self.columns.saturating_sub(6)) {
                self.print(&self.toned(Tone::Quiet, &format!("      {line}")))?;
            }
        }
        let summary = short(&visible(&answer.summary()));
        for (at, line) in self.hanging(&summary, 4).into_iter().enumerate() {
            let mark = if at == 0 { "  ← " } else { "    " };
            self.print(&format!("{mark}{line}"))?;
        }
        self.step.calls.push(Call {
            ask: ask.clone(),
            reply: answer.reply.clone(),
        });
        Ok(())
    }

    /// Wraps a text so that each line leaves room for an indent.
    fn hanging(&self, text: &str, indent: usize) -> Vec<String> {
        wrapped(text, self.columns.saturating_sub(indent))
    }

    /// A line of an answer: a name, and a value that stands under the others, in as many lines as it needs.
    pub(super) fn value(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let name = visible(name);
        let gap = NAME_COLUMNS.saturating_sub(name.width()).max(1);
        let indent = 6 + name.width() + gap;
        let mut before = format!("      {name}{}", " ".repeat(gap));
        for line in self.hanging(&short(&visible(value)), indent) {
            self.print(format!("{before}{line}").trim_end())?;
            before = " ".repeat(indent);
        }
        Ok(())
    }

    /// A table.
    pub(super) fn table(&mut self, table: &Table) -> Result<(), Failure> {
        for line in table.to_string().lines() {
            self.print(&format!("      {line}"))?;
        }
        Ok(())
    }

    /// A sentence about what happens.
    pub(super) fn say(&mut self, sentence: &str) -> Result<(), Failure> {
        for line in self.hanging(&visible(sentence), 2) {
            self.print(&format!("  {line}"))?;
        }
        Ok(())
    }

    /// Adds a finding for programs.
    pub(super) fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.step.facts.insert(name.to_owned(), value.into());
    }

    /// Says what holds, or that it does not.
    pub(super) fn check(&mut self, holds: bool, claim: impl Into<String>) -> Result<(), Failure> {
        let claim = claim.into();
        self.checks += 1;
        let line = if holds {
            self.toned(Tone::Good, "✓") + " " + &visible(&claim)
        } else {
            self.failed.push(format!("{}: {claim}", self.step.name));
            self.toned(Tone::Bad, &format!("✗ {}", visible(&claim)))
        };
        self.step.checks.push(Check { claim, holds });
        self.print(&format!("  {line}"))
    }

    /// A value that the story cannot go on without.
    pub(super) fn need<T>(&mut self, value: Option<T>, what: &str) -> Result<T, Failure> {
        if let Some(value) = value {
            return Ok(value);
        }
        self.check(false, format!("there is {what}"))?;
        self.end()?;
        Err(Failure::new(format!("the demo cannot go on without {what}")).refused())
    }

    /// True if any check has failed.
    pub(super) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Returns the result of all steps.
    pub(super) fn tally(self) -> Tally {
        Tally {
            steps: self.step.number,
            checks: self.checks,
            failed: self.failed,
        }
    }

    fn print(&mut self, line: &str) -> Result<(), Failure> {
        if self.terminal.is_for_programs() {
            return Ok(());
        }
        writeln!(self.terminal.data(), "{line}")?;
        self.terminal.flush()?;
        if self.is_slow {
            std::thread::sleep(LINE_PAUSE);
        }
        Ok(())
    }

    fn toned(&self, tone: Tone, text: &str) -> String {
        self.terminal.paint().tone(tone, text)
    }
}

/// A text in which names of records and digests are short enough to be compared by eye. The beginning of a name is
/// the time, so its end is shown.
fn short(text: &str) -> String {
    let text = shortened(text, "ev_", ID_CHARS, |id| (id.len() - 6, id.len()));
    shortened(&text, "sha256:", DIGEST_CHARS, |_| (0, 8))
}

/// Length of a record's id after its prefix, and of a digest.
const ID_CHARS: usize = "01a1e340-6674-78af-b35c-6ba7dab6f454".len();
const DIGEST_CHARS: usize = 64;

/// Shortens every word of this length that follows the prefix.
fn shortened(
    text: &str,
    prefix: &str,
    chars: usize,
    part: impl Fn(&str) -> (usize, usize),
) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(prefix) {
        shown.push_str(before);
        shown.push_str(prefix);
        let is_word = |word: &&str| {
            let mut bytes = word.bytes();
            bytes.all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        };
        rest = after;
        if let Some(word) = after.get(..chars).filter(is_word) {
            let (from, to) = part(word);
            let left_out = |is: bool| if is { "…" } else { "" };
            shown.push_str(left_out(from > 0));
            shown.push_str(word.get(from..to).unwrap_or_default());
            shown.push_str(left_out(to < chars));
            rest = after.get(chars..).unwrap_or_default();
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_of_records_are_shortened_and_nothing_else_is() {
        let id = "ev_01a1e340-6674-78af-b35c-6ba7dab6f454";
        assert_eq!(short(&format!("a {id}, {id}")), "a ev_…b6f454, ev_…b6f454");
        let digest = format!("sha256:{}", "0af1".repeat(16));
        assert_eq!(short(&format!("{digest}, not")), "sha256:0af10af1…, not");
        for text in ["", "ev_", "prev_step", "ev_01a1", "sha256:"] {
            assert_eq!(short(text), text);
        }
    }
}
