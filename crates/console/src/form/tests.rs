//! Forms, drawn from a schema and read back.

use countersign::contract::Language;
use serde_json::json;

use super::*;
use crate::words;

/// The schema of every kind of field.
fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["items", "until"],
        "properties": {
            "note": {"type": "string"},
            "fast": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "days": {"type": "array", "items": {"type": "integer"}},
            "size": {"enum": ["small", "large"]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "rows": {"type": "object", "additionalProperties": {"type": "array"}},
            "to": {"type": "object", "properties": {"country": {"type": "string"}}},
            "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "date-time"},
            "nick": {"type": ["string", "null"]},
            "until": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "description": "the last day"},
            "limit": {"type": "object", "properties": {
                "amount": {"type": "integer"}, "currency": {"type": "string"}
            }},
            "photo": {"type": "string", "x-kind": "attachment_reference"},
            "rating": {"enum": [1, 2, 3]},
            "mode": {"enum": ["auto", 1, true, null]},
            "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
            "levels": {"type": "array", "items": {"$ref": "#/$defs/level"}},
            "dates": {"type": "array", "items": {"type": "string", "format": "date"}},
            "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
        },
        "$defs": {"level": {"type": "integer", "enum": [10, 20]}, "item": {"type": "object", "properties": {
            "sku": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1},
            "labels": {"type": "object", "additionalProperties": {"type": "number"}}
        }}},
    })
}

fn drawn(given: &Value) -> Vec<Field> {
    fields(&schema(), given, &BTreeMap::new())
}

fn of<'f>(fields: &'f [Field], label: &str) -> &'f Field {
    let found = fields.iter().find(|field| field.label == label);
    found.unwrap_or_else(|| panic!("no {label}"))
}

/// B17: nested objects, lists, maps, dates, numbers and nullable values come back as they were drawn.
#[test]
fn what_was_drawn_comes_back() {
    let given = json!({
        "items": [
            {"sku": "A", "quantity": 2, "labels": {"1": 0.5}},
            {"sku": "B", "quantity": 12_345_678_901_234_567_890_u64},
        ],
        "until": null,
        "note": "a", "fast": false, "tags": ["x", "y"], "days": [1, 2], "size": "small",
        "labels": {"k": "v", "0": "w", "a/b": "x"}, "counts": {"n": 3}, "rows": {"r": [1, null]},
        "to": {"country": "DE"}, "day": "2026-11-17", "at": "2026-11-17T14:41:00Z", "nick": "n",
        "limit": {"amount": 1, "currency": "EUR"}, "photo": "file_1",
        "rating": 2, "mode": 1, "colours": ["blue", "red"], "levels": [20],
        "dates": ["2026-11-17", "soon"], "times": ["2026-11-17T14:41:00Z"],
    });
    let fields = drawn(&given);
    assert_eq!(fields[0].label, "items");
    let mut sent = Vec::new();
    collect(&fields, &mut sent);
    assert_eq!(arguments(&sent), given);
}

fn collect(fields: &[Field], sent: &mut Vec<(String, String)>) {
    for field in fields {
        match &field.kind {
            Kind::Group(fields) => collect(fields, sent),
            Kind::List(items) => items.iter().for_each(|fields| collect(fields, sent)),
            Kind::Map(entries) => {
                for entry in entries {
                    sent.push((entry.value.key_name(), entry.key.clone()));
                    sent.push((entry.value.name(), entry.value.value.clone()));
                }
            }
            _ => sent.push((field.name(), field.value.clone())),
        }
    }
}

/// Each kind has its input, and says what it is.
#[test]
fn kinds_are_drawn() {
    let fields = drawn(&json!({"labels": {"colour": "red"}}));
    let html = |label: &str| of(&fields, label).html(words::of(Language::English));
    for (label, parts) in [
        ("day", &["type=\"date\"", ">date<"][..]),
        ("at", &["type=\"datetime-local\"", "UTC"]),
        (
            "labels",
            &[
                "name=\"k:/labels/0\" value=\"colour\"",
                "name=\"ks:/labels/0\" value=\"red\"",
                "data-add=\"/labels\"",
            ],
        ),
        ("counts", &["name=\"k:/counts/0\"", "name=\"kn:/counts/0\""]),
        ("days", &["name=\"r:/days\"", "integer[]"]),
        ("nick", &["name=\"s:/nick\"", "string | null"]),
        (
            "until",
            &["name=\"s?:/until\"", "date | null", "the last day"],
        ),
        ("limit", &["class=\"money\"", "Money"]),
        ("photo", &["Attachment"]),
        (
            "rating",
            &["<select", "name=\"n:/rating\"", "<option>2</option>"],
        ),
        (
            "mode",
            &["name=\"j:/mode\"", "&#34;auto&#34;", "<option>1</option>"],
        ),
        (
            "colours",
            &["<select", "name=\"s:/colours/0\"", "data-add=\"/colours\""],
        ),
        ("levels", &["<select", "name=\"n:/levels/0\""]),
        ("dates", &["type=\"date\"", "name=\"s:/dates/0\""]),
        ("times", &["type=\"datetime-local\"", "name=\"t:/times/0\""]),
    ] {
        let html = html(label);
        for part in parts {
            assert!(html.contains(part), "{label} has no {part}: {html}");
        }
    }
}

