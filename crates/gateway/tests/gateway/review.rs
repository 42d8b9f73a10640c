//! `serve --check`: the rights under a policy, and its probable mistakes.

use countersign::Catalog;
use countersign::Principal;
use countersign::authorize::{Authorizer as _, Verdict};
use countersign::contract::{Actor, ActorType, ToolSpec};
use countersign::sample::{AddNote, ClearNotes, ListNotes, MemorySearch};
use countersign_gateway::policy::Policy;
use insta::assert_snapshot;

fn catalog() -> Catalog {
    let builder = Catalog::builder()
        .tool(AddNote)
        .tool(ClearNotes)
        .tool(ListNotes)
        .tool(MemorySearch::new(["milk"]));
    builder.build().unwrap()
}

/// Returns the number of callable tools, and the warnings about a policy.
#[track_caller]
fn check(policy: &str) -> String {
    let policy = Policy::parse(policy).unwrap();
    let entries = catalog().list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    let review = policy.review(&specs);
    let mut told = vec![format!("{} of {}", review.callable(), review.tools.len())];
    told.extend(
        review
            .warnings
            .iter()
            .map(|warning| warning.message.clone()),
    );
    told.join("\n")
}

fn named(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(" "),
    }
}

/// N4: a policy that denies everything, and all rules that are rarely intended, are reported.
#[test]
fn what_looks_like_a_mistake_is_told() {
    assert_snapshot!(check("[[tools]]\nmatch = \"*\""), @"4 of 4");
    assert_snapshot!(check("revision = \"nothing\""), @r#"
    0 of 4
    the policy denies every tool to every caller: add [[tools]] entries, or [defaults] unlisted = "allow"
    no agent may call any tool: look at [[agents]] and [defaults] unlisted_agents
    "#);
    assert_snapshot!(check("[[tools]]\nmatch = \"notes.*\"\nscopes = [\"a\"]\n[[tools]]\nmatch = \"note.*\"\nscopes = [\"b\", \"a\"]"), @r#"
    3 of 4
    these tools match no [[tools]] entry, so every call of them is denied: memory.search
    the [[tools]] entry "note.*" matches no tool
    no tool needs the scope "b"
    "#);
    assert_snapshot!(check(r#"
        defaults = { unlisted = "allow", unlisted_agents = "deny" }
        [[agents]]
        id = "reader"
        effects = ["external"]
        [[agents]]
        id = "writer-*"
        allow = ["notes.*", "memory.serch"]
        [[agents]]
        id = "*-2"
        deny = ["*"]
        [limits.tools."notes.ad"]
        calls = 1
        per = "1m"
        [breaker]
        identical = 2
        per = "1m"
        except = ["job.*"]
        [[budgets]]
        name = "daily"
        scope = "user"
        limit = "1"
        currency = "EUR"
        [[budgets.tools]]
        match = "checkout.*"
        amount = "/total"
    "#), @r#"
    4 of 4
    the agent "reader" may call nothing: look at every [[agents]] entry that matches it
    the agent "*-2" may call nothing: look at every [[agents]] entry that matches it
    "memory.serch" in [[agents]] writer-* matches no tool
    "notes.ad" in [limits.tools] matches no tool
    "job.*" in [breaker] except matches no tool
    "checkout.*" in [[budgets]] daily matches no tool
    "#);
}

/// The review agrees with the decision about a call: for each agent pattern and each scope alone.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one policy and its whole table")]
async fn a_review_is_what_the_policy_decides() {
    let policy = Policy::parse(
        r#"
        defaults = { unlisted_agents = "deny" }
        [[tools]]
        match = "*"
        scopes = ["call"]
        [[tools]]
        match = "notes.*"
        scopes = ["notes", "admin"]
        [[tools]]
        match = "notes.clear"
        confirm = "always"
        [[agents]]
        id = "*"
        deny = ["notes.clear"]
        [[agents]]
        id = "reader-*"
        effects = ["read"]
        [[agents]]
        id = "reader-7"
        allow = ["memory.*"]
    "#,
    )
    .unwrap();
    let entries = catalog().list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    let review = policy.review(&specs);
    let mut told = Vec::new();
    for tool in &review.tools {
        let agents = named(&tool.agents);
        told.push(format!(
            "{} {} {:?} confirmed={} agents: {agents}",
            tool.name, tool.effect, tool.needs, tool.confirmed
        ));
    }
    for agent in &review.agents {
        told.push(format!("{}: {}", agent.id, agent.tools.join(" ")));
    }
    for scope in &review.scopes {
        told.push(format!(
            "{}: {} / {}",
            scope.scope,
            scope.named_for.join(" "),
            named(&scope.enough_for)
        ));
    }
    assert_snapshot!(told.join("\n"), @r#"
    memory.search read [["call"]] confirmed=false agents: * reader-* reader-7
    notes.add write [["call"], ["notes", "admin"]] confirmed=false agents: *
    notes.clear write [["call"], ["notes", "admin"]] confirmed=true agents: none
    notes.list read [["call"], ["notes", "admin"]] confirmed=false agents: * reader-*
    *: memory.search notes.add notes.list
    reader-*: memory.search notes.list
    reader-7: memory.search
    call: memory.search notes.add notes.clear notes.list / memory.search
    notes: notes.add notes.clear notes.list / none
    admin: notes.add notes.clear notes.list / none
    "#);
    // The same decisions, asked one by one with ids that the patterns match.
    let ids = [
        ("*", "anybody"),
        ("reader-*", "reader-x"),
        ("reader-7", "reader-7"),
    ];
    for (pattern, id) in ids {
        let actor = Actor {
            kind: ActorType::Agent,
            id: id.to_owned(),
        };
        let agent = ["call", "notes", "admin"]
            .into_iter()
            .fold(Principal::new(actor, "u_1"), Principal::scope);
        let mut allowed = Vec::new();
        for spec in &specs {
            let decision = policy.decide(&agent, spec).await.unwrap();
            if decision.verdict == Verdict::Allow {
                allowed.push(spec.name.to_string());
            }
        }
        let reviewed = review
            .agents
            .iter()
            .find(|agent| agent.id == pattern)
            .unwrap();
        assert_eq!(reviewed.tools, allowed, "{pattern}");
    }
}

/// Limits, budgets and confirmations by two people are part of a review, each with the tools that it counts.
#[test]
fn what_is_counted_is_reviewed() {
    let policy = Policy::parse(
        r#"
        defaults = { unlisted = "allow" }
        [[tools]]
        match = "notes.clear"
        confirm = "always"
        four_eyes = true
        [[limits.user]]
        calls = 60
        per = "60s"
        [limits.tools."notes.*"]
        calls = 3
        per = "24h"
        counted = "together"
        when = "principal.user != 'ann'"
        [breaker]
        identical = 5
        per = "10m"
        except = ["memory.*"]
        [[budgets]]
        name = "daily"
        scope = "global"
        limit = "500.00"
        currency = "EUR"
        per = "1d"
        [[budgets.tools]]
        match = "notes.add"
        amount = "/text"
    "#,
    )
    .unwrap();
    let entries = catalog().list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    let review = serde_json::to_value(policy.review(&specs)).unwrap();
    let by_two = review["tools"].as_array().unwrap().iter();
    let by_two: Vec<_> = by_two.filter(|tool| tool["four_eyes"] == true).collect();
    assert_eq!(by_two.len(), 1);
    assert_eq!(by_two[0]["name"], "notes.clear");
    assert_eq!(
        review["limits"],
        serde_json::json!([
            {"of": "user", "calls": 60, "per": "1m", "shared": false, "tools": []},
            {"of": "together", "match": "notes.*", "calls": 3, "per": "1d", "shared": false, "when": "principal.user != 'ann'",
             "tools": ["notes.add", "notes.clear", "notes.list"]},
        ])
    );
    assert_eq!(
        review["breaker"],
        serde_json::json!({"identical": 5, "per": "10m", "except": ["memory.search"]})
    );
    assert_eq!(
        review["budgets"],
        serde_json::json!([{"name": "daily", "scope": "global", "limit": "500.00", "currency": "EUR", "per": "1d",
            "spenders": [{"match": "notes.add", "refund": false, "tools": ["notes.add"]}]}])
    );
}
