//! The strict pass: JSON exactly as RFC 8259 has it, in one scan with an explicit stack.
//!
//! Most calls end here. What is not strict JSON is handed to the tolerant reader; what is beyond a
//! limit is not.

use crate::limits::Limits;
use crate::tree::{Kind, NONE, NodeId, Span, Str, Tree};

/// A document of strict JSON.
#[derive(Debug)]
pub(crate) struct Document<'r> {
    pub(crate) tree: Tree<'r>,
    pub(crate) root: NodeId,
    /// Whether some object has a key twice; strict JSON allows it, we don't.
    pub(crate) duplicates: bool,
}

/// Why a text is not a document of strict JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is not JSON at this byte.
    NotJson(usize),
    /// It goes beyond this limit.
    Limit(&'static str),
    /// It has a name that `serde_json` reads as something else than a name.
    Reserved,
}

/// `serde_json` gives these names a meaning of its own: a text under one of them would become another
/// value behind our back, so no call may have them.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with("$serde_json::private::")
}

/// Reads the whole text as one document.
pub(crate) fn parse<'r>(raw: &'r str, limits: &Limits) -> Result<Document<'r>, Stop> {
    let mut reader = Reader {
        bytes: raw.as_bytes(),
        at: 0,
        tree: Tree::new(raw),
        limits,
        duplicates: false,
    };
    let root = reader.document()?;
    Ok(Document {
        tree: reader.tree,
        root,
        duplicates: reader.duplicates,
    })
}

/// A container that is still open.
struct Frame {
    node: NodeId,
    last: NodeId,
    object: bool,
}

/// What stands behind an opening bracket.
enum Opened {
    Empty(NodeId),
    /// A first value, under this key.
    First(Str),
}

