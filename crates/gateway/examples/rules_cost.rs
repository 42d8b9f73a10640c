//! Makes one call many times under conditional rules, to measure what the rules cost.
//!
//! `rules_cost RULES CALLS`. It prints the microseconds of a call. Run it under `valgrind --tool=callgrind` with 0 and with 200 rules;
//! the difference of the instructions, divided by the number of calls, is the cost of 200 rules for one call.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for measuring"
)]

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use countersign::sample::MemorySearch;
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_gateway::policy::{LivePolicy, Policy};

/// Conditions over the caller, the arguments and the time, in turns; none of them holds.
const CONDITIONS: [&str; 5] = [
    "size(args.query) > NUMBER00",
    "args.query.startsWith('rule NUMBER') || args.query.contains('number NUMBER')",
    "principal.type == 'agent' && principal.actor == 'bot-NUMBER'",
    "now > timestamp('2999-12-31T00:00:00Z') && args.query == 'NUMBER'",
    "principal.user in ['a-NUMBER', 'b-NUMBER', 'c-NUMBER'] && tool.effect == 'read'",
];

fn policy(rules: usize) -> String {
    let mut text = "defaults = { unlisted = \"allow\" }\n".to_owned();
    for (number, condition) in (1..=rules).zip(CONDITIONS.iter().cycle()) {
        let when = condition.replace("NUMBER", &number.to_string());
        write!(
            text,
            "[[rules]]\nname = \"r{number}\"\nmatch = \"memory.*\"\nwhen = \"{when}\"\nthen = \"deny\"\n"
        )
        .unwrap();
    }
    text
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().map_or(usual, |text| text.parse().unwrap());
    let (rules, calls): (usize, usize) = (number(200), number(1000));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let catalog = Catalog::builder()
            .tool(MemorySearch::new(["buy milk"]))
            .build()
            .unwrap();
        let live = LivePolicy::fixed(Policy::parse(&policy(rules)).unwrap());
        live.check_against(&catalog).unwrap();
        let executor = Executor::builder(catalog)
            .authorizer(Arc::new(live))
            .build();
        let begun = Instant::now();
        for call in 0..calls {
            let text = format!("{{\"query\": \"buy {call} bottles of milk\"}}");
            let call = ToolCall::new("memory.search", text.as_str(), Principal::user("ann"));
            let reply = executor.execute(call).await;
            assert!(reply.error.is_none(), "{:?}", reply.error);
        }
        let each = begun.elapsed().as_secs_f64() * 1e6 / f64::from(u32::try_from(calls).unwrap());
        println!("{rules} rules: {each:.1} µs a call, {calls} calls");
    });
}
