//! One text of the library, as a file: its first line has the metadata, the rest is Markdown.
//!
//! ```text
//! <!-- id: batteries.en; language: en; date: 2026-11-16; title: Batteries in the post; source: the shop -->
//! # Batteries in the post
//! ```

use countersign::contract::Digest;
use countersign::ledger::TextChunk;

use super::chunking::{Piece, pieces};
use super::citation::Citation;

/// A text of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The id, such as `batteries.en`.
    pub id: String,
    /// The title.
    pub title: String,
    /// The language, as the first part of a BCP 47 tag: `en`, `zh`.
    pub language: String,
    /// The day on which it was written or checked.
    pub date: String,
    /// The author or publisher.
    pub source: String,
    file: String,
    text: String,
    digest: Digest,
    chunks: Vec<Chunk>,
}

/// A part of a document that is found and cited as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The id of the document, `#`, and its position among the chunks, from 1.
    pub id: String,
    /// The first byte in the file.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
    /// The nearest heading, above it or in it.
    pub heading: Option<String>,
    above: Vec<String>,
}

/// The maximum size of a document.
pub(super) const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// The maximum length of a document's id.
const ID_BYTES_MAX: usize = 96;

impl Document {
    /// Parses a file; the error is the problem, for people.
    pub(super) fn read(file: &str, text: String) -> Result<Self, String> {
        if text.len() > DOCUMENT_BYTES_MAX {
            return Err(format!("it is longer than {DOCUMENT_BYTES_MAX} bytes"));
        }
        if text.contains('\0') {
            return Err("it has a zero byte in it".to_owned());
        }
        let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let begin = text.len() - rest.len();
        let front = Front::read(line)?;
        let chunks = pieces(&text, begin).into_iter().enumerate();
        let chunks = chunks
            .map(|(at, piece)| Chunk::of(&front.id, at, piece))
            .collect();
        Ok(Self {
            id: front.id,
            title: front.title,
            language: front.language,
            date: front.date,
            source: front.source,
            file: file.to_owned(),
            digest: Digest::of_bytes(text.as_bytes()),
            text,
            chunks,
        })
    }

    /// The name of its file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The whole file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the file.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The chunks, in their order.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The text of a chunk.
    pub fn text_of(&self, chunk: &Chunk) -> &str {
        self.text.get(chunk.start..chunk.end).unwrap_or_default()
    }

    /// The citation of a chunk.
    pub fn cite(&self, chunk: &Chunk) -> Citation {
        Citation {
            document_digest: self.digest,
            start: chunk.start,
            end: chunk.end,
            chunk_digest: Digest::of_bytes(self.text_of(chunk).as_bytes()),
        }
    }

    /// A chunk as a store indexes it: with the title and the headings above it, once each.
    pub(super) fn indexed(&self, chunk: &Chunk) -> TextChunk {
        let mut headings: Vec<&str> = chunk.above.iter().map(String::as_str).collect();
        let is_said = headings.contains(&self.title.as_str());
        if !is_said && !self.text_of(chunk).contains(&self.title) {
            headings.insert(0, &self.title);
        }
        TextChunk::new(&chunk.id, &self.language, self.text_of(chunk), &headings)
    }
}

impl Chunk {
    fn of(document: &str, at: usize, piece: Piece) -> Self {
        Self {
            id: format!("{document}#{}", at + 1),
            start: piece.start,
            end: piece.end,
            heading: piece.heading,
            above: piece.above,
        }
    }
}

/// The metadata of the first line.
#[derive(Default)]
struct Front {
    id: String,
    title: String,
    language: String,
    date: String,
    source: String,
}

impl Front {
    fn read(line: &str) -> Result<Self, String> {
        let line = line.trim_start_matches('\u{feff}').trim();
        let inner = line
            .strip_prefix("<!--")
            .and_then(|rest| rest.strip_suffix("-->"));
        let inner = inner.ok_or("its first line has to be <!-- id: …; language: …; … -->")?;
        let mut front = Self::default();
        for part in inner.split(';').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once(':').ok_or_else(|| {
                format!("in its first line {:?} has no name and value", part.trim())
            })?;
            let field = match name.trim() {
                "id" => &mut front.id,
                "title" => &mut front.title,
                "language" => &mut front.language,
                "date" => &mut front.date,
                "source" => &mut front.source,
                name => return Err(format!("its first line has an unknown {name:?}")),
            };
            value.trim().clone_into(field);
        }
        front.check()?;
        Ok(front)
    }

    fn check(&self) -> Result<(), String> {
        let fields = [
            ("id", &self.id),
            ("title", &self.title),
            ("language", &self.language),
            ("date", &self.date),
            ("source", &self.source),
        ];
        if let Some((name, _)) = fields.iter().find(|(_, value)| value.is_empty()) {
            return Err(format!("its first line has no {name}"));
        }
        let is_name = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
        if self.id.len() > ID_BYTES_MAX || !self.id.chars().all(is_name) {
            return Err(format!(
                "the id {:?} has to be short, of letters, digits, . _ and -",
                self.id
            ));
        }
        if !(2..=3).contains(&self.language.len())
            || !self.language.bytes().all(|byte| byte.is_ascii_lowercase())
        {
            return Err(format!(
                "the language {:?} has to be like en or zh",
                self.language
            ));
        }
        let date: Result<jiff::civil::Date, _> = self.date.parse();
        date.map_err(|_| format!("the date {:?} has to be like 2026-11-16", self.date))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRONT: &str =
        "<!-- id: a.en; language: en; date: 2026-11-16; title: A title; source: us -->";

    #[test]
    fn a_file_is_a_document() {
        let text = format!("{FRONT}\n# A title\n\nOne.\n\nTwo.\n");
        let document = Document::read("a.en.md", text.clone()).unwrap();
        assert_eq!(document.digest(), Digest::of_bytes(text.as_bytes()));
        let parts: Vec<_> = document
            .chunks()
            .iter()
            .map(|chunk| (chunk.id.as_str(), document.text_of(chunk)))
            .collect();
        assert_eq!(parts, [("a.en#1", "# A title\n\nOne."), ("a.en#2", "Two.")]);
        let words: Vec<_> = document
            .chunks()
            .iter()
            .map(|chunk| document.indexed(chunk).words)
            .collect();
        assert_eq!(words, ["a titl one", "a titl two"]);
    }

    #[test]
    fn a_file_that_says_too_little_is_refused() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = Document::read("x.md", text.to_owned()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        check("# A title", "its first line has to be <!-- id");
        check(
            &FRONT.replace("language: en; ", ""),
            "its first line has no language",
        );
        check(
            &FRONT.replace("date: 2026-11-16", "date: today"),
            "the date \"today\"",
        );
        check(&FRONT.replace("a.en;", "a en;"), "the id \"a en\"");
        check(
            &FRONT.replace(": en;", ": en-US;"),
            "the language \"en-US\"",
        );
        check(&FRONT.replace("source", "author"), "unknown \"author\"");
        check(&format!("{FRONT}\n\0"), "zero byte");
        check(
            &format!("{FRONT}\n{}", "x".repeat(DOCUMENT_BYTES_MAX)),
            "longer than",
        );
    }
}
