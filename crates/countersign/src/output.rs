//! The schema of an answer, made from the type of the answer.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema of a type's JSON; `None` for a type that may be anything.
pub(crate) fn schema_of<T: JsonSchema>() -> Option<Value> {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // It is the name of a Rust type.
    schema.remove("title");
    let mut schema = schema.to_value();
    cut_sections(&mut schema);
    let says_something = schema.as_object().is_some_and(|it| !it.is_empty());
    says_something.then_some(schema)
}

/// Removes the sections of doc comments (`# Example` and the like) from the descriptions: they are for readers of the Rust type.
fn cut_sections(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description")
                && let Some(end) = text.find("\n\n# ")
            {
                text.truncate(end);
            }
            members.values_mut().for_each(cut_sections);
        }
        Value::Array(items) => items.iter_mut().for_each(cut_sections),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_json_snapshot;
    use serde::Serialize;

    use super::*;

    /// Result of a count.
    ///
    /// # Example
    ///
    /// Not for callers.
    #[derive(Serialize, JsonSchema)]
    struct Answer {
        /// Number of items.
        count: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        remark: Option<String>,
    }

    /// A member that may be left out is not required: the declaration has everything that a program has to know (B20).
    #[test]
    fn a_member_that_may_be_left_out_is_not_required() {
        assert_json_snapshot!(schema_of::<Answer>(), @r#"
        {
          "description": "Result of a count.",
          "properties": {
            "count": {
              "description": "Number of items.",
              "format": "uint8",
              "maximum": 255,
              "minimum": 0,
              "type": "integer"
            },
            "remark": {
              "type": [
                "string",
                "null"
              ]
            }
          },
          "required": [
            "count"
          ],
          "type": "object"
        }
        "#);
    }

    #[test]
    fn what_may_be_anything_has_no_schema() {
        assert_eq!(schema_of::<Value>(), None);
    }
}
