//! Calls whose parameters are elements: `<invoke name="f"><parameter name="a">1</parameter></invoke>` and its
//! relatives. A format is read whole or not at all.
//!
//! An element has no quotes and no escapes, so its content is what stands between its tags. What could be a tag of
//! the same format inside a value has two readings, and is refused.

use crate::fault::Fault;
use crate::outside::tag::{self, Kind, Tag};

/// A call with its parameters.
#[derive(Debug)]
pub(crate) struct Call<'t> {
    /// First byte of the call, or of the element around it.
    pub(crate) start: usize,
    /// The byte behind it.
    pub(crate) end: usize,
    /// Name of the tool.
    pub(crate) name: &'t str,
    pub(crate) parameters: Vec<Parameter<'t>>,
}

/// One parameter.
#[derive(Debug)]
pub(crate) struct Parameter<'t> {
    pub(crate) name: &'t str,
    pub(crate) content: &'t str,
    /// First byte of the content.
    pub(crate) start: usize,
    pub(crate) layout: Layout,
    /// Type according to the tag: true for a string, false for JSON.
    pub(crate) is_text: Option<bool>,
}

/// White space around a value that belongs to the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// None.
    Verbatim,
    /// A line break on each side.
    Lines,
    /// Not known.
    Loose,
}

/// Reason why there is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoCall {
    /// The text ends inside it.
    Cut(usize),
    /// It cannot be read without guessing.
    Broken(usize, Fault),
}

/// Finds the call whose parameters are elements; `None` if the text has no such call that starts within `head_max`
/// bytes. `declares` knows the names of parameters.
pub(crate) fn find<'t>(
    text: &'t str,
    from: usize,
    head_max: usize,
    declares: &dyn Fn(&str) -> bool,
) -> Option<Result<Call<'t>, NoCall>> {
    let mut scanner = Scanner {
        text,
        declares,
        at: from,
        open: Vec::new(),
    };
    // An element inside a document is a part of one of its strings.
    while let Some(offset) = scanner.rest().find(['{', '"', '(', '<']) {
        scanner.at += offset;
        if scanner.at - from > head_max {
            return None;
        }
        if !scanner.rest().starts_with('<') {
            if scanner.starts_document() {
                break;
            }
            scanner.at += 1;
        } else if let Some(found) = scanner.element() {
            return Some(found);
        }
    }
    scanner.unfinished().map(Err)
}

/// Maximum number of open elements that are remembered.
const OPEN_MAX: usize = 32;

struct Scanner<'t, 'd> {
    text: &'t str,
    declares: &'d dyn Fn(&str) -> bool,
    at: usize,
    /// Elements around the call that are open, each with the byte where it starts.
    open: Vec<(Tag<'t>, usize)>,
}

impl<'t> Scanner<'t, '_> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn tag(&self) -> Option<Tag<'t>> {
        tag::read(self.rest())
    }

    /// True if a document may start here: a brace, a literal that is the whole text or holds a
    /// document, or the parenthesis of a call.
    fn starts_document(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        let here = self.rest();
        let inside = here.get(1..).unwrap_or_default().trim_start();
        match here.bytes().next() {
            Some(b'{') => true,
            Some(b'"') => before.trim_end().is_empty() || inside.starts_with(['{', '[', '\\']),
            Some(b'(') => {
                let called = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
                let word = inside.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
                called && word.len() < inside.len() && word.trim_start().starts_with('=')
            }
            _ => false,
        }
    }

