//! `cargo xtask bench`: one table of what binding and executing cost, with the targets.
//!
//! What is compared is measured in turns: a round of ours, a round of the peer, in alternating
//! order, and the ratio is the median over the rounds. A machine that is busy with something else
//! slows both sides of a round, so the ratio holds where the single times do not. The peer is
//! `serde_json` into a value and a prepared `jsonschema` validator: a reader that repairs nothing.
//! Nothing here fails for being slow; the table says what is over its target.

use std::hint::black_box;
use std::io::{Result, Write, stdout};
use std::time::{Duration, Instant};

use countersign::contract::canonical;
use countersign::contract::tool::BindPolicy;
use countersign::{CallContext, Catalog, Executor, Principal, Tool, ToolCall, ToolError};
use countersign_args::{Binder, Limits};
use countersign_benches::calls::{self, Call};
use countersign_benches::{damage, hostile};
use jsonschema::Validator;
use serde_json::Value;

/// How much is measured: fewer rounds show the order of magnitude in seconds.
struct Effort {
    rounds: usize,
    passes: usize,
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let effort = if quick {
        Effort {
            rounds: 9,
            passes: 5,
        }
    } else {
        Effort {
            rounds: 101,
            passes: 20,
        }
    };
    let mut table = Table::default();
    binding(&effort, &mut table);
    executing(&effort, &mut table);
    hostile_texts(&effort, &mut table);
    table.print(&mut stdout().lock())
}

fn binding(effort: &Effort, table: &mut Table) {
    let schemas = calls::schemas();
    let binders: Vec<Binder> = schemas.iter().map(prepared).collect();
    let validators: Vec<Validator> = schemas
        .iter()
        .map(|schema| {
            jsonschema::validator_for(schema).expect("the inputs' test prepares them all")
        })
        .collect();
    let calls = calls::all();
    let texts: Vec<String> = damage::all(&calls)
        .into_iter()
        .map(|(_, text)| text)
        .collect();

    let ours = || {
        for_each(&calls, &binders, |call, binder| {
            black_box(binder.bind(&call.text));
        });
    };
    let peer = || {
        for_each(&calls, &validators, |call, validator| {
            let value = serde_json::from_str::<Value>(&call.text).unwrap_or_default();
            black_box(validator.is_valid(&value));
        });
    };
    let damaged = || {
        for (call, text) in calls.iter().zip(&texts) {
            if let Some(binder) = binders.get(call.tool) {
                black_box(binder.bind(text));
            }
        }
    };
    let forms = || {
        for call in &calls {
            let _ = black_box(canonical::from_json_text(&call.text));
        }
    };

    let count = calls.len();
    let pair = in_turns(effort, count, &ours, &peer);
    let target = Target::AtMost(1.3);
    table.row(
        "bind, well-formed call",
        &time(pair.ours),
        &format!("peer {}", time(pair.peer)),
        pair.ratio,
        target,
    );
    let pair = in_turns(effort, count, &damaged, &peer);
    let target = Target::AtMost(5.0);
    table.row(
        "bind, damaged call",
        &time(pair.ours),
        &format!("peer, undamaged {}", time(pair.peer)),
        pair.ratio,
        target,
    );
    let pair = in_turns(effort, count, &forms, &peer);
    table.row(
        "canonical form of a call",
        &time(pair.ours),
        &format!("peer {}", time(pair.peer)),
        pair.ratio,
        Target::None,
    );
}

fn for_each<P>(calls: &[Call], prepared: &[P], run: impl Fn(&Call, &P)) {
    for call in calls {
        if let Some(prepared) = prepared.get(call.tool) {
            run(call, prepared);
        }
    }
}

/// A read that does nothing: what is left is the executor.
struct Nothing;

impl Tool for Nothing {
    const NAME: &'static str = "bench.nothing";
    const DESCRIPTION: &'static str = "Does nothing.";
    type Args = ();
    type Output = ();

    async fn call(&self, _: &CallContext, (): ()) -> std::result::Result<(), ToolError> {
        Ok(())
    }
}

/// How many calls a pass has.
const CALLS: usize = 200;

fn executing(effort: &Effort, table: &mut Table) {
    let catalog = Catalog::builder()
        .tool(Nothing)
        .build()
        .expect("one good tool is a catalog");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime without I/O needs nothing");
    let executor = Executor::new(catalog.clone());
    let principal = std::sync::Arc::new(Principal::user("u_1"));
    let run = || {
        runtime.block_on(async {
            for _ in 0..CALLS {
                let call = ToolCall::new(Nothing::NAME, "{}", principal.clone());
                black_box(executor.execute(call).await);
            }
        });
    };
    let look_up = || {
        for _ in 0..CALLS {
            black_box(catalog.get(black_box(Nothing::NAME)));
        }
    };
    let pair = in_turns(effort, CALLS, &run, &look_up);
    table.row(
        "execute a read that does nothing",
        &time(pair.ours),
        "",
        pair.ours.as_secs_f64() * 1e6,
        Target::Micros(3.0),
    );
    table.row(
        "look a tool up",
        &time(pair.peer),
        "",
        pair.peer.as_secs_f64() * 1e6,
        Target::None,
    );
}

