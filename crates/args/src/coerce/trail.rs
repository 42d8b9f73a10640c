//! The trail of a value: a tree of events that is cheap to build, to share between union branches and to
//! discard.

use countersign_contract::{IssueCode, Severity};

use crate::schema::SchemaId;
use crate::tree::{NodeId, Span, Str};
use crate::words::Say;

/// Index of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrailId(u32);

/// One change or refusal.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) code: IssueCode,
    pub(crate) span: Span,
    pub(crate) after: Option<NodeId>,
    /// Expected value, if it is not simply the schema's description.
    pub(crate) expected: Option<Box<Say>>,
    pub(crate) schema: Option<SchemaId>,
    pub(crate) suggestion: Option<Box<Say>>,
    /// Kind of value that came, in a word; the excerpt shows the rest.
    pub(crate) came: Option<Box<Say>>,
    /// Name as it was written, if a name was changed.
    pub(crate) name: Option<Str>,
    /// Report for the tool if it does not get the value.
    pub(crate) unread: Option<Unread>,
}

/// An optional member that could not be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unread {
    pub(crate) member: NodeId,
    /// Errors; their paths begin at the member.
    pub(crate) why: TrailId,
    /// True if the member was decoded from a string, so that it has no place of its own in the raw text.
    pub(crate) is_decoded: bool,
}

impl Event {
    pub(crate) fn new(code: IssueCode, span: Span) -> Self {
        Self {
            code,
            span,
            after: None,
            expected: None,
            schema: None,
            suggestion: None,
            came: None,
            name: None,
            unread: None,
        }
    }

    pub(crate) fn limit(name: &'static str, span: Span) -> Self {
        Self::new(IssueCode::LimitExceeded, span).expected(Say::WithinLimit {
            limit: name.to_owned(),
        })
    }

    pub(crate) fn after(mut self, node: NodeId) -> Self {
        self.after = Some(node);
        self
    }

    pub(crate) fn expected(mut self, expected: Say) -> Self {
        self.expected = Some(Box::new(expected));
        self
    }

    pub(crate) fn schema(mut self, id: SchemaId) -> Self {
        self.schema = Some(id);
        self
    }

    pub(crate) fn suggestion(mut self, suggestion: Say) -> Self {
        self.suggestion = Some(Box::new(suggestion));
        self
    }

    pub(crate) fn came(mut self, came: Say) -> Self {
        self.came = Some(Box::new(came));
        self
    }

    pub(crate) fn name(mut self, name: Str) -> Self {
        self.name = Some(name);
        self
    }
}

/// A step down the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Key(Str),
    Index(usize),
}

#[derive(Debug)]
enum Entry {
    Leaf(Box<Event>),
    At(Step, TrailId),
    Both(TrailId, TrailId),
}

/// All events of one binding.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    entries: Vec<Entry>,
}

impl Trail {
    pub(crate) const NOTHING: TrailId = TrailId(u32::MAX);

    pub(crate) fn leaf(&mut self, event: Event) -> TrailId {
        self.add(Entry::Leaf(Box::new(event)))
    }

    pub(crate) fn at_key(&mut self, key: Str, inner: TrailId) -> TrailId {
        self.at(Step::Key(key), inner)
    }

    pub(crate) fn at_index(&mut self, index: usize, inner: TrailId) -> TrailId {
        self.at(Step::Index(index), inner)
    }

    pub(crate) fn both(&mut self, first: TrailId, second: TrailId) -> TrailId {
        if first == Self::NOTHING {
            second
        } else if second == Self::NOTHING {
            first
        } else {
            self.add(Entry::Both(first, second))
        }
    }

    /// Calls `visit` with the path and event of every leaf under `from`, in order.
    pub(crate) fn visit(&self, from: TrailId, mut visit: impl FnMut(&[Step], &Event)) {
        let mut path: Vec<Step> = Vec::new();
        let mut stack = vec![(from, 0_usize)];
        while let Some((id, depth)) = stack.pop() {
            path.truncate(depth);
            match self.entries.get(id.0 as usize) {
                None => {}
                Some(Entry::Leaf(event)) => visit(&path, event),
                Some(Entry::At(step, inner)) => {
                    path.push(*step);
                    stack.push((*inner, depth + 1));
                }
                Some(Entry::Both(first, second)) => {
                    stack.push((*second, depth));
                    stack.push((*first, depth));
                }
            }
        }
    }

    /// True if some event under `from` has this code.
    pub(crate) fn has(&self, from: TrailId, code: IssueCode) -> bool {
        let mut found = false;
        self.visit(from, |_, event| found |= event.code == code);
        found
    }

    /// Counts the refusals under `from`, to choose the branch to report.
    pub(crate) fn errors(&self, from: TrailId) -> usize {
        let mut errors = 0;
        self.visit(from, |_, event| {
            errors += usize::from(event.code.severity() == Severity::Error);
        });
        errors
    }

    fn at(&mut self, step: Step, inner: TrailId) -> TrailId {
        if inner == Self::NOTHING {
            inner
        } else {
            self.add(Entry::At(step, inner))
        }
    }

    fn add(&mut self, entry: Entry) -> TrailId {
        let id = TrailId(self.entries.len() as u32);
        self.entries.push(entry);
        id
    }
}

/// Severity of a conversion: the number of changes of each severity, worst first, compared in that order. There
/// are no weights: one dropped member is always worse than any number of retyped ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost([u16; 5]);

impl Cost {
    pub(crate) fn of(code: IssueCode) -> Self {
        let mut cost = [0; 5];
        let place = match code.severity() {
            Severity::Error | Severity::Lossy => 0,
            Severity::Dropped => 1,
            Severity::Normalised => 2,
            Severity::Retyped => 3,
            Severity::Syntax => 4,
            Severity::Note => return Self(cost),
        };
        if let Some(count) = cost.get_mut(place) {
            *count = 1;
        }
        Self(cost)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let mut sum = self.0;
        for (total, add) in sum.iter_mut().zip(other.0) {
            *total = total.saturating_add(add);
        }
        Self(sum)
    }
}
