//! The published vectors of RFC 8785, the refusals with their places, and the laws.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Number, Value, json};

use super::*;

/// Both ways in must give the same text.
#[track_caller]
fn check(input: &str, expected: &str) {
    assert_eq!(from_json_text(input).as_deref(), Ok(expected));
    assert_eq!(from_json_text(expected).as_deref(), Ok(expected));
    let value: Value = serde_json::from_str(input).unwrap();
    assert_eq!(to_string(&value).as_deref(), Ok(expected));
}

#[track_caller]
fn check_refused(input: &str, expected: &str) {
    assert_eq!(from_json_text(input).unwrap_err().to_string(), expected);
}

#[test]
fn vector_arrays() {
    check(
        "[\n  56,\n  {\n    \"d\": true,\n    \"10\": null,\n    \"1\": [ ]\n  }\n]",
        r#"[56,{"1":[],"10":null,"d":true}]"#,
    );
}

/// The order of keys follows no language's.
#[test]
fn vector_french() {
    check(
        r#"{"peach": "This sorting order", "péché": "is wrong according to French",
            "pêche": "but canonicalization MUST", "sin":   "ingnore locale"}"#,
        "{\"peach\":\"This sorting order\",\"péché\":\"is wrong according to French\",\
         \"pêche\":\"but canonicalization MUST\",\"sin\":\"ingnore locale\"}",
    );
}

#[test]
fn vector_structures() {
    check(
        r#"{ "1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty",
             "a": { }, "111": [ { } ], "A": { } }"#,
        r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{}],"A":{},"a":{}}"#,
    );
}

/// Texts are not normalised.
#[test]
fn vector_unicode() {
    check(
        r#"{"Unnormalized Unicode":"\u1e0d\u0307"}"#,
        "{\"Unnormalized Unicode\":\"\u{1e0d}\u{307}\"}",
    );
}

#[test]
fn vector_values() {
    check(
        r#"{ "numbers": [1E30, 4.50, 333333333.33333329, 2e-3, 0.000000000000000000000000001],
             "escaping": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
             "literals": [null, true, false] }"#,
        "{\"escaping\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\",\"literals\":[null,true,false],\
         \"numbers\":[1e+30,4.5,333333333.3333333,0.002,1e-27]}",
    );
}

#[test]
fn vector_weird() {
    check(
        r#"{"\u20ac": "Euro Sign", "1": "One", "\u0080": "Control\u007f",
            "\ud83d\ude02": "Smiley", "\u00f6": "Latin Small Letter O With Diaeresis",
            "\ufb33": "Hebrew Letter Dalet With Dagesh", "</script>": "Browser Challenge"}"#,
        "{\"1\":\"One\",\"</script>\":\"Browser Challenge\",\"\u{80}\":\"Control\u{7f}\",\
         \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😂\":\"Smiley\",\
         \"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
}

/// RFC 8785 §3.2.3: by UTF-16 code units, so the emoji stands before the Hebrew letter.
#[test]
fn the_sorting_example_of_the_rfc() {
    check(
        r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter",
            "1": "One", "\ud83d\ude00": "Emoji", "\u0080": "Control", "\u00f6": "o"}"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"o\",\
         \"€\":\"Euro Sign\",\"😀\":\"Emoji\",\"\u{fb33}\":\"Hebrew Letter\"}",
    );
}

/// An escaped key sorts by the character that it stands for: `"` is 22, `\` is 5C, a tab is 09.
#[test]
fn escaped_keys_sort_by_their_meaning() {
    check(
        r#"{"a": 1, "\\": 2, "\"": 3, "\t": 4, "\u0001": 5, "[": 6, "!": 7}"#,
        r#"{"\u0001":5,"\t":4,"!":7,"\"":3,"[":6,"\\":2,"a":1}"#,
    );
}

