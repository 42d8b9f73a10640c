//! `countersign policy check` and `countersign serve --check`: who may call what under a policy, and what in it looks like a mistake.

use std::io::Write as _;

use countersign::contract::ToolSpec;
use countersign_config::Loaded;
use countersign_gateway::policy::{Policy, Review, ReviewedLimit, ReviewedTool};

use crate::answer::write_json;
use crate::catalog;
use crate::commands::counted;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy;
use crate::table::Table;
use crate::terminal::Terminal;

/// Maximum number of tools that a row names.
const NAMED_MAX: usize = 4;

/// Looks at a policy that was read, against the tools of the configuration.
pub(crate) fn check(
    terminal: &mut Terminal,
    policy: &Policy,
    loaded: &Loaded,
) -> Result<Exit, Failure> {
    let catalog = catalog::declared(loaded)?;
    let entries = catalog.list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    let fits = policy.fits(&specs);
    fits.map_err(|error| policy::refused(loaded, error))?;
    let review = policy.review_catalog(&catalog);
    if terminal.is_for_programs() {
        write_json(terminal, &review)?;
        return Ok(Exit::Ok);
    }
    for table in tables(&review) {
        if !table.is_empty() {
            let table = table.on(terminal);
            writeln!(terminal.data(), "{table}\n")?;
        }
    }
    for warning in &review.warnings {
        terminal.say(format_args!("warning: {}", warning.message))?;
    }
    let (callable, all) = (review.callable(), review.tools.len());
    let found = format!(
        "policy {} is valid; {callable} of {all} tools can be called",
        review.policy
    );
    if review.warnings.is_empty() {
        terminal.say(format_args!("ok: {found}"))?;
    } else {
        let warnings = counted(review.warnings.len(), "warning", "warnings");
        terminal.say(format_args!("{found}; {warnings}"))?;
    }
    Ok(Exit::Ok)
}

fn tables(review: &Review) -> [Table; 7] {
    let mut tools = Table::new(["TOOL", "EFFECT", "CONFIRMED", "AGENTS", "NEEDS"]);
    for tool in &review.tools {
        let confirmed = match (tool.confirmed, tool.four_eyes) {
            (true, true) => "by two people",
            (true, false) => "yes",
            (false, _) => "-",
        };
        let agents = agents_of(tool, review);
        tools.row([&tool.name, tool.effect, confirmed, &agents, &needs(tool)]);
    }
    let mut rules = Table::new(["RULE", "SCOPES", "TOOLS"]);
    for rule in &review.rules {
        let scopes = if rule.scopes.is_empty() {
            "-".to_owned()
        } else {
            rule.scopes.join(" or ")
        };
        rules.row([&rule.pattern, &scopes, &named(&rule.tools)]);
    }
    let mut conditions = Table::new(["CONDITION", "LINE", "THEN", "WHEN", "TOOLS"]);
    for rule in &review.conditions {
        let observed = format!("{} (observed)", rule.then);
        let then = if rule.enforced { rule.then } else { &observed };
        let when = rule.when.as_deref().unwrap_or("always");
        let line = rule.line.to_string();
        conditions.row([&rule.name, &line, then, when, &named(&rule.tools)]);
    }
    let mut agents = Table::new(["AGENT", "EFFECTS", "MAY CALL, WITH EVERY SCOPE"]);
    for agent in &review.agents {
        let effects = agent
            .effects
            .map_or_else(|| "any".to_owned(), |effects| effects.to_string());
        agents.row([&agent.id, &effects, &named(&agent.tools)]);
    }
    let mut scopes = Table::new(["SCOPE", "NAMED FOR", "ENOUGH FOR"]);
    for scope in &review.scopes {
        scopes.row([
            &scope.scope,
            &named(&scope.named_for),
            &named(&scope.enough_for),
        ]);
    }
    let [limits, budgets] = counted_tables(review);
    [tools, rules, conditions, agents, scopes, limits, budgets]
}

/// Tables of the limits on calls and of the budgets, each with the tools that it counts.
fn counted_tables(review: &Review) -> [Table; 2] {
    let mut limits = Table::new(["LIMIT FOR", "CALLS", "WHEN", "TOOLS"]);
    for limit in &review.limits {
        let calls = format!("{} per {}", limit.calls, limit.per);
        let when = limit.when.as_deref().unwrap_or("always");
        let tools = match &limit.pattern {
            Some(_) => named(&limit.tools),
            None => "all together".to_owned(),
        };
        limits.row([owner(limit), &calls, when, &tools]);
    }
    if let Some(breaker) = &review.breaker {
        let calls = format!("{} identical per {}", breaker.identical, breaker.per);
        let tools = if breaker.except.is_empty() {
            "each".to_owned()
        } else {
            format!("each, except {}", named(&breaker.except))
        };
        limits.row(["each session", &calls, "always", &tools]);
    }
    let mut budgets = Table::new(["BUDGET", "FOR", "AMOUNT", "WHEN", "TOOLS"]);
    for budget in &review.budgets {
        let whose = match budget.scope {
            "user" => "each user",
            "agent" => "each agent",
            "session" => "each session",
            _ => "all callers together",
        };
        let mut amount = format!("{} {}", budget.limit, budget.currency);
        match &budget.per {
            Some(per) => amount = format!("{amount} per {per}"),
            None => amount.push_str(", once"),
        }
        for spender in &budget.spenders {
            let when = spender.when.as_deref().unwrap_or("always");
            let mut tools = named(&spender.tools);
            if spender.refund {
                tools.push_str(" (refund)");
            }
            budgets.row([&budget.name, whose, &amount, when, &tools]);
        }
    }
    [limits, budgets]
}

/// Callers that share a limit.
fn owner(limit: &ReviewedLimit) -> &'static str {
    match limit.of {
        "agent" => "each agent",
        "session" => "each session",
        "together" => "all callers together",
        // Over all tools (`user`) or over some (`each_user`).
        _ => "each user",
    }
}

/// `tools:call and (notes:write or admin)`.
fn needs(tool: &ReviewedTool) -> String {
    if !tool.callable {
        return "no caller: no rule allows it".to_owned();
    }
    if tool.needs.is_empty() {
        return "no scope".to_owned();
    }
    let lists = tool.needs.iter().map(|scopes| match scopes.as_slice() {
        [scope] => scope.clone(),
        scopes => format!("({})", scopes.join(" or ")),
    });
    lists.collect::<Vec<_>>().join(" and ")
}

fn agents_of(tool: &ReviewedTool, review: &Review) -> String {
    if tool.agents.is_empty() {
        return "none".to_owned();
    }
    if tool.agents.len() == review.agents.len() {
        return "all".to_owned();
    }
    tool.agents.join(", ")
}

/// Formats the number of tools, and the names of the first ones.
fn named(tools: &[String]) -> String {
    let first: Vec<&str> = tools.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if tools.len() > NAMED_MAX { ", …" } else { "" };
    match tools.len() {
        0 => "none".to_owned(),
        count => format!("{count}: {}{more}", first.join(", ")),
    }
}
