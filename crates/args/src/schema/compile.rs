//! Compiles JSON Schema 2020-12 to rules. Keywords that cannot be checked are refused here, with their path, so
//! that no rule is ever silently ignored.

use std::collections::HashMap;

use countersign_contract::parameter::Sensitivity;
use countersign_contract::schema::ext;
use serde_json::{Map, Value};

use super::keyword::{
    allowed, count, escape, extensions, map, names, number_rules, on_optional_error, pattern,
    refuse, refuse_unsupported, text_rules, types,
};
use super::{
    Additional, Composed, Condition, Contains, ListRules, ObjectRules, Property, Rules, Schema,
    SchemaId, Shown, Types,
};
use crate::fold::fold;

/// The schema cannot be used, usually because it has an unsupported keyword or a malformed one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used at {}: {message}", place(path))]
pub struct SchemaError {
    /// JSON pointer into the schema.
    pub path: String,
    /// The fault, and how to fix it.
    pub message: String,
}

/// Names a place in the schema for people: the root's pointer is empty and would be overlooked.
fn place(path: &str) -> String {
    match path {
        "" => "its root".to_owned(),
        path => format!("{path:?}"),
    }
}

/// Bounds on a schema: it may come from a third party's server, like any other input.
pub(super) const DEPTH_MAX: usize = 192;
const RULES_MAX: usize = 20_000;

impl Schema {
    /// Compiles a schema.
    pub(crate) fn compile(document: &Value) -> Result<Self, SchemaError> {
        let mut compiler = Compiler {
            document,
            rules: Vec::new(),
            done: HashMap::new(),
            in_place: Vec::new(),
            anchors: HashMap::new(),
            shown: Vec::new(),
        };
        compiler.find_anchors(document, &mut String::new(), 0)?;
        let root = compiler.schema(document, "", Mode::Own, 0)?;
        compiler.refuse_cycles()?;
        let sensitive = compiler
            .rules
            .iter()
            .any(|rules| rules.sensitivity != Sensitivity::Public);
        let soft = |rules: &Rules| {
            rules
                .text
                .as_ref()
                .and_then(|t| t.format)
                .is_some_and(|f| !f.is_binding())
        };
        let remarks = compiler.rules.iter().any(soft);
        let branches = compiler
            .rules
            .iter()
            .any(|rules| rules.is_composed() || rules.types.is_union());
        Ok(Self {
            rules: compiler.rules,
            root,
            sensitive,
            remarks,
            branches,
            shown: compiler.shown,
        })
    }

    /// Returns a schema that accepts everything, for tools without a declaration.
    pub(crate) fn anything() -> Self {
        Self {
            rules: vec![Rules::default()],
            root: 0,
            sensitive: false,
            remarks: false,
            branches: false,
            shown: Vec::new(),
        }
    }
}

/// Schema that decides about members that are not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    /// This schema itself.
    Own,
    /// The schema that this one is a part of (`allOf`, or a branch next to declared properties).
    Part,
}

pub(super) struct Compiler<'d> {
    pub(super) document: &'d Value,
    pub(super) rules: Vec<Rules>,
    done: HashMap<(String, Mode), SchemaId>,
    /// Edges to schemas that apply to the same value; a cycle of them would never end.
    pub(super) in_place: Vec<(SchemaId, SchemaId, String)>,
    pub(super) anchors: HashMap<String, String>,
    shown: Vec<Shown>,
}

pub(super) type Result<T, E = SchemaError> = std::result::Result<T, E>;