/// RFC 8785 appendix B: bit patterns of doubles and their texts.
#[test]
fn number_table_of_the_rfc() {
    for (bits, text) in [
        (0x0000_0000_0000_0000, Some("0")),
        (0x8000_0000_0000_0000, Some("0")),
        (0x0000_0000_0000_0001, Some("5e-324")),
        (0x8000_0000_0000_0001, Some("-5e-324")),
        (0x7fef_ffff_ffff_ffff, Some("1.7976931348623157e+308")),
        (0xffef_ffff_ffff_ffff, Some("-1.7976931348623157e+308")),
        (0x4340_0000_0000_0000, Some("9007199254740992")),
        (0xc340_0000_0000_0000, Some("-9007199254740992")),
        (0x4430_0000_0000_0000, Some("295147905179352830000")),
        (0x7fff_ffff_ffff_ffff, None),
        (0x7ff0_0000_0000_0000, None),
        (0x44b5_2d02_c7e1_4af5, Some("9.999999999999997e+22")),
        (0x44b5_2d02_c7e1_4af6, Some("1e+23")),
        (0x44b5_2d02_c7e1_4af7, Some("1.0000000000000001e+23")),
        (0x444b_1ae4_d6e2_ef4e, Some("999999999999999700000")),
        (0x444b_1ae4_d6e2_ef4f, Some("999999999999999900000")),
        (0x444b_1ae4_d6e2_ef50, Some("1e+21")),
        (0x3eb0_c6f7_a0b5_ed8c, Some("9.999999999999997e-7")),
        (0x3eb0_c6f7_a0b5_ed8d, Some("0.000001")),
        (0x41b3_de43_5555_5553, Some("333333333.3333332")),
        (0x41b3_de43_5555_5554, Some("333333333.33333325")),
        (0x41b3_de43_5555_5555, Some("333333333.3333333")),
        (0x41b3_de43_5555_5556, Some("333333333.3333334")),
        (0x41b3_de43_5555_5557, Some("333333333.33333343")),
        (0xbecb_f647_612f_3696, Some("-0.0000033333333333333333")),
        (0x4314_3ff3_c1cb_0959, Some("1424953923781206.2")),
    ] {
        let number = f64::from_bits(bits);
        assert_eq!(number_to_string(number).as_deref(), text, "{bits:#x}");
    }
}

/// Two different whole numbers never get the same bytes: beyond 2^53 − 1 they are refused, in
/// every spelling whose text would be digits alone.
#[test]
fn whole_numbers_beyond_the_limit_are_refused() {
    check(
        "[9007199254740991,-9007199254740991]",
        "[9007199254740991,-9007199254740991]",
    );
    check("[1e21,-1E+25]", "[1e+21,-1e+25]");
    for number in [
        "9007199254740992",
        "-9007199254740992",
        "9007199254740993",
        "12345678901234567890",
        "18446744073709551615",
        "9007199254740992.0",
        "1e20",
        "999999999999999900000.0",
    ] {
        let text = format!("{{\"id\":[0,{number}]}}");
        let error = from_json_text(&text).unwrap_err();
        let (path, spelt) = ("/id/1".to_owned(), number.to_owned());
        assert_eq!(
            error,
            Error::IntegerTooLarge {
                path,
                number: spelt
            }
        );
        let value: Value = serde_json::from_str(&text).unwrap();
        let error = to_string(&value).unwrap_err();
        assert!(
            matches!(error, Error::IntegerTooLarge { .. }),
            "{number}: {error}"
        );
        assert_eq!(error.path(), "/id/1");
    }
    // The text still tells these from 1e+30, a `Value` no longer can.
    check_refused(
        "1000000000000000000000000000001",
        "the whole number 1000000000000000000000000000001 at \"\" is beyond ±9007199254740991, \
         where doubles cannot tell neighbours apart; send it as a text",
    );
}

