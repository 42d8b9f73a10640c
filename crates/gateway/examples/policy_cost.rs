//! What conditional rules cost a call: `cargo run --release -p countersign-gateway --example policy_cost`.
//!
//! 200 rules over the arguments match the tool of the call, and none of them holds, so all of them are decided.

#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on has failed"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use countersign::Principal;
use countersign::authorize::{Authorizer as _, Facts, Stage};
use countersign::contract::{Input, ToolName, ToolSpec};
use countersign_gateway::policy::Policy;
use serde_json::json;

const RULES: usize = 200;
const CALLS: u32 = 2_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut text = String::from("defaults = { unlisted = \"allow\" }\n");
    for rule in 0..RULES {
        let limit = 10_000 + rule;
        let when = format!(
            "principal.type == 'agent' && money(args.total) > money('{limit}', 'EUR') && args.note != 'n{rule}'"
        );
        writeln!(
            text,
            "[[rules]]\nname = \"r{rule}\"\nmatch = \"shop.*\"\nwhen = \"{when}\"\nthen = \"confirm\""
        )
        .unwrap();
    }
    let begun = Instant::now();
    let policy = Policy::parse(&text).unwrap();
    let parsed = begun.elapsed();
    let schema = json!({
        "type": "object",
        "properties": {
            "total": {
                "type": "object",
                "properties": {"amount": {"type": "string"}, "currency": {"type": "string"}},
                "required": ["amount", "currency"],
            },
            "note": {"type": "string"},
        },
        "required": ["total", "note"],
    });
    let name = ToolName::new("shop.order").unwrap();
    let tool = ToolSpec::new(name, "Orders.").input(Input::Schema(schema));
    let begun = Instant::now();
    policy.fits(&[&tool]).unwrap();
    let checked = begun.elapsed();
    let arguments = json!({"total": {"amount": "99.50", "currency": "EUR"}, "note": "soon"});
    let agent = countersign::contract::Actor {
        kind: countersign::contract::ActorType::Agent,
        id: "shopper".to_owned(),
    };
    let principal = Principal::new(agent, "ann");
    let facts = Facts {
        principal: &principal,
        user_id: Some("ann"),
        tool: &tool,
        upstream: None,
        now: "2026-11-16T12:00:00Z".parse().unwrap(),
        session_id: None,
        currency: None,
        dry_run: false,
        arguments: &arguments,
        is_exact: true,
    };
    let begun = Instant::now();
    for _ in 0..CALLS {
        let decision = policy.decide(&principal, &tool).await.unwrap();
        let conditions = decision.conditions.unwrap();
        for stage in [Stage::Call, Stage::Arguments] {
            let judgement = black_box(conditions.judge(stage, black_box(&facts)));
            assert!(judgement.ruled.is_empty());
        }
    }
    let decided = begun.elapsed() / CALLS;
    let said = format!(
        "{RULES} rules: read in {parsed:?}, checked in {checked:?}, decided in {decided:?} a call\n"
    );
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes()).unwrap();
}
