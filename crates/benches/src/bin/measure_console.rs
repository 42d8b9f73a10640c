//! What a page of the console and a list of calls cost with many calls behind them. `countersign serve` is filled over HTTP with calls of a
//! thousand users in sessions, of which one in fifty fails, and ten have a code, a tool and a user of their own; then every page is asked
//! for. `--calls N` says how many (1,000,000), `--postgres` where.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign_benches::load::{Connection, MakeRequest, fill, get, post};
use countersign_benches::peers::Programs;
use countersign_benches::process::Server;
use countersign_benches::target::{machine_load, row, verdict};
use countersign_benches::turns::spread;
use countersign_testkit::postgres::TempPostgres;
use serde_json::Value;

/// Connections that fill the store.
const CONNECTIONS: u64 = 32;

/// Calls that are rare, all in all.
const RARE_CALLS: u64 = 10;

/// Calls of one session: as many as its page shows.
const SESSION_CALLS: u64 = 200;

/// Users whose calls are not rare: with the others, about as many as are looked through for an id that a caller chose.
const USERS: u64 = 990;

/// Questions that wait for an answer.
const WAITING: u64 = 1_000;

/// Times that each page is asked for.
const TIMES: usize = 15;

/// Targets of a page: bytes, and milliseconds at the median.
const BYTES_MAX: usize = 100_000;
const TIME_MAX: f64 = 50.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
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
    let config = format!("[approvals]\npending_max = {WAITING}\n");
    let server = programs.configured(folder.path(), store, &config).await?;
    let begun = Instant::now();
    let rare = (calls / RARE_CALLS).max(1);
    let make: MakeRequest = Arc::new(move |number| request(number, rare));
    fill(server.address, CONNECTIONS, 0..calls, &make).await?;
    let questions: MakeRequest = Arc::new(question);
    fill(server.address, CONNECTIONS, 0..WAITING, &questions).await?;
    println(&format!(
        "{calls} calls and {WAITING} questions in {:.0} s on {}; memory of the server {} MB; load of the machine {}",
        begun.elapsed().as_secs_f64(),
        store.map_or("SQLite", |_| "PostgreSQL"),
        server.resident()? / 1_000_000,
        machine_load()
    ));
    let mut connection = Connection::to(server.address).await?;
    connection
        .ask(&get("/", &[("accept", "text/html")]))
        .await?;
    let cookie = cookie(&connection.answer())?;
    println("page\tbytes\tmedian ms (range)\tCPU ms\ttarget");
    let mut missed = Vec::new();
    let pages = pages(&mut connection, &cookie, calls).await?;
    for page in &pages {
        if !shown(&server, &mut connection, page, &cookie).await? {
            missed.push(page.path.as_str());
        }
    }
    let what = format!("pages and lists with {calls} calls behind them");
    let told = format!("{} of {}", pages.len() - missed.len(), pages.len());
    println(&row(
        &what,
        &told,
        &format!("< {TIME_MAX} ms; pages ≤ {} KB", BYTES_MAX / 1_000),
        missed.is_empty(),
    ));
    live(server.address, &cookie).await?;
    println(&format!("load of the machine {}", machine_load()));
    Ok(())
}

/// A call: most work, some fail, and one of `rare` is a rare one.
fn request(number: u64, rare: u64) -> Vec<u8> {
    let session = number / SESSION_CALLS;
    if number % rare == rare - 1 {
        // The same key for other arguments.
        let body = format!(
            r#"{{"user_id": "u_rare", "session_id": "s_{session}", "arguments": {{"text": "note {number}"}}}}"#
        );
        let key = ("idempotency-key", "the same one");
        return post("/v1/tools/notes.add", &[key], &body);
    }
    if number % 50 == 7 {
        let user = session % USERS;
        let body = format!(
            r#"{{"user_id": "u_{user}", "session_id": "s_{session}", "arguments": {{"country": 7}}}}"#
        );
        return post("/v1/tools/sample.vat", &[], &body);
    }
    good(number)
}

/// A call that works.
fn good(number: u64) -> Vec<u8> {
    let session = number / SESSION_CALLS;
    let user = session % USERS;
    let body = format!(
        r#"{{"user_id": "u_{user}", "session_id": "s_{session}", "arguments": {{"note": "note {number}"}}}}"#
    );
    post("/v1/tools/diagnostics.echo", &[], &body)
}

