//! What people watch: the overview, upstreams, the repeats of a call, and the same call by other rules.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::between;
use super::browser::Browser;
use super::world::{Person, World};

/// A shop with an upstream that does not answer.
const GONE: &str = "[shop]\nenabled = true\n[[upstream]]\nname = 'gone'\nbase_url = 'http://127.0.0.1:9'\nallow_private = ['loopback']\n";

/// B17: what is wrong comes first; upstreams are shown as they were when they were asked last; the log is called verified only after a
/// verification, with its size.
#[test]
fn the_overview_begins_with_what_is_wrong() {
    let world = World::configured(GONE, &[]);
    world.busy();
    let mut person = world.operator();
    let (_, html) = person.get("/");
    assert!(html.contains("not asked yet"), "{html}");
    assert!(
        html.contains("Not verified since this server began"),
        "{html}"
    );
    assert!(!html.contains("Verified whole"), "{html}");

    assert_eq!(person.send("/upstreams/gone/test", &[]).0.status, 200);
    world.run(&["verify", "--all"]);
    let (_, html) = person.get("/");
    let needs = between(&html, "id=\"needs\"", "</section>");
    let place = |text: &str| {
        let found = needs.find(text);
        found.unwrap_or_else(|| panic!("no {text} in {needs}"))
    };
    let (away, waiting) = (place("gone does not answer."), place("/approvals"));
    assert!(away < waiting && waiting < place("id=\"log\""), "{needs}");
    assert!(needs.contains("Verified whole up to record "), "{needs}");
    let (_, json) = person.get("/overview.json");
    let overview: Value = serde_json::from_str(&json).unwrap();
    let verified = &overview["log"]["verified"];
    assert_eq!(verified["is_valid"], true, "{verified}");
    assert!(verified["size"].as_u64() > Some(0), "{verified}");
    let upstream = &overview["upstreams"][0];
    assert_eq!(
        (&upstream["name"], &upstream["health"]),
        (&json!("gone"), &json!("away"))
    );
    assert!(upstream["last_error"]["message"].is_string(), "{upstream}");
    let status = world.run(&["status"]);
    assert!(status.contains("gone (away)"), "{status}");

    // The times of the last hour are a chart of their own, with a step for this minute.
    let steps = between(&html, "id=\"times-chart\"", "</svg>");
    for line in ["class=\"p50\" d=\"M", "class=\"p99\" d=\"M"] {
        assert!(steps.contains(line), "{steps}");
    }
    let minutes = overview["figures"]["minutes"].as_array().unwrap();
    assert!(
        minutes
            .iter()
            .all(|one| one["p99_us"].as_u64() >= one["p50_us"].as_u64())
    );
    assert!(
        minutes.iter().any(|one| one["p50_us"].as_u64() > Some(0)),
        "{minutes:?}"
    );
}

