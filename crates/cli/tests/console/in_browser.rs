//! Actions of a person, in a real browser.

use serde_json::json;

use super::browser::Browser;
use super::everybody::walk;
use super::furnished::Furnished;
use super::world::World;

/// B17, B20: no page makes the browser complain (a script error, a violation of the content security policy) or asks another
/// site for anything, the sign-in and what forms lead to included; nothing is wider than a phone.
#[test]
fn no_page_breaks_a_rule() {
    let furnished = Furnished::start();
    let world = &furnished.world;
    let browser = Browser::start((390, 844), false);
    let (mut asked, mut seen) = (0, 0);
    walk(&furnished, &browser, &mut |page| {
        // The browser tells of the status of the page that is not there.
        let is_meant = |text: &String| page == "/calls/no-such-call" && text.contains("404");
        let complaints = browser.complaints();
        let complaints: Vec<_> = complaints.iter().filter(|it| !is_meant(it)).collect();
        assert_eq!(complaints, [""; 0], "{page}");
        let requests = browser.requests();
        asked += requests.len();
        seen += 1;
        for request in requests {
            assert!(
                request.starts_with(&world.url) || request.starts_with("data:"),
                "{page} asks {request}"
            );
        }
        let widths = browser.eval("[document.documentElement.scrollWidth, innerWidth]");
        assert!(
            widths[0].as_u64() <= widths[1].as_u64(),
            "{page} is too wide: {widths}"
        );
    });
    assert!(asked > 40 && seen > 40, "{asked} {seen}");
}

