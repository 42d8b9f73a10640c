//! The cost of a call to an HTTP service through the gateway, beside a direct call to the same service. Every way is measured in turns:
//! one round of each after the other, at 1 and at 32 connections, with and without evidence. Then the memory over many calls.

use std::io::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

use countersign_benches::load::{MakeRequest, latencies, once, post, rate};
use countersign_benches::peers::Programs;
use countersign_benches::process::Server;

/// The ways to the service.
const WAYS: [&str; 4] = ["direct", "off", "batched", "required"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    if !has("--bench") {
        // Not `cargo bench`: the servers that are measured have not been built.
        return;
    }
    let after = arguments.iter().skip_while(|it| *it != "--calls").nth(1);
    let calls = after.and_then(|it| it.parse().ok());
    let (rounds, requests, usual) = if has("--quick") {
        (3, 2_000, 50_000)
    } else {
        (7, 10_000, 1_000_000)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let programs = Programs::found().expect("where the programs are");
        println("what\tours\tbeside\tmore\ttarget");
        overhead(&programs, rounds, requests)
            .await
            .expect("the servers answer");
        memory(&programs, calls.unwrap_or(usual))
            .await
            .expect("the server answers");
    });
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn println(line: &str) {
    println!("{line}");
}

/// The answer of the service.
const ANSWER: &str = r#"{"id":"o_17","status":"shipped","items":[{"sku":"a","quantity":2},{"sku":"b","quantity":1}],"total":"42.50"}"#;

const BODY: &str = r#"{"arguments": {"note": "agent state"}}"#;

/// One round of a way.
#[derive(Debug, Clone, Copy)]
struct Round {
    p50: f64,
    p99: f64,
    /// CPU time of the gateway and the service for one call, in microseconds.
    cpu: f64,
}

async fn overhead(programs: &Programs, rounds: usize, requests: u64) -> Result<()> {
    let service = programs.bare_axum(ANSWER).await?;
    let folders: Vec<_> = WAYS.iter().map(|_| tempfile::tempdir()).collect();
    let mut gateways = Vec::new();
    for (way, folder) in WAYS.iter().zip(&folders).skip(1) {
        let folder = folder
            .as_ref()
            .map_err(|error| Error::other(error.to_string()))?;
        let gateway = programs
            .upstream_gateway(service.address, way, folder.path())
            .await?;
        gateways.push(gateway);
    }
    for connections in [1, 32] {
        let each = (requests / connections).max(1);
        let mut measured = vec![Vec::new(); WAYS.len()];
        // The first round warms everything up and does not count.
        for round in 0..=rounds {
            for (at, (way, measured)) in WAYS.iter().zip(&mut measured).enumerate() {
                let gateway = at.checked_sub(1).and_then(|at| gateways.get(at));
                let one = one_round(way, &service, gateway, connections, each).await?;
                if round > 0 {
                    measured.push(one);
                }
            }
        }
        tell(connections, &measured);
    }
    Ok(())
}

async fn one_round(
    way: &str,
    service: &Server,
    gateway: Option<&Server>,
    connections: u64,
    each: u64,
) -> Result<Round> {
    let tool = if gateway.is_some() { "svc.echo" } else { way };
    let request = post(&format!("/v1/tools/{tool}"), &[], BODY);
    let make: MakeRequest = Arc::new(move |_| request.clone());
    let address = gateway.unwrap_or(service).address;
    let cpu = || -> Result<Duration> {
        Ok(service.cpu()? + gateway.map_or(Ok(Duration::ZERO), Server::cpu)?)
    };
    let before = cpu()?;
    let mut times = latencies(address, connections, each, &make).await?;
    let spent = cpu()?.saturating_sub(before);
    times.sort_unstable();
    let at = |percent: usize| {
        let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or_default().as_secs_f64() * 1e6
    };
    let count = u32::try_from(connections * each).unwrap_or(u32::MAX);
    Ok(Round {
        p50: at(50),
        p99: at(99),
        cpu: spent.as_secs_f64() * 1e6 / f64::from(count),
    })
}

fn tell(connections: u64, measured: &[Vec<Round>]) {
    let Some((direct, ways)) = measured.split_first() else {
        return;
    };
    for (way, rounds) in WAYS.iter().skip(1).zip(ways) {
        for (name, value) in [
            ("p50", (|it: &Round| it.p50) as fn(&Round) -> f64),
            ("p99", |it| it.p99),
            ("CPU a call, service included", |it| it.cpu),
        ] {
            let mut ours: Vec<f64> = rounds.iter().map(value).collect();
            let mut beside: Vec<f64> = direct.iter().map(value).collect();
            let mut more: Vec<f64> = ours.iter().zip(&beside).map(|(a, b)| a - b).collect();
            let (ours, beside) = (median(&mut ours), median(&mut beside));
            let more_median = median(&mut more);
            let (low, high) = (more.first().copied(), more.last().copied());
            let target = match (*way, name, connections) {
                ("off", "p50", 1) => "≤ 300 µs",
                _ => "",
            };
            println(&format!(
                "{name}, evidence {way}, {connections} connections, beside a direct call\t{ours:.0} µs\t{beside:.0} µs\t{more_median:.0} µs ({:.0}–{:.0})\t{target}",
                low.unwrap_or_default(),
                high.unwrap_or_default(),
            ));
        }
    }
}

/// Memory of the gateway after a tenth of the calls and after all, with evidence on a file.
async fn memory(programs: &Programs, calls: u64) -> Result<()> {
    let service = programs.bare_axum(ANSWER).await?;
    let folder = tempfile::tempdir()?;
    let gateway = programs
        .upstream_gateway(service.address, "batched", folder.path())
        .await?;
    let request = post("/v1/tools/svc.echo", &[], BODY);
    once(gateway.address, &request).await?;
    let make: MakeRequest = Arc::new(move |_| request.clone());
    let tenth = (calls / 10).max(32);
    let mut resident = Vec::new();
    for part in 1..=10 {
        rate(gateway.address, 32, tenth / 32, 0, &make).await?;
        resident.push((part * tenth, gateway.resident()? / 1_000_000));
    }
    let shown: Vec<String> = resident.iter().map(|(_, mb)| mb.to_string()).collect();
    let first = resident.first().map_or(0, |it| it.1);
    let last = resident.last().map_or(0, |it| it.1);
    println(&format!(
        "memory of the gateway after {calls} calls, beside that after {tenth}\t{last} MB\t{first} MB\t{} MB (each tenth: {})\tflat",
        i128::from(last) - i128::from(first),
        shown.join(" ")
    ));
    Ok(())
}

/// The middle of some numbers, which are sorted by this.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}
