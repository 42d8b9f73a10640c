//! `cargo xtask bench`: one table of the costs of binding and executing, with the targets.
//!
//! Times and ratios are criterion's, of the run before this one. Beside them stand the two ratios that have a target, measured in turns: a
//! round of ours, a round of the peer, in alternating order, and the median over the rounds. A machine that is busy with something else
//! slows both sides of a round, so this ratio is stable while the others drift: it decides which figures are over their target. Nothing
//! here fails for being slow. `--declarations FILE`, once or more, adds the declarations of corpora: one call to each of them in turn.

use std::fs;
use std::hint::black_box;
use std::io::{Result, Write, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use countersign::dialect;
use countersign_args::Limits;
use countersign_benches::work::{self, Binding, Executing, Reading};
use countersign_benches::{declarations, hostile, written};
use serde_json::Value;

/// Amount of measuring in turns.
struct Effort {
    rounds: usize,
    passes: usize,
}

fn main() -> Result<()> {
    let has = |option: &str| std::env::args().any(|argument| argument == option);
    let (rounds, passes) = match (has("--bench"), has("--quick")) {
        // Short rounds: one that the machine interrupts is far off, and the median leaves it out.
        (true, false) => (801, 2),
        // Shows the order of magnitude in seconds.
        (true, true) => (41, 2),
        // Not `cargo bench` but `cargo test`: only whether it runs.
        (false, _) => (1, 1),
    };
    let effort = Effort { rounds, passes };
    let mut table = Table::default();
    binding(&effort, &mut table);
    declarations(&effort, &mut table)?;
    reading(&effort, &mut table)?;
    executing(&mut table);
    hostile_texts(&effort, &mut table);
    marks(&effort, &mut table);
    table.print(&mut stdout().lock())
}

fn binding(effort: &Effort, table: &mut Table) {
    let binding = Binding::prepare();
    let count = binding.count();
    let estimate = |id| estimate(id, count);
    let peer = estimate("bind/peer");
    let in_turns = |ours: &dyn Fn()| in_turns(effort, ours, &|| binding.peer());

    let ours = estimate("bind/well_formed");
    let turns = in_turns(&|| binding.well_formed());
    let target = Target::AtMost(1.0);
    table.compared("bind, well-formed call", ours, peer, Some((turns, target)));
    let ours = estimate("bind/damaged");
    let turns = in_turns(&|| binding.damaged());
    let target = Target::AtMost(4.0);
    table.compared("bind, damaged call", ours, peer, Some((turns, target)));
    let ours = estimate("canonical/form");
    table.compared("canonical form of a call", ours, peer, None);
}

/// Calls to every declaration of the files behind `--declarations`, in turn.
fn declarations(effort: &Effort, table: &mut Table) -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let pairs = arguments.iter().zip(arguments.iter().skip(1));
    let files: Vec<&Path> = pairs
        .filter(|(option, _)| *option == "--declarations")
        .map(|(_, file)| Path::new(file))
        .collect();
    if files.is_empty() {
        return Ok(());
    }
    let (schemas, calls) = declarations::read(&files)?;
    let binding = Binding::of(&schemas, calls);
    // A pass is much longer than one of the generated calls.
    let effort = Effort {
        rounds: effort.rounds.div_ceil(2),
        passes: 1,
    };
    let against = |ours: &dyn Fn()| in_turns(&effort, ours, &|| binding.peer());
    for (what, turns, target) in [
        ("well-formed", against(&|| binding.well_formed()), 1.0),
        ("damaged", against(&|| binding.damaged()), 4.0),
    ] {
        let what = format!("bind, {what}, {} declarations in turn", schemas.len());
        table.row([
            &what,
            "",
            "",
            "",
            &format!("{turns:.2} ×"),
            &Target::AtMost(target).against(Some(turns)),
        ]);
    }
    Ok(())
}

/// A model's whole texts, beside one pass over their characters.
fn reading(effort: &Effort, table: &mut Table) -> Result<()> {
    let reading = Reading::prepare()?;
    let turns = in_turns(effort, &|| reading.read(), &|| reading.scan());
    table.row([
        &format!("read the calls of {} whole texts", reading.count()),
        "",
        "a pass over them",
        "",
        &format!("{turns:.2} ×"),
        &Target::AtMost(3.0).against(Some(turns)),
    ]);
    Ok(())
}

/// Whole texts that are made to be expensive.
fn marks(effort: &Effort, table: &mut Table) {
    for marks in written::marks() {
        let read = || black_box(dialect::written::read(&marks.text, marks.format)).is_ok();
        let mut times: Vec<Duration> = (0..effort.rounds.min(7))
            .map(|_| {
                let started = Instant::now();
                black_box(read());
                started.elapsed()
            })
            .collect();
        let took = median(&mut times);
        table.row([
            &format!("1 MB of {}, as a whole text", marks.name),
            &time(Some(took)),
            &format!("{} KB", marks.text.len() / 1024),
            "",
            "",
            &Target::Millis(50.0).against(Some(took.as_secs_f64() * 1e3)),
        ]);
    }
}

