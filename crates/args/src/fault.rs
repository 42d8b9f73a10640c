//! Faults: reasons why a text has no single reading, each with what to send instead.

use countersign_contract::IssueCode;

use crate::report::Finding;
use crate::words::Say;

/// A reason why a text is refused at a certain byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No rule fits the text here.
    Unreadable,
    /// A quote is missing, or one inside a string is not escaped.
    Quotes,
    /// The arguments are elements of a markup language.
    Markup,
    /// The content of an element can be a string as well as something else.
    Element,
    /// The document is a part of a program, for example a positional argument or an operand.
    Code,
    /// The document is a tool's result, or stands in another speaker's turn.
    Turn,
    /// A second document or call follows the first.
    Second,
    /// A parameter stands outside the document.
    Outside,
    /// A value without quotes is neither a literal nor a word.
    Bare,
    /// An escape that JSON does not have, with more than one meaning.
    Escape,
}

impl Fault {
    /// Builds the refusal of a text at this byte.
    pub(crate) fn finding(self, raw: &str, at: usize) -> Finding {
        let mut at = at.min(raw.len());
        while !raw.is_char_boundary(at) {
            at -= 1;
        }
        let byte = at.to_string();
        let (message, suggestion) = match self {
            Self::Unreadable => (Say::Unreadable { byte }, Say::SendAsObject),
            Self::Quotes => (Say::QuotesUnpaired { byte }, Say::EscapeQuotes),
            Self::Markup => (Say::IsMarkup, Say::SendAsObject),
            Self::Element => (Say::ElementUnclear { byte }, Say::SendAsObject),
            Self::Code => (Say::IsCode { byte }, Say::SendAsObject),
            Self::Turn => (Say::NotTheCall { byte }, Say::SendOnlyObject),
            Self::Second => (Say::SecondDocument { byte }, Say::SendOnlyObject),
            Self::Outside => (Say::OutsideDocument { byte }, Say::SendOnlyObject),
            Self::Bare => (Say::BareValue { byte }, Say::QuoteValues),
            Self::Escape => (Say::EscapeUnclear { byte }, Say::UseJsonEscapes),
        };
        Finding {
            span: Some([at, raw.len()]),
            message: Some(message),
            expected: Some(Say::JsonObject),
            suggestion: Some(suggestion),
            ..Finding::new(IssueCode::Ambiguous)
        }
    }
}
