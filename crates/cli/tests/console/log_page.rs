//! The evidence log, the search, and why a call was refused.

use serde_json::{Value, json};

use super::browser::Browser;
use super::world::{Person, World};

fn twin(person: &Person<'_>, path: &str) -> Value {
    let (head, json) = person.get(path);
    assert_eq!(head.status, 200, "{path}: {json}");
    serde_json::from_str(&json).unwrap()
}

/// A21, B17: each act on the log says who did what to which record; why is sealed, and is shown to those who say why they ask. Pages reach
/// every act, checkpoints lead to their tiles, and the page says that the log has no witness.
#[test]
#[expect(clippy::too_many_lines, reason = "one story, in its order")]
fn acts_say_who_what_and_why() {
    let world = World::start(&[]);
    world.run(&["keys", "create", "--user", "ann"]);
    let auditor = world.run(&["keys", "create", "--user", "eve", "--scope", "calls:read"]);
    let agent = world.run(&["keys", "create", "--agent", "shopper", "--for", "ann"]);
    let mut operator = world.operator();
    let mut calls = Vec::new();
    for text in ["one", "two"] {
        let body = json!({"arguments": {"text": text}});
        world.call("notes.add", &body, Some(&agent));
        calls.push(world.newest_call()["evidence"].as_str().unwrap().to_owned());
    }
    for at in 0..60 {
        let open = format!("/evidence/{}/open", calls[at % 2]);
        let reason = format!("look number {at}");
        let (head, html) = operator.send(&open, &[("reason", &reason)]);
        assert_eq!(head.status, 200, "{html}");
    }
    let first = twin(&operator, "/evidence.json");
    let acts = first["acts"].as_array().unwrap();
    assert_eq!(acts.len(), 50);
    assert_eq!(acts[0]["event"], "open");
    assert_eq!(acts[0]["by"]["id"], "operator/tester", "{}", acts[0]);
    assert_eq!(acts[0]["about"], json!([calls[1]]));
    assert!(acts.iter().all(|act| act["reason"].is_null()));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = twin(&operator, &format!("/evidence.json?cursor={cursor}"));
    assert_eq!(second["acts"].as_array().unwrap().len(), 10);
    assert_eq!(second.get("next_cursor"), None);

    // Those who may not open records see who and what, and not why.
    let mut eve = world.person(&auditor);
    let (_, html) = eve.get("/evidence");
    assert!(
        html.contains("operator/tester") && html.contains("sealed"),
        "{html}"
    );
    assert!(!html.contains("id=\"reasons\""), "{html}");
    let record = acts[0]["evidence"].as_str().unwrap();
    let fields = [("record", record), ("reason", "I want to know")];
    assert_eq!(eve.send("/evidence/reasons", &fields).0.status, 403);
    for fields in [
        [("record", record), ("reason", " ")],
        [
            ("record", calls[0].as_str()),
            ("reason", "a call is no act"),
        ],
        [("other", ""), ("reason", "nothing")],
    ] {
        let (head, _) = operator.send("/evidence/reasons", &fields);
        assert_eq!(head.status, 400, "{fields:?}");
    }

    let browser = Browser::start((1280, 1000), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/evidence", world.url));
    browser.until(
        "document.querySelector('#witnesses')?.innerText.includes('No witness is configured')",
    );
    browser.write("#reasons #reason", "the yearly review");
    browser.click("#reasons button");
    browser.until("document.querySelector('#acts')?.innerText.includes('look number 59')");
    // Every checkpoint has a time, and the page says whether the log was verified, and how to do it.
    browser.until("[...document.querySelectorAll('#checkpoints tbody tr')].every(row => row.querySelector('time')?.dateTime)");
    browser.until(
        "document.querySelector('#verified').innerText.includes('countersign verify --all')",
    );
    world.run(&["verify", "--all"]);
    let (_, html) = operator.get("/evidence");
    let verified = super::between(&html, "id=\"verified\"", "</div>");
    assert!(
        verified.contains("Verified whole up to record "),
        "{verified}"
    );
    assert!(verified.contains("countersign verify --all"), "{verified}");
    let tile = browser.eval("document.querySelector('#checkpoints a').getAttribute('href')");
    let (head, _) = operator.get(tile.as_str().unwrap());
    assert_eq!(head.status, 200, "{tile}");
    assert_eq!(head.of("content-type"), "application/octet-stream");
    assert_eq!(browser.complaints(), [""; 0]);
    // One record says who read them all, and is the newest.
    let newest = &twin(&operator, "/evidence.json")["acts"][0];
    assert_eq!(newest["event"], "read_reasons", "{newest}");
}

/// B17: a call is found by the idempotency key of its caller, and by the user and the key; not by another user's.
#[test]
fn a_key_finds_its_call() {
    let world = World::start(&[]);
    let ann = world.run(&["keys", "create", "--user", "ann"]);
    let bob = world.run(&["keys", "create", "--user", "bob"]);
    let body = json!({
        "arguments": {"text": "one"},
        "idempotency_key": "order-77",
        "request_id": "mine-1",
        "session_id": "visit-9",
    });
    let reply = world.call("notes.add", &body, Some(&ann));
    assert_eq!(reply["ok"], true, "{reply}");
    let evidence = world.newest_call()["evidence"].as_str().unwrap().to_owned();
    let found = json!(
        format!("/calls/{evidence}")
            .replace('_', "%5F")
            .replace('-', "%2D")
    );
    let operator = world.operator();
    let asked = |person: &Person<'_>, text: &str| {
        twin(person, &format!("/search.json?q={text}"))["found"].clone()
    };
    assert_eq!(asked(&operator, "ann%20order-77"), found);
    assert_eq!(asked(&operator, "order-77"), found);
    assert_eq!(asked(&world.person(&ann), "order-77"), found);
    assert_eq!(asked(&world.person(&bob), "order-77"), Value::Null);
    assert_eq!(asked(&world.person(&bob), "ann%20order-77"), Value::Null);
    assert_eq!(asked(&operator, "bob%20order-77"), Value::Null);
    for (text, page) in [
        ("mine-1", json!("/calls/mine%2D1")),
        ("ann%20mine-1", found.clone()),
        ("bob%20mine-1", Value::Null),
        ("visit-9", json!("/sessions/visit%2D9")),
        ("bob%20visit-9", Value::Null),
        (evidence.as_str(), found.clone()),
        ("notes.add", json!("/tools/notes%2Eadd")),
        ("ann", json!("/calls?user=ann")),
        ("nobody-has-this", Value::Null),
    ] {
        assert_eq!(asked(&operator, text), page, "{text}");
    }
    let session = asked(&operator, "ann%20visit-9");
    assert!(
        session.as_str().unwrap().starts_with("/sessions/ss%5F"),
        "{session}"
    );
    let (head, _) = operator.get("/search?q=order-77");
    assert_eq!(
        (head.status, head.of("location")),
        (303, found.as_str().unwrap())
    );
    let (_, html) = operator.get(found.as_str().unwrap());
    assert!(html.contains("notes.add"));
}

