//! Hostile expressions: deep, long, expensive, of wrong types. None may hang, overflow the stack or decide anything.

use countersign::Principal;
use countersign::authorize::Facts;
use countersign::contract::{Input, ToolName, ToolSpec};
use countersign::grant::Language as _;
use countersign_gateway::policy::GrantConditions;
use countersign_gateway::policy::condition::{BYTES_MAX, Condition, Failed};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, order};

/// A tool that says little about its arguments, so that types are known only when it is called.
fn loose() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "any": {},
            "list": {"type": "array"},
            "rows": {"type": "array", "items": {
                "type": "object",
                "properties": {"n": {}},
                "required": ["n"],
            }},
            "text": {"type": "string"},
        },
        "required": ["any", "list", "rows", "text"],
    });
    let name = ToolName::new("shop.any").unwrap();
    ToolSpec::new(name, "Anything.").input(Input::Schema(schema))
}

fn decide(condition: &Condition, tool: &ToolSpec, arguments: &Value) -> Result<bool, Failed> {
    condition.holds(&Facts {
        principal: &Principal::user("ann"),
        proved: None,
        user_id: Some("ann"),
        tool,
        upstream: None,
        now: "2026-11-16T12:00:00Z".parse().unwrap(),
        session_id: None,
        currency: None,
        dry_run: false,
        arguments,
        is_exact: true,
    })
}

/// Checks what becomes of an expression: `unread` if it cannot be read, `unfit` if it does not fit its tool, else the name of
/// the failure for these arguments. A grant refuses what cannot be read or does not fit, as a policy does.
#[track_caller]
fn check(expression: &str, arguments: &Value, expected: &str) {
    let tool = loose();
    let found = match Condition::parse(expression).map(|it| (it.check(&[&tool]), it)) {
        Err(_) => "unread".to_owned(),
        Ok((Err(_), _)) => "unfit".to_owned(),
        Ok((Ok(()), condition)) => format!("{:?}", decide(&condition, &tool, arguments)),
    };
    let shown: String = expression.chars().take(60).collect();
    let is_expected = found == expected || found.starts_with(&format!("Err({expected}"));
    assert!(is_expected, "{shown}: {found}, not {expected}");
    let is_refused = matches!(expected, "unread" | "unfit");
    let granted = GrantConditions.read(expression, &[&tool]);
    assert_eq!(granted.is_err(), is_refused, "{shown}");
}

/// A3: no expression that is too deep, too long, too expensive or of the wrong types decides anything.
#[test]
fn hostile_expressions_decide_nothing() {
    let repeated = |text: &str, count: usize| text.repeat(count);
    let deep = [
        format!("{}true{}", repeated("(", 900), repeated(")", 900)),
        format!("{}1{}", repeated("[", 40), repeated("]", 40)),
        format!("{}true", repeated("!", 1000)),
        format!("{}true", repeated("! ", 900)),
        format!("{}1 == 1", repeated("-", 1000)),
        format!("args{} == 1", repeated(".a", 1000)),
        format!("{}true", repeated("true ? true : ", 140)),
        repeated("(", 2000),
        repeated("[", 31),
        repeated("{", 31),
        repeated("a[", 31),
        repeated("? : ", 500),
    ];
    let long = [
        format!("{}true", repeated("true && ", 250)),
        format!("{}1 == 1", repeated("1 + ", 300)),
        format!("args.any in [{}1]", repeated("1, ", 300)),
        format!("'{}' == ''", repeated("x", BYTES_MAX)),
        repeated("'", 2001),
        repeated("\\", 2000),
        repeated("\u{0}", 2000),
        repeated("𝔘", 500),
        repeated(" ", BYTES_MAX + 1),
    ];
    for expression in deep.iter().chain(&long) {
        check(expression, &json!({}), "unread");
    }
    for expression in [
        // Nothing, or no number that can be exact.
        "",
        " ",
        "// nothing",
        "1e999 > 1",
        "99999999999999999999 > 1",
        // Parts of CEL that cost more than they look, or that a policy has no use for.
        "b'x' == b'x'",
        "{'a': 1}.a == 1",
        "Message{a: 1}.a == 1",
        "[1].map(x, x) == [1]",
        "args.list.map(i, i).size() > 1",
        "args.list.filter(i, true).size() > 1",
        "args.list.exists_one(i, true)",
        "args.list.all(i, args.list.exists(j, true))",
        "[1, 2].exists(i, i > 1)",
        "principal.scopes.exists(s, s == 'x')",
        "'a'.matches('(a+)+$')",
        "'a' + 'b' == 'ab'",
        "__import__('os')",
        "type(1) == int",
        "dyn(1) == 1",
        // Wrong types that need no tool to be seen.
        "1 && true",
        "'a' > 'b'",
        "!1",
        "now + 1 > now",
        "size(1) == 1",
        "tool.name > 1",
        "now.getHours(1) > 1",
    ] {
        check(expression, &json!({}), "unread");
    }
}

