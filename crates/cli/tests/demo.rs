//! `countersign demo` as it is run, and its claims, checked from outside: the files that it leaves, the store, another program that knows
//! nothing of ours but the format.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use countersign_evidence::bundle::Bundle;
use countersign_testkit::patience::Watchdog;
use serde_json::Value;

/// The steps in their order.
const STEPS: [&str; 15] = [
    "bind", "ship", "tax", "comply", "cart", "total", "draft", "once", "dry_run", "lock",
    "consent", "crash", "proof", "replay", "erase",
];

fn run(args: &[&str], data: &Path) -> Output {
    let _watchdog = Watchdog::start();
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(args)
        // The demo has nothing to do with what the environment names.
        .env("COUNTERSIGN_DATA", data)
        .env("COUNTERSIGN_OPERATOR", "tester")
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY")
        .output()
        .unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[track_caller]
fn step<'a>(lines: &'a [Value], name: &str) -> &'a Value {
    lines.iter().find(|line| line["name"] == name).unwrap()
}

/// A4, A5, A15, A16, A18, A21: every step claims something, all of it holds, and what can be looked at from outside
/// is as it says.
#[test]
fn every_claim_holds_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (folder.path().join("demo"), folder.path().join("mine"));
    let path = data.to_str().unwrap();
    let output = run(&["demo", "--json", "--data", path], &elsewhere);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!elsewhere.exists(), "the user's own folder is not touched");
    let lines = lines(&output);
    let names: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["name"].as_str())
        .collect();
    assert_eq!(names, STEPS);
    for line in &lines[..STEPS.len()] {
        let checks = line["checks"].as_array().unwrap();
        assert!(!checks.is_empty(), "{line}");
        assert!(checks.iter().all(|check| check["holds"] == true), "{line}");
    }
    let summary = &lines[STEPS.len()]["summary"];
    assert_eq!(summary["failed"], serde_json::json!([]));
    let counted = lines.iter().filter_map(|line| line["checks"].as_array());
    let counted: usize = counted.map(Vec::len).sum();
    assert_eq!(summary["checks"], counted);

    check_calls(&lines);
    check_order(&lines);
    check_consent(step(&lines, "consent"));
    check_crash(step(&lines, "crash"));
    check_proof(&step(&lines, "proof")["facts"], &data, &elsewhere);

    let verified = run(&["verify", "--all", "--json", "--data", path], &elsewhere);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert!(report["payloads_gone"].as_u64() > Some(0), "{report}");

    // A second run does not go where something is.
    let again = run(&["demo", "--json", "--data", path], &elsewhere);
    assert_eq!(again.status.code(), Some(2));
}

/// Checks the replies themselves, not only the demo's claims about them.
fn check_calls(lines: &[Value]) {
    let bind = &step(lines, "bind")["calls"];
    let sent = bind[0]["arguments"].as_str().unwrap();
    assert!(
        serde_json::from_str::<Value>(sent).is_err(),
        "it is no JSON"
    );
    let line = &bind[0]["reply"]["data"]["lines"][0];
    assert_eq!(line["quantity"], 3);
    let total = line["unit_price"]["amount"].as_i64().unwrap() * 3;
    assert_eq!(line["line_total"]["amount"], total);
    let tax = &step(lines, "tax")["calls"][0]["reply"]["data"];
    let amount = |name: &str| tax[name]["amount"].as_i64().unwrap();
    assert_eq!(
        amount("duty") + amount("tax") + amount("fees"),
        amount("total")
    );
    let dry = &step(lines, "dry_run")["calls"];
    assert_eq!(dry[0]["reply"]["data"]["lines"][0]["quantity"], 7);
    assert_eq!(dry[1]["reply"]["data"]["lines"][0]["quantity"], 3);
}

