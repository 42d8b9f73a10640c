//! Limits and budgets with conditions: only calls for which they hold are counted.

use countersign_gateway::policy::Policy;
use insta::assert_json_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, arguments, find, order};

/// An order of so many pieces, for so much.
fn order_of(quantity: i64, amount: &str, currency: &str) -> Value {
    let mut order = arguments();
    order["quantity"] = json!(quantity);
    order["total"] = json!({"amount": amount, "currency": currency});
    order
}

/// Orders one call after the other; for each the name of the limit that refused it, or null.
async fn refusals(world: &World, orders: impl IntoIterator<Item = Value>) -> Value {
    let mut refusals = Vec::new();
    for order in orders {
        let reply = world.call("shop.order", &order).await;
        refusals.push(reply["error"]["details"]["limit"].clone());
    }
    refusals.into()
}

/// Each kind of limit, counted in the process and in the store.
#[tokio::test]
async fn a_limit_counts_the_calls_for_which_its_condition_holds() {
    for shared in ["false", "true"] {
        for (section, name) in [
            ("limits.user", "user"),
            ("limits.session", "session"),
            ("limits.tools.\"shop.order\"", "tool"),
        ] {
            let world = World::new(&format!(
                "[[{section}]]\ncalls = 1\nper = \"366d\"\nwhen = \"has(args.quantity) && args.quantity > 2\"\nshared = {shared}\n\
                 [[{section}]]\ncalls = 4\nper = \"366d\"\nshared = {shared}\n"
            ));
            let orders = [3, 1, 3, 1, 1].map(|quantity| order_of(quantity, "1", "EUR"));
            let counted = refusals(&world, orders).await;
            // The third call was counted before its arguments were read, so the fifth is one too many.
            let expected = json!([null, null, name, null, name]);
            assert_eq!(counted, expected, "{section} {shared}");
        }
    }
}

/// A condition that needs no arguments is decided before they are read.
#[tokio::test]
async fn a_limit_without_arguments_counts_before_they_are_read() {
    let world =
        World::new("[limits.user]\ncalls = 1\nper = \"366d\"\nwhen = \"tool.effect == 'write'\"\n");
    let reply = world.call_text("shop.order", "not even JSON").await;
    assert_eq!(reply["error"]["code"], "INVALID_ARGUMENT", "{reply}");
    let reply = world.call_text("shop.order", "not even JSON").await;
    assert_eq!(reply["error"]["details"]["limit"], "user", "{reply}");
    for _ in 0..3 {
        let reply = world.call("shop.find", &json!({"query": "x"})).await;
        assert_eq!(reply["ok"], true, "{reply}");
    }
}