fn executing(table: &mut Table) {
    let read = estimate("executor/no_op_read", Executing::COUNT);
    let micros = read.map(|read| read.as_secs_f64() * 1e6);
    table.row([
        "execute a read that does nothing",
        &time(read),
        "",
        "",
        "",
        &Target::Micros(3.0).against(micros),
    ]);
    let look_up = estimate("catalog/look_up", Executing::COUNT);
    table.row(["look a tool up", &time(look_up), "", "", "", ""]);
}

/// Returns criterion's median of the time a call took; `None` if it has not measured that yet, which the table shows as a gap.
fn estimate(id: &str, count: usize) -> Option<Duration> {
    // Criterion writes beside the folder that cargo gives every bench.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion");
    let json = fs::read(folder.join(id).join("new/estimates.json")).ok()?;
    let estimates: Value = serde_json::from_slice(&json).ok()?;
    let nanos = estimates.pointer("/median/point_estimate")?.as_f64()?;
    Some(Duration::from_secs_f64(nanos / 1e9) / u32::try_from(count).ok()?)
}

fn hostile_texts(effort: &Effort, table: &mut Table) {
    let limits = Limits {
        raw_bytes_max: 2 * 1024 * 1024,
        ..Limits::default()
    };
    for hostile in hostile::all() {
        let binder = work::binder(&hostile.schema).with_limits(limits);
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
        table.row([
            &format!("1 MB of {}", hostile.name),
            &time(Some(took)),
            &size,
            "",
            "",
            &Target::Millis(50.0).against(Some(millis)),
        ]);
    }
}

/// A count as a fraction can be taken of it; counts here are far below 2^32.
fn precise(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// Measures two things in turns: the median of the rounds' ratios.
fn in_turns(effort: &Effort, ours: &dyn Fn(), peer: &dyn Fn()) -> f64 {
    let timed = |run: &dyn Fn()| {
        let started = Instant::now();
        for _ in 0..effort.passes {
            run();
        }
        started.elapsed()
    };
    timed(ours);
    timed(peer);
    let mut ratios: Vec<f64> = (0..effort.rounds)
        .map(|round| {
            let (ours, peer) = if round % 2 == 0 {
                let ours = timed(ours);
                (ours, timed(peer))
            } else {
                let peer = timed(peer);
                (timed(ours), peer)
            };
            ours.as_secs_f64() / peer.as_secs_f64()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or_default()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn time(time: Option<Duration>) -> String {
    let Some(time) = time else {
        return "not measured".to_owned();
    };
    let nanos = time.as_secs_f64() * 1e9;
    match nanos {
        small if small < 1e3 => format!("{small:.0} ns"),
        medium if medium < 1e6 => format!("{:.2} µs", medium / 1e3),
        large => format!("{:.2} ms", large / 1e6),
    }
}

/// Target of a figure.
#[derive(Clone, Copy)]
enum Target {
    AtMost(f64),
    Micros(f64),
    Millis(f64),
}

impl Target {
    /// The target as the table shows it, and whether the figure is over it.
    fn against(self, figure: Option<f64>) -> String {
        let (shown, most) = match self {
            Self::AtMost(most) => (format!("≤ {most} ×"), most),
            Self::Micros(most) => (format!("≤ {most} µs"), most),
            Self::Millis(most) => (format!("≤ {most} ms"), most),
        };
        match figure {
            Some(figure) if figure > most => format!("{shown}, OVER"),
            Some(_) | None => shown,
        }
    }
}

const HEAD: [&str; 6] = ["what", "ours", "beside", "ratio", "in turns", "target"];

/// Rows of Markdown, so that the table can be pasted.
#[derive(Default)]
struct Table {
    rows: Vec<[String; HEAD.len()]>,
}

impl Table {
    fn row(&mut self, cells: [&str; HEAD.len()]) {
        self.rows.push(cells.map(str::to_owned));
    }

    /// Ours beside the peer, which reads the undamaged calls; and the ratio in turns, with its target.
    fn compared(
        &mut self,
        what: &str,
        ours: Option<Duration>,
        peer: Option<Duration>,
        turns: Option<(f64, Target)>,
    ) {
        let ratio = ours
            .zip(peer)
            .map(|(ours, peer)| ours.div_duration_f64(peer));
        let shown = |ratio: Option<f64>| ratio.map(|ratio| format!("{ratio:.2} ×"));
        let target = turns.map(|(turns, target)| target.against(Some(turns)));
        self.row([
            what,
            &time(ours),
            &format!("peer {}", time(peer)),
            &shown(ratio).unwrap_or_default(),
            &shown(turns.map(|(turns, _)| turns)).unwrap_or_default(),
            &target.unwrap_or_default(),
        ]);
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        let head = HEAD.map(str::to_owned);
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
