//! Calls that a model wrote as text, because nothing between it and us has parsed them.
//!
//! One table ([`format`]) says which marks open and close a call; this reader goes over a text once and gives names with
//! argument texts, byte for byte. It repairs nothing: that is the binder's.

mod body;
mod elements;
mod format;
mod object;
mod python;
mod stream;
mod wire;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use countersign_args::{Thinking, end_of_thinking, thinking};

use super::call::{self, Provenance, ProviderCall, RawText};
use super::{DecodeError, MESSAGE_BYTES_MAX};
use format::{Row, SILENT, TABLE};

pub use format::{TextFormat, UnknownTextFormat};
pub use stream::TextStream;
pub(super) use wire::Text;

/// A text of a model, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Written {
    /// The calls, in the order of the text.
    pub calls: Vec<ProviderCall>,
    /// Everything that is neither a call nor thinking.
    pub prose: String,
    /// True if the text ends inside thinking or inside a call.
    pub truncated: bool,
}

/// Reads the calls of a text. `format` says how they are written; without it, the marks in the text do.
///
/// # Example
///
/// ```
/// use countersign::dialect::written;
///
/// let text = "I look it up.\n<tool_call>\n{\"name\": \"memory_search\", \"arguments\": {query: 'tea'}}\n</tool_call>";
/// let written = written::read(text, None)?;
/// assert_eq!(written.prose, "I look it up.");
/// assert_eq!(written.calls[0].name, "memory_search");
/// # Ok::<(), countersign::dialect::DecodeError>(())
/// ```
pub fn read(text: &str, format: Option<TextFormat>) -> Result<Written, DecodeError> {
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(DecodeError::TooLarge { bytes: text.len() });
    }
    let mut reader = Reader::new(text, format);
    reader.marked()?;
    if reader.written.calls.is_empty() && !reader.written.truncated {
        reader.unmarked()?;
    }
    reader.written.prose = reader.written.prose.trim().to_owned();
    Ok(reader.written)
}

/// Meaning of a mark.
#[derive(Debug, Clone, Copy)]
enum Mark {
    Opens(&'static Row),
    Silent,
    /// Thinking may start or end here.
    Thinks,
}

/// Beginnings of thinking; the binder knows which of them is one.
const THINKS: [&str; 12] = [
    "<think",
    "</think",
    "<thought",
    "</thought",
    "<reason",
    "</reason",
    "<reflection",
    "</reflection",
    "[THINK]",
    "[/THINK]",
    "◁think▷",
    "◁/think▷",
];

/// The automaton that finds every mark in one pass, and the meaning of each pattern.
static MARKS: LazyLock<Option<(AhoCorasick, Vec<Mark>)>> = LazyLock::new(|| {
    let rows = TABLE.iter().map(|row| (row.open, Mark::Opens(row)));
    let silent = SILENT.iter().map(|mark| (*mark, Mark::Silent));
    let thinks = THINKS.iter().map(|mark| (*mark, Mark::Thinks));
    let (patterns, meanings): (Vec<_>, Vec<_>) = rows.chain(silent).chain(thinks).unzip();
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(patterns);
    automaton.ok().map(|automaton| (automaton, meanings))
});

/// A step of the reader that found a call, or did not.
type Step = Result<Option<usize>, DecodeError>;

struct Reader<'t> {
    text: &'t str,
    format: Option<TextFormat>,
    at: usize,
    /// Number of marks behind which a call with elements was looked for in vain.
    searches: usize,
    written: Written,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, format: Option<TextFormat>) -> Self {
        Self {
            text,
            format,
            at: 0,
            searches: 0,
            written: Written::default(),
        }
    }

    fn from(&self, at: usize) -> &'t str {
        self.text.get(at..).unwrap_or_default()
    }

    fn between(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// True if calls of this row are looked for.
    fn looks_for(&self, row: &Row) -> bool {
        self.format
            .is_none_or(|format| row.formats.contains(&format))
    }

    /// Reads every call that a mark opens.
    fn marked(&mut self) -> Result<(), DecodeError> {
        let Some((automaton, meanings)) = MARKS.as_ref() else {
            return Ok(());
        };
        let mut search = 0;
        while let Some(found) = automaton.find(aho_corasick::Input::new(self.text).range(search..))
        {
            let start = found.start();
            search = found.end();
            let Some(mark) = meanings.get(found.pattern().as_usize()) else {
                continue;
            };
            let end = match mark {
                Mark::Silent => Some(found.end()),
                Mark::Thinks => self.thinks(start),
                // In quotes it is only a mention.
                Mark::Opens(_) if self.between(0, start).ends_with(['`', '"', '\'', '“']) => None,
                Mark::Opens(row) if !self.looks_for(row) => None,
                Mark::Opens(row) => self.body(row, start, found.end())?,
            };
            if let Some(end) = end {
                self.prose(start);
                self.at = self.at.max(end);
                search = self.at;
            }
            if self.written.truncated {
                self.at = self.text.len();
                return Ok(());
            }
        }
        self.prose(self.text.len());
        Ok(())
    }

    /// Keeps the text before this byte as prose.
    fn prose(&mut self, end: usize) {
        let prose = self.between(self.at, end);
        self.written.prose.push_str(prose);
        self.at = self.at.max(end);
    }

    /// Skips thinking. A mark that only ends it means that all before it was thinking, drafts of calls as well.
    fn thinks(&mut self, start: usize) -> Option<usize> {
        let here = self.from(start);
        match thinking(here) {
            Some(Thinking::Ends(length)) => Some(start + length),
            Some(Thinking::Unfinished) => {
                self.written.truncated = true;
                Some(self.text.len())
            }
            None => {
                let end = start + end_of_thinking(here)?;
                self.written.calls.clear();
                self.written.prose.clear();
                self.at = end;
                Some(end)
            }
        }
    }

    /// Adds a call with the text of its arguments.
    fn add(&mut self, name: &str, arguments: &str) -> Result<(), DecodeError> {
        self.add_as(name, arguments, Provenance::AsSent)
    }

    fn add_as(
        &mut self,
        name: &str,
        text: &str,
        provenance: Provenance,
    ) -> Result<(), DecodeError> {
        let arguments = RawText {
            text: text.to_owned(),
            provenance,
        };
        let call = ProviderCall::new(None, name.to_owned(), arguments);
        call::add(&mut self.written.calls, call)
    }

    /// Adds a call that the text ends inside of; one without a name is only known to be cut.
    fn add_cut(&mut self, name: &str, arguments: &str) -> Result<(), DecodeError> {
        self.written.truncated = true;
        if !body::is_name(name) {
            return Ok(());
        }
        self.add(name, arguments)?;
        if let Some(call) = self.written.calls.last_mut() {
            call.truncated = true;
        }
        Ok(())
    }
}
