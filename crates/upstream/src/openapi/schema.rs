//! Schemas of a document as JSON Schema 2020-12 for arguments: the parts that a model acts on and the binder checks, in few bytes.
//!
//! References become `$defs` if they are cyclic or used more than once, else their target is inlined. `allOf` is joined, `oneOf` becomes
//! `anyOf`, members that only answers have (`readOnly`) are left out. A default is only described in words: the gateway would fill it in,
//! and a `PATCH` would overwrite members that the caller did not name. Nothing gets narrower than the document says.

mod choices;
mod defs;
mod keywords;
pub(crate) mod mark;
mod merge;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::Reason;
use super::document::{Document, Version};
use super::source::Node;
use super::text;

pub(crate) use defs::inlined;
use mark::Mark;

/// Most parts of the schemas of one tool, before optional members are left out below some depth.
pub(crate) const PARTS_MAX: usize = 700;

/// The depths below which optional members are left out, one after the other, until the parts are few enough.
const DEPTHS: [usize; 7] = [usize::MAX, 5, 4, 3, 2, 1, 0];

/// Schemas nest no deeper than this.
const NESTING_MAX: usize = 60;

/// The conversion was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The schema has too many parts; it may fit with fewer optional members.
    TooLarge,
    /// The operation is refused.
    Refused(Reason),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Self::Refused(reason)
    }
}

/// Converts the schemas of one operation.
pub(crate) struct Converter<'d> {
    pub(crate) document: &'d Document<'d>,
    /// Targets of references, by reference.
    targets: BTreeMap<&'d str, Target>,
    waiting: VecDeque<(&'d str, usize)>,
    names: BTreeMap<String, usize>,
    /// References whose targets apply to the value that is being converted.
    in_place: Vec<&'d str>,
    optional_depth: usize,
    parts: usize,
    nesting: usize,
    /// True if optional members were left out.
    pub(crate) is_cut: bool,
    /// True if the body, whose members are arguments, has a closed part of an `allOf` that was joined with others.
    pub(crate) is_body_opened: bool,
}

struct Target {
    name: String,
    schema: Value,
}

/// Runs a conversion with fewer and fewer optional members until it is small enough.
pub(crate) fn within_bounds<'d, T>(
    document: &'d Document<'d>,
    convert: impl Fn(&mut Converter<'d>) -> Result<T, Stop>,
) -> Result<(T, Converter<'d>), Reason> {
    for optional_depth in DEPTHS {
        let mut converter = Converter {
            document,
            targets: BTreeMap::new(),
            waiting: VecDeque::new(),
            names: BTreeMap::new(),
            in_place: Vec::new(),
            optional_depth,
            parts: 0,
            nesting: 0,
            is_cut: false,
            is_body_opened: false,
        };
        let done = convert(&mut converter).and_then(|made| {
            converter.finish()?;
            Ok(made)
        });
        match done {
            Ok(made) => return Ok((made, converter)),
            Err(Stop::TooLarge) => {}
            Err(Stop::Refused(reason)) => return Err(reason),
        }
    }
    Err(Reason::TooLarge { most: PARTS_MAX })
}

impl<'d> Converter<'d> {
    /// The definitions that were referred to, by name.
    pub(crate) fn definitions(self) -> Map<String, Value> {
        let targets = self.targets.into_values();
        targets.map(|target| (target.name, target.schema)).collect()
    }

    /// A schema at the root of an argument or a body: its reference is followed.
    pub(crate) fn root(&mut self, node: &'d Node<'d>) -> Result<Value, Stop> {
        let mut node = node;
        let depth = self.in_place.len();
        while let Some(reference) = node.text("$ref") {
            if self.in_place.contains(&reference) {
                let reference = reference.to_owned();
                return Err(Reason::EndlessReference { reference }.into());
            }
            self.in_place.push(reference);
            node = self.document.target(reference)?;
        }
        let made = self.schema(node, 0);
        self.in_place.truncate(depth);
        made
    }

    /// Converts what references lead to, until nothing waits.
    fn finish(&mut self) -> Result<(), Stop> {
        while let Some((reference, depth)) = self.waiting.pop_front() {
            let node = self.document.target(reference)?;
            self.in_place = vec![reference];
            let schema = self.schema(node, depth)?;
            if let Some(target) = self.targets.get_mut(reference) {
                target.schema = schema;
            }
        }
        Ok(())
    }

    /// A schema that stands below `depth` objects.
    pub(crate) fn schema(&mut self, node: &'d Node<'d>, depth: usize) -> Result<Value, Stop> {
        self.parts += 1;
        if self.parts > PARTS_MAX || self.nesting > NESTING_MAX {
            return Err(Stop::TooLarge);
        }
        match node {
            Node::Bool(false) => return Ok(Value::Bool(false)),
            Node::Object(_) => {}
            Node::Null | Node::Bool(true) | Node::Number(_) | Node::Text(_) | Node::List(_) => {
                return Ok(json!({}));
            }
        }
        if let Some(reference) = node.text("$ref") {
            return self.reference(node, reference, depth);
        }
        self.nesting += 1;
        let made = self.joined(node, depth);
        self.nesting -= 1;
        made.map(Value::Object)
    }