fn hostile_texts(effort: &Effort, table: &mut Table) {
    let limits = Limits {
        raw_bytes_max: 2 * 1024 * 1024,
        ..Limits::default()
    };
    for hostile in hostile::all() {
        let binder = prepared(&hostile.schema).with_limits(limits);
        let mut times: Vec<Duration> = (0..effort.rounds.min(7))
            .map(|_| {
                let started = Instant::now();
                black_box(binder.bind(&hostile.text));
                started.elapsed()
            })
            .collect();
        let memory = allocation_counter::measure(|| drop(black_box(binder.bind(&hostile.text))));
        let per_byte = precise(memory.bytes_max) / precise(hostile.text.len() as u64);
        let took = median(&mut times);
        let millis = took.as_secs_f64() * 1e3;
        let size = format!(
            "{} KB, peak {per_byte:.1} B a byte",
            hostile.text.len() / 1024
        );
        table.row(
            &format!("1 MB of {}", hostile.name),
            &time(took),
            &size,
            millis,
            Target::Millis(50.0),
        );
    }
}

fn prepared(schema: &Value) -> Binder {
    Binder::from_schema(schema, BindPolicy::default()).expect("the inputs' test prepares them all")
}

/// A count as a fraction can be taken of it; counts here are far below 2^32.
fn precise(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// Times a call, and the median of the rounds' ratios.
struct Pair {
    ours: Duration,
    peer: Duration,
    ratio: f64,
}

/// Measures two things in turns, each over `count` calls a pass.
fn in_turns(effort: &Effort, count: usize, ours: &dyn Fn(), peer: &dyn Fn()) -> Pair {
    let timed = |run: &dyn Fn()| {
        let started = Instant::now();
        for _ in 0..effort.passes {
            run();
        }
        started.elapsed()
    };
    timed(ours);
    timed(peer);
    let (mut own, mut others, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..effort.rounds {
        let (a, b) = if round % 2 == 0 {
            let a = timed(ours);
            (a, timed(peer))
        } else {
            let b = timed(peer);
            (timed(ours), b)
        };
        own.push(a);
        others.push(b);
        ratios.push(a.as_secs_f64() / b.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    let calls = u32::try_from(count * effort.passes).unwrap_or(u32::MAX);
    Pair {
        ours: median(&mut own) / calls,
        peer: median(&mut others) / calls,
        ratio: ratios.get(ratios.len() / 2).copied().unwrap_or_default(),
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn time(time: Duration) -> String {
    let nanos = time.as_secs_f64() * 1e9;
    match nanos {
        small if small < 1e3 => format!("{small:.0} ns"),
        medium if medium < 1e6 => format!("{:.2} µs", medium / 1e3),
        large => format!("{:.2} ms", large / 1e6),
    }
}

/// What a figure should be.
#[derive(Clone, Copy)]
enum Target {
    AtMost(f64),
    Micros(f64),
    Millis(f64),
    None,
}

/// Rows of Markdown, so that the table can be pasted.
#[derive(Default)]
struct Table {
    rows: Vec<[String; 5]>,
}

impl Table {
    fn row(&mut self, what: &str, ours: &str, beside: &str, figure: f64, target: Target) {
        let (shown, target, holds) = match target {
            Target::AtMost(most) => (
                format!("{figure:.2} ×"),
                format!("≤ {most} ×"),
                figure <= most,
            ),
            Target::Micros(most) => (
                format!("{figure:.2} µs"),
                format!("≤ {most} µs"),
                figure <= most,
            ),
            Target::Millis(most) => (
                format!("{figure:.1} ms"),
                format!("< {most} ms"),
                figure < most,
            ),
            Target::None => (String::new(), String::new(), true),
        };
        let target = if holds {
            target
        } else {
            format!("{target}, OVER")
        };
        self.rows.push([
            what.to_owned(),
            ours.to_owned(),
            beside.to_owned(),
            shown,
            target,
        ]);
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        let head = ["what", "ours", "beside", "figure", "target"].map(str::to_owned);
        let all = || std::iter::once(&head).chain(&self.rows);
        let width = |column: usize| {
            all()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for (index, row) in all().enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                write!(out, "| {cell:<width$} ")?;
            }
            writeln!(out, "|")?;
            if index == 0 {
                for width in &widths {
                    write!(out, "|{}", "-".repeat(width + 2))?;
                }
                writeln!(out, "|")?;
            }
        }
        Ok(())
    }
}
