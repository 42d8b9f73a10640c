//! A document of a known version, and the targets of its references.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;

use super::source::{Node, Source};
use super::{DocumentError, Reason};

/// The dialect of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// Swagger 2.0.
    V2,
    /// OpenAPI 3.0.
    V30,
    /// OpenAPI 3.1 and later minor versions.
    V31,
}

/// Most references that one reference may lead through.
const HOPS_MAX: usize = 32;

/// Most parts of one schema that are searched.
const PARTS_MAX: usize = 1_000;

/// Fewest members of an object that are looked up by a table.
const TABLE_MIN: usize = 32;

/// A document.
pub(crate) struct Document<'d> {
    pub(crate) source: &'d Source<'d>,
    pub(crate) version: Version,
    found: RefCell<HashMap<&'d str, Option<&'d Node<'d>>>>,
    /// Members of large objects that references lead through, by the address of the object.
    tables: RefCell<HashMap<*const Node<'d>, Table<'d>>>,
}

/// Members of an object, by name.
type Table<'d> = HashMap<&'d str, &'d Node<'d>>;

impl<'d> Document<'d> {
    pub(crate) fn of(source: &'d Source<'d>) -> Result<Self, DocumentError> {
        let said = |name: &str| match source.root.get(name)? {
            Node::Text(text) => Some(text.to_string()),
            Node::Number(number) => Some(number.to_string()),
            Node::Null | Node::Bool(_) | Node::List(_) | Node::Object(_) => None,
        };
        let (name, version) = match (said("openapi"), said("swagger")) {
            (Some(version), _) => ("openapi", version),
            (None, Some(version)) => ("swagger", version),
            (None, None) => return Err(DocumentError::NotOpenApi),
        };
        let version = match name {
            "swagger" if version.starts_with('2') => Version::V2,
            "openapi" if version.starts_with("3.0") || version == "3" => Version::V30,
            "openapi" if version.starts_with("3.") => Version::V31,
            _ => return Err(DocumentError::Version { version }),
        };
        Ok(Self {
            source,
            version,
            found: RefCell::default(),
            tables: RefCell::default(),
        })
    }

    pub(crate) fn root(&self) -> &'d Node<'d> {
        &self.source.root
    }

    /// The target of a reference.
    pub(crate) fn target(&self, reference: &'d str) -> Result<&'d Node<'d>, Reason> {
        let known = self.found.borrow().get(reference).copied();
        let target = known.unwrap_or_else(|| {
            let target = reference.strip_prefix('#').and_then(|it| self.pointed(it));
            self.found.borrow_mut().insert(reference, target);
            target
        });
        let reference = reference.to_owned();
        match target {
            Some(target) => Ok(target),
            None if reference.starts_with('#') => Err(Reason::BrokenReference { reference }),
            None => Err(Reason::OutsideReference { reference }),
        }
    }

    fn pointed(&self, fragment: &str) -> Option<&'d Node<'d>> {
        let decoded = percent_decode_str(fragment).decode_utf8().ok()?;
        let mut node = self.root();
        for step in decoded.split('/').skip(1) {
            let name = step.replace("~1", "/").replace("~0", "~");
            node = match node {
                Node::List(items) => items.get(name.parse::<usize>().ok()?)?,
                other => self.member(other, &name)?,
            };
        }
        Some(node)
    }

    /// The member of this name, without a look at each of many.
    fn member(&self, object: &'d Node<'d>, name: &str) -> Option<&'d Node<'d>> {
        let members = object.members();
        if members.len() < TABLE_MIN {
            return object.get(name);
        }
        let mut tables = self.tables.borrow_mut();
        let table = tables.entry(std::ptr::from_ref(object)).or_insert_with(|| {
            let members = members.iter().map(|it| (&*it.name, &it.node));
            // The last of one name counts.
            members.collect()
        });
        table.get(name).copied()
    }

    /// The first part of a schema in which something is found: the schema itself, or a part that speaks about the same value.
    pub(crate) fn find_part<T>(
        &self,
        schema: &'d Node<'d>,
        find: impl Fn(&'d Node<'d>) -> Option<T>,
    ) -> Option<T> {
        let mut waiting = vec![schema];
        let mut seen = HashSet::new();
        while let Some(part) = waiting.pop() {
            let Ok(part) = self.follow(part) else {
                continue;
            };
            if !seen.insert(std::ptr::from_ref(part)) || seen.len() > PARTS_MAX {
                continue;
            }
            if let Some(found) = find(part) {
                return Some(found);
            }
            let parts = ["allOf", "oneOf", "anyOf"].into_iter();
            let parts: Vec<_> = parts.flat_map(|it| part.list(it)).collect();
            // The first of them is next.
            waiting.extend(parts.into_iter().rev().take(PARTS_MAX));
        }
        None
    }

    /// The value behind any references.
    pub(crate) fn follow(&self, node: &'d Node<'d>) -> Result<&'d Node<'d>, Reason> {
        let mut node = node;
        for _ in 0..HOPS_MAX {
            match node.text("$ref") {
                Some(reference) => node = self.target(reference)?,
                None => return Ok(node),
            }
        }
        let reference = node.text("$ref").unwrap_or_default().to_owned();
        Err(Reason::EndlessReference { reference })
    }
}
