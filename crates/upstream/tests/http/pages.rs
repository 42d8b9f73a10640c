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
        assert_eq!(told(&reply), "ok 3 MORE_PAGES");
    }
}
