//! `countersign-torture`: a worker that may die, and the drivers that check the effects afterwards.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand};
use countersign_testkit::postgres::TempPostgres;
use countersign_torture::clocks;
use countersign_torture::driver::{Arena, Kills, Race, kills, race, worker_program};
use countersign_torture::failover::{self, Cluster};
use countersign_torture::faults::{self, Fault, Faults, Library};
use countersign_torture::point::{End, Fate, Point};
use countersign_torture::rows;
use countersign_torture::server;
use countersign_torture::simulation::{self, Outcome};
use countersign_torture::tools::Kind;
use countersign_torture::upstream::{self, Act};
use countersign_torture::worker::{self, Job};
use indicatif::{ProgressBar, ProgressStyle};

/// Kills, pauses and races real processes, and counts what they did.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs keyed calls and tells what was answered; started by the others.
    Worker(Worker),
    /// Serves effects over HTTP that can be counted; started by tests.
    Service {
        #[arg(long)]
        address: String,
        #[arg(long)]
        ledger: PathBuf,
        #[arg(long)]
        act: Act,
    },
    /// Makes one call to such a service and prints the reply; started by tests.
    Call {
        #[arg(long)]
        store: String,
        #[arg(long)]
        manifest: PathBuf,
        #[arg(long)]
        key: Option<String>,
    },
    /// `kill -9` at every point and at any moment, on SQLite and PostgreSQL.
    Kills {
        /// Number of kills of each kind of tool on each store.
        #[arg(long, default_value_t = 100)]
        kills: u32,
        /// Repeats a run.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Processes on one PostgreSQL that race for the same keys.
    Race {
        /// Number of keys.
        #[arg(long, default_value_t = 10_000)]
        keys: u32,
        /// Number of processes.
        #[arg(long, default_value_t = 8)]
        processes: u32,
    },
    /// Clocks that lie at every start and in between, on SQLite.
    Clocks {
        /// How many starts.
        #[arg(long, default_value_t = 300)]
        starts: u32,
        /// Repeats a run.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// A disk that fails, is full, tears writes or lies, under a real server on SQLite.
    Disks {
        /// Lives of a server for each fault.
        #[arg(long, default_value_t = 100)]
        rounds: u32,
        /// Only faults whose name contains this text.
        #[arg(long, default_value = "")]
        only: String,
        /// Repeats a run.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The server's program; the one beside this program where it is left out.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Rows of a SQLite store that are put back, deleted and changed with SQL.
    Rows {
        /// Of the changes of one column, one in so many is made.
        #[arg(long, default_value_t = 1)]
        one_in: usize,
        /// The server's program; the one beside this program where it is left out.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Processes, faults of a store and clocks on one thread, decided by seeds.
    Simulate {
        /// Number of seeds.
        #[arg(long, default_value_t = 10_000)]
        seeds: u64,
        /// The first one.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Failovers of three PostgreSQL servers under patroni, while four processes work.
    Failover {
        /// Number of failovers.
        #[arg(long, default_value_t = 50)]
        times: u32,
    },
    /// A PostgreSQL that restarts and cuts connections while processes work.
    Restarts {
        /// Number of restarts.
        #[arg(long, default_value_t = 200)]
        times: u32,
        /// Number of keys.
        #[arg(long, default_value_t = 10_000)]
        keys: u32,
    },
}

#[derive(Debug, Args)]
struct Worker {
    #[arg(long)]
    store: String,
    #[arg(long)]
    ledger: PathBuf,
    #[arg(long)]
    tool: String,
    #[arg(long)]
    from: u32,
    #[arg(long)]
    to: u32,
    #[arg(long, default_value_t = 0)]
    turn: u32,
    #[arg(long, default_value_t = 8)]
    tasks: usize,
    #[arg(long, default_value = "u_1")]
    user: String,
    #[arg(long)]
    together: bool,
    #[arg(long)]
    die: Option<Point>,
    #[arg(long, default_value_t = 1)]
    nth: u32,
    #[arg(long)]
    pause: bool,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Worker(worker) => work(worker),
        Command::Service {
            address,
            ledger,
            act,
        } => runtime()?.block_on(upstream::serve(&address, ledger, act)),
        Command::Call {
            store,
            manifest,
            key,
        } => {
            let reply = runtime()?.block_on(upstream::call(&store, &manifest, key))?;
            Ok(writeln!(std::io::stdout(), "{reply}")?)
        }
        Command::Kills { kills, seed } => all_kills(kills, seed),
        Command::Race { keys, processes } => races(keys, processes),
        Command::Clocks { starts, seed } => lying_clocks(starts, seed),
        Command::Disks {
            rounds,
            only,
            seed,
            program,
        } => failing_disks(rounds, &only, seed, program),
        Command::Rows { one_in, program } => changed_rows(one_in, program),
        Command::Simulate { seeds, seed } => simulations(seeds, seed),
        Command::Failover { times } => failing_over(times),
        Command::Restarts { times, keys } => restarts(times, keys),
    }
}

fn work(worker: Worker) -> Result<()> {
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| kind.tool() == worker.tool)
        .with_context(|| format!("there is no tool {:?}", worker.tool))?;
    let job = Job {
        store: worker.store,
        ledger: worker.ledger,
        kind,
        keys: worker.from..worker.to,
        turn: worker.turn,
        tasks: worker.tasks,
        fate: Fate::new(
            worker.die,
            worker.nth,
            if worker.pause { End::Pause } else { End::Death },
        ),
        user: worker.user,
        together: worker.together,
        fails: false,
    };
    runtime()?.block_on(worker::run(job))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    Ok(runtime)
}

fn all_kills(count: u32, seed: u64) -> Result<()> {
    let server = TempPostgres::start();
    for kind in Kind::ALL {
        let folder = tempfile::tempdir()?;
        let sqlite = folder.path().join("torture.db");
        // One process owns a SQLite file: those of the dead are over when it opens.
        let nothing = || Ok(());
        kill_one(
            &sqlite.to_string_lossy(),
            "sqlite",
            kind,
            count,
            seed,
            &nothing,
        )?;
        let url = server.fresh_database();
        let expire = || server::expire_leases(&url);
        kill_one(&url, "postgres", kind, count, seed, &expire)?;
    }
    Ok(())
}

fn kill_one(
    store: &str,
    name: &str,
    kind: Kind,
    count: u32,
    seed: u64,
    expire_leases: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let arena = Arena {
        program: worker_program()?,
        store: store.to_owned(),
        ledger: folder.path().join("effects"),
    };
    let bar = bar(count.into(), &format!("{name} {}", kind.tool()));
    let started = Instant::now();
    let (keys, verdict) = kills(&Kills {
        arena: &arena,
        kind,
        kills: count,
        seed,
        expire_leases,
        progress: &|| bar.inc(1),
    })?;
    bar.finish_and_clear();
    eprintln!(
        "{name} {}: {count} kills, {keys} keys: {} answered, {} in doubt, {} wrong ({:.0} s)",
        kind.tool(),
        verdict.succeeded,
        verdict.in_doubt,
        verdict.wrong.len(),
        started.elapsed().as_secs_f64(),
    );
    demand(&verdict.wrong)
}

fn races(keys: u32, processes: u32) -> Result<()> {
    let server = TempPostgres::start();
    for (kind, user, together) in [
        (Kind::Write, "u_1", false),
        (Kind::Write, "u_2", false),
        (Kind::Operator, "u_1", false),
        (Kind::Write, "u_1", true),
    ] {
        // All in one document is a queue: fewer of those say as much.
        let keys = if together { keys.min(200) } else { keys };
        let folder = tempfile::tempdir()?;
        let arena = Arena {
            program: worker_program()?,
            store: server.fresh_database(),
            ledger: folder.path().join("effects"),
        };
        let started = Instant::now();
        let (tally, verdict) = race(&mut Race {
            arena: &arena,
            kind,
            processes,
            keys,
            user,
            together,
            expire_leases: &|| Ok(()),
            meanwhile: &mut || Ok(true),
        })?;
        eprintln!(
            "race of {processes} for {keys} keys, {}{}: {} answers, {} keys answered, {} wrong ({:.0} s)",
            kind.tool(),
            if together { " in one document" } else { "" },
            tally.answers,
            verdict.succeeded,
            verdict.wrong.len(),
            started.elapsed().as_secs_f64(),
        );
        demand(&verdict.wrong)?;
    }
    Ok(())
}

fn lying_clocks(starts: u32, seed: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let begun = Instant::now();
    let report = runtime()?.block_on(clocks::clocks(folder.path(), starts, seed))?;
    eprintln!(
        "{} starts with lying clocks, {} jumps, {} calls: {} lost, {} doubled, {} wrong, {} unnoticed ({:.0} s)",
        report.starts,
        report.jumps,
        report.calls,
        report.lost,
        report.doubled,
        report.wrong,
        report.unnoticed,
        begun.elapsed().as_secs_f64(),
    );
    demand(&report.violations)
}

fn failing_disks(rounds: u32, only: &str, seed: u64, program: Option<PathBuf>) -> Result<()> {
    let program = program.map_or_else(faults::server_program, Ok)?;
    let folder = tempfile::tempdir()?;
    let library = Library::compile(folder.path())?;
    let mut violations = Vec::new();
    for fault in Fault::ALL {
        if !fault.as_str().contains(only) {
            continue;
        }
        let begun = Instant::now();
        let counts = faults::faults(&Faults {
            program: &program,
            library: &library,
            fault,
            rounds,
            seed,
        })?;
        eprintln!(
            "{}: {} lives of a server, {} faults, {} answers, {} keys acknowledged: {} lost, {} doubled, {} wrong, {} unnoticed{} ({:.0} s)",
            fault.as_str(),
            counts.rounds,
            counts.hits,
            counts.answers,
            counts.acknowledged,
            counts.lost,
            counts.doubled,
            counts.wrong,
            counts.unnoticed,
            if fault.is_silent() {
                format!(", {} named by the server or by verify", counts.noticed)
            } else {
                format!(", {} starts refused", counts.refused_starts)
            },
            begun.elapsed().as_secs_f64(),
        );
        violations.extend(counts.violations);
    }
    demand(&violations)
}

fn changed_rows(one_in: usize, program: Option<PathBuf>) -> Result<()> {
    let program = program.map_or_else(faults::server_program, Ok)?;
    let folder = tempfile::tempdir()?;
    let begun = Instant::now();
    let rows = rows::rows(&program, folder.path(), one_in, &|| {})?;
    eprintln!(
        "rows on SQLite: {} changes, {} named, {} of what frees and hides nothing, {} of what is compared with nothing, {} refused by the schema, {} unnoticed ({:.0} s)",
        rows.changes,
        rows.named,
        rows.harmless,
        rows.open,
        rows.refused,
        rows.unnoticed,
        begun.elapsed().as_secs_f64(),
    );
    demand(&rows.violations)
}

fn simulations(seeds: u64, first: u64) -> Result<()> {
    let begun = Instant::now();
    let mut sum = Outcome::default();
    let bar = bar(seeds, "simulation");
    for seed in first..first + seeds {
        let outcome = simulation::simulate(seed)?;
        sum.add(seed, outcome);
        bar.inc(1);
    }
    bar.finish_and_clear();
    eprintln!(
        "{seeds} seeds: {} answers, {} faults, {} deaths, {} jumps of the clock, {} keys answered, {} in doubt, {} held up or repeated by a jump of the clock, {} wrong ({:.0} s)",
        sum.answers,
        sum.faults,
        sum.deaths,
        sum.jumps,
        sum.succeeded,
        sum.in_doubt,
        sum.by_clock.len(),
        sum.wrong.len(),
        begun.elapsed().as_secs_f64(),
    );
    demand(&sum.wrong)
}

fn failing_over(times: u32) -> Result<()> {
    let mut cluster = Cluster::start()?;
    let mut wrong = Vec::new();
    for (kind, times) in [
        (Kind::Write, times - times / 2),
        (Kind::Operator, times / 2),
    ] {
        let begun = Instant::now();
        let mut run = failover::failovers(&mut cluster, kind, times)?;
        run.first_success.sort_unstable();
        run.since_promotion.sort_unstable();
        let promoted = run.since_promotion.get(run.since_promotion.len() / 2);
        let latest = run.since_promotion.last().copied().unwrap_or_default();
        let slowest = run.first_success.last().copied().unwrap_or_default();
        let middle = run.first_success.get(run.first_success.len() / 2);
        eprintln!(
            "{} failovers, {}: {} answers, {} keys answered, {} in doubt, {} wrong; first success after the cluster takes writes again: median {:.2} s, slowest {:.2} s; after the promotion: median {:.2} s, slowest {:.2} s; the log is verified ({:.0} s)",
            run.failovers,
            kind.tool(),
            run.answers,
            run.succeeded,
            run.in_doubt,
            run.wrong.len(),
            middle.copied().unwrap_or_default().as_secs_f64(),
            slowest.as_secs_f64(),
            promoted.copied().unwrap_or_default().as_secs_f64(),
            latest.as_secs_f64(),
            begun.elapsed().as_secs_f64(),
        );
        wrong.extend(run.wrong);
    }
    demand(&wrong)
}

fn restarts(times: u32, keys: u32) -> Result<()> {
    for kind in [Kind::Write, Kind::Downstream] {
        let server = TempPostgres::start();
        let folder = tempfile::tempdir()?;
        let url = server.fresh_database();
        let arena = Arena {
            program: worker_program()?,
            store: url.clone(),
            ledger: folder.path().join("effects"),
        };
        // The schema is there before the first cut.
        server::prepare(&url)?;
        let bar = bar(times.into(), kind.tool());
        let started = Instant::now();
        let mut done = 0;
        let (tally, verdict) = race(&mut Race {
            arena: &arena,
            kind,
            processes: 4,
            keys,
            user: "u_1",
            together: false,
            expire_leases: &|| server::expire_leases(&url),
            meanwhile: &mut || {
                server::disturb(&server, &url, done)?;
                done += 1;
                bar.inc(1);
                Ok(done == times)
            },
        })?;
        bar.finish_and_clear();
        eprintln!(
            "{times} cuts and restarts, {keys} keys, {}: {} answers, {} keys answered, {} wrong ({:.0} s)",
            kind.tool(),
            tally.answers,
            verdict.succeeded,
            verdict.wrong.len(),
            started.elapsed().as_secs_f64(),
        );
        demand(&verdict.wrong)?;
    }
    Ok(())
}

fn demand(wrong: &[String]) -> Result<()> {
    if wrong.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> = wrong.iter().take(60).map(String::as_str).collect();
    bail!(
        "{} things that must not be:\n{}",
        wrong.len(),
        shown.join("\n")
    )
}

fn bar(length: u64, name: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length).with_message(name.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{msg:30} {bar:40} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar
}
