//! The cost of a call to an upstream through the gateway, beside a direct call to the same upstream: an HTTP service, and an MCP server, where
//! other proxies are measured too. Every way is measured in turns: one round of each after the other, at 1 and at 32 connections, with and
//! without evidence. Then the list of tools while one MCP server of three is dead, the memory over many calls, and the tokens that a large
//! catalog costs a model. `http`, `mcp`, `list`, `memory`, `memory-mcp` and `tokens` choose a part. The processors are kept awake, unless
//! `--asleep` is said.

use std::io::{Error, Result};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use countersign_benches::awake::Awake;
use countersign_benches::load::{Bound, MakeRequest, Talk, measure, post, rate, told};
use countersign_benches::mcp;
use countersign_benches::peers::Programs;
use countersign_benches::process::Server;
use countersign_benches::target::{self, machine_load};
use countersign_benches::turns::{Round, Way, in_turns, spread};
use serde_json::Value;
use tempfile::TempDir;

/// Most that a call may take longer than a direct one, in microseconds: at the median, with 1 connection and evidence off.
const OVERHEAD_MAX: f64 = 300.0;

/// Tools of the large catalog.
const CATALOG_TOOLS: usize = 1_000;

/// The ways of the gateway: evidence that is not kept, kept behind the reply, and kept before it. The latter two are `countersign serve`.
const EVIDENCE: [(&str, &str); 3] = [
    ("off", "evidence off"),
    ("recorded", "evidence recorded"),
    ("required", "evidence required"),
];

/// The same for a client that speaks the era of the other proxies, which know no newer one.
const EVIDENCE_OLDER: [(&str, &str); 3] = [
    ("off", "evidence off, older era"),
    ("recorded", "evidence recorded, older era"),
    ("required", "evidence required, older era"),
];

/// Most that a list of tools may take while one server of three is dead, in microseconds: 99 of 100.
const LIST_MAX: f64 = 200_000.0;

/// Amount of measuring.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    /// Requests in one round.
    requests: u64,
    /// Calls over which memory is watched.
    calls: u64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let number = |option: &str| {
        let after = arguments.iter().skip_while(|it| *it != option).nth(1);
        after.and_then(|it| it.parse().ok())
    };
    let (rounds, requests, calls) = if has("--quick") {
        (3, 2_000, 50_000)
    } else {
        (7, 10_000, 1_000_000)
    };
    let effort = Effort {
        rounds,
        requests,
        calls: number("--calls").unwrap_or(calls),
    };
    let parts = ["http", "mcp", "list", "memory", "memory-mcp", "tokens"];
    let is_all = !parts.iter().any(|part| has(part));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let awake = (!has("--asleep")).then(Awake::keep);
    let _awake = awake.transpose().expect("processors that stay awake");
    runtime.block_on(async {
        let programs = Programs::found().expect("where the programs are");
        if is_all || has("http") {
            over_http(&programs, effort).await.expect("over HTTP");
        }
        if is_all || has("mcp") {
            over_mcp(&programs, effort).await.expect("over MCP");
        }
        if is_all || has("list") {
            list(&programs, effort).await.expect("lists");
        }
        if is_all || has("memory") {
            memory_http(&programs, effort).await.expect("memory");
        }
        if is_all || has("memory-mcp") {
            memory_mcp(&programs, effort).await.expect("memory");
        }
        if is_all || has("tokens") {
            tokens(&programs).expect("tokens");
        }
    });
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn println(line: &str) {
    println!("{line}");
}

/// The answer of the service.
const ANSWER: &str = r#"{"id":"o_17","status":"shipped","items":[{"sku":"a","quantity":2},{"sku":"b","quantity":1}],"total":"42.50"}"#;

const BODY: &str = r#"{"arguments": {"note": "agent state"}}"#;

/// Gateways over one upstream, one for each kind of evidence.
async fn gateways(programs: &Programs, upstream: &str) -> Result<Vec<(Server, TempDir)>> {
    let mut all = Vec::new();
    for (evidence, _) in EVIDENCE {
        let folder = tempfile::tempdir()?;
        let gateway = programs
            .upstream_gateway(upstream, evidence, folder.path())
            .await?;
        all.push((gateway, folder));
    }
    Ok(all)
}

fn plain(tool: &str) -> Talk {
    let request = post(&format!("/v1/tools/{tool}"), &[], BODY);
    Talk {
        begin: Vec::new(),
        make: Arc::new(move |_, _| request.clone()),
    }
}

