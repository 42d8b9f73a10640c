//! Connects to children of an MCP server, kills some of them, and counts the rest: `cargo run -p countersign-upstream --example children --
//! 1000`. The tests do the same fifty times.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use countersign::{CallContext, Catalog, Principal};
use countersign_upstream::{Manifest, Upstream, Upstreams};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cycles = std::env::args().nth(1);
    let cycles: usize = cycles.map_or(Ok(1_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py");
    let (server, world) = (
        server.display().to_string(),
        folder.path().display().to_string(),
    );
    let command = ["python3", "-S", &server, &world, "--grandchild"];
    let mut upstream = Upstream::mcp_child("plain", command);
    upstream.connections.count_max = 4;
    upstream.trust = countersign_upstream::manifest::Trust::FirstUse;
    let manifest = Manifest {
        upstream: vec![upstream],
        ..Manifest::default()
    };
    let upstreams = Upstreams::prepare(&manifest, folder.path())?;
    let catalog = Catalog::builder().build()?;
    upstreams.discover(&catalog, Duration::from_mins(1)).await;
    let tool = catalog
        .get("plain.who")
        .ok_or("the server lists no tools")?;

    let start = Instant::now();
    let mut answered = 0_usize;
    for cycle in 0..cycles {
        // Each user has a child, and the fifth makes the first one go.
        let user = Principal::user(format!("u{cycle}"));
        let ctx = CallContext::standalone(&user, "{}");
        let arguments = countersign::Arguments::from_json("{}")?;
        let reply = tool.tool().call(&ctx, arguments).await;
        let pid = reply
            .as_ref()
            .ok()
            .and_then(|reply| reply.data.get("pid")?.as_i64());
        answered += usize::from(pid.is_some());
        // Every third is killed from outside.
        let pid = pid
            .filter(|_| cycle % 3 == 0)
            .and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            kill_process(pid, Signal::KILL)?;
        }
    }
    upstreams.close().await;
    let mut pids = Vec::new();
    for name in ["started", "grandchildren"] {
        let text = std::fs::read_to_string(folder.path().join(name))?;
        pids.extend(
            text.lines()
                .filter_map(|line| line.parse().ok())
                .filter_map(Pid::from_raw),
        );
    }
    // What makes room for others is closed behind the callers' backs, and takes a moment.
    let left = || {
        pids.iter()
            .filter(|pid| test_kill_process(**pid).is_ok())
            .count()
    };
    let closed = Instant::now();
    while left() > 0 && closed.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (left, all) = (left(), pids.len());
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{cycles} cycles, {answered} answers, {all} processes, {left} left, {seconds:.1} s");
    if left > 0 || answered < cycles {
        return Err("something is left, or was not answered".into());
    }
    Ok(())
}

/// Time that processes have to end after everything was closed.
const PATIENCE: Duration = Duration::from_secs(30);
