//! The console as people use it: a server, a browser's requests, and a real browser.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

#[path = "console/after_forms.rs"]
mod after_forms;
#[path = "console/answers.rs"]
mod answers;
#[path = "console/browser.rs"]
mod browser;
#[path = "console/copied.rs"]
mod copied;
#[path = "console/dispute.rs"]
mod dispute;
#[path = "console/doubts.rs"]
mod doubts;
#[path = "console/everybody.rs"]
mod everybody;
#[path = "console/exact.rs"]
mod exact;
#[path = "console/forms.rs"]
mod forms;
#[path = "console/furnished.rs"]
mod furnished;
#[path = "console/in_browser.rs"]
mod in_browser;
#[path = "console/inbox.rs"]
mod inbox;
#[path = "console/issuer.rs"]
mod issuer;
#[path = "console/log_page.rs"]
mod log_page;
#[path = "console/past.rs"]
mod past;
#[path = "console/picture.rs"]
mod picture;
#[path = "console/screens.rs"]
mod screens;
#[path = "console/story.rs"]
mod story;
#[path = "console/verifier_page.rs"]
mod verifier_page;
#[path = "console/watched.rs"]
mod watched;
#[path = "console/world.rs"]
mod world;

use furnished::Furnished;
use serde_json::{Value, json};
use world::{PAGES, Person, World};

