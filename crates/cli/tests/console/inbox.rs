//! The inbox when much waits: pages, counts, who may answer, and what the model wrote.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::browser::Browser;
use super::world::{Person, World};

/// Number of questions that wait.
const WAITING: usize = 1_000;

/// Threads that ask at once.
const ASKING: usize = 8;

/// A13, B17: with 1,000 questions waiting every one is reached, page by page, and no page is larger than 100 KB; the oldest is answered.
#[test]
fn a_thousand_questions_are_reached() {
    let world = World::start(&[]);
    std::thread::scope(|scope| {
        for thread in 0..ASKING {
            let world = &world;
            scope.spawn(move || {
                for at in (thread..WAITING).step_by(ASKING) {
                    let user = format!("u_{at}");
                    let body = json!({"arguments": {"keep": at}, "user_id": user});
                    let asked = world.call("notes.clear", &body, None);
                    let code = &asked["error"]["code"];
                    assert_eq!(code, "NEEDS_USER_CONFIRMATION", "{asked}");
                }
            });
        }
    });
    let mut person = world.operator();
    let mut page = "/approvals?state=pending".to_owned();
    let (mut pages, mut seen) = (0, BTreeSet::new());
    let mut oldest = String::new();
    loop {
        let (head, html) = person.get(&page);
        assert_eq!(head.status, 200, "{page}");
        assert!(html.len() <= 100_000, "{page} has {} bytes", html.len());
        let (_, twin) = person.get(&page.replace("/approvals?", "/approvals.json?"));
        let twin: Value = serde_json::from_str(&twin).unwrap();
        for approval in twin["approvals"].as_array().unwrap() {
            let id = approval["id"].as_str().unwrap().to_owned();
            assert!(html.contains(&format!("/approvals/{id}\"")), "{id}");
            oldest.clone_from(&id);
            assert!(seen.insert(id), "twice");
        }
        pages += 1;
        let Some((_, rest)) = html.split_once("id=\"next\" href=\"") else {
            assert_eq!(twin.get("next_cursor"), None);
            break;
        };
        page = text(rest.split_once('"').unwrap().0);
    }
    assert_eq!((seen.len(), pages), (WAITING, 10));

    // Filters find one among them, and stay in the addresses of further pages.
    let (_, html) = person.get("/approvals?tool=notes.clear&user=u_7");
    assert_eq!(html.matches("<tr id=").count(), 1, "{html}");
    let (_, html) = person.get("/approvals?tool=notes.clear");
    let next = text(&super::between(&html, "id=\"next\" href=\"", "\""));
    assert!(
        next.contains("tool=notes.clear") && next.contains("cursor="),
        "{next}"
    );
    let (_, html) = person.get("/approvals?tool=notes.add");
    assert!(html.contains("No question fits these filters."), "{html}");

    // Those of one shape as well, from any page on.
    let shape = world.shape();
    let (head, html) = person.get(&format!("/approvals?shape={shape}"));
    assert_eq!(head.status, 200, "{html}");
    assert!(html.len() <= 100_000, "{} bytes", html.len());
    let shown = html.matches("name=\"id\"").count();
    assert!(shown > 1 && html.contains("id=\"more\""), "{shown}");
    let more = (WAITING - shown).to_string();
    assert!(html.contains(&format!("<span>{more} ")), "{more}");

    let path = format!("/approvals/{oldest}");
    let (head, _) = person.send(&path, &[("decision", "deny")]);
    assert_eq!(head.status, 303);
    let (_, html) = person.get("/approvals?state=denied");
    assert!(html.contains(&oldest));
}

/// The text of an attribute.
fn text(attribute: &str) -> String {
    attribute.replace("&#38;", "&").replace("&amp;", "&")
}

