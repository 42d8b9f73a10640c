//! The strict pass: JSON exactly as in RFC 8259, in one scan with an explicit stack.
//!
//! Most calls end here. Text that is not strict JSON goes to the tolerant reader; text beyond a limit does not.

use crate::limits::Limits;
use crate::names;
use crate::tree::{Kind, NONE, NodeId, Span, Str, Tree};

/// A document of strict JSON.
#[derive(Debug)]
pub(crate) struct Document<'r> {
    pub(crate) tree: Tree<'r>,
    pub(crate) root: NodeId,
    /// True if some object has a key twice; strict JSON allows it, the binder does not.
    pub(crate) duplicates: bool,
}

/// Reason why a text is not a document of strict JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The text is not JSON at this byte.
    NotJson(usize),
    /// The text goes on at this byte, behind a whole document.
    Behind(usize),
    /// The text exceeds this limit.
    Limit(&'static str),
    /// The text has a name that `serde_json` does not read as a name.
    Reserved,
}

/// True for a name that `serde_json` reserves: a string under it would silently become another value, so no
/// call may have it.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with('$') && name.starts_with("$serde_json::private::")
}

/// Reads the whole text as one document.
pub(crate) fn parse<'r>(raw: &'r str, limits: &Limits) -> Result<Document<'r>, Stop> {
    let mut tree = Tree::new(raw);
    let mut reader = Reader::new(&mut tree, raw, None, 0, limits);
    let root = reader.value()?;
    reader.white();
    if reader.at < raw.len() {
        return Err(Stop::Behind(reader.at));
    }
    let duplicates = reader.duplicates;
    Ok(Document {
        tree,
        root,
        duplicates,
    })
}

/// Reads the container that starts at `start` of a text into a tree, and returns the byte behind it. If the
/// text is not the tree's own, `origin` is the part of the raw text that it was decoded from, at this depth.
/// After an error the tree is unchanged.
pub(crate) fn container(
    tree: &mut Tree<'_>,
    text: &str,
    start: usize,
    origin: Option<(Span, usize)>,
    limits: &Limits,
) -> Result<(NodeId, usize), Stop> {
    let before = tree.mark();
    let (origin, depth) = origin.map_or((None, 0), |(span, depth)| (Some(span), depth));
    let mut reader = Reader::new(tree, text, origin, depth, limits);
    reader.at = start;
    let root = reader.value();
    let end = reader.at;
    match root {
        Ok(root) => Ok((root, end)),
        Err(stop) => {
            tree.reset(before);
            Err(stop)
        }
    }
}

/// A container that is still open.
struct Frame {
    node: NodeId,
    last: NodeId,
    object: bool,
    keys: KeyBits,
}

/// One bit for each key of an object, by its length and its ends: two keys that are equal share their bit.
#[derive(Debug, Clone, Copy, Default)]
struct KeyBits {
    seen: u64,
    /// True if two keys share a bit, so that the keys have to be compared.
    shared: bool,
}

impl KeyBits {
    fn add(&mut self, key: &[u8]) {
        let bit = names::bit(key);
        self.shared |= self.seen & bit != 0;
        self.seen |= bit;
    }
}

/// Content behind an opening bracket.
enum Opened {
    Empty(NodeId),
    /// A first value, under this key.
    First(Str),
}

const fn closer(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

struct Reader<'t, 'r, 's> {
    text: &'s str,
    bytes: &'s [u8],
    at: usize,
    tree: &'t mut Tree<'r>,
    /// Set if the text is not the tree's own.
    origin: Option<Span>,
    base_depth: usize,
    limits: &'s Limits,
    duplicates: bool,
}

