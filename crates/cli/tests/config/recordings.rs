//! `countersign record` and `--from-recording`: calls of a real run, answered again without anything behind them.

use std::io::Write as _;
use std::process::Stdio;

use countersign::contract::recording::Recording;
use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};

use crate::service::Service;
use crate::world::{Server, World};

const NAME: &str = "Mei Lin";
const MAIL: &str = "mei.lin@example.com";

/// A service behind a secret, with a personal argument.
fn config(url: &str, description: &str) -> String {
    format!(
        r#"
[server]
listen = "127.0.0.1:0"
[store]
data = "data"
[shop]
enabled = true
[[upstream]]
name = "app"
base_url = "{url}"
allow_private = ["loopback"]
auth.bearer.token = "env:OUR_TOKEN"
[[tool]]
name = "app.greet"
upstream = "app"
description = "{description}"
effect = "external"
recovery = "retry"
[tool.input.properties.to]
type = "string"
x-sensitivity = "personal"
[tool.input.properties.text]
type = "string"
[tool.input]
type = "object"
required = ["to"]
"#
    )
}

/// The calls of a story, and what each was answered. The arguments are as loose as models write them.
fn story(server: &Server) -> Vec<Value> {
    let calls = [
        (
            "app.greet",
            json!(format!("{{to: '{NAME}', text: 'write to {MAIL}'}}")),
        ),
        ("notes.add", json!({"text": "tea"})),
        ("notes.list", json!({})),
        ("notes.add", json!({"text": "milk"})),
        ("notes.list", json!({})),
        ("notes.clear", json!({})),
        ("sample.vat", json!("{net_cents: '1000', country: 'DE',}")),
    ];
    let answer = |(tool, arguments): (&str, Value)| {
        let body = json!({"arguments": arguments, "session_id": "s_1"}).to_string();
        let (_, reply) = server.ask("POST", &format!("/v1/tools/{tool}"), &body);
        let mut reply = reply;
        // The ids and the evidence are of the run; so is when the question of a person ends.
        for own in ["request_id", "evidence"] {
            reply.as_object_mut().and_then(|reply| reply.remove(own));
        }
        // Nobody can answer a question that was only recorded.
        let details = reply.pointer_mut("/error/details");
        let details = details.and_then(Value::as_object_mut);
        details.and_then(|details| details.remove("approval_url"));
        reply
    };
    calls.into_iter().map(answer).collect()
}

