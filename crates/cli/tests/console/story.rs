//! What people find out about calls: sessions, another try, evidence that was tampered with.

use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};

use super::browser::Browser;
use super::world::{Person, World};

/// B17: the calls of a session as a tree and a line of time, while it runs; no user sees the session of another.
#[test]
fn a_session_is_seen_while_it_runs() {
    let world = World::start(&[]);
    let note = |text: &str| {
        let body = json!({"arguments": {"text": text}, "session_id": "visit 7"});
        world.call("notes.add", &body, None)
    };
    note("call the bank");
    note("renew the passport");
    world.call("notes.list", &json!({"arguments": {}}), None);
    let person = Person::new(&world);
    let (head, html) = person.get("/sessions/visit%207");
    assert_eq!(head.status, 200, "{html}");
    let (_, twin) = person.get("/sessions/visit%207.json");
    let twin: Value = serde_json::from_str(&twin).unwrap();
    assert_eq!(twin["calls"].as_array().unwrap().len(), 2, "{twin}");
    let name = twin["session"].as_str().unwrap();
    assert!(!name.contains("visit"), "{name}");
    assert_eq!(person.get(&format!("/sessions/{name}")).0.status, 200);
    assert_eq!(person.get("/sessions/visit%208").0.status, 404);

    let browser = Browser::start((1280, 900), false);
    let call = twin["calls"][0]["evidence"].as_str().unwrap();
    browser.open(&format!("{}/calls/{call}", world.url));
    browser.click("#session");
    browser.until("document.querySelectorAll('#rows tr').length === 2");
    browser.until("document.querySelector('.pulse:not(.off)')");
    note("book the train");
    browser.until("document.querySelectorAll('#rows tr').length === 3");
    assert_eq!(browser.complaints(), [""; 0]);

    let bob = world.run(&["keys", "create", "--user", "bob"]);
    let bob = world.person(&bob);
    assert_eq!(bob.get("/sessions/visit%207").0.status, 404);
    assert_eq!(bob.get(&format!("/sessions/{name}")).0.status, 404);
}

/// B17: sessions and kinds of errors outlive a restart, in both stores, and the pages say since when they count.
#[test]
fn sessions_and_errors_outlive_a_restart() {
    outlives_a_restart(World::start(&[]));
    let url = shared_postgres().fresh_database();
    outlives_a_restart(World::start(&["--store", &url]));
}

fn outlives_a_restart(world: World) {
    let note = |world: &World, text: Value| {
        let body = json!({"arguments": {"text": text}, "session_id": "visit 7"});
        world.call("notes.add", &body, None)
    };
    note(&world, json!("call the bank"));
    note(&world, json!({"a": 1}));
    note(&world, json!({"a": 2}));
    let pages = |world: &World| {
        let person = Person::new(world);
        ["/sessions/visit%207.json", "/errors.json"].map(|path| {
            let (head, text) = person.get(path);
            assert_eq!(head.status, 200, "{path}: {text}");
            serde_json::from_str::<Value>(&text).unwrap()
        })
    };
    let before = figures(&world);
    assert_eq!(before.0, json!([3, 2]), "calls and errors of the last hour");
    let [session, errors] = pages(&world);
    assert_eq!(session["calls"].as_array().unwrap().len(), 3, "{session}");
    let failure = errors["failures"][0].clone();
    assert_eq!(failure["code"], "INVALID_ARGUMENT", "{errors}");
    assert_eq!(failure["count"], 2, "{errors}");
    // The record names the session by a digest under the user's key, and never by its name.
    let call = session["calls"][0]["evidence"].as_str().unwrap();
    let (_, record) = world.api(&format!("/v1/evidence/{call}"));
    let shown: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(shown["record"]["act"]["session"], session["session"]);
    assert!(!record.contains("visit"), "{record}");
    let began = session["known_since"].as_str().unwrap().to_owned();

    let world = world.restarted(|_| {});
    let is_recalled = || {
        let (_, text) = Person::new(&world).get("/errors.json");
        let errors: Value = serde_json::from_str(&text).unwrap();
        errors["failures"] != json!([])
    };
    // The world's watchdog is the deadline.
    while !is_recalled() {}
    let [again, errors] = pages(&world);
    assert_eq!(again["session"], session["session"]);
    assert_eq!(again["calls"], session["calls"]);
    assert_eq!(errors["failures"][0]["count"], 2, "{errors}");
    assert_eq!(errors["failures"][0]["since"], failure["since"], "{errors}");
    for since in [&again["known_since"], &errors["counted_since"]] {
        let since: jiff::Timestamp = since.as_str().unwrap().parse().unwrap();
        assert!(since <= session["calls"][0]["at"].as_str().unwrap().parse().unwrap());
        assert!(
            since > began.parse::<jiff::Timestamp>().unwrap() - jiff::SignedDuration::from_mins(1)
        );
    }
    let (_, html) = Person::new(&world).get("/sessions/visit%207");
    let since = html.split_once("id=\"since\">").unwrap().1;
    assert!(since.starts_with("Records hold only a digest"), "{since}");

    // The figures of the last hour and of the tools as well, and the pages say since when they count.
    assert_eq!(figures(&world), before);
    let (_, html) = Person::new(&world).get("/");
    assert!(html.contains("id=\"calls-chart\""), "{html}");
    let (_, html) = Person::new(&world).get("/tools");
    assert!(html.contains("id=\"since\">Counted since "), "{html}");

    // What is answered now is counted once.
    note(&world, json!({"a": 3}));
    let [last, errors] = pages(&world);
    assert_eq!(last["calls"].as_array().unwrap().len(), 4, "{last}");
    assert_eq!(errors["failures"][0]["count"], 3, "{errors}");
    assert_eq!(errors["failures"][0]["last_hour"], 3, "{errors}");
}

