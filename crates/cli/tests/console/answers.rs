//! Answers of people in a real browser: approve, make smaller, deny, two people, several at once.

use serde_json::{Value, json};

use super::browser::Browser;
use super::world::{Person, World};

/// A tool whose calls ann confirms, and one whose calls two people confirm.
const RULES: &str = r#"
    [shop]
    enabled = true

    [policy.defaults]
    unlisted = "allow"

    [[policy.tools]]
    match = "cart.add_item"
    confirm = "always"

    [[policy.tools]]
    match = "notes.clear"
    confirm = "always"
    four_eyes = true
"#;

/// A server with an agent that asks, ann for whom it acts, and bob who may answer for others.
struct Desk {
    world: World,
    agent: String,
    ann: String,
    bob: String,
    cart: String,
}

impl Desk {
    fn open() -> Self {
        let world = World::configured(RULES, &[]);
        let ann = world.run(&["keys", "create", "--user", "ann"]);
        let bob = world.run(&[
            "keys",
            "create",
            "--user",
            "bob",
            "--scope",
            "approvals:answer",
        ]);
        let agent = world.run(&["keys", "create", "--agent", "shopper", "--for", "ann"]);
        let made = world.call("cart.create", &json!({"arguments": {}}), Some(&agent));
        let cart = made["data"]["cart_id"].as_str();
        let cart = cart.unwrap_or_else(|| panic!("{made}")).to_owned();
        Self {
            world,
            agent,
            ann,
            bob,
            cart,
        }
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let body = json!({"arguments": arguments});
        self.world.call(tool, &body, Some(&self.agent))
    }

    /// Asks for something that has to be confirmed; the id of the question.
    fn ask(&self, tool: &str, arguments: &Value) -> String {
        let asked = self.call(tool, arguments);
        let id = asked["error"]["details"]["approval_id"].as_str();
        id.unwrap_or_else(|| panic!("{asked}")).to_owned()
    }

    fn item(&self, sku: &str, quantity: u32) -> Value {
        json!({"cart_id": self.cart, "sku": sku, "quantity": quantity})
    }

    /// A browser in which a person has signed in.
    fn browser(&self, key: &str) -> Browser {
        let browser = Browser::start((1280, 1000), false);
        browser.open(&format!("{}/approvals", self.world.url));
        browser.write("#key", key);
        browser.click("form button");
        browser.until("location.pathname === '/approvals'");
        browser
    }

    /// The arguments that the newest call was run with, as they are sealed in its record.
    fn ran(&self) -> Value {
        let record = self.world.newest_call()["evidence"]
            .as_str()
            .unwrap()
            .to_owned();
        let words = ["evidence", "open", &record, "--reason", "compare", "--json"];
        let opened: Value = serde_json::from_str(&self.world.run(&words)).unwrap();
        let ran = opened
            .pointer("/payload/arguments")
            .or(opened.pointer("/arguments"));
        ran.unwrap_or_else(|| panic!("{opened}")).clone()
    }
}