/// A text of JSON.
fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// B17: every page answers to a person on a first start, within 100 KB, escaped, with nothing inline and nothing of another
/// site, and has a JSON twin.
#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a table of all pages, and one look at each"
)]
fn every_page_is_shown_and_has_a_twin() {
    let furnished = Furnished::start();
    let world = &furnished.world;
    let in_session = json!({"arguments": {"text": "one"}, "session_id": "s-1"});
    world.call("notes.add", &in_session, None);
    let person = world.operator();
    let call = world.newest_call();
    let (_, asked) = person.get("/approvals.json");
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let question = text(&asked["approvals"][0]["id"]);
    // Each with a place in its twin that is there only if the page has something to show.
    let named = [
        (
            format!("/calls/{}", text(&call["request_id"])),
            "/records/0/record/tool",
        ),
        (
            format!("/calls/{}", text(&call["evidence"])),
            "/records/0/proof",
        ),
        (format!("/cases/{}", furnished.order), "/case"),
        (format!("/approvals/{question}"), "/approval/shown_digest"),
        (
            format!("/policy/explain?record={}", furnished.refused),
            "/because/0/entry",
        ),
    ];
    let pages = [
        ("/", "/calls/0/code"),
        ("/approvals", "/approvals/0/shown_digest"),
        ("/grants", "/grants/0/id"),
        ("/in-doubt", "/calls/0/key"),
        ("/notifications", "/notifications/0/deliveries"),
        ("/calls", "/calls/0/actor/type"),
        ("/tools", "/tools/0"),
        ("/upstreams", "/upstreams/0/health"),
        ("/evidence", "/checkpoints/0"),
        ("/policy", "/review/budgets/0/limit"),
        ("/policy/report", "/calls"),
        ("/errors", "/codes/0"),
        ("/settings", "/settings/0/origin"),
        ("/docs", "/groups/0"),
        ("/tools/notes.add", "/spec/name"),
        ("/errors/CONFLICT", "/code"),
        ("/docs/approvals", "/markdown"),
        ("/docs/errors", "/markdown"),
        ("/docs?q=idempotency", "/groups/0"),
        ("/sessions/s-1", "/calls/0/evidence"),
        ("/search?q=nothing", "/asked"),
        ("/calls?replayed=true&slow_ms=0", "/calls/0/took_us"),
    ];
    let is_listed = |page: &&str| pages.iter().any(|(listed, _)| listed == page);
    assert!(PAGES.iter().all(is_listed));
    let pages = pages.map(|(page, member)| (page.to_owned(), member));
    let mut seen = 0;
    for (page, member) in pages.into_iter().chain(named) {
        let (head, html) = person.get(&page);
        assert_eq!(head.status, 200, "{page}: {html}");
        assert_eq!(
            head.of("content-type"),
            "text/html; charset=utf-8",
            "{page}"
        );
        assert!(html.len() <= 100_000, "{page} has {} bytes", html.len());
        for inline in [
            " style=",
            "<style",
            "<script>",
            "javascript:",
            " onclick=",
            "src=\"http",
        ] {
            assert!(!html.contains(inline), "{page} has {inline}");
        }
        let policy = head.of("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(head.of("x-content-type-options"), "nosniff");
        assert_eq!(head.of("referrer-policy"), "same-origin");
        assert_eq!(head.of("cache-control"), "no-store");
        let twin = match page.split_once('?') {
            None if page == "/" => "/overview.json".to_owned(),
            None => format!("{page}.json"),
            Some((page, query)) => format!("{page}.json?{query}"),
        };
        let (head, json) = person.get(&twin);
        assert_eq!(head.status, 200, "{twin}: {json}");
        assert_eq!(head.of("content-type"), "application/json", "{twin}");
        let shown: Value = serde_json::from_str(&json).unwrap();
        let found = shown.pointer(member).filter(|value| !value.is_null());
        assert!(found.is_some(), "{twin} has no {member}: {json}");
        seen += 1;
    }
    assert!(seen >= 25, "{seen}");
}

/// B20: a session comes from the key of a person, never from that of an agent; its cookie is out of reach of scripts and other
/// sites, and it ends with its key.
#[test]
fn the_key_of_a_person_signs_in_and_that_of_an_agent_does_not() {
    let world = World::start(&[]);
    let ann = world.run(&["keys", "create", "--user", "ann"]);
    let agent = world.run(&["keys", "create", "--agent", "shopper", "--for", "ann"]);
    let mut person = Person::new(&world);
    let (head, _) = person.get("/calls?code=OK");
    assert_eq!(
        (head.status, head.of("location")),
        (303, "/sign-in?next=%2Fcalls%3Fcode%3DOK")
    );
    let (head, _) = person.get("/calls.json");
    assert_eq!(head.status, 401);

    for (key, says) in [
        (&*agent, "an agent"),
        ("ck_nothing", "not accepted"),
        ("", "not accepted"),
        ("\u{7}", "not accepted"),
    ] {
        let (head, html) = person.post("/sign-in", &[("key", key)]);
        assert_eq!((head.status, head.of("set-cookie")), (403, ""), "{key:?}");
        assert!(html.contains(says), "{html}");
    }
    let (head, _) = person.post("/sign-in", &[("key", &ann), ("next", "//evil.example")]);
    assert_eq!((head.status, head.of("location")), (303, "/"));
    let cookie = head.of("set-cookie").to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    person.keep(&head);
    let (head, html) = person.get("/");
    assert_eq!(head.status, 200);
    assert!(html.contains("<b>ann</b>"), "{html}");
    // What is for operators is not hers.
    for page in [
        "/settings",
        "/policy",
        "/in-doubt",
        "/notifications",
        "/upstreams",
    ] {
        assert_eq!(person.get(page).0.status, 403, "{page}");
    }

    let id = world.run(&["keys", "list", "--json"]);
    let keys: Value = serde_json::from_str(&id).unwrap();
    let is_ann = |key: &&Value| key["actor"]["type"] == "user";
    let id = keys.as_array().unwrap().iter().find(is_ann).unwrap()["id"].clone();
    world.run(&["keys", "revoke", id.as_str().unwrap()]);
    assert_eq!(person.get("/").0.status, 303);
}

/// B20: a link of the command signs the operator in, once. A form without the session's token does nothing, and signing out ends
/// the session.
#[test]
fn a_link_signs_in_once() {
    let world = World::start(&[]);
    world.run(&["keys", "create", "--user", "ann"]);
    let link = world.run(&["console"]);
    let (url, token) = link.split_once("/sign-in?link=").unwrap();
    assert_eq!(url, world.url);
    let mut person = Person::new(&world);
    // Looking at the address does not use it up.
    for _ in 0..2 {
        let (head, html) = person.get(&format!("/sign-in?link={token}"));
        assert!(head.status == 200 && html.contains("data-auto"));
    }
    let (head, _) = person.post("/sign-in", &[("link", token)]);
    assert_eq!(head.status, 303);
    let mut late = Person::new(&world);
    assert_eq!(late.post("/sign-in", &[("link", token)]).0.status, 403);
    late.keep(&head);
    person.keep(&head);
    let (_, html) = person.get("/settings");
    assert!(
        html.contains("operator/tester") && html.contains("server.listen"),
        "{html}"
    );

    assert_eq!(person.post("/sign-out", &[]).0.status, 403);
    assert_eq!(person.post("/sign-out", &[("csrf", "0")]).0.status, 403);
    assert_eq!(person.get("/settings").0.status, 200);
    assert_eq!(person.send("/sign-out", &[]).0.status, 303);
    assert_eq!(person.get("/settings").0.status, 303);
}

/// The page of another site, and a name that an attacker has pointed at this machine, reach nothing.
#[test]
fn other_sites_reach_nothing() {
    let world = World::start(&[]);
    let person = Person::new(&world);
    let (head, _) = person.get("/");
    assert_eq!(head.status, 200);
    for (name, value) in [("origin", "http://evil.example"), ("host", "evil.example")] {
        let (head, _) = person.with_header(name, value, "/");
        assert_eq!(head.status, 403, "{name}");
    }
}

/// A21: what was sent stays sealed until a person says why; the access is recorded before anything is shown, and what a model
/// wrote is text on the page.
#[test]
fn opening_asks_for_a_reason_and_is_recorded() {
    let world = World::start(&[]);
    world.call(
        "notes.add",
        &json!({"arguments": "{text: '<script>alert(1)</script>',}"}),
        None,
    );
    let mut person = world.operator();
    let call = world.newest_call();
    let path = format!("/calls/{}", call["evidence"].as_str().unwrap());
    let (_, html) = person.get(&path);
    assert!(!html.contains("alert(1)"));
    let open = format!("/evidence/{}/open", call["evidence"].as_str().unwrap());
    let (head, _) = person.send(&open, &[("reason", "  ")]);
    assert_eq!(head.status, 400);
    let accesses = |person: &Person<'_>| {
        let (_, json) = person.get("/evidence.json?kind=access");
        let page: Value = serde_json::from_str(&json).unwrap();
        page["acts"].as_array().unwrap().len()
    };
    assert_eq!(accesses(&person), 0);
    let (head, html) = person.send(&open, &[("reason", "a customer asked")]);
    assert_eq!(head.status, 200, "{html}");
    assert!(
        html.contains("&lt;script&gt;alert(1)") || html.contains("&#60;script&#62;alert(1)"),
        "{html}"
    );
    assert!(!html.contains("<script>alert"));
    assert_eq!(accesses(&person), 1);
}

