//! Calls that a model wrote as text, because nothing between it and us has parsed them.
//!
//! One table ([`format`]) says which marks open and close a call; this reader goes over a text once and gives names with
//! argument texts, byte for byte. It repairs nothing: that is the binder's.

mod body;
mod elements;
mod format;
mod marks;
mod object;
mod python;
mod stream;
mod wire;

use countersign_args::{Aside, Thinking, aside, end_of_thinking, labelled_result, thinking};

use super::call::{self, Provenance, ProviderCall, RawText};
use super::{DecodeError, MESSAGE_BYTES_MAX};
use format::{Body, Row};
use marks::{Found, Mark, Scan};

pub use format::{TextFormat, UnknownTextFormat};
pub use stream::TextStream;
pub(super) use wire::{Text, identify};

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
    read_stopped(text, format, false)
}

/// The same for a text whose writer was cut off or not.
pub(super) fn read_stopped(
    text: &str,
    format: Option<TextFormat>,
    is_cut: bool,
) -> Result<Written, DecodeError> {
    read_until(text, format, is_cut).map(|(written, _)| written)
}

/// The same, with the number of calls at the start that more text would not
/// change.
fn read_until(
    text: &str,
    format: Option<TextFormat>,
    is_cut: bool,
) -> Result<(Written, usize), DecodeError> {
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(DecodeError::TooLarge { bytes: text.len() });
    }
    let mut reader = Reader::new(text, format);
    reader.is_cut = is_cut;
    reader.marked()?;
    if reader.written.calls.is_empty() && !reader.written.truncated && !reader.is_over {
        reader.unmarked()?;
    }
    reader.written.prose = reader.written.prose.trim().to_owned();
    Ok((reader.written, reader.settled))
}

/// Maximum length of the name of a call that is refused.
const NAME_CHARS_MAX: usize = 128;

