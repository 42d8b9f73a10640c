//! The rewriting of a schema for a provider, rule by rule (B15).
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot be set up fails"
)]

use countersign::dialect::{
    Dialect, NoteKind, SchemaProblem, ToolList, ToolListError, ToolListOptions,
};
use countersign_contract::schema::ext;
use countersign_contract::{Input, ToolName, ToolSpec};
use serde_json::{Value, json};

const PLAIN: ToolListOptions = ToolListOptions {
    strict: false,
    max_tokens: None,
    openapi: false,
    whole: true,
};
const STRICT: ToolListOptions = ToolListOptions {
    strict: true,
    ..PLAIN
};
const OPENAPI: ToolListOptions = ToolListOptions {
    openapi: true,
    ..PLAIN
};

/// B15: alternatives at the root, which providers answer with an error, become one object.
#[test]
fn alternatives_at_the_root_are_united_with_a_note() {
    let schema = json!({
        "oneOf": [
            { "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] },
            { "type": "object", "properties": { "id": { "type": "integer" },
              "name": { "type": "string" } }, "required": ["id", "name"] },
        ],
    });
    let list = list(Dialect::Anthropic, PLAIN, schema).unwrap();
    assert_eq!(
        list.json[0]["input_schema"],
        json!({
            "type": "object",
            "properties": {
                "id": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "name": { "type": "string" },
            },
            "required": ["id"],
        })
    );
    assert_eq!(
        list.json[0]["description"],
        "Does it. Give (id) or (id, name)."
    );
    let widened = NoteKind::Widened {
        path: String::new(),
        keyword: "oneOf".to_owned(),
    };
    assert_eq!(list.notes[0].kind, widened);
}

#[test]
fn all_of_at_the_root_is_merged_without_loss() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "allOf": [{ "properties": { "b": { "type": "integer" } }, "required": ["b"] },
                  { "required": ["a"] }],
    });
    check(
        Dialect::OpenAi,
        PLAIN,
        schema,
        &json!({
            "type": "object",
            "properties": { "a": { "type": "string" }, "b": { "type": "integer" } },
            "required": ["b", "a"],
        }),
    );
}

/// B15: a composition that cannot be merged is refused, and the error names tool, place and keyword.
#[test]
fn roots_that_cannot_be_shown_are_refused() {
    let conflict = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "allOf": [{ "properties": { "a": { "type": "integer" } } }],
    });
    let closed = json!({
        "type": "object",
        "additionalProperties": false,
        "allOf": [{ "properties": { "a": { "type": "integer" } } }],
    });
    let refused = |schema, message: &str| {
        let error = list(Dialect::Gemini, PLAIN, schema).unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    // A branch that is alone is merged; what it brings must be able to stand at the root as well.
    refused(
        json!({ "oneOf": [{ "enum": [{ "a": 1 }] }] }),
        "the schema of test.tool cannot be shown at \"/enum\": enum at the root cannot be merged \
         because of enum; declare one object",
    );
    refused(
        conflict,
        "the schema of test.tool cannot be shown at \"/allOf\": allOf at the root cannot be merged \
         because of property \"a\"; declare one object",
    );
    refused(
        closed,
        "the schema of test.tool cannot be shown at \"/allOf\": allOf at the root cannot be merged \
         because of additionalProperties; declare one object",
    );
    refused(
        json!({ "not": { "required": ["a"] } }),
        "the schema of test.tool cannot be shown at \"/not\": not at the root cannot be merged \
         because of not; declare one object",
    );
    refused(
        json!({ "type": "array" }),
        "the schema of test.tool cannot be shown at \"\": the root is not an object schema; wrap \
         the value in one property",
    );
}

