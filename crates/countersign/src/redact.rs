//! Arguments for a record: every value that the declaration marks as sensitive is replaced, and the rest passes the
//! detectors of personal data and credentials (A21).

use std::error::Error;

use countersign_contract::schema::ext;
use countersign_contract::{Input, ToolSpec};
use serde_json::Value;

mod detect;
mod harmless;
mod mark;

pub(crate) use detect::marked;
pub use detect::{Detector, Kind};
use mark::Label;
pub(crate) use mark::Mark;

/// The plan of replacements for the arguments of one tool; prepared once.
///
/// # Example
///
/// ```
/// use countersign::contract::parameter::Sensitivity;
/// use countersign::contract::{Input, Parameter, ToolName, ToolSpec, ValueKind};
/// use countersign::redact::Redaction;
/// use serde_json::json;
///
/// let phone = Parameter::new("phone", ValueKind::String, "where to call")
///     .sensitivity(Sensitivity::Personal);
/// let spec = ToolSpec::new(ToolName::new("sample.call")?, "Calls.").input(Input::parameters([phone]));
/// let mut arguments = json!({"phone": "+1 555 0100"});
/// Redaction::of(&spec).apply(&mut arguments);
/// assert_eq!(arguments, json!({"phone": "[personal]"}));
/// # Ok::<(), countersign::contract::id::InvalidId>(())
/// ```
#[derive(Debug, Clone)]
pub struct Redaction {
    plan: Plan,
    /// The schema, if anything in it is harmless.
    harmless: Option<Value>,
}

#[derive(Debug, Clone)]
enum Plan {
    /// Nothing is sensitive.
    Nothing,
    /// Nothing is declared, so anything may be.
    Everything,
    /// As the schema says.
    Schema(Value),
}

impl Redaction {
    /// Reads a tool's declaration.
    pub fn of(spec: &ToolSpec) -> Self {
        let schema = match &spec.input {
            Input::Undeclared => None,
            Input::Parameters(_) | Input::Schema(_) => Some(spec.json_schema()),
        };
        let harmless = schema.clone().filter(harmless::has_any);
        let plan = match schema {
            None => Plan::Everything,
            Some(schema) if mentions(&schema, ext::SENSITIVITY) => Plan::Schema(schema),
            Some(_) => Plan::Nothing,
        };
        Self { plan, harmless }
    }

    /// True if the declaration marks nothing as sensitive. The detectors still run.
    pub fn is_empty(&self) -> bool {
        matches!(self.plan, Plan::Nothing)
    }

    /// The part of the arguments that may be in a record for ever: values of a declared enum, booleans, and numbers
    /// that the declaration marks as harmless, under declared names. Null if there is none.
    pub fn harmless(&self, arguments: &Value) -> Value {
        match &self.harmless {
            Some(root) => harmless::of(root, arguments),
            None => Value::Null,
        }
    }

    /// Reads what a declaration says about the answers of a tool. Where it says nothing, only what looks sensitive is
    /// replaced.
    pub(crate) fn of_output(spec: &ToolSpec) -> Self {
        let schema = spec.output.as_ref();
        let plan = match schema.filter(|schema| mentions(schema, ext::SENSITIVITY)) {
            Some(schema) => Plan::Schema(schema.clone()),
            None => Plan::Nothing,
        };
        Self {
            plan,
            harmless: None,
        }
    }

    /// Replaces values that are declared sensitive, and then values that look sensitive.
    pub fn apply(&self, arguments: &mut Value) {
        self.mark(arguments, &mut Label);
    }

    /// The same, with what stands for a value chosen by `mark`.
    pub(crate) fn mark(&self, value: &mut Value, mark: &mut dyn Mark) {
        match &self.plan {
            Plan::Nothing => {}
            Plan::Everything => blank(value, mark),
            Plan::Schema(root) => Walk::all(root, mark).node(root, value, 0),
        }
        Detector::new().mark_value(value, mark);
    }

    /// True if the declaration has a secret, such as a token.
    pub(crate) fn has_secrets(&self) -> bool {
        match &self.plan {
            Plan::Nothing | Plan::Everything => false,
            Plan::Schema(root) => has_secret(root),
        }
    }

    /// Replaces only values that are declared a secret, such as a PIN: for the approver of a call, who has to see the
    /// rest, and does not need the secret.
    pub fn apply_to_secrets(&self, arguments: &mut Value) {
        match &self.plan {
            Plan::Nothing | Plan::Everything => {}
            Plan::Schema(root) => Walk::secrets(root, &mut Label).node(root, arguments, 0),
        }
    }
}