/// A3: a call that may or may not count is refused.
#[tokio::test]
async fn a_condition_that_cannot_be_decided_refuses_the_call() {
    let large = "when = \"money(args.total) > money('100', 'EUR')\"";
    let world = World::new(&format!(
        "[limits.tools.\"shop.order\"]\ncalls = 9\nper = \"1d\"\n{large}\n"
    ));
    let reply = world.call("shop.order", &order_of(1, "1", "USD")).await;
    assert_json_snapshot!(reply["error"], @r#"
    {
      "code": "FORBIDDEN",
      "details": {
        "hint": "a limit of the policy cannot be decided for this call: its condition looks at something that the call lacks or that has another form",
        "limit": "tool",
        "retryable": false
      },
      "message": "the policy does not allow this call of shop.order"
    }
    "#);
    let world = World::new(&budgets(&[("large", "EUR", large)]));
    let reply = world.call("shop.order", &order_of(1, "1", "USD")).await;
    assert_json_snapshot!(reply["error"], @r#"
    {
      "code": "FORBIDDEN",
      "details": {
        "budget": "large",
        "hint": "the policy cannot decide whether this call counts against the budget large: its condition looks at something that the call lacks or that has another form",
        "limit": "budget",
        "retryable": false
      },
      "message": "the policy does not allow this call of shop.order"
    }
    "#);
}

/// Budgets of 100, each with a condition on the calls of `shop.order` that draw on it.
fn budgets(budgets: &[(&str, &str, &str)]) -> String {
    let budgets = budgets.iter().map(|(name, currency, when)| {
        format!(
            "[[budgets]]\nname = \"{name}\"\nscope = \"user\"\nlimit = \"100\"\ncurrency = \"{currency}\"\n\
             [[budgets.tools]]\nmatch = \"shop.order\"\namount = \"/total/amount\"\ncurrency = \"/total/currency\"\n{when}\n"
        )
    });
    budgets.collect()
}

/// One budget a currency; without conditions, each of them would refuse the other's currency.
#[tokio::test]
async fn a_budget_counts_the_calls_for_which_its_condition_holds() {
    let policy = budgets(&[
        ("euros", "EUR", "when = \"args.total.currency == 'EUR'\""),
        ("dollars", "USD", "when = \"args.total.currency == 'USD'\""),
        (
            "other",
            "CHF",
            "when = \"!(args.total.currency in ['EUR', 'USD'])\"",
        ),
    ]);
    let world = World::new(&policy);
    let orders = [
        ("60", "EUR"),
        ("60", "USD"),
        ("60", "EUR"),
        ("40", "USD"),
        ("1", "GBP"),
    ];
    let mut refused = Vec::new();
    for (amount, currency) in orders {
        let reply = world
            .call("shop.order", &order_of(1, amount, currency))
            .await;
        refused.push(reply["error"]["message"].clone());
    }
    assert_json_snapshot!(refused, @r#"
    [
      null,
      null,
      "the budget euros has 40.00 EUR left, which is not enough",
      null,
      "the budget other is in CHF, but the call uses another currency"
    ]
    "#);
}

/// A condition is checked against the tools that it is for, with its place.
#[test]
fn mistakes_have_their_place_in_the_file() {
    let (order, find) = (order(), find());
    let told = |text: &str| {
        let fits = Policy::parse(text).and_then(|policy| policy.fits(&[&order, &find]));
        fits.unwrap_err().to_string()
    };
    let limit = |section: &str, when: &str| {
        format!("[{section}]\ncalls = 1\nper = \"1d\"\nwhen = {when}\n")
    };
    let budget = |when: &str| budgets(&[("a", "EUR", &format!("when = {when}"))]);
    let same = "[[limits.user]]\ncalls = 1\nper = \"1d\"\n";
    let told = [
        told(&limit("limits.user", "\"args.totl > 1\"")),
        told(&limit("limits.user", "\"args.quantity > 1\"")),
        told(&limit(
            "limits.tools.\"shop.*\"",
            "\"true && args.quantity >\"",
        )),
        told(&limit(
            "limits.tools.\"shop.order\"",
            "'''\ntrue &&\n  args.totl > 1'''",
        )),
        told(&budget("\"args.total > 1\"")),
        told(&format!("{same}{same}")),
        told(&limit("limits.user", "7")),
    ];
    assert_json_snapshot!(told, @r#"
    [
      "line 4, column 9: [limits.user]: shop.order has no args.totl: there is no \"totl\", but currency, items, note, price, quantity, rush, total",
      "line 4, column 9: [limits.user]: shop.find has no args.quantity: there is no \"quantity\", but query",
      "line 4, column 32: [limits.tools.\"shop.*\"]: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
      "line 6, column 3: [limits.tools.\"shop.order\"]: shop.order has no args.totl: there is no \"totl\", but currency, items, note, price, quantity, rush, total",
      "line 10, column 20: [[budgets]] a: an object and a number cannot be compared: compare their members",
      "line 0, column 0: [limits.user] has two limits with the same condition",
      "line 4, column 8: invalid type: integer `7`, expected a string"
    ]
    "#);
}

/// The policy as a table of a larger file.
#[test]
fn mistakes_have_their_place_in_a_larger_file() {
    let text = "[server]\n\n[policy.limits.user]\ncalls = 1\nper = \"1d\"\nwhen = \"true && \"\n";
    let error = Policy::within(text, "/".as_ref()).unwrap_err();
    assert_eq!((error.line, error.column), (6, 17), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Law: of any sequence of calls, exactly those for which the condition holds are counted.
    #[test]
    fn exactly_the_calls_of_the_condition_are_counted(
        quantities in prop::collection::vec(0_i64..6, 1..12),
        calls in 1_usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new(&format!(
                "[limits.tools.\"shop.*\"]\ncalls = {calls}\nper = \"366d\"\nwhen = \"has(args.quantity) && args.quantity > 2\"\n"
            ));
            let mut large = 0;
            for quantity in quantities {
                let reply = world.call("shop.order", &order_of(quantity, "1", "EUR")).await;
                large += usize::from(quantity > 2);
                let is_refused = quantity > 2 && large > calls;
                assert_eq!(reply["ok"] == false, is_refused, "{reply}");
            }
        });
    }
}
