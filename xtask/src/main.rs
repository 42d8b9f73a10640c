//! The project's chores as one program: `cargo xtask test|agents|sdk|conformance|corpus|outside|dist|bench|torture|generate|screens|fuzz`.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

mod agents;
mod bench;
mod clients;
mod conformance;
mod corpus;
mod dist;
mod fuzz;
mod outside;
mod picture;
mod sdk;
mod set_up;
mod step;
mod test;

use agents::Set;
use step::Step;

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test                  format, lints, tests, documentation, generated files, conformance, agent frameworks: what a
                        change must pass; installs PostgreSQL, npm, Chromium, python3 and the
                        frameworks where they are missing
  agents [--quick]      stock agent frameworks, in Python and JavaScript, with a scripted model against a server of ours
  sdk                   tools in Python, TypeScript and Go behind a server of ours
  conformance           the official MCP suite and the MCP Inspector against a server of ours
  corpus openapi [--small|--github]
                        import the OpenAPI documents of others and call some operations of each; installs them under
                        target/; --github only measures the import of GitHub's document
  outside [--set-up] [SUITE...]
                        suites and verifiers of others (canonical, notes, schemas, evidence); --set-up only installs them
                        under target/
  dist [--twice] [--chroot] [--built]
                        the stripped programs, a Debian package, a bill of materials, checksums and a linted Dockerfile, in
                        target/dist-out; --twice compares two builds, --chroot tries the package in a fresh Debian,
                        --built takes the programs of the last build
  bench [NAME...] [--quick]
                        measure (estimates, table, ledger, gateway, upstream, console), and print tables with the targets;
                        installs what it measures beside under target/
  torture [--quick]     kill, race and cut off real processes in large numbers, and count what is left
  torture --failover [TIMES]
                        have another PostgreSQL lead while processes work, and count what is left
  generate              write the generated files anew
  screens [demo]        take the pictures of docs/screens anew, in Chromium; or only that of the terminal demo
  fuzz [--seconds N] [TARGET...]
                        run each fuzz target for N seconds (600); needs a nightly toolchain";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<()> {
    match words {
        ["test"] => test::run(),
        ["agents"] => agents::run(Set::Full),
        ["agents", "--quick"] => agents::run(Set::Quick),
        ["sdk"] => sdk::run(),
        ["conformance"] => conformance::run(),
        ["corpus", rest @ ..] => corpus::run(rest),
        ["dist", rest @ ..] => dist::run(rest),
        ["outside", rest @ ..] => outside::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["torture"] => torture(&Large {
            kills: "100",
            keys: "10000",
            times: "200",
            starts: "1000",
            disks: "60",
            rows: "1",
            seeds: "10000",
            children: "1000",
        }),
        ["torture", "--quick"] => torture(&Large {
            kills: "10",
            keys: "200",
            times: "10",
            starts: "50",
            disks: "3",
            rows: "5",
            seeds: "200",
            children: "20",
        }),
        ["torture", "--failover"] => failover("50"),
        ["torture", "--failover", times] => failover(times),
        ["generate"] => generate(),
        ["screens"] => screens().and_then(|()| picture::demo()),
        ["screens", "demo"] => picture::demo(),
        ["fuzz", rest @ ..] => {
            let (seconds, targets) = fuzz_options(rest)?;
            fuzz::run(seconds, &targets)
        }
        [] | ["help" | "--help" | "-h"] => {
            eprintln!("{HELP}");
            Ok(())
        }
        _ => bail!("cannot run {:?}\n\n{HELP}", words.join(" ")),
    }
}

/// Numbers of a run of all tortures.
struct Large<'a> {
    /// Kills of each kind of tool on each store.
    kills: &'a str,
    /// Keys to race for.
    keys: &'a str,
    /// Cuts and restarts of PostgreSQL.
    times: &'a str,
    /// Starts with clocks that lie.
    starts: &'a str,
    /// Lives of a server for each fault of its disk.
    disks: &'a str,
    /// Sampling of changes: one in N changes of a column is made.
    rows: &'a str,
    /// Seeds of the simulation.
    seeds: &'a str,
    /// Children of MCP servers.
    children: &'a str,
}

