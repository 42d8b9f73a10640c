//! The cost of a call to an upstream through the gateway, beside a direct call to the same upstream: an HTTP service, and an MCP server, where
//! other proxies are measured too. Every way is measured in turns: one round of each after the other, at 1 and at 32 connections, with and
//! without evidence. Then the memory over many calls. `http`, `mcp`, `memory` and `memory-mcp` choose a part.

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

use countersign_benches::load::{MakeRequest, Talk, measure, post, rate, told};
use countersign_benches::mcp;
use countersign_benches::peers::Programs;
use countersign_benches::process::Server;
use countersign_benches::turns::{Round, Way, in_turns, spread};
use tempfile::TempDir;

/// The ways of the gateway: evidence that is not kept, kept behind the reply, and kept before it.
const EVIDENCE: [(&str, &str); 3] = [
    ("off", "evidence off"),
    ("batched", "evidence batched"),
    ("required", "evidence required"),
];

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
    if !has("--bench") {
        // Not `cargo bench`: the servers that are measured have not been built.
        return;
    }
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
    let parts = ["http", "mcp", "memory", "memory-mcp"];
    let is_all = !parts.iter().any(|part| has(part));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let programs = Programs::found().expect("where the programs are");
        if is_all || has("http") {
            over_http(&programs, effort).await.expect("over HTTP");
        }
        if is_all || has("mcp") {
            over_mcp(&programs, effort).await.expect("over MCP");
        }
        if is_all || has("memory") {
            memory_http(&programs, effort).await.expect("memory");
        }
        if is_all || has("memory-mcp") {
            memory_mcp(&programs, effort).await.expect("memory");
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
    ways.extend(ours(&gateways, &service, &plain("svc.echo")));
    compare("an HTTP service", &ways, "shipped", effort).await
}

fn ours<'s>(gateways: &'s [(Server, TempDir)], upstream: &'s Server, talk: &Talk) -> Vec<Way<'s>> {
    let named = gateways.iter().zip(EVIDENCE);
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
    let mcp_proxy = present(programs.mcp_proxy(&url, folder.path()).await)?;
    let fastmcp = present(programs.fastmcp_proxy(&url).await)?;
    let mut ways = vec![Way {
        name: "direct",
        front: &server,
        behind: Vec::new(),
        talk: mcp::alone("memory_search"),
    }];
    ways.extend(ours(&gateways, &server, &mcp::alone("svc_memory_search")));
    let peers = [
        ("mcp-proxy", &mcp_proxy, "svc/memory_search"),
        ("FastMCP's proxy", &fastmcp, "memory_search"),
    ];
    for (name, front, tool) in peers {
        let Some(front) = front else {
            println(&format!("{name} is not installed, and left out"));
            continue;
        };
        ways.push(Way {
            name,
            front,
            behind: vec![&server],
            talk: mcp::in_session(tool),
        });
    }
    compare("an MCP server", &ways, "buy agent state", effort).await
}

/// A peer that is not installed is none.
fn present(started: Result<Server>) -> Result<Option<Server>> {
    match started {
        Ok(server) => Ok(Some(server)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Measures ways in turns, after a look at whether each of them works.
async fn compare(what: &str, ways: &[Way<'_>], expected: &str, effort: Effort) -> Result<()> {
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
    for connections in [1, 32] {
        let measured = in_turns(ways, connections, effort.rounds, effort.requests).await?;
        let Some(direct) = measured.first() else {
            continue;
        };
        for (way, rounds) in ways.iter().zip(&measured) {
            println(&row(way.name, connections, rounds, direct));
        }
    }
    Ok(())
}

fn row(name: &str, connections: u64, rounds: &[Round], direct: &[Round]) -> String {
    let of = |value: fn(&Round) -> f64| spread(rounds.iter().map(value));
    let [p50, ..] = of(|it| it.p50);
    let [p99, ..] = of(|it| it.p99);
    let [cpu, ..] = of(|it| it.cpu);
    let [calls, least, most] = of(|it| it.rate);
    let more = rounds.iter().zip(direct).map(|(a, b)| a.p50 - b.p50);
    let [more, low, high] = spread(more);
    format!(
        "{name}\t{connections}\t{p50:.0}\t{more:.0} ({low:.0}–{high:.0})\t{p99:.0}\t{calls:.0} ({least:.0}–{most:.0})\t{cpu:.0}"
    )
}

async fn memory_http(programs: &Programs, effort: Effort) -> Result<()> {
    let service = programs.bare_axum(ANSWER).await?;
    let folder = tempfile::tempdir()?;
    let address = service.address.to_string();
    let gateway = programs
        .upstream_gateway(&address, "batched", folder.path())
        .await?;
    let request = post("/v1/tools/svc.echo", &[], BODY);
    let make: MakeRequest = Arc::new(move |_| request.clone());
    let mut resident = Vec::new();
    for _ in 0..10 {
        rate(gateway.address, 32, (effort.calls / 320).max(1), 0, &make).await?;
        resident.push(gateway.resident()? / 1_000_000);
    }
    memory("an HTTP service", effort.calls, &resident);
    Ok(())
}

async fn memory_mcp(programs: &Programs, effort: Effort) -> Result<()> {
    let server = programs.bare_mcp().await?;
    let folder = tempfile::tempdir()?;
    let url = format!("http://{}/mcp", server.address);
    let gateway = programs
        .upstream_gateway(&url, "batched", folder.path())
        .await?;
    let talk = mcp::alone("svc_memory_search");
    let mut resident = Vec::new();
    for _ in 0..10 {
        measure(gateway.address, 32, (effort.calls / 320).max(1), &talk).await?;
        resident.push(gateway.resident()? / 1_000_000);
    }
    memory("an MCP server", effort.calls, &resident);
    Ok(())
}

/// Memory of the gateway after a tenth of the calls and after all, with evidence on a file.
fn memory(what: &str, calls: u64, resident: &[u64]) {
    let first = resident.first().copied().unwrap_or_default();
    let last = resident.last().copied().unwrap_or_default();
    let shown: Vec<String> = resident.iter().map(u64::to_string).collect();
    println(&format!(
        "memory of the gateway over {what} after {calls} calls, beside that after a tenth\t{last} MB\t{first} MB\t{} MB (each tenth: {})",
        i128::from(last) - i128::from(first),
        shown.join(" ")
    ));
}
