//! The schema of arguments as one object, whatever it is composed of: there is one notion of the arguments and their members, for what
//! is shown, hidden and described.
//!
//! A schema is *composed* of the parts that speak about the same value: `allOf`, branches, and what a reference names. References of
//! such parts are replaced by a copy of what they name, so that a change stays at its place.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::manifest::{EVERY_ITEM, Way};

/// Changes the schema of a member.
type Describe<'d> = dyn FnMut(&mut Map<String, Value>) -> Result<(), String> + 'd;

/// Most references of one schema that are replaced by what they name, and most values that are copied for that.
const REFERENCES_MAX: usize = 256;
const COPIED_MAX: usize = 50_000;

/// Most parts inside each other. The binder takes no deeper schema.
const DEPTH_MAX: usize = 192;

/// Keywords that hold definitions.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// A schema of arguments that is being changed.
#[derive(Debug)]
pub(super) struct Composed {
    resolver: Resolver,
    schema: Map<String, Value>,
}

impl Composed {
    pub(super) fn of(schema: Map<String, Value>) -> Self {
        Self {
            resolver: Resolver {
                document: Value::Object(schema.clone()),
                left: Cell::new(REFERENCES_MAX),
                copies_left: Cell::new(COPIED_MAX),
            },
            schema,
        }
    }

    /// The names of the declared arguments.
    pub(super) fn names(mut self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        // A schema that cannot be followed to its end is complained about where it is used.
        let _ = self.resolver.visit(&mut self.schema, &[], &mut |part, _| {
            let properties = part.get("properties").and_then(Value::as_object);
            names.extend(properties.into_iter().flat_map(|own| own.keys().cloned()));
            Ok(())
        });
        names
    }

    /// Takes a member out of everything that declares, requires or shows it; true if it was declared.
    pub(super) fn hide(&mut self, way: &Way) -> Result<bool, String> {
        let mut is_declared = false;
        let Self { resolver, schema } = self;
        resolver.visit(schema, way.steps(), &mut |part, steps| {
            for shown in ["examples", "default"] {
                match part.get_mut(shown) {
                    Some(Value::Array(examples)) if shown == "examples" => {
                        for own in examples {
                            without(own, steps);
                        }
                    }
                    Some(default) => without(default, steps),
                    None => {}
                }
            }
            if let [name] = steps {
                is_declared |= take_out(part, name);
            }
            Ok(())
        })?;
        Ok(is_declared)
    }

    /// Hands each schema of a member to a function; true if there is one.
    pub(super) fn describe(
        &mut self,
        way: &Way,
        describe: &mut Describe<'_>,
    ) -> Result<bool, String> {
        let mut is_declared = false;
        let Self { resolver, schema } = self;
        resolver.visit(schema, way.steps(), &mut |part, steps| {
            let [last] = steps else { return Ok(()) };
            for member in children(part, last) {
                is_declared = true;
                resolver.follow(member, &mut Vec::new(), 0)?;
                describe(member)?;
            }
            Ok(())
        })?;
        Ok(is_declared)
    }

    /// The schema with its changes.
    pub(super) fn finish(self) -> Map<String, Value> {
        let mut schema = self.schema;
        if self.resolver.left.get() < REFERENCES_MAX {
            prune(&mut schema);
        }
        schema
    }
}

/// Follows the references of a document.
#[derive(Debug)]
struct Resolver {
    /// The schema as it was declared.
    document: Value,
    /// References that may still be replaced.
    left: Cell<usize>,
    /// Values that may still be copied.
    copies_left: Cell<usize>,
}

/// Called with a part and the steps that are left from it.
type Visitor<'v> = dyn FnMut(&mut Map<String, Value>, &[String]) -> Result<(), String> + 'v;

impl Resolver {
    /// Visits every part of the schemas on the way.
    fn visit(
        &self,
        schema: &mut Map<String, Value>,
        steps: &[String],
        act: &mut Visitor<'_>,
    ) -> Result<(), String> {
        self.resolve(schema, &mut Vec::new(), 0)?;
        self.visit_parts(schema, steps, act)
    }

    fn visit_parts(
        &self,
        part: &mut Map<String, Value>,
        steps: &[String],
        act: &mut Visitor<'_>,
    ) -> Result<(), String> {
        act(part, steps)?;
        if let [step, rest @ ..] = steps
            && !rest.is_empty()
        {
            for member in children(part, step) {
                self.visit(member, rest, act)?;
            }
        }
        for inner in parts_of(part) {
            self.visit_parts(inner, steps, act)?;
        }
        Ok(())
    }