/// A step of the reader that found a call, or did not.
type Step = Result<Option<usize>, DecodeError>;

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about the text, and none excludes another"
)]
struct Reader<'t> {
    text: &'t str,
    format: Option<TextFormat>,
    scan: Scan<'t>,
    at: usize,
    /// True if the writer of the text was cut off.
    is_cut: bool,
    /// True behind the end of the model's turn, and behind the result of a tool: what follows is not its call.
    is_over: bool,
    /// True if the objects that are read stand in a mark for calls.
    is_marked: bool,
    /// True if the mark that closes the last call was found.
    is_closed: bool,
    /// True if the last call was given everything up to a mark, whatever it is.
    is_loose: bool,
    /// True if a call with elements was read: only such a call can be cut out of a value.
    has_elements: bool,
    /// Number of calls that more text would not change.
    settled: usize,
    /// Number of calls before the first whose end may still come.
    open: usize,
    /// The byte up to which labels of results were looked for.
    labels: usize,
    /// Number of marks behind which a call with elements was looked for in vain.
    searches: usize,
    written: Written,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, format: Option<TextFormat>) -> Self {
        Self {
            text,
            format,
            scan: Scan::new(text),
            at: 0,
            is_cut: false,
            is_over: false,
            is_marked: false,
            is_closed: false,
            is_loose: false,
            has_elements: false,
            settled: 0,
            open: usize::MAX,
            labels: 0,
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
        let mut search = 0;
        while let Some(found) = self.scan.next(search) {
            search = found.end;
            if let Some(end) = self.mark(found)? {
                self.prose(found.start);
                self.at = self.at.max(end);
                self.labels = self.at;
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

    /// Reads what a mark says. Returns the byte behind it; `None` if it is prose.
    fn mark(&mut self, found: Found) -> Step {
        let Found { start, end, mark } = found;
        if self.is_over {
            self.aside_behind_the_turn(start);
            return Ok(None);
        }
        // In quotes it is only a mention.
        let is_mention = self.between(0, start).ends_with(['`', '"', '\'', '“']);
        match mark {
            Mark::Aside => Ok(self.aside(start, is_mention)),
            _ if is_mention => Ok(None),
            Mark::Silent => {
                self.settle(self.written.calls.len());
                Ok(Some(end))
            }
            // A word that HTML strikes out.
            Mark::Ends if self.from(start).starts_with("</s>") && self.strikes(start) => Ok(None),
            Mark::Ends => {
                self.settle(self.written.calls.len());
                self.is_over = true;
                Ok(Some(end))
            }
            Mark::Opens(row) if !self.looks_for(row) => Ok(None),
            Mark::Opens(_) if self.has_result(start) => {
                self.is_over = true;
                Ok(None)
            }
            Mark::Opens(row) => {
                let before = self.written.calls.len();
                self.is_closed = false;
                self.is_loose = false;
                self.is_marked = true;
                let end = self.body(row, start, end)?;
                if let Some(end) = end
                    && self.is_loose
                    && self.written.calls.len() > before
                {
                    self.check_loose(start, end);
                    // A broken call may end inside one of its values.
                    self.has_elements |= matches!(row.body, Body::Element | Body::Wrapped);
                }
                if end.is_some() {
                    let after = self.written.calls.len();
                    // What ends at the next mark may go on up to its own, once that has come.
                    if self.is_loose && !self.is_closed && after > before {
                        self.open = self.open.min(before);
                    }
                    self.settle(if self.is_closed { after } else { before });
                }
                Ok(end)
            }
        }
    }

    /// Looks for tags of a value in a part of the text that is not read: a call before it was cut out of that value.
    fn check_torn(&mut self, start: usize, end: usize) {
        if !self.has_elements {
            return;
        }
        let inside = self.between(start, end);
        let mut tags = memchr::memchr_iter(b'<', inside.as_bytes());
        let is_torn = tags.any(|at| {
            let here = inside.get(at..).unwrap_or_default();
            aside(here) == Some(Aside::Element)
        });
        if is_torn {
            self.doubt(0);
        }
    }

    /// Looks into a call that was given everything up to a mark. Tags of a value in it say that a call before it was cut
    /// out of that value; a label in it says that what follows comes from an invented result.
    fn check_loose(&mut self, start: usize, end: usize) {
        self.check_torn(start, end);
        let inside = self.between(start, end);
        self.is_over |= labelled_result(inside).is_some();
    }

    /// Keeps the number of calls that more text would not change.
    fn settle(&mut self, calls: usize) {
        self.settled = calls.min(self.open);
    }

    /// True if `<s>` stands in the prose before this byte.
    fn strikes(&self, start: usize) -> bool {
        self.between(self.at, start).contains("<s>")
    }

    /// True if a label such as `Observation:` stands between the last call and this byte: the model goes on from a result
    /// that it has invented.
    fn has_result(&mut self, start: usize) -> bool {
        let gap = self.between(self.labels, start);
        self.labels = start;
        !self.written.calls.is_empty() && labelled_result(gap).is_some()
    }

    /// Reads a tag that is no mark of the table.
    fn aside(&mut self, start: usize, is_mention: bool) -> Option<usize> {
        let here = self.from(start);
        if !is_mention && let Some(behind) = self.thinks(start) {
            return Some(behind);
        }
        match aside(here) {
            Some(Aside::Another) if !is_mention => self.is_over = true,
            // A value may end with a quote, so this one is not a mention.
            Some(Aside::Element) if self.has_elements => self.doubt(0),
            Some(Aside::Another | Aside::Element) | None => {}
        }
        None
    }

    /// Looks behind the end of the turn for what casts doubt on the calls before it: the end of thinking that they may be
    /// drafts in, or a tag of a value that they were cut out of.
    fn aside_behind_the_turn(&mut self, start: usize) {
        let here = self.from(start);
        let is_torn = self.has_elements && aside(here) == Some(Aside::Element);
        if is_torn || end_of_thinking(here).is_some() {
            self.doubt(0);
        }
    }

    /// Marks the calls from this one on as having another reading.
    fn doubt(&mut self, from: usize) {
        for call in self.written.calls.iter_mut().skip(from) {
            call.ambiguous = true;
        }
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
            Some(Thinking::Ends(length)) => {
                self.check_torn(start, start + length);
                Some(start + length)
            }
            Some(Thinking::Unfinished) => {
                self.check_torn(start, self.text.len());
                self.written.truncated = true;
                Some(self.text.len())
            }
            None => {
                let end = start + end_of_thinking(here)?;
                self.written.calls.clear();
                self.written.prose.clear();
                self.settled = 0;
                self.open = usize::MAX;
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

    /// Adds a call that has another reading, so that it is refused where its caller sees it.
    fn add_doubtful(&mut self, name: &str, arguments: &str) -> Result<(), DecodeError> {
        let name: String = name.chars().take(NAME_CHARS_MAX).collect();
        self.add(&name, arguments)?;
        self.doubt(self.written.calls.len() - 1);
        Ok(())
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
