//! Pictures of every page.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use countersign_evidence::page::{VERIFIER, VERIFIER_NAME};
use serde_json::{Value, json};

use super::browser::Browser;
use super::dispute::Buyer;
use super::furnished::Furnished;
use super::past::Past;
use super::picture::with_palette;
use super::world::World;

/// Length of the past in seconds: longer than the charts are.
const PAST: u64 = 62 * 60;

/// Number of calls in each of some minutes, again and again.
const RATES: [usize; 12] = [2, 3, 2, 4, 5, 4, 6, 7, 5, 4, 3, 1];

/// Keys of agents, each for the user that it works for.
struct Agents {
    shopper: String,
    concierge: String,
    support: String,
}

impl Agents {
    fn new(world: &World) -> Self {
        let key = |agent: &str, user: &str| {
            world.run(&["keys", "create", "--agent", agent, "--for", user])
        };
        Self {
            shopper: key("shopper", "u_anna"),
            concierge: key("concierge", "u_ben"),
            support: key("support-desk", "u_chen"),
        }
    }
}

/// An hour of calls, minute by minute: most of them work, some are repaired, few fail.
fn an_hour(world: &World, agents: &Agents, past: Option<&Past>) {
    let queries = ["wireless earbuds", "usb-c cable", "desk lamp", "power bank"];
    let quote = "{items: [{sku: 'SKU-0002-01', quantity: 1}], destination: {country: 'DE'},}";
    let mut made = 0;
    for (minute, rate) in (1..60).rev().zip(RATES.iter().cycle()) {
        let go = |seconds: u64| {
            if let Some(past) = past {
                past.go(seconds);
            }
        };
        for at in 0..*rate {
            go(minute * 60 - (at as u64) * 8);
            made += 1;
            let search = json!({"query": queries[made % 4], "limit": 3});
            let note = json!({"text": format!("call back customer {made}")});
            let (key, tool, arguments) = match made % 11 {
                0 => (&agents.support, "notes.add", note),
                1 | 6 => (
                    &agents.shopper,
                    "catalog.get_availability",
                    json!({"sku": "SKU-0002-01"}),
                ),
                3 | 9 => (&agents.concierge, "shipping.quote_options", json!(quote)),
                4 => (&agents.concierge, "catalog.search_offers", search),
                _ => (&agents.shopper, "catalog.search_offers", search),
            };
            let mut body = json!({"arguments": arguments});
            if made % 23 == 0 {
                body = json!({"arguments": {"query": "earbuds", "limit": "many"}});
            }
            let tool = if made % 23 == 0 {
                "catalog.search_offers"
            } else {
                tool
            };
            world.call(tool, &body, Some(key));
        }
        let order = json!({"arguments": {"sku": "SKU-0002-01"}, "idempotency_key": "order-77"});
        match minute {
            // The grant covers this one, the service is silent to the next one, and a rule refuses the last one.
            41 => world.call(
                "notes.clear",
                &json!({"arguments": {"keep": 3}}),
                Some(&agents.shopper),
            ),
            24 => world.call("orders.place", &order, Some(&agents.support)),
            9 => world.call(
                "notes.add",
                &json!({"arguments": {"text": "secret of a customer"}}),
                Some(&agents.concierge),
            ),
            _ => Value::Null,
        };
    }
    let mut ago = 130;
    world.visit("visit-8", Some(&agents.shopper), &mut || {
        ago -= 20;
        if let Some(past) = past {
            past.go(ago);
        }
    });
    if let Some(past) = past {
        past.go(0);
    }
}

