//! Calls in doubt: narrowed, settled together, each with a record of its own.

use std::io::Read as _;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::browser::Browser;
use super::world::World;

/// A server in front of a service that takes every order and never answers.
fn doubtful() -> World {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut part = [0; 1024];
            let _ = stream.read(&mut part);
        }
    });
    let tool = |name: &str| {
        format!(
            "[[tool]]\nname = \"{name}\"\nupstream = \"orders\"\ndescription = \"Places an order.\"\n\
             effect = \"external\"\nparameters = [{{ name = \"sku\" }}]\n\n"
        )
    };
    let config = format!(
        "[[upstream]]\nname = \"orders\"\nbase_url = \"http://{address}\"\nallow_private = [\"loopback\"]\n\
         breaker = {{ failures = 0 }}\n\n{}{}",
        tool("orders.place"),
        tool("orders.return"),
    );
    World::configured(&config, &[])
}

fn order(world: &World, tool: &str, user: &str, key: &str) {
    let body = json!({"arguments": {"sku": "a1"}, "user_id": user, "idempotency_key": key});
    let reply = world.call(tool, &body, None);
    assert_eq!(reply["ok"], false, "{reply}");
}

/// F8, B17: 120 doubts are two pages of at most 100 KB each; tool, user and age narrow the list, also over the API, and those that are
/// ticked are settled with one reason and one record each.
#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one story, from the filter to the records"
)]
fn doubts_are_narrowed_and_settled_together() {
    let world = doubtful();
    for at in 0..119 {
        let user = ["ann", "bob"][at % 2];
        order(&world, "orders.place", user, &format!("k-{at}"));
    }
    order(&world, "orders.return", "ann", "back");
    let mut person = world.operator();
    let twin = |query: &str| -> Value {
        let (head, json) = world.operator().get(&format!("/in-doubt.json{query}"));
        assert_eq!(head.status, 200, "{json}");
        serde_json::from_str(&json).unwrap()
    };
    let count = |query: &str| twin(query)["calls"].as_array().unwrap().len();
    assert_eq!(count("?tool=orders.return"), 1);
    assert_eq!(count("?user=bob"), 59);
    assert_eq!(count("?user=ann&tool=orders.place"), 60);
    assert_eq!((count("?age=1h"), count("?user=nobody")), (0, 0));
    assert_eq!(person.get("/in-doubt?tool=not%20a%20name").0.status, 400);

    let (_, first) = person.get("/in-doubt");
    assert!(first.len() <= 100_000, "{} bytes", first.len());
    assert_eq!(first.matches("name=\"call\"").count(), 100);
    let next = first.split_once("id=\"next\" href=\"").unwrap().1;
    let next = next.split_once('"').unwrap().0.replace("&#38;", "&");
    let (_, second) = person.get(&next);
    assert_eq!(second.matches("name=\"call\"").count(), 20, "{second}");

    // The way back to the first page keeps what the list is narrowed to.
    let (_, narrowed) = person.get("/in-doubt?tool=orders.place");
    let next = narrowed.split_once("id=\"next\" href=\"").unwrap().1;
    let next = next.split_once('"').unwrap().0.replace("&#38;", "&");
    let (_, narrowed) = person.get(&next);
    assert!(
        narrowed.contains("id=\"first\" href=\"/in-doubt?tool=orders.place\""),
        "{narrowed}"
    );

    // Nothing is chosen, nobody says what happened, or nobody says why.
    let name = first.split_once("name=\"call\" value=\"").unwrap().1;
    let name = name.split_once('"').unwrap().0.to_owned();
    for fields in [
        vec![("outcome", "not"), ("reason", "asked")],
        vec![("call", &*name), ("reason", "asked")],
        vec![("call", &*name), ("outcome", "not"), ("reason", " ")],
        vec![("call", "1.x"), ("outcome", "not"), ("reason", "asked")],
    ] {
        let (head, _) = person.send("/in-doubt/settle", &fields);
        assert_eq!(head.status, 400, "{fields:?}");
    }
    assert_eq!(count("?user=ann"), 61);

    let browser = Browser::start((1280, 1000), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.side .n')");
    browser.open(&format!("{}/in-doubt?user=bob", world.url));
    browser.until("document.querySelectorAll('[name=call]').length === 59");
    browser.eval_script(
        "for (const box of [...document.querySelectorAll('[name=call]')].slice(0, 3)) box.click()",
    );
    browser.click("input[value=not]");
    browser.write("#reason", "the service has none of them");
    browser.click("#settle button");
    browser.until("document.querySelectorAll('#outcomes tbody tr').length === 3");
    let records = browser.eval("[...new Set([...document.querySelectorAll('#outcomes a.id')].map(a => a.innerText))].length");
    assert_eq!(records, json!(3), "one record each");
    browser.until("document.querySelectorAll('[name=call]').length === 56");
    assert_eq!(browser.complaints(), [""; 0]);
    let (_, acts) = person.get("/evidence.json?kind=resolution");
    let acts: Value = serde_json::from_str(&acts).unwrap();
    assert_eq!(acts["acts"].as_array().unwrap().len(), 3, "{acts}");

    // One that somebody else has settled meanwhile is told of, the other is settled.
    let both: Vec<String> = twin("?user=ann")["calls"]
        .as_array()
        .unwrap()
        .iter()
        .take(2)
        .map(|call| {
            let text = |name: &str| call[name].as_str().unwrap().to_owned();
            let (key, tool) = (text("key"), text("tool"));
            format!("{}.{key}.{tool}~{}", call["attempt"], text("user_id"))
        })
        .collect();
    let settle = |person: &mut super::Person<'_>, names: &[&String]| {
        let mut fields = vec![
            ("outcome", "happened"),
            ("answer", "{\"order\": 1}"),
            ("reason", "found in the ledger"),
        ];
        fields.extend(names.iter().map(|name| ("call", name.as_str())));
        person.send("/in-doubt/settle", &fields).1
    };
    let html = settle(&mut person, &[&both[0]]);
    assert!(html.contains("Settled, and recorded"), "{html}");
    let html = settle(&mut person, &[&both[0], &both[1]]);
    assert!(html.contains("is not in doubt any more"), "{html}");
    assert!(html.contains("Settled, and recorded"), "{html}");
}