/// B17: the overview lists what `GET /v1/attention` lists, with since when and what to do, the gravest first: a question is less grave than a
/// call in doubt.
#[test]
fn the_overview_lists_what_needs_a_person() {
    let furnished = super::furnished::Furnished::start();
    let listed = furnished.world.run(&["attention", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for item in listed["items"].as_array().unwrap() {
        let kind = item["kind"].as_str().unwrap().to_owned();
        *expected.entry(kind).or_default() += 1;
    }
    let (_, html) = furnished.world.operator().get("/");
    let needs = between(&html, "id=\"needs\"", "</section>");
    let mut shown: BTreeMap<String, u64> = BTreeMap::new();
    let mut tones = Vec::new();
    for alert in needs
        .split("<div class=\"alert ")
        .skip(1)
        .filter(|alert| alert.contains("data-kind"))
    {
        let kind = between(alert, "data-kind=\"", "\"");
        let count: u64 = between(alert, "data-count=\"", "\"").parse().unwrap();
        tones.push(alert.split('"').next().unwrap().to_owned());
        if kind == "call_in_doubt" || kind == "question" {
            assert!(alert.contains("<time "), "{alert}");
        }
        assert!(
            alert.contains("<code>countersign ") || kind == "upstream_away",
            "{alert}"
        );
        // An upstream that does not answer may be back by itself, so only the page has it.
        if kind != "upstream_away" {
            *shown.entry(kind).or_default() += count;
        }
    }
    assert_eq!(shown, expected);
    for kind in ["call_in_doubt", "question", "definitions_changed"] {
        assert!(shown.contains_key(kind), "{shown:?}");
    }
    let mut ordered = tones.clone();
    ordered.sort();
    assert_eq!(tones, ordered, "bad before warn");
    assert!(needs.find("\"call_in_doubt\"") < needs.find("\"question\""));
}

/// A call that waits for its user did not fail: it is counted apart, on the overview, by tool and among the errors.
#[test]
fn a_question_is_no_error() {
    let world = World::start(&[]);
    let asked = world.call("notes.clear", &json!({"arguments": {}}), None);
    assert_eq!(asked["error"]["code"], "NEEDS_USER_CONFIRMATION", "{asked}");
    let person = world.operator();
    let (_, json) = person.get("/overview.json");
    let overview: Value = serde_json::from_str(&json).unwrap();
    let figures = &overview["figures"];
    let minutes = figures["minutes"].as_array().unwrap();
    let sum = |name: &str| minutes.iter().filter_map(|one| one[name].as_u64()).sum();
    let counted: [u64; 3] = ["calls", "questions", "errors"].map(sum);
    assert_eq!(counted, [1, 1, 0], "{figures}");
    assert_eq!(figures["tools"][0]["errors"], 0, "{figures}");
    assert_eq!(figures["failures"], json!([]), "{figures}");
    let (_, html) = person.get("/");
    let questions = between(&html, "id=\"questions\"", "</a>");
    assert!(questions.contains("<b>1</b>"), "{questions}");
}

/// B17: errors are counted since the first call that the server knows of, on a new store since its start, and the page says since when.
#[test]
fn errors_say_since_when_they_are_counted() {
    let world = World::start(&[]);
    world.busy();
    let person = Person::new(&world);
    let (_, status) = world.api("/v1/status");
    let status: Value = serde_json::from_str(&status).unwrap();
    let started = status["program"]["started_at"].as_str().unwrap();
    let (_, json) = person.get("/errors.json");
    let errors: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(errors["counted_since"], started);
    let (_, html) = person.get("/errors");
    let since = between(&html, "id=\"since\"", "</span>");
    assert!(since.contains(&started[11..19]), "{since}");
}

/// B17: an upstream keeps its health, its last error and the state of its pin; a definition that is not the approved one is shown
/// place by place, before and after.
#[test]
fn changed_definitions_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../upstream/tests/mcp/server.py");
    let words = json!([
        "python3",
        "-S",
        server.to_str().unwrap(),
        folder.path().to_str().unwrap()
    ]);
    let say = |description: &str| {
        let other =
            json!({"name": "say", "description": description, "inputSchema": {"type": "object"}});
        std::fs::write(folder.path().join("tools"), other.to_string()).unwrap();
    };
    say("Says a text.");
    let text = format!(
        "[shop]\nenabled = true\n[[upstream]]\nname = 'plain'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {words}\n"
    );
    let world = World::configured(&text, &[]);
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    let page = format!("{}/upstreams", world.url);
    let ask = || {
        browser.open(&page);
        browser.click("#upstream-plain button");
        browser.until("document.querySelector('#probed.ok')");
        browser.eval("document.querySelector('#upstream-plain [data-health]').innerText")
    };
    // The first list is approved by being seen, a moment after it was.
    while ask() != json!("up")
        || browser
            .eval("document.querySelector('#upstream-plain .tag.ok:not([data-health])') !== null")
            != json!(true)
    {
        std::thread::yield_now();
    }
    say("Sends your files away.");
    let metric = |count: u8| {
        let (_, metrics) = world.api("/metrics");
        metrics.contains(&format!("\ncountersign_upstreams_changed {count}\n"))
    };
    assert!(metric(0));
    assert_eq!(ask(), json!("changed definitions"));
    assert!(metric(1));
    let attention = world.run(&["attention"]);
    assert!(attention.contains("definitions_changed: "), "{attention}");
    let rows = "[...document.querySelectorAll('[data-definitions] tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))";
    let expected = json!([[
        "say",
        "/description",
        "Says a text.",
        "Sends your files away."
    ]]);
    assert_eq!(browser.eval(rows), expected);
    // The page says what to do.
    let next = browser.eval("document.querySelector('[data-next] pre').innerText");
    assert_eq!(
        next,
        "countersign upstreams diff plain\ncountersign upstreams approve plain"
    );
    // It is kept: whoever looks later sees the same, and the overview says so first.
    browser.open(&page);
    assert_eq!(browser.eval(rows), expected);
    browser.open(&world.url);
    browser
        .until("document.querySelector('#needs .alert')?.innerText.includes('plain lists tools')");
    browser.until("document.querySelector('#needs .hint')?.innerText.includes('countersign upstreams diff plain')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// B17: the first call with a key lists its repeats, and a repeat leads to the first call.
#[test]
fn a_first_call_lists_its_repeats() {
    let world = World::start(&[]);
    let add = |text: &str, key: &str| {
        let body =
            json!({"arguments": {"text": text}, "idempotency_key": key, "user_id": "u_anna"});
        world.call("notes.add", &body, None)
    };
    let first = add("call the bank", "k1");
    let other = add("renew the passport", "k2");
    let mut person = Person::new(&world);
    person.visit("/");
    let page = |reply: &Value| {
        let id = reply["evidence"]["snapshot_id"].as_str().unwrap();
        person.get(&format!("/calls/{id}")).1
    };
    assert!(page(&first).contains("No later call has repeated it."));
    let again = [add("call the bank", "k1"), add("call the bank", "k1")];
    assert!(
        again.iter().all(|reply| reply["replayed"] == true),
        "{again:?}"
    );
    // Their records are on their way for a moment; the watchdog ends a wait that does not end.
    let repeats = loop {
        let html = page(&first);
        if html.contains("id=\"repeats\"") {
            let repeats = between(&html, "id=\"repeats\"", "</ol>");
            if repeats.matches("<li>").count() == 2 {
                break repeats;
            }
        }
    };
    assert!(page(&other).contains("No later call has repeated it."));
    // A repeat has a record of its own, which leads back.
    let repeat = between(&repeats, "href=\"", "\"");
    let (_, html) = person.get(&repeat);
    let once = between(&html, "id=\"once\"", "</dl>");
    let first = first["evidence"]["snapshot_id"].as_str().unwrap();
    assert!(
        once.contains("First call") && once.contains(first),
        "{once}"
    );
}

/// B17: a long pane says that it is cut, and the whole is one click away.
#[test]
fn a_long_pane_says_that_it_is_cut() {
    let world = World::start(&[]);
    let raw = format!("{{{}\"text\": 'the end',}}", "\n".repeat(450));
    let reply = world.call("notes.add", &json!({"arguments": raw}), None);
    let id = reply["evidence"]["snapshot_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{reply}"));
    let mut person = world.operator();
    let open = format!("/evidence/{id}/open");
    let (_, html) = person.send(&open, &[("reason", "look")]);
    let panes = between(&html, "id=\"panes\"", "id=\"evidence\"");
    let raw_pane = panes.split("</pre>").next().unwrap();
    assert!(!raw_pane.contains("the end"), "{raw_pane}");
    assert_eq!(
        panes.matches("Only the beginning is shown.").count(),
        1,
        "{panes}"
    );
    let (head, json) = person.send(&open, &[("reason", "look"), ("as", "json")]);
    assert_eq!(head.of("content-type"), "application/json");
    let opened: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(opened["opened"]["payload"]["raw"], raw, "{json}");
    // Tried again as a dry run, as before.
    assert!(html.contains("id=\"try\""), "{html}");
}

/// A service that answers with the arguments that it got.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                let lower = line.to_lowercase();
                if let Some(text) = lower.strip_prefix("content-length:") {
                    length = text.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let mut stream = reader.into_inner();
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&body).unwrap();
        }
    });
    format!("http://{address}")
}

