//! Accessible pages: nothing serious for those who cannot see or do not use a mouse.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::browser::Browser;
use super::world::{PAGES, World};

/// axe-core, which `cargo xtask test` installs.
fn axe() -> String {
    let folder = std::env::var_os("COUNTERSIGN_TEST_AXE").map(PathBuf::from);
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-axe");
    let folder = folder.unwrap_or_else(|| PathBuf::from(usual));
    let file = folder.join("node_modules/axe-core/axe.min.js");
    let text = std::fs::read_to_string(&file);
    text.unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo xtask test` installs it",
            file.display()
        )
    })
}

/// Every page of a server at which something happened, for its operator.
pub(crate) fn all_pages(world: &World) -> Vec<String> {
    let in_session = json!({"arguments": {"text": "one"}, "session_id": "s-1"});
    world.call("notes.add", &in_session, None);
    let newest = world.newest_call();
    let ask = |keep: u32| {
        let asked = world.call("notes.clear", &json!({"arguments": {"keep": keep}}), None);
        asked["error"]["details"]["approval_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (asked, _) = (ask(7), ask(8));
    let mut pages: Vec<String> = PAGES.iter().map(ToString::to_string).collect();
    pages.extend([
        format!("/calls/{}", newest["evidence"].as_str().unwrap()),
        format!("/cases/{}", newest["evidence"].as_str().unwrap()),
        "/calls?code=INVALID_ARGUMENT".to_owned(),
        "/sessions/s-1".to_owned(),
        format!("/approvals/{asked}"),
        "/approvals?state=denied".to_owned(),
        "/tools/notes.add".to_owned(),
        "/tools/shipping.quote_options".to_owned(),
        "/errors/CONFLICT".to_owned(),
        "/docs/approvals".to_owned(),
        "/search?q=nothing".to_owned(),
        "/calls/no-such-call".to_owned(),
    ]);
    pages
}

/// Looks at the sign-in, as the operator at every page, and at the pages that forms lead to. Each look has a name.
pub(crate) fn walk(world: &World, browser: &Browser, look: &mut dyn FnMut(&str)) {
    let ready = || browser.until("document.readyState === 'complete' && window.htmx");
    come_in(world, browser, look);
    let mut pages = all_pages(world);
    pages.push(format!("/approvals?shape={}", world.shape()));
    let begin = |page: &str| {
        browser.open(&format!("{}{page}", world.url));
        ready();
    };
    for page in &pages {
        begin(page);
        look(page);
    }
    let reached = |expression: &str| {
        browser.until(expression);
        ready();
    };
    let record = world.newest_call()["evidence"].as_str().unwrap().to_owned();
    begin(&format!("/calls/{record}"));
    browser.write("#reason", "a customer asked");
    browser.click("form[action$='/open'] button");
    reached("document.querySelector('#panes')");
    look("an opened call");
    browser.click("form[action$='/check'] button[value=verify]");
    reached("document.querySelector('#checked')");
    look("a call that was verified");
    begin(&format!("/cases/{record}"));
    browser.write("#reason", "a customer asked");
    browser.click("form.case-open button.go");
    reached("location.pathname.endsWith('/open') && document.querySelector('#case')");
    look("an opened case");
    for (form, mark, name) in [
        ("hold", "#kept", "a hold"),
        ("erase", "#sure-user", "the question before an erasure"),
    ] {
        begin(&format!("/calls/{record}"));
        keep(browser, form);
        reached(&format!("document.querySelector('{mark}')"));
        look(name);
    }
    begin("/tools/notes.add");
    browser.write("[name='s:/text']", "call the bank");
    browser.click("form[data-call] button.go");
    reached("document.querySelector('#code')?.innerText === 'OK'");
    look("a reply");
    begin("/tools/catalog.search_offers");
    browser.write("[name='s:/query']", "earbuds");
    browser.write("[name='n:/limit']", "many");
    browser.click("form[data-call] button.go");
    reached("document.querySelector('#code')?.innerText === 'INVALID_ARGUMENT'");
    look("a reply with an error");
    let question = pages.iter().find(|page| page.starts_with("/approvals/"));
    begin(question.unwrap());
    browser.write("#open-reason", "what did it write");
    browser.click("#open button");
    reached("document.querySelector('#written')");
    look("a question with what was written");
    begin(&format!("/approvals?shape={}", world.shape()));
    browser.click("button[value=deny]");
    reached("document.querySelector('#outcomes')");
    look("answered together");
    begin("/evidence");
    browser.write("#reasons #reason", "the yearly review");
    browser.click("#reasons button");
    reached("document.querySelector('#acts')?.innerText.includes('a customer asked')");
    look("acts with their reasons");
    begin("/");
    browser.press("?");
    browser.until("document.querySelector('#keys').open");
    look("the keys");
}

/// Looks at the sign-in, and signs the operator in.
fn come_in(world: &World, browser: &Browser, look: &mut dyn FnMut(&str)) {
    browser.open(&format!("{}/sign-in?next=/", world.url));
    browser.until("document.readyState === 'complete'");
    look("/sign-in");
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
}

/// Sends one of the forms that hold or erase, with a reason.
fn keep(browser: &Browser, form: &str) {
    browser.click("#keep summary");
    browser.write(&format!("#{form}-reason"), "a customer asked");
    browser.click(&format!("#{form} button"));
}

/// B17: axe-core finds nothing serious or critical on any page, in dark and in light, and once in Chinese on a phone. What is less grave
/// is counted, one line a look.
#[test]
fn nothing_serious_for_those_who_cannot_see() {
    let axe = axe();
    let looks = [
        ("light", (1280, 900), false),
        ("dark", (1280, 900), true),
        ("zh phone", (390, 844), false),
    ];
    for (way, size, dark) in looks {
        let world = World::start(&[]);
        world.busy();
        let browser = Browser::start(size, dark);
        if way.starts_with("zh") {
            browser.open(&format!("{}/language/zh", world.url));
            browser.until("document.documentElement.lang === 'zh-CN'");
        }
        let (mut found, mut seen) = (Vec::new(), 0);
        walk(&world, &browser, &mut |page| {
            browser.eval_script(&axe);
            let violations = browser.later(
                "axe.run(document, {resultTypes: ['violations']}).then(result => result.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 200))]))",
            );
            let violations = violations.as_array().unwrap();
            let of = |impact: &str| violations.iter().filter(|it| it[1] == impact).count();
            println!(
                "axe {way} {page}: {} minor, {} moderate, {} serious, {} critical",
                of("minor"),
                of("moderate"),
                of("serious"),
                of("critical"),
            );
            let grave = |it: &&Value| it[1] == "serious" || it[1] == "critical";
            let grave = violations.iter().filter(grave);
            found.extend(grave.map(|it| format!("{page}: {it}")));
            seen += 1;
        });
        assert_eq!(found, [""; 0], "{way}");
        assert!(seen > 30, "{way}: {seen}");
    }
}

/// B17: what there is to do, without a mouse.
#[test]
fn the_keyboard_is_enough() {
    let world = World::start(&[]);
    world.busy();
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/calls", world.url));
    browser.until("document.querySelectorAll('#rows tr').length > 3");
    for (key, row) in [("j", 0), ("j", 1), ("j", 2), ("k", 1)] {
        browser.press(key);
        browser.until(&format!(
            "[...document.querySelectorAll('#rows tr')].indexOf(document.querySelector('tr.here')) === {row}"
        ));
    }
    browser.press("/");
    browser.until("document.activeElement.id === 'search'");
    browser.press("j");
    browser.until("document.querySelector('#search').value === 'j'");
    browser.press("\u{E00C}");
    browser.press("?");
    browser.until("document.querySelector('#keys').open");
    browser.press("?");
    browser.until("!document.querySelector('#keys').open");
    browser.press("g");
    browser.press("t");
    browser.until("location.pathname === '/tools'");
    browser.press(".");
    browser.until("location.pathname === '/tools.json'");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// B17: a list of calls that a person looks at often has a name in their browser.
#[test]
fn views_are_saved() {
    let world = World::start(&[]);
    world.busy();
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/calls?code=INVALID_ARGUMENT", world.url));
    browser.write("[data-views] input", "<b>mistakes</b>");
    browser.click("[data-views] form button");
    browser.until("document.querySelector('[data-views] li a')?.innerText === '<b>mistakes</b>'");
    browser.open(&format!("{}/calls", world.url));
    browser.click("[data-views] li a");
    browser.until("location.search === '?code=INVALID_ARGUMENT' && document.querySelectorAll('#rows tr').length === 1");
    browser.click("[data-views] li button");
    browser.until("!document.querySelector('[data-views] li')");
    assert_eq!(browser.complaints(), [""; 0]);
}
