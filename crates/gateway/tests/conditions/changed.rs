//! Tools that change while a policy is in force: an entry that no longer fits one refuses its calls, and is reported.

use countersign::Principal;
use countersign::contract::{Input, ToolName, ToolSpec};
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::{World, arguments, order};

/// `shop.order` with another name for its quantity.
fn renamed() -> ToolSpec {
    let mut spec = order();
    let Input::Schema(schema) = &mut spec.input else {
        unreachable!("it has a schema");
    };
    let text = schema.to_string().replace("quantity", "pieces");
    *schema = serde_json::from_str(&text).unwrap();
    spec
}

/// A tool that pays, with an argument of this name.
fn pay(tool: &str, member: &str) -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {member: {"type": "number"}},
        "required": [member],
        "additionalProperties": false,
    });
    ToolSpec::new(ToolName::new(tool).unwrap(), "Pays.").input(Input::Schema(schema))
}

/// Nine pieces, as the renamed tool takes them.
fn nine_pieces() -> Value {
    let mut order = arguments();
    let members = order.as_object_mut().unwrap();
    members.remove("quantity");
    members.insert("pieces".to_owned(), json!(9));
    order
}

const LARGE: &str = "[[rules]]\nname = \"large\"\nmatch = \"shop.*\"\n\
    when = \"has(args.quantity) && args.quantity > 2\"\nthen = \"deny\"\n";

/// A3: `has` is false for an argument that a tool has renamed. The rule does not fall silent: calls of this tool are refused until
/// the rule fits again, and those of other tools go on.
#[tokio::test]
async fn a_rule_that_a_changed_tool_no_longer_fits_refuses_its_calls() {
    let world = World::new(LARGE);
    assert_eq!(world.policy.misfits(), []);
    world.put(renamed());
    let reply = world.call("shop.order", &nine_pieces()).await;
    assert_json_snapshot!(reply["error"], @r#"
    {
      "code": "FORBIDDEN",
      "details": {
        "hint": "large in the policy does not fit this tool, which has changed, so its calls are refused until the operator corrects the policy",
        "retryable": false,
        "rule": "large"
      },
      "message": "the policy does not allow this call of shop.order"
    }
    "#);
    let rules = json!({"rules": [{"rule": "large", "then": "failed"}]});
    assert_eq!(world.newest_act().await, rules);
    let misfits = world.policy.misfits();
    let told: Vec<_> = misfits
        .iter()
        .map(|it| {
            (
                &*it.entry,
                it.tool.as_str(),
                it.line,
                it.column,
                &*it.message,
            )
        })
        .collect();
    let missing = "shop.order has no args.quantity: there is no \"quantity\", but currency, items, note, pieces, price, rush, total";
    assert_eq!(told, [("large", "shop.order", 5, 13, missing)]);
    let listed = world.executor.list(&Principal::user("ann")).await.unwrap();
    let listed: Vec<&str> = listed.iter().map(|entry| entry.name().as_str()).collect();
    assert_eq!(listed, ["shop.find"]);
    let found = world.call("shop.find", &json!({"query": "x"})).await;
    assert_eq!(found["ok"], true, "{found}");
    world.put(order());
    assert_eq!(world.policy.misfits(), []);
    let mut few = arguments();
    few["quantity"] = json!(1);
    assert_eq!(world.call("shop.order", &few).await["ok"], true);
}

/// A tool that was away and comes back otherwise is compared with what was accepted.
#[tokio::test]
async fn a_tool_that_comes_back_changed_is_refused() {
    let world = World::new(LARGE);
    world.executor.catalog().remove("shop.order").unwrap();
    assert_eq!(world.policy.misfits(), []);
    world.put(renamed());
    let reply = world.call("shop.order", &nine_pieces()).await;
    assert_eq!(reply["error"]["details"]["rule"], "large", "{reply}");
}

/// A tool that arrives later has to declare what the rule looks at, unless another tool does.
#[tokio::test]
async fn a_tool_that_arrives_later_has_to_fit() {
    let rule = "[[rules]]\nname = \"dear\"\nmatch = \"pay.*\"\nwhen = \"has(args.amount) && args.amount > 10\"\nthen = \"deny\"\n";
    let world = World::new(rule);
    world.put(pay("pay.send", "sum"));
    let reply = world.call("pay.send", &json!({"sum": 1})).await;
    assert_eq!(reply["error"]["details"]["rule"], "dear", "{reply}");
    world.put(pay("pay.move", "amount"));
    assert_eq!(
        world.call("pay.move", &json!({"amount": 1})).await["ok"],
        true
    );
    let reply = world.call("pay.move", &json!({"amount": 11})).await;
    assert_eq!(reply["error"]["details"]["rule"], "dear", "{reply}");
    // As when the policy is loaded: a rule for several tools says with `has` which of them it is about.
    assert_eq!(world.call("pay.send", &json!({"sum": 1})).await["ok"], true);
}

/// Limits and budgets do not stop counting either.
#[tokio::test]
async fn a_limit_that_a_changed_tool_no_longer_fits_refuses_its_calls() {
    for (entry, name) in [
        (
            "[limits.user]\ncalls = 9\nper = \"1d\"\nwhen = \"has(args.quantity) && args.quantity > 2\"\n",
            "[limits.user]",
        ),
        (
            "[[budgets]]\nname = \"all\"\nscope = \"user\"\nlimit = \"100\"\ncurrency = \"EUR\"\n\
             [[budgets.tools]]\nmatch = \"shop.order\"\namount = \"/quantity\"\n",
            "[[budgets]] all",
        ),
    ] {
        let world = World::new(entry);
        world.put(renamed());
        let reply = world.call("shop.order", &nine_pieces()).await;
        assert_eq!(reply["error"]["code"], "FORBIDDEN", "{reply}");
        assert_eq!(reply["error"]["details"]["rule"], name, "{reply}");
    }
}

/// A rule that is only observed is recorded as one that could not be decided, and changes no answer.
#[tokio::test]
async fn an_observed_rule_that_does_not_fit_changes_no_answer() {
    let world = World::new(&format!("{LARGE}mode = \"observe\"\n"));
    world.put(renamed());
    let reply = world.call("shop.order", &nine_pieces()).await;
    assert_eq!(reply["ok"], true, "{reply}");
    let act = world.newest_act().await;
    let expected = json!([{"rule": "large", "then": "failed", "mode": "observe"}]);
    assert_eq!(act["rules"], expected);
}