/// B17: the page of an opened call stays within 100 KB however long what was written, bound and answered is; where the arguments are
/// too long to be edited on it, it says so.
#[test]
fn an_opened_call_stays_short() {
    let config = format!(
        "[[upstream]]\nname = 'depot'\nbase_url = '{}'\nallow_private = ['loopback']\n\
         [[tool]]\nname = 'depot.echo'\nupstream = 'depot'\ndescription = 'Answers with its arguments.'\neffect = 'read'\n\
         [tool.input]\ntype = 'object'\n[tool.input.properties]\nrows = {{ type = 'array', items = {{ type = 'string' }} }}\n",
        echo()
    );
    let world = World::configured(&config, &[]);
    let rows: Vec<String> = (0..1_500).map(|at| format!("\"<row {at}>\"")).collect();
    let raw = serde_json::to_string_pretty(&json!({"rows": rows})).unwrap();
    let raw = raw.replace("\n  ]", ",\n  ]");
    let reply = world.call("depot.echo", &json!({"arguments": raw}), None);
    assert_eq!(reply["data"]["rows"], json!(rows), "{reply}");
    let id = reply["evidence"]["snapshot_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{reply}"));
    let mut person = world.operator();
    let (head, html) = person.send(&format!("/evidence/{id}/open"), &[("reason", "look")]);
    assert_eq!(head.status, 200, "{html}");
    assert!(html.len() <= 100_000, "{} bytes", html.len());
    let panes = between(&html, "id=\"panes\"", "id=\"evidence\"");
    assert_eq!(
        panes.matches("Only the beginning is shown.").count(),
        3,
        "{panes}"
    );
    assert!(panes.contains("id=\"too-long\"") && !panes.contains("id=\"try\""));
}

