//! What the tool's schema says is what can be sent; where it says less than the document, a note says so.

use countersign_upstream::openapi::{Import, Options, import};
use serde_json::{Value, json};

/// The import of one operation with these parameters and this body.
fn imported(parameters: &Value, body: &Value) -> Import {
    let path = if parameters.to_string().contains("\"path\"") {
        "/things/{id}"
    } else {
        "/things"
    };
    let mut operation = json!({ "operationId": "set", "parameters": parameters });
    if !body.is_null() {
        let content = json!({ "application/json": { "schema": body } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    let document = json!({
        "openapi": "3.0.3", "info": { "title": "Things" }, "servers": [{ "url": "https://things.example" }],
        "paths": { path: { "post": operation } },
    });
    import(&document.to_string(), &Options::default()).unwrap()
}

fn property(import: &Import, name: &str) -> Value {
    let input = import.manifest.tool[0].input.as_ref().unwrap();
    input["properties"][name].clone()
}

fn notes(import: &Import) -> String {
    import.report.tools[0].notes.join("\n")
}

/// B15: a value in the path is not empty, and neither is a required list or object, of which nothing would be sent.
#[test]
fn what_would_not_be_sent_is_not_accepted() {
    let check = |place: &str, required: bool, schema: Value, expected: Value| {
        let parameter =
            json!({ "name": "id", "in": place, "required": required, "schema": schema });
        let import = imported(&json!([parameter]), &Value::Null);
        assert_eq!(property(&import, "id"), expected);
    };
    let text = json!({ "type": "string" });
    check(
        "path",
        true,
        text.clone(),
        json!({ "type": "string", "minLength": 1 }),
    );
    check(
        "path",
        true,
        json!({ "type": "string", "minLength": 3 }),
        json!({ "type": "string", "minLength": 3 }),
    );
    check(
        "path",
        true,
        json!({ "type": "integer" }),
        json!({ "type": "integer" }),
    );
    check(
        "path",
        true,
        json!({ "type": "string", "format": "uuid" }),
        json!({ "type": "string", "format": "uuid" }),
    );
    let list = json!({ "type": "array", "items": text });
    let some = json!({ "type": "array", "items": text, "minItems": 1 });
    check("path", true, list.clone(), some.clone());
    check("query", true, list.clone(), some);
    check("query", false, list.clone(), list);
    check("query", true, text.clone(), text);
    let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let mut some = object.clone();
    some["minProperties"] = 1.into();
    check("path", true, object.clone(), some);
}

/// B15: a rule of the document that the tool does not have is noted.
#[test]
fn a_rule_that_is_left_out_is_noted() {
    let part = |name: &str| json!({ "type": "object", "additionalProperties": false, "properties": { name: { "type": "string" } } });
    let joined = imported(&json!([]), &json!({ "allOf": [part("a"), part("b")] }));
    insta::assert_snapshot!(notes(&joined), @"/additionalProperties is not checked: it closes one part of an allOf, and the members of the other parts may be sent");
    let alone = imported(&json!([]), &json!({ "allOf": [part("a")] }));
    assert_eq!(notes(&alone), "");

    let choices = |choices: Value| {
        let schema = json!({ "type": "object", "properties": { "kind": { "type": "integer", "enum": choices } } });
        imported(&json!([]), &schema)
    };
    let mixed = choices(json!([1, "2", "3 (three)", [4]]));
    assert_eq!(
        property(&mixed, "kind"),
        json!({ "type": "integer", "enum": [1, 2] })
    );
    assert_eq!(notes(&mixed), "");
    let other = choices(json!(["1 (one)", "2 (two)"]));
    assert_eq!(
        property(&other, "kind"),
        json!({ "enum": ["1 (one)", "2 (two)"] })
    );
    insta::assert_snapshot!(notes(&other), @"/properties/kind/type is not checked: no choice is of the type that is declared");
}

/// B15: a pattern that cannot be checked is noted at each tool that has it.
#[test]
fn an_unchecked_pattern_is_noted_at_each_tool() {
    let operation = |id: &str| {
        let schema = json!({ "type": "string", "pattern": "^(?=a)b" });
        json!({ "get": { "operationId": id, "parameters": [{ "name": "q", "in": "query", "schema": schema }] } })
    };
    let document = json!({
        "openapi": "3.0.3", "info": { "title": "Things" }, "servers": [{ "url": "https://things.example" }],
        "paths": { "/a": operation("a"), "/b": operation("b") },
    });
    let import = import(&document.to_string(), &Options::default()).unwrap();
    for tool in &import.report.tools {
        let [note] = &tool.notes[..] else {
            panic!("{}: {:?}", tool.name, tool.notes);
        };
        let place = "/properties/q/pattern is not checked: ";
        assert!(note.starts_with(place), "{}: {note}", tool.name);
    }
}