/// A13: the bytes that are shown are the bytes that run. An answer to another rendering does not count, and an agent
/// cannot answer.
#[test]
fn what_is_shown_is_what_runs() {
    let world = World::start(&[]);
    world.call(
        "notes.add",
        &json!({"arguments": {"text": "call the bank"}}),
        None,
    );
    let asked = world.call("notes.clear", &json!({"arguments": {}}), None);
    let id = asked["error"]["details"]["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/approvals/{id}");

    // Whom nothing proves may look, and not answer.
    let mut nobody = Person::new(&world);
    let (_, html) = nobody.get(&path);
    assert!(!html.contains("name=\"decision\""), "{html}");
    nobody.visit("/");
    let (head, _) = nobody.send(&path, &[("decision", "approve")]);
    assert!(head.status >= 400, "{}", head.status);

    let mut person = world.operator();
    let (_, json) = person.get(&format!("{path}.json"));
    let approval: Value = serde_json::from_str(&json).unwrap();
    let digest = approval["approval"]["shown_digest"]
        .as_str()
        .unwrap()
        .to_owned();
    let (_, html) = person.get(&path);
    assert!(html.contains(&digest));
    let authority = between(&html, "id=\"authority\"", "</section>");
    assert!(
        authority.contains("</b><br><span class=\"help\">"),
        "{authority}"
    );
    let shown = between(&html, "id=\"exactly\"", "</pre>");
    let other = digest.split_at(digest.len() - 1).0.to_owned()
        + if digest.ends_with('0') { "1" } else { "0" };
    let (head, _) = person.send(&path, &[("decision", "approve"), ("shown_digest", &other)]);
    assert_eq!(head.status, 409);
    let (head, _) = person.send(&path, &[("decision", "approve"), ("shown_digest", &digest)]);
    assert_eq!(head.status, 303);
    let reply = world.call("notes.clear", &json!({"arguments": {}}), None);
    assert_eq!(reply["data"], json!({"cleared": 1}), "{reply}");

    // What the tool was given is what stood on the page, byte for byte.
    let record = world.newest_call()["evidence"].as_str().unwrap().to_owned();
    let opened = world.run(&["evidence", "open", &record, "--reason", "compare", "--json"]);
    let opened: Value = serde_json::from_str(&opened).unwrap();
    let ran = opened
        .pointer("/payload/arguments")
        .or(opened.pointer("/arguments"))
        .unwrap();
    assert_eq!(text_of(&shown), serde_json::to_string_pretty(ran).unwrap());
}

/// The text of a piece of HTML.
fn text_of(html: &str) -> String {
    let lines = html.split("<span class=\"l\">").skip(1);
    let lines = lines.map(|line| line.split("</span>").next().unwrap());
    let text = lines.collect::<Vec<_>>().join("\n");
    text.replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("&amp;", "&")
        .replace("&#38;", "&")
}

