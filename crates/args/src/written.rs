//! What a model writes around its calls, for readers of whole messages: thinking, and calls whose parameters are
//! elements.

use crate::markup::{self, NoCall};
use crate::outside::tag::{self, Kind};
use crate::outside::{thinking, turn};

/// Maximum length of what stands between the start of a call and its first parameter.
const HEAD_MAX: usize = 512;

/// Thinking at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// It ends before this byte.
    Ends(usize),
    /// The text ends inside it.
    Unfinished,
}

/// Returns the thinking that starts at the start of a text; `None` if none does.
pub fn thinking(text: &str) -> Option<Thinking> {
    thinking::opens(text)?;
    Some(thinking::end_of_block(text).map_or(Thinking::Unfinished, Thinking::Ends))
}

/// Returns the length of the mark that ends thinking at the start of a text.
pub fn end_of_thinking(text: &str) -> Option<usize> {
    thinking::closes(text)
}

/// Returns every pair of marks around thinking, for tests.
pub fn thinking_marks() -> impl Iterator<Item = (String, String)> {
    thinking::marks()
}

/// A tag that says something about the calls before or behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aside {
    /// A tool's result or another speaker's turn begins.
    Another,
    /// A tag of a format with elements, which is a part of a call.
    Element,
}

/// Returns the meaning of the tag at the start of a text; `None` if it has none for calls.
pub fn aside(text: &str) -> Option<Aside> {
    if turn::is_result_mark(text) {
        return Some(Aside::Another);
    }
    let tag = tag::read(text)?;
    if turn::is_of_another(&tag, text) {
        return Some(Aside::Another);
    }
    let of_format = match tag.kind {
        Kind::Closes => tag.is_parameter() || tag.is("invoke") || tag.is("function"),
        // `<arg>` alone is a word of a manual.
        Kind::Opens => {
            let named = !tag.attributes.trim().is_empty();
            tag.is("arg_key") || tag.is("arg_value") || (tag.is_parameter() && named)
        }
        Kind::Token => false,
    };
    of_format.then_some(Aside::Element)
}

/// Returns the place of a line that begins with the label of a tool's result, such as `Observation:`.
pub fn labelled_result(text: &str) -> Option<usize> {
    turn::labelled(text)
}

/// A call at the start of a text, whose parameters are elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementCall<'t> {
    /// It ends before this byte.
    Whole {
        /// The tool.
        name: &'t str,
        /// The byte behind it.
        end: usize,
    },
    /// The text ends inside it.
    Cut,
    /// It cannot be read without guessing.
    Broken,
}

/// Reads the call at the start of a text; `None` if its arguments are not elements.
pub fn element_call(text: &str) -> Option<ElementCall<'_>> {
    let call = match markup::find(text, 0, HEAD_MAX, &|_| false)? {
        Ok(call) => call,
        Err(NoCall::Cut(_)) => return Some(ElementCall::Cut),
        Err(NoCall::Broken(..)) => return Some(ElementCall::Broken),
    };
    (call.start == 0).then_some(ElementCall::Whole {
        name: call.name,
        end: call.end,
    })
}
