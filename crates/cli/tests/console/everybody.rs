//! Accessible pages: nothing serious for those who cannot see or do not use a mouse.

use std::path::PathBuf;

use countersign_evidence::page::{VERIFIER, VERIFIER_NAME};
use serde_json::{Value, json};

use super::browser::Browser;
use super::furnished::Furnished;
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

/// Every page of a server at which everything happened, for its operator.
fn all_pages(furnished: &Furnished) -> Vec<String> {
    let world = &furnished.world;
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
        format!("/cases/{}", furnished.order),
        format!("/policy/explain?record={}", furnished.refused),
        "/policy/report?all=true".to_owned(),
        "/evidence?kind=resolution".to_owned(),
        "/in-doubt?user=ann".to_owned(),
        "/calls?code=INVALID_ARGUMENT".to_owned(),
        "/calls?replayed=true&slow_ms=0".to_owned(),
        "/calls?actor=nobody".to_owned(),
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
#[expect(clippy::too_many_lines, reason = "one story, in its order")]
pub(crate) fn walk(furnished: &Furnished, browser: &Browser, look: &mut dyn FnMut(&str)) {
    let world = &furnished.world;
    let ready = || browser.until("document.readyState === 'complete' && window.htmx");
    come_in(world, browser, look);
    let mut pages = all_pages(furnished);
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
    for (tool, fields, code, name) in [
        (
            "notes.add",
            &[("s:/text", "call the bank")][..],
            "OK",
            "a reply",
        ),
        (
            "catalog.search_offers",
            &[("s:/query", "earbuds"), ("n:/limit", "many")],
            "INVALID_ARGUMENT",
            "a reply with an error",
        ),
    ] {
        begin(&format!("/tools/{tool}"));
        call(browser, fields, code);
        ready();
        look(name);
    }
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
    browser.until("document.querySelector('#keyboard-help').open");
    look("the keys");
    settle(world, browser);
    ready();
    look("all that matched, settled");
    arrived(world, browser);
    look("the way back from an issuer");
}

/// Fills in the form of a tool and calls it.
fn call(browser: &Browser, fields: &[(&str, &str)], code: &str) {
    for (name, text) in fields {
        browser.write(&format!("[name='{name}']"), text);
    }
    browser.click("form[data-call] button.go");
    browser.until(&format!(
        "document.querySelector('#code')?.innerText === '{code}'"
    ));
}

/// Settles all calls in doubt of one user.
fn settle(world: &World, browser: &Browser) {
    browser.open(&format!("{}/in-doubt?user=bob", world.url));
    browser.click("input[value=not]");
    browser.write("#reason", "the service has none of them");
    browser.click("button[name=all]");
    browser.until("document.querySelector('#together')");
}

/// Shows the page between the issuer and the console. It leads on at once, so it stands here without that.
fn arrived(world: &World, browser: &Browser) {
    let template = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../console/templates/arrived.html"
    );
    let mut page = std::fs::read_to_string(template).unwrap();
    for (place, text) in [
        (
            "<meta http-equiv=\"refresh\" content=\"0;url={{ next }}\">",
            "",
        ),
        ("{{ w.tag }}", "en"),
        ("{{ w.sign_in }}", "Sign in"),
        ("{{ w.signed_in_now }}", "You are signed in."),
        ("{{ w.go_on }}", "Go on"),
        ("{{ version }}", "1"),
        ("{{ next }}", "/"),
    ] {
        assert!(page.contains(place), "{place}");
        page = page.replace(place, text);
    }
    assert!(!page.contains("{{"), "{page}");
    browser.open(&format!("{}/sign-in", world.url));
    browser.until("document.readyState === 'complete'");
    let written = json!(page);
    browser.eval_script(&format!(
        "document.open(); document.write({written}); document.close()"
    ));
    browser.until("document.querySelector('.door .go') && document.readyState === 'complete'");
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
        let furnished = Furnished::start();
        let world = &furnished.world;
        let browser = Browser::start(size, dark);
        if way.starts_with("zh") {
            browser.open(&format!("{}/language/zh", world.url));
            browser.until("document.documentElement.lang === 'zh-CN'");
        }
        let (mut found, mut seen) = (Vec::new(), 0);
        walk(&furnished, &browser, &mut |page| {
            let (line, grave) = looked(&browser, &axe, &format!("{way} {page}"));
            println!("{line}");
            found.extend(grave);
            seen += 1;
        });
        assert_eq!(found, [""; 0], "{way}");
        assert!(seen > 40, "{way}: {seen}");
    }
}

