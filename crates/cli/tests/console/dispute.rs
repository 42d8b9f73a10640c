//! A dispute: from an order to its payment, for readers who are not engineers, and as one file that a stranger verifies.

use std::collections::BTreeSet;
use std::io::{Cursor, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::browser::Browser;
use super::verifier_page::Offline;
use super::world::{Person, World};

/// A purchase up to the payment that its buyer has confirmed; gives the id of the order.
pub(crate) fn purchase(world: &World) -> String {
    hesitant_purchase(world, 0)
}

/// A purchase whose buyer changes the cart this many times before they decide.
fn hesitant_purchase(world: &World, changes: usize) -> String {
    let buyer = Buyer {
        world,
        user: "u_anna",
        key: None,
    };
    let (id, amount) = buyer.ordered(3, changes);
    let approval = buyer.asked_to_pay(&id, &amount);
    world.run(&["approvals", "approve", &approval]);
    let intent = json!({"draft_order_id": id, "amount": amount, "currency": "EUR"});
    let paid = buyer.sent("payment.create_payment_intent", &intent);
    assert_eq!(paid["data"]["status"], "requires_user_action", "{paid}");
    id
}

/// A buyer, by whichever credential.
pub(crate) struct Buyer<'w> {
    pub(crate) world: &'w World,
    pub(crate) user: &'static str,
    pub(crate) key: Option<&'w str>,
}

impl Buyer<'_> {
    /// A payment that waits for a person; gives the id of the question.
    pub(crate) fn is_asked_to_pay(&self, quantity: u32) -> String {
        let (id, amount) = self.ordered(quantity, 0);
        self.asked_to_pay(&id, &amount)
    }

    fn asked_to_pay(&self, order: &str, amount: &Value) -> String {
        let intent = json!({"draft_order_id": order, "amount": amount, "currency": "EUR"});
        let asked = self.sent("payment.create_payment_intent", &intent);
        let approval = asked["error"]["details"]["approval_id"].as_str();
        approval.unwrap_or_else(|| panic!("{asked}")).to_owned()
    }

    /// A draft order whose price and stock are locked, of a buyer who has changed the cart this many times: its id and its total.
    fn ordered(&self, quantity: u32, changes: usize) -> (String, Value) {
        let items = json!([{"sku": "SKU-0002-01", "quantity": quantity}]);
        let berlin = json!({"country": "DE", "postal_code": "10115"});
        let call = |tool: &str, arguments: Value| self.sent(tool, &arguments);
        let evidence = |reply: &Value| reply["evidence"]["snapshot_id"].clone();
        let quote = evidence(&call(
            "pricing.get_realtime_quote",
            json!({"items": items, "currency": "EUR"}),
        ));
        let ways = call(
            "shipping.quote_options",
            json!({"items": items, "destination": berlin, "currency": "EUR"}),
        );
        let (shipping, option) = (
            evidence(&ways),
            ways["data"]["options"][0]["option_id"].clone(),
        );
        let tax = evidence(&call(
            "tax.estimate_duties_and_taxes",
            json!({"quote_snapshot_id": quote,
        "shipping_snapshot_id": shipping, "shipping_option_id": option, "destination": berlin}),
        ));
        let compliance = evidence(&call(
            "compliance.check_item",
            json!({"items": items, "destination": berlin}),
        ));
        let cart = call("cart.create", json!({"currency": "EUR"}))["data"]["cart_id"].clone();
        call(
            "cart.add_item",
            json!({"cart_id": cart, "sku": "SKU-0002-01", "quantity": quantity}),
        );
        for at in 0..changes {
            let quantity = if at + 1 == changes { 3 } else { 1 + at % 5 };
            let arguments = json!({"cart_id": cart, "sku": "SKU-0002-01", "quantity": quantity});
            let key = format!("change {at}");
            let body =
                json!({"arguments": arguments, "user_id": self.user, "idempotency_key": key});
            let reply = self.world.call("cart.update_quantity", &body, self.key);
            assert_eq!(reply["ok"], true, "{reply}");
        }
        call(
            "checkout.select_shipping_option",
            json!({"cart_id": cart, "shipping_snapshot_id": shipping,
        "shipping_option_id": option}),
        );
        let total = evidence(&call(
            "checkout.compute_total",
            json!({"cart_id": cart, "quote_snapshot_id": quote,
        "tax_snapshot_id": tax, "compliance_snapshot_id": compliance}),
        ));
        let bundle = evidence(&call(
            "evidence.create_snapshot",
            json!({"snapshot_ids": [quote, shipping, tax, compliance, total]}),
        ));
        let order = call(
            "checkout.create_draft_order",
            json!({"cart_id": cart, "evidence_snapshot_id": bundle}),
        );
        let order = &order["data"];
        let id = order["draft_order_id"].clone();
        call(
            "checkout.lock_price_and_stock",
            json!({"draft_order_id": id}),
        );
        let amount = order["pricing_breakdown"]["total"]["amount"].clone();
        (id.as_str().unwrap().to_owned(), amount)
    }

    /// A call on behalf of the buyer, with a key of its own.
    fn sent(&self, tool: &str, arguments: &Value) -> Value {
        let key = format!("{tool}-{}", arguments.to_string().len());
        let body = json!({"arguments": arguments, "user_id": self.user, "idempotency_key": key});
        let reply = self.world.call(tool, &body, self.key);
        let may_wait = tool.starts_with("payment");
        assert!(reply["ok"] == true || may_wait, "{tool}: {reply}");
        reply
    }
}