/// True if a schema has a secret anywhere.
fn has_secret(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let own = members.get(ext::SENSITIVITY).and_then(Value::as_str);
            own == Some("secret") || members.values().any(has_secret)
        }
        Value::Array(items) => items.iter().any(has_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// An error with its causes as one line for the log, scrubbed: tools and stores may quote their input in it.
pub fn error_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    Detector::new().scrub(&text).into_owned()
}

struct Walk<'a, 'm> {
    root: &'a Value,
    /// True if personal data stays.
    only_secrets: bool,
    mark: &'m mut dyn Mark,
    /// Parts of the declaration that may still be looked at.
    left: u32,
}

/// Most parts of a declaration that are looked at for one value of arguments. Definitions that name each other twice double with each step;
/// what is behind this many parts is hidden.
const PARTS_MAX: u32 = 1_000_000;

/// Maximum number of references and combinators that may follow each other at one place of the arguments.
const HOPS_MAX: u32 = 32;

impl<'a, 'm> Walk<'a, 'm> {
    fn all(root: &'a Value, mark: &'m mut dyn Mark) -> Self {
        Self {
            root,
            only_secrets: false,
            mark,
            left: PARTS_MAX,
        }
    }

    fn secrets(root: &'a Value, mark: &'m mut dyn Mark) -> Self {
        Self {
            root,
            only_secrets: true,
            mark,
            left: PARTS_MAX,
        }
    }

    fn replace(&mut self, kind: &str, value: &mut Value) {
        *value = self.mark.mark(kind, value).into();
    }

    fn node(&mut self, schema: &Value, value: &mut Value, hops: u32) {
        let label = schema.get(ext::SENSITIVITY).and_then(Value::as_str);
        match label {
            Some("secret") => return self.replace("secret", value),
            Some("public") if !self.only_secrets => return,
            Some(label) if !self.only_secrets => return self.replace(label, value),
            Some(_) | None => {}
        }
        self.left = self.left.saturating_sub(1);
        if hops > HOPS_MAX || self.left == 0 {
            return self.replace(UNRESOLVED, value);
        }
        self.same_place(schema, value, hops);
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.member(schema, name, member);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.item(schema, index, item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Applies keywords that are about the same value. Every branch counts, whichever one matches: a value that is
    /// hidden too often does less harm than one that is shown once.
    fn same_place(&mut self, schema: &Value, value: &mut Value, hops: u32) {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            match reference.strip_prefix('#').and_then(|at| root.pointer(at)) {
                Some(target) => self.node(target, value, hops + 1),
                None => self.replace(UNRESOLVED, value),
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let branches = schema.get(keyword).and_then(Value::as_array);
            for branch in branches.into_iter().flatten() {
                self.node(branch, value, hops + 1);
            }
        }
        for keyword in ["if", "then", "else"] {
            if let Some(branch) = schema.get(keyword) {
                self.node(branch, value, hops + 1);
            }
        }
    }

    fn member(&mut self, schema: &Value, name: &str, member: &mut Value) {
        let declared = schema.get("properties").and_then(|all| all.get(name));
        if let Some(declared) = declared {
            self.node(declared, member, 0);
        } else if let Some(others) = schema.get("additionalProperties") {
            self.node(others, member, 0);
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for pattern in patterns.into_iter().flat_map(|patterns| patterns.values()) {
            self.node(pattern, member, 0);
        }
    }

    fn item(&mut self, schema: &Value, index: usize, item: &mut Value) {
        let by_place = schema.get("prefixItems").and_then(|items| items.get(index));
        if let Some(declared) = by_place.or_else(|| schema.get("items")) {
            self.node(declared, item, 0);
        }
    }
}

/// Kind of the text that replaces a value whose declaration could not be followed.
const UNRESOLVED: &str = "unresolved";

/// Keeps the shape and hides every value.
fn blank(value: &mut Value, mark: &mut dyn Mark) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|it| blank(it, mark)),
        Value::Array(items) => items.iter_mut().for_each(|it| blank(it, mark)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            *value = mark.mark("undeclared", value).into();
        }
    }
}

