//! Marks in a text: where a call, thinking or another turn begins or ends.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};
use countersign_args::thinking_marks;

use super::format::{ENDS, Row, SILENT, TABLE};

/// Meaning of a mark.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    Opens(&'static Row),
    Silent,
    /// The model's turn ends.
    Ends,
    /// Another tag: of thinking, of another speaker, of a value, or of none of them.
    Aside,
}

/// A mark in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) mark: Mark,
}

/// Marks of one kind: those that start with an angle bracket, or the others.
struct Marks {
    automaton: AhoCorasick,
    meanings: Vec<Mark>,
}

impl Marks {
    fn new(kind: StartKind, marks: impl Iterator<Item = (String, Mark)>) -> Option<Self> {
        let (patterns, meanings): (Vec<_>, Vec<_>) = marks.unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(kind)
            .build(patterns)
            .ok()?;
        Some(Self {
            automaton,
            meanings,
        })
    }

    fn find(&self, input: Input<'_>) -> Option<Found> {
        let found = self.automaton.try_find(input).ok()??;
        let mark = self.meanings.get(found.pattern().as_usize())?;
        Some(Found {
            start: found.start(),
            end: found.end(),
            mark: *mark,
        })
    }
}

/// Every mark with its meaning, but for tags.
fn all() -> impl Iterator<Item = (String, Mark)> {
    let of = |mark: &str, meaning| (mark.to_owned(), meaning);
    let rows = TABLE.iter().map(move |row| of(row.open, Mark::Opens(row)));
    let silent = SILENT.iter().map(move |mark| of(mark, Mark::Silent));
    let ends = ENDS.iter().map(move |mark| of(mark, Mark::Ends));
    let asides = thinking_marks()
        .flat_map(|(open, close)| [open.to_lowercase(), close.to_lowercase(), open, close])
        .chain(["[TOOL_RESULTS]".to_owned(), "[TOOL_CONTENT]".to_owned()])
        .filter(|mark| !mark.starts_with('<'))
        .map(|mark| (mark, Mark::Aside));
    rows.chain(silent).chain(ends).chain(asides)
}

/// Marks that start with an angle bracket; they are looked for only there.
static TAGS: LazyLock<Option<Marks>> = LazyLock::new(|| {
    let tags = all().filter(|(mark, _)| mark.starts_with('<'));
    Marks::new(StartKind::Anchored, tags)
});

/// The other marks. They are few and long, so that a text is searched for them quickly.
static WORDS: LazyLock<Option<Marks>> = LazyLock::new(|| {
    let words = all().filter(|(mark, _)| !mark.starts_with('<'));
    Marks::new(StartKind::Unanchored, words)
});

/// A search that goes once over a text.
#[derive(Debug)]
pub(super) struct Scan<'t> {
    text: &'t str,
    /// The next angle bracket, and the byte from which it was looked for.
    tag: (usize, Option<usize>),
    /// The next of the other marks, and the byte from which it was looked for.
    word: (usize, Option<Found>),
}

impl<'t> Scan<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self {
            text,
            tag: (usize::MAX, None),
            word: (usize::MAX, None),
        }
    }

    /// Returns the first mark at or behind this byte.
    pub(super) fn next(&mut self, from: usize) -> Option<Found> {
        let word = self.word(from);
        let mut at = from;
        loop {
            let tag = self
                .tag(at)
                .filter(|tag| word.is_none_or(|word| *tag < word.start));
            let Some(tag) = tag else { return word };
            if let Some(found) = tag_at(self.text, tag) {
                return Some(found);
            }
            at = tag + 1;
        }
    }

    fn word(&mut self, from: usize) -> Option<Found> {
        let (searched, found) = self.word;
        let holds = searched <= from && found.is_none_or(|found| from <= found.start);
        if !holds {
            let range = from.min(self.text.len())..;
            let found = WORDS
                .as_ref()
                .and_then(|words| words.find(Input::new(self.text).range(range)));
            self.word = (from, found);
        }
        self.word.1
    }

    fn tag(&mut self, from: usize) -> Option<usize> {
        let (searched, found) = self.tag;
        let holds = searched <= from && found.is_none_or(|found| from <= found);
        if !holds {
            let rest = self.text.as_bytes().get(from..).unwrap_or_default();
            let found = memchr::memchr(b'<', rest).map(|offset| from + offset);
            self.tag = (from, found);
        }
        self.tag.1
    }
}

/// Returns the mark that starts with the angle bracket at this byte.
fn tag_at(text: &str, at: usize) -> Option<Found> {
    let next = *text.as_bytes().get(at + 1)?;
    let names =
        next.is_ascii_alphabetic() || matches!(next, b'/' | b'|' | b'_') || !next.is_ascii();
    if !names {
        return None;
    }
    let input = Input::new(text).range(at..).anchored(Anchored::Yes);
    let known = TAGS.as_ref().and_then(|tags| tags.find(input));
    known.or(Some(Found {
        start: at,
        end: at + 1,
        mark: Mark::Aside,
    }))
}

/// True if a text starts with a mark that is not a tag of another format.
pub(super) fn starts(text: &str) -> bool {
    let tag = text.starts_with('<').then(|| tag_at(text, 0)).flatten();
    let known = tag.is_some_and(|found| !matches!(found.mark, Mark::Aside));
    known || all_words().any(|mark| text.starts_with(mark))
}

/// Marks of calls that are no tags.
fn all_words() -> impl Iterator<Item = &'static str> {
    let words = TABLE.iter().map(|row| row.open);
    words.filter(|mark| !mark.starts_with('<'))
}
