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

/// Kind of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Opens,
    Closes,
    /// A token of a chat template: `<|im_end|>`.
    Token,
}

/// One tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag<'t> {
    pub(super) kind: Kind,
    /// Name without its namespace.
    pub(super) name: &'t str,
    /// True if something stands behind the name: `<function=f>`, `<invoke name="f">`.
    attributed: bool,
    /// Length in bytes.
    pub(super) width: usize,
}

/// Reads the tag at the start of a text, which begins with `<`. A tag that is cut off by the end of the text
/// counts as one.
pub(super) fn read(text: &str) -> Option<Tag<'_>> {
    let inside = text.strip_prefix('<')?;
    let end = inside.find(['>', '<', '{', '\n']);
    let (inside, width) = match end {
        Some(end) if inside.get(end..).unwrap_or_default().starts_with('>') => {
            (inside.get(..end).unwrap_or_default(), end + 2)
        }
        Some(_) => return None,
        None => (inside, text.len()),
    };
    if inside.len() > TAG_BYTES_MAX {
        return None;
    }
    let bars = ['|', '｜'];
    if inside.starts_with(bars) && inside.ends_with(bars) || inside.ends_with('|') {
        let name = inside.trim_matches(bars);
        let kind = Kind::Token;
        return Some(Tag {
            kind,
            name,
            attributed: false,
            width,
        });
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
        attributed: head.len() < inside.len(),
        width,
    })
}

impl Tag<'_> {
    pub(super) fn is_parameter(&self) -> bool {
        !self.is_token() && is_one_of(self.name, &PARAMETERS)
    }

    pub(super) fn is_wrapper(&self) -> bool {
        is_one_of(self.name, &WRAPPERS)
    }

    pub(super) fn is_token(&self) -> bool {
        self.kind == Kind::Token
    }

    /// True for `<function=f>` and `<invoke name="f">`.
    pub(super) fn is_call(&self) -> bool {
        self.attributed || is_one_of(self.name, &["invoke"])
    }

    /// True if a token begins a call or a message.
    pub(super) fn starts_something(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let has = |part| name.contains(part);
        !has("end")
            && ["begin", "start", "tool", "channel", "message", "python"]
                .into_iter()
                .any(has)
    }
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}
