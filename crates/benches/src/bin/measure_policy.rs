//! The time of `countersign policy replay`. `countersign serve` is filled over HTTP with calls of a thousand users; then the command
//! decides them again under a draft, through the running server. `--calls N` says how many (100,000), `--rules N` how many conditional
//! rules the draft has (20), `--postgres` where.

use std::fmt::Write as _;
use std::io::{Error, Result};
use std::sync::Arc;
use std::time::Instant;

use countersign_benches::load::{MakeRequest, fill, post};
use countersign_benches::peers::Programs;
use countersign_benches::target::{machine_load, row};
use countersign_testkit::postgres::TempPostgres;
use serde_json::Value;

/// Connections that fill the store.
const CONNECTIONS: u64 = 32;

/// Target of a replay of 100,000 calls, in seconds.
const TIME_MAX: f64 = 10.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let number = |option: &str, usual: u64| {
        let after = arguments.iter().skip_while(|it| *it != option).nth(1);
        after.and_then(|it| it.parse().ok()).unwrap_or(usual)
    };
    let usual = if has("--quick") { 5_000 } else { 100_000 };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let database = has("--postgres").then(TempPostgres::start);
    let url = database.as_ref().map(TempPostgres::fresh_database);
    let measured = measure(
        number("--calls", usual),
        number("--rules", 20),
        url.as_deref(),
    );
    runtime.block_on(measured).expect("the server answers");
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn println(line: &str) {
    println!("{line}");
}

async fn measure(calls: u64, rules: u64, store: Option<&str>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let draft = folder.path().join("draft.toml");
    std::fs::write(&draft, policy(rules))?;
    let programs = Programs::found()?;
    let server = programs.countersign(&data, store).await?;
    let make: MakeRequest = Arc::new(request);
    fill(server.address, CONNECTIONS, 0..calls, &make).await?;
    let begun = Instant::now();
    let words = ["--json", "policy", "replay"];
    let mut command = programs.command(&words, &data, store);
    let output = command.arg("--policy").arg(&draft).output()?;
    let seconds = begun.elapsed().as_secs_f64();
    let told: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))?;
    let decided = told.get("decided").and_then(Value::as_u64);
    if decided != Some(calls) {
        return Err(Error::other(format!(
            "{decided:?} of {calls} calls were decided"
        )));
    }
    let bound = TIME_MAX * f64::from(u32::try_from(calls).unwrap_or(u32::MAX)) / 100_000.0;
    println(&row(
        &format!("replay of {calls} calls under {rules} rules"),
        &format!("{seconds:.1} s"),
        &format!("< {bound} s"),
        seconds < bound,
    ));
    println(&format!("load of the machine {}", machine_load()));
    Ok(())
}

/// A draft with conditions over the arguments, of which few hold.
fn policy(rules: u64) -> String {
    let mut text = "[defaults]\nunlisted = \"allow\"\n".to_owned();
    for number in 0..rules {
        let _ = write!(
            text,
            "[[rules]]\nname = \"r{number}\"\nmatch = \"notes.add\"\nwhen = \"args.text == 'note {number}' && size(args.text) < 100\"\nthen = \"confirm\"\n"
        );
    }
    text
}

fn request(number: u64) -> Vec<u8> {
    let user = number % 1_000;
    let body = format!(r#"{{"user_id": "u_{user}", "arguments": {{"text": "note {number}"}}}}"#);
    post("/v1/tools/notes.add", &[], &body)
}