fn json_of(world: &World, words: &[&str]) -> Value {
    serde_json::from_str(&world.run(&[words, &["--json"]].concat())).unwrap()
}

/// N5, F10: an order leads to what it rests on, to the payment, to the question and the answer, and to the people who looked; nothing
/// sealed is shown without a reason. Records of other tools make a case as well.
#[test]
fn an_order_is_told_from_quote_to_payment() {
    let world = World::start(&[]);
    let order = purchase(&world);
    world.call(
        "notes.add",
        &json!({"arguments": {"text": "tea"}, "user_id": "u_anna"}),
        None,
    );
    let told = json_of(&world, &["case", &order]);
    let steps = told["story"]["steps"].as_array().unwrap();
    let has = |tool: &str, part: &str, title: &str| {
        let found = steps
            .iter()
            .filter(|step| step["tool"] == tool && step["title"] == title);
        assert!(
            found.clone().any(|step| step["part"] == part),
            "{tool} {part} {title}: {steps:#?}"
        );
    };
    has("pricing.get_realtime_quote", "ground", "Price quote");
    has(
        "tax.estimate_duties_and_taxes",
        "ground",
        "Estimate of duties and taxes",
    );
    has("checkout.create_draft_order", "named", "Draft order");
    for tool in [
        "cart.create",
        "cart.add_item",
        "checkout.select_shipping_option",
    ] {
        let step = steps.iter().find(|step| step["tool"] == tool);
        let step = step.unwrap_or_else(|| panic!("{tool}: {steps:#?}"));
        assert_eq!(step["part"], "ground", "{step}");
    }
    has(
        "checkout.lock_price_and_stock",
        "followed",
        "Hold on price and stock",
    );
    has(
        "payment.create_payment_intent",
        "followed",
        "The user was asked to confirm",
    );
    has(
        "payment.create_payment_intent",
        "followed",
        "The question was answered: yes",
    );
    has(
        "payment.create_payment_intent",
        "followed",
        "Preparation of the payment",
    );
    assert!(!steps.iter().any(|step| step["tool"] == "notes.add"));
    assert!(!told.to_string().contains("Earbuds") && !told["story"].to_string().contains("EUR"));
    assert_eq!(told["story"]["looks"], json!([]));
    let rules = told["story"]["rules"].as_array().unwrap();
    let tax = rules
        .iter()
        .find(|rule| rule["name"] == "Duties and taxes")
        .unwrap();
    assert!(tax["label"].as_str().unwrap().starts_with("20"), "{tax}");

    names_lead_to_it(&world, &order, steps);
    content_is_told_with_a_reason(&world, &order);
    other_tools_make_a_case(&world);
}

