//! A policy that is tried before it is in force, by the real command.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::process::{Command, Output};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};
use tempfile::TempDir;

const POLICY: &str = r#"revision = "now"
[defaults]
unlisted = "allow"

[[rules]]
name = "no-spam"
match = "notes.add"
when = "args.text.contains('spam')"
then = "deny"

[[rules]]
name = "long"
match = "notes.add"
when = "size(args.text) > 10"
then = "confirm"
mode = "observe"
"#;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        place.write(
            "countersign.toml",
            "policy = \"policy.toml\"\n[shop]\nenabled = true\n",
        );
        place.write("policy.toml", POLICY);
        place
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn run(&self, args: &[&str]) -> Output {
        let _watchdog = Watchdog::start();
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(args)
            .current_dir(self.folder.path())
            .env("COUNTERSIGN_DATA", self.folder.path().join("data"))
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .output()
            .unwrap()
    }

    #[track_caller]
    fn ask(&self, code: i32, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn add(&self, code: i32, text: &str) -> Value {
        let args = json!({ "text": text }).to_string();
        self.ask(
            code,
            &["call", "notes.add", "--user", "ann", "--args", &args],
        )
    }
}

/// A3: a rule decides by the arguments, an observed one is only reported, and `explain` names the line of a recorded call.
#[test]
fn rules_are_enforced_observed_reported_and_explained() {
    let place = Place::new();
    let denied = place.add(1, "spam and spam");
    assert_eq!(denied["error"]["code"], "FORBIDDEN", "{denied}");
    assert_eq!(place.add(0, "buy a lot of milk")["ok"], true);
    assert_eq!(place.add(0, "buy milk")["ok"], true);

    let report = place.ask(0, &["policy", "report"]);
    let row = |report: &Value, at: usize| {
        let row = report.get(at).unwrap();
        json!([
            row["rule"],
            row["then"],
            row["enforced"],
            row["calls"],
            row["tools"]
        ])
    };
    assert_eq!(
        row(&report, 0),
        json!(["long", "confirm", false, 2, ["notes.add"]])
    );
    assert_eq!(report.as_array().unwrap().len(), 1);
    let report = place.ask(0, &["policy", "report", "--all"]);
    assert_eq!(
        row(&report, 1),
        json!(["no-spam", "deny", true, 1, ["notes.add"]])
    );

    let evidence = denied["evidence"]["snapshot_id"].as_str().unwrap();
    let told = place.ask(0, &["policy", "explain", evidence]);
    assert_eq!(told["decision"], "deny");
    assert_eq!(
        told["because"][0],
        json!({
            "line": 5,
            "entry": "[[rules]] no-spam",
            "says": "it held: the call is refused",
            "ruling": "deny",
        })
    );
    let asked = ["policy", "explain", "--user", "ann", "--tool", "notes.add"];
    let told = place.ask(0, &[&asked[..], &["--args", "{text: 'spam',}"]].concat());
    assert_eq!(
        (&told["decision"], &told["because"][0]["line"]),
        (&json!("deny"), &json!(5))
    );
    let told = place.ask(0, &asked);
    assert_eq!(
        told["decision"], "allow",
        "rules over the arguments are left open"
    );
}

/// A replay is compared with what was recorded, not with what the policy in force would decide now.
#[test]
fn a_replay_is_compared_with_the_record() {
    let place = Place::new();
    for (code, text) in [(1, "spam"), (0, "buy milk")] {
        place.add(code, text);
    }
    let before = POLICY;
    place.write("before.toml", before);
    place.write("policy.toml", &before.replace("'spam'", "'eggs'"));
    let same = place.ask(0, &["policy", "replay", "--policy", "before.toml"]);
    assert_eq!(
        json!([same["decided"], same["changed"]]),
        json!([2, 0]),
        "{same}"
    );
    let now = place.ask(1, &["policy", "replay", "--policy", "policy.toml"]);
    let change = &now["changes"][0];
    assert_eq!(
        json!([now["changed"], change["recorded"], change["draft"]]),
        json!([1, "deny", "allow"]),
        "{now}"
    );
}