fn between(text: &str, from: &str, to: &str) -> String {
    let rest = text
        .split_once(from)
        .unwrap_or_else(|| panic!("no {from} in {text}"))
        .1;
    rest.split_once(to).unwrap().0.to_owned()
}

/// B17: guides are found by their words, a search without a result leads on, and an anchor is on the page that its link names.
#[test]
fn guides_are_searched() {
    let world = World::start(&[]);
    let person = Person::new(&world);
    let (_, html) = person.get("/docs?q=Terms+with+a+ceiling");
    assert!(html.contains("<a href=\"/docs/approvals\">"), "{html}");
    assert!(!html.contains("<a href=\"/docs/telemetry\">"), "{html}");
    let (_, html) = person.get("/docs?q=no+such+words+anywhere");
    assert!(html.contains("No guide has these words.") && html.contains("See all guides"));
    let (_, html) = person.get("/docs/grants");
    assert!(
        html.contains("href=\"/docs/approvals#terms-with-a-ceiling\""),
        "{html}"
    );
    let (_, html) = person.get("/docs/approvals");
    assert!(html.contains("id=\"terms-with-a-ceiling\""), "{html}");
    // Pages without content say what to do.
    let operator = world.operator();
    for (page, hint) in [
        ("/evidence?kind=erasure", "Choose another kind above."),
        ("/policy/report", "href=\"/docs/conditions#observing\""),
        ("/in-doubt", "href=\"/docs/operating#calls-in-doubt\""),
    ] {
        let (_, html) = operator.get(page);
        assert!(html.contains(hint), "{page}: {html}");
    }
    // Code is code, and a period is said once.
    let (_, html) = person.get("/errors");
    assert!(
        html.contains("<code>details.reason</code>") && !html.contains("`details"),
        "{html}"
    );
    let (_, html) = person.get("/errors/CONFLICT");
    assert_eq!(html.matches("24 hours").count(), 1, "{html}");
}

/// B17: the policy page shows for each tool who may call it, and which confirmations, rules, limits and budgets apply; the file is folded.
#[test]
fn the_policy_is_shown_tool_by_tool() {
    let furnished = Furnished::start();
    let (_, html) = furnished.world.operator().get("/policy");
    let row = |tool: &str| {
        let rights = between(&html, "id=\"rights\"", "</table>");
        between(&rights, &format!("href=\"/tools/{tool}\""), "</tr>")
    };
    let add = row("notes.add");
    for said in [
        "refuses",
        "no-secrets",
        "startsWith(",
        "long-notes",
        "observed",
    ] {
        assert!(add.contains(said), "{said}: {add}");
    }
    let pay = row("payment.create_payment_intent");
    for said in ["daily: 500000.00 EUR per 1d, each user", "asks a person"] {
        assert!(pay.contains(said), "{said}: {pay}");
    }
    // What all other agents may is not said in each row; the table of the agents says it once.
    assert!(!add.contains("Agents: "), "{add}");
    let vat = row("sample.vat");
    assert!(vat.contains("tax | admin"), "{vat}");
    let search = row("catalog.search_offers");
    let limit = "5,000 calls per 1h, all callers together";
    assert!(
        search.contains(limit) && !search.contains("daily"),
        "{search}"
    );
    let over_all = between(&html, "id=\"over-all\"", "</ul>");
    assert!(
        over_all.contains("100,000 calls per 1m, each user"),
        "{over_all}"
    );
    assert!(
        over_all.contains("1,000 identical calls of one session per 10m"),
        "{over_all}"
    );
    let agents = between(&html, "id=\"agents\"", "</table>");
    assert!(
        agents.contains("reader-*") && agents.contains("all other agents"),
        "{agents}"
    );
    let scopes = between(&html, "id=\"scopes\"", "</table>");
    assert!(scopes.contains("admin"), "{scopes}");
    let file = between(
        &html,
        "<details class=\"card mt\" id=\"file\">",
        "</details>",
    );
    assert!(file.contains("no-secrets"), "{file}");
}

/// The languages of the console, by the browser's and by choice.
#[test]
fn pages_speak_chinese() {
    let world = World::start(&[]);
    let mut person = Person::new(&world);
    let (_, html) = person.with_header("accept-language", "zh-CN,zh;q=0.9", "/calls");
    assert!(
        html.contains("<html lang=\"zh-CN\">") && html.contains("调用"),
        "{html}"
    );
    let (head, _) = person.get("/language/zh");
    assert_eq!(head.status, 303);
    person.keep(&head);
    let (_, html) = person.get("/tools");
    assert!(html.contains("<html lang=\"zh-CN\">") && html.contains("工具"));
}