/// B15: a reference stands alone or is written out; unused definitions are removed.
#[test]
fn references() {
    let schema = json!({
        "$ref": "#/$defs/Args",
        "$defs": {
            "Args": { "type": "object", "properties": {
                "plain": { "$ref": "#/$defs/Name" },
                "noted": { "$ref": "#/$defs/Name", "description": "of the owner" },
                "inner": { "$ref": "#/properties/none/nothing", "x": 1 },
            } },
            "Name": { "type": "string", "description": "a name" },
            "Unused": { "type": "string" },
        },
    });
    let error = list(Dialect::OpenAi, PLAIN, schema.clone()).unwrap_err();
    assert_eq!(
        problem(&error),
        &SchemaProblem::MissingRef {
            reference: "#/properties/none/nothing".to_owned()
        }
    );
    let mut schema = schema;
    schema["$defs"]["Args"]["properties"]["inner"] = json!({ "type": "string" });
    let kept = json!({
        "type": "object",
        "properties": {
            "plain": { "$ref": "#/$defs/Name" },
            "noted": { "type": "string", "description": "of the owner" },
            "inner": { "type": "string" },
        },
        "$defs": { "Name": { "type": "string", "description": "a name" } },
    });
    check(Dialect::OpenAi, PLAIN, schema.clone(), &kept);
    let written_out = json!({
        "type": "OBJECT",
        "properties": {
            "plain": { "type": "STRING", "description": "a name" },
            "noted": { "type": "STRING", "description": "of the owner" },
            "inner": { "type": "STRING" },
        },
    });
    check(Dialect::Gemini, OPENAPI, schema, &written_out);
}

/// B15: definitions that are put together with `allOf`, as generators like to write them, are merged
/// into one object wherever that is possible.
#[test]
fn references_in_compositions_are_merged() {
    let schema = json!({
        "allOf": [{ "$ref": "#/$defs/Base" }],
        "properties": { "b": { "allOf": [{ "$ref": "#/$defs/Name" }], "description": "whose" } },
        "$defs": {
            "Base": { "type": "object", "properties": { "a": { "type": "string" } },
                      "required": ["a"] },
            "Name": { "type": "string", "title": "Name" },
        },
    });
    check(
        Dialect::OpenAi,
        STRICT,
        schema,
        &json!({
            "type": "object",
            "properties": {
                "a": { "type": "string" },
                "b": { "description": "whose",
                       "anyOf": [{ "type": "string", "title": "Name" }, { "type": "null" }] },
            },
            "required": ["a", "b"],
            "additionalProperties": false,
        }),
    );
    let recursive = json!({ "anyOf": [{ "$ref": "#" }] });
    let error = list(Dialect::OpenAi, PLAIN, recursive).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schema of test.tool cannot be shown at \"/anyOf\": anyOf at the root cannot be merged \
         because of $ref; declare one object"
    );
}

#[test]
fn references_that_leave_the_document_are_refused() {
    let schema = json!({ "properties": { "a": { "$ref": "https://example.com/a.json" } } });
    let error = list(Dialect::OpenAi, PLAIN, schema).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schema of test.tool cannot be shown at \"/properties/a\": $ref \
         \"https://example.com/a.json\" is not a local pointer; copy the definition into $defs"
    );
}

/// B15: a recursive schema stays if the provider has references, is refused if it has none, and is never written out
/// without end.
#[test]
fn recursive_schemas() {
    let schema = json!({
        "type": "object",
        "properties": { "tree": { "$ref": "#/$defs/Node", "description": "the root" } },
        "$defs": { "Node": { "type": "object", "properties": {
            "label": { "type": "string" },
            "next": { "$ref": "#/$defs/Node", "description": "the next one" },
        } } },
    });
    for dialect in [
        Dialect::OpenAi,
        Dialect::OpenAiResponses,
        Dialect::Anthropic,
        Dialect::Gemini,
    ] {
        let list = list(dialect, PLAIN, schema.clone()).unwrap();
        let next = &input(dialect, &list)["$defs"]["Node"]["properties"]["next"];
        assert_eq!(next, &json!({ "$ref": "#/$defs/Node" }), "{dialect}");
    }
    let error = list(Dialect::Gemini, OPENAPI, schema.clone()).unwrap_err();
    assert_eq!(
        problem(&error),
        &SchemaProblem::Recursive {
            reference: "#/$defs/Node".to_owned()
        }
    );
    let list = list(Dialect::Anthropic, STRICT, schema).unwrap();
    assert_eq!(list.json[0]["strict"], false);
    assert!(
        matches!(&list.notes[0].kind, NoteKind::NotStrict { .. }),
        "{:?}",
        list.notes
    );
}