/// A3: a decision takes a bounded number of steps and knows the types of what it is given, whatever the arguments are.
/// Where it gives up, it says so, and is not false.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of arguments")]
fn hostile_arguments_decide_nothing() {
    let many: Value = (0..20_000).collect();
    let rows: Value = (0..20_000).map(|n| json!({ "n": n })).collect();
    let huge = json!("x".repeat(3_000_000));
    let mut nested = json!(1);
    for _ in 0..100 {
        nested = json!([nested]);
    }
    for (expression, member, value, expected) in [
        // Expensive.
        ("args.rows.exists(i, i.n < 0)", "rows", &rows, "Steps"),
        ("args.rows.all(i, i.n >= 0)", "rows", &rows, "Steps"),
        ("size(args.list) > 1", "list", &many, "Steps"),
        ("-1 in args.list", "list", &many, "Steps"),
        ("args.list[19999] == 1", "list", &many, "Steps"),
        ("args.text.contains('y')", "text", &huge, "Steps"),
        ("args.text.startsWith('y')", "text", &huge, "Steps"),
        ("args.text.lowerAscii() == 'y'", "text", &huge, "Steps"),
        ("size(args.text) == 1", "text", &huge, "Steps"),
        ("args.text == 'y'", "text", &huge, "Steps"),
        // Of the wrong types.
        ("args.any > 1", "any", &json!("2"), "Type"),
        ("args.any > 1", "any", &json!(null), "Type"),
        ("args.any > 1", "any", &json!([2]), "Type"),
        ("args.any == 1", "any", &json!({"a": 1}), "Type"),
        ("args.any && true", "any", &json!(1), "Type"),
        ("!args.any", "any", &json!("false"), "Type"),
        ("-args.any < 0", "any", &json!(true), "Type"),
        ("args.any + 1 > 1", "any", &json!("1"), "Type"),
        ("args.any.contains('a')", "any", &json!(["a"]), "Type"),
        (
            "args.any.exists(i, i == 1)",
            "any",
            &json!({"a": 1}),
            "Type",
        ),
        ("size(args.any) == 1", "any", &json!(1), "Type"),
        ("1 in args.any", "any", &json!("1"), "Type"),
        ("1 in args.list", "list", &json!(["1"]), "Type"),
        ("1 in args.list", "list", &nested, "Type"),
        (
            "money(args.any) > money('1', 'EUR')",
            "any",
            &json!(7),
            "Type",
        ),
        (
            "money(args.any, 'EUR') > money('1', 'EUR')",
            "any",
            &json!([]),
            "Type",
        ),
        (
            "money(args.any, 'EUR') > money('1', 'EUR')",
            "any",
            &json!("a lot"),
            "Money",
        ),
        ("args.any.a.b == 1", "any", &json!({"a": 1}), "unfit"),
        ("args.rows.all(i, i.n == 1)", "rows", &json!([1]), "Absent"),
        // No number, no time, no item.
        ("args.any > 1", "any", &json!(1e300), "Number"),
        ("1 / args.any > 1", "any", &json!(0), "Number"),
        (
            "args.any * args.any * args.any > 1",
            "any",
            &json!(u64::MAX),
            "Number",
        ),
        (
            "decimal(args.text) > 1",
            "text",
            &json!("2 pieces"),
            "Number",
        ),
        (
            "timestamp(args.text) < now",
            "text",
            &json!("tomorrow"),
            "Time",
        ),
        (
            "now.getHours(args.text) > 1",
            "text",
            &json!("Atlantis"),
            "unread",
        ),
        ("args.list[1] == 1", "list", &json!([1]), "Index"),
        ("args.list[-1] == 1", "list", &json!([1]), "Index"),
        ("args.list[0.5] == 1", "list", &json!([1]), "Index"),
    ] {
        let mut arguments = json!({"any": 1, "list": [], "rows": [], "text": ""});
        arguments[member] = value.clone();
        check(expression, &arguments, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No text makes the reader panic or hang, and what it reads is decided or fails.
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9.'\"()\\[\\]{}!<>=&|?: +*/%,-]{0,60}") {
        if let Ok(condition) = Condition::parse(&text) {
            let tool = order();
            let _ = condition.check(&[&tool]);
            let _ = decide(&condition, &tool, &json!({}));
        }
    }
}

/// A3: many rules that are each just cheap enough are bounded together: what is left undecided refuses the call. Rules that are only
/// observed take nothing from those that are enforced.
#[tokio::test]
async fn the_rules_of_a_call_are_bounded_together() {
    let rules = |mode: &str| {
        let rules = (0..400).map(|n| {
            format!(
                "[[rules]]\nname = \"r{n}\"\nmatch = \"shop.order\"\nmode = \"{mode}\"\n\
                 when = \"args.items.exists(i, i.price < 0)\"\nthen = \"deny\"\n"
            )
        });
        rules.collect::<String>()
    };
    let mut order = crate::world::arguments();
    order["items"] = (0..1000).map(|_| json!({"sku": "a", "price": 1})).collect();
    let world = World::new(&rules("enforce"));
    let reply = world.call("shop.order", &order).await;
    assert_eq!(reply["error"]["code"], "FORBIDDEN", "{reply}");
    let act = world.newest_act().await;
    let rules_of = |act: &Value| act["rules"].as_array().map_or(0, Vec::len);
    assert_eq!(
        rules_of(&act),
        1,
        "the first one that is not decided is named: {act}"
    );
    assert_eq!(act["rules"][0]["then"], "failed");
    // The same number of rules over a short list is decided.
    assert_eq!(
        world.call("shop.order", &crate::world::arguments()).await["ok"],
        true
    );
    let observed = format!(
        "{}[[rules]]\nname = \"last\"\nmatch = \"shop.order\"\nwhen = \"args.quantity > 99\"\nthen = \"deny\"\n",
        rules("observe")
    );
    let world = World::new(&observed);
    assert_eq!(world.call("shop.order", &order).await["ok"], true);
}
