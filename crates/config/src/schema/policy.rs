//! The members of a policy, in the schema and among the sections. They are types of the gateway, which this crate does not know: their
//! schema is an argument.

use serde_json::{Map, Value, json};

use super::{Node, Section, gather, joined, schema, tidy};

/// The table of the policy.
pub(super) const KEY: &str = "policy";

/// Name of the policy's own definition.
const ROOT: &str = "PolicyFile";

/// The JSON Schema of `countersign.toml` with that of a policy file in it.
pub fn with_policy(policy: &Value) -> Value {
    let mut schema = schema().clone();
    let mut policy = renamed(policy);
    tidy(&mut policy);
    let Value::Object(mut policy) = policy else {
        return schema;
    };
    let own = policy.remove("$defs");
    policy.remove("$schema");
    policy.remove("title");
    let forms = schema.pointer_mut("/$defs/PolicySource/anyOf");
    let forms = forms.and_then(Value::as_array_mut).into_iter().flatten();
    for form in forms.filter(|form| form.get("type") == Some(&json!("object"))) {
        *form = json!({
            "$ref": format!("#/$defs/{ROOT}"), "description": form.get("description"),
        });
    }
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        definitions.insert(ROOT.to_owned(), Value::Object(policy));
        if let Some(Value::Object(own)) = own {
            definitions.extend(own);
        }
    }
    schema
}

/// The sections of a policy, made from the schema of a policy file.
pub fn policy_sections(policy: &Value) -> Vec<Section> {
    let mut policy = policy.clone();
    tidy(&mut policy);
    let text = policy.get("description").and_then(Value::as_str);
    let text = format!(
        "{} In a file of its own, the names of its tables have no `{KEY}.` in front.",
        joined(text.unwrap_or_default())
    );
    let head = Section {
        key: KEY.to_owned(),
        text,
        is_list: false,
        settings: Vec::new(),
    };
    let mut sections = Vec::new();
    gather(&Node::new(&policy, &policy), head, &mut sections);
    sections.retain(|section| !section.settings.is_empty());
    sections.sort_by(|one, other| one.key.cmp(&other.key));
    // A policy is read anew as a whole.
    for setting in sections
        .iter_mut()
        .flat_map(|section| &mut section.settings)
    {
        setting.is_live = true;
    }
    sections
}

/// The schema of a policy with names of definitions that no setting of ours has.
fn renamed(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(keyword, value)| {
                let value = match (keyword.as_str(), value) {
                    ("$ref", Value::String(reference)) => {
                        match reference.strip_prefix("#/$defs/") {
                            Some(name) => format!("#/$defs/{}", name_of(name)).into(),
                            None => value.clone(),
                        }
                    }
                    ("$defs", Value::Object(definitions)) => {
                        let definitions = definitions.iter();
                        let definitions =
                            definitions.map(|(name, own)| (name_of(name), renamed(own)));
                        Value::Object(definitions.collect::<Map<_, _>>())
                    }
                    (_, value) => renamed(value),
                };
                (keyword.clone(), value)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(renamed).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn name_of(definition: &str) -> String {
    format!("Policy{definition}")
}