/// A13: people see how much waits for them, and not how much waits for others.
#[test]
fn people_count_what_waits_for_them() {
    let world = World::start(&[]);
    let keys = ["ann", "bob"].map(|user| world.run(&["keys", "create", "--user", user]));
    let [ann, bob] = &keys;
    let desk = world.run(&[
        "keys",
        "create",
        "--user",
        "desk",
        "--scope",
        "approvals:answer",
    ]);
    let agent = world.run(&["keys", "create", "--agent", "shopper", "--for", "ann"]);
    for keep in 0..2 {
        let body = json!({"arguments": {"keep": keep}});
        world.call("notes.clear", &body, Some(&agent));
    }
    let counted = |person: &Person<'_>| {
        let (_, html) = person.get("/");
        let of_frame = html.split_once("<span class=\"n\">");
        let of_frame = of_frame.map(|(_, rest)| rest.split_once('<').unwrap().0.to_owned());
        let (_, twin) = person.get("/overview.json");
        let twin: Value = serde_json::from_str(&twin).unwrap();
        (of_frame, twin["approvals_waiting"].clone())
    };
    let two = (Some("2".to_owned()), json!(2));
    assert_eq!(counted(&world.person(ann)), two);
    assert_eq!(counted(&world.person(&desk)), two);
    assert_eq!(counted(&world.operator()), two);
    assert_eq!(counted(&world.person(bob)), (None, json!(0)));
}

/// A rule that asks, in a file whose lines are known.
const RULES: &str = r#"[shop]
enabled = true

[policy.defaults]
unlisted = "allow"

[[policy.tools]]
match = "cart.add_item"
confirm = "always"
"#;

/// A13, A21: the page of a question says who may answer and which entry of which policy asked, and shows what the model wrote once a person
/// has said why; the access is recorded.
#[test]
fn the_page_says_who_asks_and_what_was_written() {
    let world = World::configured(RULES, &[]);
    let ann = world.run(&["keys", "create", "--user", "ann"]);
    let agent = world.run(&["keys", "create", "--agent", "shopper", "--for", "ann"]);
    let made = world.call("cart.create", &json!({"arguments": {}}), Some(&agent));
    let cart = made["data"]["cart_id"].as_str().unwrap();
    let written = format!("{{cart_id: '{cart}', sku: 'SKU-0002-01', quantity: '1',}}");
    let body = json!({"arguments": written});
    let asked = world.call("cart.add_item", &body, Some(&agent));
    let id = asked["error"]["details"]["approval_id"].as_str();
    let id = id.unwrap_or_else(|| panic!("{asked}")).to_owned();

    let (_, html) = world.person(&ann).get(&format!("/approvals/{id}"));
    assert!(
        html.contains("<b>ann</b>") && html.contains("approvals:answer"),
        "{html}"
    );
    assert!(html.contains("[[tools]] cart.add_item"), "{html}");
    assert!(
        !html.contains("id=\"open\""),
        "ann has no scope to open records"
    );

    let browser = Browser::start((1280, 1000), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/approvals/{id}", world.url));
    browser.until(
        "document.querySelector('#authority')?.innerText.includes('[[tools]] cart.add_item')",
    );
    browser.until("document.querySelector('#authority').innerText.includes('line ')");
    assert_eq!(
        browser.eval("document.querySelector('#written')"),
        Value::Null
    );
    browser.write("#open-reason", "what did it really ask for");
    browser.click("#open button");
    browser.until("document.querySelector('#written pre')");
    assert_eq!(
        browser.eval("document.querySelector('#written pre').textContent"),
        json!(written)
    );
    assert_eq!(browser.complaints(), [""; 0]);
    let (_, acts) = world.operator().get("/evidence.json?kind=access");
    let acts: Value = serde_json::from_str(&acts).unwrap();
    assert_eq!(acts["acts"][0]["event"], "open", "{acts}");
    let (_, twin) = world.operator().get(&format!("/approvals/{id}.json"));
    let twin: Value = serde_json::from_str(&twin).unwrap();
    assert_eq!(twin["authority"]["approvers"], 1);
    assert_eq!(
        twin["authority"]["because"][0]["ruling"], "confirm",
        "{twin}"
    );
    assert_eq!(twin.get("written"), None);
}
