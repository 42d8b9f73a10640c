//! `cargo xtask outside`: suites and verifiers that others wrote, against our code. Each prints its score.
//!
//! The packages are those of the Python package index, pinned, in folders under `target/`; nothing of them is in this repository. The tests
//! that use them run in `cargo xtask test` as well; here they stand alone.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::set_up::says;
use crate::step::{Step, root};

/// The variable that tells the tests which Python has the packages.
pub(crate) const PYTHON_VARIABLE: &str = "COUNTERSIGN_TEST_OUTSIDE_PYTHON";

/// The variable that tells the tests where the JSON-Schema-Test-Suite is.
pub(crate) const SUITE_VARIABLE: &str = "COUNTERSIGN_TEST_SCHEMA_SUITE";

/// Verifiers of receipts and models of events.
const PACKAGES: [&str; 5] = [
    "scitt-cose==0.5.0",
    "ocsf-pydantic==0.0.6",
    "pydantic==2.14.3",
    "pydantic-extra-types==2.11.0",
    "email-validator==2.2.0",
];

/// The package whose source distribution has the official suite, under the licence in its `json/LICENSE`.
const SUITE: &str = "jsonschema==4.26.0";

/// Folder in that distribution.
const SUITE_FOLDER: &str = "jsonschema-4.26.0";

/// Programs that the tests need.
pub(crate) struct Outside {
    pub(crate) python: String,
    pub(crate) suite: String,
}

/// A suite: its name, the package and the filter of its tests.
struct Suite {
    name: &'static str,
    package: &'static str,
    target: &'static [&'static str],
}

const SUITES: [Suite; 4] = [
    Suite {
        name: "canonical",
        package: "countersign-contract",
        target: &["canonical"],
    },
    Suite {
        name: "notes",
        package: "countersign-evidence",
        target: &["--lib"],
    },
    Suite {
        name: "schemas",
        package: "countersign-args",
        target: &["--test", "json_schema_suite"],
    },
    Suite {
        name: "evidence",
        package: "countersign-cli",
        target: &["--test", "outside"],
    },
];

/// Runs the suites of these names; all of them if none is named.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let world = prepare()?;
    if words == ["--set-up"] {
        return Ok(());
    }
    let unknown = words
        .iter()
        .find(|word| !SUITES.iter().any(|suite| suite.name == **word));
    if let Some(unknown) = unknown {
        let names = SUITES.map(|suite| suite.name).join(", ");
        bail!("there is no suite {unknown:?}; there are {names}");
    }
    let wanted = |suite: &&Suite| words.is_empty() || words.contains(&suite.name);
    let mut failed = Vec::new();
    for suite in SUITES.iter().filter(wanted) {
        let fixed = ["test", "--locked", "--package", suite.package];
        let shown = ["--", "--nocapture"];
        let step = Step::cargo(suite.name, &[&fixed[..], suite.target, &shown].concat());
        let step = step.run_env(&[
            (PYTHON_VARIABLE, world.python.clone()),
            (SUITE_VARIABLE, world.suite.clone()),
        ]);
        if let Err(error) = step.run() {
            eprintln!("{error:#}");
            failed.push(suite.name);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("these suites found faults: {}", failed.join(", "))
}

/// The Python and the suite, made where they are missing.
pub(crate) fn prepare() -> Result<Outside> {
    let folder = root().join("target/test-outside-python");
    let python = folder.join("bin/python3").display().to_string();
    let stamp = folder.join("installed");
    let wanted = PACKAGES.join("\n");
    if !std::fs::read_to_string(&stamp).is_ok_and(|done| done == wanted) {
        let folder = folder.display().to_string();
        Step::program("set-up", "python3", &["-m", "venv", &folder]).run()?;
        pip(&python, "install", &PACKAGES)?;
        std::fs::write(&stamp, wanted)
            .with_context(|| format!("{} cannot be written", stamp.display()))?;
    }
    says(&python, &["--version"]).with_context(|| format!("{python} does not start"))?;
    let suite = suite(&python)?.display().to_string();
    Ok(Outside { python, suite })
}

/// The folder of the JSON-Schema-Test-Suite, fetched where it is missing.
fn suite(python: &str) -> Result<PathBuf> {
    let folder = root().join("target/test-outside-suite");
    let suite = folder.join(SUITE_FOLDER).join("json");
    if suite.join("tests").is_dir() {
        return Ok(suite);
    }
    std::fs::create_dir_all(&folder)?;
    let into = folder.display().to_string();
    let source = ["--no-deps", "--no-binary", ":all:", "--dest", &into, SUITE];
    pip(python, "download", &source)?;
    let archive = folder.join(format!("{SUITE_FOLDER}.tar.gz"));
    let archive = archive.display().to_string();
    Step::program("set-up", "tar", &["-xzf", &archive, "-C", &into]).run()?;
    Ok(suite)
}

fn pip(python: &str, command: &str, words: &[&str]) -> Result<()> {
    let fixed = [
        "-m",
        "pip",
        command,
        "--quiet",
        "--disable-pip-version-check",
    ];
    Step::program("set-up", python, &[&fixed[..], words].concat()).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_one_name() {
        let mut names = SUITES.map(|suite| suite.name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUITES.len());
    }
}