impl<'d> Compiler<'d> {
    fn schema(
        &mut self,
        value: &'d Value,
        path: &str,
        mode: Mode,
        depth: usize,
    ) -> Result<SchemaId> {
        if let Some(done) = self.done.get(&(path.to_owned(), mode)) {
            return Ok(*done);
        }
        if depth > DEPTH_MAX {
            return refuse(path, format!("it nests deeper than {DEPTH_MAX} levels"));
        }
        if self.rules.len() >= RULES_MAX {
            return refuse(path, format!("it has more than {RULES_MAX} parts"));
        }
        let object = match value {
            Value::Bool(true) => return Ok(self.reserve(path, mode)),
            Value::Bool(false) => {
                let id = self.reserve(path, mode);
                self.set(
                    id,
                    Rules {
                        types: Types::NEVER,
                        ..Rules::default()
                    },
                );
                return Ok(id);
            }
            Value::Object(object) => object,
            _ => return refuse(path, "a schema is an object, true or false"),
        };
        // A reference without other keywords is the schema it names.
        if let Some(target) = Self::lone_reference(object, path)? {
            let (value, target) = self.resolve(target, path)?;
            if target == path {
                return refuse(path, "it refers to itself without going down");
            }
            let id = self.schema(value, &target, mode, depth + 1)?;
            self.keep_shown(object, path, id);
            return Ok(id);
        }
        let id = self.reserve(path, mode);
        let rules = self.rules_of(object, path, mode, depth, id)?;
        self.set(id, rules);
        Ok(id)
    }

    fn reserve(&mut self, path: &str, mode: Mode) -> SchemaId {
        let id = self.rules.len() as SchemaId;
        self.rules.push(Rules::default());
        self.done.insert((path.to_owned(), mode), id);
        id
    }

    fn set(&mut self, id: SchemaId, rules: Rules) {
        if let Some(slot) = self.rules.get_mut(id as usize) {
            *slot = rules;
        }
    }

    fn rules_of(
        &mut self,
        object: &'d Map<String, Value>,
        path: &str,
        mode: Mode,
        depth: usize,
        id: SchemaId,
    ) -> Result<Rules> {
        refuse_unsupported(object, path)?;
        let mut rules = Rules {
            types: types(object, path)?,
            ..Rules::default()
        };
        rules.allowed = allowed(object, path)?.map(Box::new);
        if let (Some(allowed), false) = (&rules.allowed, object.contains_key("type")) {
            rules.types = allowed.types();
        }
        rules.number = number_rules(object, path)?.map(Box::new);
        rules.text = text_rules(object, path)?.map(Box::new);
        rules.list = self.list_rules(object, path, depth)?.map(Box::new);
        rules.object = self.object_rules(object, path, mode, depth)?.map(Box::new);
        self.compose(&mut rules, object, path, mode, depth, id)?;
        extensions(&mut rules, object, path)?;
        self.keep_shown(object, path, id);
        Ok(rules)
    }

    fn keep_shown(&mut self, object: &Map<String, Value>, path: &str, schema: SchemaId) {
        let default = object
            .get("default")
            .map(|value| (value, format!("{path}/default")));
        let examples = object.get("examples").and_then(Value::as_array);
        let examples = examples.into_iter().flatten().enumerate();
        let examples = examples.map(|(at, value)| (value, format!("{path}/examples/{at}")));
        let shown = default
            .into_iter()
            .chain(examples)
            .map(|(value, path)| Shown {
                path,
                json: value.to_string(),
                schema,
            });
        self.shown.extend(shown);
    }

    fn list_rules(
        &mut self,
        object: &'d Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Option<ListRules>> {
        let mut rules = ListRules::default();
        // Drafts before 2020-12 wrote `prefixItems` as a list under `items`.
        let (prefix, prefix_key) = match object.get("prefixItems") {
            Some(prefix) => (Some(prefix), "prefixItems"),
            None => (
                object.get("items").filter(|items| items.is_array()),
                "items",
            ),
        };
        if let Some(Value::Array(schemas)) = prefix {
            for (i, schema) in schemas.iter().enumerate() {
                let path = format!("{path}/{prefix_key}/{i}");
                rules
                    .prefix
                    .push(self.schema(schema, &path, Mode::Own, depth + 1)?);
            }
        }
        let rest = object.get("items").filter(|items| !items.is_array());
        if let Some(items) = rest {
            rules.items =
                Some(self.schema(items, &format!("{path}/items"), Mode::Own, depth + 1)?);
        }
        rules.min_items = count(object, "minItems", path)?.unwrap_or(0);
        rules.max_items = count(object, "maxItems", path)?;
        rules.unique = object.get("uniqueItems") == Some(&Value::Bool(true));
        if let Some(contains) = object.get("contains") {
            let schema =
                self.schema(contains, &format!("{path}/contains"), Mode::Own, depth + 1)?;
            let min = count(object, "minContains", path)?.unwrap_or(1);
            rules.contains = Some(Contains {
                schema,
                min,
                max: count(object, "maxContains", path)?,
            });
        }
        let any = [
            "items",
            "prefixItems",
            "minItems",
            "maxItems",
            "uniqueItems",
            "contains",
        ];
        Ok(any
            .iter()
            .any(|key| object.contains_key(*key))
            .then_some(rules))
    }

