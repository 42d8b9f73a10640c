//! Colours of the terminal, each with one meaning. Colour only repeats what the text says, so output without it loses nothing.

/// Meaning of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// In order: green.
    Good,
    /// Look at it: yellow.
    Warn,
    /// Wrong: red.
    Bad,
    /// Less important: grey.
    Quiet,
    /// A name or heading: bold.
    Strong,
}

/// Colours, switched on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    /// Colours that are on if `is_on`.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on }
    }

    /// True if text is coloured.
    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    /// The text in the colour of its meaning.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "1;31",
            Tone::Quiet => "2",
            Tone::Strong => "1",
        };
        if self.is_on && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.tone(Tone::Good, text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.tone(Tone::Warn, text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.tone(Tone::Bad, text)
    }

    pub(crate) fn quiet(self, text: &str) -> String {
        self.tone(Tone::Quiet, text)
    }

    /// A line with its label in the colour of its meaning, where it begins with one.
    pub(crate) fn labelled(self, line: &str) -> String {
        for (label, tone) in LABELS {
            if let Some(rest) = line.strip_prefix(label)
                && rest.starts_with([':', '\n'])
            {
                return format!("{}{rest}", self.tone(tone, label));
            }
        }
        match line.strip_prefix("ok") {
            Some(rest) if rest.is_empty() || rest.starts_with(" (") => {
                format!("{}{rest}", self.good("ok"))
            }
            Some(_) | None => line.to_owned(),
        }
    }
}

/// Labels at the beginning of a line, with their meaning.
const LABELS: [(&str, Tone); 8] = [
    ("error", Tone::Bad),
    ("wrong", Tone::Bad),
    ("problem", Tone::Bad),
    ("warning", Tone::Warn),
    ("to do", Tone::Warn),
    ("note", Tone::Quiet),
    ("hint", Tone::Strong),
    ("ok", Tone::Good),
];

/// The meaning of a cell in a column that says how something is; `None` for every other cell.
pub(crate) fn tone_of(head: &str, cell: &str) -> Option<Tone> {
    match head {
        "STATE" | "CODE" | "SEVERITY" | "IN THE LOG" | "RESULT" => {}
        _ => return None,
    }
    // A code may be followed by how the call was made.
    let word = cell.split([' ', '(']).next().unwrap_or_default();
    match word {
        "ok" | "OK" | "succeeded" | "approved" | "proved" | "active" | "identical" | "intact" => {
            Some(Tone::Good)
        }
        "WRONG" | "NOT" | "in_doubt" | "failed" | "error" | "drift" | "broken" | "denied"
        | "revoked" => Some(Tone::Bad),
        "note" | "warning" | "running" | "pending" | "waiting" | "open" => Some(Tone::Warn),
        "" | "-" => None,
        code if head == "CODE" && code.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
            Some(Tone::Bad)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_coloured_only_where_colours_are_on() {
        let on = Paint::new(true);
        assert_eq!(on.labelled("error: x"), "\u{1b}[1;31merror\u{1b}[0m: x");
        assert_eq!(on.labelled("ok"), "\u{1b}[32mok\u{1b}[0m");
        assert_eq!(on.labelled("notes: x"), "notes: x");
        assert_eq!(Paint::new(false).labelled("error: x"), "error: x");
        assert_eq!(on.good(""), "");
    }

    #[test]
    fn cells_have_a_tone_in_columns_that_say_how_something_is() {
        let check = |head, cell, tone| assert_eq!(tone_of(head, cell), tone, "{head} {cell}");
        check("CODE", "OK (dry run)", Some(Tone::Good));
        check("CODE", "INVALID_ARGUMENT", Some(Tone::Bad));
        check("CODE", "-", None);
        check("STATE", "in_doubt", Some(Tone::Bad));
        check("STATE", "WRONG", Some(Tone::Bad));
        check("USER", "ok", None);
        check("TOOL", "OK", None);
    }
}