    /// Looks at the tag here; `Some` if it decides about the text.
    fn element(&mut self) -> Option<Result<Call<'t>, NoCall>> {
        let start = self.at;
        let Some(tag) = self.tag() else {
            self.at += 1;
            return None;
        };
        self.at += tag.width;
        if tag.kind == Kind::Closes {
            if tag.cut && !self.open.is_empty() {
                return Some(Err(NoCall::Cut(start)));
            }
            let at = self.open.iter().rposition(|(open, _)| open.is(tag.name))?;
            let opened = self.open.get(at).map_or(start, |(_, opened)| *opened);
            let name = self.text.get(opened..start).unwrap_or_default();
            let name = name.rsplit('>').next().unwrap_or_default().trim();
            let lone = self.open.len() == at + 1 && self.is_lone_name(at, start);
            self.open.truncate(at);
            // `<tool_call>f</tool_call>` is a call without arguments.
            return lone.then(|| self.ended(opened, name, Vec::new()));
        }
        if tag.kind == Kind::Token {
            return None;
        }
        let known = tag.is_wrapper() || tag.is_parameter() || tag.holds_parameters();
        if tag.cut && (known || !self.open.is_empty()) {
            return Some(Err(NoCall::Cut(start)));
        }
        if tag.holds_parameters() {
            return self
                .starts_parameters("parameter")
                .then(|| self.called(tag, start));
        }
        if tag.is("arg_key") || tag.is("arg_value") {
            self.at = start;
            return Some(self.keys_and_values(start));
        }
        if tag.is_parameter() || (self.declares)(tag.name) {
            return Some(Err(NoCall::Broken(start, Fault::Markup)));
        }
        if !tag.is_wrapper() && tag.attributes.is_empty() && self.starts_declared() {
            return Some(self.named(tag, start));
        }
        if self.open.len() < OPEN_MAX {
            self.open.push((tag, start));
        }
        None
    }

    /// True if a call's element, which ends before `end`, has nothing in it but a name.
    fn is_lone_name(&self, open: usize, end: usize) -> bool {
        let Some((tag, start)) = self.open.get(open) else {
            return false;
        };
        let inside = self.text.get(start + tag.width..end).unwrap_or_default();
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        tag.is("tool_call") && !inside.trim().is_empty() && inside.trim().chars().all(part)
    }

    /// True if the next thing here is an element for a parameter, the end of the call, or the end of the text.
    fn starts_parameters(&self, name: &str) -> bool {
        let rest = self.rest().trim_start();
        match tag::read(rest) {
            Some(tag) => tag.is(name) || tag.is_parameter() || tag.kind == Kind::Closes || tag.cut,
            None => rest.is_empty() || rest == "<" || rest == "</",
        }
    }

    /// True if an element for a declared parameter starts here.
    fn starts_declared(&self) -> bool {
        let tag = tag::read(self.rest().trim_start());
        tag.is_some_and(|tag| tag.kind == Kind::Opens && (self.declares)(tag.name))
    }

    /// Skips white space, and tells whether a line ended in it.
    fn skip_white(&mut self) -> bool {
        let rest = self.rest();
        let white = rest.len() - rest.trim_start().len();
        self.at += white;
        rest.get(..white).is_some_and(|white| white.contains('\n'))
    }

    /// Refuses parameters of which only some start on a line of their own: their author writes all alike, so these tags
    /// are a part of a value.
    fn check_layout(
        lines: &mut Option<bool>,
        is_line: bool,
        is_first: bool,
        at: usize,
    ) -> Result<(), NoCall> {
        if is_first || *lines.get_or_insert(is_line) == is_line {
            return Ok(());
        }
        broken(at)
    }

    /// Reads `<invoke name="f">` or `<function=f>` with its parameters.
    fn called(&mut self, call: Tag<'t>, start: usize) -> Result<Call<'t>, NoCall> {
        let name = call.given_name().unwrap_or_default();
        let mut parameters = Vec::new();
        let mut lines = None;
        loop {
            let is_line = self.skip_white();
            let here = self.at;
            let tag = self.next_tag()?;
            self.at += tag.width;
            match tag.kind {
                Kind::Closes if tag.is(call.name) => return self.ended(start, name, parameters),
                // The element around the call ends, so nothing of the call is missing but its own end.
                Kind::Closes if self.open.last().is_some_and(|(open, _)| open.is(tag.name)) => {
                    self.at = here;
                    return self.ended(start, name, parameters);
                }
                Kind::Opens if tag.is_parameter() => {
                    Self::check_layout(&mut lines, is_line, parameters.is_empty(), here)?;
                    let Some(parameter) = tag.given_name() else {
                        return broken(here);
                    };
                    let layout = if tag.attributes.trim_start().starts_with('=') {
                        Layout::Lines
                    } else {
                        Layout::Verbatim
                    };
                    let is_text = tag.attribute("string").map(|value| value == "true");
                    let ends = [call.name];
                    let (content, at) = self.content(tag, &ends)?;
                    parameters.push(Parameter {
                        name: parameter,
                        content,
                        start: at,
                        layout,
                        is_text,
                    });
                }
                Kind::Opens | Kind::Closes | Kind::Token => return broken(here),
            }
        }
    }

    /// Reads `<arg_key>a</arg_key><arg_value>1</arg_value>` pairs up to the end of the element around them.
    fn keys_and_values(&mut self, first: usize) -> Result<Call<'t>, NoCall> {
        let Some((around, start)) = self.open.pop() else {
            return broken(first);
        };
        let called = self
            .text
            .get(start + around.width..first)
            .unwrap_or_default();
        let mut parameters = Vec::new();
        let mut lines = None;
        loop {
            let is_line = self.skip_white();
            let here = self.at;
            let tag = self.next_tag()?;
            self.at += tag.width;
            if tag.kind == Kind::Closes && tag.is(around.name) {
                return self.ended(start, called.trim(), parameters);
            }
            if !tag.is("arg_key") || tag.kind != Kind::Opens {
                return broken(here);
            }
            Self::check_layout(&mut lines, is_line, parameters.is_empty(), here)?;
            let ends = ["arg_value", around.name];
            let (name, _) = self.content(tag, &ends)?;
            self.skip_white();
            let here = self.at;
            let tag = self.next_tag()?;
            if !tag.is("arg_value") || tag.kind != Kind::Opens {
                return broken(here);
            }
            self.at += tag.width;
            let ends = ["arg_key", around.name];
            let (content, at) = self.content(tag, &ends)?;
            let name = name.trim();
            if name.is_empty() {
                return broken(here);
            }
            parameters.push(Parameter {
                name,
                content,
                start: at,
                layout: Layout::Verbatim,
                is_text: None,
            });
        }
    }

    /// Reads `<f><a>1</a></f>`, in which every parameter is an element of its own name.
    fn named(&mut self, call: Tag<'t>, start: usize) -> Result<Call<'t>, NoCall> {
        let name = call.name;
        let mut parameters = Vec::new();
        loop {
            self.skip_white();
            let here = self.at;
            let tag = self.next_tag()?;
            self.at += tag.width;
            match tag.kind {
                Kind::Closes if tag.is(call.name) => return self.ended(start, name, parameters),
                Kind::Opens if (self.declares)(tag.name) && tag.attributes.is_empty() => {
                    let ends = [call.name];
                    let (content, at) = self.content(tag, &ends)?;
                    parameters.push(Parameter {
                        name: tag.name,
                        content,
                        start: at,
                        layout: Layout::Loose,
                        is_text: None,
                    });
                }
                Kind::Opens | Kind::Closes | Kind::Token => return broken(here),
            }
        }
    }

    /// Returns the tag that must stand here.
    fn next_tag(&self) -> Result<Tag<'t>, NoCall> {
        let rest = self.rest();
        match self.tag() {
            Some(tag) if tag.cut => Err(NoCall::Cut(self.at)),
            Some(tag) => Ok(tag),
            None if rest.is_empty() || rest == "<" || rest == "</" => Err(NoCall::Cut(self.at)),
            None => broken(self.at),
        }
    }

    /// Returns the content of an element whose opening tag was just read, and its first byte. A tag of the same
    /// format inside it may be the end of the value, or a part of it.
    fn content(&mut self, element: Tag<'t>, ends: &[&str]) -> Result<(&'t str, usize), NoCall> {
        let start = self.at;
        let mut at = start;
        loop {
            let rest = self.text.get(at..).unwrap_or_default();
            let Some(offset) = memchr::memchr(b'<', rest.as_bytes()) else {
                return Err(NoCall::Cut(self.text.len()));
            };
            at += offset;
            let Some(tag) = tag::read(self.text.get(at..).unwrap_or_default()) else {
                at += 1;
                continue;
            };
            if tag.cut {
                return Err(NoCall::Cut(at));
            }
            if tag.is(element.name) && tag.kind == Kind::Closes {
                self.at = at + tag.width;
                return Ok((self.text.get(start..at).unwrap_or_default(), start));
            }
            let ends = ends.iter().any(|end| tag.is(end)) || self.is_around(tag);
            if tag.is(element.name) || ends {
                return broken(at);
            }
            at += 1;
        }
    }

    /// True if a tag ends an element around the call.
    fn is_around(&self, tag: Tag<'_>) -> bool {
        tag.kind == Kind::Closes && self.open.iter().any(|(open, _)| open.is(tag.name))
    }

    /// Reads the ends of the elements around a call.
    fn ended(
        &mut self,
        start: usize,
        name: &'t str,
        parameters: Vec<Parameter<'t>>,
    ) -> Result<Call<'t>, NoCall> {
        let mut call = Call {
            start,
            end: self.at,
            name,
            parameters,
        };
        while let Some((around, start)) = self.open.pop() {
            self.skip_white();
            // Nothing but white space may stand between them.
            let between = start + around.width;
            let inside = self.text.get(between..call.start).unwrap_or_default();
            let tag = self.next_tag()?;
            if !inside.trim().is_empty() {
                return broken(between);
            }
            if tag.kind != Kind::Closes || !tag.is(around.name) {
                return broken(self.at);
            }
            self.at += tag.width;
            call.start = start;
            call.end = self.at;
        }
        Ok(call)
    }

    /// Returns the place of an element of a call that the text ends inside of, without anything in it.
    fn unfinished(&self) -> Option<NoCall> {
        let (tag, start) = self.open.last()?;
        let inside = self.text.get(start + tag.width..).unwrap_or_default();
        let empty = inside.trim().is_empty() || inside.trim() == "<";
        (empty && tag.is_wrapper()).then_some(NoCall::Cut(*start))
    }
}

/// Returns the refusal of markup at this byte.
const fn broken<T>(at: usize) -> Result<T, NoCall> {
    Err(NoCall::Broken(at, Fault::Markup))
}
