//! `cargo xtask test`: everything that a change must pass, in the order in which mistakes are found
//! soonest. It is also all that CI does.
//!
//! Spelling is left out on purpose: its checkers are no part of a Rust toolchain.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::step::{Step, has_cargo_command};
use crate::{agents, set_up};

/// The step that needs the frameworks, which are installed while the others run.
const AGENTS: &str = "agent frameworks";

/// Runs every step, stops at the first that fails, and shows what took how long.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let world = set_up::prepare()?;
    let variables = world.variables();
    // A whole run builds everything once: what makes a second build quicker would only fill the disk.
    let once = [("CARGO_INCREMENTAL", "0".to_owned())];
    let mut frameworks = Some(agents::install_meanwhile());
    let mut times = vec![("set-up", started.elapsed())];
    for step in steps(has_cargo_command("nextest")) {
        let step = step.run_env(&variables).run_env(&once);
        if step.name == AGENTS {
            frameworks
                .take()
                .map_or(Ok(()), agents::Installing::finish)?;
        }
        match step.timed() {
            Ok(time) => times.push((step.name, time)),
            Err(error) => {
                eprint!("{}", summary(&times, Some(step.name)));
                return Err(error);
            }
        }
    }
    eprint!("{}", summary(&times, None));
    Ok(())
}

fn steps(nextest: bool) -> Vec<Step> {
    let clippy = "clippy --workspace --all-targets --locked -- -D warnings";
    // `--tests` leaves the documentation's examples to their own step.
    let tests = if nextest {
        "nextest run --workspace --locked --no-fail-fast"
    } else {
        "test --workspace --locked --lib --bins --tests"
    };
    vec![
        cargo("format", "fmt --all --check"),
        cargo("lints", clippy),
        cargo("tests", tests),
        cargo("examples", "test --doc --workspace --locked"),
        cargo("documentation", "doc --no-deps --workspace --locked")
            .env("RUSTDOCFLAGS", "-D warnings"),
        // Its test runs above as well; here it stands alone, so that its message is the last one.
        cargo(
            "generated files",
            "test --workspace --locked --test contracts",
        ),
        chore("corpus", "corpus openapi --small"),
        chore("conformance", "conformance"),
        chore(AGENTS, "agents --quick"),
    ]
}

/// A step that is a command of cargo.
fn cargo(name: &'static str, line: &str) -> Step {
    Step::cargo(name, &line.split(' ').collect::<Vec<_>>())
}

/// A step that is another chore of this program.
fn chore(name: &'static str, line: &str) -> Step {
    cargo(name, &format!("run --locked --package xtask -- {line}"))
}

/// Summarizes the steps, the time that each took, and the one that failed.
fn summary(times: &[(&str, Duration)], failed: Option<&str>) -> String {
    let mut text = String::from("\n");
    // Writing to a text cannot fail.
    let mut row =
        |name: &str, result: &str| writeln!(text, "  {name:<16}{result:>10}").unwrap_or(());
    for (name, time) in times {
        row(name, &format!("{:.1} s", time.as_secs_f64()));
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    match failed {
        Some(name) => row(name, "FAILED"),
        None => row("all passed", &format!("{:.1} s", total.as_secs_f64())),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_locked_but_the_formatter() {
        for nextest in [true, false] {
            let lines: Vec<_> = steps(nextest).iter().map(Step::line).collect();
            assert!(
                lines
                    .iter()
                    .all(|line| line.contains("--locked") || line.starts_with("cargo fmt"))
            );
            assert_eq!(lines.iter().any(|line| line.contains("nextest")), nextest);
        }
    }

    #[test]
    fn the_summary_says_where_it_stopped() {
        let times = [("format", Duration::from_millis(1_500))];
        let expected = "\n  format               1.5 s\n  lints               FAILED\n";
        assert_eq!(summary(&times, Some("lints")), expected);
        let expected = "\n  format               1.5 s\n  all passed           1.5 s\n";
        assert_eq!(summary(&times, None), expected);
    }
}