/// The program of the tortures.
const TORTURE: [&str; 5] = ["run", "--locked", "--package", "countersign-torture", "--"];

fn torture(large: &Large<'_>) -> Result<()> {
    // The real server, whose disk fails and whose rows are changed.
    let build = [
        "build",
        "--locked",
        "--package",
        "countersign-cli",
        "--package",
        "countersign-torture",
    ];
    Step::cargo("torture", &build).run()?;
    for words in [
        ["kills", "--kills", large.kills],
        ["race", "--keys", large.keys],
        ["restarts", "--times", large.times],
        ["clocks", "--starts", large.starts],
        ["disks", "--rounds", large.disks],
        ["rows", "--one-in", large.rows],
        ["simulate", "--seeds", large.seeds],
    ] {
        Step::cargo("torture", &[&TORTURE[..], &words].concat()).run()?;
    }
    let children = large.children;
    let example = [
        "run",
        "--locked",
        "--package",
        "countersign-upstream",
        "--example",
        "children",
        "--",
        children,
    ];
    Step::cargo("torture", &example).run()
}

/// Failovers of a PostgreSQL that patroni keeps.
fn failover(times: &str) -> Result<()> {
    set_up::for_failover()?;
    let words = [&TORTURE[..], &["failover", "--times", times]].concat();
    Step::cargo("torture", &words).run()
}

/// Pictures of the console's pages: the test that takes them, with a folder that stays.
fn screens() -> Result<()> {
    set_up::for_pictures()?;
    let folder = step::root().join("docs/screens").display().to_string();
    let words = [
        "nextest",
        "run",
        "--locked",
        "--workspace",
        "--test",
        "console",
        "pictures",
    ];
    let step = Step::cargo("docs/screens", &words);
    step.run_env(&[("COUNTERSIGN_SCREENS", folder)]).run()
}

fn generate() -> Result<()> {
    let contracts = [
        "run",
        "--locked",
        "--package",
        "countersign-contract",
        "--features",
        "schemars",
        "--example",
        "write_contracts",
    ];
    Step::cargo("contracts/", &contracts).run()?;
    let config = [
        "run",
        "--locked",
        "--package",
        "countersign-cli",
        "--example",
        "write_config",
    ];
    Step::cargo("config.schema.json and docs/configuration.md", &config).run()?;
    let vectors = [
        "run",
        "--locked",
        "--package",
        "countersign-evidence",
        "--example",
        "write_vectors",
    ];
    Step::cargo("docs/evidence-vectors/", &vectors).run()?;
    let openapi = [
        "run",
        "--locked",
        "--package",
        "countersign-gateway",
        "--example",
        "write_openapi",
    ];
    Step::cargo("docs/openapi.json", &openapi).run()?;
    let pages = [
        "test",
        "--locked",
        "--package",
        "countersign-cli",
        "--package",
        "countersign-verifier",
        "--test",
        "cmd",
    ];
    Step::cargo("tests/cmd/ of the commands", &pages)
        .env("TRYCMD", "overwrite")
        .run()
}

fn fuzz_options<'w>(words: &[&'w str]) -> Result<(u32, Vec<&'w str>)> {
    let mut seconds = 600;
    let mut targets = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seconds" => {
                let number = words.next().context("--seconds needs a number")?;
                seconds = number
                    .parse()
                    .with_context(|| format!("{number:?} is no number of seconds"))?;
            }
            option if option.starts_with('-') => bail!("there is no option {option}\n\n{HELP}"),
            target => targets.push(target),
        }
    }
    Ok((seconds, targets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_fuzz_are_read_in_any_order() {
        let (seconds, targets) = fuzz_options(&["binder", "--seconds", "5", "canonical"]).unwrap();
        assert_eq!((seconds, targets), (5, vec!["binder", "canonical"]));
        assert!(fuzz_options(&["--seconds"]).is_err());
        assert!(fuzz_options(&["--seconds", "soon"]).is_err());
        assert!(fuzz_options(&["--second", "5"]).is_err());
    }

    #[test]
    fn an_unknown_chore_is_an_error() {
        assert!(run(&["tset"]).is_err());
        assert!(run(&["test", "--fast"]).is_err());
    }
}
