//! Members of composed schemas: hidden, described, at their places.

use super::*;

fn composed(schema: Value) -> Composed {
    let Value::Object(schema) = schema else {
        panic!("a schema is an object");
    };
    Composed::of(schema)
}

/// Hides members, and gives the schema and which of them were declared.
fn hidden(schema: Value, keys: &[&str]) -> (Value, Vec<bool>) {
    let mut composed = composed(schema);
    let declared = keys.iter().map(|key| composed.hide(&Way::of(key)));
    let declared = declared.collect::<Result<_, _>>().unwrap();
    (Value::Object(composed.finish()), declared)
}

/// B14: wherever the parts of an object stand, a hidden argument is in none of them, and in no definition that is left.
#[test]
fn a_hidden_argument_is_nowhere() {
    let target = json!({
        "type": "object", "required": ["tenant", "q"],
        "properties": {"tenant": {"type": "string"}, "q": {"type": "string"}},
    });
    let check = |schema: Value| {
        let mut schema = schema;
        schema["$defs"] = json!({"A": target, "B": {"$ref": "#/$defs/A"}});
        let (made, declared) = hidden(schema, &["tenant"]);
        assert_eq!(declared, [true], "{made}");
        assert!(!made.to_string().contains("tenant"), "{made}");
        assert!(made.to_string().contains("\"q\""), "{made}");
    };
    check(json!({"type": "object", "$ref": "#/$defs/A"}));
    check(json!({"type": "object", "$ref": "#/$defs/B"}));
    check(json!({"type": "object", "allOf": [{"$ref": "#/$defs/A"}]}));
    check(json!({"type": "object", "allOf": [{"allOf": [{"$ref": "#/$defs/B"}]}]}));
    check(json!({"type": "object", "minProperties": 1, "$ref": "#/$defs/A"}));
    check(json!({"type": "object", "$ref": "#/$defs/A", "allOf": [{"$ref": "#/$defs/A"}]}));
    check(json!({"type": "object", "anyOf": [{"$ref": "#/$defs/A"}, {"required": ["tenant"]}]}));
    check(json!({"type": "object", "oneOf": [{"$ref": "#/$defs/%41"}]}));
    check(json!({"type": "object", "if": {"required": ["q"]}, "then": {"$ref": "#/$defs/A"}}));
    check(json!({"type": "object", "dependentSchemas": {"q": {"$ref": "#/$defs/A"}}}));
    check(json!({
        "type": "object", "$ref": "#/$defs/A", "examples": [{"tenant": "x", "q": "y"}],
        "dependentRequired": {"q": ["tenant"], "tenant": ["q"]},
    }));
}