/// Calls and errors of the last hour, and the figures of each tool.
fn figures(world: &World) -> (Value, Value) {
    let (_, text) = Person::new(world).get("/overview.json");
    let overview: Value = serde_json::from_str(&text).unwrap();
    let minutes = overview["figures"]["minutes"].as_array().unwrap().clone();
    let sum = |name: &str| -> u64 {
        let counts = minutes.iter().map(|one| one[name].as_u64().unwrap());
        counts.sum()
    };
    assert!(minutes.iter().all(|one| one["p99_us"].as_u64() > Some(0)));
    let sums = json!([sum("calls"), sum("errors")]);
    // A record is made before the commit, so its duration is shorter than what was measured behind it.
    let tools = overview["figures"]["tools"].as_array().unwrap().iter();
    let tools = tools.map(|tool| {
        assert!(tool["p99_us"].as_u64() > Some(0), "{tool}");
        json!([tool["tool"], tool["calls"], tool["errors"]])
    });
    (sums, tools.collect())
}

/// B17, A21: a call is opened with a reason, edited, and tried again as a dry run beside what was answered then.
#[test]
fn a_call_is_edited_and_tried_again() {
    let world = World::start(&[]);
    let call = world.newest_repaired(None);
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/calls/{call}", world.url));
    browser.write("#reason", "a customer asked");
    browser.click("form[action$='/open'] button");
    browser.until("document.querySelector('#panes')");
    browser.click("#try summary");
    browser.click("#try button");
    browser.until("document.querySelector('#again')?.innerText === 'OK'");
    let edited = "(() => { const field = document.querySelector('#edited'); field.value = field.value.replace('\"quantity\": 2', '\"quantity\": 5'); return field.value.includes('\"quantity\": 5'); })()";
    assert_eq!(browser.eval(edited), json!(true));
    browser.submit("form[action$='/again'] button");
    browser.until("document.querySelectorAll('#tried tbody tr').length > 0");
    browser.click("form[action$='/check'] button[value=verify]");
    browser.until("document.querySelector('#checked.ok')");
    browser.click("form[action$='/check'] button[value=recompute]");
    browser.until("document.querySelector('#checked')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// B17, A21: an opened call tells what was changed without a cover, and marks every place in what was written.
#[test]
fn an_opened_call_marks_every_change() {
    let world = World::start(&[]);
    let call = world.newest_repaired(None);
    let mut person = world.operator();
    let (_, twin) = person.get(&format!("/calls/{call}.json"));
    let twin: Value = serde_json::from_str(&twin).unwrap();
    let id = twin["records"][0]["record"]["id"].as_str().unwrap();
    let open = format!("/evidence/{id}/open");
    let (_, html) = person.send(&open, &[("reason", "a customer asked")]);
    let panes = super::between(&html, "id=\"panes\"", "id=\"evidence\"");
    assert!(!panes.contains("[redacted]"), "{panes}");
    for name in [
        "items",
        "sku",
        "quantity",
        "destination",
        "country",
        "postal_code",
    ] {
        assert!(
            panes.contains(&format!("<mark>{name}</mark>")),
            "{name}: {panes}"
        );
    }
}

/// A21: another try is compared with the answer in the record, which is opened for it with the same reason; what a browser says about
/// the tool, the user and the answer of then does not count.
#[test]
fn another_try_is_compared_with_the_record() {
    let world = World::start(&[]);
    let arguments = json!({"query": "usb-c cable", "limit": 2});
    let call = json!({"arguments": arguments, "user_id": "u_anna"});
    let reply = world.call("catalog.search_offers", &call, None);
    let id = reply["evidence"]["snapshot_id"].as_str().unwrap();
    let mut person = world.operator();
    let again = format!("/calls/{id}/again");
    let raw = arguments.to_string();
    let (head, _) = person.send(&again, &[("raw", &raw)]);
    assert_eq!(head.status, 400, "no reason, no recorded answer");
    let fields = [
        ("raw", &*raw),
        ("reason", "look"),
        ("recorded", "null"),
        ("tool", "notes.list"),
        ("user", "u_bob"),
    ];
    let (_, html) = person.send(&again, &fields);
    assert!(html.contains("id=\"same\""), "{html}");
    let other = json!({"query": "usb-c cable", "limit": 1}).to_string();
    let (_, html) = person.send(&again, &[("raw", &other), ("reason", "look")]);
    assert!(html.contains("<table id=\"tried\">"), "{html}");
    let (_, acts) = person.get("/evidence.json?kind=access");
    let acts: Value = serde_json::from_str(&acts).unwrap();
    assert_eq!(acts["acts"].as_array().unwrap().len(), 2, "{acts}");
}

/// A18, B17: sealed content that was changed in the store is shown as broken.
#[test]
fn tampered_evidence_is_shown_as_broken() {
    let world = World::start(&[]);
    world.call(
        "notes.add",
        &json!({"arguments": {"text": "call the bank"}}),
        None,
    );
    let call = world.newest_call()["evidence"].as_str().unwrap().to_owned();
    let world = world.restarted(|store| {
        let script = "import sqlite3, sys\n\
            db = sqlite3.connect(sys.argv[1])\n\
            row = db.execute('SELECT idx FROM record WHERE id = ?', [sys.argv[2]]).fetchone()\n\
            old = db.execute('SELECT bytes FROM payload WHERE idx = ?', row).fetchone()[0]\n\
            new = old[:-1] + bytes([old[-1] ^ 1])\n\
            db.execute('UPDATE payload SET bytes = ? WHERE idx = ?', [new, row[0]])\n\
            db.commit()\n";
        let path = store.join("countersign.db");
        let done = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(path)
            .arg(&call)
            .status();
        assert!(done.unwrap().success());
    });
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/calls/{call}", world.url));
    browser.click("form[action$='/check'] button[value=verify]");
    browser.until("document.querySelector('#checked.bad')");
    browser.until("document.querySelectorAll('#differences tbody tr').length > 0");
}

/// B17: errors are grouped by code, tool and version, with since when; an upstream is asked whether it is there.
#[test]
fn what_fails_is_grouped() {
    let world = World::configured(
        "[shop]\nenabled = true\n[[upstream]]\nname = 'gone'\nbase_url = 'http://127.0.0.1:9'\nallow_private = ['loopback']\n",
        &[],
    );
    world.busy();
    world.busy();
    let mut person = world.operator();
    let (_, json) = person.get("/errors.json");
    let errors: Value = serde_json::from_str(&json).unwrap();
    let failures = errors["failures"].as_array().unwrap();
    let wrong = failures
        .iter()
        .find(|it| it["code"] == "INVALID_ARGUMENT")
        .unwrap();
    assert_eq!(
        (&wrong["tool"], &wrong["count"]),
        (&json!("catalog.search_offers"), &json!(2))
    );
    assert!(wrong["since"].as_str() < wrong["last"].as_str(), "{wrong}");
    assert_eq!(wrong["last_hour"], 2, "{wrong}");
    // Its link leads to the calls of this version only.
    let (_, html) = person.get("/errors");
    let link = super::between(&html, "href=\"/calls?tool=catalog.search_offers", "\"");
    let version = wrong["version"].as_str().unwrap();
    assert!(link.ends_with(&format!("version={version}")), "{link}");
    let listed = |version: &str| {
        let path = format!(
            "/calls.json?tool=catalog.search_offers&code=INVALID_ARGUMENT&version={version}"
        );
        let calls: Value = serde_json::from_str(&person.get(&path).1).unwrap();
        calls["calls"].as_array().unwrap().len()
    };
    assert_eq!((listed(version), listed("0.0.0")), (2, 0));
    // A server at which nothing fails says so.
    let quiet = World::start(&[]);
    let (_, html) = Person::new(&quiet).get("/errors");
    assert!(html.contains("Nothing failed in this time."), "{html}");
    let (head, html) = person.send("/upstreams/gone/test", &[]);
    assert_eq!(head.status, 200, "{html}");
    assert!(html.contains("It does not answer"), "{html}");
    assert_eq!(person.send("/upstreams/nobody/test", &[]).0.status, 404);
}
