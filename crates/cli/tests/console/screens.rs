//! Pictures of every page.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use countersign_evidence::page::{VERIFIER, VERIFIER_NAME};
use serde_json::json;

use super::browser::Browser;
use super::dispute::purchase;
use super::furnished::changed;
use super::picture::with_palette;
use super::world::World;

/// A shop, and an MCP server behind it.
fn world(folder: &Path) -> World {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../upstream/tests/mcp/server.py");
    let words = [
        "python3",
        "-S",
        server.to_str().unwrap(),
        folder.to_str().unwrap(),
    ];
    let text = format!(
        "[shop]\nenabled = true\n[[upstream]]\nname = 'crm'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {}\n",
        json!(words)
    );
    World::configured(&text, &[])
}

/// Every page is drawn, in dark and light, and the pictures are small enough to be kept. They stay where `COUNTERSIGN_SCREENS`
/// names a folder: `cargo xtask screens` makes `docs/screens`.
#[test]
fn pictures() {
    let temporary = tempfile::tempdir().unwrap();
    let named = std::env::var_os("COUNTERSIGN_SCREENS").map(PathBuf::from);
    let folder = &*named.unwrap_or_else(|| temporary.path().to_owned());
    let behind = tempfile::tempdir().unwrap();
    let world = world(behind.path());
    world.story();
    let order = purchase(&world);
    world.visit();
    let call = world.newest_repaired();
    world.call("notes.clear", &json!({"arguments": {"keep": 2}}), None);
    let asked = world.call("notes.clear", &json!({"arguments": {}}), None);
    let shape = world.shape();
    let approval = asked["error"]["details"]["approval_id"].as_str().unwrap();
    changed(&world, behind.path());
    world.run(&["verify", "--all"]);
    let pages = [
        ("overview", "/".to_owned()),
        ("calls", "/calls".to_owned()),
        ("call", format!("/calls/{call}")),
        ("session", "/sessions/visit-7".to_owned()),
        ("case", format!("/cases/{order}")),
        ("search", "/search?q=u_anna".to_owned()),
        ("tools", "/tools".to_owned()),
        ("tool", "/tools/shipping.quote_options".to_owned()),
        ("approvals", "/approvals".to_owned()),
        ("approval", format!("/approvals/{approval}")),
        ("together", format!("/approvals?shape={shape}")),
        ("in-doubt", "/in-doubt".to_owned()),
        ("evidence", "/evidence".to_owned()),
        ("upstreams", "/upstreams".to_owned()),
        ("policy", "/policy".to_owned()),
        ("errors", "/errors".to_owned()),
        ("error", "/errors/CONFLICT".to_owned()),
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
        verifier(
            &world,
            &call,
            dark,
            &folder.join(format!("verifier-{look}.png")),
        );
    }
    on_a_phone(&world, &call, approval, folder);
    let files = std::fs::read_dir(folder).unwrap();
    let sizes = files.map(|file| file.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = sizes.collect();
    assert!(sizes.len() >= 48, "{sizes:?}");
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
        "tool" => {
            browser.click("form[data-call] button.go");
            browser.until("document.querySelector('#code')");
            browser.eval("scrollTo(0, 0)");
        }
        _ => {}
    }
}

/// The page that verifies a bundle, from a file.
fn verifier(world: &World, call: &str, dark: bool, picture: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join(VERIFIER_NAME);
    std::fs::write(&page, VERIFIER).unwrap();
    let bundle = folder.path().join("evidence-bundle.json");
    let (_, json) = world.api(&format!("/v1/evidence/{call}/bundle"));
    std::fs::write(&bundle, json).unwrap();
    let browser = Browser::start((900, 1000), dark);
    browser.open(&format!("file://{}", page.display()));
    browser.attach("#file", &bundle);
    browser.until("document.querySelector('#verdict')");
    browser.eval("scrollTo(0, 0)");
    std::fs::write(picture, taken(&browser)).unwrap();
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
