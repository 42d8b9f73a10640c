//! `countersign tools --tokens`: the tokens that a list of tools costs a model, by provider, with and without the facade.

use std::io::Write as _;
use std::sync::Arc;

use countersign::catalog::Entry;
use countersign::contract::ToolSpec;
use countersign::dialect::{Dialect, ToolListOptions};
use countersign_gateway::offer::Own;
use serde_json::{Map, Value, json};

use crate::answer::write_json;
use crate::failure::Failure;
use crate::table::Table;
use crate::terminal::Terminal;

/// The providers, in the order of the columns.
const DIALECTS: [(Dialect, &str); 5] = [
    (Dialect::OpenAi, "openai"),
    (Dialect::OpenAiResponses, "openai-responses"),
    (Dialect::Anthropic, "anthropic"),
    (Dialect::Gemini, "gemini"),
    (Dialect::Mcp, "mcp"),
];

/// The head of the table.
const HEAD: [&str; 6] = ["TOOL", "OPENAI", "RESPONSES", "ANTHROPIC", "GEMINI", "MCP"];

/// The tools that a caller sees who has the facade.
const FACADE: [Own; 3] = [Own::SearchTools, Own::DescribeTool, Own::CallTool];

/// The tokens in the words of each provider; `None` if it cannot be shown there.
type Costs = [Option<usize>; DIALECTS.len()];

/// Writes the cost of each tool, most expensive first, then that of the whole list and of the facade.
pub(super) fn write(
    terminal: &mut Terminal,
    entries: &[Arc<Entry>],
    is_strict: bool,
) -> Result<(), Failure> {
    let is_tool = |name: &str| entries.iter().any(|entry| entry.name().as_str() == name);
    let options = ToolListOptions {
        strict: is_strict,
        ..ToolListOptions::default()
    };
    let cost = |dialect: Dialect, specs: &[&ToolSpec]| {
        let list = dialect.tools_among(specs, &is_tool, &options);
        list.ok().map(|list| list.tokens)
    };
    let mut tools: Vec<(&ToolSpec, Costs)> = entries
        .iter()
        .map(|entry| entry.spec())
        .map(|spec| (spec, DIALECTS.map(|(dialect, _)| cost(dialect, &[spec]))))
        .collect();
    let dearest = |costs: &Costs| costs.iter().flatten().max().copied();
    tools.sort_by(|(a, one), (b, other)| (dearest(other), &a.name).cmp(&(dearest(one), &b.name)));
    // A provider is shown the tools that it can be shown.
    let mut all = Costs::default();
    let mut hidden = Vec::new();
    for (place, ((dialect, name), all)) in DIALECTS.iter().zip(&mut all).enumerate() {
        let is_shown = |costs: &Costs| costs.get(place).is_some_and(Option::is_some);
        let shown = tools.iter().filter(|(_, costs)| is_shown(costs));
        let shown: Vec<&ToolSpec> = shown.map(|(spec, _)| *spec).collect();
        *all = cost(*dialect, &shown);
        hidden.push((*name, tools.len() - shown.len()));
    }
    let facade = DIALECTS.map(|(dialect, _)| cost(dialect, &FACADE.map(Own::spec)));
    if terminal.is_for_programs() {
        let tools = tools.iter().map(|(spec, costs)| {
            let mut tool = named(costs);
            tool.insert("name".to_owned(), spec.name.as_str().into());
            Value::Object(tool)
        });
        let answer = json!({
            "estimate": "bytes / 4",
            "tools": tools.collect::<Vec<_>>(),
            "all_tools": named(&all),
            "facade": named(&facade),
        });
        return write_json(terminal, &answer);
    }
    let mut table = Table::new(HEAD);
    for (spec, costs) in &tools {
        row(&mut table, spec.name.as_str(), costs);
    }
    table.gap();
    row(&mut table, "all tools", &all);
    row(&mut table, "with the facade", &facade);
    let table = table.on(terminal);
    writeln!(terminal.data(), "{table}")?;
    for (name, count) in hidden.into_iter().filter(|(_, count)| *count > 0) {
        terminal.say(format_args!(
            "note: {count} tools cannot be expressed for {name} and are not counted there"
        ))?;
    }
    Ok(terminal.say("tokens are estimated: bytes of JSON / 4")?)
}

fn row(table: &mut Table, name: &str, costs: &Costs) {
    let shown = |cost: Option<usize>| cost.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let [chat, responses, anthropic, gemini, mcp] = costs.map(shown);
    table.row([name, &chat, &responses, &anthropic, &gemini, &mcp]);
}

fn named(costs: &Costs) -> Map<String, Value> {
    let named = DIALECTS.iter().zip(costs);
    named
        .map(|((_, name), cost)| ((*name).to_owned(), (*cost).into()))
        .collect()
}