    fn object_rules(
        &mut self,
        object: &'d Map<String, Value>,
        path: &str,
        mode: Mode,
        depth: usize,
    ) -> Result<Option<ObjectRules>> {
        const KEYWORDS: [&str; 11] = [
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "dependentSchemas",
            "dependencies",
            "unevaluatedProperties",
        ];
        if !KEYWORDS.iter().any(|key| object.contains_key(*key)) {
            return Ok(None);
        }
        let mut rules = ObjectRules::default();
        let required = names(object, "required", path)?;
        self.properties(&mut rules, object, &required, path, depth)?;
        if let Some(patterns) = map(object, "patternProperties", path)? {
            for (source, schema) in patterns {
                let path = format!("{path}/patternProperties/{}", escape(source));
                let pattern = pattern(source, &path)?;
                let schema = self.schema(schema, &path, Mode::Own, depth + 1)?;
                rules.patterns.push((pattern, schema));
            }
        }
        rules.additional = match object.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Welcome,
            Some(Value::Bool(false)) => Additional::Refused,
            Some(schema) => {
                let path = format!("{path}/additionalProperties");
                Additional::Typed(self.schema(schema, &path, Mode::Own, depth + 1)?)
            }
            None if object.get("unevaluatedProperties") == Some(&Value::Bool(false)) => {
                Additional::Unevaluated
            }
            None if mode == Mode::Part => Additional::Elsewhere,
            None if rules.properties.is_empty() => Additional::Welcome,
            None => Additional::Unexpected,
        };
        if let Some(names) = object.get("propertyNames") {
            let path = format!("{path}/propertyNames");
            rules.names = Some(self.schema(names, &path, Mode::Own, depth + 1)?);
        }
        rules.min_members = count(object, "minProperties", path)?.unwrap_or(0);
        rules.max_members = count(object, "maxProperties", path)?;
        self.dependencies(&mut rules, object, path, depth)?;
        Ok(Some(rules))
    }

    fn properties(
        &mut self,
        rules: &mut ObjectRules,
        object: &'d Map<String, Value>,
        required: &[String],
        path: &str,
        depth: usize,
    ) -> Result<()> {
        if let Some(properties) = map(object, "properties", path)? {
            for (name, schema) in properties {
                let path = format!("{path}/properties/{}", escape(name));
                let (aliases, on_optional_error) = match schema {
                    Value::Object(schema) => (
                        names(schema, ext::ALIASES, &path)?,
                        on_optional_error(schema, required.contains(name), &path)?,
                    ),
                    _ => (Vec::new(), None),
                };
                rules.by_name.insert(name.clone(), rules.properties.len());
                rules.properties.push(Property {
                    name: name.clone(),
                    folded: fold(name),
                    schema: self.schema(schema, &path, Mode::Own, depth + 1)?,
                    required: required.contains(name),
                    aliases,
                    on_optional_error,
                });
            }
        }
        rules.index();
        rules.required_count = rules
            .properties
            .iter()
            .filter(|property| property.required)
            .count();
        rules.also_required = required
            .iter()
            .filter(|name| !rules.by_name.contains_key(*name))
            .cloned()
            .collect();
        Ok(())
    }

    fn dependencies(
        &mut self,
        rules: &mut ObjectRules,
        object: &'d Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<()> {
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            let Some(dependencies) = map(object, keyword, path)? else {
                continue;
            };
            for (name, value) in dependencies {
                let path = format!("{path}/{keyword}/{}", escape(name));
                if value.is_array() {
                    rules
                        .dependent_required
                        .push((name.clone(), names(dependencies, name, &path)?));
                } else {
                    let schema = self.schema(value, &path, Mode::Part, depth + 1)?;
                    rules.dependent_schemas.push((name.clone(), schema));
                }
            }
        }
        Ok(())
    }

    /// Compiles the schemas that apply to the same value, and records which members each of them knows.
    fn compose(
        &mut self,
        rules: &mut Rules,
        object: &'d Map<String, Value>,
        path: &str,
        mode: Mode,
        depth: usize,
        id: SchemaId,
    ) -> Result<()> {
        let declares = object.contains_key("properties");
        // Branches decide about unknown members themselves only if nothing next to them does: declared properties, or other members that are
        // allowed.
        let others = object.get("additionalProperties");
        let allows = others.is_some_and(|others| *others != Value::Bool(false));
        let branch = if declares || allows { Mode::Part } else { mode };
        let many = |key: &str| match object.get(key) {
            None => Ok(&[][..]),
            Some(Value::Array(schemas)) if !schemas.is_empty() => Ok(schemas.as_slice()),
            Some(_) => refuse(
                &format!("{path}/{key}"),
                "it must be a list with at least one schema",
            ),
        };
        let mut composed = Composed::default();
        for (key, part) in [("allOf", Mode::Part), ("anyOf", branch), ("oneOf", branch)] {
            for (i, schema) in many(key)?.iter().enumerate() {
                let path = format!("{path}/{key}/{i}");
                let child = self.schema(schema, &path, part, depth + 1)?;
                self.in_place.push((id, child, path));
                match key {
                    "allOf" => composed.all_of.push(child),
                    "anyOf" => composed.any_of.push(child),
                    _ => composed.one_of.push(child),
                }
            }
        }
        if let Some(Value::String(target)) = object.get("$ref") {
            let (value, target) = self.resolve(target, path)?;
            let child = self.schema(value, &target, Mode::Part, depth + 1)?;
            self.in_place.push((id, child, target));
            composed.all_of.push(child);
        }
        let mut one = |key: &str| -> Result<Option<SchemaId>> {
            let Some(schema) = object.get(key) else {
                return Ok(None);
            };
            let path = format!("{path}/{key}");
            let child = self.schema(schema, &path, Mode::Part, depth + 1)?;
            self.in_place.push((id, child, path));
            Ok(Some(child))
        };
        composed.not = one("not")?;
        if let Some(test) = one("if")? {
            composed.condition = Some(Condition {
                test,
                then: one("then")?,
                otherwise: one("else")?,
            });
        }
        rules.composed = (!composed.is_empty()).then(|| Box::new(composed));
        self.close(rules, mode, declares);
        Ok(())
    }

    /// Collects the members that other schemas declare for the same object, so that a member is undeclared only
    /// if all of them lack it.
    fn close(&self, rules: &mut Rules, mode: Mode, declares: bool) {
        let mut beside: Vec<SchemaId> = rules.all_of().to_vec();
        if declares {
            beside.extend(rules.any_of().iter().chain(rules.one_of()));
        }
        let condition = rules.composed.as_ref().and_then(|it| it.condition.as_ref());
        if let Some(condition) = condition {
            beside.push(condition.test);
            beside.extend(condition.then.iter().chain(&condition.otherwise));
        }
        if let Some(object) = &rules.object {
            beside.extend(object.dependent_schemas.iter().map(|(_, schema)| *schema));
        }
        let mut known = Vec::new();
        for part in beside {
            let Some(object) = self
                .rules
                .get(part as usize)
                .and_then(|r| r.object.as_ref())
            else {
                continue;
            };
            known.extend(
                object
                    .properties
                    .iter()
                    .map(|property| property.name.clone()),
            );
            known.extend(object.known_beside.iter().cloned());
        }
        if known.is_empty() {
            return;
        }
        let is_union = !(rules.any_of().is_empty() && rules.one_of().is_empty());
        let object = rules.object.get_or_insert_default();
        object.known_beside = known;
        if mode == Mode::Own && !declares && object.additional == Additional::Welcome && !is_union {
            object.additional = Additional::Unexpected;
        }
    }
}