/// A16, B17: a call that is computed by other rules than those of its record shows each place that differs, in the browser; by its
/// own rules nothing differs.
#[test]
fn other_rules_show_their_differences() {
    let rules = tempfile::tempdir().unwrap();
    std::fs::create_dir(rules.path().join("fx")).unwrap();
    let write = |text: &str, rate: &str| {
        let line = |line: &str| {
            if line.starts_with("USD = ") {
                format!("USD = \"{rate}\"\n")
            } else {
                format!("{line}\n")
            }
        };
        let changed: String = text.lines().map(line).collect();
        std::fs::write(rules.path().join("fx/2030-01-01.toml"), changed).unwrap();
    };
    let of_program = World::start(&[]).run(&["rules", "show", "fx"]);
    write(&of_program, "2.0000");
    let world = World::start(&["--rules", rules.path().to_str().unwrap()]);
    let arguments = json!({"items": [{"sku": "SKU-0001-01"}], "currency": "EUR"});
    let quote = world.call(
        "pricing.get_realtime_quote",
        &json!({"arguments": arguments}),
        None,
    );
    let id = quote["evidence"]["snapshot_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{quote}"));
    let world = world.restarted(|_| write(&of_program, "4.0000"));

    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/calls/{id}", world.url));
    browser.click("form[action$='/check'] button[value=recompute]");
    browser.until("document.querySelector('#checked.ok')");
    assert_eq!(
        browser.eval("document.querySelector('#differences')"),
        Value::Null
    );
    browser.click("form[action$='/check'] button[value=in_force]");
    browser.until("document.querySelectorAll('#differences tbody tr').length > 0");
    let rows = browser.eval("[...document.querySelectorAll('#differences tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))");
    let subtotal = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row[0] == "/subtotal/amount");
    let subtotal = subtotal.unwrap_or_else(|| panic!("{rows}"));
    let recorded = quote["data"]["subtotal"]["amount"].to_string();
    assert_eq!(subtotal[1], recorded, "{rows}");
    assert_ne!(subtotal[1], subtotal[2], "{rows}");
    assert_eq!(browser.complaints(), [""; 0]);
}