async fn over_http(programs: &Programs, effort: Effort) -> Result<()> {
    let service = programs.bare_axum(ANSWER).await?;
    let gateways = gateways(programs, &service.address.to_string()).await?;
    let mut ways = vec![Way {
        name: "direct",
        front: &service,
        behind: Vec::new(),
        talk: plain("echo"),
    }];
    ways.extend(ours(&gateways, EVIDENCE, &service, &plain("svc.echo")));
    let [alone, _] = compare("an HTTP service", &ways, "shipped", effort).await?;
    println("target\tmeasured\ttarget\t");
    for (evidence, name) in EVIDENCE {
        let [more, low, high] = more(named(&alone, name)?, named(&alone, "direct")?);
        let what =
            format!("a call through the gateway, 1 connection, {name}, more than direct, p50");
        let measured = format!("{more:.0} µs ({low:.0}–{high:.0})");
        // There is a target for evidence that is not kept only; the others stand beside it.
        if evidence == "off" {
            let target = format!("≤ {OVERHEAD_MAX:.0} µs");
            println(&target::row(
                &what,
                &measured,
                &target,
                more <= OVERHEAD_MAX,
            ));
        } else {
            println(&format!("{what}\t{measured}\t\t"));
        }
    }
    Ok(())
}

fn ours<'s>(
    gateways: &'s [(Server, TempDir)],
    ways: [(&str, &'static str); 3],
    upstream: &'s Server,
    talk: &Talk,
) -> Vec<Way<'s>> {
    let named = gateways.iter().zip(ways);
    let way = |((gateway, _), (_, name)): (&'s (Server, TempDir), (_, &'static str))| Way {
        name,
        front: gateway,
        behind: vec![upstream],
        talk: talk.clone(),
    };
    named.map(way).collect()
}

async fn over_mcp(programs: &Programs, effort: Effort) -> Result<()> {
    let server = programs.bare_mcp().await?;
    let url = format!("http://{}/mcp", server.address);
    let gateways = gateways(programs, &url).await?;
    let folder = tempfile::tempdir()?;
    let mcp_proxy = programs.mcp_proxy(&url, folder.path()).await?;
    let fastmcp = programs.fastmcp_proxy(&url).await?;
    let mut ways = vec![Way {
        name: "direct",
        front: &server,
        behind: Vec::new(),
        talk: mcp::alone("memory_search"),
    }];
    let tool = "svc_memory_search";
    ways.extend(ours(&gateways, EVIDENCE, &server, &mcp::alone(tool)));
    let older = mcp::in_session("/mcp", tool);
    ways.extend(ours(&gateways, EVIDENCE_OLDER, &server, &older));
    let peers = [
        // That proxy serves at the root.
        (PEERS[0], &mcp_proxy, "/", "svc/memory_search"),
        (PEERS[1], &fastmcp, "/mcp", "memory_search"),
    ];
    for (name, front, path, tool) in peers {
        ways.push(Way {
            name,
            front,
            behind: vec![&server],
            talk: mcp::in_session(path, tool),
        });
    }
    let [_, many] = compare("an MCP server", &ways, "buy agent state", effort).await?;
    println("target\tmeasured\ttarget\t");
    let all = EVIDENCE.iter().chain(&EVIDENCE_OLDER);
    let kept = all.filter(|(evidence, _)| *evidence != "off");
    for (_, name) in kept {
        for peer in PEERS {
            let [quotient, low, high] =
                ratio(named(&many, name)?, named(&many, peer)?, |it| it.rate);
            let [cost, ..] = ratio(named(&many, name)?, named(&many, peer)?, |it| it.cpu);
            let what = format!("calls a second, 32 connections, {name}, beside {peer}");
            let measured = format!("{quotient:.2} × ({low:.2}–{high:.2}), CPU a call {cost:.2} ×");
            println(&target::row(&what, &measured, "> 1 ×", quotient > 1.0));
        }
    }
    Ok(())
}

/// The list of tools while one server of three takes connections and says nothing: its tools stay in the list, which does not wait for it.
async fn list(programs: &Programs, effort: Effort) -> Result<()> {
    let server = programs.bare_mcp().await?;
    let alive = format!("http://{}/mcp", server.address);
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    let dead = format!("http://{}/mcp", silent.local_addr()?);
    let folder = tempfile::tempdir()?;
    // What the last server lists while it works is known to the next start.
    drop(listing(programs, folder.path(), [&alive, &alive, &alive]).await?);
    let front = listing(programs, folder.path(), [&alive, &alive, &dead]).await?;
    let ways = [Way {
        name: "tools/list",
        front: &front,
        behind: Vec::new(),
        talk: mcp::list(),
    }];
    println("one MCP server of three is dead\tmeasured\ttarget\t");
    for connections in [1, 32] {
        let measured = in_turns(&ways, connections, effort.rounds, effort.requests).await?;
        let rounds = measured.iter().flatten();
        let [p50, ..] = spread(rounds.clone().map(|it| it.p50));
        let [p99, _, most] = spread(rounds.map(|it| it.p99));
        let what = format!("tools/list, connections: {connections}, p50 and p99");
        let figures = format!("{p50:.0} µs, {p99:.0} µs (at most {most:.0} µs)");
        let target = format!("p99 < {:.0} ms", LIST_MAX / 1e3);
        println(&target::row(&what, &figures, &target, most < LIST_MAX));
    }
    println(&format!("load of the machine\t{}", machine_load()));
    Ok(())
}