/// Law: a replay under the policy in force changes nothing; a draft's changes are listed with the line that decides.
#[test]
fn a_replay_lists_what_a_draft_would_change() {
    let place = Place::new();
    for (code, text) in [(1, "spam"), (0, "buy a lot of milk"), (0, "buy milk")] {
        place.add(code, text);
    }
    let same = place.ask(0, &["policy", "replay", "--policy", "policy.toml"]);
    assert_eq!(
        json!([same["decided"], same["changed"]]),
        json!([3, 0]),
        "{same}"
    );
    place.write("draft.toml", &POLICY.replace("mode = \"observe\"", ""));
    let draft = place.ask(1, &["policy", "replay", "--policy", "draft.toml"]);
    assert_eq!(
        json!([draft["decided"], draft["changed"]]),
        json!([3, 1]),
        "{draft}"
    );
    let change = &draft["changes"][0];
    assert_eq!(
        json!([change["recorded"], change["draft"]]),
        json!(["allow", "confirm"])
    );
    let because = change["because"].as_str().unwrap();
    assert!(
        because.starts_with("draft.toml:11: [[rules]] long: "),
        "{because}"
    );
}

/// A policy is tested in CI: cases, exit code and `JUnit`.
#[test]
fn cases_are_tested() {
    let place = Place::new();
    let cases = r#"
        [[cases]]
        name = "spam"
        user = "ann"
        tool = "notes.add"
        args = { text = "spam" }
        expect = "deny"
        by = "[[rules]] no-spam"
        [[cases]]
        name = "milk"
        as = "agent:a"
        user = "ann"
        tool = "notes.add"
        args = { text = "milk" }
        expect = "EXPECTED"
    "#;
    let good = place.write("good.toml", &cases.replace("EXPECTED", "allow"));
    assert_eq!(place.run(&["policy", "test", &good]).status.code(), Some(0));
    let bad = place.write("bad.toml", &cases.replace("EXPECTED", "deny"));
    let tested = place.ask(1, &["policy", "test", &bad, "--junit", "report.xml"]);
    assert_eq!(tested[0]["passed"], true);
    assert_eq!(
        tested[1]["failure"],
        "expected deny, and it is allow: [[rules]] no-spam: its condition does not hold"
            .replace("[[rules]]", "policy.toml:5: [[rules]]")
    );
    let xml = std::fs::read_to_string(place.folder.path().join("report.xml")).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\""), "{xml}");
    let misspelt = place.write("misspelt.toml", &cases.replace("expect =", "expects ="));
    assert_eq!(
        place.run(&["policy", "test", &misspelt]).status.code(),
        Some(2)
    );
}

/// A condition that does not fit its tool is a mistake of the file, with line and column.
#[test]
fn a_condition_that_does_not_fit_is_not_accepted() {
    let place = Place::new();
    place.write(
        "policy.toml",
        &POLICY.replace("args.text.contains", "args.txt.contains"),
    );
    let output = place.run(&["policy", "check"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains(
            "policy.toml: line 8, column 9: the rule \"no-spam\": notes.add has no args.txt"
        ),
        "{said}"
    );
}

/// A condition that does not fit the tool is an error with its line in every command that runs calls, not a rule that never
/// matches.
#[test]
fn a_condition_that_does_not_fit_stops_a_call() {
    let place = Place::new();
    let wrong = POLICY.replace("args.text.contains('spam')", "args.txt.contains('spam')");
    place.write("policy.toml", &wrong);
    let args = [
        "call",
        "notes.add",
        "--user",
        "ann",
        "--args",
        "{text: 'x'}",
    ];
    for words in [&args[..], &["mcp"][..]] {
        let output = place.run(words);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(
            told.contains("policy.toml: line 8, column 9") && told.contains("txt"),
            "{told}"
        );
    }
}
