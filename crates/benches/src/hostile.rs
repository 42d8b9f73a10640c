//! Texts of about one megabyte that are made to be expensive: each aims at a place where a reader
//! that looks back or ahead without a bound needs time that grows with the square of the length.

use serde_json::{Value, json};

/// One such text, with the schema it is bound against.
#[derive(Debug, Clone)]
pub struct Hostile {
    /// Weakness that it aims at.
    pub name: &'static str,
    /// The schema.
    pub schema: Value,
    /// The text.
    pub text: String,
}

/// Approximate length of the texts.
pub const BYTES: usize = 1024 * 1024;

/// All of them.
pub fn all() -> Vec<Hostile> {
    let search = json!({
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
    });
    let branch = |name: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": name}, "pad": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["kind"],
        })
    };
    let names: Vec<String> = (0..16).map(|number| format!("k{number}")).collect();
    let branches: Vec<Value> = names.iter().map(|name| branch(name)).collect();
    let union = json!({"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": branches}}});
    let case = |name, text: String| Hostile {
        name,
        schema: search.clone(),
        text,
    };
    vec![
        case("open brackets", fill("", "[", "")),
        case("open objects", fill("", "{\"a\":", "")),
        case("open keys", fill("{", "\"query\": \"a\", ", "")),
        case("inner quotes", fill("{\"query\": \"", "a \"b\" ", "\"}")),
        case("quotes and commas", fill("{\"query\": '", "', '", "'}")),
        case("documents in a row", fill("", "{\"query\": \"a\"}\n", "")),
        case("open fences", fill("", "```json\n{", "")),
        case("comments", fill("{", "/* ", "")),
        case("short comments", fill("{", "// a\n", "\"query\": \"b\"}")),
        case("a long number", fill("{\"limit\": ", "9", "}")),
        case(
            "many long numbers",
            fill(
                "{\"query\": \"a\", \"limit\": [",
                &format!("{}, ", "9".repeat(399)),
                "1]}",
            ),
        ),
        case("backslashes", fill("{\"query\": \"", "\\", "\"}")),
        case("closers", fill("{\"query\": 1", "]", "}")),
        case("colons in a list", fill("{\"query\": [", ":,", "]}")),
        case("white space in a list", fill("{\"query\": [a", " ", "1]}")),
        case(
            "an escaped comma",
            fill("{\"limit\": 1, \"query\": \"", "a", "\\u002c \"limit\": 2}"),
        ),
        case("bare words", fill("{query: ", "word word, ", "}")),
        case("angle brackets", fill("", "<", "")),
        case("nested tags", fill("", "<b>", "")),
        case("nested calls", fill("", "<tool_call>", "")),
        case(
            "parameters",
            fill("<invoke name=\"f\">", "<parameter name=\"query\">", ""),
        ),
        case("open calls", fill("", "[name(", "")),
        case("open arguments", fill("", "f(query=", "")),
        case(
            "texts in texts",
            fill("{\"query\": \"", "{\\\"a\\\": ", "\"}"),
        ),
        Hostile {
            name: "keys that fold alike",
            schema: many_names(),
            text: fill("{", &alike(), "\"z\": 1}"),
        },
        Hostile {
            name: "unions in unions",
            schema: list_of_nodes(&union),
            text: fill("[", &chain(), "0]"),
        },
        Hostile {
            name: "wide unions",
            schema: list_of_nodes(&union),
            text: fill("[", "{\"kind\": \"none\"}, ", "0]"),
        },
    ]
}

/// Number of names in a declaration that is made to be expensive.
const NAMES: usize = 5_000;

/// Five thousand declared names.
fn many_names() -> Value {
    let names = (0..NAMES).map(|number| (format!("k{number}"), json!({"type": "integer"})));
    let properties: serde_json::Map<String, Value> = names.collect();
    json!({"type": "object", "properties": properties})
}

/// Five thousand members, each another spelling of one of the names; the padding makes a megabyte of them.
fn alike() -> String {
    let pad = "_".repeat(198);
    let members = (0..NAMES).map(|number| format!("\"{pad}k{}\": 1, ", number / 2));
    members.collect::<Vec<_>>().concat()
}

/// A list of the union's values.
fn list_of_nodes(union: &Value) -> Value {
    json!({
        "type": "array",
        "items": {"$ref": "#/$defs/node"},
        "$defs": union.get("$defs"),
    })
}

/// Sixty levels, each a union, of which only the innermost does not fit. The padding keeps a
/// megabyte of them below the limit on values, which would end the search at once.
fn chain() -> String {
    let pad = "x".repeat(40);
    let level = format!("{{\"kind\": \"k15\", \"pad\": \"{pad}\", \"next\": ");
    [
        &level.repeat(60),
        "{\"kind\": \"none\"}",
        &"}".repeat(60),
        ", ",
    ]
    .concat()
}

/// `start`, as many `middle` as make a megabyte, `end`.
pub(crate) fn fill(start: &str, middle: &str, end: &str) -> String {
    let times = (BYTES - start.len() - end.len()) / middle.len();
    [start, &middle.repeat(times), end].concat()
}
