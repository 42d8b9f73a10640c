//! `docs/commerce.md` is tested: its commands are run in their order, in one shell, against a server of their own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::Value;

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(data: &Path) -> (Server, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["serve", "--json", "--listen", "127.0.0.1:0"])
        .env("COUNTERSIGN_DATA", data)
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let url = said.get("url").and_then(Value::as_str).unwrap().to_owned();
    (Server(child), url)
}

/// The commands of a page, but for the one that starts the server.
fn commands(page: &str) -> String {
    let mut script = String::new();
    let mut is_command = false;
    for line in page.lines() {
        match line {
            "```sh" => is_command = true,
            "```" => is_command = false,
            "countersign serve" => {}
            line if is_command => script += &(line.to_owned() + "\n"),
            _ => {}
        }
    }
    script
}

/// A13, A18: from a search to a payment that waits for the user, by the commands of the page alone.
#[test]
fn the_page_leads_to_a_draft_order() {
    let _watchdog = Watchdog::start();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commerce.md");
    let page = std::fs::read_to_string(page).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (server, url) = serve(&data);
    let script = commands(&page).replace("http://127.0.0.1:8787", &url);
    let bin = Path::new(env!("CARGO_BIN_EXE_countersign"));
    let bin = bin.parent().unwrap().display();
    let path = std::env::var("PATH").unwrap();
    let shell = |script: &str| {
        Command::new("sh")
            .args(["-eu", "-c", script])
            .current_dir(folder.path())
            .env("PATH", format!("{bin}:{path}"))
            .env("COUNTERSIGN_DATA", &data)
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .output()
            .unwrap()
    };
    // Whoever walks the page a second time gets another order.
    let orders = [(); 2].map(|()| check_replies(&shell(&script)));
    assert_ne!(orders[0], orders[1]);
    let rules = std::fs::read_to_string(folder.path().join("new-rules/tax/2027-01-01.toml"));
    assert!(rules.unwrap().contains("[countries.DE.tax]"));

    // With an empty variable nothing is approved: the shell stops, and says what is missing.
    let lost = script.replace("order=$(", "order=$(true || ");
    assert_ne!(lost, script);
    let stopped = shell(&lost);
    assert!(!stopped.status.success(), "{stopped:?}");
    let said = String::from_utf8(stopped.stderr).unwrap();
    assert!(said.contains("no order"), "{said}");
    let listed = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["approvals", "list", "--json"])
        .env("COUNTERSIGN_DATA", &data)
        .env_remove("COUNTERSIGN_STORE")
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(
        listed,
        Value::Array(Vec::new()),
        "nothing waits or was asked for"
    );
    let shown = shell(&format!("curl -sS {url}/v1/evidence/{}", orders[0]));
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let tool = shown.pointer("/record/tool/name");
    assert_eq!(
        tool,
        Some(&"checkout.create_draft_order".into()),
        "{shown:#}"
    );
    drop(server);
    check_order(&orders[0], &shell);
}

/// N2: the id of an order leads to its record, and a hold of it covers everything that it rests on. What does not exist is
/// refused.
#[track_caller]
fn check_order(order: &str, shell: &impl Fn(&str) -> Output) {
    let run = |code: i32, command: &str| -> Value {
        let output = shell(&format!("countersign --json evidence {command}"));
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    };
    let shown = run(0, &format!("show {order}"));
    let tool = shown.pointer("/record/tool/name");
    assert_eq!(
        tool,
        Some(&"checkout.create_draft_order".into()),
        "{shown:#}"
    );
    let missing = "order_0000000000000000";
    for command in [
        "show",
        "open --reason x",
        "export",
        "hold --reason x",
        "release --reason x",
    ] {
        run(1, &format!("{command} {missing}"));
    }
    run(1, &format!("erase {missing} --reason x"));
    assert_eq!(run(0, "holds"), Value::Array(Vec::new()));
    let held = run(0, &format!("hold {order} --reason 'dispute 7'"));
    let records = held.get("records").and_then(Value::as_array).unwrap();
    assert!(records.len() >= 6, "{held:#}");
    assert_eq!(run(0, "holds").as_array().unwrap().len(), records.len());
    run(1, "erase u_local --reason 'asked for it'");
    run(0, &format!("release {order} --reason 'dispute 7 is over'"));
    assert_eq!(run(0, "holds"), Value::Array(Vec::new()));
    run(1, &format!("release {order} --reason 'dispute 7 is over'"));
    let opened = run(0, &format!("open {order} --reason 'dispute 7'"));
    let named = opened.pointer("/data/draft_order_id");
    assert_eq!(named, Some(&order.into()), "{opened:#}");
}

/// Every reply is a success, and the last one waits for the user to pay for an order, which is named.
#[track_caller]
fn check_replies(run: &Output) -> String {
    assert!(run.status.success(), "{run:?}");
    let output = std::str::from_utf8(&run.stdout).unwrap();
    let replies = serde_json::Deserializer::from_str(output).into_iter::<Value>();
    let replies: Vec<Value> = replies.map(Result::unwrap).collect();
    for reply in &replies {
        assert_eq!(reply.get("ok"), Some(&true.into()), "{reply:#}");
    }
    let last = replies.last().unwrap();
    let action = last.pointer("/data/requires_user_action");
    assert_eq!(action, Some(&true.into()), "{last:#}");
    let order = last.pointer("/data/draft_order_id").and_then(Value::as_str);
    order.unwrap().to_owned()
}
