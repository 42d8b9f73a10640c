//! Expressions alone: what they are checked for, and what they decide.

use countersign::Principal;
use countersign::authorize::Facts;
use countersign::contract::ToolSpec;
use countersign_gateway::policy::Policy;
use countersign_gateway::policy::condition::{Condition, Failed};
use serde_json::{Value, json};

use crate::world::{arguments, find, order};

/// The mistake of an expression for tools, as `column: message`.
fn wrong(expression: &str, tools: &[&ToolSpec]) -> String {
    let checked = Condition::parse(expression).and_then(|condition| condition.check(tools));
    let wrong = checked.expect_err(expression);
    format!("{}: {}", wrong.offset + 1, wrong.message)
}

fn decide(expression: &str, arguments: &Value) -> Result<bool, Failed> {
    let tool = order();
    let condition = Condition::parse(expression).unwrap();
    condition
        .check(&[&tool])
        .unwrap_or_else(|wrong| unreachable!("{expression}: {wrong}"));
    condition.holds(&Facts {
        principal: &Principal::user("ann").scope("orders"),
        proved: None,
        user_id: Some("ann"),
        tool: &tool,
        upstream: Some("warehouse"),
        now: "2026-11-16T23:30:00Z".parse().unwrap(),
        session_id: Some("s_1"),
        currency: None,
        dry_run: false,
        arguments,
        is_exact: true,
    })
}

/// A3: a condition decides by arguments, caller, session, time and upstream.
#[test]
fn conditions_look_at_the_call() {
    let mut arguments = arguments();
    arguments["rush"] = json!(false);
    for expression in [
        "args.quantity > 2 && args.currency == 'EUR'",
        "args.quantity >= 3 && !(args.quantity > 3)",
        "args.quantity * 2 - 1 == 5",
        "args.quantity / 2 == 1.5",
        "-args.quantity < 0",
        "args.quantity in [1, 2, 3]",
        "args.currency in ['USD', 'EUR']",
        "!(args.currency in ['USD'])",
        "decimal(args.price) > 3999.99",
        "money(args.price, args.currency) == money('4000', 'EUR')",
        "money(args.total) > money('10000', 'EUR')",
        "money(args.total) == money(12000, 'eur')",
        "minor(args.quantity, 'EUR') == money('0.03', 'EUR')",
        "minor(args.quantity, 'JPY') == money('3', 'JPY')",
        "args.items.exists(i, i.price > 50)",
        "args.items.all(i, i.price > 10 && i.sku != 'c')",
        "size(args.items) == 2 && size(args.currency) == 3",
        "args.items[1].size() == 2",
        "!has(args.note)",
        "!has(args.note) || args.note == 'x'",
        "args.rush == false",
        "args.currency.startsWith('E') && args.currency.endsWith('R') && args.currency.contains('U')",
        "args.currency.lowerAscii() == 'eur'",
        "principal.actor == 'ann' && principal.type == 'user' && principal.user == 'ann'",
        "'orders' in principal.scopes",
        "session.id == 's_1' || !has(session.id)",
        "!has(call.currency) && !call.dry_run",
        "tool.name == 'shop.order' && tool.effect == 'write'",
        "upstream == 'warehouse'",
        "now < timestamp('2027-01-01T00:00:00Z')",
        "now.getHours() == 23 && now.getMinutes() == 30",
        "now.getHours('Europe/Berlin') == 0 && now.getDate('Europe/Berlin') == 17",
        "now.getDayOfWeek() == 1 && now.getMonth() == 10 && now.getFullYear() == 2026",
        "args.quantity > 2 ? args.currency == 'EUR' : false",
    ] {
        // The parts that this one asks for without has() are there.
        let expression = expression.replace("session.id ==", "has(session.id) && session.id ==");
        assert_eq!(decide(&expression, &arguments), Ok(true), "{expression}");
    }
}

/// A3: money of another currency is never compared, and an amount that cannot be read is not zero.
#[test]
fn money_of_another_currency_decides_nothing() {
    let limit = "money(args.total) > money('10000', 'EUR')";
    let total = |amount: Value, currency: &str| {
        let mut arguments = arguments();
        arguments["total"] = json!({"amount": amount, "currency": currency});
        decide(limit, &arguments)
    };
    assert_eq!(total(json!("9999.99"), "EUR"), Ok(false));
    assert_eq!(total(json!("10000.01"), "EUR"), Ok(true));
    assert_eq!(total(json!(10000.01), "eur"), Ok(true));
    // As texts, 9 comes after 1.
    assert_eq!(total(json!("9"), "EUR"), Ok(false));
    let other = Failed::Currency {
        left: "USD".to_owned(),
        right: "EUR".to_owned(),
    };
    assert_eq!(total(json!("20000"), "USD"), Err(other.clone()));
    assert_eq!(total(json!("1"), "USD"), Err(other));
    for amount in [
        json!("a lot"),
        json!("-1"),
        json!("1.999"),
        json!("1e9"),
        json!(""),
    ] {
        assert!(
            matches!(total(amount.clone(), "EUR"), Err(Failed::Money(_))),
            "{amount}"
        );
    }
    assert!(matches!(total(json!("1"), "euro"), Err(Failed::Money(_))));
    // Neither equal nor unequal.
    let equal = "money(args.total) == money('12000', 'USD')";
    assert!(decide(equal, &arguments()).is_err());
    assert!(decide(&equal.replace("==", "!="), &arguments()).is_err());
}

