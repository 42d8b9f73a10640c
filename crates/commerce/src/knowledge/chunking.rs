//! Splits a document into chunks at its paragraphs. A heading goes with the paragraph below it, and a very long
//! paragraph is split at the ends of its sentences.

/// The maximum length of a chunk, in bytes; a longer paragraph is split.
const PIECE_MAX: usize = 1_600;

/// A part of a text, and the headings above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The headings above it and not in it, from the first to the nearest.
    pub(super) above: Vec<String>,
    /// The nearest heading, above it or in it.
    pub(super) heading: Option<String>,
}

/// The parts of `text` from byte `from` on. Together they contain everything except the whitespace between them.
pub(super) fn pieces(text: &str, from: usize) -> Vec<Piece> {
    let mut outline = Outline::default();
    let mut pieces = Vec::new();
    // The start of a heading that waits for its paragraph, and the headings above it.
    let mut waiting: Option<(usize, Vec<String>)> = None;
    let blocks = blocks(text, from);
    let count = blocks.len();
    for (at, (start, end)) in blocks.into_iter().enumerate() {
        let (start, above) = waiting.take().unwrap_or_else(|| (start, outline.titles()));
        let block = text.get(start..end).unwrap_or_default();
        let is_heading_only = outline.read(block);
        if is_heading_only && at + 1 < count {
            waiting = Some((start, above));
            continue;
        }
        for (piece, (start, end)) in parted(text, start, end).into_iter().enumerate() {
            pieces.push(Piece {
                start,
                end,
                above: if piece == 0 {
                    above.clone()
                } else {
                    outline.titles()
                },
                heading: outline.titles().pop(),
            });
        }
    }
    pieces
}

/// The open headings, by level.
#[derive(Default)]
struct Outline(Vec<(usize, String)>);

impl Outline {
    /// Reads the headings that a block begins with; true if it has nothing else.
    fn read(&mut self, block: &str) -> bool {
        for line in block.lines().filter(|line| !line.trim().is_empty()) {
            let level = line.bytes().take_while(|byte| *byte == b'#').count();
            let title = line.trim_start_matches('#');
            if level == 0 || level > 6 || !title.starts_with([' ', '\t']) {
                return false;
            }
            self.0.retain(|(above, _)| *above < level);
            self.0.push((level, title.trim().to_owned()));
        }
        true
    }

    fn titles(&self) -> Vec<String> {
        self.0.iter().map(|(_, title)| title.clone()).collect()
    }
}

/// Consecutive non-blank lines, without the whitespace around them.
fn blocks(text: &str, from: usize) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut at = from;
    for line in text.get(from..).unwrap_or_default().split_inclusive('\n') {
        let bare = line.trim();
        if bare.is_empty() {
            blocks.extend(open.take());
        } else {
            let start = at + (line.len() - line.trim_start().len());
            let end = at + line.trim_end().len();
            open = Some((open.map_or(start, |(start, _)| start), end));
        }
        at += line.len();
    }
    blocks.extend(open);
    blocks
}

/// The part itself, or several parts if it is too long.
fn parted(text: &str, mut start: usize, end: usize) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    while end - start > PIECE_MAX {
        let rest = text.get(start..end).unwrap_or_default();
        let cut = start + cut(rest);
        let part = text.get(start..cut).unwrap_or_default().trim_end();
        parts.push((start, start + part.len()));
        let behind = text.get(cut..end).unwrap_or_default();
        start = cut + (behind.len() - behind.trim_start().len());
    }
    if start < end {
        parts.push((start, end));
    }
    parts
}

/// The end of the first part of a text that is too long: at a line, else at a sentence, else at a space, else at the
/// last character that fits.
fn cut(text: &str) -> usize {
    let limit = text.floor_char_boundary(PIECE_MAX);
    let fits = text.get(..limit).unwrap_or_default();
    let ends = |marks: &[&str]| {
        let ends = marks
            .iter()
            .filter_map(|mark| fits.rfind(mark).map(|at| at + mark.len()));
        // Too short a part is not worth reading.
        ends.max().filter(|end| *end >= PIECE_MAX / 4)
    };
    ends(&["\n"])
        .or_else(|| ends(&[". ", "! ", "? ", "。", "！", "？"]))
        .or_else(|| ends(&[" "]))
        .unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_document_is_parted_at_its_paragraphs() {
        let text = "# Post\n\nOne.\ntwo.\n\n## Batteries\n\n- a\n- b\n\nThree.\n\n## Empty\n";
        let found: Vec<_> = pieces(text, 0)
            .into_iter()
            .map(|piece| {
                let part = &text[piece.start..piece.end];
                (
                    part,
                    piece.above.join("/"),
                    piece.heading.unwrap_or_default(),
                )
            })
            .collect();
        let expected = [
            ("# Post\n\nOne.\ntwo.", "", "Post"),
            ("## Batteries\n\n- a\n- b", "Post", "Batteries"),
            ("Three.", "Post/Batteries", "Batteries"),
            ("## Empty", "Post/Batteries", "Empty"),
        ];
        assert_eq!(
            found,
            expected.map(|(part, above, heading)| (part, above.to_owned(), heading.to_owned()))
        );
    }

    #[test]
    fn a_long_paragraph_is_parted_at_its_sentences() {
        for (sentence, mark, joined) in [
            ("Five words are in here", ".", " "),
            ("这句话有七个字", "。", ""),
        ] {
            let text = [format!("{sentence}{mark}").as_str(); 200].join(joined);
            let pieces = pieces(&text, 0);
            assert!(pieces.len() > 2);
            for piece in &pieces {
                let part = &text[piece.start..piece.end];
                assert!(part.starts_with(sentence) && part.ends_with(mark), "{part}");
                assert!(part.len() <= PIECE_MAX);
            }
        }
    }

    proptest! {
        /// Only whitespace is lost, the parts are in order, and each fits.
        #[test]
        fn everything_is_in_one_part(text in "([#] )?[a-z锂电。.# \n\t\u{3000}é-]{0,4000}") {
            let pieces = pieces(&text, 0);
            let mut last = 0;
            for piece in &pieces {
                prop_assert!(text[last..piece.start].trim().is_empty());
                let part = &text[piece.start..piece.end];
                prop_assert!(!part.is_empty() && part.len() <= PIECE_MAX);
                prop_assert_eq!(part, part.trim());
                last = piece.end;
            }
            prop_assert!(text[last..].trim().is_empty());
        }
    }
}