/// A13: a person makes a call smaller before it runs; what runs is what the page shows then, and the record says so.
#[test]
fn a_person_makes_a_call_smaller() {
    let desk = Desk::open();
    let wish = desk.item("SKU-0002-01", 3);
    let id = desk.ask("cart.add_item", &wish);
    let browser = desk.browser(&desk.ann);
    browser.open(&format!("{}/approvals/{id}", desk.world.url));
    browser.write("[name='narrow:/quantity']", "2");
    browser.write("#reason", "two are enough");
    browser.click("button[value=approve]");
    browser.until("document.querySelector('#state')?.innerText === 'approved'");
    browser.until("document.body.innerText.includes('3 → 2')");
    let reply = desk.call("cart.add_item", &wish);
    assert_eq!(reply["ok"], true, "{reply}");
    assert!(
        reply["data"].to_string().contains("\"quantity\":2"),
        "{reply}"
    );
    assert_eq!(desk.ran()["quantity"], 2);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// B17: the time between a question and its answer is shown apart from the phases of the call, also where the agent has sent the call again;
/// a look for an answer that is not there is no waiting.
#[test]
fn waiting_for_a_person_is_shown_apart() {
    let desk = Desk::open();
    let body = json!({"arguments": desk.item("SKU-0002-01", 1), "session_id": "visit 9"});
    let call = || desk.world.call("cart.add_item", &body, Some(&desk.agent));
    let asked = call();
    let id = asked["error"]["details"]["approval_id"].as_str().unwrap();
    let browser = desk.browser(&desk.ann);
    browser.open(&format!("{}/approvals/{id}", desk.world.url));
    browser.click("button[value=approve]");
    browser.until("document.querySelector('#state')?.innerText === 'approved'");
    let reply = call();
    assert_eq!(reply["ok"], true, "{reply}");
    let record = |reply: &Value| {
        reply["evidence"]["snapshot_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let look = |reply: &Value| {
        browser.open(&format!("{}/calls/{}", desk.world.url, record(reply)));
        browser.until("document.querySelector('.phases')");
        browser.eval("[...document.querySelectorAll('.phases > rect')].map(one => one.getAttribute('class'))")
    };
    assert!(!look(&asked).to_string().contains("waited"));
    assert_eq!(look(&reply)[0], "waited");
    let gap = "(() => { const [a, b] = document.querySelectorAll('.phases > rect'); return b.x.baseVal.value - a.x.baseVal.value - a.width.baseVal.value; })()";
    assert!(
        browser.eval(gap).as_f64() > Some(10.0),
        "{}",
        browser.eval(gap)
    );
    browser.until("document.querySelector('#decided')");
    let ann = desk.world.person(&desk.ann);
    let twin = |path: &str| -> Value { serde_json::from_str(&ann.get(path).1).unwrap() };
    let approval = twin(&format!("/approvals/{id}.json"))["approval"].clone();
    let decision =
        twin(&format!("/calls/{}.json", record(&reply)))["records"][0]["decision"].clone();
    assert_eq!(decision["asked_at"], approval["asked_at"], "{decision}");
    assert_eq!(
        decision["answered_at"], approval["answer"]["at"],
        "{decision}"
    );
    // The session has it between the two calls.
    browser.open(&format!("{}/sessions/visit%209", desk.world.url));
    browser.until("document.querySelectorAll('#rows tr').length === 2");
    let waits = "[...document.querySelectorAll('#rows tr')].map(row => row.querySelectorAll('.waited').length)";
    assert_eq!(browser.eval(waits), json!([0, 1]));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A13, B17: the inbox is narrowed by tool, agent and user in its address; new questions arrive by themselves; a key leads from a row to its
/// question, and an answer to the next one that waits.
#[test]
fn an_answer_leads_to_the_next_question() {
    let desk = Desk::open();
    desk.call("notes.add", &json!({"text": "call the bank"}));
    let other = desk.ask("notes.clear", &json!({}));
    let first = desk.ask("cart.add_item", &desk.item("SKU-0001-01", 1));
    let second = desk.ask("cart.add_item", &desk.item("SKU-0002-01", 1));
    let browser = desk.browser(&desk.ann);
    let listed = |query: &str| {
        let (_, text) = desk
            .world
            .person(&desk.ann)
            .get(&format!("/approvals.json?{query}"));
        let list: Value = serde_json::from_str(&text).unwrap();
        let ids = list["approvals"].as_array().unwrap().iter();
        ids.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let shopper = {
        let (_, text) = desk.world.person(&desk.ann).get("/approvals.json");
        let list: Value = serde_json::from_str(&text).unwrap();
        list["approvals"][0]["actor"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(listed("tool=notes.clear"), [other.as_str()]);
    assert_eq!(
        listed(&format!("tool=cart.add_item&agent={shopper}&user=ann")),
        [second.as_str(), &first]
    );
    assert!(listed("agent=nobody").is_empty() && listed("user=bob").is_empty());

    browser.open(&format!("{}/approvals?tool=cart.add_item", desk.world.url));
    browser.until("document.querySelectorAll('#rows tr').length === 2");
    browser.until("document.querySelector('.pulse:not(.off)')");
    let third = desk.ask("cart.add_item", &desk.item("SKU-0003-01", 1));
    browser.until("document.querySelectorAll('#rows tr').length === 3");
    browser.press("j");
    browser.press("a");
    browser.until(&format!("location.pathname === '/approvals/{third}'"));
    browser.until("document.activeElement.value === 'approve'");
    browser.press("\u{E007}");
    browser.until("document.querySelector('#state')?.innerText === 'approved'");
    for next in [&second, &first] {
        browser.until("document.activeElement.closest('#next-waiting')");
        browser.press("\u{E007}");
        browser.until(&format!("location.pathname === '/approvals/{next}'"));
        browser.click("button[value=deny]");
        browser.until("document.querySelector('#state')?.innerText === 'denied'");
    }
    // The filter of the list still counts: the other tool's question is not the next one.
    assert_eq!(
        browser.eval("document.querySelector('#next-waiting')"),
        Value::Null
    );
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A13: two different people answer. The first yes leaves the question open and shows in the inbox; the same person cannot give the second.
#[test]
fn two_people_answer() {
    let desk = Desk::open();
    desk.call("notes.add", &json!({"text": "call the bank"}));
    let id = desk.ask("notes.clear", &json!({}));
    let page = format!("{}/approvals/{id}", desk.world.url);
    let ann = desk.browser(&desk.ann);
    ann.open(&page);
    ann.click("button[value=approve]");
    ann.until("document.querySelector('.alert.ok')?.innerText.includes('ann')");
    assert_eq!(
        ann.eval("document.querySelector('#state').innerText"),
        "waiting"
    );
    assert_eq!(desk.call("notes.clear", &json!({}))["ok"], false);
    ann.open(&format!("{}/approvals", desk.world.url));
    ann.until("document.querySelector('tbody').innerText.includes('1/2')");
    ann.open(&page);
    ann.click("button[value=approve]");
    ann.until("document.querySelector('.alert.bad')");
    assert_eq!(desk.call("notes.clear", &json!({}))["ok"], false);

    let bob = desk.browser(&desk.bob);
    bob.open(&page);
    bob.click("button[value=approve]");
    bob.until("document.querySelector('#state')?.innerText === 'approved'");
    let reply = desk.call("notes.clear", &json!({}));
    assert_eq!(reply["data"], json!({"cleared": 1}), "{reply}");
}

/// A13: questions of one shape are answered by one decision: each is shown in full, each has a record of its own, and what is not ticked stays
/// open. The bytes that the page shows are the bytes that run.
#[test]
fn several_are_answered_at_once() {
    let desk = Desk::open();
    let wishes = ["SKU-0001-01", "SKU-0002-01", "SKU-0003-01"].map(|sku| desk.item(sku, 1));
    let ids = wishes
        .each_ref()
        .map(|wish| desk.ask("cart.add_item", wish));
    let browser = desk.browser(&desk.ann);
    browser.until("document.querySelector('.alert.warn b')?.innerText === '3 × cart.add_item'");
    browser.click(".alert.warn a");
    browser.until("document.querySelectorAll('section.one').length === 3");
    browser.click(&format!("input[value='{}']", ids[2]));
    let of_first = format!(
        "document.querySelector(\"input[value='{}']\").closest('section')",
        ids[0]
    );
    let lines = format!(
        "[...{of_first}.querySelector('pre').querySelectorAll('.l')].map(l => l.textContent).join('\\n')"
    );
    let shown = browser.eval(&lines);
    browser.write("#reason", "all of them are fine");
    browser.press("\u{E004}");
    browser.click("button[value=approve]");
    browser.until("document.querySelectorAll('#outcomes tbody tr').length === 2");
    let states = "[...document.querySelectorAll('#outcomes .tag')].map(tag => tag.innerText)";
    assert_eq!(browser.eval(states), json!(["approved", "approved"]));
    let records =
        browser.eval("[...document.querySelectorAll('#outcomes a.id')].map(a => a.innerText)");
    assert_ne!(records[0], records[1], "one record each");
    assert!(records[0].as_str().unwrap().starts_with("ev_"), "{records}");
    browser.until("document.querySelectorAll('section.one').length === 1");

    assert_eq!(desk.call("cart.add_item", &wishes[1])["ok"], true);
    assert_eq!(desk.call("cart.add_item", &wishes[2])["ok"], false);
    assert_eq!(desk.call("cart.add_item", &wishes[0])["ok"], true);
    let shown: Value = serde_json::from_str(shown.as_str().unwrap()).unwrap();
    assert_eq!(shown, desk.ran());
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A13: questions of another shape, questions that were not chosen, and another rendering than the one that was shown are not answered together.
#[test]
fn only_what_was_shown_is_answered_together() {
    let desk = Desk::open();
    let first = desk.ask("cart.add_item", &desk.item("SKU-0001-01", 1));
    let second = desk.ask("cart.add_item", &desk.item("SKU-0002-01", 1));
    let other = desk.ask("notes.clear", &json!({}));
    let mut person = desk.world.person(&desk.ann);
    let (_, html) = person.get("/approvals");
    let shape = html.split_once("/approvals?shape=").unwrap().1;
    let shape = shape.split_once('"').unwrap().0.to_owned();
    let (_, page) = person.get(&format!("/approvals?shape={shape}"));
    assert!(!page.contains(&other));
    let digest = |id: &str| {
        let rest = page
            .split_once(&format!("name=\"digest:{id}\" value=\""))
            .unwrap()
            .1;
        rest.split_once('"').unwrap().0.to_owned()
    };
    let (of_first, of_second) = (digest(&first), digest(&second));
    let (named_first, named_second) = (format!("digest:{first}"), format!("digest:{second}"));
    for fields in [
        vec![("decision", "approve"), ("shape", &shape)],
        vec![
            ("shape", &*shape),
            ("id", &first),
            (&named_first, &of_first),
        ],
        vec![
            ("decision", "approve"),
            ("shape", &shape),
            ("id", &first),
            ("id", &other),
            (&named_first, &of_first),
        ],
        vec![
            ("decision", "approve"),
            ("shape", "0"),
            ("id", &first),
            (&named_first, &of_first),
        ],
    ] {
        let (head, _) = person.send("/approvals", &fields);
        assert_eq!(head.status, 400, "{fields:?}");
    }
    // The digests are the wrong way round: neither counts.
    let (head, html) = person.send(
        "/approvals",
        &[
            ("decision", "approve"),
            ("shape", &shape),
            ("id", &first),
            ("id", &second),
            (&named_first, &of_second),
            (&named_second, &of_first),
        ],
    );
    assert_eq!(head.status, 200, "{html}");
    for id in [&first, &second, &other] {
        assert_eq!(state(&person, id), "pending", "{id}");
    }
    let (head, _) = person.send(
        "/approvals",
        &[
            ("decision", "deny"),
            ("shape", &shape),
            ("id", &first),
            (&named_first, &of_first),
        ],
    );
    assert_eq!(head.status, 200);
    assert_eq!(state(&person, &first), "denied");
}

/// The state of a question.
fn state(person: &Person<'_>, id: &str) -> String {
    let (_, json) = person.get(&format!("/approvals/{id}.json"));
    let approval: Value = serde_json::from_str(&json).unwrap();
    approval["approval"]["state"].as_str().unwrap().to_owned()
}
