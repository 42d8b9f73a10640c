//! The server for tests: it answers, it recovers, and it goes with its process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use countersign_testkit::postgres::{Programs, TempPostgres, shared_postgres};

/// Runs a statement, and returns its output without headings.
fn ask(url: &str, statement: &str) -> String {
    let psql = Programs::find()
        .expect("the server is there, so is its client")
        .psql;
    let output = Command::new(psql)
        .args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement])
        .output()
        .expect("the client can be started");
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    texts.concat().trim().to_owned()
}

#[test]
fn each_test_has_a_database_of_its_own() {
    let shared = shared_postgres();
    let (one, other) = (shared.fresh_database(), shared.fresh_database());
    assert_ne!(one, other);
    assert_eq!(ask(&one, "CREATE TABLE t AS SELECT 1 AS a"), "");
    assert_eq!(ask(&one, "SELECT a FROM t"), "1");
    assert!(ask(&other, "SELECT a FROM t").contains("does not exist"));
    assert_eq!(ask(shared.url(), "SHOW fsync"), "on");
}

#[test]
fn a_server_keeps_what_it_committed_and_leaves_nothing_behind() {
    let server = TempPostgres::start();
    let database = server.fresh_database();
    assert_eq!(ask(&database, "CREATE TABLE t AS SELECT 1 AS a"), "");
    server.restart_immediate();
    assert_eq!(ask(&database, "SELECT a FROM t"), "1");
    server.stop();
    assert!(ask(&database, "SELECT a FROM t").contains("refused"));
    server.resume().unwrap();
    let folder = ask(&database, "SHOW data_directory");
    assert!(std::fs::exists(&folder).unwrap(), "{folder}");
    drop(server);
    assert!(!std::fs::exists(&folder).unwrap(), "{folder}");
    assert!(ask(&database, "SELECT 1").contains("refused"));
}

/// The test runs itself once more as a process that starts a server and is killed.
#[test]
fn a_server_ends_with_a_process_that_is_killed() {
    const VICTIM: &str = "COUNTERSIGN_TEST_VICTIM";
    if std::env::var_os(VICTIM).is_some() {
        let server = TempPostgres::start();
        println!("\nserver {}", server.url());
        // The other end is closed by the kill at the latest.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([
            "a_server_ends_with_a_process_that_is_killed",
            "--exact",
            "--nocapture",
        ])
        .env(VICTIM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("server ").map(str::to_owned))
        .expect("the victim names its server");
    let address = url
        .strip_prefix("postgres://postgres@")
        .and_then(|rest| rest.strip_suffix("/postgres"))
        .unwrap();
    assert_eq!(ask(&url, "SELECT 1"), "1");
    victim.kill().unwrap();
    victim.wait().unwrap();
    // Each turn lasts until the server has closed a connection on which nothing is said.
    let started = Instant::now();
    while let Ok(mut connection) = TcpStream::connect(address) {
        let outlived = started.elapsed() > Duration::from_secs(30);
        assert!(!outlived, "the server outlived its process");
        let patience = Some(Duration::from_secs(30));
        connection.set_read_timeout(patience).unwrap();
        let _ = connection.shutdown(Shutdown::Write);
        let _ = connection.read(&mut [0; 512]);
    }
}