fn names_lead_to_it(world: &World, order: &str, steps: &[Value]) {
    // The payment and its call lead to the same case, and the record of the order leads on.
    let payment = steps
        .iter()
        .find(|step| step["title"] == "Preparation of the payment" && step["tone"] == "ok");
    let payment = payment.unwrap()["id"].as_str().unwrap();
    let again = json_of(world, &["case", payment]);
    assert_eq!(
        again["case"]["things"],
        json!([]),
        "it is known from sealed content only"
    );
    assert_eq!(
        again["story"]["steps"].as_array().unwrap().len(),
        steps.len()
    );
    let shown = json_of(world, &["evidence", "show", order]);
    let later: Vec<&str> = shown["later"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["event"].as_str())
        .collect();
    assert!(
        later.contains(&"asked") && later.contains(&"approved"),
        "{shown}"
    );
}

fn content_is_told_with_a_reason(world: &World, order: &str) {
    let opened = json_of(world, &["case", order, "--reason", "dispute 4711"]);
    let opened = opened["story"].as_object().unwrap();
    let total = opened["facts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|fact| fact["label"] == "Total")
        .unwrap();
    assert!(
        total["value"].as_str().unwrap().starts_with("EUR ")
            && total["value"].as_str().unwrap().contains('.')
    );
    let asked = opened["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["title"] == "The user was asked to confirm");
    assert!(
        asked.unwrap()["shown"]["lines"]
            .to_string()
            .contains("Total"),
        "{asked:?}"
    );
    let looks = opened["looks"].as_array().unwrap();
    assert_eq!(looks.len(), 1, "this very access is there");
    assert_eq!(looks[0]["by"], "the operator tester");
    let text = world.run(&["case", order]);
    assert!(
        text.contains("Hold on price and stock") && text.contains("Confirmed by"),
        "{text}"
    );
}

fn other_tools_make_a_case(world: &World) {
    // A tool that knows nothing of orders.
    let note = world.call("notes.add", &json!({"arguments": {"text": "tea"}}), None);
    let note = json_of(world, &["case", note["request_id"].as_str().unwrap()]);
    assert_eq!(
        note["story"]["steps"][0]["title"],
        "Call of the tool notes.add"
    );
}

/// A19, A22: a hold of an order covers its whole case and nothing else; after an erasure the case still says that it was confirmed,
/// and by whom and when the user was erased.
#[test]
fn a_hold_covers_a_case_and_an_erasure_is_told() {
    let world = World::start(&[]);
    let order = purchase(&world);
    let note = json!({"arguments": {"text": "tea"}, "user_id": "u_anna"});
    let note = world.call("notes.add", &note, None)["evidence"]["snapshot_id"].clone();
    let told = json_of(&world, &["case", &order]);
    let steps = told["story"]["steps"].as_array().unwrap();
    let own: BTreeSet<&str> = steps
        .iter()
        .map(|step| step["id"].as_str().unwrap())
        .collect();
    let because = ["--reason", "dispute 4711"];
    world.run(&[&["evidence", "hold", order.as_str()][..], &because].concat());
    let holds = json_of(&world, &["evidence", "holds"]);
    let holds = holds.as_array().unwrap();
    let held: BTreeSet<&str> = holds
        .iter()
        .map(|hold| hold["record"].as_str().unwrap())
        .collect();
    assert_eq!(held, own);
    assert!(!held.contains(note.as_str().unwrap()));
    for hold in holds {
        assert_eq!(
            (&hold["order"], &hold["reason"]),
            (&json!(order), &json!("dispute 4711"))
        );
    }
    let erase = [&["evidence", "erase", "u_anna"][..], &because].concat();
    assert!(world.refused(&erase).contains("under a hold: dispute 4711"));
    world.run(&[&["evidence", "release", order.as_str()][..], &because].concat());
    assert_eq!(json_of(&world, &["evidence", "holds"]), json!([]));
    world.run(&erase);

    let named = steps.iter().find(|step| step["part"] == "named").unwrap();
    let id = named["id"].as_str().unwrap();
    let told = json_of(&world, &["case", id]);
    let titles = |told: &Value, title: &str| {
        let steps = told["story"]["steps"].as_array().unwrap();
        steps.iter().filter(|step| step["title"] == title).count()
    };
    assert_eq!(titles(&told, "The user was erased"), 1, "{told:#}");
    let notes = told["story"]["notes"].to_string();
    assert!(
        notes.contains("The user was erased: what was asked, answered, shown and confirmed can no longer be read"),
        "{notes}"
    );
    let text = world.run(&["case", id]);
    for words in ["User erased by", "the operator tester"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let mut person = world.operator();
    let (_, page) = person.get(&format!("/cases/{id}"));
    assert!(
        page.contains("User erased by") && !page.contains("id=\"keep\""),
        "{page}"
    );
    // No reason opens what is gone, so none is asked for.
    for offered in ["id=\"reason\"", "id=\"zip\"", "Open and show"] {
        assert!(!page.contains(offered), "{offered}: {page}");
    }
    let (answer, _) = person.send("/erasures", &[("name", id), ("reason", "again")]);
    assert_eq!(answer.status, 404);
}

/// A19: hold and erase are buttons where a person looks: on the page of a case, of a call, and on the list of a user's calls. An erasure
/// asks twice and names what stays; both leave the records of the command.
#[test]
fn holds_and_erasures_have_buttons() {
    let world = World::start(&[]);
    let order = purchase(&world);
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    let held = || {
        json_of(&world, &["evidence", "holds"])
            .as_array()
            .unwrap()
            .len()
    };
    let press = |page: &str, form: &str, reason: &str| {
        browser.open(&format!("{}{page}", world.url));
        browser.click("#keep summary");
        browser.write(&format!("#{form}-reason"), reason);
        browser.click(&format!("#{form} button"));
    };
    // The whole case, by its order.
    press(&format!("/cases/{order}"), "hold", "dispute 4711");
    browser.until("document.querySelector('#kept')?.innerText.includes('records of order_')");
    assert!(held() > 10);
    // An erasure is refused meanwhile.
    press("/calls?user=u_anna", "erase", "asked for it");
    browser.until("document.querySelector('#stays')?.innerText.includes('the log still verifies')");
    browser.until(&format!(
        "decodeURIComponent(document.querySelector('#held a').href).endsWith('/cases/{order}#keep')"
    ));
    browser.write("#sure-user", "u_ann");
    browser.click("main form button");
    browser.until("document.querySelector('[role=alert]')");
    browser.write("#sure-user", "u_anna");
    browser.click("main form button");
    browser.until("document.body.innerText.includes('under a hold: dispute')");
    // The browser notes the status of the refusal, and nothing else.
    let refused = browser.complaints();
    assert!(
        refused.len() == 1 && refused[0].contains("409"),
        "{refused:?}"
    );
    browser.open(&format!("{}/cases/{order}", world.url));
    browser.click("#keep summary");
    browser.write("#hold-reason", "closed");
    browser.click("#hold button[value=release]");
    browser.until("document.querySelector('#kept')");
    assert_eq!(held(), 0);
    // One call.
    let call = world.newest_call()["evidence"].as_str().unwrap().to_owned();
    press(&format!("/calls/{call}"), "hold", "dispute 4712");
    browser.until("document.querySelector('#kept')");
    assert_eq!(held(), 1);
    browser.open(&format!("{}/calls/{call}", world.url));
    browser.until("document.querySelector('#keep .tag')");
    world.run(&["evidence", "release", &call, "--reason", "closed"]);
    // The user, asked twice.
    press(&format!("/calls/{call}"), "erase", "asked for it");
    browser.until("document.querySelector('#sure-user')");
    browser.write("#sure-user", "u_anna");
    browser.click("main form button");
    browser.until("document.querySelector('#kept')?.innerText.includes('sealed contents')");
    let acts = json_of(&world, &["evidence", "list", "--kind", "erasure"]);
    assert_eq!(acts.as_array().unwrap().len(), 1, "{acts}");
    assert_eq!(browser.complaints(), [""; 0]);
    only_operators_hold_and_erase(&world);
}

fn only_operators_hold_and_erase(world: &World) {
    // Without the token of the session, and without the right.
    let person = world.operator();
    for path in ["/holds", "/erasures"] {
        let (head, _) = person.post(path, &[("user", "bob"), ("reason", "no token")]);
        assert_eq!(head.status, 403, "{path}");
    }
    let bob = world.run(&["keys", "create", "--user", "bob"]);
    let mut bob = world.person(&bob);
    for path in ["/holds", "/erasures"] {
        let fields = [("user", "bob"), ("reason", "mine"), ("sure", "bob")];
        let (head, text) = bob.send(path, &fields);
        assert_eq!(head.status, 403, "{path}: {text}");
    }
}

/// N5: the page tells it in both languages, opens nothing without a reason and a right, and names no order of another user.
#[test]
fn the_page_of_a_case_is_for_people() {
    let world = World::start(&[]);
    let order = purchase(&world);
    let mut person = world.operator();
    let (head, page) = person.get(&format!("/cases/{order}"));
    assert_eq!(head.status, 200, "{page}");
    assert!(page.len() <= 100_000, "{} bytes", page.len());
    assert!(
        page.contains("Preparation of the payment")
            && page.contains("No person has opened")
            && !page.contains("EUR ")
    );
    let (head, chinese) =
        person.with_header("accept-language", "zh-CN", &format!("/cases/{order}"));
    assert!(
        head.status == 200 && chinese.contains("准备付款"),
        "{chinese}"
    );
    let (_, twin) = person.get(&format!("/cases/{order}.json"));
    let twin: Value = serde_json::from_str(&twin).unwrap();
    assert_eq!(twin["case"]["things"], json!([order]));
    let (head, page) = person.get(&format!("/search?q={order}"));
    assert_eq!(
        (head.status, head.of("location")),
        (303, &*format!("/cases/{}", order.replace('_', "%5F"))),
        "{page}"
    );
    let (head, _) = person.send(&format!("/cases/{order}/open"), &[("reason", " ")]);
    assert_eq!(head.status, 400);
    let (head, page) = person.send(
        &format!("/cases/{order}/open"),
        &[("reason", "dispute 4711")],
    );
    assert_eq!(head.status, 200, "{page}");
    assert!(
        page.contains("EUR ") && page.contains("opened records, to read or to export them"),
        "{page}"
    );
    assert!(page.len() <= 100_000, "{} bytes", page.len());

    // Somebody else, and somebody who may not open anything.
    let bob = world.run(&["keys", "create", "--user", "bob"]);
    let anna = world.run(&["keys", "create", "--user", "u_anna"]);
    let stranger = signed_in(&world, &bob);
    assert_eq!(stranger.get(&format!("/cases/{order}")).0.status, 404);
    let mut anna = signed_in(&world, &anna);
    assert_eq!(anna.get(&format!("/cases/{order}")).0.status, 200);
    let (head, refused) = anna.send(&format!("/cases/{order}/open"), &[("reason", "mine")]);
    assert_eq!(head.status, 403, "{refused}");
}

/// N5: a long case stays within 100 KB, sealed and opened; steps and details that did not fit are one click away, and JSON has all of
/// them at once.
#[test]
fn a_long_case_has_pages() {
    let world = World::start(&[]);
    let order = hesitant_purchase(&world, 120);
    let mut person = world.operator();
    let (_, twin) = person.get(&format!("/cases/{order}.json"));
    let twin: Value = serde_json::from_str(&twin).unwrap();
    let steps = twin["story"]["steps"].as_array().unwrap().len();
    assert!(steps > 120, "{steps}");
    let on = |page: &str| page.matches("<li class=\"ok ground\"").count();
    let (_, page) = person.get(&format!("/cases/{order}"));
    assert!(page.len() <= 100_000, "{} bytes", page.len());
    let next = super::between(&page, &format!("href=\"/cases/{order}?from="), "\"");
    let (_, later) = person.get(&format!("/cases/{order}?from={next}"));
    assert!(later.len() <= 100_000, "{} bytes", later.len());
    assert!(on(&page) > 10 && on(&later) > 10 && on(&page) < steps);

    let open = format!("/cases/{order}/open");
    let (_, page) = person.send(&open, &[("reason", "dispute 4711")]);
    assert!(page.len() <= 100_000, "{} bytes", page.len());
    assert!(!page.contains("id=\"wanted\""), "{page}");
    let folded = super::between(&page, "form=\"more\" name=\"step\" value=\"", "\"");
    let fields = [
        ("reason", "dispute 4711"),
        ("from", "0"),
        ("step", &*folded),
    ];
    let (_, page) = person.send(&open, &fields);
    assert!(page.len() <= 100_000, "{} bytes", page.len());
    let wanted = super::between(&page, &format!("id=\"{folded}\""), "</li>");
    assert!(wanted.contains("<details open id=\"wanted\">"), "{wanted}");
    let next = super::between(&page, "class=\"right\" name=\"next\" value=\"", "\"");
    let fields = [("reason", "dispute 4711"), ("from", "0"), ("next", &*next)];
    let (_, later) = person.send(&open, &fields);
    assert!(later.len() <= 100_000, "{} bytes", later.len());
    let first = later
        .split_once("<ol class=\"steps case-steps\">")
        .unwrap()
        .1;
    let first = super::between(first, "id=\"", "\"");
    assert_eq!(
        twin["story"]["steps"][next.parse::<usize>().unwrap()]["id"],
        first
    );
}

/// N5: a printed case has every value that the page has folded, and no form or button; the facts and the story come before the form that
/// opens it.
#[test]
fn a_case_is_printed_whole() {
    let world = World::start(&[]);
    let order = purchase(&world);
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/cases/{order}", world.url));
    let order_of = "['.case-facts', '.case-steps', '#open-case'].map(css => document.querySelector(css).getBoundingClientRect().top)";
    let tops = browser.eval(order_of);
    let tops: Vec<f64> = tops
        .as_array()
        .unwrap()
        .iter()
        .map(|top| top.as_f64().unwrap())
        .collect();
    assert!(tops.is_sorted(), "{tops:?}");
    browser.write("#reason", "dispute 4711");
    browser.submit("#open-case button.go");
    let folded = "[...document.querySelectorAll('#case details > dl, #case details > p')]";
    let shown = format!("{folded}.filter(one => one.checkVisibility()).length");
    let all = browser.eval(&format!("{folded}.length"));
    assert!(all.as_u64() > Some(10), "{all}");
    assert_eq!(browser.eval(&shown), json!(0));
    browser.devtools("Emulation.setEmulatedMedia", &json!({"media": "print"}));
    assert_eq!(browser.eval(&shown), all);
    let hidden = "[...document.querySelectorAll('button, .btn, form, .side')].filter(one => one.checkVisibility()).map(one => one.outerHTML)";
    assert_eq!(browser.eval(hidden), json!([]));
    let printed = browser.devtools("Page.printToPDF", &json!({}));
    // `%PDF` in base64.
    assert!(printed["data"].as_str().unwrap().starts_with("JVBERi"));
}

fn signed_in<'w>(world: &'w World, key: &str) -> Person<'w> {
    let mut person = Person::new(world);
    let (head, _) = person.post("/sign-in", &[("key", key)]);
    assert_eq!(head.status, 303);
    person.keep(&head);
    person
}

/// N5, A22: one ZIP, which only its owner can read; the verifier in it, opened without a network, says that the bundle in it is valid, by the
/// key of the log, and not valid when a byte was changed. The page has the same file behind a button.
#[test]
fn a_dispute_is_one_zip() {
    let world = World::start(&[]);
    let order = purchase(&world);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dispute.zip");
    world.run(&[
        "case",
        &order,
        "--reason",
        "dispute 4711",
        "--zip",
        file.to_str().unwrap(),
    ]);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let inside = unpacked(&file, folder.path());
    let key = std::fs::read_to_string(world.data("log.pub")).unwrap();
    it_is_verified_offline(&inside, key.trim());
    let proofs = folder.path().join("proofs.zip");
    world.run(&["case", &order, "--zip", proofs.to_str().unwrap()]);
    let bytes = std::fs::read(&proofs).unwrap();
    let canary = b"Earbuds";
    assert!(
        !bytes.windows(canary.len()).any(|window| window == canary),
        "nothing is opened without a reason"
    );
    the_page_has_it_behind_a_button(&world, &order, folder.path(), key.trim());
}

fn it_is_verified_offline(inside: &Path, key: &str) {
    let offline = Offline::open(&inside.join("verify.html"));
    let report = offline.check(&inside.join("bundle.json"), "", "");
    assert_eq!(report["verdict"], "consistent", "{report}");
    let report = offline.check(&inside.join("bundle.json"), key, "");
    assert_eq!(
        (&report["verdict"], &report["findings"]),
        (&json!("valid"), &json!([]))
    );
    assert!(
        report["records"].as_array().unwrap().len() >= 10,
        "{report}"
    );
    let text = std::fs::read_to_string(inside.join("bundle.json")).unwrap();
    let altered = text.replacen("EUR", "USD", 1);
    assert_ne!(text, altered);
    std::fs::write(inside.join("altered.json"), altered).unwrap();
    let report = offline.check(&inside.join("altered.json"), key, "");
    assert_eq!(report["verdict"], "invalid", "{report}");
    assert!(
        report["findings"][0]["id"]
            .as_str()
            .unwrap()
            .starts_with("ev_"),
        "{report}"
    );
    offline.assert_silent();
    for (page, words) in [
        ("case.html", "Preparation of the payment"),
        ("case.zh.html", "准备付款"),
    ] {
        offline
            .browser
            .open(&format!("file://{}", inside.join(page).display()));
        offline
            .browser
            .until(&format!("document.body.innerText.includes('{words}')"));
        offline
            .browser
            .until("document.body.innerText.includes('EUR ')");
        assert_eq!(offline.browser.complaints(), [""; 0], "{page}");
    }
    assert!(
        std::fs::read_to_string(inside.join("README.txt"))
            .unwrap()
            .contains("如何核验")
    );
}

fn the_page_has_it_behind_a_button(world: &World, order: &str, folder: &Path, key: &str) {
    let down = folder.join("down");
    std::fs::create_dir(&down).unwrap();
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.devtools(
        "Browser.setDownloadBehavior",
        &json!({"behavior": "allow", "downloadPath": down}),
    );
    browser.open(&format!("{}/cases/{order}", world.url));
    browser.write("#reason", "dispute 4711");
    browser.click("#zip");
    let zip = down.join(format!("case-{order}.zip"));
    // The browser makes the file before it fills it. The watchdog of the world ends a wait that has no end.
    let is_whole = || {
        let bytes = std::fs::read(&zip).unwrap_or_default();
        zip::ZipArchive::new(Cursor::new(bytes)).is_ok()
    };
    while !is_whole() {
        std::thread::yield_now();
    }
    let again = unpacked(&zip, &down);
    let text = std::fs::read(again.join("bundle.json")).unwrap();
    let report = countersign_evidence::bundle::Bundle::parse(text).unwrap();
    assert!(report.verify(Some(&key.parse().unwrap()), None).is_valid());
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Unpacks a case, as its recipient does; returns the folder in it.
fn unpacked(file: &Path, to: &Path) -> std::path::PathBuf {
    let bytes = std::fs::read(file).unwrap();
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut folder = to.to_owned();
    for at in 0..archive.len() {
        let mut inner = archive.by_index(at).unwrap();
        let path = to.join(inner.enclosed_name().unwrap());
        path.parent().unwrap().clone_into(&mut folder);
        std::fs::create_dir_all(&folder).unwrap();
        let mut content = Vec::new();
        inner.read_to_end(&mut content).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}
