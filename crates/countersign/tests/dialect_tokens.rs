//! A list of tools in a token budget (B17).
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

#[path = "support/specs.rs"]
mod specs;

use countersign::dialect::{Cut, Dialect, ToolList, ToolListError, ToolListOptions, estimate};
use countersign_contract::ToolSpec;

/// B17: whatever the budget, the list either fits or says how much it needs; no tool is left out,
/// and the report adds up.
#[test]
fn every_budget_fits_or_says_what_is_needed() {
    let tools = specs::all().len();
    for dialect in Dialect::ALL {
        let whole = list(dialect, None).unwrap();
        assert_eq!(whole.tokens, estimate(&whole.json.to_string()), "{dialect}");
        let least = needed(dialect);
        assert!(least < whole.tokens, "{dialect}");
        for budget in (least..whole.tokens).step_by(13) {
            let list = list(dialect, Some(budget)).unwrap();
            assert!(list.tokens <= budget, "{dialect} {budget}");
            assert_eq!(list.tokens, estimate(&list.json.to_string()), "{dialect}");
            assert_eq!(count(&list), tools, "{dialect} {budget}");
            let order: Vec<Cut> = list.trimmed.iter().map(|cut| cut.cut).collect();
            assert!(
                !order.is_empty() && order.is_sorted(),
                "{dialect} {order:?}"
            );
        }
        let error = list(dialect, Some(least - 1)).unwrap_err();
        let expected = ToolListError::BudgetTooSmall {
            needed: least,
            budget: least - 1,
        };
        assert_eq!(error, expected, "{dialect}");
    }
}

/// B17: the report names the tool, the cut, and the tokens before and after.
#[test]
fn the_report_says_exactly_what_was_cut() {
    let whole = list(Dialect::OpenAi, None).unwrap();
    let report = |budget: usize| {
        let list = list(Dialect::OpenAi, Some(budget)).unwrap();
        let line = |cut: &countersign::dialect::Trimmed| {
            let saved = cut.tokens_before - cut.tokens_after;
            format!("{} {} -{saved}", cut.tool, cut.cut.as_str())
        };
        list.trimmed.iter().map(line).collect::<Vec<_>>()
    };
    // The later of the two tools that have examples gives them up first.
    assert_eq!(
        report(whole.tokens - 1),
        ["checkout.create_draft_order examples -21"]
    );
    assert_eq!(
        report(whole.tokens - 22),
        [
            "checkout.create_draft_order examples -21",
            "memory.search examples -6",
        ]
    );
}

/// B17: texts are cut in the declared order, and the hints that the model needs stay to the end.
#[test]
fn the_tightest_list_keeps_names_types_limits_and_hints() {
    let list = list(Dialect::OpenAi, Some(needed(Dialect::OpenAi))).unwrap();
    let search = &list.json[0]["function"];
    assert_eq!(search["description"], "Finds notes by keyword.");
    assert_eq!(
        search["parameters"]["properties"]["limit"],
        serde_json::json!({ "type": "integer", "default": 3, "minimum": 1, "maximum": 50 })
    );
    assert_eq!(
        list.json[1]["function"]["description"],
        "Creates an order that can still be changed. Valid for 900 seconds. The user has to \
         confirm each call."
    );
}

fn list(dialect: Dialect, max_tokens: Option<usize>) -> Result<ToolList, ToolListError> {
    let specs = specs::all();
    let specs: Vec<&ToolSpec> = specs.iter().collect();
    let options = ToolListOptions {
        max_tokens,
        ..ToolListOptions::default()
    };
    dialect.tools(&specs, &options)
}

/// The tokens that a list needs with everything cut, by the error.
fn needed(dialect: Dialect) -> usize {
    match list(dialect, Some(0)).unwrap_err() {
        ToolListError::BudgetTooSmall { needed, .. } => Some(needed),
        ToolListError::Schema { .. } | ToolListError::NameTaken { .. } => None,
    }
    .unwrap()
}

/// Number of tools in the list.
fn count(list: &ToolList) -> usize {
    let list = list.json.as_array().unwrap();
    match list
        .first()
        .and_then(|first| first.get("functionDeclarations"))
    {
        Some(declarations) => declarations.as_array().unwrap().len(),
        None => list.len(),
    }
}
