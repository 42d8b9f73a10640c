//! Filters: their permissions, their costs, and the results of the functions.

use serde_json::json;

use super::*;

#[track_caller]
fn check_model(text: &str, expected: Result<Value, &str>) {
    let answer = json!({"items": [
        {"id": 1, "name": "Ann", "tags": ["a", "b"]}, {"id": 2, "name": "Bob", "tags": []},
    ]});
    let made = Filter::parse_for_model(text).and_then(|filter| filter.apply(&answer));
    let made = made.map_err(|error| error.to_string());
    assert_eq!(made, expected.map_err(str::to_owned), "{text}");
}

#[test]
fn a_model_can_project() {
    check_model(".items | map({id})", Ok(json!([{"id": 1}, {"id": 2}])));
    check_model(".items[] | .name", Ok(json!(["Ann", "Bob"])));
    check_model(".items[0].tags | length", Ok(json!(2)));
    check_model(
        "[.items[] | select(.id > 1 and (.name | startswith(\"B\")))]",
        Ok(json!([{"id": 2, "name": "Bob", "tags": []}])),
    );
    check_model(
        ".items | {names: map(.name), first: .[0].id}",
        Ok(json!({"names": ["Ann", "Bob"], "first": 1})),
    );
    check_model(".none", Ok(json!(null)));
}

/// A filter that could run for ever, take all memory or read the environment is refused before the call.
#[test]
fn a_model_cannot_loop_or_look_outside() {
    for (text, name) in [
        ("def f: f; f", "def"),
        ("repeat(.)", "repeat"),
        ("range(1e9)", "range"),
        ("reduce .items[] as $x (0; . + 1)", "reduce"),
        (".items[] as $a | $a", "as"),
        ("env", "env"),
        ("..", ".."),
        ("\"a\" * 1000000000", "*"),
        ("\"\\(.)\\(.)\"", "an interpolated text"),
        (
            "{a: .items[], b: .items[]}",
            "a part with several results (put it into [ ])",
        ),
        (
            ".items[] + .items[]",
            "a part with several results (put it into [ ])",
        ),
        ("halt", "halt"),
        ("@json \"x\"", "@json"),
        (".a = 1", "an assignment"),
    ] {
        check_model(text, Err(&format!("{name} cannot be used here")));
    }
    let doubling = ". + . | ".repeat(20) + ".";
    check_model(
        &doubling,
        Err("it is too complicated: use fewer commas, operators and pipes"),
    );
    check_model(".items[", Err("it is not a jq filter: near \".items[\""));
    check_model(
        ".items | .name",
        Err("a step of it got a value of another type"),
    );
}

#[test]
fn a_filter_of_the_configuration_cannot_look_outside() {
    for text in [
        "env",
        "now",
        "halt",
        "debug",
        "input",
        "$ENV.HOME",
        "map(env)",
    ] {
        assert!(Filter::parse(text).is_err(), "{text}");
    }
    let sum = Filter::parse("reduce .[] as $x (0; . + $x)").unwrap();
    assert_eq!(sum.apply(&json!([1, 2, 3])).unwrap(), json!(6));
}

/// B17: a filter that may never end is refused before the call.
#[test]
fn an_endless_filter_is_refused() {
    for text in [
        "def f: f; f",
        "def f: def g: f; g; f",
        "repeat(.)",
        "[repeat(.)]",
        "until(false; .)",
        "while(true; .)",
        "recurse(.)",
    ] {
        let refused = Filter::parse(text).map(|_| ()).unwrap_err().to_string();
        assert!(
            refused.ends_with("cannot be used here"),
            "{text}: {refused}"
        );
    }
    // A function that is called from within another does not call itself.
    let twice = Filter::parse("def a: . + 1; def b: a | a; b").unwrap();
    assert_eq!(twice.apply(&json!(1)).unwrap(), json!(3));
}