fn mentions(schema: &Value, keyword: &str) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key(keyword) || members.values().any(|node| mentions(node, keyword))
        }
        Value::Array(items) => items.iter().any(|node| mentions(node, keyword)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use countersign_contract::ToolName;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(input: Input, mut arguments: Value, expected: &Value) {
        let spec = ToolSpec::new(ToolName::new("a.b").unwrap(), "").input(input);
        Redaction::of(&spec).apply(&mut arguments);
        assert_eq!(arguments, *expected);
    }

    /// Definitions that name each other twice end: the value is hidden.
    #[test]
    fn definitions_that_double_end() {
        let mut definitions = serde_json::Map::new();
        for at in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            definitions.insert(format!("d{at}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("d30".to_owned(), json!({"type": "string"}));
        let schema = json!({
            "type": "object", "$defs": definitions,
            "properties": {"x": {"allOf": vec![json!({"$ref": "#/$defs/d17"}); 100]}, "y": {"x-sensitivity": "secret"}},
        });
        let spec = ToolSpec::new(ToolName::new("a.b").unwrap(), "").input(Input::Schema(schema));
        let mut arguments = json!({"x": "text", "y": "hidden"});
        Redaction::of(&spec).apply(&mut arguments);
        assert_ne!(arguments["x"], "text");
        assert_ne!(arguments["y"], "hidden");
    }

    /// Sensitive values are found in lists, maps, references and combinators (A21).
    #[test]
    fn nested_values_are_replaced() {
        let schema = json!({
            "type": "object",
            "properties": {
                "sku": {"type": "string"},
                "to": {"$ref": "#/$defs/address"},
                "others": {"type": "array", "items": {"$ref": "#/$defs/address"}},
                "tokens": {"additionalProperties": {"x-sensitivity": "secret"}},
                "pair": {"prefixItems": [{"type": "string"}, {"x-sensitivity": "secret"}]},
                "either": {"anyOf": [{"type": "null"}, {"x-sensitivity": "personal"}]},
                "far": {"$ref": "https://example.com/schema"},
            },
            "$defs": {"address": {"type": "object", "properties": {
                "street": {"type": "string", "x-sensitivity": "personal"},
                "country": {"type": "string"},
                "next": {"$ref": "#/$defs/address"},
            }}},
        });
        let address = json!({"street": "1 Main St", "country": "US",
            "next": {"street": "2 Main St", "country": "US"}});
        let hidden = json!({"street": "[personal]", "country": "US",
            "next": {"street": "[personal]", "country": "US"}});
        check(
            Input::Schema(schema),
            json!({"sku": "S", "to": address, "others": [address], "tokens": {"a": 1},
                "pair": ["x", "y"], "either": "z", "far": {"q": 1}}),
            &json!({"sku": "S", "to": hidden, "others": [hidden], "tokens": {"a": "[secret]"},
                "pair": ["x", "[secret]"], "either": "[personal]", "far": "[unresolved]"}),
        );
    }

    /// Undeclared personal data is caught by the detectors, beside declared data and below maps (A21).
    #[test]
    fn undeclared_personal_data_is_replaced_too() {
        let declared = json!({"properties": {"name": {"x-sensitivity": "personal"}}});
        for schema in [json!({"type": "object"}), declared] {
            let hidden = schema.get("properties").is_some();
            let spec = ToolSpec::new(ToolName::new("a.b").unwrap(), "");
            let redaction = Redaction::of(&spec.input(Input::Schema(schema.clone())));
            assert_eq!(redaction.is_empty(), !hidden);
            let name = if hidden { "[personal]" } else { "Li Lei" };
            check(
                Input::Schema(schema),
                json!({"name": "Li Lei", "note": "ring 13812345678", "per": {"li@example.com": 3},
                    "card": 4_111_111_111_111_111_u64, "order": "ORD-10023"}),
                &json!({"name": name, "note": "ring [phone]", "per": {"[email]": 3},
                    "card": "[card]", "order": "ORD-10023"}),
            );
        }
        check(
            Input::Undeclared,
            json!({"li@example.com": 1}),
            &json!({"[email]": "[undeclared]"}),
        );
    }

    #[test]
    fn an_error_is_told_with_its_causes_and_without_values() {
        #[derive(Debug, thiserror::Error)]
        #[error("no mail to li@example.com")]
        struct Outer(#[source] std::io::Error);
        let error = Outer(std::io::Error::other("13812345678 is busy"));
        assert_eq!(error_text(&error), "no mail to [email]: [phone] is busy");
    }

    #[test]
    fn a_reference_to_itself_ends() {
        let schema = json!({"$ref": "#", "properties": {"a": {"x-sensitivity": "secret"}}});
        check(
            Input::Schema(schema),
            json!({"a": 1}),
            &json!("[unresolved]"),
        );
    }

    #[test]
    fn nothing_declared_means_everything_is_hidden() {
        check(
            Input::Undeclared,
            json!({"a": [1, {"b": true}]}),
            &json!({"a": ["[undeclared]", {"b": "[undeclared]"}]}),
        );
    }
}
