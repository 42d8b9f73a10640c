//! Stock agent frameworks against a server of ours: `crates/testkit/agents/run.py`, with the frameworks pinned, in
//! environments under `target/` (Python) and beside their lock file (JavaScript).

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, anyhow};

use crate::step::{Step, root};

/// The Python environments: the name, which is also that of its list of packages.
const ENVIRONMENTS: [&str; 2] = ["agents", "langchain"];

/// The scenarios that are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    /// Every framework through every scenario that it has the means for.
    Full,
    /// The part of them that each change must pass.
    Quick,
}

/// `cargo xtask agents`: on the program as it is.
pub(crate) fn run(set: Set) -> Result<()> {
    // It makes sure that there is a module for environments.
    crate::clients::prepare()?;
    install()?;
    let build = ["build", "--locked", "--package", "countersign-cli"];
    Step::cargo("agents", &build).run()?;
    step(set).run()
}

/// Installs the frameworks while something else is done: they come over the network, and Rust needs the processors.
pub(crate) fn install_meanwhile() -> Installing {
    Installing(std::thread::spawn(install))
}

/// An installation that is under way.
pub(crate) struct Installing(JoinHandle<Result<()>>);

impl Installing {
    /// Waits for its end.
    pub(crate) fn finish(self) -> Result<()> {
        let done = self.0.join();
        done.map_err(|_| anyhow!("the installation of the agent frameworks has panicked"))?
    }
}

/// Installs the frameworks where they are missing, or where other versions are asked for.
fn install() -> Result<()> {
    for name in ENVIRONMENTS {
        python(name)?;
    }
    javascript()
}

fn step(set: Set) -> Step {
    let path = |path: PathBuf| path.display().to_string();
    let set = match set {
        Set::Full => "full",
        Set::Quick => "quick",
    };
    let words = [
        path(harness().join("run.py")),
        "--binary".to_owned(),
        path(root().join("target/debug/countersign")),
        "--framework".to_owned(),
        "ALL".to_owned(),
        "--set".to_owned(),
        set.to_owned(),
        "--python".to_owned(),
        path(environments()),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // The stub checks requests with the providers' own types, which are in this environment.
    let python = path(environments().join("agents/bin/python3"));
    Step::program("agents", &python, &words)
}

fn python(name: &str) -> Result<()> {
    let list = harness().join(format!("requirements-{name}.txt"));
    let folder = environments().join(name);
    installed(&list, &folder.join("installed.txt"), || {
        let made = folder.display().to_string();
        Step::program("set-up", "python3", &["-m", "venv", &made]).run()?;
        let python = folder.join("bin/python3").display().to_string();
        let list = list.display().to_string();
        let words = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-compile",
            "-r",
            &list,
        ];
        Step::program("set-up", &python, &words).run()
    })
}

fn javascript() -> Result<()> {
    let folder = harness().join("js");
    let stamp = folder.join("node_modules/installed.json");
    installed(&folder.join("package-lock.json"), &stamp, || {
        let folder = folder.display().to_string();
        let words = ["ci", "--no-audit", "--no-fund", "--prefix", &folder];
        Step::program("set-up", "npm", &words).run()
    })
}

/// Installs the packages of a list, unless the stamp says that it was done for this very list.
fn installed(list: &Path, stamp: &Path, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = std::fs::read_to_string(list)
        .with_context(|| format!("{} cannot be read", list.display()))?;
    if std::fs::read_to_string(stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    install()?;
    std::fs::write(stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
}

fn harness() -> PathBuf {
    root().join("crates/testkit/agents")
}

fn environments() -> PathBuf {
    root().join("target/test-agents")
}