/// B17: no filter exceeds its budget, even if its author or the upstream is hostile.
#[test]
fn a_filter_is_bounded_in_time_and_memory() {
    let many = json!({
        "items": (1..=40_000).collect::<Vec<_>>(),
        "price": "x".repeat(1_000),
        "quantity": 1_000_000_000,
        "text": "ab".repeat(200_000),
        "deep": "[".repeat(200_000),
    });
    for text in [
        ".price * .quantity",
        "[range(.quantity)]",
        "[range(1; 1e300; 0)] | length",
        "last(range(1e12))",
        ".items | . + . | . + . | . + . | . + . | . + . | . + .",
        ".items | map(., .) | map(., .) | map(., .) | map(., .) | map(., .)",
        ".items | map({a: {a: {a: {a: {a: .}}}}})",
        ".items | contains(.)",
        ".items | index(.)",
        ".items as $i | [$i[] | $i]  | tojson",
        "[.items[:9] | combinations(9)]",
        "reduce range(1e9) as $i (0; . + 1)",
        "reduce range(60) as $i (1; [., .]) | tostring",
        "reduce range(100000) as $i (1; [.])",
        "reduce range(100000) as $i (1; {a: .}) | tojson",
        "reduce range(100000) as $i ({}; .a |= {b: .})",
        "reduce range(100000) as $i ([0]; .[0] |= [.])",
        ".deep | fromjson",
        ".text / \"\" | map(. * 1000) | add",
    ] {
        let made = Filter::parse(text).unwrap().apply(&many);
        assert!(
            matches!(
                made,
                Err(FilterError::TooCostly | FilterError::TooLarge | FilterError::Failed { .. })
            ),
            "{text}: {} bytes",
            made.unwrap().to_string().len()
        );
    }
    for text in [
        ".items | . + . | . + . | . + . | . + . | . + . | . + .",
        ".items | map(., .) | map(., .) | map(., .) | map(., .) | map(., .)",
        ".items | map({a: {a: {a: {a: {a: .}}}}})",
        ".items | contains(.)",
    ] {
        let made = Filter::parse_for_model(text).unwrap().apply(&many);
        assert_eq!(made, Err(FilterError::TooCostly), "{text}");
    }
    // What is usual is far below.
    let usual = Filter::parse(".items | map(select(. > 0)) | length").unwrap();
    assert_eq!(usual.apply(&many).unwrap(), json!(40_000));
}

/// The functions that are made anew here do what jq says of them.
#[test]
fn functions_over_values() {
    let answer = json!({
        "a": [3, 1, 2], "s": "h\u{e9}llo", "o": {"k": {"n": 1}, "z": null}, "n": -2.5, "j": "{\"x\":[1.5]}",
    });
    let check = |text: &str, expected: Value| {
        let made = Filter::parse(text).unwrap().apply(&answer);
        assert_eq!(made, Ok(expected), "{text}");
    };
    check("[.a, .s, .o, .n, null | length]", json!([3, 5, 2, 2.5, 0]));
    check(".a | sort | reverse", json!([3, 2, 1]));
    check(".a | has(2), has(3)", json!([true, false]));
    check(".o | has(\"k\"), has(\"q\")", json!([true, false]));
    check(
        ".o | contains({k: {n: 1}}), contains({k: {n: 2}})",
        json!([true, false]),
    );
    check(".s | contains(\"llo\"), index(\"l\")", json!([true, 2]));
    check(".a | index(2), indices(9)", json!([2, []]));
    check(".j | fromjson | .x[0]", json!(1.5));
    check(".o | tojson", json!("{\"k\":{\"n\":1},\"z\":null}"));
    check("\"\\(.a) \\(.s)\"", json!("[3,1,2] h\u{e9}llo"));
    check(".a[1:] + .a[:1]", json!([1, 2, 3]));
    check(
        ".o | del(.z) | .k.n = 5 | .new |= 1",
        json!({"k": {"n": 5}, "new": 1}),
    );
    check(".a | map(. * 2) | add", json!(12));
    check(".a | .[0] = 9 | .[-1] |= . + 1", json!([9, 1, 3]));
    check(".o | to_entries | map(.key)", json!(["k", "z"]));
    check(
        "[.a[] | {(tostring): .}] | add",
        json!({"1": 1, "2": 2, "3": 3}),
    );
    check(".s | ascii_upcase | .[1:3]", json!("\u{e9}L"));
    check("[.s / \"l\" | .[]]", json!(["h\u{e9}", "", "o"]));
    check(
        ".a | min, max, (group_by(. > 1) | length), (unique | length)",
        json!([1, 3, 2, 3]),
    );
    check("[paths] | length", json!(11));
    check(".o | map_values(. // 0)", json!({"k": {"n": 1}, "z": 0}));
    check("[.. | numbers]", json!([3, 1, 2, -2.5, 1]));
}

/// Integers beyond a double are handed on as they are.
#[test]
fn numbers_survive_a_filter() {
    let filter = Filter::parse(".a").unwrap();
    assert_eq!(
        filter.apply(&json!({"a": u64::MAX})).unwrap(),
        json!(u64::MAX)
    );
    assert_eq!(filter.apply(&json!({"a": 1.10})).unwrap(), json!(1.1));
}