    /// Replaces the references of a schema and of its parts. `trail` has the references that led here.
    fn resolve(
        &self,
        schema: &mut Map<String, Value>,
        trail: &mut Vec<String>,
        depth: usize,
    ) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("the schema nests deeper than {DEPTH_MAX} parts"));
        }
        let before = trail.len();
        self.follow(schema, trail, depth)?;
        for part in parts_of(schema) {
            self.resolve(part, trail, depth + 1)?;
        }
        trail.truncate(before);
        Ok(())
    }

    /// Replaces the reference of one schema. A reference that leads nowhere or to itself stays: the binder refuses it.
    fn follow(
        &self,
        schema: &mut Map<String, Value>,
        trail: &mut Vec<String>,
        depth: usize,
    ) -> Result<(), String> {
        while let Some(Value::String(reference)) = schema.get("$ref") {
            let Some((place, Value::Object(target))) = target(&self.document, reference) else {
                break;
            };
            if trail.contains(&place) {
                break;
            }
            let left = self.left.get().checked_sub(1).ok_or_else(|| {
                format!("the schema is composed of more than {REFERENCES_MAX} references")
            })?;
            self.left.set(left);
            let copied = target.values().map(count).sum();
            let left = self.copies_left.get().checked_sub(copied);
            let left = left.ok_or("the references of the schema name too much of it again")?;
            self.copies_left.set(left);
            let mut target = target.clone();
            for name in ["$id", "$schema", "$anchor"] {
                target.remove(name);
            }
            schema.remove("$ref");
            if is_frame(schema, &target) {
                absorb(schema, target);
                trail.push(place);
            } else {
                trail.push(place);
                self.resolve(&mut target, trail, depth + 1)?;
                trail.pop();
                let parts = schema.entry("allOf").or_insert_with(|| json!([]));
                if let Value::Array(parts) = parts {
                    parts.push(Value::Object(target));
                }
            }
        }
        Ok(())
    }
}

/// The schemas inside one that speak about the same value.
fn parts_of(schema: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let parts = schema.iter_mut().flat_map(|(keyword, value)| {
        let parts: Vec<&mut Value> = match (keyword.as_str(), value) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => parts.iter_mut().collect(),
            ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                parts.values_mut().collect()
            }
            ("then" | "else", part) => vec![part],
            _ => Vec::new(),
        };
        parts
    });
    parts.filter_map(Value::as_object_mut)
}

/// The schemas of a member, or of the items of a list.
fn children<'s>(part: &'s mut Map<String, Value>, step: &str) -> Vec<&'s mut Map<String, Value>> {
    let properties = part.get("properties");
    let found: Vec<&mut Value> = if properties.is_some_and(|own| own.get(step).is_some()) {
        let property = part.get_mut("properties").and_then(|own| own.get_mut(step));
        property.into_iter().collect()
    } else if step == EVERY_ITEM {
        let items = part.iter_mut().flat_map(|(keyword, value)| {
            let items: Vec<&mut Value> = match (keyword.as_str(), value) {
                ("items" | "prefixItems", Value::Array(items)) => items.iter_mut().collect(),
                ("items", items) => vec![items],
                _ => Vec::new(),
            };
            items
        });
        items.collect()
    } else {
        Vec::new()
    };
    let schemas = found.into_iter().filter_map(|schema| {
        if *schema == Value::Bool(true) {
            *schema = json!({});
        }
        schema.as_object_mut()
    });
    schemas.collect()
}

/// The place that a reference names, and what is there; `None` if it leads nowhere or out of the document.
fn target<'d>(document: &'d Value, reference: &str) -> Option<(String, &'d Value)> {
    let fragment = fragment(reference)?;
    let is_pointer = fragment.is_empty() || fragment.starts_with('/');
    let found = if is_pointer {
        document.pointer(&fragment)
    } else {
        anchored(document, &fragment)
    };
    Some((fragment, found?))
}