/// B17: on a phone the navigation is a menu that opens with a key or a finger, and what waits is shown before it.
#[test]
fn a_phone_has_a_menu() {
    let world = World::start(&[]);
    world.busy();
    let browser = Browser::start((390, 844), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me a, .me b')");
    let is_shown =
        |css: &str| browser.eval(&format!("document.querySelector('{css}').offsetHeight > 0"));
    assert_eq!(is_shown(".side nav"), json!(false));
    assert_eq!(is_shown(".badges a[href=\"/approvals\"]"), json!(true));
    let wide = "document.querySelector('.side').scrollWidth > innerWidth";
    assert_eq!(browser.eval(wide), json!(false));
    browser.click(".menu summary");
    browser.until("document.querySelector('.side nav').offsetHeight > 0");
    browser.submit(".side nav a[href='/errors']");
    assert!(browser.address().ends_with("/errors"));
    // A screen with room has no menu.
    let browser = Browser::start((1280, 860), false);
    browser.open(&world.url);
    browser.until("document.querySelector('.side nav a').offsetHeight > 0");
    browser.until("document.querySelector('.menu').offsetHeight === 0");
}

/// On a screen of 1280 pixels no badge is cut off at the edge of its table.
#[test]
fn badges_are_whole() {
    let world = World::start(&[]);
    world.busy();
    world.call("notes.clear", &json!({"arguments": {}}), None);
    let browser = Browser::start((1280, 860), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    for page in ["/", "/calls", "/tools"] {
        browser.open(&format!("{}{page}", world.url));
        browser.until("document.querySelector('.scroll .tag')");
        let cut = browser.eval(
            "[...document.querySelectorAll('.scroll .tag')].filter(tag => \
               tag.getBoundingClientRect().right > tag.closest('.scroll').getBoundingClientRect().right\
             ).map(tag => tag.textContent)",
        );
        assert_eq!(cut, json!([]), "{page}");
    }
}

/// B20: each way in, in the browser; the key of an agent is refused.
#[test]
fn people_sign_in() {
    let world = World::start(&[]);
    let ann = world.run(&["keys", "create", "--user", "ann"]);
    let agent = world.run(&["keys", "create", "--agent", "shopper", "--for", "ann"]);
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/calls", world.url));
    browser.write("#key", &agent);
    browser.click("form button");
    browser.until("document.querySelector('[role=alert]')?.innerText.includes('agent')");
    browser.write("#key", &ann);
    browser.click("form button");
    browser.until("document.querySelector('.me b')?.innerText === 'ann'");
    assert_eq!(
        browser.eval("document.cookie"),
        json!(""),
        "no script reads the session"
    );
    browser.click(".me button");
    browser.until("location.pathname === '/sign-in'");
    let link = world.run(&["console"]);
    browser.open(&link);
    browser.until("document.querySelector('.me b')?.innerText === 'operator/tester'");
    // The 403 of the agent's key is the only thing that the browser tells of.
    let complaints = browser.complaints();
    assert!(
        complaints.iter().all(|text| text.contains("403")),
        "{complaints:?}"
    );
}

/// B17: a form is drawn from the declaration, raw JSON keeps in step, and what the binder did stands at its field.
#[test]
fn a_form_calls_a_tool() {
    let world = World::start(&[]);
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/tools/catalog.search_offers", world.url));
    browser.write("[name='s:/query']", "earbuds");
    browser.write("[name='n:/limit']", "many");
    browser.until("JSON.parse(document.querySelector('#raw').value).limit === 'many'");
    browser.click("form[data-call] button.go");
    browser.until("document.querySelector('#code')?.innerText === 'INVALID_ARGUMENT'");
    browser.until("document.querySelector(\"[data-issue='/limit']\")");
    browser.click("input[name=mode][value=raw] + *, .tabs label:last-child");
    browser.write("#raw", "{query: 'earbuds', limit: '2',}");
    browser.click("form[data-call] button.go");
    browser.until("document.querySelector('#code')?.innerText === 'OK'");
    browser.until("[...document.querySelectorAll('#changes tr')].some(row => row.innerText.includes('/limit') && row.innerText.includes('2'))");
    assert_eq!(browser.complaints(), [""; 0]);

    // A write is a dry run unless one says otherwise.
    browser.open(&format!("{}/tools/notes.add", world.url));
    browser.write("[name='s:/text']", "call the bank");
    browser.click("form[data-call] button.go");
    browser.until("document.querySelector('#code')?.innerText === 'OK'");
    assert_eq!(world.newest_call_manner(), "dry_run");
}

/// A13: approve and deny, with the keyboard too.
#[test]
fn a_person_answers() {
    let world = World::start(&[]);
    world.call(
        "notes.add",
        &json!({"arguments": {"text": "call the bank"}}),
        None,
    );
    let ask = |keep: u32| {
        let asked = world.call("notes.clear", &json!({"arguments": {"keep": keep}}), None);
        asked["error"]["details"]["approval_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{asked}"))
            .to_owned()
    };
    let (first, second) = (ask(0), ask(1));
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.side .n')?.innerText === '2'");
    browser.press("g");
    browser.press("a");
    browser.until(
        "location.pathname === '/approvals' && document.querySelectorAll('tbody tr').length === 2",
    );
    browser.open(&format!("{}/approvals/{first}", world.url));
    browser.until("document.querySelector('#answer')");
    browser.press("a");
    browser.until("document.activeElement.value === 'approve'");
    browser.press("\u{E007}");
    browser.until("document.querySelector('#state')?.innerText === 'approved'");
    browser.open(&format!("{}/approvals/{second}", world.url));
    browser.write("#reason", "not today");
    browser.click("button.no");
    browser.until("document.querySelector('#state')?.innerText === 'denied'");
    let ran = world.call("notes.clear", &json!({"arguments": {"keep": 0}}), None);
    assert_eq!(ran["data"], json!({"cleared": 1}), "{ran}");
    let refused = world.call("notes.clear", &json!({"arguments": {"keep": 1}}), None);
    assert_eq!(refused["error"]["code"], "FORBIDDEN", "{refused}");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// B17: a call appears on a page that is open, and its page has a button that verifies its evidence.
#[test]
fn calls_arrive_live() {
    let world = World::start(&[]);
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/calls", world.url));
    browser.until("document.querySelector('.pulse:not(.off)')");
    world.call(
        "notes.add",
        &json!({"arguments": {"text": "call the bank"}}),
        None,
    );
    browser.until("document.querySelectorAll('#rows tr').length === 1");
    world.call("notes.list", &json!({"arguments": {}}), None);
    browser.until("document.querySelectorAll('#rows tr').length === 2");
    browser.press("j");
    browser.until("document.querySelector('tr.here')");
    browser.press("\u{E007}");
    browser.until("location.pathname.startsWith('/calls/')");
    browser.until("document.querySelector('#evidence button')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A call that arrives leaves the chosen row chosen and focused; keys go on from it.
#[test]
fn a_chosen_row_stays_chosen() {
    let world = World::start(&[]);
    let add = |text: &str| world.call("notes.add", &json!({"arguments": {"text": text}}), None);
    for text in ["one", "two", "three"] {
        add(text);
    }
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/calls", world.url));
    browser.until("document.querySelector('.pulse:not(.off)')");
    browser.until("document.querySelectorAll('#rows tr').length === 3");
    browser.press("j");
    browser.press("j");
    browser.until("document.querySelectorAll('#rows tr')[1].matches('.here')");
    browser.eval_script("window.chosen = document.querySelector('tr.here')");
    let is_kept = "window.chosen.isConnected && window.chosen.matches('.here') \
                   && window.chosen.contains(document.activeElement)";
    for rows in 4..7 {
        add("more");
        let all = "document.querySelectorAll('#rows tr')";
        browser.until(&format!("{all}.length === {rows}"));
        assert_eq!(browser.eval(is_kept), json!(true), "{rows} rows");
        let place = browser.eval(&format!("[...{all}].indexOf(window.chosen)"));
        assert_eq!(place, json!(rows - 2), "{rows} rows");
    }
    let new =
        browser.eval("[...document.querySelectorAll('#rows tr')].map(row => row.matches('.new'))");
    assert_eq!(new, json!([true, true, true, false, false, false]));
    browser.press("k");
    browser.until("document.querySelectorAll('#rows tr')[3].matches('.here')");
    browser.until("document.querySelectorAll('tr.here').length === 1");
    browser.press("j");
    browser.press("\u{E007}");
    browser.until("location.pathname.startsWith('/calls/')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// B17: a row says who called and how long it took, and is marked where it was a repeat, repaired or a dry run. The filters for it are in
/// the address.
#[test]
fn rows_say_who_called_and_what_became_of_it() {
    let world = World::start(&[]);
    world.busy();
    let in_session = json!({"arguments": {"text": "one"}, "session_id": "s-1", "user_id": "u_7"});
    world.call("notes.add", &in_session, None);
    let browser = Browser::start((1280, 900), false);
    browser.open(&world.run(&["console"]));
    browser.until("document.querySelector('.me b')");
    let marks = "[...document.querySelectorAll('#rows tr')].map(row => [...row.cells[1].querySelectorAll('.tag')].map(tag => tag.innerText))";
    for (filter, expected) in [
        ("replayed=true", json!([["repeat"]])),
        ("repaired=true", json!([["repaired"]])),
        ("session=s-1", json!([[]])),
        ("session=s-2", json!([])),
        ("actor=nobody", json!([])),
        ("slow_ms=3600000", json!([])),
        (
            "tool=notes.add&slow_ms=0&replayed=true",
            json!([["repeat", "slow"]]),
        ),
    ] {
        browser.open(&format!("{}/calls?{filter}", world.url));
        browser.until("document.readyState === 'complete'");
        assert_eq!(browser.eval(marks), expected, "{filter}");
    }
    browser.open(&format!("{}/calls", world.url));
    browser.until("document.querySelectorAll('#rows tr').length > 5");
    let rows = browser.eval(
        "[...document.querySelectorAll('#rows tr')].map(row => [...row.cells].map(cell => cell.innerText))",
    );
    for row in rows.as_array().unwrap() {
        assert_eq!(row.as_array().unwrap().len(), 6, "{row}");
        assert!(!row[3].as_str().unwrap().is_empty(), "no caller: {row}");
        let took = row[5].as_str().unwrap().replace(',', "");
        assert!(took.parse::<f64>().is_ok(), "{row}");
    }
    let dry = "[...document.querySelectorAll('#rows .tag.info')].map(tag => tag.innerText)";
    assert_eq!(browser.eval(dry), json!(["dry run"]));
    // The form has what the address says, and makes such an address.
    browser.open(&format!("{}/calls?repaired=true", world.url));
    browser.write("#f-slow", "0");
    browser.click("[name=replayed]");
    browser.click("[name=repaired]");
    browser.click(".filters button.go");
    browser.until("new URLSearchParams(location.search).get('replayed') === 'true'");
    browser.until("!location.search.includes('repaired')");
    browser.until("document.querySelectorAll('#rows tr').length === 1");
    browser.until("document.querySelector('#f-slow').value === '0'");
    assert_eq!(browser.complaints(), [""; 0]);
}