/// B17: a record is found by the hash of its leaf, as the record that rests on it has it; not by those who may not see all records.
#[test]
fn a_leaf_is_found_by_its_hash() {
    let world = World::start(&[]);
    let ann = world.run(&["keys", "create", "--user", "ann"]);
    let bob = world.run(&["keys", "create", "--user", "bob"]);
    let operator = world.operator();
    let call = |tool: &str, arguments: Value| {
        world.call(tool, &json!({"arguments": arguments}), Some(&ann))
    };
    let item = json!([{"sku": "SKU-0002-01", "quantity": 1}]);
    let berlin = json!({"country": "DE", "postal_code": "10115"});
    let quoted = call(
        "shipping.quote_options",
        json!({"items": item, "destination": berlin}),
    );
    let cart = call("cart.create", json!({}))["data"]["cart_id"].clone();
    call(
        "cart.add_item",
        json!({"cart_id": cart, "sku": "SKU-0002-01", "quantity": 1}),
    );
    let chosen = call(
        "checkout.select_shipping_option",
        json!({
            "cart_id": cart,
            "shipping_snapshot_id": quoted["evidence"]["snapshot_id"],
            "shipping_option_id": quoted["data"]["options"][0]["option_id"],
        }),
    );
    let newest = chosen["evidence"]["snapshot_id"].as_str();
    let newest = newest.unwrap_or_else(|| panic!("{chosen}"));
    let newest = twin(&operator, &format!("/calls/{newest}.json"));
    let ground = &newest["records"][0]["record"]["links"][0];
    let id = ground["id"].as_str().unwrap_or_else(|| panic!("{newest}"));
    let hash = ground["leaf"].as_str().unwrap().replace(':', "%3A");
    let page = format!("/calls/{id}")
        .replace('_', "%5F")
        .replace('-', "%2D");
    let asked =
        |person: &Person<'_>| twin(person, &format!("/search.json?q={hash}"))["found"].clone();
    // The leaf is found once it is in the tree; the watchdog ends a wait that does not end.
    while asked(&operator) == Value::Null {
        std::thread::yield_now();
    }
    assert_eq!(asked(&operator), json!(page));
    assert_eq!(asked(&world.person(&bob)), Value::Null);
}

/// A rule that refuses, at a known line.
const RULES: &str = r#"[defaults]
unlisted = "allow"

[[rules]]
name = "no-shouting"
match = "notes.add"
when = "args.text == 'LOUD'"
then = "deny"
"#;

/// A14, B17: a refused call leads to the line of the policy that refused it; the page and `countersign policy explain` say the same.
#[test]
fn a_refused_call_says_why() {
    says_why(&World::configured(
        "policy = 'policy.toml'\n[shop]\nenabled = true\n",
        &[("policy.toml", RULES)],
    ));
}

/// A14, B17: the same where the policy is a table of the configuration.
#[test]
fn a_call_refused_by_the_configuration_says_why() {
    let within = RULES.replace("[defaults]", "[policy.defaults]");
    let within = within.replace("[[rules]]", "[[policy.rules]]");
    says_why(&World::configured(
        &format!("[shop]\nenabled = true\n\n{within}"),
        &[],
    ));
}