impl<'t, 'r, 's> Reader<'t, 'r, 's> {
    fn new(
        tree: &'t mut Tree<'r>,
        text: &'s str,
        origin: Option<Span>,
        base_depth: usize,
        limits: &'s Limits,
    ) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            tree,
            origin,
            base_depth,
            limits,
            duplicates: false,
        }
    }

    /// Reads one value, up to the byte behind it.
    fn value(&mut self) -> Result<NodeId, Stop> {
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
            // A value ended here: close the containers that end with it, up to the next comma.
            loop {
                let Some(frame) = stack.last() else {
                    return Ok(done);
                };
                self.white();
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
                        let shared = frame.keys.shared;
                        self.end(done, shared);
                        stack.pop();
                    }
                    _ => return self.stop(),
                }
            }
        }
    }

    /// Opens a container: it is empty, or its first value follows.
    fn open(&mut self, stack: &mut Vec<Frame>, key: Str) -> Result<Opened, Stop> {
        let object = self.peek() == b'{';
        let kind = if object { Kind::Object } else { Kind::Array };
        let node = self.push(kind, Str::EMPTY, self.at)?;
        self.at += 1;
        self.white();
        self.attach(stack.last_mut(), node, key)?;
        if self.peek() == closer(object) {
            self.at += 1;
            self.end(node, false);
            return Ok(Opened::Empty(node));
        }
        if self.base_depth + stack.len() >= self.limits.depth() {
            return Err(Stop::Limit("depth_max"));
        }
        stack.push(Frame {
            node,
            last: NONE,
            object,
            keys: KeyBits::default(),
        });
        self.next_key(object).map(Opened::First)
    }

    /// Reads the key of the next member; items have none.
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
                self.push(Kind::Text, text, start)
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
            self.push(kind, Str::EMPTY, start)
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
        let digits = self.piece(start, self.at);
        self.push(Kind::Number, digits, start)
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

    /// Reads a key with its colon; the white space before it is already skipped.
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
        self.at += plain(self.rest());
        match self.peek() {
            b'"' => {
                let text = self.piece(start, self.at);
                self.at += 1;
                Ok(text)
            }
            b'\\' => self.escaped_string(start),
            _ => self.stop(),
        }
    }

    /// Reads a string from its first escape on; the part before it is copied.
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
                _ => self.at += plain(self.rest()),
            }
        }
    }

    /// Returns a piece of the text: a reference into the raw text, or a copy of a decoded one.
    fn piece(&mut self, start: usize, end: usize) -> Str {
        if self.origin.is_none() {
            Tree::raw_str(start, end)
        } else {
            self.tree
                .intern(self.text.get(start..end).unwrap_or_default())
        }
    }

    /// Copies text from `from` to here into the side buffer.
    fn copy(&mut self, from: usize) {
        let piece = self.text.get(from..self.at).unwrap_or_default();
        self.tree.side().push_str(piece);
    }

    fn push(&mut self, kind: Kind, text: Str, start: usize) -> Result<NodeId, Stop> {
        if self.tree.len() >= self.limits.nodes() {
            return Err(Stop::Limit("nodes_max"));
        }
        let span = self.origin.unwrap_or(Span::new(start, self.at));
        Ok(self.tree.push(kind, text, span))
    }

    fn attach(&mut self, frame: Option<&mut Frame>, node: NodeId, key: Str) -> Result<(), Stop> {
        let Some(frame) = frame else { return Ok(()) };
        if !frame.object {
            self.tree.append(frame.node, &mut frame.last, node);
            return Ok(());
        }
        let name = self.tree.bytes(key);
        frame.keys.add(name);
        if name.first() == Some(&b'$') && is_reserved(self.tree.str(key)) {
            return Err(Stop::Reserved);
        }
        self.tree.node_mut(node).key = key;
        let count = self.tree.append(frame.node, &mut frame.last, node);
        if count > self.limits.members_max {
            return Err(Stop::Limit("members_max"));
        }
        Ok(())
    }

    /// Ends a container. `shared` says that two of its keys may be equal.
    fn end(&mut self, node: NodeId, shared: bool) {
        if self.origin.is_none() {
            self.tree.node_mut(node).span.end = self.at as u32;
        }
        if shared && !self.duplicates {
            self.duplicates = has_duplicates(self.tree, node);
        }
    }

    fn white(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// Returns the byte here; 0 at the end, which no rule accepts.
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

/// Returns the number of bytes before the first that ends a plain string: a quote, a backslash or a control character. Eight
/// bytes are looked at together, as a string may be long.
pub(crate) fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // The highest bit of each byte that is below the subtrahend, exact for the first such byte.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = (below(word, 0x20) | quote | backslash) & (ONES << 7);
        if found != 0 {
            return index * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let tail = rest.iter().position(ends).unwrap_or(rest.len());
    bytes.len() - rest.len() + tail
}

/// True if an object has a key twice. Small objects are compared pairwise, others sorted.
pub(crate) fn has_duplicates(tree: &Tree<'_>, object: NodeId) -> bool {
    let mut bits = KeyBits::default();
    for child in tree.children(object) {
        bits.add(tree.bytes(tree.node(child).key));
    }
    if !bits.shared {
        return false;
    }
    if tree.node(object).count <= 12 {
        let mut child = tree.node(object).first;
        while child != NONE {
            let node = tree.node(child);
            let key = tree.bytes(node.key);
            let mut other = node.next;
            while other != NONE {
                let node = tree.node(other);
                if tree.bytes(node.key) == key {
                    return true;
                }
                other = node.next;
            }
            child = node.next;
        }
        return false;
    }
    let key = |child: NodeId| tree.bytes(tree.node(child).key);
    let mut keys: Vec<&[u8]> = tree.children(object).map(key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair.first() == pair.last())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Eight bytes at a time end where one byte at a time does.
        #[test]
        fn plain_ends_before_the_first_special_byte(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            prop_assert_eq!(plain(&bytes), bytes.iter().position(ends).unwrap_or(bytes.len()));
        }

        /// The bits of the keys overlook no key that stands there twice.
        #[test]
        fn a_key_twice_is_found(keys in proptest::collection::vec("[a-c]{0,3}", 0..20)) {
            let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\": 1")).collect();
            let text = format!("{{{}}}", members.join(", "));
            let different: HashSet<&String> = keys.iter().collect();
            let document = parse(&text, &Limits::default()).unwrap();
            prop_assert_eq!(document.duplicates, different.len() < keys.len());
            prop_assert_eq!(has_duplicates(&document.tree, document.root), document.duplicates);
        }
    }

    /// A byte with its highest bit set is a part of a character, also right before the end of a string.
    #[test]
    fn plain_takes_characters_of_many_bytes() {
        for text in ["ä", "äöüß", "日本語のテキスト", "a\u{10ffff}b", "\u{7f}"] {
            assert_eq!(plain(text.as_bytes()), text.len(), "{text}");
            let ended = format!("{text}\"{text}");
            assert_eq!(plain(ended.as_bytes()), text.len(), "{text}");
        }
    }
}
