//! From JSON Schema 2020-12 to rules. What cannot be checked is refused here, with its path, so that
//! no call is ever bound against a rule that is silently ignored.

use std::collections::HashMap;

use countersign_contract::ValueKind;
use countersign_contract::parameter::Sensitivity;
use countersign_contract::schema::ext;
use regex::Regex;
use serde_json::{Map, Value};

use super::{
    Additional, Allowed, Condition, Contains, ListRules, Member, NumberRules, ObjectRules, Pattern,
    Property, Rules, Schema, SchemaId, TextRules, Types,
};
use crate::fold::fold;
use crate::format::Format;
use crate::number::Decimal;
use crate::tree::Kind;

/// The schema cannot be bound against.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used at {path:?}: {message}")]
pub struct SchemaError {
    /// JSON pointer into the schema.
    pub path: String,
    /// What is wrong there, and what to do.
    pub message: String,
}

/// A schema may come from somebody else's server: it has bounds like any other input.
const DEPTH_MAX: usize = 192;
const RULES_MAX: usize = 20_000;

impl Schema {
    /// Prepares a schema.
    pub(crate) fn compile(document: &Value) -> Result<Self, SchemaError> {
        let mut compiler = Compiler {
            document,
            rules: Vec::new(),
            done: HashMap::new(),
            in_place: Vec::new(),
            anchors: HashMap::new(),
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
        })
    }

    /// A schema that accepts everything, for tools without a declaration.
    pub(crate) fn anything() -> Self {
        Self {
            rules: vec![Rules::default()],
            root: 0,
            sensitive: false,
            remarks: false,
            branches: false,
        }
    }
}

/// Who decides about members that are not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    /// This schema itself.
    Own,
    /// The schema that this one is a part of (`allOf`, or a branch beside declared properties).
    Part,
}

struct Compiler<'d> {
    document: &'d Value,
    rules: Vec<Rules>,
    done: HashMap<(String, Mode), SchemaId>,
    /// Edges to schemas that apply to the same value; a cycle of them never ends.
    in_place: Vec<(SchemaId, SchemaId, String)>,
    anchors: HashMap<String, String>,
}

