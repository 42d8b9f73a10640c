//! A call in the words of its tool, for the approver.

use countersign_contract::Wording;

/// The tool's text for the approver of a call: a title, lines, and the effects that cannot be undone. Each text is a
/// [`Wording`], so that every approver reads it in their own language.
///
/// It is a help beside the bound arguments, which are always shown. At most [`LINES_MAX`](Question::LINES_MAX) lines
/// and [`CHARS_MAX`](Question::CHARS_MAX) characters a text are kept; if something is left out, the last line says so.
///
/// # Example
///
/// ```
/// use countersign::contract::Wording;
/// use countersign::tool::Question;
///
/// let question = Question::new(Wording::new("Send EUR 12.50 to Ann", "向 Ann 汇出 EUR 12.50"))
///     .line(Wording::new("Account", "账户"), "DE89 3704 0044 0532 0130 00")
///     .irreversible(Wording::new("Money that was sent does not come back.", "汇出的款项无法追回。"));
/// assert_eq!(question.lines.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The title, one line.
    pub title: Wording,
    /// Labels and values. Amounts are written as people write them.
    pub lines: Vec<(Wording, Wording)>,
    /// Effects that cannot be undone.
    pub irreversible: Vec<Wording>,
}

impl Question {
    /// Maximum number of lines, and of sentences about effects that cannot be undone.
    pub const LINES_MAX: usize = 64;

    /// Maximum number of characters of one text.
    pub const CHARS_MAX: usize = 500;

    /// A question with a title only.
    pub fn new(title: impl Into<Wording>) -> Self {
        Self {
            title: title.into(),
            lines: Vec::new(),
            irreversible: Vec::new(),
        }
    }

    /// Adds a line.
    pub fn line(mut self, label: impl Into<Wording>, value: impl Into<Wording>) -> Self {
        self.lines.push((label.into(), value.into()));
        self
    }

    /// Adds an effect that cannot be undone.
    pub fn irreversible(mut self, what: impl Into<Wording>) -> Self {
        self.irreversible.push(what.into());
        self
    }
}