/// Definitions that use each other many times over grow exponentially when they are written out.
#[test]
fn references_that_explode_are_refused() {
    let mut definitions = serde_json::Map::new();
    for level in 0..20 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        let both = json!({ "type": "object", "properties": { "a": next.clone(), "b": next } });
        definitions.insert(format!("d{level}"), both);
    }
    definitions.insert("d20".to_owned(), json!({ "type": "string" }));
    let schema = json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
    let error = list(Dialect::Gemini, OPENAPI, schema).unwrap_err();
    let expected = SchemaProblem::Limit {
        what: "nodes",
        found: 20_001,
        limit: 20_000,
    };
    assert_eq!(problem(&error), &expected);
}

/// B15: one type a node; each alternative keeps the keywords that concern it.
#[test]
fn several_types_become_alternatives() {
    let schema = json!({ "properties": {
        "a": { "type": ["string", "integer"], "minLength": 2, "minimum": 3, "description": "d" },
        "b": { "type": ["string", "null"], "enum": ["x", null] },
        "c": { "type": ["string", "null"], "enum": ["x"] },
        "d": { "type": ["boolean"] },
    } });
    check(
        Dialect::Gemini,
        PLAIN,
        schema,
        &json!({ "type": "object", "properties": {
            "a": { "description": "d", "anyOf": [
                { "type": "string", "minLength": 2 }, { "type": "integer", "minimum": 3 }] },
            "b": { "anyOf": [{ "type": "string", "enum": ["x"] }, { "type": "null" }] },
            "c": { "type": "string", "enum": ["x"] },
            "d": { "type": "boolean" },
        } }),
    );
}

/// B15: our own keywords never leave; a property that happens to be called like one does.
#[test]
fn extensions_are_stripped_where_they_are_keywords() {
    let dialects = [
        Dialect::OpenAi,
        Dialect::Anthropic,
        Dialect::Mcp,
        Dialect::Stub,
    ];
    for (dialect, keyword) in dialects
        .into_iter()
        .flat_map(|dialect| ext::ALL.map(|keyword| (dialect, keyword)))
    {
        let schema = json!({ "type": "object", "properties": {
            keyword: { "type": "string", keyword: "string", "default": { keyword: 1 } },
        } });
        let list = list(dialect, PLAIN, schema).unwrap();
        let expected = json!({ "type": "object", "properties": {
            keyword: { "type": "string", "default": { keyword: 1 } },
        } });
        assert_eq!(input(dialect, &list), &expected, "{dialect} {keyword}");
    }
}

/// B15: MCP takes any JSON Schema, so nothing else of it is changed.
#[test]
fn mcp_keeps_the_schema_whole() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "a": { "type": ["string", "null"], "x-mcp-header": "A" } },
        "$defs": { "unused": { "type": "string" } },
        "if": { "required": ["a"] },
        "then": { "minProperties": 1 },
    });
    check(Dialect::Mcp, PLAIN, schema.clone(), &schema);
}

/// B15: names that a provider would refuse are refused here, with the tool and the property.
#[test]
fn property_names() {
    let schema = json!({ "properties": { "a": { "type": "object", "properties": {
        "first name": { "type": "string" } } } } });
    list(Dialect::OpenAi, PLAIN, schema.clone()).unwrap();
    let error = list(Dialect::Anthropic, PLAIN, schema).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schema of test.tool cannot be shown at \"/properties/a/properties/first name\": the \
         property name \"first name\" is refused by this provider, which allows 1 to 64 of A-Z a-z \
         0-9 _ . -"
    );
    let dotted = json!({ "properties": { "a.b": { "type": "string" } } });
    list(Dialect::Anthropic, PLAIN, dotted.clone()).unwrap();
    assert!(list(Dialect::Gemini, PLAIN, dotted).is_err());
}