#[test]
fn refusals_name_their_place() {
    for (input, expected) in [
        (
            r#"{"a": {"b": 1, "b": 1}}"#,
            r#"the member "/a/b" is there twice; send it once"#,
        ),
        (
            r#"{"b": 1, "a": 2, "\u0062": 3}"#,
            r#"the member "/b" is there twice; send it once"#,
        ),
        (
            r#"[{"x/y~": "\ud800"}]"#,
            r#"half a surrogate pair in the text at "/0/x~1y~0", byte 11; send whole characters"#,
        ),
        (
            r#"{"k": {"\udc00": 1}}"#,
            r#"half a surrogate pair in the text at "/k", byte 8; send whole characters"#,
        ),
        (
            r#"["\ud83dA"]"#,
            r#"half a surrogate pair in the text at "/0", byte 2; send whole characters"#,
        ),
        (
            r#"["\ud83d\u0041"]"#,
            r#"half a surrogate pair in the text at "/0", byte 2; send whole characters"#,
        ),
        (
            r#"{"a": {}, "b": [1, 1e400]}"#,
            r#"the number 1e400 at "/b/1" is too large for a double; send it as a string"#,
        ),
        (
            r#"{"a": [1 2]}"#,
            r#"not JSON at byte 9 ("/a/0"): expected a comma or ]"#,
        ),
        (
            r#"{"a": 1,}"#,
            r#"not JSON at byte 8 ("/a"): expected a key"#,
        ),
    ] {
        check_refused(input, expected);
    }
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{,}",
        "{a:1}",
        "{\"a\" 1}",
        "[}",
        "{]",
        "]",
        "}",
        "1 2",
        "[] []",
        "tru",
        "nul",
        "True",
        "NaN",
        "Infinity",
        "-",
        "-a",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1.e5",
        "1e",
        "1e+",
        "0x10",
        "'a'",
        "\"a",
        "\"\u{1}\"",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\",
        "\u{feff}1",
        "/**/1",
        "[1,,2]",
        "{\"a\":1,,}",
        "\u{a0}1",
    ] {
        let error = from_json_text(text);
        assert!(
            matches!(error, Err(Error::Syntax { .. })),
            "{text:?}: {error:?}"
        );
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text:?}");
    }
}

