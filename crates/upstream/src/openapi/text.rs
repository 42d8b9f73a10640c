//! Descriptions as a model should read them: short, without markup, without invisible characters.

/// Most characters of a text that are looked at.
const READ_CHARS_MAX: usize = 4_000;

/// A text without markup and line breaks, cut at the end of a sentence or of a word.
pub(crate) fn brief(text: &str, chars_max: usize) -> String {
    let plain = plain(text);
    if plain.chars().count() <= chars_max {
        return plain;
    }
    let end = plain
        .char_indices()
        .nth(chars_max)
        .map_or(plain.len(), |(at, _)| at);
    let cut = plain.get(..end).unwrap_or_default();
    // A whole sentence says more than a text that breaks off, unless it is a small part of it.
    let sentence = cut.rfind(". ").map(|at| at + 1).filter(|at| *at * 3 > end);
    let word = cut.rfind(' ').filter(|at| *at * 3 > end);
    match (sentence, word) {
        (Some(at), _) => cut.get(..at).unwrap_or_default().to_owned(),
        (None, at) => {
            let kept = cut.get(..at.unwrap_or(end)).unwrap_or_default();
            format!("{}…", kept.trim_end_matches([',', ';', ':', ' ']))
        }
    }
}

/// A text in one line, without tags, links and invisible characters.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(1024));
    // Nothing longer is ever shown.
    let end = text.char_indices().nth(READ_CHARS_MAX);
    let mut rest = text
        .get(..end.map_or(text.len(), |(at, _)| at))
        .unwrap_or_default();
    while let Some(at) = rest.find(['<', '[']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let skipped = if from.starts_with('<') {
            tag(from)
        } else {
            link(from, &mut out)
        };
        rest = if let Some(length) = skipped {
            from.get(length..).unwrap_or_default()
        } else {
            let (first, behind) = from.split_at(1);
            out.push_str(first);
            behind
        };
    }
    out.push_str(rest);
    let out = entities(&out);
    let shown: String = out
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !is_unseen(*c) && !matches!(c, '`' | '*'))
        .collect();
    shown
        .split(' ')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Characters that a person does not see and a model does.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// The length of a tag such as `<p>` or `</code>`, or of a comment.
fn tag(text: &str) -> Option<usize> {
    let second = text.chars().nth(1)?;
    if !(second.is_ascii_alphabetic() || matches!(second, '/' | '!')) {
        return None;
    }
    let window = text
        .char_indices()
        .nth(300)
        .map_or(text.len(), |(at, _)| at);
    text.get(..window)?.find('>').map(|at| at + 1)
}

/// The length of a link `[text](address)`; its text is written.
fn link(text: &str, out: &mut String) -> Option<usize> {
    let middle = text.find("](")?;
    let shown = text.get(1..middle)?;
    if shown.contains(['[', '\n']) {
        return None;
    }
    let end = text.get(middle..)?.find(')')?;
    out.push_str(shown);
    Some(middle + end + 1)
}

fn entities(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let known = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    known.iter().fold(text.to_owned(), |text, (entity, shown)| {
        text.replace(entity, shown)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_goes_and_words_stay() {
        let check = |text: &str, expected: &str| assert_eq!(plain(text), expected);
        check(
            "<p>Adds a <code>tag</code>.</p>\n\n See [the docs](https://x.example/a).",
            "Adds a tag. See the docs.",
        );
        check(
            "a < b and [x] &amp; `c`\u{200b}\u{202e}",
            "a < b and [x] & c",
        );
        check("<", "<");
        check("[](", "[](");
    }

    #[test]
    fn a_long_text_ends_with_a_sentence_or_a_word() {
        assert_eq!(brief("One two. Three four five.", 14), "One two.");
        assert_eq!(brief("One two three four five", 14), "One two three…");
        assert_eq!(brief("ééééé", 3), "ééé…");
    }
}