/// A18: one total everywhere, one order for its key, and none for another user.
fn check_order(lines: &[Value]) {
    let reply = |name: &str, at: usize| &step(lines, name)["calls"][at]["reply"];
    let total = &reply("total", 1)["data"]["breakdown"]["total"];
    let draft = reply("draft", 1);
    assert_eq!(draft["data"]["pricing_breakdown"]["total"], *total);
    let parts = draft["data"]["pricing_breakdown"].as_object().unwrap();
    let amount = |name: &str| parts[name]["amount"].as_i64().unwrap();
    let sum: i64 = ["items", "shipping", "duty", "tax", "fees"]
        .map(amount)
        .iter()
        .sum();
    assert_eq!(amount("total") + amount("due_on_delivery"), sum);
    let once = |at: usize| reply("once", at);
    assert_eq!(once(0)["data"], draft["data"]);
    assert_eq!(once(0)["replayed"], true);
    assert_eq!(once(1)["error"]["details"]["reason"], "key_reused");
    let users = step(lines, "once")["calls"].as_array().unwrap().iter();
    let users: Vec<&str> = users.map(|call| call["user"].as_str().unwrap()).collect();
    assert_eq!(users, ["u_anna", "u_anna", "u_ben"]);
    assert_eq!(once(2)["error"]["code"], "NOT_FOUND");
    let order = draft["data"]["draft_order_id"].as_str().unwrap();
    assert!(!once(2).to_string().contains(order));
    let available = &reply("lock", 1)["data"]["items"][0];
    assert_eq!(available["held"], 3);
}

/// A13: asked before, and afterwards still the user's to pay.
fn check_consent(consent: &Value) {
    let reply = |at: usize| &consent["calls"][at]["reply"];
    assert_eq!(reply(0)["error"]["code"], "NEEDS_USER_CONFIRMATION");
    assert_eq!(consent["calls"][0]["key"], consent["calls"][1]["key"]);
    assert_eq!(reply(1)["data"]["requires_user_action"], true);
}

fn check_crash(crash: &Value) {
    let facts = &crash["facts"];
    assert_eq!(facts["signal"], 9);
    assert!(facts["in_flight"].as_u64() > Some(0), "{facts}");
    assert_eq!(facts["quantity"], facts["begun"]);
    let cart = &crash["calls"][0]["reply"]["data"]["lines"][0];
    assert_eq!(cart["quantity"], facts["begun"]);
}

/// The bundle holds for a stranger, and the one with another byte does not.
fn check_proof(facts: &Value, data: &Path, elsewhere: &Path) {
    let key = data.join("log.pub");
    let key = key.to_str().unwrap();
    let (bundle, tampered) = (&facts["bundle"], &facts["tampered"]);
    for (file, code) in [(bundle, 0), (tampered, 3)] {
        let file = file.as_str().unwrap();
        let verified = run(&["verify", file, "--key", key, "--json"], elsewhere);
        assert_eq!(verified.status.code(), Some(code), "{verified:?}");
    }
    // Without the command, too: by nothing but the format.
    let text = std::fs::read_to_string(bundle.as_str().unwrap()).unwrap();
    let trusted = facts["log_key"].as_str().unwrap().parse().unwrap();
    let report = Bundle::parse(&text).unwrap().verify(Some(&trusted), None);
    assert!(report.is_valid(), "{:?}", report.findings);
    assert_eq!(report.records.len(), 7);
    let read = |file: &Value| std::fs::read(file.as_str().unwrap()).unwrap();
    let (good, bad) = (read(bundle), read(tampered));
    let differ: Vec<usize> = (0..good.len()).filter(|at| good[*at] != bad[*at]).collect();
    assert_eq!(differ.len(), 1, "one byte");
    assert_eq!(facts["tampered_byte"], differ[0]);
}

/// For people: no colours without a terminal, a heading for each step, and a temporary folder that is removed.
#[test]
fn people_see_a_story() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["demo"], &folder.path().join("mine"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(!text.contains('✗'), "{text}");
    let story: Vec<String> = text.lines().filter_map(told).collect();
    assert_eq!(story.join("\n"), include_str!("demo.txt").trim_end());
    let folder = text
        .lines()
        .find_map(|line| line.strip_prefix("data folder: "));
    let folder = folder.unwrap().split(" (").next().unwrap();
    assert!(!Path::new(folder).exists(), "{folder}");
}

/// A check that fails is reported and named, and the exit code says so: with rules under which a check must fail.
#[test]
fn a_check_that_fails_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine");
    let shown = run(&["rules", "show", "compliance"], &mine);
    let text = String::from_utf8(shown.stdout).unwrap();
    let rules = folder.path().join("rules/compliance");
    std::fs::create_dir_all(&rules).unwrap();
    // Without its rule, what was forbidden is not.
    assert!(text.contains("jp.radio.giteki"), "{text}");
    std::fs::write(rules.join("9999-12-31.toml"), without_rule(&text)).unwrap();
    let path = folder.path().join("rules");
    let output = run(&["demo", "--rules", path.to_str().unwrap()], &mine);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("FAILED comply: elsewhere it may not"),
        "{told}"
    );
}

