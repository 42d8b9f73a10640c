//! A brief schema for a model: each keyword costs tokens with every request, so only those stay that a model acts on.
//!
//! Nothing gets wider. The binder checks against the declaration, and its error names the bound that was missed. The whole
//! schema is in `GET /v1/tools/{name}` and in `countersign tools --format jsonschema`.

use serde_json::{Map, Value, json};

use super::{description, walk};

/// Bound from which numbers are dropped: they guard the server and do not help a model.
const LARGE: f64 = 2_147_483_647.0;

/// Maximum length bound that stays: a model counts letters only if there are few, and keeps to a longer bound anyway.
const SHORT: f64 = 50.0;

/// Drops the keywords that a model has no use for. `names_tool` is true if a description names another tool.
pub(super) fn rewrite(schema: &mut Value, names_tool: &dyn Fn(&str) -> bool) {
    walk::each(schema, &mut |node| {
        node.retain(|keyword, value| is_useful(keyword, value));
        let says_form = !description(node).is_empty() || node.contains_key("examples");
        if says_form {
            node.remove("pattern");
        }
        // The names that there are say the same.
        if node.get("additionalProperties") == Some(&Value::Bool(false))
            && node.contains_key("properties")
        {
            node.remove("additionalProperties");
        }
        keep_one_example(node, names_tool);
    });
}

/// True if a model acts on a bound. Other keywords stay.
fn is_useful(keyword: &str, value: &Value) -> bool {
    let Some(bound) = value.as_f64() else {
        return true;
    };
    match keyword {
        "minLength" => bound > 3.0,
        "maxLength" => bound <= SHORT,
        "minimum" | "maximum" => bound.abs() < LARGE,
        _ => true,
    }
}

/// Keeps one example, which shows how a value is written. No example is kept if the parts of the value have their own,
/// if a default, an enum or the description shows it, or if another tool gives the value: a model would send the
/// example.
fn keep_one_example(node: &mut Map<String, Value>, names_tool: &dyn Fn(&str) -> bool) {
    let Some(Value::Array(mut examples)) = node.remove("examples") else {
        return;
    };
    examples.truncate(1);
    let Some(example) = examples.first() else {
        return;
    };
    let shown = example
        .as_str()
        .map_or_else(|| example.to_string(), str::to_owned);
    let says_it = ["properties", "items", "default", "enum"];
    let is_shown = says_it.iter().any(|keyword| node.contains_key(*keyword));
    let text = description(node);
    if !is_shown && !text.contains(&shown) && !names_tool(text) {
        node.insert("examples".into(), Value::Array(examples));
    }
}

/// The members that an answer always has, and their types. No model is shown the schema of an answer: it is for programs,
/// and a program can ask for all of it.
pub(super) fn outline(output: &Value) -> Value {
    let required = output.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let declared = |name: &str| output.get("properties")?.get(name);
    let properties: Map<String, Value> = names
        .filter_map(|name| Some((name.to_owned(), typed(declared(name)?, output))))
        .collect();
    match required {
        Some(required) if !properties.is_empty() => {
            json!({ "type": "object", "properties": properties, "required": required })
        }
        _ => json!({ "type": "object" }),
    }
}

