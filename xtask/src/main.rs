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
        ["torture"] => torture(["100", "10000", "200", "1000", "1000"]),
        ["torture", "--quick"] => torture(["10", "200", "10", "50", "20"]),
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

/// Kills of each kind of tool on each store, keys to race for, cuts and restarts, starts with clocks that lie, and children of MCP servers.
fn torture([kills, keys, times, starts, children]: [&str; 5]) -> Result<()> {
    let program = ["run", "--locked", "--package", "countersign-torture", "--"];
    for words in [
        ["kills", "--kills", kills],
        ["race", "--keys", keys],
        ["restarts", "--times", times],
        ["clocks", "--starts", starts],
    ] {
        Step::cargo("torture", &[&program[..], &words].concat()).run()?;
    }
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
