//! The console as people use it: a server, a browser's requests, and a real browser.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

#[path = "console/answers.rs"]
mod answers;
#[path = "console/browser.rs"]
mod browser;
#[path = "console/dispute.rs"]
mod dispute;
#[path = "console/doubts.rs"]
mod doubts;
#[path = "console/everybody.rs"]
mod everybody;
#[path = "console/forms.rs"]
mod forms;
#[path = "console/in_browser.rs"]
mod in_browser;
#[path = "console/inbox.rs"]
mod inbox;
#[path = "console/issuer.rs"]
mod issuer;
#[path = "console/log_page.rs"]
mod log_page;
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

use serde_json::{Value, json};
use world::{PAGES, Person, World};

/// B17: every page answers to a person on a first start, within 100 KB, escaped, with nothing inline and nothing of another
/// site, and has a JSON twin.
#[test]
fn every_page_is_shown_and_has_a_twin() {
    let world = World::start(&[]);
    world.busy();
    let in_session = json!({"arguments": {"text": "one"}, "session_id": "s-1"});
    world.call("notes.add", &in_session, None);
    let person = Person::new(&world);
    let call = world.newest_call();
    let more = [
        format!("/calls/{}", call["request_id"].as_str().unwrap()),
        format!("/calls/{}", call["evidence"].as_str().unwrap()),
        format!("/cases/{}", call["evidence"].as_str().unwrap()),
        "/tools/notes.add".to_owned(),
        "/errors/CONFLICT".to_owned(),
        "/docs/approvals".to_owned(),
        "/sessions/s-1".to_owned(),
        "/search?q=nothing".to_owned(),
        format!(
            "/policy/explain?record={}",
            call["evidence"].as_str().unwrap()
        ),
    ];
    let pages = PAGES.iter().map(ToString::to_string).chain(more);
    let mut seen = 0;
    for page in pages {
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
        assert_eq!(head.of("content-type"), "application/json", "{twin}");
        assert!(
            serde_json::from_str::<Value>(&json).unwrap().is_object(),
            "{twin}"
        );
        seen += 1;
    }
    assert!(seen >= 15);
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
