//! `cargo xtask conformance`: the official MCP suite and the MCP Inspector against a server of ours.
//!
//! Both are programs of the protocol's authors, so their verdict is independent of us. They come from npm, pinned, into a folder under
//! `target/`, with a Node.js of their own because they need a newer one than most systems have.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::step::{Step, root, target};

const SUITE: (&str, &str) = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12");
const INSPECTOR: (&str, &str) = ("@modelcontextprotocol/inspector", "2.12.0");
const NODE_VERSION: &str = "24";

/// The sets that a server has to pass, and how many scenarios each of them has.
const REQUIRED: [(&str, usize); 2] = [("2026-07-28", 37), ("2025-11-25", 30)];

/// Runs everything; fails with the first thing that does not pass.
pub(crate) fn run() -> Result<()> {
    let node = Node::prepare()?;
    let build = ["build", "--locked", "--package", "countersign-cli"];
    Step::cargo("conformance", &build).run()?;
    let server = Server::with_fixtures()?;
    score(&node, &server, "at the server")?;
    for era in ["legacy", "modern"] {
        inspect(&node, &server.url, era)?;
    }
    // The same fixtures, now on a server behind a gateway: over HTTP, and on a child that speaks over its standard input and output.
    let gateway = Server::in_front_of(&server)?;
    score(&node, &gateway, "through a gateway")?;
    let gateway = Server::in_front_of_child()?;
    score(&node, &gateway, "through a gateway, from a child")
}

/// Runs the sets that a server has to pass.
fn score(node: &Node, server: &Server, place: &str) -> Result<()> {
    for (requirements, scenarios) in REQUIRED {
        let output = node.suite(&server.url, requirements)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let score = Score::of(&text);
        eprintln!(
            "conformance {requirements} {place}: {} of {scenarios} scenarios",
            score.passed
        );
        ensure!(
            output.status.success() && score.passed == scenarios && score.failed == 0,
            "the suite does not pass for {requirements} {place}:\n{text}"
        );
    }
    Ok(())
}

/// The Inspector lists the tools and finds nothing in their schemas that another client would refuse; it
/// calls one, and sees an error as one.
fn inspect(node: &Node, url: &str, era: &str) -> Result<()> {
    let listed = node.inspector(url, era, &["--method", "tools/list", "--strict"])?;
    expect(&listed, 0, "memory_search").with_context(|| format!("tools/list, {era}"))?;
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "memory_search",
        "--tool-arg",
    ];
    let called = node.inspector(url, era, &[&call[..], &["query=agent"]].concat())?;
    expect(&called, 0, "agent").with_context(|| format!("tools/call, {era}"))?;
    let refused = node.inspector(url, era, &[&call[..], &["qurey=agent"]].concat())?;
    expect(&refused, 5, "INVALID_ARGUMENT").with_context(|| format!("a refusal, {era}"))?;
    eprintln!("inspector, {era} era: tools/list --strict, tools/call, a refusal");
    Ok(())
}

fn expect(output: &Output, code: i32, text: &str) -> Result<()> {
    let written = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.code() == Some(code) && written.contains(text),
        "expected exit code {code} and {text:?}, got {}:\n{written}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Result of the scenarios that count, from the suite's summary.
#[derive(Debug, PartialEq, Eq)]
struct Score {
    passed: usize,
    failed: usize,
}

impl Score {
    fn of(text: &str) -> Self {
        let summary = text.split("=== SUMMARY ===").nth(1).unwrap_or_default();
        let (counted, rest) = summary.split_once("Total:").unwrap_or((summary, ""));
        let name = |line: &str| {
            let line = line.trim().trim_start_matches(['✓', '✗']).trim_start();
            line.split([':', ' ']).next().unwrap_or_default().to_owned()
        };
        let is_scenario = |line: &&str| line.trim().starts_with(['✓', '✗']);
        let unscored: HashSet<String> = rest.lines().filter(is_scenario).map(name).collect();
        let scored = counted.lines().filter(is_scenario);
        let scored = scored.filter(|line| !unscored.contains(&name(line)));
        let (passed, failed): (Vec<_>, Vec<_>) =
            scored.partition(|line| line.trim().starts_with('✓'));
        Self {
            passed: passed.len(),
            failed: failed.len(),
        }
    }
}

/// Programs from npm, and what runs them.
struct Node {
    folder: PathBuf,
    program: PathBuf,
}

impl Node {
    /// Installs the packages that are not there yet.
    fn prepare() -> Result<Self> {
        let folder = root().join("target/test-node");
        let runtime = runtime_package()?;
        let program = folder.join("node_modules").join(&runtime).join("bin/node");
        let node = Self { folder, program };
        let is_there = node.program.exists()
            && [SUITE, INSPECTOR]
                .iter()
                .all(|(name, version)| node.has(name, version));
        if !is_there {
            std::fs::create_dir_all(&node.folder)?;
            let folder = node.folder.display().to_string();
            let packages = [SUITE, INSPECTOR].map(|(name, version)| format!("{name}@{version}"));
            let runtime = format!("{runtime}@{NODE_VERSION}");
            let quiet = [
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--loglevel=error",
            ];
            let words = [&["install", "--prefix", &folder][..], &quiet].concat();
            let words = [&words[..], &[&packages[0], &packages[1], &runtime]].concat();
            Step::program("conformance", "npm", &words)
                .run()
                .context("the programs of the suite come from npm (`apt-get install npm`)")?;
        }
        Ok(node)
    }

    fn has(&self, name: &str, version: &str) -> bool {
        let file = self
            .folder
            .join("node_modules")
            .join(name)
            .join("package.json");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.contains(&format!("\"version\": \"{version}\""))
    }

    fn suite(&self, url: &str, requirements: &str) -> Result<Output> {
        let results = self.folder.join("results").join(requirements);
        let results = results.display().to_string();
        let words = [
            "server",
            "--url",
            url,
            "--requirements",
            requirements,
            "-o",
            &results,
        ];
        self.output(SUITE.0, "dist/index.js", &words)
    }

    fn inspector(&self, url: &str, era: &str, words: &[&str]) -> Result<Output> {
        let fixed = [
            "--cli",
            url,
            "--transport",
            "http",
            "--protocol-era",
            era,
            "--format",
            "json",
        ];
        let words = [&fixed[..], words].concat();
        self.output(INSPECTOR.0, "clients/launcher/build/index.js", &words)
    }

    fn output(&self, package: &str, script: &str, words: &[&str]) -> Result<Output> {
        let script = self.folder.join("node_modules").join(package).join(script);
        Command::new(&self.program)
            .arg(script)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))
    }
}