/// The text in which the rule is about another country.
fn without_rule(text: &str) -> String {
    let at = text.find("jp.radio.giteki").unwrap();
    let (before, after) = text.split_at(at);
    format!("{before}{}", after.replacen("\"JP\"", "\"KR\"", 1))
}

/// The demo works with another rate as well: the values that are compared come from the rules in force.
#[test]
fn another_rate_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine");
    let shown = run(&["rules", "show", "tax"], &mine);
    let text = String::from_utf8(shown.stdout).unwrap();
    let (before, after) = text.split_once("[countries.DE.tax]").unwrap();
    let after = after.replacen("standard = \"0.19\"", "standard = \"0.16\"", 1);
    let rules = folder.path().join("rules/tax");
    std::fs::create_dir_all(&rules).unwrap();
    let changed = format!("{before}[countries.DE.tax]{after}");
    assert_ne!(changed, text);
    std::fs::write(rules.join("9999-12-31.toml"), changed).unwrap();
    let path = folder.path().join("rules");
    let output = run(&["demo", "--rules", path.to_str().unwrap()], &mine);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("a rate of 0.21 instead of 0.16"), "{text}");
}

/// A demo that is stopped in the middle leaves no folder behind, which would have keys in it.
#[test]
fn nothing_is_left_behind_when_it_is_stopped() {
    let _watchdog = Watchdog::start();
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["demo", "--pace", "watch"])
            .env("TMPDIR", folder.path())
            .env_remove("COUNTERSIGN_STORE")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut lines = said.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.starts_with("[ 1/15]")));
        assert!(folder.path().read_dir().unwrap().next().is_some());
        let pid = child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(folder.path().read_dir().unwrap().next().is_none());
    }
}

#[test]
fn a_missing_folder_for_temporary_files_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .arg("demo")
        .env("TMPDIR", folder.path().join("missing"))
        .env_remove("COUNTERSIGN_STORE")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("hint: set TMPDIR"), "{said}");
}

/// Every line of the picture that the READMEs show is in the story.
#[test]
fn the_picture_shows_parts_of_the_story() {
    let story: Vec<&str> = include_str!("demo.txt").lines().collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["README.md", "README.zh-CN.md"] {
        let page = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(page.contains("(docs/screens/demo.svg)"), "{name}");
    }
    let picture = std::fs::read_to_string(folder.join("docs/screens/demo.svg")).unwrap();
    let texts = picture.lines().filter(|line| line.starts_with("<text "));
    let texts = texts.filter_map(|line| line.split_once('>')?.1.strip_suffix("</text>"));
    let unescaped = |text: &str| {
        let text = text.replace('\u{a0}', " ").replace("&lt;", "<");
        text.replace("&gt;", ">").replace("&amp;", "&")
    };
    let lines: Vec<String> = texts.map(unescaped).collect();
    let is_heading = |line: &str| line.starts_with('[') && line.contains("/15]");
    let shown = lines.iter().map(String::as_str);
    let shown = shown.filter(|line| is_heading(line) || line.starts_with("  ✓"));
    let shown: Vec<String> = shown.filter_map(told).collect();
    assert!(shown.len() >= 10, "{shown:?}");
    let mend = "run `cargo xtask screens demo`";
    for line in shown {
        assert!(story.contains(&line.as_str()), "{line}: {mend}");
    }
}

/// A heading or a claim, without what differs from run to run.
fn told(line: &str) -> Option<String> {
    const VARIES: [&str; 3] = ["nothing lost:", "nothing doubled:", " records"];
    let word = |word: &str| {
        let varies = ["cart_", "order_", "sha256:"];
        let is_varying = varies.iter().any(|start| word.starts_with(start));
        (if is_varying { "…" } else { word }).to_owned()
    };
    let is_told = line.starts_with('[') || line.starts_with("  ✓");
    let line = if VARIES.iter().any(|part| line.contains(part)) {
        line.replace(|letter: char| letter.is_ascii_digit(), "")
    } else {
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    };
    is_told.then_some(line)
}