/// Every page is drawn, in dark and light, and the pictures are small enough to be kept. They stay where `COUNTERSIGN_SCREENS`
/// names a folder: `cargo xtask screens` makes `docs/screens`.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of pages")]
fn pictures() {
    let temporary = tempfile::tempdir().unwrap();
    let named = std::env::var_os("COUNTERSIGN_SCREENS").map(PathBuf::from);
    let past = Past::of_seconds(PAST);
    assert!(
        past.is_some() || named.is_none(),
        "pictures that are kept need libfaketime; `cargo xtask screens` installs it"
    );
    let folder = &*named.unwrap_or_else(|| temporary.path().to_owned());
    let furnished = Furnished::with_past(past.as_ref());
    let world = &furnished.world;
    let agents = Agents::new(world);
    an_hour(world, &agents, past.as_ref());
    let call = world.newest_repaired(Some(&agents.shopper));
    // A payment that two people have to confirm, and carts of which a person may take less.
    let dora = world.run(&["keys", "create", "--agent", "shopper", "--for", "u_dora"]);
    let buyer = Buyer {
        world,
        user: "u_dora",
        key: Some(&dora),
    };
    let approval = buyer.is_asked_to_pay(5);
    let cart = world.call(
        "cart.create",
        &json!({"arguments": {}}),
        Some(&agents.shopper),
    );
    let fill = |sku: &str, quantity: u32| {
        let item = json!({"cart_id": cart["data"]["cart_id"], "sku": sku, "quantity": quantity});
        let asked = world.call(
            "cart.add_item",
            &json!({"arguments": item}),
            Some(&agents.shopper),
        );
        let id = asked["error"]["details"]["approval_id"].as_str();
        id.unwrap_or_else(|| panic!("{asked}")).to_owned()
    };
    fill("SKU-0001-01", 6);
    let narrow = fill("SKU-0002-01", 9);
    let shape = world.shape();
    world.operator().send("/upstreams/crm/test", &[]);
    world.run(&["verify", "--all"]);
    let pages = [
        ("overview", "/".to_owned()),
        ("calls", "/calls".to_owned()),
        ("call", format!("/calls/{call}")),
        ("session", "/sessions/visit-8".to_owned()),
        ("case", format!("/cases/{}", furnished.order)),
        (
            "explain",
            format!("/policy/explain?record={}", furnished.refused),
        ),
        ("search", "/docs?q=idempotency".to_owned()),
        ("tools", "/tools".to_owned()),
        ("tool", "/tools/shipping.quote_options".to_owned()),
        ("approvals", "/approvals".to_owned()),
        ("approval", format!("/approvals/{approval}")),
        ("narrow", format!("/approvals/{narrow}")),
        ("together", format!("/approvals?shape={shape}")),
        ("grants", "/grants".to_owned()),
        ("in-doubt", "/in-doubt".to_owned()),
        ("notifications", "/notifications".to_owned()),
        ("evidence", "/evidence".to_owned()),
        ("upstreams", "/upstreams".to_owned()),
        ("policy", "/policy".to_owned()),
        ("policy-report", "/policy/report?all=true".to_owned()),
        ("errors", "/errors".to_owned()),
        ("error", "/errors/INVALID_ARGUMENT".to_owned()),
        ("settings", "/settings".to_owned()),
        ("docs", "/docs".to_owned()),
        ("guide", "/docs/approvals".to_owned()),
    ];
    for dark in [false, true] {
        let browser = Browser::start((1280, 860), dark);
        browser.open(&format!("{}/sign-in?next=/", world.url));
        browser.until("document.readyState === 'complete'");
        let look = if dark { "dark" } else { "light" };
        keep(&browser, folder, &format!("sign-in-{look}"));
        browser.open(&world.run(&["console"]));
        browser.until("document.querySelector('.me b')");
        for (name, page) in &pages {
            browser.open(&format!("{}{page}", world.url));
            browser.until("document.readyState === 'complete'");
            prepare(&browser, name);
            keep(&browser, folder, &format!("{name}-{look}"));
        }
        let pictures = ["verifier", "verifier-with-key"];
        let pictures = pictures.map(|name| folder.join(format!("{name}-{look}.png")));
        verifier(
            world,
            &call,
            dark,
            pictures.each_ref().map(PathBuf::as_path),
        );
    }
    on_a_phone(world, &call, &approval, folder);
    let files = std::fs::read_dir(folder).unwrap();
    let sizes = files.map(|file| file.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = sizes.collect();
    assert!(sizes.len() >= 2 * pages.len() + 9, "{sizes:?}");
    assert!(
        sizes.iter().all(|size| *size > 5_000),
        "a page is empty: {sizes:?}"
    );
    assert!(sizes.iter().sum::<u64>() <= 4_000_000, "{sizes:?}");
}

/// What people do on a page before it is interesting.
fn prepare(browser: &Browser, name: &str) {
    match name {
        "call" => {
            browser.write("#reason", "a customer asked what was quoted");
            browser.click("form[action$='/open'] button");
            browser.until("document.querySelector('#panes')");
        }
        "case" => {
            browser.write("#reason", "dispute 4711: the buyer remembers another price");
            browser.submit("#open-case button.go");
            browser.eval("scrollTo(0, 0)");
        }
        "tool" => {
            browser.click(".tabs label:last-child");
            let written = r#"{"items": [{"sku": "SKU-0002-01", "quantity": "2"}], "destination": {"country": "de", "postal_code": 10115}}"#;
            browser.write("#raw", written);
            browser.click("form[data-call] button.go");
            browser.until("document.querySelector('#code')?.innerText === 'OK'");
            browser.click(".tabs label:first-child");
            browser.eval("document.querySelector('[data-issue=\"/items/0/quantity\"]').scrollIntoView({ block: 'center' })");
        }
        _ => {}
    }
}

/// The page that verifies a bundle, from a file.
fn verifier(world: &World, call: &str, dark: bool, [picture, with_key]: [&Path; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join(VERIFIER_NAME);
    std::fs::write(&page, VERIFIER).unwrap();
    let bundle = folder.path().join("evidence-bundle.json");
    let output = bundle.to_str().unwrap();
    world.run(&["evidence", "export", call, "--output", output]);
    let browser = Browser::start((900, 1000), dark);
    browser.open(&format!("file://{}", page.display()));
    browser.attach("#file", &bundle);
    browser.until("document.querySelector('#verdict')");
    browser.eval("scrollTo(0, 0)");
    std::fs::write(picture, taken(&browser)).unwrap();
    // With the key of the log, the verdict is about who signed it, too.
    let key = std::fs::read_to_string(world.data("log.pub")).unwrap();
    browser.open(&format!("file://{}", page.display()));
    browser.write("#key", key.trim());
    browser.attach("#file", &bundle);
    browser.until("document.querySelector('#verdict')?.dataset.verdict === 'valid'");
    browser.eval("scrollTo(0, 0)");
    std::fs::write(with_key, taken(&browser)).unwrap();
}

fn on_a_phone(world: &World, call: &str, approval: &str, folder: &Path) {
    for dark in [false, true] {
        let look = if dark { "dark" } else { "light" };
        let browser = Browser::start((390, 844), dark);
        browser.open(&world.run(&["console"]));
        browser.until("document.querySelector('.me b')");
        keep(&browser, folder, &format!("phone-{look}"));
        browser.open(&format!("{}/calls/{call}", world.url));
        keep(&browser, folder, &format!("phone-call-{look}"));
        if !dark {
            browser.open(&format!("{}/language/zh", world.url));
            browser.open(&format!("{}/approvals/{approval}", world.url));
            browser.until("document.documentElement.lang === 'zh-CN'");
            keep(&browser, folder, "phone-zh");
        }
    }
}

fn keep(browser: &Browser, folder: &Path, name: &str) {
    std::fs::write(folder.join(format!("{name}.png")), taken(browser)).unwrap();
}

fn taken(browser: &Browser) -> Vec<u8> {
    with_palette(&BASE64_STANDARD.decode(browser.picture()).unwrap())
}