/// A3: a condition looks at what the tool declares, in its type; a mistake has its place.
#[test]
fn a_condition_that_does_not_fit_its_tool_is_a_mistake() {
    let order = order();
    for (expression, tools, expected) in [
        (
            "args.totl > 1",
            &[&order][..],
            "1: shop.order has no args.totl: there is no \"totl\", but currency, items, note, price, quantity, rush, total",
        ),
        (
            "1 > 0 && args.total.amont > 1",
            &[&order],
            "10: shop.order has no args.total.amont: there is no \"amont\", but amount, currency",
        ),
        (
            "args.quantity.x == 1",
            &[&order],
            "1: shop.order has no args.quantity.x: there is no \"x\"",
        ),
        (
            "args.note == 'x'",
            &[&order],
            "1: args.note may be left out in a call of shop.order: ask with has(args.note) && … first",
        ),
        (
            "args.price > 1",
            &[&order],
            "12: a text and a number have no order: write decimal(…), money(…) or timestamp(…) around a text that is one",
        ),
        (
            "args.price > '1'",
            &[&order],
            "12: anything and a text have no order: write decimal(…), money(…) or timestamp(…) around a text that is one",
        ),
        (
            "args.quantity == '3'",
            &[&order],
            "15: a number and a text cannot be compared: decimal(…) makes a number of a text, money(amount, currency) makes money",
        ),
        (
            "money(args.total) > 10000",
            &[&order],
            "19: money and a number cannot be compared: decimal(…) makes a number of a text, money(amount, currency) makes money",
        ),
        (
            "args.total == args.total",
            &[&order],
            "12: an object and an object cannot be compared: compare their members",
        ),
    ] {
        assert_eq!(wrong(expression, tools), expected, "{expression}");
    }
}

/// A3: so are types, and members that only some tools have.
#[test]
fn a_condition_of_the_wrong_type_is_a_mistake() {
    let (order, find) = (order(), find());
    let both = [&order, &find];
    for (expression, tools, expected) in [
        (
            "args.quantity",
            &[&order][..],
            "1: a condition takes true or false, and this is a number",
        ),
        (
            "args.quantity && true",
            &[&order],
            "1: a logical operator takes true or false, and this is a number",
        ),
        (
            "args.quantity == 3",
            &both,
            "1: shop.find has no args.quantity: there is no \"quantity\", but query",
        ),
        (
            "has(args.nothing)",
            &both,
            "5: shop.order has no args.nothing: there is no \"nothing\", but currency, items, note, price, quantity, rush, total",
        ),
        (
            "args.items.exists(i, i.prize > 1)",
            &[&order],
            "22: shop.order has no i.prize: there is no \"prize\", but price, sku",
        ),
        (
            "args.quantity.exists(i, true)",
            &[&order],
            "1: all and exists take a list, and this is a number",
        ),
    ] {
        assert_eq!(wrong(expression, tools), expected, "{expression}");
    }
    // A member that only some of the tools have is asked for.
    let asked = Condition::parse("has(args.quantity) && args.quantity > 3").unwrap();
    assert_eq!(asked.check(&both), Ok(()));
}

/// The same for what every call has.
#[test]
fn a_condition_about_any_call_is_checked_as_well() {
    for (expression, expected) in [
        (
            "principal.name == 'ann'",
            "1: a call has no principal.name: there is no \"name\", but actor, scopes, type, user",
        ),
        (
            "user == 'ann'",
            "1: there is no \"user\": a condition looks at args, principal, session, call, tool, upstream and now",
        ),
        (
            "session.id == 's'",
            "1: session.id may be left out: ask with has(session.id) && … first",
        ),
        (
            "money('1', 'euro') == money('1', 'EUR')",
            "12: a currency has three letters, as in EUR",
        ),
        (
            "money('1.999', 'EUR') == money('1', 'EUR')",
            "7: the currency has 2 decimals at most",
        ),
        (
            "decimal('x') == 1",
            "9: this text is no number such as 12.50",
        ),
        (
            "timestamp('now') < now",
            "11: this text is no time such as 2026-12-31T00:00:00Z",
        ),
        (
            "now.getHours('Berlin') > 1",
            "14: this is no time zone such as Europe/Berlin",
        ),
        (
            "now > 5",
            "5: a time and a number cannot be compared: decimal(…) makes a number of a text, money(amount, currency) makes money",
        ),
    ] {
        assert_eq!(wrong(expression, &[]), expected, "{expression}");
    }
}

/// A policy names the line and the column of a mistake inside an expression.
#[test]
fn mistakes_have_their_place_in_the_file() {
    let order = order();
    let told = |text: &str| {
        let fits = Policy::parse(text).and_then(|policy| policy.fits(&[&order]));
        let error = fits.unwrap_err();
        (error.line, error.column)
    };
    let rule = |when: &str| {
        format!("[[rules]]\nname = \"a\"\nmatch = \"shop.*\"\nwhen = {when}\nthen = \"deny\"\n")
    };
    assert_eq!(told(&rule("\"args.totl > 1\"")), (4, 9));
    assert_eq!(told(&rule("'true && args.totl > 1'")), (4, 17));
    assert_eq!(told(&rule("'''\ntrue &&\n  args.totl > 1'''")), (6, 3));
    assert_eq!(told(&rule("\"true && args.quantity >\"")), (4, 32));
    assert_eq!(told(&rule("\"'é' == 'é' && args.totl > 1\"")), (4, 23));
    // With escapes, the text begins here.
    assert_eq!(told(&rule("\"\\\"x\\\" == args.totl\"")), (4, 8));
    let twice = format!("{}{}", rule("'true'"), rule("'true'"));
    assert_eq!(told(&twice), (6, 1));
}