/// All calls in doubt that match a filter are settled by one request, each with a record of its own and the reason; if more match than were
/// looked at, none is. A person needs the scope for it, as for one.
#[expect(clippy::too_many_lines, reason = "one story, in its order")]
#[test]
fn all_that_match_are_settled() {
    let world = doubtful();
    for at in 0..110 {
        order(&world, "orders.place", "ann", &format!("k-{at}"));
    }
    for at in 0..3 {
        order(&world, "orders.return", "bob", &format!("b-{at}"));
    }
    let mut person = world.operator();
    let twin = |query: &str| -> Value {
        let (head, json) = world.operator().get(&format!("/in-doubt.json{query}"));
        assert_eq!(head.status, 200, "{json}");
        serde_json::from_str(&json).unwrap()
    };
    // All of them are counted, also those that are on another page.
    let ann = twin("?user=ann")["matching"].clone();
    assert_eq!((&ann["count"], &ann["more"]), (&json!(110), &json!(false)));
    assert_eq!(twin("?user=bob")["matching"]["count"], 3);
    let until = ann["until"].as_str().unwrap();
    let mut settle = |count: &str, reason: &str| {
        let fields = [
            ("all", "true"),
            ("user", "ann"),
            ("until", until),
            ("count", count),
            ("outcome", "not"),
            ("reason", reason),
        ];
        person.send("/in-doubt/settle", &fields)
    };
    // Without a reason, with no count, or with one that is too small nothing is settled.
    for (count, reason, status) in [
        ("110", " ", 400),
        ("", "asked", 400),
        ("0", "asked", 400),
        ("1001", "asked", 400),
        ("109", "asked", 409),
    ] {
        let (head, html) = settle(count, reason);
        assert_eq!(head.status, status, "{count:?} {reason:?}: {html}");
    }
    assert_eq!(twin("?user=ann")["matching"]["count"], 110);

    let browser = Browser::start((1280, 1000), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.side .n')");
    browser.open(&format!("{}/in-doubt?user=ann", world.url));
    browser.until("document.querySelector('button[name=all]')?.innerText.includes('110')");
    // One that becomes doubtful after the page was shown is not part of it.
    order(&world, "orders.place", "ann", "late");
    browser.click("input[value=not]");
    browser.write("#reason", "the service has none of them");
    browser.click("button[name=all]");
    browser.until("document.querySelector('#together')?.innerText.includes('Settled: 110')");
    browser.until("document.querySelectorAll('[name=call]').length === 1");
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(twin("?user=bob")["matching"]["count"], 3);
    let resolutions = world.run(&[
        "evidence",
        "list",
        "--kind",
        "resolution",
        "--limit",
        "200",
        "--json",
    ]);
    let resolutions: Value = serde_json::from_str(&resolutions).unwrap();
    assert_eq!(resolutions.as_array().unwrap().len(), 110);

    // A key without the scope settles nothing.
    let key = world.run(&["keys", "create", "--user", "eve", "--scope", "calls:read"]);
    let mut eve = world.person(&key);
    let bob = twin("?user=bob")["matching"].clone();
    let fields = [
        ("all", "true"),
        ("user", "bob"),
        ("until", bob["until"].as_str().unwrap()),
        ("count", "3"),
        ("outcome", "not"),
        ("reason", "asked"),
    ];
    assert_eq!(eve.send("/in-doubt/settle", &fields).0.status, 403);
    assert_eq!(twin("?user=bob")["matching"]["count"], 3);
}