/// A call that waits for its user: the one who looks at the pages.
fn question(number: u64) -> Vec<u8> {
    let body = format!(r#"{{"arguments": {{"keep": {number}}}}}"#);
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

/// Something to ask for.
struct Page {
    path: String,
    /// Status of a good answer.
    status: &'static str,
    /// True for pages, whose bytes have a target; lists of the API are as long as they were asked for.
    is_html: bool,
}

impl Page {
    fn shown(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            status: "200",
            is_html: true,
        }
    }
}

/// A text in the JSON of an answer.
fn text_at(answer: &str, pointer: &str) -> Result<String> {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body: Value = serde_json::from_str(body).map_err(Error::other)?;
    let found = body.pointer(pointer).and_then(Value::as_str);
    let missing = || Error::other(format!("no {pointer} in {answer}"));
    found.map(str::to_owned).ok_or_else(missing)
}

/// Pages that need nothing but their address.
const PAGES: [&str; 29] = [
    "/",
    "/tools",
    "/tools/notes.add",
    "/calls",
    "/approvals",
    "/in-doubt",
    "/evidence",
    "/upstreams",
    "/grants",
    "/notifications",
    "/policy",
    "/policy/report",
    "/errors",
    "/settings",
    "/docs",
    "/docs/tutorial",
    // The longest guide.
    "/docs/configuration",
    "/errors/CONFLICT",
    "/calls?code=CONFLICT",
    "/calls?tool=notes.add",
    "/calls?user=u_7",
    // Filters that only records can answer.
    "/calls?replayed=true",
    "/calls?actor=nothing.like_it",
    "/calls?slow_ms=60000&repaired=true",
    "/calls?since=2000-01-01T00:00:00Z",
    // A key, a session or a user could have the first name; a request id, too, the second.
    "/search?q=nothing+like+it",
    "/search?q=nothing-like-it",
    "/search?q=order_0000000000000000",
    "/search?q=sha256:0000000000000000000000000000000000000000000000000000000000000000",
];

/// Lists of calls that are hard to answer.
const LISTS: [&str; 14] = [
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
    "replayed=true&limit=200",
    "actor=nothing.like_it&tool=sample.vat&limit=200",
];

/// The pages, with the lists of calls that are hard to answer.
async fn pages(connection: &mut Connection, cookie: &str, calls: u64) -> Result<Vec<Page>> {
    connection
        .ask(&get("/v1/calls?code=CONFLICT&limit=5", &[]))
        .await?;
    let id = text_at(&connection.answer(), "/calls/0/request_id")?;
    let record = text_at(&connection.answer(), "/calls/0/evidence")?;
    connection
        .ask(&get("/approvals.json", &[("cookie", cookie)]))
        .await?;
    let question = text_at(&connection.answer(), "/approvals/0/id")?;
    let session = (calls - 1) / SESSION_CALLS;
    let mut all: Vec<Page> = PAGES.into_iter().map(Page::shown).collect();
    for path in [
        format!("/calls/{id}"),
        format!("/cases/{id}"),
        format!("/sessions/s_{session}"),
        format!("/calls?session=s_{session}&user=u_{}", session % USERS),
        format!("/approvals/{question}"),
        format!("/policy/explain?record={record}"),
    ] {
        all.push(Page::shown(path));
    }
    // The page that is meant is shown at its own place.
    let known = [id.as_str(), record.as_str(), "u_7", "the+same+one"];
    let sessions = format!("s_{session}");
    for known in known.into_iter().chain([sessions.as_str()]) {
        all.push(Page {
            status: "303",
            ..Page::shown(format!("/search?q={known}"))
        });
    }
    all.extend(LISTS.map(|list| Page {
        is_html: false,
        ..Page::shown(format!("/v1/calls?{list}"))
    }));
    Ok(all)
}

/// Asks for a page some times, and tells what it cost; true if it meets its targets.
async fn shown(
    server: &Server,
    connection: &mut Connection,
    page: &Page,
    cookie: &str,
) -> Result<bool> {
    let request = get(&page.path, &[("accept", "text/html"), ("cookie", cookie)]);
    let asked = |error: Error| Error::other(format!("{}: {error}", page.path));
    let answered = connection.expect(&request, page.status).await;
    answered.map_err(asked)?;
    let bytes = connection.answer().len();
    let before = server.cpu()?;
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let begun = Instant::now();
        connection.expect(&request, page.status).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let cpu = (server.cpu()?.saturating_sub(before)).as_secs_f64() * 1e3;
    let cpu = cpu / f64::from(u32::try_from(TIMES).unwrap_or(1));
    let [median, low, high] = spread(times);
    let is_met = median < TIME_MAX && (!page.is_html || bytes <= BYTES_MAX);
    println(&format!(
        "{}\t{bytes}\t{median:.1} ({low:.1}–{high:.1})\t{cpu:.1}\t{}",
        page.path,
        verdict(is_met)
    ));
    Ok(is_met)
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
        connection.ask(&good(number)).await?;
        let begun = Instant::now();
        let id = text_at(&connection.answer(), "/request_id")?;
        events.hear("event: calls").await?;
        connection.ask(&rows).await?;
        if !connection.answer().contains(&id) {
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
