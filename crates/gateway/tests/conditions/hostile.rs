//! Hostile expressions: deep, long, expensive, of wrong types. None may hang, overflow the stack or decide anything.

use countersign::Principal;
use countersign::authorize::Facts;
use countersign_gateway::policy::condition::{BYTES_MAX, Condition, Failed};
use proptest::prelude::*;
use serde_json::json;

use crate::world::order;

/// A3: an expression has a bound on its bytes, its nesting and its parts.
#[test]
fn large_expressions_are_refused() {
    let repeated = |text: &str, count: usize| text.repeat(count);
    for expression in [
        format!("{}true{}", repeated("(", 900), repeated(")", 900)),
        format!("{}1{}", repeated("[", 40), repeated("]", 40)),
        format!("{}true", repeated("!", 1000)),
        format!("{}1 == 1", repeated("-", 1000)),
        format!("{}true", repeated("! ", 900)),
        format!("args{} == 1", repeated(".a", 1000)),
        format!("{}true", repeated("true ? true : ", 140)),
        format!("{}true", repeated("true && ", 250)),
        format!("{}1 == 1", repeated("1 + ", 300)),
        format!("'{}' == ''", repeated("x", BYTES_MAX)),
        repeated("(", 2000),
        repeated("[", 31),
        repeated("{", 31),
        repeated("a[", 31),
        repeated("'", 2001),
        repeated("\\", 2000),
        repeated("\u{0}", 2000),
        repeated("𝔘", 500),
        repeated("? : ", 500),
        String::new(),
        " ".to_owned(),
        "// nothing".to_owned(),
        "1e999 > 1".to_owned(),
        "99999999999999999999 > 1".to_owned(),
        "b'x' == b'x'".to_owned(),
        "{'a': 1}.a == 1".to_owned(),
        "Message{a: 1}.a == 1".to_owned(),
        "[1].map(x, x) == [1]".to_owned(),
        "args.items.map(i, i).size() > 1".to_owned(),
        "args.items.filter(i, true).size() > 1".to_owned(),
        "args.items.exists_one(i, true)".to_owned(),
        "args.items.all(i, args.items.exists(j, true))".to_owned(),
        "[1, 2].exists(i, i > 1)".to_owned(),
        "principal.scopes.exists(s, s == 'x')".to_owned(),
        "'a'.matches('(a+)+$')".to_owned(),
        "'a' + 'b' == 'ab'".to_owned(),
        "__import__('os')".to_owned(),
        "type(1) == int".to_owned(),
        "dyn(1) == 1".to_owned(),
    ] {
        let read = Condition::parse(&expression);
        let shown: String = expression.chars().take(40).collect();
        assert!(read.is_err(), "{shown}");
    }
}

/// A3: a decision takes a bounded number of steps, whatever the arguments are, and says when it gives up.
#[test]
fn an_expensive_decision_fails_and_is_not_false() {
    let tool = order();
    let items: Vec<_> = (0..20_000)
        .map(|n| json!({"sku": "a", "price": n}))
        .collect();
    let arguments = json!({"items": items});
    let condition = Condition::parse("args.items.exists(i, i.price < 0)").unwrap();
    let held = condition.holds(&Facts {
        principal: &Principal::user("ann"),
        user_id: Some("ann"),
        tool: &tool,
        upstream: None,
        now: "2026-11-16T12:00:00Z".parse().unwrap(),
        session_id: None,
        currency: None,
        dry_run: false,
        arguments: &arguments,
        is_exact: true,
    });
    assert_eq!(held, Err(Failed::Steps));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No text makes the reader panic or hang, and what it reads is decided or fails.
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9.'\"()\\[\\]{}!<>=&|?: +*/%,-]{0,60}") {
        if let Ok(condition) = Condition::parse(&text) {
            let tool = order();
            let _ = condition.check(&[&tool]);
            let _ = condition.holds(&Facts {
                principal: &Principal::user("ann"),
                user_id: Some("ann"),
                tool: &tool,
                upstream: None,
                now: "2026-11-16T12:00:00Z".parse().unwrap(),
                session_id: None,
                currency: None,
                dry_run: false,
                arguments: &json!({}),
                is_exact: true,
            });
        }
    }
}