/// The package with a Node.js for this machine.
fn runtime_package() -> Result<String> {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "linux" => "linux",
        other => bail!("there is no Node.js package for {other}"),
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => bail!("there is no Node.js package for {other}"),
    };
    Ok(format!("node-{system}-{machine}"))
}

/// The server under test; it ends with this.
struct Server {
    process: Child,
    url: String,
}

/// The configuration of a gateway in front of a server. The suite calls the fixtures by their own names, and the same one in several
/// scenarios, each of which means its own call.
const BEHIND: &str = r#"
[[upstream]]
name = "fixtures"
kind = "mcp"
WAY
trust = "first_use"
prefix = false

[policy]
revision = "conformance"
defaults = { unlisted = "allow", unkeyed_writes = "allow" }
"#;

impl Server {
    fn with_fixtures() -> Result<Self> {
        Self::start("data", &["--conformance"], None)
    }

    /// A gateway in front of another server. The suite asks older clients back, which needs sessions.
    fn in_front_of(other: &Self) -> Result<Self> {
        let way = format!("url = \"{}\"\nallow_private = [\"loopback\"]", other.url);
        Self::behind("front", &way)
    }

    /// A gateway in front of a child with the fixtures. The suite has one client change a list and another one hear of it, so they share the child.
    fn in_front_of_child() -> Result<Self> {
        let own = target().join("test-node").join("child.toml");
        let data = target().join("test-node").join("child");
        let settings = "[store]\nurl = \"memory\"\n[mcp]\nconformance = true\n";
        std::fs::write(&own, settings)?;
        let program = program();
        let words = [
            program.as_path(),
            "--config".as_ref(),
            &own,
            "--data".as_ref(),
            &data,
            "mcp".as_ref(),
        ];
        let words = words.map(|word| format!("{:?}", word.display().to_string()));
        let way = format!("command = [{}]\nshared = true", words.join(", "));
        Self::behind("front-of-child", &way)
    }

    fn behind(name: &str, way: &str) -> Result<Self> {
        let config = BEHIND.replace("WAY", way);
        Self::start(name, &["--mcp-sessions", "256"], Some(config))
    }

    fn start(name: &str, words: &[&str], config: Option<String>) -> Result<Self> {
        let folder = target();
        let program = program();
        let data = folder.join("test-node").join(name);
        // Nothing is left of an earlier run; that there was none is fine.
        let _none = std::fs::remove_dir_all(&data);
        let mut command = Command::new(&program);
        if let Some(config) = config {
            let own = folder.join("test-node").join(format!("{name}-config"));
            let _none = std::fs::remove_dir_all(&own);
            std::fs::create_dir_all(&own)?;
            let path = own.join("countersign.toml");
            std::fs::write(&path, config)?;
            command.arg("--config").arg(path);
        }
        let mut process = command
            .arg("--data")
            .arg(&data)
            .args(["--json", "serve", "--listen", "127.0.0.1:0"])
            .args(words)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = process.stdout.take().context("the server has no output")?;
        let mut server = Self {
            process,
            url: String::new(),
        };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line.split("\"mcp_url\":\"").nth(1);
        let address = address.and_then(|rest| rest.split('"').next());
        let address = address.with_context(|| format!("the server said {line:?}"))?;
        address.clone_into(&mut server.url);
        Ok(server)
    }
}

/// The command, as it was built.
fn program() -> PathBuf {
    target().join(Path::new("debug/countersign"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_required_scenarios_are_scored() {
        let text = "✓ noise\n=== SUMMARY ===\n✓ a: 2 passed, 0 failed\n✗ b: 1 passed, 1 failed\n\
                    ✗ c: 0 passed, 3 failed\n\nTotal: 3 passed, 4 failed\n\nNot scored for x: 1\n  ✗ c (extension)\n";
        let expected = Score {
            passed: 1,
            failed: 1,
        };
        assert_eq!(Score::of(text), expected);
    }
}