/// A schema with the type only, if the schema or its reference target has one.
fn typed(member: &Value, root: &Value) -> Value {
    let target = member.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|path| root.pointer(path.strip_prefix('#')?));
    match member.get("type").or_else(|| target?.get("type")) {
        Some(kind) => json!({ "type": kind }),
        None => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn briefly(mut schema: Value) -> String {
        rewrite(&mut schema, &|text| text.contains("cart.create"));
        schema.to_string()
    }

    #[test]
    fn bounds_that_only_guard_the_server_go() {
        assert_snapshot!(
            briefly(json!({ "type": "string", "minLength": 1, "maxLength": 64, "enum": ["a"] })),
            @r#"{"enum":["a"],"type":"string"}"#
        );
        assert_snapshot!(
            briefly(json!({ "minLength": 4, "maxLength": 50 })),
            @r#"{"maxLength":50,"minLength":4}"#
        );
        assert_snapshot!(
            briefly(json!({ "type": "integer", "minimum": 1, "maximum": 4_294_967_295_u32 })),
            @r#"{"minimum":1,"type":"integer"}"#
        );
        assert_snapshot!(
            briefly(json!({ "type": "number", "minimum": -1e300, "maximum": 99.5 })),
            @r#"{"maximum":99.5,"type":"number"}"#
        );
    }

    /// If no text says how a value is written, the pattern stays: a model has nothing else.
    #[test]
    fn a_pattern_stays_where_nothing_else_says_the_form() {
        assert_snapshot!(briefly(json!({ "pattern": "^[A-Z]{3}$" })), @r#"{"pattern":"^[A-Z]{3}$"}"#);
        assert_snapshot!(briefly(json!({ "pattern": "^[A-Z]{3}$", "description": "Three letters." })), @r#"{"description":"Three letters."}"#);
        assert_snapshot!(briefly(json!({ "pattern": "^[A-Z]{3}$", "examples": ["EUR"] })), @r#"{"examples":["EUR"]}"#);
    }

    #[test]
    fn one_example_is_enough_and_some_values_need_none() {
        assert_snapshot!(briefly(json!({ "examples": ["EUR", "USD"] })), @r#"{"examples":["EUR"]}"#);
        assert_snapshot!(briefly(json!({ "examples": [] })), @"{}");
        assert_snapshot!(briefly(json!({ "default": 1, "examples": [2] })), @r#"{"default":1}"#);
        assert_snapshot!(
            briefly(json!({ "description": "Such as EUR.", "examples": ["EUR"] })),
            @r#"{"description":"Such as EUR."}"#
        );
        assert_snapshot!(
            briefly(json!({ "description": "From `cart.create`.", "examples": ["cart_1"] })),
            @r#"{"description":"From `cart.create`."}"#
        );
        assert_snapshot!(
            briefly(json!({ "items": { "examples": [2] }, "examples": [[2, 3]] })),
            @r#"{"items":{"examples":[2]}}"#
        );
    }

    /// A closed object names its members; one that takes any member, or none, says so.
    #[test]
    fn a_closed_object_is_known_by_its_members() {
        let closed = json!({ "properties": { "a": {} }, "additionalProperties": false });
        assert_snapshot!(briefly(closed), @r#"{"properties":{"a":{}}}"#);
        assert_snapshot!(briefly(json!({ "additionalProperties": false })), @r#"{"additionalProperties":false}"#);
        let any = json!({ "properties": {}, "additionalProperties": { "maxLength": 3 } });
        assert_snapshot!(briefly(any), @r#"{"additionalProperties":{"maxLength":3},"properties":{}}"#);
    }

    /// A parameter may have the name of a keyword.
    #[test]
    fn a_parameter_named_like_a_keyword_stays() {
        let named = json!({ "properties": { "maxLength": { "maxLength": 3 }, "pattern": {}, "examples": {} } });
        assert_snapshot!(briefly(named), @r#"{"properties":{"examples":{},"maxLength":{"maxLength":3},"pattern":{}}}"#);
    }

    #[test]
    fn an_answer_is_outlined_by_what_it_always_has() {
        let output = json!({
            "type": "object",
            "description": "A cart.",
            "properties": {
                "cart_id": { "type": "string", "description": "Its name." },
                "lines": { "type": "array", "items": { "$ref": "#/$defs/Line" } },
                "total": { "$ref": "#/$defs/Money" },
                "odd": { "$ref": "#/$defs/Missing" },
                "remark": { "type": ["string", "null"] },
            },
            "required": ["cart_id", "lines", "total", "odd"],
            "$defs": { "Line": { "type": "object" }, "Money": { "type": "object" } },
        });
        assert_snapshot!(outline(&output), @r#"{"properties":{"cart_id":{"type":"string"},"lines":{"type":"array"},"odd":{},"total":{"type":"object"}},"required":["cart_id","lines","total","odd"],"type":"object"}"#);
        assert_snapshot!(outline(&json!({ "type": "object", "required": 3 })), @r#"{"type":"object"}"#);
    }
}