/// A run on a real service, recorded beside the server: the world of it, the file, and what was answered.
fn recorded() -> (World, String, Vec<Value>, Service) {
    let service = Service::start();
    let world = World::new(&config(&service.url, "Greets.")).set("OUR_TOKEN", "t0ken");
    let server = world.serve(&[]);
    let answers = story(&server);
    server.ask("POST", "/v1/tools/notes.list", r#"{"session_id": "s_2"}"#);
    let said = world.run(&["record", "--session", "s_1", "-o", "calls.jsonl"]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let said = String::from_utf8(said.stderr).expect("it is text");
    assert!(said.contains("recorded: 7 calls of 5 tools"), "{said}");
    assert!(said.contains("access recorded: ev_"), "{said}");
    let told = "masked argument of app.greet: /text /to: only the recorded value matches";
    assert!(said.contains(told), "{said}");
    let told = "digests of the masked arguments: calls.jsonl.digests;";
    assert!(said.contains(told), "{said}");
    assert_eq!(server.stop(), Some(0));
    let text = std::fs::read_to_string(world.path("calls.jsonl")).expect("it was written");
    (world, text, answers, service)
}

/// A machine that has the file and the configuration, and neither the secret nor the service.
fn elsewhere(text: &str, description: &str) -> World {
    let world = World::new(&config("http://127.0.0.1:9", description));
    world.write("calls.jsonl", text);
    world
}

/// The same with the digests of the masked arguments, which stand beside the file that was recorded.
fn with_digests(recorded: &World, world: World) -> World {
    let digests = std::fs::read_to_string(recorded.path(DIGESTS)).expect("they were written");
    world.write(DIGESTS, &digests);
    world
}

const DIGESTS: &str = "calls.jsonl.digests";

const FROM: [&str; 2] = ["--from-recording", "calls.jsonl"];

fn counts(server: &Server) -> Value {
    let (_, status) = server.ask("GET", "/v1/status", "");
    let mut counts = status["recording"].clone();
    let digest = counts.as_object_mut().and_then(|all| all.remove("digest"));
    assert!(digest.is_some_and(|it| it.as_str().is_some_and(|it| it.starts_with("sha256:"))));
    counts
}

/// A21, A22: nothing personal is in the file, and that calls were opened for it is in the log.
#[test]
fn a_recording_is_masked_and_its_access_recorded() {
    let (world, text, _, _service) = recorded();
    for personal in [NAME, MAIL, "mei.lin"] {
        assert!(!text.contains(personal), "{personal} in {text}");
    }
    let recording = Recording::parse(&text).expect("it is one");
    assert!(recording.header.masked);
    let first = recording.calls.first().expect("there are seven");
    let arguments = r#"{"text":"write to [email:1]","to":"[personal:1]"}"#;
    assert_eq!(first.arguments.text(), arguments);
    let shown = world.json(&["evidence", "list", "--kind", "access"]);
    let access = shown[0]["evidence"].as_str().expect("it has a name");
    let access = world.json(&["evidence", "show", access]);
    assert_eq!(access["record"]["act"]["event"], "record", "{access}");
    let named = access["record"]["act"]["records"].as_array().map(Vec::len);
    // The one of the other conversation was opened, too: only its content says that it is.
    assert_eq!(named, Some(8));
    let verified = world.run(&["verify", "--all"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    let clear = [
        "record",
        "--clear",
        "--reason",
        "a test",
        "--tool",
        "app.greet",
    ];
    let clear = world.run(&clear);
    assert_eq!(clear.status.code(), Some(0), "{clear:?}");
    assert!(String::from_utf8_lossy(&clear.stdout).contains(NAME));
    let none = world.refusal(&["record", "--session", "s_9"], 1);
    assert!(none.contains("no calls match"), "{none}");
}

/// The same calls get the same answers, in the same order, on a machine that has nothing else; the server says how far the
/// recording was used, and nothing of the run is kept.
#[test]
fn a_recording_answers_in_the_place_of_everything_behind_it() {
    let (made, text, answers, service) = recorded();
    let heard = service.heard().len();
    let world = with_digests(&made, elsewhere(&text, "Greets."));
    let server = world.serve(&FROM);
    assert_eq!(story(&server), answers);
    let all = json!({"calls": 7, "answered": 7, "unused": 0, "unmatched": 0});
    assert_eq!(counts(&server), all);
    let (_, reply) = server.ask(
        "POST",
        "/v1/tools/sample.vat",
        r#"{"arguments": "{net_cents: 1000, country: 'DE'}"}"#,
    );
    assert_eq!(
        reply["evidence"]["sources"][0]["type"], "recording",
        "{reply}"
    );
    assert_eq!(server.stop(), Some(0));
    assert_eq!(service.heard().len(), heard);
    assert!(!world.path("data").exists(), "nothing was made");
    let log = std::fs::read_to_string(world.path("server.log")).expect("it is there");
    assert!(
        log.contains("recording: 7 calls, 8 answered, 0 unused, 0 unmatched"),
        "{log}"
    );
}

/// A call that is not recorded fails with every argument that differs, is counted, and fails the run. This is so for a masked argument
/// as well.
#[test]
fn a_call_that_is_not_recorded_fails_loudly() {
    let (made, text, _, _service) = recorded();
    let world = with_digests(&made, elsewhere(&text, "Greets."));
    let server = world.serve(&FROM);
    let body = r#"{"arguments": {"net_cents": 1001, "country": "DE"}}"#;
    let (status, reply) = server.ask("POST", "/v1/tools/sample.vat", body);
    assert_eq!(
        (status, &reply["error"]["code"]),
        (502, &json!("UPSTREAM_ERROR"))
    );
    let told = &reply["error"]["details"]["recording"];
    let differences = json!([{"path": "/net_cents", "recorded": 1000, "sent": 1001}]);
    assert_eq!(
        (&told["nearest"], &told["differences"]),
        (&json!(7), &differences)
    );
    let (_, reply) = server.ask(
        "POST",
        "/v1/tools/memory.search",
        r#"{"arguments": {"query": "x"}}"#,
    );
    assert_eq!(
        reply["error"]["details"]["recording"],
        json!({"tool": "memory.search"})
    );
    let body = r#"{"arguments": {"text": "bread"}}"#;
    let (_, reply) = server.ask("POST", "/v1/tools/notes.add", body);
    let told = &reply["error"]["details"]["recording"];
    let differences = json!([{"path": "/text", "recorded": "[personal:2]", "sent": "bread"}]);
    assert_eq!(
        (&told["nearest"], &told["differences"]),
        (&json!(2), &differences),
        "{reply}"
    );
    let used = json!({"calls": 7, "answered": 0, "unused": 7, "unmatched": 3});
    assert_eq!(counts(&server), used);
    assert_eq!(server.stop(), Some(1));
    let log = std::fs::read_to_string(world.path("server.log")).expect("it is there");
    assert!(log.contains("unused: call 1 of app.greet"), "{log}");
    assert!(log.contains("7 unused, 3 unmatched"), "{log}");
}

/// A21: digests of masked arguments are in a file of their own, for its owner only, and show no value. A recording without them, and one
/// that is served with `--any-masked`, answer to any value of the kind, and say so at the start and in each such answer.
#[test]
fn without_digests_a_masked_argument_matches_by_kind_with_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;

    let (made, text, _, _service) = recorded();
    let digests = std::fs::read_to_string(made.path(DIGESTS)).expect("they were written");
    for value in [NAME, MAIL, "milk"] {
        assert!(!digests.contains(value), "{value} in {digests}");
    }
    let file = std::fs::metadata(made.path(DIGESTS)).expect("it is there");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);

    let alone = elsewhere(&text, "Greets.");
    let beside = with_digests(&made, elsewhere(&text, "Greets."));
    let warning =
        "masked arguments match any value of their kind: calls.jsonl.digests is not there";
    for (world, words, is_said) in [
        (&alone, &FROM[..], true),
        (&beside, &[&FROM[..], &["--any-masked"]].concat(), false),
    ] {
        let server = world.serve(words);
        let body = r#"{"arguments": {"text": "bread"}}"#;
        let (status, reply) = server.ask("POST", "/v1/tools/notes.add", body);
        assert_eq!((status, &reply["data"]["text"]), (200, &json!("bread")));
        let remark = json!([{
            "code": "MATCHED_BY_KIND",
            "message": "the recording has /text masked: any value of the same kind gets this answer",
        }]);
        assert_eq!(reply["warnings"], remark, "{reply}");
        let (_, reply) = server.ask("POST", "/v1/tools/notes.list", "{}");
        assert_eq!(reply["ok"], true, "{reply}");
        assert!(!reply.to_string().contains("MATCHED"), "{reply}");
        assert_eq!(server.stop(), Some(0));
        let log = std::fs::read_to_string(world.path("server.log")).expect("it is there");
        assert_eq!(log.contains(warning), is_said, "{log}");
    }

    // Those of another recording are not taken, and an earlier file does not stay beside one that has none.
    beside.write(
        "calls.jsonl",
        &text.replace("\"made_at\":\"2", "\"made_at\":\"3"),
    );
    let said = beside.refusal(&["serve", "--from-recording", "calls.jsonl"], 2);
    assert!(
        said.contains("calls.jsonl.digests: it belongs to another recording"),
        "{said}"
    );
    let record = ["record", "--session", "s_1", "-o", "calls.jsonl"];
    let said = made.run(&[&record[..], &["--any-masked"]].concat());
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let told = "masked argument of app.greet: /text /to: any value of its kind matches";
    assert!(said.contains(told), "{said}");
    assert!(!made.path(DIGESTS).exists());
}

/// A file that is none, and a tool that is declared otherwise, are refused before anything listens.
#[test]
fn what_does_not_fit_is_refused_at_start() {
    let (_, text, _, _service) = recorded();
    let serve = ["serve", "--from-recording", "calls.jsonl"];
    let cut: Vec<&str> = text.lines().take(3).collect();
    let cut = cut.join("\n");
    let said = elsewhere(&cut, "Greets.").refusal(&serve, 2);
    assert!(said.contains("calls.jsonl: line 4, column 1"), "{said}");
    let broken = text.replacen("{\"tool\"", "{\"toll\"", 1);
    let said = elsewhere(&broken, "Greets.").refusal(&serve, 2);
    assert!(
        said.contains("calls.jsonl: line 2, column 7: unknown variant"),
        "{said}"
    );
    let changed = elsewhere(&text, "Greets politely.");
    let said = changed.refusal(&serve, 2);
    assert!(said.contains("1 tool is declared otherwise"), "{said}");
    assert!(
        said.contains("app.greet: description, version changed: recorded sha256:"),
        "{said}"
    );
    let server = changed.serve(&["--from-recording", "calls.jsonl", "--allow-changed"]);
    assert_eq!(story(&server).len(), 7);
    assert_eq!(server.stop(), Some(0));
    let log = std::fs::read_to_string(changed.path("server.log")).expect("it is there");
    assert!(
        log.contains("app.greet: description, version changed"),
        "{log}"
    );
}

/// An MCP client that starts the program gets the same answers; a call that is not recorded is in the exit code.
#[test]
fn an_mcp_client_is_answered_from_a_recording() {
    let (_, text, _, _service) = recorded();
    let world = elsewhere(&text, "Greets.");
    let ask = |arguments: &Value| {
        let _watchdog = Watchdog::start();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"_meta": meta, "name": "sample_vat", "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let mut child = world
            .command(&["mcp", "--from-recording", "calls.jsonl"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut input = child.stdin.take().expect("it is piped");
        writeln!(input, "{call}").expect("it reads");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("one line");
        let said = String::from_utf8(output.stderr).expect("it is text");
        (
            output.status.code(),
            answer["result"]["isError"].clone(),
            said,
        )
    };
    let (code, is_error, said) = ask(&json!({"net_cents": "1000", "country": "DE"}));
    assert_eq!((code, is_error), (Some(0), json!(false)), "{said}");
    assert!(said.contains("1 answered, 6 unused, 0 unmatched"), "{said}");
    let (code, is_error, said) = ask(&json!({"net_cents": 1, "country": "DE"}));
    assert_eq!((code, is_error), (Some(1), json!(true)), "{said}");
    assert!(!world.path("data").exists(), "nothing was made");
}