    /// A part of a value, such as a member or an item: it is another value than the one that is being converted.
    fn below(&mut self, node: &'d Node<'d>, depth: usize) -> Result<Value, Stop> {
        let in_place = std::mem::take(&mut self.in_place);
        let made = self.schema(node, depth);
        self.in_place = in_place;
        made
    }

    fn reference(
        &mut self,
        node: &'d Node<'d>,
        reference: &'d str,
        depth: usize,
    ) -> Result<Value, Stop> {
        self.document.target(reference)?;
        if !self.targets.contains_key(reference) {
            let name = self.definition_name(reference);
            let schema = json!({});
            self.targets.insert(reference, Target { name, schema });
            self.waiting.push_back((reference, depth));
        }
        let name = self.targets.get(reference).map_or("", |it| &it.name);
        let mut made = json!({ "$ref": format!("#/$defs/{name}") });
        // Beside a reference only a description is looked at.
        if self.document.version != Version::V2
            && let Some(description) = node.text("description")
            && let Some(members) = made.as_object_mut()
        {
            let description = text::brief(description, keywords::description_chars(depth));
            members.insert("description".to_owned(), description.into());
        }
        Ok(made)
    }

    /// A name for a definition: the last step of the reference.
    fn definition_name(&mut self, reference: &str) -> String {
        let last = reference.rsplit('/').next().unwrap_or_default();
        let is_legal = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name: String = last.chars().filter(is_legal).take(48).collect();
        let name = if name.is_empty() {
            "Type".to_owned()
        } else {
            name
        };
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            more => format!("{name}_{more}"),
        }
    }

    /// A schema with the parts of its `allOf`, which speak about the same value.
    fn joined(&mut self, node: &'d Node<'d>, depth: usize) -> Result<Map<String, Value>, Stop> {
        let parts = node.list("allOf");
        if parts.is_empty() {
            return self.plain(node, depth, false);
        }
        let mut all = Map::new();
        for part in parts {
            let before = self.in_place.len();
            let part = self.part(part, &mut all, depth)?;
            if let Some(part) = part {
                join(&mut all, part);
            }
            self.in_place.truncate(before);
        }
        let own = self.plain(node, depth, false)?;
        join(&mut all, own);
        keywords::tidy_required(&mut all);
        Ok(all)
    }

    /// A part of an `allOf`. One that is being converted already says nothing more.
    fn part(
        &mut self,
        part: &'d Node<'d>,
        all: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<Option<Map<String, Value>>, Stop> {
        self.parts += 1;
        if self.parts > PARTS_MAX || self.nesting > NESTING_MAX {
            return Err(Stop::TooLarge);
        }
        let mut part = part;
        while let Some(reference) = part.text("$ref") {
            if self.in_place.contains(&reference) {
                return Ok(None);
            }
            self.in_place.push(reference);
            part = self.document.target(reference)?;
        }
        for inner in part.list("allOf") {
            let before = self.in_place.len();
            self.nesting += 1;
            let inner = self.part(inner, all, depth);
            self.nesting -= 1;
            if let Some(inner) = inner? {
                join(all, inner);
            }
            self.in_place.truncate(before);
        }
        self.plain(part, depth, true).map(Some)
    }

    /// The branches of a union. A union that leads back to the value itself says nothing more about a part of it.
    fn branches(
        &mut self,
        branches: &'d [Node<'d>],
        depth: usize,
        is_part: bool,
    ) -> Result<Vec<Value>, Stop> {
        let leads_back = |branch: &Node<'d>| {
            let reference = branch.text("$ref");
            reference.is_some_and(|it| self.in_place.contains(&it))
        };
        if is_part && branches.iter().any(leads_back) {
            return Ok(Vec::new());
        }
        let others: Vec<_> = branches.iter().filter(|it| !leads_back(it)).collect();
        let mut made: Vec<Value> = Vec::new();
        for branch in others {
            let branch = self.schema(branch, depth)?;
            if !made.contains(&branch) {
                made.push(branch);
            }
        }
        Ok(made)
    }

    /// True if only answers have a member.
    fn is_read_only(&self, node: &'d Node<'d>) -> bool {
        let is_said = |node: &Node<'d>| node.is_true("readOnly");
        let target = self.document.follow(node);
        is_said(node) || target.is_ok_and(is_said)
    }
}

/// Joins a part of an `allOf` into the ones before it. A closed part is closed together with the others, whose members it would forbid.
fn join(all: &mut Map<String, Value>, part: Map<String, Value>) {
    let is_closed = |it: &Map<_, _>| it.get("additionalProperties") == Some(&json!(false));
    let declares = |it: &Map<_, _>| it.contains_key("properties");
    let is_opened = is_closed(all) && declares(&part) || is_closed(&part) && declares(all);
    merge::into(all, part);
    if is_opened {
        Mark::Closed.put(all);
    }
}