/// Number of findings of axe-core on the page that is open, and those that are serious or critical.
fn looked(browser: &Browser, axe: &str, look: &str) -> (String, Vec<String>) {
    browser.eval_script(axe);
    let violations = browser.later(
        "axe.run(document, {resultTypes: ['violations']}).then(result => result.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 200))]))",
    );
    let violations = violations.as_array().unwrap();
    let of = |impact: &str| violations.iter().filter(|it| it[1] == impact).count();
    let line = format!(
        "axe {look}: {} minor, {} moderate, {} serious, {} critical",
        of("minor"),
        of("moderate"),
        of("serious"),
        of("critical"),
    );
    let is_grave = |it: &&Value| it[1] == "serious" || it[1] == "critical";
    let grave = violations.iter().filter(is_grave);
    (line, grave.map(|it| format!("{look}: {it}")).collect())
}

/// The verifier that is one file: nothing serious before and after a check, in dark and in light.
#[test]
fn the_verifier_is_for_everybody() {
    let axe = axe();
    let world = World::start(&[]);
    world.busy();
    world.run(&["verify", "--all"]);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join(VERIFIER_NAME);
    std::fs::write(&page, VERIFIER).unwrap();
    let bundle = folder.path().join("evidence-bundle.json");
    let record = world.newest_call()["evidence"].as_str().unwrap().to_owned();
    let output = bundle.to_str().unwrap();
    world.run(&["evidence", "export", &record, "--output", output]);
    for dark in [false, true] {
        let browser = Browser::start((900, 1000), dark);
        browser.open(&format!("file://{}", page.display()));
        browser.until("document.querySelector('#file')");
        let before = looked(&browser, &axe, &format!("verifier, dark: {dark}"));
        browser.attach("#file", &bundle);
        browser.until("document.querySelector('#verdict')");
        let after = looked(
            &browser,
            &axe,
            &format!("verifier with a bundle, dark: {dark}"),
        );
        for (line, grave) in [before, after] {
            println!("{line}");
            assert_eq!(grave, [""; 0]);
        }
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
    browser.until("document.activeElement.id === 'search-all'");
    browser.press("j");
    browser.until("document.querySelector('#search-all').value === 'j'");
    browser.press("\u{E00C}");
    browser.press("?");
    browser.until("document.querySelector('#keyboard-help').open");
    browser.press("?");
    browser.until("!document.querySelector('#keyboard-help').open");
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

/// Sentences of three English words or more on a page, outside code, names and texts of others.
const ENGLISH: &str = r"(() => {
    const page = document.querySelector('main').cloneNode(true);
    page.querySelectorAll('code, pre, kbd, .mono, .id, [translate=no], option, script, time').forEach(one => one.remove());
    const texts = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        found.push(...(text.data.match(/[A-Za-z]{2,}(?:[ ,]+[A-Za-z]{2,}){2,}/g) ?? []));
    }
    return found;
})()";

/// B17: a page in Chinese has no English sentences.
#[test]
fn chinese_pages_have_no_english_sentences() {
    let furnished = Furnished::start();
    let world = &furnished.world;
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    browser.open(&format!("{}/language/zh", world.url));
    browser.until("document.documentElement.lang === 'zh-CN'");
    let mut english = Vec::new();
    // Guides are English, what the page of a code shows, and what the API says of a thing that is not there.
    let is_guide = |page: &str| {
        let english = ["/docs", "/errors/", "/calls/no-such-call"];
        english.iter().any(|begin| page.starts_with(begin))
    };
    for page in all_pages(&furnished) {
        if is_guide(&page) {
            continue;
        }
        browser.open(&format!("{}{page}", world.url));
        browser.until("document.readyState === 'complete'");
        let found = browser.eval(ENGLISH);
        if found != json!([]) {
            english.push(format!("{page}: {found}"));
        }
    }
    assert_eq!(english, [""; 0]);
}