/// B15: each of OpenAI's limits is checked, and the error names the tool and the limit.
#[test]
fn strict_limits() {
    let text = json!({ "type": "string" });
    let many: serde_json::Map<_, _> = (0..5001).map(|n| (format!("p{n}"), text.clone())).collect();
    let values: Vec<_> = (0..1001).map(|n| format!("v{n}")).collect();
    let mut deep = text.clone();
    for _ in 0..10 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    let long = "x".repeat(120_001);
    let limit = |schema: Value, what: &str, found: usize, limit: usize| {
        let error = list(Dialect::OpenAi, STRICT, json!({ "properties": schema })).unwrap_err();
        let expected = format!("it has {found} {what}, the limit is {limit}");
        assert!(error.to_string().ends_with(&expected), "{error}");
        assert!(error.to_string().contains("test.tool"), "{error}");
    };
    limit(Value::Object(many), "properties", 5001, 5000);
    limit(
        json!({ "a": { "enum": values } }),
        "enum values",
        1001,
        1000,
    );
    limit(json!({ "a": deep }), "levels", 11, 10);
    let what = "characters in names and enum values";
    limit(json!({ "a": { "const": long } }), what, 120_002, 120_000);
}

/// B15: a schema that cannot be enforced is sent without strict mode, and a note names the keyword.
#[test]
fn what_cannot_be_strict_says_so() {
    for (schema, path, keyword) in [
        (
            json!({ "a": { "type": "object" } }),
            "/properties/a",
            "additionalProperties",
        ),
        (
            json!({ "a": { "type": "array" } }),
            "/properties/a",
            "a list of anything",
        ),
        (json!({ "a": {} }), "/properties/a", "a value of any type"),
        (
            json!({ "a": { "type": "string", "not": {} } }),
            "/properties/a",
            "not",
        ),
        (
            json!({ "a": { "type": "array", "items": true } }),
            "/properties/a/items",
            "a boolean schema",
        ),
    ] {
        for dialect in [
            Dialect::OpenAi,
            Dialect::OpenAiResponses,
            Dialect::Anthropic,
        ] {
            let list = list(dialect, STRICT, json!({ "properties": schema })).unwrap();
            let expected = NoteKind::NotStrict {
                path: path.to_owned(),
                keyword: keyword.to_owned(),
            };
            assert_eq!(list.notes[0].kind, expected, "{dialect}");
            assert!(
                list.json.to_string().contains("\"strict\":false"),
                "{dialect}"
            );
        }
    }
}

/// B15: two tools that would be one to a provider are refused, not shown twice.
#[test]
fn names_that_meet_are_refused() {
    let [first, second] = ["a.b_c", "a_b.c"].map(|name| spec(name, json!({ "type": "object" })));
    let error = Dialect::Stub.tools(&[&first, &second], &PLAIN).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.b_c and a_b.c are both called \"a_b_c\" in front of a provider; rename one"
    );
}

#[track_caller]
fn check(dialect: Dialect, options: ToolListOptions, schema: Value, expected: &Value) {
    let list = list(dialect, options, schema).unwrap();
    assert_eq!(input(dialect, &list), expected);
}

fn list(
    dialect: Dialect,
    options: ToolListOptions,
    schema: Value,
) -> Result<ToolList, ToolListError> {
    dialect.tools(&[&spec("test.tool", schema)], &options)
}

fn spec(name: &str, schema: Value) -> ToolSpec {
    ToolSpec::new(ToolName::new(name).unwrap(), "Does it.").input(Input::Schema(schema))
}

/// The schema in the one definition of a list.
fn input(dialect: Dialect, list: &ToolList) -> &Value {
    let definition = &list.json[0];
    match dialect {
        Dialect::OpenAi | Dialect::Text => &definition["function"]["parameters"],
        Dialect::OpenAiResponses | Dialect::Stub => &definition["parameters"],
        Dialect::Anthropic => &definition["input_schema"],
        Dialect::Mcp => &definition["inputSchema"],
        Dialect::Gemini => {
            let declaration = &definition["functionDeclarations"][0];
            declaration
                .get("parametersJsonSchema")
                .unwrap_or(&declaration["parameters"])
        }
    }
}

fn problem(error: &ToolListError) -> &SchemaProblem {
    match error {
        ToolListError::Schema { problem, .. } => Some(problem),
        ToolListError::NameTaken { .. } | ToolListError::BudgetTooSmall { .. } => None,
    }
    .unwrap()
}
