//! Pages and filters.

use crate::service::{Act, Service, json as answer};
use crate::world::{World, told};

fn read(more: &str) -> String {
    format!(
        r#"
        [[tool]]
        name = "svc.list"
        upstream = "svc"
        description = "Lists."
        request = {{ method = "GET", path = "/list" }}
        {more}
        "#
    )
}

/// B15: pages are joined up to the bound, which is reported.
#[tokio::test]
async fn pages_are_joined() {
    let service = Service::start(|seen, _| {
        let page = |items: &str, next: &str| {
            answer(200, &format!(r#"{{"items": {items}, "next": {next}}}"#))
        };
        match seen.target.split_once('?').map_or("", |it| it.1) {
            "" => page("[1, 2]", "\"a b\""),
            "c=a%20b" => page("[3]", "\"z\""),
            "c=z" => page("[4]", "null"),
            "page=1" => page("[1]", "null"),
            "page=2" => page("[2]", "null"),
            "o=0" => page("[1, 2]", "null"),
            "o=2" => page("[3]", "null"),
            "p=1" => {
                let link = "</base/list?p=2>; rel=\"next\", </base/list?p=9>; rel=\"last\"";
                Act::Answer(
                    200,
                    vec![
                        ("link", link.to_owned()),
                        ("content-type", "application/json".to_owned()),
                    ],
                    b"[1]".to_vec(),
                )
            }
            "p=2" => answer(200, "[2]"),
            "p=3" => {
                let link = "<http://127.0.0.1:1/base/list?p=4>; rel=\"next\"";
                let kind = "application/json".to_owned();
                let headers = vec![("link", link.to_owned()), ("content-type", kind)];
                Act::Answer(200, headers, b"[3]".to_vec())
            }
            _ => page("[]", "null"),
        }
    })
    .await;
    let mut lines = Vec::new();
    for pagination in [
        "pagination = { by.cursor = { parameter = 'c', next = '/next' }, items = '/items' }",
        "pagination = { by.cursor = { parameter = 'c', next = '/next' }, items = '/items', pages_max = 2 }\nresponse.data = '/items'",
        "pagination = { by.cursor = { parameter = 'c', next = '/next' }, items = '/items', items_max = 1 }",
        "pagination = { by.page = { parameter = 'page' }, items = '/items' }\nresponse.select = '.items | add'",
        "pagination = { by.offset = { parameter = 'o' }, items = '/items' }",
        "pagination = { by.cursor = { parameter = 'c', next = '/next' }, items = '/none' }",
    ] {
        let world = World::new(&service, "", &read(pagination));
        lines.push(told(&world.call("svc.list", "{}").await));
    }
    let linked = read("pagination.by.link = {}").replace(
        "path = \"/list\"",
        "path = \"/list\", query = { p = \"1\" }",
    );
    let world = World::new(&service, "", &linked);
    lines.push(told(&world.call("svc.list", "{}").await));
    // A list that goes on at another address is not the whole list.
    let elsewhere = linked.replace("p = \"1\"", "p = \"3\"");
    let world = World::new(&service, "", &elsewhere);
    lines.push(told(&world.call("svc.list", "{}").await));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ok {"items":[1,2,3,4],"next":null} 
    ok [1,2,3] MORE_PAGES
    ok {"items":[1],"next":"a b"} MORE_PAGES
    ok 3 
    ok {"items":[1,2,3],"next":null} 
    UPSTREAM_ERROR: the answer of the upstream svc has nothing at "/none" [final  ]
    ok [1,2] 
    ok [3] MORE_PAGES
    "#);
}

/// B15: a filter of the configuration, and one that the model chooses, which is checked before anything is sent.
#[tokio::test]
async fn filters_choose_what_is_answered() {
    let service = Service::start(|_, _| {
        answer(
            200,
            r#"{"items": [{"id": 1, "big": "x"}, {"id": 2, "big": "y"}]}"#,
        )
    })
    .await;
    let world = World::new(
        &service,
        "",
        &read("response = { select = '.items', select_by_model = true }"),
    );
    let mut lines = Vec::new();
    for arguments in [
        "{}",
        r#"{"select": "map(.id)"}"#,
        r#"{"select": "def f: f; f"}"#,
        r#"{"select": ".["}"#,
        r#"{"select": ".a"}"#,
    ] {
        lines.push(told(&world.call("svc.list", arguments).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ok [{"big":"x","id":1},{"big":"y","id":2}] 
    ok [1,2] 
    INVALID_ARGUMENT: the filter cannot be used: def cannot be used here [final  ]
    INVALID_ARGUMENT: the filter cannot be used: it is not a jq filter: near ".[" [final  ]
    UPSTREAM_ERROR: the filter does not fit the answer: a step of it got a value of another type [final  ]
    "#);
    assert_eq!(
        service.seen().len(),
        3,
        "what is no filter is refused first"
    );
    assert_eq!(
        service.last().target,
        "/base/list",
        "the filter is not sent"
    );
}

/// B15: all pages together are bounded, in bytes too, and the number of a page does not overflow.
#[tokio::test]
async fn pages_are_bounded_together() {
    let service = Service::start(|_, before| {
        let item = "x".repeat(40_000);
        answer(
            200,
            &format!(r#"{{"items": ["{item}"], "next": "{before}"}}"#),
        )
    })
    .await;
    let pagination = "pagination = { by.cursor = { parameter = 'c', next = '/next' }, items = '/items', pages_max = 1000 }\nresponse.select = '.items | length'";
    let world = World::new(&service, "response_bytes_max = 100000", &read(pagination));
    let reply = world.call("svc.list", "{}").await;
    assert_eq!(told(&reply), "ok 3 MORE_PAGES");
    assert_eq!(service.seen().len(), 3);

    let numbered = "pagination = { by.page = { parameter = 'page' }, items = '/items', pages_max = 3 }\nparameters = [{ name = 'page', kind = 'string', required = false }]\nresponse.select = '.items | length'";
    for by in [
        numbered.to_owned(),
        numbered.replace("by.page", "by.offset"),
    ] {
        let world = World::new(&service, "", &read(&by));
        let last = u64::MAX.to_string();
        let reply = world
            .call("svc.list", &format!(r#"{{"page": "{last}"}}"#))
            .await;
        // The number does not grow any more: the page is not fetched again.
        assert_eq!(told(&reply), "ok 1 MORE_PAGES");
    }
}

fn page(body: &str, link: Option<&str>) -> Act {
    let kind = ("content-type", "application/json".to_owned());
    let link = link.map(|link| ("link", format!("<{link}>; rel=\"next\"")));
    let headers = link.into_iter().chain([kind]).collect();
    Act::Answer(200, headers, body.as_bytes().to_vec())
}

/// B15: pages by path, by the address of the next page, after the last item, and by a member of the body. A list that is not
/// whole is never told as whole.
#[expect(clippy::too_many_lines, reason = "a page a line")]
#[tokio::test]
async fn pages_go_on_where_the_service_says() {
    let service = Service::start(|seen, _| {
        let text = seen.text();
        let target = seen.target.strip_prefix("/base").unwrap();
        match (target, &*text) {
            // By path, absolute and relative to the page.
            ("/list?by=path", _) => page("[1]", Some("/base/list/page/2?by=path")),
            ("/list/page/2?by=path", _) => page("[2]", Some("3?by=path")),
            ("/list/page/3?by=path", _) => page("[3]", None),
            // A query alone is one of the same page.
            ("/list?by=query", _) => page("[1]", Some("?by=query&p=2")),
            ("/list?by=query&p=2", _) => page("[2]", None),
            ("/list?by=up", _) => page("[1]", Some("/other/list")),
            ("/list?by=loop", _) => page("[1]", Some("/base/list/b?by=loop")),
            ("/list/b?by=loop", _) => page("[2]", Some("/base/list?by=loop")),
            // By address.
            ("/list?by=url", _) => answer(
                200,
                &format!(
                    r#"{{"results": [1], "next": "http://{}/base/list?by=url&page=2"}}"#,
                    seen.header("host")
                ),
            ),
            ("/list?by=url&page=2", _) => answer(200, r#"{"results": [2], "next": null}"#),
            ("/list?by=far", _) => answer(
                200,
                r#"{"results": [1], "next": "http://127.0.0.1:1/base/list?by=far&page=2"}"#,
            ),
            // After the last item.
            ("/list?by=item", _) => answer(
                200,
                r#"{"data": [{"id": "a"}, {"id": "b"}], "has_more": true}"#,
            ),
            ("/list?by=item&starting_after=b", _) => {
                answer(200, r#"{"data": [{"id": "c"}], "has_more": false}"#)
            }
            ("/list?by=item&starting_after=c", _) => answer(200, r#"{"data": []}"#),
            // The same cursor again.
            ("/list?by=same" | "/list?by=same&c=x", _) => {
                answer(200, r#"{"data": [1], "next": "x"}"#)
            }
            // By a member of the body.
            ("/search", r#"{"q":"a","after":null}"# | r#"{"q":"a"}"#) => {
                answer(200, r#"{"data": [1], "next": "x"}"#)
            }
            ("/search", r#"{"q":"a","after":"x"}"#) => answer(200, r#"{"data": [2], "next": 7}"#),
            ("/search", r#"{"q":"a","after":7}"#) => answer(200, r#"{"data": [3]}"#),
            ("/search", r#"{"q":"n","page":1}"#) => answer(200, r#"{"data": [1]}"#),
            ("/search", r#"{"q":"n","page":2}"#) => answer(200, r#"{"data": []}"#),
            other => answer(500, &format!("{other:?}")),
        }
    })
    .await;
    let by = |by: &str, pagination: &str| {
        read(pagination).replace(
            "path = \"/list\"",
            &format!("path = \"/list\", query = {{ by = \"{by}\" }}"),
        )
    };
    let search = |q: &str, pagination: &str| {
        format!(
            "{}\neffect = 'read'\nparameters = [{{ name = 'q' }}, {{ name = 'after', required = false }}]\narguments.q.preset = '{q}'",
            read(pagination).replace(
                "method = \"GET\", path = \"/list\"",
                "method = \"POST\", path = \"/search\""
            )
        )
    };
    let item = "{ parameter = 'starting_after', last_item = '/id'";
    let mut lines = Vec::new();
    for entry in [
        by("path", "pagination.by.link = {}"),
        by("query", "pagination.by.link = {}"),
        by("up", "pagination.by.link = {}"),
        by("loop", "pagination.by.link = {}"),
        by(
            "url",
            "pagination = { by.next_url = { next = '/next' }, items = '/results' }",
        ),
        by(
            "far",
            "pagination = { by.next_url = { next = '/next' }, items = '/results' }",
        ),
        by(
            "item",
            &format!(
                "pagination = {{ by.cursor = {item} }}, items = '/data' }}\nresponse.data = '/data'"
            ),
        ),
        by(
            "item",
            &format!(
                "pagination = {{ by.cursor = {item}, more = '/has_more' }}, items = '/data' }}\nresponse.data = '/data'"
            ),
        ),
        by(
            "same",
            "pagination = { by.cursor = { parameter = 'c', next = '/next' }, items = '/data' }\nresponse.data = '/data'",
        ),
        search(
            "a",
            "pagination = { by.cursor = { parameter = 'after', in = 'body', next = '/next' }, items = '/data' }\nresponse.data = '/data'",
        ),
        search(
            "n",
            "pagination = { by.page = { parameter = 'page', in = 'body' }, items = '/data' }\nresponse.data = '/data'",
        ),
    ] {
        let world = World::new(&service, "", &entry);
        let reply = world.call("svc.list", "{}").await;
        lines.push(format!("{} ({})", told(&reply), service.last().target));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ok [1,2,3]  (/base/list/page/3?by=path)
    ok [1,2]  (/base/list?by=query&p=2)
    ok [1] MORE_PAGES (/base/list?by=up)
    ok [1,2] MORE_PAGES (/base/list/b?by=loop)
    ok {"next":null,"results":[1,2]}  (/base/list?by=url&page=2)
    ok {"next":"http://127.0.0.1:1/base/list?by=far&page=2","results":[1]} MORE_PAGES (/base/list?by=far)
    ok [{"id":"a"},{"id":"b"},{"id":"c"}]  (/base/list?by=item&starting_after=c)
    ok [{"id":"a"},{"id":"b"},{"id":"c"}]  (/base/list?by=item&starting_after=b)
    ok [1,1] MORE_PAGES (/base/list?by=same&c=x)
    ok [1,2,3]  (/base/search)
    ok [1]  (/base/search)
    "#);
}

/// B15: a search whose body has the page is not asked for its first page again and again.
#[test]
fn a_page_in_the_body_is_declared_so() {
    let entry = |pagination: &str| {
        let text = format!(
            r#"
            [[upstream]]
            name = "svc"
            base_url = "https://svc.example"
            [[tool]]
            name = "svc.search"
            upstream = "svc"
            description = "Searches."
            effect = "read"
            request = {{ method = "POST", path = "/search" }}
            parameters = [{{ name = "page", kind = "integer", required = false }}]
            pagination = {{ {pagination}, items = "/items" }}
            "#
        );
        let manifest: countersign_upstream::Manifest = toml::from_str(&text).unwrap();
        let complaints = manifest.check().into_iter();
        complaints.map(|it| it.message).collect::<Vec<_>>()
    };
    let in_body = "the argument is sent in the body; add in = \"body\"";
    for (pagination, expected) in [
        ("by.page = { parameter = 'page' }", &[in_body][..]),
        ("by.page = { parameter = 'page', in = 'body' }", &[]),
        ("by.offset = { parameter = 'from' }", &[]),
        (
            "by.cursor = { parameter = 'c' }",
            &["say where the cursor is: either next or last_item"],
        ),
        (
            "by.cursor = { parameter = 'c', next = '/a', last_item = '/b' }",
            &["say where the cursor is: either next or last_item"],
        ),
    ] {
        assert_eq!(entry(pagination), expected, "{pagination}");
    }
}
