//! Number of tokens that the tools of the program cost a model, in each provider's format (B17).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::process::Command;

use countersign_testkit::patience::Watchdog;
use serde_json::Value;

/// Returns the list of all tools in a format, and the command's notes about it.
fn tools(format: &str) -> (Value, String) {
    let _watchdog = Watchdog::start();
    let words = ["tools", "--store", "memory", "--format", format];
    let made = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8(made.stderr).unwrap();
    (serde_json::from_slice(&made.stdout).expect(&said), said)
}

/// The names of all parameters below a schema, each with its path.
fn parameters(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let own = schema.get("properties").and_then(Value::as_object);
    for (name, below) in own.into_iter().flatten() {
        let path = format!("{path}/{name}");
        parameters(below, &path, found);
        found.insert(path);
    }
    if let Some(items) = schema.get("items") {
        parameters(items, path, found);
    }
}

fn check(format: &str, tokens_max: usize) {
    let (declared, _) = tools("jsonschema");
    let (listed, said) = tools(format);
    let about = said.split_once("about ").unwrap().1;
    let tokens: usize = about.split_once(' ').unwrap().0.parse().unwrap();
    assert!(tokens <= tokens_max, "{format}: {tokens} tokens");
    let mut wanted = BTreeSet::new();
    for (name, schema) in declared.as_object().unwrap() {
        parameters(schema, &name.replace('.', "_"), &mut wanted);
    }
    assert!(wanted.len() > 100, "{wanted:?}");
    let mut found = BTreeSet::new();
    let of_gemini = listed.pointer("/0/functionDeclarations");
    for tool in of_gemini.unwrap_or(&listed).as_array().unwrap() {
        let tool = tool.get("function").unwrap_or(tool);
        let places = [
            "parameters",
            "parametersJsonSchema",
            "input_schema",
            "inputSchema",
        ];
        let schema = places.iter().find_map(|place| tool.get(place)).unwrap();
        parameters(schema, tool["name"].as_str().unwrap(), &mut found);
    }
    found.retain(|path| !path.ends_with("/again"));
    assert_eq!(found, wanted, "{format}");
}

/// B17: a list stays within its budget, and no parameter is lost for it.
#[test]
fn every_list_is_cheap_and_whole() {
    check("openai", 6_800);
    check("openai-responses", 6_800);
    check("anthropic", 6_550);
    check("gemini", 6_600);
    check("mcp", 9_750);
}
