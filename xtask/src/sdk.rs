//! Dependencies of the tests of `sdk/`: a Python with `FastAPI`, and Express with a TypeScript compiler, pinned, in folders under
//! `target/`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::set_up::says;
use crate::step::{Step, root};

/// The variable that tells the tests which Python has `FastAPI`.
pub(crate) const PYTHON: &str = "COUNTERSIGN_TEST_SDK_PYTHON";

/// The variable that tells the tests which folder has `node_modules` with Express.
pub(crate) const NODE: &str = "COUNTERSIGN_TEST_SDK_NODE";

/// Setuptools, because the package is installed without a network.
const PYTHON_PACKAGES: [&str; 3] = ["fastapi==0.162.4", "uvicorn==0.54.0", "setuptools==80.9.0"];

const NODE_PACKAGES: [&str; 4] = [
    "express@5.1.0",
    "typescript@5.9.3",
    "@types/node@18.19.130",
    "@types/express@5.0.6",
];

/// `cargo xtask sdk`: the tests of the two files alone.
pub(crate) fn run() -> Result<()> {
    crate::clients::prepare()?;
    let [python, node] = prepare()?;
    let test = [
        "test",
        "--locked",
        "--package",
        "countersign-cli",
        "--test",
        "sdk",
    ];
    Step::cargo("sdk", &test)
        .run_env(&[(PYTHON, python), (NODE, node)])
        .run()
}

/// The Python and the folder of Node, made where they are missing.
pub(crate) fn prepare() -> Result<[String; 2]> {
    let (python, node) = (folder("test-sdk-python"), folder("test-sdk-node"));
    installed(&python.join("installed"), &PYTHON_PACKAGES, |packages| {
        let made = python.display().to_string();
        Step::program("set-up", "python3", &["-m", "venv", &made]).run()?;
        let own = python.join("bin/python3").display().to_string();
        let fixed = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        Step::program("set-up", &own, &[&fixed[..], packages].concat()).run()
    })?;
    installed(&node.join("installed"), &NODE_PACKAGES, |packages| {
        std::fs::create_dir_all(&node)?;
        let made = node.display().to_string();
        let fixed = [
            "install",
            "--no-audit",
            "--no-fund",
            "--no-package-lock",
            "--prefix",
            &made,
        ];
        Step::program("set-up", "npm", &[&fixed[..], packages].concat()).run()
    })?;
    let python = python.join("bin/python3").display().to_string();
    says(&python, &["--version"]).with_context(|| format!("{python} does not start"))?;
    Ok([python, node.display().to_string()])
}

/// Installs packages, unless the stamp says that these very ones were.
fn installed(
    stamp: &Path,
    packages: &[&str],
    install: impl FnOnce(&[&str]) -> Result<()>,
) -> Result<()> {
    let wanted = packages.join("\n");
    if std::fs::read_to_string(stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    install(packages)?;
    std::fs::write(stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
}

fn folder(name: &str) -> PathBuf {
    root().join("target").join(name)
}
