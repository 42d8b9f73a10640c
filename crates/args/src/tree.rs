//! The arena that a text is read into. It is flat, so that neither reading nor dropping it recurses.
//!
//! Numbers keep their text. Strings without escapes point into the raw text, all others into one
//! side buffer. Children are a linked list through `next`, which lets a changed container share the
//! unchanged ones.

use std::ops::Range;

use crate::words::Say;

/// Index of a node.
pub(crate) type NodeId = u32;

/// No node: the end of a list of children, or an empty container.
pub(crate) const NONE: NodeId = u32::MAX;

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    False,
    True,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    /// Returns the name of the kind for a message.
    pub(crate) const fn said(self) -> Say {
        match self {
            Self::Null => Say::Null,
            Self::False | Self::True => Say::Boolean,
            Self::Number => Say::Number,
            Self::Text => Say::Text,
            Self::Array => Say::List,
            Self::Object => Say::Object,
        }
    }
}

/// A piece of text in the raw text or in the side buffer. It takes eight bytes, because each node has three of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Str {
    start: u32,
    /// Length in bytes, and in the highest bit whether it is in the side buffer.
    len: u32,
}

impl Str {
    /// Bit that says that a piece is in the side buffer. No text is longer than 2^28 bytes.
    const SIDE: u32 = 1 << 31;

    pub(crate) const EMPTY: Self = Self {
        start: 0,
        len: Self::SIDE,
    };

    const fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + (self.len & !Self::SIDE) as usize
    }

    const fn is_side(self) -> bool {
        self.len & Self::SIDE != 0
    }
}

/// Byte range in the raw text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) const fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// One value, with its key if it is a member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Content of the string, or JSON text of the number.
    pub(crate) text: Str,
    /// Key of the member.
    pub(crate) key: Str,
    /// First child of a container.
    pub(crate) first: NodeId,
    /// Next child of the same parent.
    pub(crate) next: NodeId,
    /// Number of children.
    pub(crate) count: u32,
    pub(crate) span: Span,
    /// The token as it was spelt, if that differs from `text` (`007`, `1e5`, `True`).
    pub(crate) spelt: Str,
}

/// All nodes of a text.
#[derive(Debug)]
pub(crate) struct Tree<'r> {
    raw: &'r str,
    side: String,
    nodes: Vec<Node>,
}

impl<'r> Tree<'r> {
    pub(crate) fn new(raw: &'r str) -> Self {
        Self {
            raw,
            side: String::new(),
            nodes: Vec::with_capacity(16),
        }
    }

    /// Creates a tree with room for the strings, all of which the tolerant reader copies.
    pub(crate) fn for_repair(raw: &'r str) -> Self {
        let nodes = (raw.len() / 8).clamp(16, 1024);
        Self {
            raw,
            side: String::with_capacity(raw.len()),
            nodes: Vec::with_capacity(nodes),
        }
    }

    pub(crate) fn raw(&self) -> &'r str {
        self.raw
    }

    /// Returns the number of nodes, for the limits.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "ids come from push() and nodes are never removed"
    )]
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "ids come from push() and nodes are never removed"
    )]
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    pub(crate) fn kind(&self, id: NodeId) -> Kind {
        self.node(id).kind
    }

    pub(crate) fn str(&self, text: Str) -> &str {
        let range = text.range();
        if text.is_side() {
            &self.side[range]
        } else {
            &self.raw[range]
        }
    }

    /// Returns the bytes of a piece of text. Comparing them is cheaper than making a string of them first.
    pub(crate) fn bytes(&self, text: Str) -> &[u8] {
        let from = if text.is_side() { &self.side } else { self.raw };
        from.as_bytes().get(text.range()).unwrap_or_default()
    }

    /// Returns the content of a string or a number.
    pub(crate) fn text(&self, id: NodeId) -> &str {
        self.str(self.node(id).text)
    }

    /// Returns the member's key.
    pub(crate) fn key(&self, id: NodeId) -> &str {
        self.str(self.node(id).key)
    }

    /// Returns the token as it was spelt.
    pub(crate) fn spelt(&self, id: NodeId) -> &str {
        let node = self.node(id);
        if node.spelt == Str::EMPTY {
            self.str(node.text)
        } else {
            self.str(node.spelt)
        }
    }

    /// Returns a piece of the raw text.
    pub(crate) const fn raw_str(start: usize, end: usize) -> Str {
        Str {
            start: start as u32,
            len: (end - start) as u32,
        }
    }

    /// Returns the end of the side buffer, where a string that is built there starts.
    pub(crate) fn side_mark(&self) -> usize {
        self.side.len()
    }

    pub(crate) fn side(&mut self) -> &mut String {
        &mut self.side
    }

    /// Returns the string that was written to the side buffer since the mark.
    pub(crate) fn side_since(&self, mark: usize) -> Str {
        Str {
            start: mark as u32,
            len: (self.side.len() - mark) as u32 | Str::SIDE,
        }
    }

    /// Returns the present size, for [`Self::reset`].
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.nodes.len(), self.side.len())
    }

    /// Removes everything that was added since the mark.
    pub(crate) fn reset(&mut self, (nodes, side): (usize, usize)) {
        self.nodes.truncate(nodes);
        self.side.truncate(side);
    }

    /// Copies a string into the side buffer.
    pub(crate) fn intern(&mut self, text: &str) -> Str {
        let mark = self.side_mark();
        self.side.push_str(text);
        self.side_since(mark)
    }

    pub(crate) fn push(&mut self, kind: Kind, text: Str, span: Span) -> NodeId {
        let id = self.nodes.len() as NodeId;
        self.nodes.push(Node {
            kind,
            text,
            key: Str::EMPTY,
            first: NONE,
            next: NONE,
            count: 0,
            span,
            spelt: Str::EMPTY,
        });
        id
    }

    /// Copies a node: the same content and children, free to join another parent.
    pub(crate) fn copy(&mut self, id: NodeId) -> NodeId {
        let mut node = *self.node(id);
        node.next = NONE;
        let copy = self.nodes.len() as NodeId;
        self.nodes.push(node);
        copy
    }

    /// Returns the children of a container.
    pub(crate) fn children(&self, id: NodeId) -> Children<'_, 'r> {
        Children {
            tree: self,
            next: self.node(id).first,
        }
    }

    /// Returns the member of an object with exactly this key.
    pub(crate) fn member(&self, object: NodeId, key: &str) -> Option<NodeId> {
        if self.kind(object) != Kind::Object {
            return None;
        }
        self.children(object).find(|child| self.key(*child) == key)
    }

    /// Creates a container of the given children, which must be free to join it.
    pub(crate) fn container(&mut self, kind: Kind, span: Span, children: &[NodeId]) -> NodeId {
        let id = self.push(kind, Str::EMPTY, span);
        let mut last = NONE;
        for &child in children {
            self.append(id, &mut last, child);
        }
        id
    }

    /// Adds a child behind the last one and makes it the last. Returns the number of children.
    pub(crate) fn append(&mut self, parent: NodeId, last: &mut NodeId, child: NodeId) -> usize {
        if *last == NONE {
            self.node_mut(parent).first = child;
        } else {
            self.node_mut(*last).next = child;
        }
        *last = child;
        let parent = self.node_mut(parent);
        parent.count += 1;
        parent.count as usize
    }
}

/// Iterates over the children of one container.
pub(crate) struct Children<'t, 'r> {
    tree: &'t Tree<'r>,
    next: NodeId,
}

impl Iterator for Children<'_, '_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let id = self.next;
        if id == NONE {
            return None;
        }
        self.next = self.tree.node(id).next;
        Some(id)
    }
}
