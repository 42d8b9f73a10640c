//! The descriptions of the tools name the thing first, in words that a model and a person read once.

use countersign::Catalog;
use countersign::sample::{AddNote, ClearNotes, Diagnostics, ListNotes, MemorySearch, Vat};
use serde_json::{Value, json};

/// First words that make a reader wait for the name of the thing.
const RIDDLES: &[&str] = &[
    "And",
    "As",
    "Because",
    "By",
    "For so",
    "From which",
    "How",
    "In this",
    "In which",
    "It",
    "Its",
    "Of",
    "So many",
    "Such as",
    "Those",
    "To which",
    "Until when",
    "What",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whose",
    "Why",
];

/// Words with a plainer one, and marks that only Rust documentation resolves.
const BANNED: &[&str] = &[
    "anybody",
    "everybody",
    "nobody",
    "somebody",
    "something",
    "whoever",
    "is told",
    "a text",
    "thing",
    "things",
    "[`",
    "```",
    "# Example",
];

/// Faults of a description; none if it is plain.
fn faults(text: &str) -> Vec<String> {
    let words = |text: &str| format!(" {} ", text.replace(['.', ',', ';', ':', '(', ')'], " "));
    let (spaced, opening) = (words(&text.to_lowercase()), words(text));
    let riddles = RIDDLES.iter().filter(|it| opening.starts_with(&words(it)));
    let banned = BANNED
        .iter()
        .filter(|it| spaced.contains(&words(it)) || it.contains(['`', '#']) && text.contains(*it));
    riddles.chain(banned).map(ToString::to_string).collect()
}

/// Every description in a tool's declaration, of its arguments and of its answer. A member of that name has an object for a value.
fn descriptions<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => found.push(text),
                    _ => descriptions(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| descriptions(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// B20: each member of each tool's arguments and answer is described by a noun phrase, not by a riddle.
#[test]
fn descriptions_name_the_thing_first() {
    let catalog = countersign_commerce::tools(Catalog::builder())
        .tool(AddNote)
        .tool(ClearNotes)
        .tool(ListNotes)
        .tool(Diagnostics)
        .tool(MemorySearch::new(["a note"]))
        .tool(Vat)
        .build()
        .unwrap();
    let (mut all, mut complaints) = (0, Vec::new());
    for entry in catalog.list() {
        let spec = serde_json::to_value(entry.spec()).unwrap();
        let mut found = Vec::new();
        descriptions(&spec, &mut found);
        all += found.len();
        for text in found {
            let faults = faults(text);
            if !faults.is_empty() {
                complaints.push(format!("{}: {faults:?} in: {text}", spec["name"]));
            }
        }
    }
    assert!(all > 700, "{all} descriptions");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_riddle_is_found() {
    for (text, fault) in [
        ("By which way.", Some("By")),
        ("So many of one thing.", Some("So many")),
        ("A rule that had something to say.", Some("something")),
        ("See [`Method`].", Some("[`")),
        ("Byte length of the document.", None),
        ("Id of the chosen shipping option.", None),
    ] {
        assert_eq!(faults(text).first().map(String::as_str), fault, "{text}");
    }
    let spec = json!({"description": "a", "properties": {"description": {"description": "b"}}});
    let mut found = Vec::new();
    descriptions(&spec, &mut found);
    assert_eq!(found, ["a", "b"]);
}
