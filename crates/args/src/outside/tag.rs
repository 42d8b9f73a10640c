//! Tags of markup, and the tokens that models put around a call.

/// Maximum length of a tag in bytes.
const TAG_BYTES_MAX: usize = 256;

/// Elements that hold one parameter each.
const PARAMETERS: [&str; 6] = [
    "parameter",
    "param",
    "argument",
    "arg",
    "arg_key",
    "arg_value",
];

/// Elements that hold the whole of a call.
const WRAPPERS: [&str; 28] = [
    "action",
    "answer",
    "args",
    "arguments",
    "assistant",
    "call",
    "code",
    "final",
    "final_answer",
    "function",
    "function_call",
    "function_calls",
    "functioncall",
    "functions",
    "input",
    "invoke",
    "json",
    "output",
    "parameters",
    "params",
    "response",
    "result",
    "tool",
    "tool_call",
    "tool_calls",
    "tool_use",
    "toolcall",
    "tools",
];

/// Marks that only a call stands in, as elements or as tokens.
const CALL_MARKS: [&str; 11] = [
    "function_call",
    "function_calls",
    "functioncall",
    "python_tag",
    "start_action",
    "tool_call",
    "tool_calls",
    "tool_use",
    "toolcall",
    "tools",
    "use_tool",
];

/// Tokens of chat templates that are written like elements.
const TURN_TOKENS: [&str; 4] = ["bos", "end_of_turn", "eos", "start_of_turn"];

/// Kind of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Opens,
    Closes,
    /// A token of a chat template: `<|im_end|>`.
    Token,
}

/// One tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'t> {
    pub(crate) kind: Kind,
    /// Name without its namespace.
    pub(crate) name: &'t str,
    /// Text behind the name: `=f` in `<function=f>`, ` name="f"` in `<invoke name="f">`.
    pub(crate) attributes: &'t str,
    /// True if the text ends inside the tag.
    pub(crate) cut: bool,
    /// Length in bytes.
    pub(crate) width: usize,
}

/// Reads the tag at the start of a text, which begins with `<`. A tag that is cut off by the end of the text
/// counts as one.
pub(crate) fn read(text: &str) -> Option<Tag<'_>> {
    let inside = text.strip_prefix('<')?;
    let bytes = inside.as_bytes();
    let mut near = bytes.iter().take(TAG_BYTES_MAX + 1);
    let end = near.position(|byte| matches!(byte, b'>' | b'<' | b'{' | b'\n'));
    let (inside, width) = match end {
        Some(end) if bytes.get(end) == Some(&b'>') => {
            (inside.get(..end).unwrap_or_default(), end + 2)
        }
        Some(_) => return None,
        None => (inside, text.len()),
    };
    if inside.len() > TAG_BYTES_MAX {
        return None;
    }
    // Nearly every tag is a bare name.
    if is_bare(inside) && !TURN_TOKENS.contains(&inside) {
        return Some(Tag::plain(Kind::Opens, inside, end.is_none(), width));
    }
    let bars = ['|', '｜'];
    // `<tool_call|>` closes what `<|tool_call>` has opened.
    if let Some(name) = inside.strip_suffix('|')
        && !inside.starts_with(bars)
        && is_one_of(name, &WRAPPERS)
    {
        return Some(Tag {
            kind: Kind::Closes,
            name,
            attributes: "",
            cut: end.is_none(),
            width,
        });
    }
    if inside.starts_with(bars) && inside.ends_with(bars) || inside.ends_with('|') {
        let name = inside.trim_matches(bars);
        let kind = Kind::Token;
        return Some(Tag {
            kind,
            name,
            attributes: "",
            cut: end.is_none(),
            width,
        });
    }
    if TURN_TOKENS.contains(&inside) {
        return Some(Tag::plain(Kind::Token, inside, end.is_none(), width));
    }
    let (kind, inside) = match inside.strip_prefix('/') {
        Some(inside) => (Kind::Closes, inside),
        None => (Kind::Opens, inside.trim_end_matches('/')),
    };
    let head = inside.split([' ', '=', '\t']).next().unwrap_or_default();
    let name = head.rsplit([':', '|', '｜']).next().unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name =
        name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(plain);
    is_name.then_some(Tag {
        kind,
        name,
        attributes: inside.get(head.len()..).unwrap_or_default(),
        cut: end.is_none(),
        width,
    })
}

impl<'t> Tag<'t> {
    /// A tag without attributes.
    const fn plain(kind: Kind, name: &'t str, cut: bool, width: usize) -> Self {
        Self {
            kind,
            name,
            attributes: "",
            cut,
            width,
        }
    }

    pub(crate) fn is_parameter(&self) -> bool {
        !self.is_token() && is_one_of(self.name, &PARAMETERS)
    }

    pub(crate) fn is_wrapper(&self) -> bool {
        is_one_of(self.name, &WRAPPERS)
    }

    pub(crate) fn is_token(&self) -> bool {
        self.kind == Kind::Token
    }

    /// True for `<function=f>` and `<invoke name="f">`.
    pub(crate) fn is_call(&self) -> bool {
        !self.attributes.is_empty() || is_one_of(self.name, &["invoke"])
    }

    /// True for the element of a call whose parameters are elements inside it.
    pub(crate) fn holds_parameters(&self) -> bool {
        let named = is_one_of(self.name, &["invoke"]);
        self.kind == Kind::Opens
            && (named || (self.is_call() && is_one_of(self.name, &["function", "tool", "call"])))
    }

    /// True for a mark that only a call stands in.
    pub(crate) fn marks_call(&self) -> bool {
        self.kind != Kind::Closes && is_one_of(self.name, &CALL_MARKS)
    }

    /// True for an element with this name, in any case.
    pub(crate) fn is(&self, name: &str) -> bool {
        !self.is_token() && self.name.eq_ignore_ascii_case(name)
    }

    /// Returns the name that a tag gives: `f` in `<function=f>` and in `<invoke name="f">`.
    pub(crate) fn given_name(self) -> Option<&'t str> {
        let attributes = self.attributes.trim();
        let name = match attributes.strip_prefix('=') {
            Some(name) => name.trim().trim_matches(['"', '\'']),
            None => self.attribute("name")?,
        };
        Some(name).filter(|name| !name.is_empty())
    }

    /// Returns the value of an attribute.
    pub(crate) fn attribute(self, wanted: &str) -> Option<&'t str> {
        let mut rest = self.attributes.trim();
        while let Some((name, value)) = rest.split_once('=') {
            let value = value.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
            let inside = value.get(quote.map_or(0, char::len_utf8)..)?;
            let end = match quote {
                Some(quote) => inside.find(quote)?,
                None => inside.find(char::is_whitespace).unwrap_or(inside.len()),
            };
            if name.trim() == wanted {
                return inside.get(..end);
            }
            rest = inside.get(end + quote.map_or(0, char::len_utf8)..)?;
        }
        None
    }

    /// True if a token begins a call or a message.
    pub(crate) fn starts_something(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let has = |part| name.contains(part);
        !has("end")
            && ["begin", "start", "tool", "channel", "message", "python"]
                .into_iter()
                .any(has)
    }
}

/// True for a name in ASCII, without a namespace.
fn is_bare(text: &str) -> bool {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.bytes().all(part)
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}