const fn closer(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

struct Reader<'r, 'l> {
    bytes: &'r [u8],
    at: usize,
    tree: Tree<'r>,
    limits: &'l Limits,
    duplicates: bool,
}

impl Reader<'_, '_> {
    fn document(&mut self) -> Result<NodeId, Stop> {
        let mut stack: Vec<Frame> = Vec::with_capacity(8);
        let mut key = Str::EMPTY;
        loop {
            self.white();
            let mut done = if matches!(self.peek(), b'{' | b'[') {
                match self.open(&mut stack, key)? {
                    Opened::Empty(node) => node,
                    Opened::First(first) => {
                        key = first;
                        continue;
                    }
                }
            } else {
                let node = self.scalar()?;
                self.attach(stack.last_mut(), node, key)?;
                node
            };
            // A value ended here: close what ends with it, up to the next comma.
            loop {
                self.white();
                let Some(frame) = stack.last() else {
                    return if self.at == self.bytes.len() {
                        Ok(done)
                    } else {
                        self.stop()
                    };
                };
                let object = frame.object;
                match self.peek() {
                    b',' => {
                        self.at += 1;
                        self.white();
                        key = self.next_key(object)?;
                        break;
                    }
                    byte if byte == closer(object) => {
                        self.at += 1;
                        done = frame.node;
                        self.end(done);
                        stack.pop();
                    }
                    _ => return self.stop(),
                }
            }
        }
    }

    /// A container opens here: it is empty, or its first value follows.
    fn open(&mut self, stack: &mut Vec<Frame>, key: Str) -> Result<Opened, Stop> {
        let object = self.peek() == b'{';
        let kind = if object { Kind::Object } else { Kind::Array };
        let node = self.push(kind, Str::EMPTY, Span::new(self.at, self.at))?;
        self.at += 1;
        self.white();
        self.attach(stack.last_mut(), node, key)?;
        if self.peek() == closer(object) {
            self.at += 1;
            self.end(node);
            return Ok(Opened::Empty(node));
        }
        if stack.len() >= self.limits.depth() {
            return Err(Stop::Limit("depth_max"));
        }
        stack.push(Frame {
            node,
            last: NONE,
            object,
        });
        self.next_key(object).map(Opened::First)
    }

    /// The key of the next member; items have none.
    fn next_key(&mut self, object: bool) -> Result<Str, Stop> {
        if object {
            self.member_key()
        } else {
            Ok(Str::EMPTY)
        }
    }

    fn scalar(&mut self) -> Result<NodeId, Stop> {
        let start = self.at;
        match self.peek() {
            b'"' => {
                let text = self.string()?;
                self.push(Kind::Text, text, Span::new(start, self.at))
            }
            b't' => self.literal("true", Kind::True),
            b'f' => self.literal("false", Kind::False),
            b'n' => self.literal("null", Kind::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.stop(),
        }
    }

    fn literal(&mut self, word: &'static str, kind: Kind) -> Result<NodeId, Stop> {
        let start = self.at;
        if self.rest().starts_with(word.as_bytes()) {
            self.at += word.len();
            self.push(kind, Str::EMPTY, Span::new(start, self.at))
        } else {
            self.stop()
        }
    }

    fn number(&mut self) -> Result<NodeId, Stop> {
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return self.stop(),
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.some_digits()?;
        }
        if self.at - start > self.limits.number_digits_max {
            return Err(Stop::Limit("number_digits_max"));
        }
        self.push(
            Kind::Number,
            Tree::raw_str(start, self.at),
            Span::new(start, self.at),
        )
    }

    fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), Stop> {
        if !self.peek().is_ascii_digit() {
            return self.stop();
        }
        self.digits();
        Ok(())
    }

    /// A key with its colon; the white space before it is already skipped.
    fn member_key(&mut self) -> Result<Str, Stop> {
        if self.peek() != b'"' {
            return self.stop();
        }
        let key = self.string()?;
        self.white();
        if self.peek() != b':' {
            return self.stop();
        }
        self.at += 1;
        Ok(key)
    }

    fn string(&mut self) -> Result<Str, Stop> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                b'"' => {
                    let text = Tree::raw_str(start, self.at);
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => return self.escaped_string(start),
                0..0x20 => return self.stop(),
                _ => self.at += 1,
            }
        }
    }

    /// A string from its first escape on; what came before is copied.
    fn escaped_string(&mut self, start: usize) -> Result<Str, Stop> {
        let mark = self.tree.side_mark();
        let mut from = start;
        loop {
            match self.peek() {
                b'"' => {
                    self.copy(from);
                    self.at += 1;
                    return Ok(self.tree.side_since(mark));
                }
                b'\\' => {
                    self.copy(from);
                    match crate::escape::decode(self.rest()) {
                        Some((character, len)) => {
                            self.tree.side().push(character);
                            self.at += len;
                            from = self.at;
                        }
                        None => return self.stop(),
                    }
                }
                0..0x20 => return self.stop(),
                _ => self.at += 1,
            }
        }
    }

    /// Copies raw text from `from` to here into the side buffer.
    fn copy(&mut self, from: usize) {
        let piece = self.tree.raw().get(from..self.at).unwrap_or_default();
        self.tree.side().push_str(piece);
    }

    fn push(&mut self, kind: Kind, text: Str, span: Span) -> Result<NodeId, Stop> {
        if self.tree.len() >= self.limits.nodes() {
            return Err(Stop::Limit("nodes_max"));
        }
        Ok(self.tree.push(kind, text, span))
    }

    fn attach(&mut self, frame: Option<&mut Frame>, node: NodeId, key: Str) -> Result<(), Stop> {
        let Some(frame) = frame else { return Ok(()) };
        if frame.object && is_reserved(self.tree.str(key)) {
            return Err(Stop::Reserved);
        }
        self.tree.node_mut(node).key = key;
        let count = self.tree.append(frame.node, &mut frame.last, node);
        if frame.object && count > self.limits.members_max {
            return Err(Stop::Limit("members_max"));
        }
        Ok(())
    }

    /// A container ends here.
    fn end(&mut self, node: NodeId) {
        self.tree.node_mut(node).span.end = self.at as u32;
        let container = self.tree.node(node);
        if container.kind == Kind::Object && container.count > 1 && !self.duplicates {
            self.duplicates = has_duplicates(&self.tree, node);
        }
    }

    fn white(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// The byte here; 0 at the end, which no rule accepts.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn stop<T>(&self) -> Result<T, Stop> {
        Err(Stop::NotJson(self.at))
    }
}

/// Whether an object has a key twice: by comparing where it is small, by sorting where it is not.
pub(crate) fn has_duplicates(tree: &Tree<'_>, object: NodeId) -> bool {
    if tree.node(object).count <= 12 {
        let mut child = tree.node(object).first;
        while child != NONE {
            let node = tree.node(child);
            let key = tree.str(node.key);
            let mut other = node.next;
            while other != NONE {
                let node = tree.node(other);
                if tree.str(node.key) == key {
                    return true;
                }
                other = node.next;
            }
            child = node.next;
        }
        return false;
    }
    let mut keys: Vec<&str> = tree.children(object).map(|child| tree.key(child)).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair.first() == pair.last())
}
