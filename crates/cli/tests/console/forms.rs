//! The form of a tool: every kind of value, and the same call to copy.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::browser::Browser;
use super::world::{Person, World};

/// B17: lists within a form grow, raw JSON keeps in step with them, and what the binder did with a value of an item stands at its
/// place, before and after.
#[test]
fn a_form_with_lists_grows() {
    let world = World::start(&[]);
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/tools/shipping.quote_options", world.url));
    browser.write("[name='s:/items/0/sku']", "SKU-0002-01");
    browser.write("[name='n:/items/0/quantity']", "1");
    browser.click("[data-add='/items']");
    browser.until("document.activeElement.name.startsWith('s:/items/1/')");
    browser.write("[name='s:/items/1/sku']", "SKU-0001-01");
    browser.write("[name='n:/items/1/quantity']", "2");
    browser.write("[name='s:/destination/country']", "DE");
    browser.write("[name='s:/destination/postal_code']", "10115");
    browser.until("JSON.parse(document.querySelector('#raw').value).items[1].quantity === 2");

    // The number as a text, as models write it.
    let raw = browser.eval("document.querySelector('#raw').value");
    let mut arguments: Value = serde_json::from_str(raw.as_str().unwrap()).unwrap();
    arguments["items"][1]["quantity"] = json!("2");
    browser.click(".tabs label:last-child");
    browser.write("#raw", &arguments.to_string());
    browser.click("form[data-call] button.go");
    browser.until("document.querySelector('#code')?.innerText === 'OK'");
    let rows = browser.eval("[...document.querySelectorAll('#changes tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))");
    let row = rows.as_array().unwrap().iter();
    let row = row
        .filter(|row| row[0] == "/items/1/quantity")
        .collect::<Vec<_>>();
    assert_eq!(row.len(), 1, "{rows}");
    assert_eq!(
        (&row[0][1], &row[0][2]),
        (&json!("\"2\""), &json!("2")),
        "{rows}"
    );

    // A longer list in the text makes more items in the form.
    arguments["items"]
        .as_array_mut()
        .unwrap()
        .push(json!({"sku": "SKU-0003-01", "quantity": 7}));
    browser.write("#raw", &arguments.to_string());
    browser.until("document.querySelector(\"[name='n:/items/2/quantity']\")?.value === '7'");
    // An answer is not cut off at the right.
    browser.until("[...document.querySelectorAll('section pre')].every(one => one.scrollWidth <= one.clientWidth)");

    // An item that is removed leaves no gap, and the last one is emptied.
    browser.click(".tabs label:first-child");
    let items = || {
        let raw = browser.eval("document.querySelector('#raw').value");
        let raw: Value = serde_json::from_str(raw.as_str().unwrap()).unwrap();
        raw["items"].clone()
    };
    browser.click("[data-drop='/items']");
    // What was written as a string is still one.
    let left =
        json!([{"sku": "SKU-0001-01", "quantity": "2"}, {"sku": "SKU-0003-01", "quantity": 7}]);
    assert_eq!(items(), left);
    browser.until("document.querySelector(\"[name='n:/items/1/quantity']\").value === '7'");
    assert_eq!(
        browser.eval("document.getElementsByName('n:/items/2/quantity').length"),
        0
    );
    browser.click(".item:nth-last-of-type(1) > [data-drop='/items']");
    browser.click("[data-drop='/items']");
    assert_eq!(items(), Value::Null);
    assert_eq!(
        browser.eval("document.querySelectorAll(\"[data-drop='/items']\").length"),
        1
    );
    assert_eq!(browser.complaints(), [""; 0]);
}

const PARCELS: &str = r#"
[[upstream]]
name = "depot"
base_url = "http://127.0.0.1:9"
allow_private = ["loopback"]

[[tool]]
name = "depot.find"
upstream = "depot"
description = "Finds parcels."
effect = "read"

[tool.input]
type = "object"

[tool.input.properties]
day = { type = "string", format = "date" }
at = { type = "string", format = "date-time" }
labels = { type = "object", additionalProperties = { type = "string" } }
sizes = { type = "array", items = { type = "number" } }
nick = { type = ["string", "null"] }
limit = { type = "object", properties = { amount = { type = "integer" }, currency = { type = "string" } } }
weight = { type = "number" }
stars = { enum = [1, 2, 3] }
days = { type = "array", items = { type = "string", format = "date" } }
"#;