/// Number of values in a value.
fn count(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn fragment(reference: &str) -> Option<String> {
    let fragment = percent_decode_str(reference.strip_prefix('#')?);
    Some(fragment.decode_utf8_lossy().into_owned())
}

fn anchored<'d>(value: &'d Value, anchor: &str) -> Option<&'d Value> {
    match value {
        Value::Object(members) if members.get("$anchor").is_some_and(|own| own == anchor) => {
            Some(value)
        }
        Value::Object(members) => members.values().find_map(|own| anchored(own, anchor)),
        Value::Array(items) => items.iter().find_map(|own| anchored(own, anchor)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Annotations, of which those of the schema that refers win.
const ANNOTATIONS: [&str; 8] = [
    "title",
    "description",
    "default",
    "examples",
    "$defs",
    "definitions",
    "$comment",
    "deprecated",
];

/// True if a schema says so little beside its reference that both are one schema without another meaning.
fn is_frame(schema: &Map<String, Value>, target: &Map<String, Value>) -> bool {
    schema.iter().all(|(keyword, value)| {
        let is_same = target.get(keyword).is_none_or(|own| own == value);
        match keyword.as_str() {
            "$schema" | "$id" | "$anchor" | "required" => true,
            "type" => is_same,
            known if ANNOTATIONS.contains(&known) => true,
            other => other.starts_with("x-") && is_same,
        }
    })
}

/// Joins what a reference names into the schema that refers.
fn absorb(schema: &mut Map<String, Value>, target: Map<String, Value>) {
    for (keyword, value) in target {
        match schema.get_mut(&keyword) {
            None => drop(schema.insert(keyword, value)),
            Some(Value::Array(own)) if keyword == "required" => {
                let named: Vec<Value> = own.clone();
                let more = value.as_array().into_iter().flatten().cloned();
                own.extend(more.filter(|name| !named.contains(name)));
            }
            Some(_) => {}
        }
    }
}

/// Takes a member out of a part of its object; true if the part declares it.
fn take_out(part: &mut Map<String, Value>, name: &str) -> bool {
    let mut is_declared = false;
    for (keyword, value) in part.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                is_declared = properties.remove(name).is_some();
            }
            ("required", Value::Array(required)) => required.retain(|member| member != name),
            (
                "dependentRequired" | "dependentSchemas" | "dependencies",
                Value::Object(dependents),
            ) => {
                dependents.remove(name);
                for required in dependents.values_mut().filter_map(Value::as_array_mut) {
                    required.retain(|member| member != name);
                }
            }
            _ => {}
        }
    }
    is_declared
}

/// Takes a member out of a value that is shown.
fn without(value: &mut Value, steps: &[String]) {
    match (value, steps) {
        (Value::Object(members), [last]) => drop(members.remove(last)),
        (Value::Object(members), [step, rest @ ..]) => {
            if let Some(member) = members.get_mut(step) {
                without(member, rest);
            }
        }
        (Value::Array(items), [step, rest @ ..]) if step == EVERY_ITEM => {
            for item in items {
                without(item, rest);
            }
        }
        (_, _) => {}
    }
}

/// Takes out definitions that nothing refers to any more: they would show what is hidden.
fn prune(schema: &mut Map<String, Value>) {
    let mut definitions: BTreeMap<(&str, String), Value> = BTreeMap::new();
    for keyword in DEFINITIONS {
        if let Some(Value::Object(own)) = schema.remove(keyword) {
            definitions.extend(own.into_iter().map(|(name, own)| ((keyword, name), own)));
        }
    }
    let mut anchors: BTreeMap<String, (&str, String)> = BTreeMap::new();
    for (place, own) in &definitions {
        texts(own, "$anchor", &mut |name| {
            anchors.insert(name.to_owned(), place.clone());
        });
    }
    let mut waiting = Vec::new();
    let gather = |own: &Value, waiting: &mut Vec<String>| {
        texts(own, "$ref", &mut |reference| {
            waiting.extend(fragment(reference));
        });
    };
    schema.values().for_each(|own| gather(own, &mut waiting));
    while let Some(fragment) = waiting.pop() {
        let place = definition_at(&fragment).or_else(|| anchors.get(&fragment).cloned());
        let Some((place, own)) = place.and_then(|place| definitions.remove_entry(&place)) else {
            continue;
        };
        gather(&own, &mut waiting);
        let (keyword, name) = place;
        let kept = schema.entry(keyword).or_insert_with(|| json!({}));
        if let Value::Object(kept) = kept {
            kept.insert(name, own);
        }
    }
}

/// Tells the texts of all members of this name.
fn texts(value: &Value, name: &str, tell: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(members) => {
            if let Some(text) = members.get(name).and_then(Value::as_str) {
                tell(text);
            }
            members.values().for_each(|own| texts(own, name, tell));
        }
        Value::Array(items) => items.iter().for_each(|own| texts(own, name, tell)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The definition that a pointer leads to, or into.
fn definition_at(fragment: &str) -> Option<(&'static str, String)> {
    let mut steps = fragment.strip_prefix('/')?.split('/');
    let first = steps.next()?;
    let keyword = DEFINITIONS.into_iter().find(|own| *own == first)?;
    let name = steps.next()?.replace("~1", "/").replace("~0", "~");
    Some((keyword, name))
}

#[cfg(test)]
mod tests;