/// `countersign serve` over three MCP servers at these URLs, with the tools of all three in its list.
async fn listing(programs: &Programs, folder: &Path, urls: [&str; 3]) -> Result<Server> {
    let names = ["one", "two", "three"];
    let entries = names.iter().zip(urls).map(|(name, url)| {
        format!(
            "[[upstream]]\nname = \"{name}\"\nkind = \"mcp\"\nurl = \"{url}\"\nallow_private = [\"loopback\"]\n\
             trust = \"first_use\"\n"
        )
    });
    let entries: Vec<String> = entries.collect();
    let front = programs.configured(folder, None, &entries.concat()).await?;
    let mut answer = String::new();
    // A server that is seen for the first time is listed a moment after the start.
    for _ in 0..100 {
        answer = told(front.address, &mcp::list()).await?;
        let is_listed = |name: &&str| answer.contains(&format!("{name}_memory_search"));
        if names.iter().all(is_listed) {
            return Ok(front);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(Error::other(format!("tools are missing in {answer}")))
}

/// The proxies that the gateway is compared with.
const PEERS: [&str; 2] = ["mcp-proxy", "FastMCP's proxy"];

/// The rounds of a way.
type Measured = Vec<(&'static str, Vec<Round>)>;

fn named<'m>(measured: &'m Measured, name: &str) -> Result<&'m [Round]> {
    let found = measured.iter().find(|(way, _)| *way == name);
    found
        .map(|(_, rounds)| rounds.as_slice())
        .ok_or_else(|| Error::other(format!("{name} was not measured")))
}

/// Quotients of a figure, round by round: the middle one, the least and the most.
fn ratio(ours: &[Round], beside: &[Round], of: fn(&Round) -> f64) -> [f64; 3] {
    spread(ours.iter().zip(beside).map(|(a, b)| of(a) / of(b)))
}

/// Microseconds that a call takes longer than a direct one, round by round: the middle, the least and the most.
fn more(rounds: &[Round], direct: &[Round]) -> [f64; 3] {
    spread(rounds.iter().zip(direct).map(|(a, b)| a.p50 - b.p50))
}

/// Measures ways in turns, after a look at whether each of them works; the rounds with 1 connection, and those with 32.
async fn compare(
    what: &str,
    ways: &[Way<'_>],
    expected: &str,
    effort: Effort,
) -> Result<[Measured; 2]> {
    for way in ways {
        let answer = told(way.front.address, &way.talk).await?;
        if !answer.contains(expected) {
            let name = way.name;
            return Err(Error::other(format!("{name} answered {answer}")));
        }
    }
    println(&format!(
        "{what}\tconnections\tp50 µs\tmore than direct (range)\tp99 µs\tcalls/s (range)\tCPU a call, upstream included, µs"
    ));
    let mut both = [Measured::new(), Measured::new()];
    for (connections, all) in [1, 32].into_iter().zip(&mut both) {
        let measured = in_turns(ways, connections, effort.rounds, effort.requests).await?;
        all.extend(ways.iter().map(|way| way.name).zip(measured));
        let direct = named(all, "direct")?;
        for (name, rounds) in &*all {
            println(&row(name, connections, rounds, direct));
        }
        println(&format!("load of the machine\t{}", machine_load()));
    }
    Ok(both)
}

fn row(name: &str, connections: u64, rounds: &[Round], direct: &[Round]) -> String {
    let of = |value: fn(&Round) -> f64| spread(rounds.iter().map(value));
    let [p50, ..] = of(|it| it.p50);
    let [p99, ..] = of(|it| it.p99);
    let [cpu, ..] = of(|it| it.cpu);
    let [calls, least, most] = of(|it| it.rate);
    let [more, low, high] = more(rounds, direct);
    format!(
        "{name}\t{connections}\t{p50:.0}\t{more:.0} ({low:.0}–{high:.0})\t{p99:.0}\t{calls:.0} ({least:.0}–{most:.0})\t{cpu:.0}"
    )
}

async fn memory_http(programs: &Programs, effort: Effort) -> Result<()> {
    let service = programs.bare_axum(ANSWER).await?;
    let folder = tempfile::tempdir()?;
    let address = service.address.to_string();
    let gateway = programs
        .upstream_gateway(&address, "recorded", folder.path())
        .await?;
    let request = post("/v1/tools/svc.echo", &[], BODY);
    let make: MakeRequest = Arc::new(move |_| request.clone());
    let mut resident = Vec::new();
    for _ in 0..10 {
        rate(gateway.address, 32, (effort.calls / 320).max(1), 0, &make).await?;
        resident.push(gateway.resident()?);
    }
    memory("an HTTP service", effort.calls, &resident);
    Ok(())
}

async fn memory_mcp(programs: &Programs, effort: Effort) -> Result<()> {
    let server = programs.bare_mcp().await?;
    let folder = tempfile::tempdir()?;
    let url = format!("http://{}/mcp", server.address);
    let gateway = programs
        .upstream_gateway(&url, "recorded", folder.path())
        .await?;
    let talk = mcp::alone("svc_memory_search");
    let mut resident = Vec::new();
    for _ in 0..10 {
        let bound = Bound {
            each: (effort.calls / 320).max(1),
            within: Duration::MAX,
        };
        measure(gateway.address, 32, bound, &talk).await?;
        resident.push(gateway.resident()?);
    }
    memory("an MCP server", effort.calls, &resident);
    Ok(())
}

/// Memory of the gateway after a tenth of the calls and after all, with evidence on a file.
fn memory(what: &str, calls: u64, resident: &[u64]) {
    let first = resident.first().copied().unwrap_or_default();
    let last = resident.last().copied().unwrap_or_default();
    let megabytes = |bytes: u64| format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10);
    let shown: Vec<String> = resident.iter().map(|it| megabytes(*it)).collect();
    println("target\tmeasured\ttarget\t");
    let what = format!(
        "memory of the gateway over {what}, after {calls} calls, beside that after a tenth"
    );
    let measured = format!(
        "{} MB, {} MB (each tenth: {})",
        megabytes(last),
        megabytes(first),
        shown.join(" ")
    );
    let is_met = target::is_flat(first, last);
    println(&target::row(
        &what,
        &measured,
        "at most 5 % or 5 MB more",
        is_met,
    ));
}

/// Tokens that a catalog of a thousand tools costs a model, as the command tells them: GitHub's API, imported, in one list, and behind the
/// facade.
fn tokens(programs: &Programs) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let all = folder.path().join("all.toml");
    let mut import = countersign(programs, folder.path());
    import.args(["import", "openapi"]).arg(&programs.github);
    import.args(["--name", "github", "--out"]).arg(&all);
    said(&mut import)?;
    let text = std::fs::read_to_string(&all)?;
    let cut = text.match_indices("\n[[tool]]\n").nth(CATALOG_TOOLS);
    let cut = cut.map_or(text.len(), |(at, _)| at + 1);
    let kept = text.get(..cut).unwrap_or_default();
    std::fs::write(folder.path().join("github.toml"), kept)?;
    let config = folder.path().join("countersign.toml");
    std::fs::write(&config, "include = [\"github.toml\"]\n")?;
    let mut tools = countersign(programs, folder.path());
    tools.env("GITHUB_TOKEN", "none");
    tools.args(["tools", "--tokens", "--config"]).arg(&config);
    let answer: Value = serde_json::from_str(&said(&mut tools)?).map_err(Error::other)?;
    let tools = answer.get("tools").and_then(Value::as_array);
    let count = tools.map_or(0, Vec::len);
    if count != CATALOG_TOOLS {
        return Err(Error::other(format!("the catalog has {count} tools")));
    }
    println(&format!(
        "tokens of {count} tools of GitHub's API, estimated as {}\tall in the list\twith the facade",
        answer
            .get("estimate")
            .and_then(Value::as_str)
            .unwrap_or_default()
    ));
    for provider in ["openai", "openai-responses", "anthropic", "gemini", "mcp"] {
        let of = |list: &str| answer.get(list)?.get(provider)?.as_u64();
        let missing = || Error::other(format!("no tokens for {provider}"));
        let listed = of("all_tools").ok_or_else(missing)?;
        let facade = of("facade").ok_or_else(missing)?;
        println(&format!("{provider}\t{listed}\t{facade}"));
    }
    Ok(())
}

/// The command in a folder of its own.
fn countersign(programs: &Programs, folder: &Path) -> Command {
    let mut command = Command::new(programs.release.join("countersign"));
    command.current_dir(folder).stdin(Stdio::null());
    command.arg("--json");
    command
}

/// The text that a command prints.
fn said(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        let status = output.status;
        return Err(Error::other(format!("{command:?} ended with {status}")));
    }
    String::from_utf8(output.stdout).map_err(Error::other)
}
