//! Thinking: blocks in which a model reasons. Their content is not a call, and a block without an end means
//! that the text was cut off.

use std::sync::LazyLock;

use regex::Regex;

/// Elements with thinking in them.
const NAMES: [&str; 10] = [
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "scratchpad",
    "analysis",
    "inner_monologue",
    "monologue",
];

/// Other pairs of marks.
const MARKS: [(&str, &str); 6] = [
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<unused94>thought", "<unused95>"),
    ("<|channel>thought", "<channel|>"),
];

/// A part of each name and mark above and of the channel below, so that a long text without any is not searched tag by tag.
static PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        "(?i-u)think|thought|reason|reflect|scratchpad|analysis|monologue|unused95|channel\\|",
    )
    .ok()
});

/// Length from which a text is searched for the parts first.
const LONG: usize = 16 * 1024;

/// Harmony's channel for thinking, and the tokens that end a message in it.
const CHANNEL: &str = "<|channel|>analysis";
const CHANNEL_ENDS: [&str; 3] = ["<|end|>", "<|start|>", "<|channel|>"];

/// Returns every pair of marks around thinking.
pub(crate) fn marks() -> impl Iterator<Item = (String, String)> {
    let elements = NAMES.map(|name| (format!("<{name}>"), format!("</{name}>")));
    let others = MARKS.map(|(open, close)| (open.to_owned(), close.to_owned()));
    elements.into_iter().chain(others)
}

/// Returns the offset behind the thinking that stands before the first document; the error is the offset of a
/// block that does not end.
pub(crate) fn skip(text: &str) -> Result<usize, usize> {
    let mut from = 0;
    let mut document = 0;
    let parts = PARTS.as_ref().filter(|_| text.len() > LONG);
    if parts.is_some_and(|parts| !parts.is_match(text)) {
        return Ok(from);
    }
    'blocks: loop {
        let rest = text.get(from..).unwrap_or_default();
        // Searched once for all blocks before it.
        if document <= from {
            document = from + rest.find('{').unwrap_or(rest.len());
        }
        let head = text.get(from..document).unwrap_or_default();
        for (at, _) in head.match_indices(['<', '[', '◁']) {
            let before = rest.get(..at).unwrap_or_default();
            let here = rest.get(at..).unwrap_or_default();
            // In quotes it is a part of a string.
            if before.ends_with(['"', '\'', '`', '=', '“']) {
                continue;
            }
            if opens(here).is_some() {
                from += at + end_of_block(here).ok_or(from + at)?;
                continue 'blocks;
            }
            if let Some(width) = closes(here) {
                from += at + width;
                continue 'blocks;
            }
        }
        return Ok(from);
    }
}

/// Returns the length of the mark that opens a block at the start of a text.
pub(crate) fn opens(text: &str) -> Option<usize> {
    if let Some(behind) = text.strip_prefix(CHANNEL) {
        // Some tools are called in this channel.
        let thinks = !behind.trim_start().starts_with("to=");
        return thinks.then_some(CHANNEL.len());
    }
    let mark = MARKS.iter().find(|(open, _)| starts_with(text, open));
    mark.map(|(open, _)| open.len())
        .or_else(|| element(text, "<"))
}

/// Returns the length of the mark that closes a block at the start of a text.
pub(crate) fn closes(text: &str) -> Option<usize> {
    let mark = MARKS.iter().find(|(_, close)| starts_with(text, close));
    mark.map(|(_, close)| close.len())
        .or_else(|| element(text, "</"))
}

/// True if a text starts with a mark, in any case.
fn starts_with(text: &str, mark: &str) -> bool {
    let head = text.as_bytes().get(..mark.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(mark.as_bytes()))
}

/// Returns the offset behind the block at the start of a text.
pub(crate) fn end_of_block(text: &str) -> Option<usize> {
    let opened = opens(text)?;
    let inside = text.get(opened..)?;
    if text.starts_with(CHANNEL) {
        let mut ends = inside.match_indices("<|");
        let at = ends.find(|(at, _)| {
            let here = inside.get(*at..).unwrap_or_default();
            CHANNEL_ENDS.iter().any(|end| here.starts_with(end))
        });
        return at.map(|(at, _)| opened + at);
    }
    let mut ends = inside.match_indices(['<', '[', '◁']);
    ends.find_map(|(at, _)| Some(opened + at + closes(inside.get(at..)?)?))
}

/// Returns the length of the tag at the start of a text, if it is that of a thinking element.
fn element(text: &str, bracket: &str) -> Option<usize> {
    let inside = text.strip_prefix(bracket)?;
    // Neither another bracket nor a space starts a name.
    let starts = |byte: &u8| !matches!(byte, b'<' | b'>' | b'/' | b' ');
    inside.as_bytes().first().filter(|byte| starts(byte))?;
    let end = inside.bytes().take(64).position(|byte| byte == b'>')?;
    let head = inside.get(..end)?.split(' ').next()?;
    let name = head.rsplit(':').next()?;
    let thinks = NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
    thinks.then_some(bracket.len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is searched for first is a part of everything that opens or closes thinking.
    #[test]
    fn every_mark_has_a_part() {
        let parts = PARTS.as_ref().unwrap();
        let marks = MARKS.iter().flat_map(|(open, close)| [*open, *close]);
        for mark in NAMES.into_iter().chain(marks).chain([CHANNEL]) {
            assert!(parts.is_match(mark), "{mark}");
            assert!(parts.is_match(&mark.to_uppercase()), "{mark}");
        }
    }

    /// A long text is read as a short one.
    #[test]
    fn long_thinking_is_skipped() {
        for (open, close) in [("<think>", "</think>"), ("[THINK]", "[/THINK]")] {
            let text = format!("{open}{}{close} {{}}", "<b> ".repeat(LONG));
            assert_eq!(skip(&text), Ok(text.len() - " {}".len()), "{open}");
        }
        assert_eq!(skip(&"<b> ".repeat(LONG)), Ok(0));
        // A mark that only ends it.
        let ended = format!("{}</think>", "<b> ".repeat(LONG));
        assert_eq!(skip(&ended), Ok(ended.len()));
    }
}
