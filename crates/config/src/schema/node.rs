//! A place in the schema, seen through references and `null` alternatives.

use serde_json::Value;

/// Maximum number of references that are followed at one place.
const HOPS_MAX: usize = 16;

/// A place in the schema. The outer layers come first: a field's own text before that of its type.
#[derive(Debug, Clone)]
pub(crate) struct Node<'s> {
    root: &'s Value,
    layers: Vec<&'s Value>,
    /// The alternatives, where there are several.
    alternatives: Vec<Node<'s>>,
}

impl<'s> Node<'s> {
    pub(crate) fn new(schema: &'s Value, root: &'s Value) -> Self {
        let mut node = Self {
            root,
            layers: Vec::new(),
            alternatives: Vec::new(),
        };
        let mut next = Some(schema);
        while let Some(layer) = next.take().filter(|_| node.layers.len() < HOPS_MAX) {
            node.layers.push(layer);
            if let Some(name) = layer.get("$ref").and_then(Value::as_str) {
                next = name.strip_prefix('#').and_then(|path| root.pointer(path));
                continue;
            }
            let choices = ["anyOf", "oneOf"]
                .into_iter()
                .find_map(|name| layer.get(name));
            let choices = choices
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            // A list of constants is an enumeration, not a choice between forms.
            if choices.iter().all(|choice| choice.get("const").is_some()) {
                continue;
            }
            let mut forms = choices.iter().filter(|choice| !is_null(choice));
            match (forms.next(), forms.next()) {
                (Some(only), None) => next = Some(only),
                (None, _) => {}
                (Some(_), Some(_)) => {
                    let forms = choices.iter().filter(|choice| !is_null(choice));
                    node.alternatives = forms.map(|form| Self::new(form, root)).collect();
                }
            }
        }
        node
    }

    /// Returns the value of a keyword in the first layer that has it.
    pub(crate) fn get(&self, keyword: &str) -> Option<&'s Value> {
        self.layers.iter().find_map(|layer| layer.get(keyword))
    }

    pub(crate) fn text(&self, keyword: &str) -> Option<&'s str> {
        self.get(keyword).and_then(Value::as_str)
    }

    /// The forms to choose from, where there are several.
    pub(crate) fn alternatives(&self) -> &[Self] {
        &self.alternatives
    }

    /// True if its members are declared.
    pub(crate) fn is_table(&self) -> bool {
        self.get("properties").is_some()
    }

    /// The declared members, in the order of the declaration.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&'s str, Self)> {
        let properties = self.get("properties").and_then(Value::as_object);
        let root = self.root;
        properties
            .into_iter()
            .flatten()
            .map(move |(name, schema)| (name.as_str(), Self::new(schema, root)))
    }

    /// The declared member of this name.
    pub(crate) fn property(&self, name: &str) -> Option<Self> {
        let schema = self.get("properties")?.get(name)?;
        Some(Self::new(schema, self.root))
    }

    /// Returns the schema of members with other names; `None` if anything or nothing is allowed there.
    pub(crate) fn other_properties(&self) -> Option<Self> {
        let schema = self.get("additionalProperties")?;
        schema.is_object().then(|| Self::new(schema, self.root))
    }

    /// True if no other members may be there.
    pub(crate) fn is_closed(&self) -> bool {
        self.get("additionalProperties") == Some(&Value::Bool(false))
    }

    /// The members that have to be there.
    pub(crate) fn required(&self) -> impl Iterator<Item = &'s str> {
        let names = self.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns the schema of a list's items.
    pub(crate) fn items(&self) -> Option<Self> {
        let items = self.get("items").filter(|items| items.is_object())?;
        Some(Self::new(items, self.root))
    }

    /// Returns the names of the types that are allowed; empty if the schema does not say.
    pub(crate) fn types(&self) -> Vec<&'s str> {
        if !self.alternatives.is_empty() {
            return self.alternatives.iter().flat_map(Self::types).collect();
        }
        match self.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                names.filter(|name| *name != "null").collect()
            }
            Some(_) | None if self.constants().is_some() => vec!["string"],
            Some(_) | None => Vec::new(),
        }
    }

    /// The texts that are allowed, where the schema lists them.
    pub(crate) fn constants(&self) -> Option<Vec<&'s str>> {
        if let Some(list) = self.get("enum").and_then(Value::as_array) {
            return Some(list.iter().filter_map(Value::as_str).collect());
        }
        let choices = self.get("oneOf").and_then(Value::as_array)?;
        let constant = |choice: &'s Value| {
            let single = choice.get("const").map(|value| vec![value]);
            let several = choice.get("enum").and_then(Value::as_array);
            let values = single.or_else(|| several.map(|list| list.iter().collect()))?;
            values
                .into_iter()
                .map(Value::as_str)
                .collect::<Option<Vec<_>>>()
        };
        let constants: Option<Vec<Vec<&str>>> = choices.iter().map(constant).collect();
        constants.map(|constants| constants.concat())
    }

    /// The bounds of a number.
    pub(crate) fn bounds(&self) -> (Option<f64>, Option<f64>) {
        let bound = |name| self.get(name).and_then(Value::as_f64);
        (bound("minimum"), bound("maximum"))
    }

    /// The form of a value, in words.
    pub(crate) fn form(&self) -> String {
        if let Some(form) = self.text("x-form") {
            return form.to_owned();
        }
        if self.get("x-path") == Some(&Value::Bool(true)) {
            return "a path".to_owned();
        }
        if let Some(constants) = self.constants() {
            let quoted: Vec<String> = constants.iter().map(|name| format!("{name:?}")).collect();
            return match quoted.as_slice() {
                [] => "a string".to_owned(),
                [only] => only.clone(),
                [first @ .., last] => format!("{} or {last}", first.join(", ")),
            };
        }
        if !self.alternatives.is_empty() {
            return self.choice();
        }
        let types = self.types();
        let words: Vec<String> = types.iter().map(|name| self.in_words(name)).collect();
        match words.as_slice() {
            [] => "a value".to_owned(),
            words => words.join(" or "),
        }
    }

    /// The forms to choose from, in words: texts as they are, tables by their one key.
    fn choice(&self) -> String {
        let (mut texts, mut tables, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for form in &self.alternatives {
            let constant = form.text("const").map(|text| vec![text]);
            let mut keys = form.required();
            if let Some(constants) = constant.or_else(|| form.constants()) {
                texts.extend(constants.iter().map(|text| format!("{text:?}")));
            } else if let (true, Some(key), None) = (form.is_table(), keys.next(), keys.next()) {
                tables.push(format!("`{key}`"));
            } else {
                others.push(form.form());
            }
        }
        let tables = match tables.as_slice() {
            [] => None,
            [only] => Some(format!("a table with {only}")),
            [first @ .., last] => Some(format!("a table with {} or {last}", first.join(", "))),
        };
        let mut forms: Vec<String> = Vec::new();
        for form in texts.into_iter().chain(others).chain(tables) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms.join(" or ")
    }

    fn in_words(&self, name: &str) -> String {
        let range = match (name, self.bounds()) {
            ("integer" | "number", (Some(min), Some(max))) => {
                format!(" from {min} to {max}")
            }
            ("integer" | "number", (Some(min), None)) if min > 0.0 => format!(" from {min}"),
            _ => String::new(),
        };
        let word = match name {
            "boolean" => "true or false",
            "integer" => "a whole number",
            "number" => "a number",
            "array" => "a list",
            "object" => "a table",
            _ => "a string",
        };
        format!("{word}{range}")
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}
