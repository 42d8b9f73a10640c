//! What a page of the console and a list of calls cost with many calls behind them. `countersign serve` is filled over HTTP with calls of a
//! thousand users, of which one in fifty fails, and a few in a million have a code, a tool and a user of their own; then every page is asked
//! for. `--calls N` says how many (1,000,000), `--postgres` where.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign_benches::load::{Connection, MakeRequest, fill, get, post};
use countersign_benches::peers::Programs;
use countersign_benches::process::Server;
use countersign_benches::turns::spread;
use countersign_testkit::postgres::TempPostgres;

/// Connections that fill the store.
const CONNECTIONS: u64 = 32;

/// One call of so many is a rare one.
const RARE: u64 = 100_003;

/// Questions that wait for an answer.
const WAITING: u64 = 1_000;

/// Times that each page is asked for.
const TIMES: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    if !has("--bench") {
        // Not `cargo bench`: the server that is measured has not been built.
        return;
    }
    let after = arguments.iter().skip_while(|it| *it != "--calls").nth(1);
    let usual = if has("--quick") { 20_000 } else { 1_000_000 };
    let calls = after.and_then(|it| it.parse().ok()).unwrap_or(usual);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let database = has("--postgres").then(TempPostgres::start);
    let url = database.as_ref().map(TempPostgres::fresh_database);
    runtime
        .block_on(measure(calls, url.as_deref()))
        .expect("the server answers");
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn println(line: &str) {
    println!("{line}");
}

async fn measure(calls: u64, store: Option<&str>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let programs = Programs::found()?;
    let server = programs.countersign(folder.path(), store).await?;
    let begun = Instant::now();
    let make: MakeRequest = Arc::new(request);
    fill(server.address, CONNECTIONS, 0..calls, &make).await?;
    let questions: MakeRequest = Arc::new(question);
    fill(server.address, CONNECTIONS, 0..WAITING, &questions).await?;
    println(&format!(
        "{calls} calls and {WAITING} questions in {:.0} s; load of the machine {}",
        begun.elapsed().as_secs_f64(),
        std::fs::read_to_string("/proc/loadavg")?.trim()
    ));
    let mut connection = Connection::to(server.address).await?;
    connection
        .ask(&get("/", &[("accept", "text/html")]))
        .await?;
    let cookie = cookie(&connection.answer())?;
    println("page\tbytes\tmedian ms (range)\tCPU ms");
    for path in pages(&mut connection).await? {
        page(&server, &mut connection, &path, &cookie).await?;
    }
    live(server.address, &cookie).await
}

/// A call: most work, some fail, and a few are rare.
fn request(number: u64) -> Vec<u8> {
    let user = number % 1_000;
    if number % RARE == RARE - 1 {
        // The same key for other arguments.
        let body = format!(r#"{{"user_id": "u_rare", "arguments": {{"text": "note {number}"}}}}"#);
        let key = ("idempotency-key", "the same one");
        return post("/v1/tools/notes.add", &[key], &body);
    }
    if number % 50 == 7 {
        let body = format!(r#"{{"user_id": "u_{user}", "arguments": {{"country": 7}}}}"#);
        return post("/v1/tools/sample.vat", &[], &body);
    }
    let body = format!(r#"{{"user_id": "u_{user}", "arguments": {{"note": "note {number}"}}}}"#);
    post("/v1/tools/diagnostics.echo", &[], &body)
}

/// A call that waits for its user.
fn question(number: u64) -> Vec<u8> {
    let keep = number % 7;
    let body = format!(r#"{{"user_id": "u_{number}", "arguments": {{"keep": {keep}}}}}"#);
    post("/v1/tools/notes.clear", &[], &body)
}

fn cookie(answer: &str) -> Result<String> {
    let set = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("set-cookie");
        is_it.then(|| {
            value
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
    });
    set.ok_or_else(|| Error::other("no session was begun"))
}

/// The pages, with the lists of calls that are hard to answer.
async fn pages(connection: &mut Connection) -> Result<Vec<String>> {
    connection
        .ask(&get("/v1/calls?code=CONFLICT&limit=5", &[]))
        .await?;
    let answer = connection.answer();
    let after = answer.split_once(r#""request_id":""#);
    let id = after.and_then(|(_, rest)| rest.split('"').next());
    let id = id.unwrap_or("req_1");
    let pages = [
        "/",
        "/tools",
        "/tools/notes.add",
        "/calls",
        "/approvals",
        "/in-doubt",
        "/evidence",
        "/upstreams",
        "/policy",
        "/errors",
        "/settings",
        "/docs",
        "/errors/CONFLICT",
        "/calls?code=CONFLICT",
        "/calls?tool=notes.add",
        "/calls?user=u_7",
    ];
    let mut all: Vec<String> = pages.map(str::to_owned).to_vec();
    all.push(format!("/calls/{id}"));
    all.push(format!("/search?q={id}"));
    let lists = [
        "limit=50",
        "limit=200",
        "code=CONFLICT&limit=50",
        "code=INVALID_ARGUMENT&limit=50",
        "code=TIMEOUT&limit=50",
        "tool=notes.add&limit=50",
        "tool=nothing.like_it&limit=50",
        "user=u_7&limit=50",
        "user=u_rare&code=CONFLICT&limit=50",
        "user=u_7&code=CONFLICT&limit=50",
        "tool=sample.vat&code=CONFLICT&limit=50",
        "code=OK&limit=50",
    ];
    all.extend(lists.map(|list| format!("/v1/calls?{list}")));
    Ok(all)
}

async fn page(
    server: &Server,
    connection: &mut Connection,
    path: &str,
    cookie: &str,
) -> Result<()> {
    let request = get(path, &[("accept", "text/html"), ("cookie", cookie)]);
    connection.ask(&request).await?;
    let bytes = connection.answer().len();
    let before = server.cpu()?;
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let begun = Instant::now();
        connection.ask(&request).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let cpu = (server.cpu()?.saturating_sub(before)).as_secs_f64() * 1e3;
    let cpu = cpu / f64::from(u32::try_from(TIMES).unwrap_or(1));
    let [median, low, high] = spread(times);
    println(&format!(
        "{path}\t{bytes}\t{median:.1} ({low:.1}–{high:.1})\t{cpu:.1}"
    ));
    Ok(())
}

/// Time from the end of a call until its row is on a page that listens.
async fn live(server: SocketAddr, cookie: &str) -> Result<()> {
    let headers = [("accept", "text/event-stream"), ("cookie", cookie)];
    let mut events = Connection::to(server).await?;
    events
        .listen(&get("/calls/live", &headers), "\r\n\r\n")
        .await?;
    let mut connection = Connection::to(server).await?;
    let rows = get("/calls?part=rows", &[("cookie", cookie)]);
    let mut times = Vec::new();
    for number in 0..10 {
        connection.ask(&request(number)).await?;
        let begun = Instant::now();
        let answer = connection.answer();
        let id = answer.split_once(r#""request_id":""#);
        let id = id
            .and_then(|(_, rest)| rest.split('"').next())
            .unwrap_or_default();
        events.hear("event: calls").await?;
        connection.ask(&rows).await?;
        if id.is_empty() || !connection.answer().contains(id) {
            return Err(Error::other("the row is not on the page"));
        }
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        // The next event is of the next call.
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let [median, low, high] = spread(times);
    println(&format!(
        "from a call's end to its row on a live page\t\t{median:.0} ({low:.0}–{high:.0})\t"
    ));
    Ok(())
}