/// A browser shows nothing where it cannot read a time, so the text stays one.
#[test]
fn a_text_that_is_no_time_is_kept() {
    let given = json!({"day": "soon", "at": "2026-11-17T14:41:00.5Z"});
    let fields = drawn(&given);
    let kept = |label: &str| {
        (
            of(&fields, label).input_type(),
            of(&fields, label).value.clone(),
        )
    };
    assert_eq!(kept("day"), ("text", "soon".to_owned()));
    assert_eq!(kept("at"), ("text", "2026-11-17T14:41:00.5Z".to_owned()));
    // Other zones are shown in the one that the form says.
    let fields = drawn(&json!({"at": "2026-11-17T14:41:00+02:00"}));
    let at = of(&fields, "at");
    assert_eq!(
        (at.input_type(), at.value.as_str()),
        ("datetime-local", "2026-11-17T12:41:00")
    );
}

/// The binder gets what a person wrote where that is no number, and nothing for an empty field.
#[test]
fn a_text_stays_what_it_is() {
    let sent = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let made = arguments(&[
        sent("n:/days", "two"),
        sent("n:/limit", " 3 "),
        sent("s:/query", "3"),
        sent("s:/empty", "  "),
        sent("s?:/null", " "),
        sent("j:/broken", "{a: 1"),
        sent("l:/tags", "a\n\nb\r\n"),
        sent("r:/numbers", "1\ntwo\n\n2.50"),
        sent("t:/at", "2026-11-17T14:41"),
        sent("t:/later", "tomorrow"),
        sent("n:/list/2/x", "1"),
        sent("k:/map/0", "7"),
        sent("ks:/map/0", "seven"),
        sent("k:/map/1", "unused"),
        sent("ks:/map/1", ""),
        sent("csrf", "x"),
        sent("q:/x", "1"),
        sent("n:/list/999999999/x", "1"),
    ]);
    let expected = json!({
        "days": "two", "limit": 3, "query": "3", "null": null, "broken": "{a: 1", "tags": ["a", "b"],
        "numbers": [1, "two", 2.50], "at": "2026-11-17T14:41:00Z", "later": "tomorrow",
        "list": [{"x": 1}], "map": {"7": "seven"},
    });
    let text = digits::text(&made);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert!(text.contains("2.50"), "{text}");
}

#[test]
fn an_issue_stands_at_its_field() {
    let issues = BTreeMap::from([
        ("/counts/n".to_owned(), vec!["no integer".to_owned()]),
        ("/note".to_owned(), vec!["too long".to_owned()]),
    ]);
    let given = json!({"counts": {"n": "two"}, "note": "x"});
    let fields = fields(&schema(), &given, &issues);
    assert_eq!(of(&fields, "note").issues, ["too long"]);
    let entries = of(&fields, "counts").map().unwrap();
    assert_eq!(entries[0].value.issues, ["no integer"]);
    assert_eq!(entries[0].value.value, "two");
}

/// Digits of a number come back as they were written, from a field, from lines and from JSON; a wrong choice is shown.
#[test]
fn digits_and_wrong_choices_are_kept() {
    let sent = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let made = arguments(&[
        sent("n:/price", "0.10"),
        sent("r:/sizes", "1.50\n2"),
        sent("j:/rows", r#"{"r": 1234567890.12345678901234567890}"#),
    ]);
    let text = r#"{"price":0.10,"sizes":[1.50,2],"rows":{"r":1234567890.12345678901234567890}}"#;
    // A map may be sorted.
    for part in [
        r#""price":0.10"#,
        "[1.50,2]",
        "1234567890.12345678901234567890",
    ] {
        assert!(
            digits::text(&made).contains(part),
            "{}",
            digits::text(&made)
        );
    }
    let schema = json!({"type": "object", "properties": {
        "price": {"type": "number"}, "sizes": {"type": "array", "items": {"type": "number"}}, "rows": {},
    }});
    let fields = fields(&schema, &digits::read(text).unwrap(), &BTreeMap::new());
    assert_eq!(of(&fields, "price").value, "0.10");
    assert_eq!(of(&fields, "sizes").value, "1.50\n2");
    assert_eq!(
        of(&fields, "rows").value,
        r#"{"r":1234567890.12345678901234567890}"#
    );
    let fields = drawn(&json!({"size": "huge", "fast": "perhaps", "colours": ["green"]}));
    for (label, option) in [
        ("size", "<option selected>huge</option>"),
        ("fast", "<option selected>perhaps</option>"),
        ("colours", "<option selected>green</option>"),
    ] {
        let html = of(&fields, label).html(words::of(Language::English));
        assert!(html.contains(option), "{html}");
    }
}