type Result<T, E = SchemaError> = std::result::Result<T, E>;

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
        // A reference with nothing beside it is the schema it names.
        if let Some(target) = self.lone_reference(object, path)? {
            let (value, target) = self.resolve(target, path)?;
            return self.schema(value, &target, mode, depth + 1);
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
        rules.allowed = allowed(object, path)?;
        if let (Some(allowed), false) = (&rules.allowed, object.contains_key("type")) {
            rules.types = allowed.types();
        }
        rules.number = number_rules(object, path)?;
        rules.text = text_rules(object, path)?;
        rules.list = self.list_rules(object, path, depth)?;
        rules.object = self.object_rules(object, path, mode, depth)?;
        self.compose(&mut rules, object, path, mode, depth, id)?;
        extensions(&mut rules, object, path)?;
        Ok(rules)
    }

    fn list_rules(
        &mut self,
        object: &'d Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Option<ListRules>> {
        let mut rules = ListRules::default();
        // A list under `items` is how drafts before 2020-12 wrote `prefixItems`.
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
        const KEYWORDS: [&str; 10] = [
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
                let aliases = match schema {
                    Value::Object(schema) => names(schema, ext::ALIASES, &path)?,
                    _ => Vec::new(),
                };
                rules.by_name.insert(name.clone(), rules.properties.len());
                rules.properties.push(Property {
                    name: name.clone(),
                    folded: fold(name),
                    schema: self.schema(schema, &path, Mode::Own, depth + 1)?,
                    required: required.contains(name),
                    aliases,
                });
            }
        }
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

    /// Schemas that apply to the same value, and who of them knows which members.
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
        // Branches decide for themselves about unknown members only where nothing stands beside them.
        let branch = if declares { Mode::Part } else { mode };
        let many = |key: &str| match object.get(key) {
            None => Ok(&[][..]),
            Some(Value::Array(schemas)) if !schemas.is_empty() => Ok(schemas.as_slice()),
            Some(_) => refuse(
                &format!("{path}/{key}"),
                "it must be a list with at least one schema",
            ),
        };
        for (key, part) in [("allOf", Mode::Part), ("anyOf", branch), ("oneOf", branch)] {
            for (i, schema) in many(key)?.iter().enumerate() {
                let path = format!("{path}/{key}/{i}");
                let child = self.schema(schema, &path, part, depth + 1)?;
                self.in_place.push((id, child, path));
                match key {
                    "allOf" => rules.all_of.push(child),
                    "anyOf" => rules.any_of.push(child),
                    _ => rules.one_of.push(child),
                }
            }
        }
        if let Some(Value::String(target)) = object.get("$ref") {
            let (value, target) = self.resolve(target, path)?;
            let child = self.schema(value, &target, Mode::Part, depth + 1)?;
            self.in_place.push((id, child, target));
            rules.all_of.push(child);
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
        rules.not = one("not")?;
        if let Some(test) = one("if")? {
            rules.condition = Some(Condition {
                test,
                then: one("then")?,
                otherwise: one("else")?,
            });
        }
        self.close(rules, mode, declares)
    }

    /// Collects the members that the schemas beside this one declare for the same object, so that
    /// an undeclared one is undeclared everywhere.
    fn close(&mut self, rules: &mut Rules, mode: Mode, declares: bool) -> Result<()> {
        let mut beside: Vec<SchemaId> = rules.all_of.clone();
        if declares {
            beside.extend(rules.any_of.iter().chain(&rules.one_of));
        }
        if let Some(condition) = &rules.condition {
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
            return Ok(());
        }
        let object = rules.object.get_or_insert_with(ObjectRules::default);
        object.known_beside = known;
        if mode == Mode::Own
            && !declares
            && object.additional == Additional::Welcome
            && rules.any_of.is_empty()
            && rules.one_of.is_empty()
        {
            object.additional = Additional::Unexpected;
        }
        Ok(())
    }

    fn lone_reference(
        &self,
        object: &'d Map<String, Value>,
        path: &str,
    ) -> Result<Option<&'d str>> {
        const ANNOTATIONS: [&str; 9] = [
            "$ref",
            "$defs",
            "definitions",
            "title",
            "description",
            "default",
            "examples",
            "$schema",
            "$id",
        ];
        let Some(target) = object.get("$ref") else {
            return Ok(None);
        };
        let Value::String(target) = target else {
            return refuse(path, "$ref must be a text");
        };
        let alone = object.keys().all(|key| ANNOTATIONS.contains(&key.as_str()));
        Ok(alone.then_some(target))
    }

    fn resolve(&self, target: &str, path: &str) -> Result<(&'d Value, String)> {
        let Some(fragment) = target.strip_prefix('#') else {
            return refuse(
                path,
                format!("{target:?} is not in this document; remote references are not followed"),
            );
        };
        let fragment = percent_decoded(fragment);
        let pointer = match self.anchors.get(&fragment) {
            Some(pointer) => pointer.clone(),
            None => fragment,
        };
        match self.document.pointer(&pointer) {
            Some(value) => Ok((value, pointer)),
            None => refuse(path, format!("{target:?} names nothing in this document")),
        }
    }

    fn find_anchors(&mut self, value: &Value, path: &mut String, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX * 2 {
            return refuse(path, "it nests too deep");
        }
        let length = path.len();
        match value {
            Value::Object(object) => {
                if let Some(Value::String(anchor)) = object.get("$anchor") {
                    self.anchors.insert(anchor.clone(), path.clone());
                }
                for (key, child) in object {
                    path.push('/');
                    path.push_str(&escape(key));
                    self.find_anchors(child, path, depth + 1)?;
                    path.truncate(length);
                }
            }
            Value::Array(list) => {
                for (i, child) in list.iter().enumerate() {
                    path.push('/');
                    path.push_str(&i.to_string());
                    self.find_anchors(child, path, depth + 1)?;
                    path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    /// A schema that applies itself to the same value would be checked for ever.
    fn refuse_cycles(&self) -> Result<()> {
        let mut state = vec![0_u8; self.rules.len()];
        let mut edges: HashMap<SchemaId, Vec<(SchemaId, &str)>> = HashMap::new();
        for (from, to, path) in &self.in_place {
            edges.entry(*from).or_default().push((*to, path));
        }
        for start in 0..self.rules.len() as SchemaId {
            let mut stack = vec![(start, 0_usize)];
            while let Some((node, next)) = stack.pop() {
                let Some(mark) = state.get_mut(node as usize) else {
                    continue;
                };
                if next == 0 {
                    if *mark != 0 {
                        continue;
                    }
                    *mark = 1;
                }
                match edges.get(&node).and_then(|list| list.get(next)) {
                    Some((child, path)) => {
                        stack.push((node, next + 1));
                        match state.get(*child as usize) {
                            Some(1) => {
                                return refuse(path, "it refers to itself without going down");
                            }
                            Some(0) => stack.push((*child, 0)),
                            _ => {}
                        }
                    }
                    None => {
                        if let Some(mark) = state.get_mut(node as usize) {
                            *mark = 2;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn refuse<T>(path: &str, message: impl Into<String>) -> Result<T> {
    Err(SchemaError {
        path: path.to_owned(),
        message: message.into(),
    })
}

/// Keywords that would change what is valid and that are not implemented: ignoring them would accept
/// what the author refuses.
fn refuse_unsupported(object: &Map<String, Value>, path: &str) -> Result<()> {
    for keyword in ["$dynamicRef", "$recursiveRef", "unevaluatedItems"] {
        if object.contains_key(keyword) {
            return refuse(
                path,
                format!("{keyword} is not supported; write the schema without it"),
            );
        }
    }
    match object.get("unevaluatedProperties") {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(_) => refuse(path, "unevaluatedProperties takes only true or false here"),
    }
}

fn types(object: &Map<String, Value>, path: &str) -> Result<Types> {
    let one = |name: &Value| match name.as_str() {
        Some("null") => Ok(Types::NULL),
        Some("boolean") => Ok(Types::BOOLEAN),
        Some("integer") => Ok(Types::INTEGER),
        Some("number") => Ok(Types::NUMBER),
        Some("string") => Ok(Types::TEXT),
        Some("array") => Ok(Types::ARRAY),
        Some("object") => Ok(Types::OBJECT),
        _ => refuse(
            &format!("{path}/type"),
            format!("{name} is none of null, boolean, integer, number, string, array, object"),
        ),
    };
    let mut types = match object.get("type") {
        None => return Ok(Types::ANY),
        Some(Value::Array(list)) => list
            .iter()
            .try_fold(Types::NEVER, |types, name| Ok(types.with(one(name)?)))?,
        Some(name) => one(name)?,
    };
    // OpenAPI 3.0's way of saying it; many generators still do.
    if object.get("nullable") == Some(&Value::Bool(true)) {
        types = types.with(Types::NULL);
    }
    Ok(types)
}

fn allowed(object: &Map<String, Value>, path: &str) -> Result<Option<Allowed>> {
    let values: Vec<&Value> = match (object.get("const"), object.get("enum")) {
        (Some(value), _) => vec![value],
        (None, Some(Value::Array(values))) => values.iter().collect(),
        (None, Some(_)) => return refuse(&format!("{path}/enum"), "it must be a list"),
        (None, None) => return Ok(None),
    };
    let members: Vec<Member> = values.iter().map(|value| member(value)).collect();
    let mut aliases = Vec::new();
    if let Some(table) = map(object, ext::ENUM_ALIASES, path)? {
        for name in table.keys() {
            let Some(at) = members.iter().position(|member| member.text == *name) else {
                return refuse(
                    path,
                    format!("{name:?} has aliases and is no member of the enum"),
                );
            };
            aliases.extend(
                names(table, name, path)?
                    .iter()
                    .map(|alias| (fold(alias), at)),
            );
        }
    }
    let folds = object.get(ext::CASE).and_then(Value::as_str) != Some("exact");
    Ok(Some(Allowed {
        members,
        aliases,
        folds,
    }))
}

fn member(value: &Value) -> Member {
    let (kind, text) = match value {
        Value::Null => (Kind::Null, "null".to_owned()),
        Value::Bool(true) => (Kind::True, "true".to_owned()),
        Value::Bool(false) => (Kind::False, "false".to_owned()),
        Value::Number(number) => (Kind::Number, number.to_string()),
        Value::String(text) => (Kind::Text, text.clone()),
        Value::Array(_) => (Kind::Array, String::new()),
        Value::Object(_) => (Kind::Object, String::new()),
    };
    let container = matches!(kind, Kind::Array | Kind::Object);
    Member {
        kind,
        number: (kind == Kind::Number)
            .then(|| Decimal::parse(&text))
            .flatten(),
        folded: fold(&text),
        json: container.then(|| crate::render::of_value(value)),
        text,
    }
}

impl Allowed {
    fn types(&self) -> Types {
        self.members.iter().fold(Types::NEVER, |types, member| {
            types.with(match member.kind {
                Kind::Null => Types::NULL,
                Kind::False | Kind::True => Types::BOOLEAN,
                Kind::Number if crate::number::is_whole(&member.text) => Types::INTEGER,
                Kind::Number => Types::NUMBER,
                Kind::Text => Types::TEXT,
                Kind::Array => Types::ARRAY,
                Kind::Object => Types::OBJECT,
            })
        })
    }
}

fn number_rules(object: &Map<String, Value>, path: &str) -> Result<Option<NumberRules>> {
    let bound = |key: &str| match object.get(key) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Decimal::parse(&number.to_string())),
        Some(_) => refuse(&format!("{path}/{key}"), "it must be a number"),
    };
    let rules = NumberRules {
        minimum: bound("minimum")?,
        maximum: bound("maximum")?,
        exclusive_minimum: bound("exclusiveMinimum")?,
        exclusive_maximum: bound("exclusiveMaximum")?,
        multiple_of: bound("multipleOf")?,
    };
    let any = [
        &rules.minimum,
        &rules.maximum,
        &rules.exclusive_minimum,
        &rules.exclusive_maximum,
        &rules.multiple_of,
    ];
    Ok(any.iter().any(|bound| bound.is_some()).then_some(rules))
}

fn text_rules(object: &Map<String, Value>, path: &str) -> Result<Option<TextRules>> {
    let pattern = match object.get("pattern") {
        None => None,
        Some(Value::String(source)) => Some(pattern(source, &format!("{path}/pattern"))?),
        Some(_) => return refuse(&format!("{path}/pattern"), "it must be a text"),
    };
    let rules = TextRules {
        min_length: count(object, "minLength", path)?,
        max_length: count(object, "maxLength", path)?,
        pattern,
        format: object
            .get("format")
            .and_then(Value::as_str)
            .and_then(Format::named),
    };
    let any = rules.min_length.is_some()
        || rules.max_length.is_some()
        || rules.pattern.is_some()
        || rules.format.is_some();
    Ok(any.then_some(rules))
}

/// A pattern in ECMAScript's syntax. Look-around and back-references are refused: what is left runs
/// in linear time, whatever the argument.
fn pattern(source: &str, path: &str) -> Result<Pattern> {
    let mut translated = String::with_capacity(source.len());
    let mut characters = source.chars();
    while let Some(character) = characters.next() {
        translated.push(character);
        if character == '\\' {
            // ECMAScript's classes are ASCII.
            match characters.next() {
                Some('d') => replace_escape(&mut translated, "[0-9]"),
                Some('D') => replace_escape(&mut translated, "[^0-9]"),
                Some('w') => replace_escape(&mut translated, "[A-Za-z0-9_]"),
                Some('W') => replace_escape(&mut translated, "[^A-Za-z0-9_]"),
                Some('/') => replace_escape(&mut translated, "/"),
                Some(escaped) => translated.push(escaped),
                None => {}
            }
        }
    }
    match Regex::new(&translated) {
        Ok(regex) => Ok(Pattern {
            source: source.to_owned(),
            regex,
        }),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            refuse(
                path,
                format!("the pattern {source:?} cannot be used: {reason}"),
            )
        }
    }
}

fn replace_escape(translated: &mut String, class: &str) {
    translated.pop();
    translated.push_str(class);
}

fn extensions(rules: &mut Rules, object: &Map<String, Value>, path: &str) -> Result<()> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    rules.kind = ValueKind::ALL
        .into_iter()
        .find(|kind| text(ext::KIND) == Some(kind.as_str()));
    rules.truncate = object.get(ext::TRUNCATE) == Some(&Value::Bool(true));
    rules.strict = match text(ext::LENIENCY) {
        None => None,
        Some("strict") => Some(true),
        Some("lenient") => Some(false),
        Some(_) => {
            return refuse(
                &format!("{path}/{}", ext::LENIENCY),
                "it is strict or lenient",
            );
        }
    };
    rules.sensitivity = match text(ext::SENSITIVITY) {
        None | Some("public") => Sensitivity::Public,
        Some("personal") => Sensitivity::Personal,
        Some("secret") => Sensitivity::Secret,
        Some(_) => {
            return refuse(
                &format!("{path}/{}", ext::SENSITIVITY),
                "it is public, personal or secret",
            );
        }
    };
    Ok(())
}

fn count(object: &Map<String, Value>, key: &str, path: &str) -> Result<Option<usize>> {
    match object.get(key) {
        None => Ok(None),
        Some(value) => match value.as_u64().or_else(|| integral(value)) {
            Some(count) => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
            None => refuse(
                &format!("{path}/{key}"),
                "it must be a whole number from 0 on",
            ),
        },
    }
}

/// `2.0` is a count to JSON Schema.
fn integral(value: &Value) -> Option<u64> {
    Decimal::parse(&value.to_string())?
        .to_integer(20)?
        .parse()
        .ok()
}

fn names(object: &Map<String, Value>, key: &str, path: &str) -> Result<Vec<String>> {
    let wrong = || refuse(&format!("{path}/{key}"), "it must be a list of texts");
    match object.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            match list.iter().map(|v| v.as_str().map(str::to_owned)).collect() {
                Some(names) => Ok(names),
                None => wrong(),
            }
        }
        Some(_) => wrong(),
    }
}

fn map<'d>(
    object: &'d Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<Option<&'d Map<String, Value>>> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => refuse(&format!("{path}/{key}"), "it must be an object"),
    }
}

/// A key as a part of a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match code
            .filter(|_| byte == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
        {
            Some(code) => {
                decoded.push(code);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
