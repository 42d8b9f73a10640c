//! Pages that a form leads to: their links, another language, and the address in the history of the browser.

use serde_json::Value;

use super::between;
use super::furnished::Furnished;

/// The page that a form leads to has a JSON twin, and its address leads to a page in another language too.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of forms")]
fn the_page_after_a_form_leads_on() {
    let furnished = Furnished::start();
    let world = &furnished.world;
    let mut person = world.operator();
    let record = &furnished.refused;
    let asked = person.get("/approvals.json").1;
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let question = asked["approvals"][0]["id"].as_str().unwrap();
    let reason = ("reason", "a customer asked");
    for (form, fields, page) in [
        (
            format!("/evidence/{record}/open"),
            vec![reason],
            format!("/calls/{record}"),
        ),
        (
            format!("/evidence/{record}/check"),
            vec![("mode", "verify")],
            format!("/calls/{record}"),
        ),
        (
            format!("/calls/{record}/again"),
            vec![reason, ("raw", "{}")],
            format!("/calls/{record}"),
        ),
        (
            format!("/cases/{record}/open"),
            vec![reason],
            format!("/cases/{record}"),
        ),
        (
            format!("/approvals/{question}/open"),
            vec![reason],
            format!("/approvals/{question}"),
        ),
        (
            "/evidence/reasons".to_owned(),
            vec![reason, ("kind", "access"), ("record", record)],
            "/evidence".to_owned(),
        ),
        (
            "/upstreams/crm/test".to_owned(),
            Vec::new(),
            "/upstreams".to_owned(),
        ),
        (
            "/in-doubt/settle".to_owned(),
            vec![
                reason,
                ("user", "nobody"),
                ("all", "true"),
                ("outcome", "not"),
            ],
            "/in-doubt".to_owned(),
        ),
        (
            "/holds".to_owned(),
            vec![reason, ("user", "ann"), ("do", "hold")],
            "/calls".to_owned(),
        ),
        (
            "/erasures".to_owned(),
            vec![reason, ("user", "ann")],
            "/calls".to_owned(),
        ),
    ] {
        let (_, html) = person.send(&form, &fields);
        let twin = between(&html, "<div class=\"right\"><a href=\"", "\" data-twin");
        assert_eq!(twin, format!("{page}.json"), "{form}");
        let (head, json) = person.get(&twin);
        assert_eq!(head.status, 200, "{form}: {twin}: {json}");
        let (head, _) = person.get(&form);
        assert_eq!((head.status, head.of("location")), (303, &*page), "{form}");
        let (head, _) = person.get(&page);
        assert_eq!(head.status, 200, "{page}");
    }
}

/// Reasons are shown on the page on which they were opened, also if it is not the first one.
#[test]
fn reasons_of_older_acts_are_shown_where_they_were_opened() {
    let furnished = Furnished::start();
    let mut person = furnished.world.operator();
    let open = format!("/evidence/{}/open", furnished.refused);
    for at in 0..52 {
        let reason = format!("look {at}");
        let (head, html) = person.send(&open, &[("reason", &reason)]);
        assert_eq!(head.status, 200, "{html}");
    }
    let (_, first) = person.get("/evidence?kind=access");
    let older = between(&first, "id=\"next\" href=\"", "\"").replace("&#38;", "&");
    let (_, second) = person.get(&older);
    let form = between(&second, "id=\"reasons\"", "</form>");
    let fields = hidden(&form);
    let fields: Vec<(&str, &str)> = fields
        .iter()
        .filter(|(name, _)| name != "csrf")
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .chain([("reason", "the yearly review")])
        .collect();
    let (head, html) = person.send("/evidence/reasons", &fields);
    assert_eq!(head.status, 200, "{html}");
    assert!(html.contains(">look 0<"), "{html}");
    assert!(!html.contains(">look 51<"), "{html}");
}

/// The hidden fields of a form.
fn hidden(form: &str) -> Vec<(String, String)> {
    let fields = form.split("<input type=\"hidden\" name=\"").skip(1);
    let fields = fields.map(|field| {
        let (name, rest) = field.split_once("\" value=\"").unwrap();
        let value = rest.split_once('"').unwrap().0;
        (name.to_owned(), value.to_owned())
    });
    fields.collect()
}