/// `serde_json` reads `{"$serde_json::private::RawValue": "[1]"}` as `[1]`: one text, two readings.
#[test]
fn keys_that_serde_json_reads_as_something_else_are_refused() {
    for key in [
        "$serde_json::private::RawValue",
        "$serde_json::private::Number",
    ] {
        let path = format!("/a/{key}");
        let text = format!(r#"{{"a": {{"b": 1, "\u0024{}": "[1]"}}}}"#, &key[1..]);
        let refused = Error::ReservedKey { path };
        assert_eq!(from_json_text(&text), Err(refused.clone()));
        let mut inner = json!({"b": 1});
        inner[key] = json!("[1]");
        assert_eq!(to_string(&json!({ "a": inner })), Err(refused));
    }
    check(r#"{"$serde_json": 1}"#, r#"{"$serde_json":1}"#);
}

/// A document of any depth is refused without using up the stack.
#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    check(&nested(DEPTH_MAX), &nested(DEPTH_MAX));
    let error = from_json_text(&nested(1_000_000)).unwrap_err();
    assert_eq!(
        error,
        Error::TooDeep {
            path: "/0".repeat(DEPTH_MAX)
        }
    );

    let mut value = json!(1);
    for _ in 0..=DEPTH_MAX {
        value = json!({ "k": value });
    }
    let mut out = b"kept".to_vec();
    let error = write(&value, &mut out).unwrap_err();
    assert_eq!(
        error,
        Error::TooDeep {
            path: "/k".repeat(DEPTH_MAX)
        }
    );
    assert_eq!(out, b"kept");
}

#[test]
fn writing_appends() {
    let mut out = b"x=".to_vec();
    write(&json!({"b": {"d": 1, "c": 2}, "a": []}), &mut out).unwrap();
    assert_eq!(out, br#"x={"a":[],"b":{"c":2,"d":1}}"#);
}

/// Writes the canonical form by the same rules in the plainest way: recursive, with a tree of decoded keys.
fn plainly(value: &Value) -> String {
    match value {
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(plainly).collect::<Vec<_>>().join(",")
        ),
        Value::Object(members) => {
            let sorted: BTreeMap<Vec<u16>, String> = members
                .iter()
                .map(|(key, value)| {
                    let member = format!("{}:{}", plainly(&json!(key)), plainly(value));
                    (key.encode_utf16().collect(), member)
                })
                .collect();
            format!("{{{}}}", sorted.into_values().collect::<Vec<_>>().join(","))
        }
        Value::Number(number) => number_to_string(number.as_f64().unwrap()).unwrap(),
        // serde_json escapes texts exactly as the RFC asks for.
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
    }
}

fn double() -> impl Strategy<Value = f64> {
    let writable = |x: &f64| !(9_007_199_254_740_992.0..1e21).contains(&x.abs());
    prop_oneof![any::<f64>(), -1e6..1e6].prop_filter("refused on purpose", writable)
}

fn text() -> impl Strategy<Value = String> {
    let odd =
        "[\"\\\\/\u{0}-\u{1f}\u{7f}a-c\u{e000}-\u{e002}\u{ffff}\u{1f600}-\u{1f602}\u{d7ff}]{0,4}";
    prop_oneof![odd, "[a-e]{1,2}", any::<String>()]
}

fn document() -> impl Strategy<Value = Value> {
    let limit = i64::try_from(INTEGER_MAX).unwrap();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-limit..=limit).prop_map(Value::from),
        double().prop_map(|x| Number::from_f64(x).map_or(Value::Null, Value::Number)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A JSON text of a value with its members in another order and space between its tokens.
fn shuffled(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!(
                "[ {} ]",
                items.iter().map(shuffled).collect::<Vec<_>>().join(" ,\n")
            )
        }
        Value::Object(members) => {
            let member =
                |(key, value): (&String, &Value)| format!("{}\t: {}", json!(key), shuffled(value));
            format!(
                "{{ {} }}",
                members
                    .iter()
                    .rev()
                    .map(member)
                    .collect::<Vec<_>>()
                    .join(" ,")
            )
        }
        scalar => scalar.to_string(),
    }
}

proptest! {
    #[test]
    fn agrees_with_the_plain_reading(value in document()) {
        prop_assert_eq!(to_string(&value), Ok(plainly(&value)));
    }

    #[test]
    fn text_and_value_agree_in_any_order(value in document()) {
        let canonical = to_string(&value).unwrap();
        prop_assert_eq!(from_json_text(&value.to_string()), Ok(canonical.clone()));
        prop_assert_eq!(from_json_text(&shuffled(&value)), Ok(canonical.clone()));
    }

    #[test]
    fn idempotent(value in document()) {
        let canonical = to_string(&value).unwrap();
        prop_assert_eq!(from_json_text(&canonical), Ok(canonical.clone()));
    }

    /// Only the spelling changes: read back, it is the same value.
    #[test]
    fn means_the_same(value in document()) {
        let read: Value = serde_json::from_str(&to_string(&value).unwrap()).unwrap();
        prop_assert!(same(&value, &read), "{} became {}", value, read);
    }

    #[test]
    fn never_panics(text in "[\\[\\]{}:,\" \\\\u0-9a-fntr.+eE-]{0,40}") {
        let ours = from_json_text(&text).map(|_| ());
        let theirs = serde_json::from_str::<Value>(&text).map(|_| ());
        if let Err(Error::Syntax { .. } | Error::LoneSurrogate { .. }) = &ours {
            prop_assert!(theirs.is_err(), "{text:?}: {ours:?}");
        } else if ours.is_ok() {
            prop_assert!(theirs.is_ok(), "{text:?}: {theirs:?}");
        }
    }
}

/// Equal as JSON, to the last bit of a double: `1.0` is 1, and `-0.0` is 0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
