//! What people find out about calls: sessions, another try, evidence that was tampered with.

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

/// B17, A21: a call is opened with a reason, edited, and tried again as a dry run beside what was answered then.
#[test]
fn a_call_is_edited_and_tried_again() {
    let world = World::start(&[]);
    let call = world.newest_repaired();
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
    browser.click("form[action$='/again'] button");
    browser.until("document.querySelectorAll('#tried tbody tr').length > 0");
    browser.click("form[action$='/check'] button[value=verify]");
    browser.until("document.querySelector('#checked.ok')");
    browser.click("form[action$='/check'] button[value=recompute]");
    browser.until("document.querySelector('#checked')");
    assert_eq!(browser.complaints(), [""; 0]);
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
    let (head, html) = person.send("/upstreams/gone/test", &[]);
    assert_eq!(head.status, 200, "{html}");
    assert!(html.contains("It does not answer"), "{html}");
    assert_eq!(person.send("/upstreams/nobody/test", &[]).0.status, 404);
}