/// A definition that something else refers to stays as it is: the argument is hidden, not the member of another value.
#[test]
fn a_definition_with_another_use_stays() {
    let node = json!({
        "type": "object",
        "properties": {"tenant": {}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    });
    let schema =
        json!({"type": "object", "$ref": "#/$defs/Node", "$defs": {"Node": node, "Unused": {}}});
    let (made, _) = hidden(schema, &["tenant"]);
    assert_eq!(made["properties"].get("tenant"), None);
    assert_eq!(made["$defs"], json!({"Node": node}));
}

/// B14: a pointer leads through references, parts and lists; what is beside it stays.
#[test]
fn a_member_deep_inside_is_hidden() {
    let schema = json!({
        "type": "object",
        "properties": {
            "body": {"$ref": "#/$defs/Person"},
            "other": {"$ref": "#/$defs/Person"},
            "lines": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/Person"}]}},
        },
        "examples": [{"body": {"ssn": "1", "name": "a"}, "lines": [{"ssn": "2"}]}],
        "$defs": {"Person": {
            "type": "object", "required": ["ssn"],
            "properties": {"ssn": {"type": "string"}, "name": {"type": "string"}},
        }},
    });
    let keys = [
        "/body/ssn",
        "/lines/*/ssn",
        "/body/sn",
        "/nobody/ssn",
        "/lines/ssn",
    ];
    let (made, declared) = hidden(schema, &keys);
    assert_eq!(declared, [true, true, false, false, false]);
    let person = json!({
        "type": "object", "required": [], "properties": {"name": {"type": "string"}},
    });
    assert_eq!(made["properties"]["body"], person);
    assert_eq!(
        made["properties"]["lines"]["items"]["allOf"],
        json!([person])
    );
    assert_eq!(
        made["properties"]["other"],
        json!({"$ref": "#/$defs/Person"})
    );
    assert_eq!(
        made["examples"],
        json!([{"body": {"name": "a"}, "lines": [{}]}])
    );
}

/// The members that can be described are those that are declared, wherever they stand.
#[test]
fn a_description_stays_at_its_place() {
    let schema = json!({
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/Day"}, "to": {"$ref": "#/$defs/Day"}},
        "$defs": {"Day": {"type": "string", "description": "A day."}},
    });
    let mut composed = composed(schema);
    let mut set = |property: &mut Map<String, Value>| {
        property.insert("x-kind".to_owned(), "timestamp".into());
        Ok(())
    };
    assert_eq!(composed.describe(&Way::of("from"), &mut set), Ok(true));
    assert_eq!(composed.describe(&Way::of("form"), &mut set), Ok(false));
    let made = Value::Object(composed.finish());
    assert_eq!(
        made["properties"],
        json!({
            "from": {"type": "string", "description": "A day.", "x-kind": "timestamp"},
            "to": {"$ref": "#/$defs/Day"},
        })
    );
}

/// A schema that leads nowhere, to itself or to everything ends.
#[test]
fn broken_and_endless_schemas_end() {
    for schema in [
        json!({"type": "object", "$ref": "#"}),
        json!({"type": "object", "$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}),
        json!({"type": "object", "$ref": "#/$defs/A", "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#"}]}}}),
        json!({"type": "object", "$ref": "#/$defs/None"}),
        json!({"type": "object", "$ref": "https://example.com/a.json"}),
    ] {
        let mut composed = composed(schema.clone());
        let hidden = composed.hide(&Way::of("a"));
        assert!(matches!(hidden, Ok(false) | Err(_)), "{schema}");
    }
    // Each reference names the next one twice.
    let mut definitions = Map::new();
    for at in 0..40 {
        let next = json!({"$ref": format!("#/$defs/{}", at + 1)});
        definitions.insert(
            at.to_string(),
            json!({"minProperties": at, "allOf": [next, next]}),
        );
    }
    let schema = json!({"type": "object", "$ref": "#/$defs/0", "$defs": definitions});
    let mut composed = composed(schema);
    assert!(composed.hide(&Way::of("a")).is_err());
    // Each reference names a large definition again.
    let large: Vec<Value> = (0..1_000).map(|at| json!({"maxLength": at})).collect();
    let parts = vec![json!({"$ref": "#/$defs/Large"}); 200];
    let schema = json!({
        "type": "object", "allOf": parts, "$defs": {"Large": {"minProperties": 1, "anyOf": large}},
    });
    let mut composed = self::composed(schema);
    assert!(composed.hide(&Way::of("a")).is_err());
    // Each definition leads deep down to the next one.
    let mut definitions = Map::new();
    for at in 0..100 {
        let mut own = json!({"$ref": format!("#/$defs/{}", at + 1)});
        for _ in 0..40 {
            own = json!({"allOf": [own]});
        }
        definitions.insert(at.to_string(), own);
    }
    let schema = json!({"type": "object", "allOf": [{"$ref": "#/$defs/0"}], "$defs": definitions});
    let mut composed = self::composed(schema);
    assert!(composed.hide(&Way::of("a")).is_err());
}

/// Definitions that are still named stay, by a pointer or by an anchor, with those that they name.
#[test]
fn only_named_definitions_stay() {
    let schema = json!({
        "type": "object", "$ref": "#/$defs/Root",
        "$defs": {
            "Root": {"type": "object", "properties": {"a": {"$ref": "#day"}, "b": {"$ref": "#/$defs/B~1b/items"}}},
            "Day": {"$anchor": "day", "type": "string"},
            "B/b": {"items": {"$ref": "#/definitions/C"}},
            "Unused": {"$ref": "#/$defs/Hidden"}, "Hidden": {},
        },
        "definitions": {"C": {}, "D": {}},
    });
    let (made, _) = hidden(schema, &["x"]);
    let names = |keyword: &str| made[keyword].as_object().unwrap().keys().cloned();
    assert_eq!(names("$defs").collect::<Vec<_>>(), ["B/b", "Day"]);
    assert_eq!(names("definitions").collect::<Vec<_>>(), ["C"]);
}