fn says_why(world: &World) {
    let ann = world.run(&["keys", "create", "--user", "ann"]);
    let body = json!({"arguments": {"text": "LOUD"}});
    let refused = world.call("notes.add", &body, Some(&ann));
    assert_eq!(refused["error"]["code"], "FORBIDDEN", "{refused}");
    let record = refused["evidence"]["snapshot_id"].as_str().unwrap();
    let record = record.to_owned();
    let told = world.run(&["policy", "explain", &record, "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();

    let browser = Browser::start((1280, 1000), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/calls/{record}", world.url));
    browser.click("#why");
    browser.until("location.pathname === '/policy/explain'");
    browser.until("document.querySelector('#because b')?.innerText === '[[rules]] no-shouting'");
    browser.until("document.querySelector('#decision').innerText.includes('refused')");
    browser.until("document.querySelector('#excerpt')?.innerText.includes('no-shouting')");
    assert_eq!(browser.complaints(), [""; 0]);

    let path = format!("/policy/explain.json?record={record}");
    let page = twin(&world.operator(), &path);
    for member in ["policy", "tool", "decision"] {
        assert_eq!(page[member], told[member], "{member}");
    }
    // A policy of the configuration is kept as a file of its own, which the command names: its lines are others.
    for member in ["entry", "says", "ruling"] {
        let (page, told) = (&page["because"][0], &told["because"][0]);
        assert_eq!(page[member], told[member], "{member}");
    }
    assert!(page["because"][0]["line"].is_u64(), "{page}");
    let excerpt = page["excerpt"].as_array().unwrap();
    assert_eq!(excerpt[0]["line"], page["because"][0]["line"], "{page}");
    assert_eq!(excerpt[1]["text"], "name = \"no-shouting\"", "{page}");
    assert_eq!(excerpt.len(), 5, "{page}");
    // The caller learns the rule that their record names, and nothing else of the file.
    let own = twin(&world.person(&ann), &path);
    assert_eq!(own["because"][0]["entry"], "[[rules]] no-shouting", "{own}");
    assert!(own["because"][0].get("line").is_none(), "{own}");
    assert_eq!(own["excerpt"], json!([]));
    let bob = world.run(&["keys", "create", "--user", "bob"]);
    assert_eq!(world.person(&bob).get(&path).0.status, 404);
    assert_eq!(world.operator().get("/policy/explain").0.status, 400);
}

/// A14, B17: the page of observed rules and `countersign policy report` say the same.
#[test]
fn observed_rules_are_reported() {
    let observed = format!(
        "{RULES}mode = \"observe\"\n\n[[rules]]\nname = \"no-spam\"\nmatch = \"notes.*\"\nwhen = \"has(args.text) && args.text == 'spam'\"\nthen = \"deny\"\n"
    );
    let world = World::configured(
        "policy = 'policy.toml'\n[shop]\nenabled = true\n",
        &[("policy.toml", &observed)],
    );
    let ann = world.run(&["keys", "create", "--user", "ann"]);
    for text in ["LOUD", "quiet", "LOUD", "spam"] {
        let body = json!({"arguments": {"text": text}});
        let reply = world.call("notes.add", &body, Some(&ann));
        assert_eq!(reply["ok"] == true, text != "spam", "{reply}");
    }
    let operator = world.operator();
    for (words, path, rules) in [
        (&[][..], "/policy/report.json", json!([["no-shouting", 2]])),
        (
            &["--all"][..],
            "/policy/report.json?days=1&all=true",
            json!([["no-shouting", 2], ["no-spam", 1]]),
        ),
    ] {
        let told = world.run(&[&["policy", "report", "--json"], words].concat());
        let told: Value = serde_json::from_str(&told).unwrap();
        let page = twin(&operator, path);
        assert_eq!(page["rules"], told, "{path}");
        assert_eq!(page["calls"], 4);
        let shown = page["rules"].as_array().unwrap().iter();
        let shown = shown.map(|rule| json!([rule["rule"], rule["calls"]]));
        assert_eq!(shown.collect::<Value>(), rules);
    }
    let (_, html) = operator.get("/policy/report");
    assert!(
        html.contains("no-shouting") && !html.contains("no-spam"),
        "{html}"
    );
    assert!(html.contains("The call is refused."), "{html}");
    let (_, html) = operator.get("/policy");
    assert!(html.contains("href=\"/policy/report\""), "{html}");
    assert_eq!(world.person(&ann).get("/policy/report").0.status, 403);
}

/// B17: what is wrong with the server and with the policy is reported in the language of the reader.
#[test]
fn problems_are_told_in_chinese() {
    let rules =
        "[policy.defaults]\nunlisted = \"allow\"\n\n[[policy.tools]]\nmatch = \"nothing.here\"\n";
    let world = World::configured(rules, &[]);
    let operator = world.operator();
    let (_, html) = operator.get("/policy");
    assert!(html.contains("matches no tool"), "{html}");
    let (_, html) = operator.with_header("accept-language", "zh-CN", "/policy");
    assert!(
        html.contains("不匹配任何工具") && !html.contains("matches no tool"),
        "{html}"
    );
}
