//! Conditions that are valid and rarely meant, as `policy check` tells them, and who may call what under rules about the caller.

use countersign::Catalog;
use countersign::contract::{Input, ToolName, ToolSpec};
use countersign_gateway::policy::Policy;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::{catalog, find, order};

/// `shop.send`: a speed out of three.
fn send() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {"speed": {"$ref": "#/$defs/speed"}, "weight": {"type": "number"}},
        "required": ["speed", "weight"],
        "additionalProperties": false,
        "$defs": {"speed": {"type": "string", "enum": ["slow", "fast", "air"]}},
    });
    ToolSpec::new(ToolName::new("shop.send").unwrap(), "Sends.").input(Input::Schema(schema))
}

/// The warnings about a rule for a tool.
fn warned(tool: &str, when: &str) -> String {
    let text = format!(
        "defaults = {{ unlisted = \"allow\" }}\n[[rules]]\nname = \"r\"\nmatch = \"{tool}\"\nwhen = \"{when}\"\nthen = \"confirm\"\n"
    );
    warnings(&text)
}

fn warnings(text: &str) -> String {
    let policy = Policy::parse(text).unwrap();
    let (order, find, send) = (order(), find(), send());
    let specs = [&order, &find, &send];
    policy.fits(&specs).unwrap();
    let warnings = policy.review(&specs).warnings.into_iter();
    warnings
        .map(|one| one.message)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A3: a condition that compares with a value which no call has is reported, with its place; one that may hold is not.
#[test]
fn conditions_that_never_hold_are_told() {
    let never = [
        ("shop.*", "false"),
        ("shop.*", "principal.type == 'agnet'"),
        ("shop.*", "tool.effect == 'delete' && tool.name != 'x'"),
        ("shop.*", "tool.name == 'shop.oder'"),
        ("shop.send", "args.weight > 1 && args.speed == 'express'"),
        ("shop.send", "args.speed in ['FAST', 'quick']"),
        (
            "shop.order",
            "args.items.exists(i, tool.name == 'shop.send')",
        ),
        (
            "shop.*",
            "principal.type == 'robot' || 'bot' == principal.type",
        ),
    ];
    let told: Vec<String> = never.map(|(tool, when)| warned(tool, when)).into();
    assert_snapshot!(told.join("\n"), @r"
    line 5, column 9: the condition of [[rules]] r never holds: it compares with a value that no call has
    line 5, column 24: the condition of [[rules]] r never holds: it compares with a value that no call has
    line 5, column 21: the condition of [[rules]] r never holds: it compares with a value that no call has
    line 5, column 19: the condition of [[rules]] r never holds: it compares with a value that no call has
    line 5, column 39: the condition of [[rules]] r never holds: it compares with a value that no call has
    line 5, column 20: the condition of [[rules]] r never holds: it compares with a value that no call has
    line 5, column 40: the condition of [[rules]] r never holds: it compares with a value that no call has
    line 5, column 24: the condition of [[rules]] r never holds: it compares with a value that no call has
    ");
    for (tool, when) in [
        ("shop.*", "principal.type == 'agent'"),
        ("shop.*", "tool.name == 'shop.send'"),
        (
            "shop.send",
            "args.speed == 'fast' || args.speed == 'express'",
        ),
        ("shop.send", "args.speed in ['slow', 'quick']"),
        ("shop.send", "args.speed != 'express'"),
        ("shop.order", "args.note == 'anything'"),
        ("shop.*", "upstream == 'typo'"),
    ]
    .map(|(tool, when)| {
        (
            tool,
            when.replace("args.note ==", "has(args.note) && args.note =="),
        )
    }) {
        assert_eq!(warned(tool, &when), "", "{when}");
    }
}

/// A catalog knows its upstreams, so a name that none of them has is reported.
#[test]
fn an_upstream_that_there_is_not_is_told() {
    let warned = |name: &str, catalog: &Catalog| {
        let text = format!(
            "defaults = {{ unlisted = \"allow\" }}\n[[rules]]\nname = \"r\"\nmatch = \"*\"\nwhen = \"upstream == '{name}'\"\nthen = \"confirm\"\n"
        );
        Policy::parse(&text)
            .unwrap()
            .review_catalog(catalog)
            .warnings
            .len()
    };
    let catalog = catalog();
    assert_eq!(warned("warehouse", &catalog), 0);
    assert_eq!(warned("", &catalog), 0);
    assert_eq!(warned("warehous", &catalog), 1);
}

/// A3: a plain number beside one currency lets every other one through: told, unless another entry looks at those.
#[test]
fn other_currencies_that_pass_are_told() {
    let told = |column: usize| {
        format!(
            "line 5, column {column}: [[rules]] r looks at amounts in EUR only, and lets every other currency through: \
             compare money(…) with money('…', 'EUR'), or add an entry for other currencies"
        )
    };
    for (when, column) in [
        ("args.quantity > 100 && args.currency == 'EUR'", 46),
        (
            "args.total.currency == 'EUR' && (true && decimal(args.price) >= 5)",
            29,
        ),
    ] {
        assert_eq!(warned("shop.order", when), told(column), "{when}");
    }
    for fine in [
        "args.currency == 'EUR'",
        "money(args.total) > money('100', 'EUR') && args.currency == 'EUR'",
        "args.currency == 'EUR' || args.quantity > 100",
    ] {
        assert_eq!(warned("shop.order", fine), "", "{fine}");
    }
    let rule = |name: &str, when: &str| {
        format!(
            "[[rules]]\nname = \"{name}\"\nmatch = \"shop.order\"\nwhen = \"{when}\"\nthen = \"deny\"\n"
        )
    };
    let covered = format!(
        "defaults = {{ unlisted = \"allow\" }}\n{}{}",
        rule("euros", "args.quantity > 100 && args.currency == 'EUR'"),
        rule("others", "args.currency != 'EUR'")
    );
    assert_eq!(warnings(&covered), "");
}

/// A3: a rule that denies a tool to every agent shows: no agent may call it, and a person may.
#[test]
fn a_rule_about_the_type_of_the_caller_is_reviewed() {
    let text = "defaults = { unlisted = \"allow\" }\n[[agents]]\nid = \"bot\"\n\
        [[rules]]\nname = \"people\"\nmatch = \"shop.order\"\nwhen = \"principal.type == 'agent'\"\nthen = \"deny\"\n\
        [[rules]]\nname = \"bot\"\nmatch = \"shop.send\"\nwhen = \"principal.actor == 'bot'\"\nthen = \"deny\"\n\
        [[rules]]\nname = \"one\"\nmatch = \"shop.find\"\nwhen = \"principal.user != 'ann' || !('a' in principal.scopes)\"\nthen = \"deny\"\n";
    let (order, find, send) = (order(), find(), send());
    let review = Policy::parse(text).unwrap().review(&[&order, &find, &send]);
    let agents: Vec<_> = review
        .agents
        .iter()
        .map(|it| (&*it.id, it.tools.join(" ")))
        .collect();
    let expected = [("bot", "shop.find"), ("(others)", "shop.find shop.send")];
    assert_eq!(agents, expected.map(|(id, tools)| (id, tools.to_owned())));
    assert_eq!(review.callable(), 3);
}