/// B17: dates, times, maps, numbers, nullable values and money are fields, and raw JSON keeps in step with them.
#[test]
fn a_form_has_a_field_for_every_kind() {
    let world = World::configured(PARCELS, &[]);
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/tools/depot.find", world.url));
    browser.until("document.querySelector('#raw')");
    browser.eval_script(
        "for (const [name, value] of Object.entries({
            's:/day': '2026-11-17', 't:/at': '2026-11-17T14:41', 'k:/labels/0': '1', 'ks:/labels/0': 'red',
            'r:/sizes': '1\\n2.5', 's:/nick': 'n', 'n:/limit/amount': '3', 's:/limit/currency': 'EUR',
        })) document.getElementsByName(name)[0].value = value;
        document.getElementsByName('s:/nick')[0].dispatchEvent(new Event('input', { bubbles: true }));",
    );
    browser.click("[data-add='/labels']");
    browser.write("[name='k:/labels/1']", "size");
    browser.write("[name='ks:/labels/1']", "large");
    let written = browser.eval("JSON.parse(document.querySelector('#raw').value)");
    let expected = json!({
        "day": "2026-11-17", "at": "2026-11-17T14:41:00Z", "labels": {"1": "red", "size": "large"},
        "sizes": [1, 2.5], "nick": "n", "limit": {"amount": 3, "currency": "EUR"},
    });
    assert_eq!(written, expected);
    // An entry of a map that is removed is gone from the JSON.
    browser.click("[data-drop='/labels']");
    let labels = browser.eval("JSON.parse(document.querySelector('#raw').value).labels");
    assert_eq!(labels, json!({"size": "large"}));
    // The way back, with more entries than there are rows.
    browser.click(".tabs label:last-child");
    let text = json!({"labels": {"a": "1", "b": "2", "c": "3"}, "at": "2026-11-17T14:41:00+02:00", "sizes": [4]});
    browser.write("#raw", &text.to_string());
    let value =
        |name: &str| browser.eval(&format!("document.getElementsByName('{name}')[0]?.value"));
    for (name, expected) in [
        ("k:/labels/2", "c"),
        ("ks:/labels/2", "3"),
        ("t:/at", "2026-11-17T12:41"),
        ("r:/sizes", "4"),
        ("s:/day", ""),
    ] {
        let found = value(name);
        assert!(
            found.as_str().unwrap().starts_with(expected),
            "{name}: {found}"
        );
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

/// B17: raw JSON and fields in step change no value: digits of a number, fractions of a second and a wrong choice stay, while another
/// field is edited, and when the form is sent.
#[test]
fn a_form_in_step_changes_no_value() {
    let world = World::configured(PARCELS, &[]);
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/tools/depot.find", world.url));
    let text = r#"{"weight": 0.10, "at": "2026-11-17T14:41:00.250Z", "sizes": [1.50, 12345678901234567890.123456789],
        "stars": 7, "days": ["2026-11-17", "soon"]}"#;
    browser.click(".tabs label:last-child");
    browser.write("#raw", text);
    let shown = |name: &str| {
        let field = format!("document.getElementsByName('{name}')[0]");
        browser.eval(&format!("[{field}?.type, {field}?.value]"))
    };
    let expected = [
        ("n:/weight", "text", "0.10"),
        ("t:/at", "text", "2026-11-17T14:41:00.250Z"),
        (
            "r:/sizes",
            "textarea",
            "1.50\n12345678901234567890.123456789",
        ),
        ("n:/stars", "select-one", "7"),
        ("s:/days/0", "date", "2026-11-17"),
        ("s:/days/1", "text", "soon"),
    ];
    let check = || {
        for (name, kind, value) in expected {
            assert_eq!(shown(name), json!([kind, value]), "{name}");
        }
    };
    check();
    browser.click(".tabs label:first-child");
    browser.write("[name='s:/nick']", "n");
    let raw = browser.eval("document.querySelector('#raw').value");
    for part in [
        "0.10",
        "1.50,",
        "12345678901234567890.123456789",
        "14:41:00.250Z",
        "\"stars\": 7",
    ] {
        assert!(raw.as_str().unwrap().contains(part), "{part}: {raw}");
    }
    // The server reads the fields, and draws the form again.
    browser.click("form[data-call] button.go");
    browser.until("document.querySelector('#code')");
    check();
    let raw = browser.eval("document.querySelector('#raw').value");
    assert!(
        raw.as_str()
            .unwrap()
            .contains("12345678901234567890.123456789"),
        "{raw}"
    );
    // A time that the input can show is one again.
    browser.click(".tabs label:last-child");
    browser.write("#raw", r#"{"at": "2026-11-17T14:41:05Z"}"#);
    assert_eq!(
        shown("t:/at"),
        json!(["datetime-local", "2026-11-17T14:41:05"])
    );
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A call as people fill it in, to be copied.
const COPIED: [(&str, &str); 3] = [
    ("s:/text", "call the 'bank' $(now)"),
    ("key", "note 7's"),
    ("look", "copies"),
];

/// The copy with this name on a page.
fn copy_of(html: &str, name: &str) -> String {
    let copy = super::between(html, &format!("id=\"copy-{name}\""), "</pre>");
    plain(copy.split_once('>').unwrap().1)
}

/// The reply that a script of a shell prints.
fn shell(world: &World, script: &str, key: &str) -> Value {
    let mut command = Command::new("sh");
    world.in_place(&mut command);
    let output = command
        .args(["-c", script])
        .env("COUNTERSIGN_KEY", key)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}{said}"))
}

/// The replies to the copies for a shell, for Python and for TypeScript, in this order.
fn replies(world: &World, html: &str, key: &str) -> [Value; 3] {
    let python = world.data("copied.py");
    std::fs::write(&python, copy_of(html, "Python")).unwrap();
    // The copy has no types, so Node runs it as it is.
    let node = world.data("copied.mjs");
    let copy = copy_of(html, "TypeScript");
    let printed = format!("{copy}\nconsole.log(JSON.stringify(reply));");
    std::fs::write(&node, printed).unwrap();
    [
        copy_of(html, "curl"),
        format!("python3 '{}'", python.display()),
        format!("node '{}'", node.display()),
    ]
    .map(|script| shell(world, &script, key))
}

/// B17: the call of a form is copied with its user and its key, and every copy gets the answer of the same call.
#[test]
fn copies_make_the_same_call() {
    let world = World::start(&[]);
    let mut person = Person::new(&world);
    person.visit("/");
    let form = [&COPIED[..], &[("user", "u_anna")]].concat();
    let (head, html) = person.send("/tools/notes.add", &form);
    assert_eq!(head.status, 200, "{html}");
    let list = json!({"arguments": {}, "user_id": "u_anna"});
    let listed = world.call("notes.list", &list, None);
    assert_eq!(listed["data"], json!([]), "to look calls nothing: {listed}");
    let [by_curl, by_python, by_node] = replies(&world, &html, "");
    assert_eq!(by_curl["ok"], true, "{by_curl}");
    assert_ne!(by_curl["replayed"], true, "{by_curl}");
    // The copy in Rust is compiled into this test.
    let by_rust = super::copied::run(&copy_of(&html, "Rust"), &world.url);
    let by_command = shell(&world, &format!("{} --json", copy_of(&html, "CLI")), "");
    for reply in [by_python, by_node, by_rust, by_command] {
        assert_eq!(reply["replayed"], true, "{reply}");
        assert_eq!(reply["data"], by_curl["data"], "{reply}");
    }
    let listed = world.call("notes.list", &list, None);
    let notes = listed["data"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{listed}");
    assert!(listed.to_string().contains("$(now)"), "{listed}");

    // The page copies what the form says now, before anything is called.
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/tools/notes.add", world.url));
    browser.write("#key", "k-99");
    browser.press("\u{E004}");
    browser.until("document.querySelector('#copy-curl').innerText.includes('k-99')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// B17: where the server asks for a credential, the copies take the caller's own from a variable.
#[test]
fn copies_carry_the_credential() {
    let world = World::start(&[]);
    let key = world.run(&["keys", "create", "--user", "u_anna"]);
    let (head, html) = world.person(&key).send("/tools/notes.add", &COPIED);
    assert_eq!(head.status, 200, "{html}");
    assert!(!html.contains(&key), "the page has no secret");
    let [by_curl, by_python, by_node] = replies(&world, &html, &key);
    assert_eq!(by_curl["ok"], true, "{by_curl}");
    for reply in [by_python, by_node] {
        assert_eq!(reply["replayed"], true, "{reply}");
        assert_eq!(reply["data"], by_curl["data"], "{reply}");
    }
    super::copied::compare_with_key(&copy_of(&html, "Rust"), &world.url);
    let refused = shell(&world, &copy_of(&html, "curl"), "ck_wrong");
    assert_eq!(refused["ok"], false, "{refused}");
}

/// The text of a piece of HTML without elements.
fn plain(html: &str) -> String {
    let mut text = html.to_owned();
    for (escaped, sign) in [
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&quot;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#38;", "&"),
        ("&amp;", "&"),
    ] {
        text = text.replace(escaped, sign);
    }
    text
}
