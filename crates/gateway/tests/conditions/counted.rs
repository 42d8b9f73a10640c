//! Limits and budgets with conditions: only calls for which they hold are counted.

use std::sync::Arc;

use countersign::Principal;
use countersign::clock::ManualClock;
use countersign::contract::grant::GrantAmount;
use countersign::contract::tool::AmountUnit;
use countersign::contract::{Actor, ActorType, NewGrant};
use countersign_gateway::policy::Policy;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::postgres::shared_postgres;
use insta::assert_json_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{START, World, arguments, find, order};

/// An order of so many pieces, for so much.
fn order_of(quantity: i64, amount: &str, currency: &str) -> Value {
    let mut order = arguments();
    order["quantity"] = json!(quantity);
    order["total"] = json!({"amount": amount, "currency": currency});
    order
}

fn agent() -> Principal {
    let actor = Actor {
        kind: ActorType::Agent,
        id: "bot".to_owned(),
    };
    Principal::new(actor, "ann")
}

/// An agent orders one call after the other; for each the name of the limit that refused it, or null.
async fn refusals(world: &World, orders: impl IntoIterator<Item = Value>) -> Value {
    let mut refusals = Vec::new();
    for order in orders {
        let reply = world.call_as(agent(), "shop.order", &order).await;
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
            ("limits.agent", "agent"),
            ("limits.session", "session"),
            ("limits.tools.\"shop.order\"", "tool"),
        ] {
            let world = World::new(&format!(
                "[[{section}]]\ncalls = 1\nper = \"366d\"\nwhen = \"has(args.quantity) && args.quantity > 2\"\nshared = {shared}\n\
                 [[{section}]]\ncalls = 4\nper = \"366d\"\nshared = {shared}\n"
            ));
            // Each costs something else: an agent's repeat would be the first answer again.
            let orders = [(3, "1"), (1, "2"), (3, "3"), (1, "4"), (1, "5")];
            let orders = orders.map(|(quantity, amount)| order_of(quantity, amount, "EUR"));
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

/// Two processes over one PostgreSQL database: calls at once never get more than a limit or a budget has, and calls for
/// which the condition does not hold get all that they ask for.
#[tokio::test(flavor = "multi_thread")]
async fn processes_share_what_conditions_count() {
    let limit = |section: &str| {
        format!(
            "[{section}]\ncalls = 3\nper = \"366d\"\nshared = true\nwhen = \"has(args.quantity) && args.quantity > 2\"\n"
        )
    };
    for policy in [
        limit("limits.user"),
        limit("limits.agent"),
        limit("limits.session"),
        limit("limits.tools.\"shop.order\""),
        budgets(&[("large", "EUR", "when = \"args.quantity > 2\"")]),
    ] {
        let url = shared_postgres().fresh_database();
        let text = format!("defaults = {{ unlisted = \"allow\" }}\n{policy}");
        let open = async || {
            let options = PostgresOptions::new(&url).connections_max(6);
            let store = Arc::new(PostgresStore::open(options).await.unwrap());
            let clock = Arc::new(ManualClock::starting_at(START.parse().unwrap()));
            Arc::new(World::over(store, clock, &text))
        };
        let processes = [open().await, open().await];
        let order = |n: usize, quantity: i64| {
            let process = processes[n % 2].clone();
            let order = order_of(quantity, &format!("30.{n:02}"), "EUR");
            async move { process.call_as(agent(), "shop.order", &order).await["ok"] == true }
        };
        let mut calls = tokio::task::JoinSet::new();
        for n in 0..24 {
            let (quantity, is_large) = if n % 4 < 2 { (3, true) } else { (1, false) };
            let order = order(n, quantity);
            calls.spawn(async move { (is_large, order.await) });
        }
        let done = calls.join_all().await;
        let ran = |large: bool| done.iter().filter(|it| **it == (large, true)).count();
        assert_eq!(ran(false), 12, "{policy}");
        assert!(ran(true) <= 3, "{policy}");
        // A call that lost a race has given back what it had set aside, so the rest can be had.
        for n in ran(true)..3 {
            assert!(order(50 + n, 3).await, "{policy}");
        }
        assert!(!order(60, 3).await && !order(61, 3).await, "{policy}");
        assert!(order(62, 1).await, "{policy}");
    }
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

/// A pointer of a budget that a tool does not declare is a mistake at its place: every call of the tool would be refused.
#[test]
fn a_pointer_that_no_tool_has_is_a_mistake() {
    let told = |entries: &str| {
        let text = format!(
            "[[budgets]]\nname = \"b\"\nscope = \"user\"\nlimit = \"1\"\ncurrency = \"EUR\"\n{entries}"
        );
        let policy = Policy::parse(&text).unwrap();
        policy.fits(&[&order(), &find()]).map_err(|error| {
            assert!(error.hint.starts_with("docs/limits.md"), "{}", error.hint);
            error.to_string()
        })
    };
    let entry = |tools: &str, pointers: &str| {
        format!("[[budgets.tools]]\nmatch = \"{tools}\"\n{pointers}\n")
    };
    let order = entry("shop.order", "amount = \"/total/amount\"");
    let told = [
        told(&order),
        told(&entry("shop.order", "amount = \"/items/0/price\"")),
        told(&entry("shop.order", "amount = \"/totl\"")),
        told(&entry("shop.order", "amount = \"/price/x\"")),
        told(&entry(
            "shop.order",
            "amount = \"/quantity\"\ncurrency = \"/curency\"",
        )),
        told(&entry("shop.*", "amount = \"/total/amount\"")),
        // An entry for some calls has to fit one tool, and what an entry before it counts is no concern of it.
        told(&entry(
            "shop.*",
            "amount = \"/total/amount\"\nwhen = \"has(args.total)\"",
        )),
        told(&format!("{order}{}", entry("shop.o*", "amount = \"/x\""))),
        told(&entry("else.*", "amount = \"/x\"")),
    ];
    assert_json_snapshot!(told, @r#"
    [
      {
        "Ok": null
      },
      {
        "Ok": null
      },
      {
        "Err": "line 8, column 11: [[budgets]] b: shop.order has no /totl: there is no \"totl\", but currency, items, note, price, quantity, rush, total"
      },
      {
        "Err": "line 8, column 11: [[budgets]] b: shop.order has no /price/x: there is no \"x\""
      },
      {
        "Err": "line 9, column 13: [[budgets]] b: shop.order has no /curency: there is no \"curency\", but currency, items, note, price, quantity, rush, total"
      },
      {
        "Err": "line 8, column 11: [[budgets]] b: shop.find has no /total/amount: there is no \"total\", but query"
      },
      {
        "Ok": null
      },
      {
        "Ok": null
      },
      {
        "Ok": null
      }
    ]
    "#);
}

/// The hint of a mistake in a condition names the guide about conditions.
#[test]
fn a_hint_names_the_guide_of_its_section() {
    let rule = |when: &str| {
        format!(
            "[[rules]]\nname = \"a\"\nmatch = \"shop.order\"\nwhen = \"{when}\"\nthen = \"deny\"\n"
        )
    };
    let broken = Policy::parse(&rule("args.total >")).unwrap_err();
    let policy = Policy::parse(&rule("args.totl == 1")).unwrap();
    let unknown = policy.fits(&[&order()]).unwrap_err();
    let twice = Policy::parse(&format!("{0}{0}", rule("true"))).unwrap_err();
    for error in [broken, unknown, twice] {
        assert!(error.hint.starts_with("docs/conditions.md"), "{error:?}");
    }
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

/// A budget without a pointer to a currency looks at the one that stands beside the amount: 150 KWD are not 150 EUR.
#[tokio::test]
async fn a_budget_without_a_currency_pointer_refuses_other_currencies() {
    let world = World::new(
        "[[budgets]]\nname = \"b\"\nscope = \"user\"\nlimit = \"200\"\ncurrency = \"EUR\"\n\
         [[budgets.tools]]\nmatch = \"shop.order\"\namount = \"/total/amount\"\n",
    );
    let reply = world.call("shop.order", &order_of(1, "150", "KWD")).await;
    assert_eq!(reply["error"]["code"], "INVALID_ARGUMENT", "{reply}");
    assert_eq!(reply["error"]["details"]["field"], "/total/currency");
    assert_eq!(
        world.call("shop.order", &order_of(1, "150", "eur")).await["ok"],
        true
    );
    // The one beside an object that the amount is in counts, too, and a pointer goes first.
    let items = "[[budgets]]\nname = \"b\"\nscope = \"user\"\nlimit = \"200\"\ncurrency = \"EUR\"\n\
         [[budgets.tools]]\nmatch = \"shop.order\"\namount = \"/items/0/price\"\n";
    let mut francs = order_of(1, "1", "EUR");
    francs["currency"] = json!("CHF");
    let reply = World::new(items).call("shop.order", &francs).await;
    assert_eq!(reply["error"]["details"]["field"], "/currency", "{reply}");
    let named = format!("{items}currency = \"/total/currency\"\n");
    assert_eq!(
        World::new(&named).call("shop.order", &francs).await["ok"],
        true
    );
}

/// A grant without a pointer to a currency: an amount in another one is not covered, and the user is asked.
#[tokio::test]
async fn a_grant_covers_no_other_currency() {
    let world = World::new("[[tools]]\nmatch = \"shop.order\"\nconfirm = \"always\"\n");
    let grant = |at: &str| NewGrant {
        user_id: None,
        to: agent().actor,
        tools: vec![order().name],
        when: None,
        calls: None,
        amount: Some(GrantAmount {
            limit: "200".to_owned(),
            currency: "EUR".to_owned(),
            at: Some(at.to_owned()),
            currency_at: None,
            unit: AmountUnit::Major,
        }),
        until: "2026-12-01T00:00:00Z".to_owned(),
        parent: None,
    };
    let ann = Principal::user("ann");
    let grants = world.executor.grants();
    // A pointer that leads nowhere would make a grant that never covers a call.
    for wrong in ["/total/typo", "/totl/amount", "/price/x"] {
        let error = grants.make(&ann, &grant(wrong)).await.unwrap_err();
        assert!(error.to_string().contains("amount"), "{wrong}: {error}");
    }
    grants.make(&ann, &grant("/total/amount")).await.unwrap();
    for (currency, is_covered) in [("KWD", false), ("EUR", true)] {
        let order = order_of(1, "150", currency);
        let reply = world.call_as(agent(), "shop.order", &order).await;
        assert_eq!(reply["ok"] == true, is_covered, "{currency}: {reply}");
    }
}
