//! Names and paths that lead elsewhere: tools, records, tiles, approvals, keys.

use serde_json::json;

use crate::case::{Case, Expected, FORBIDDEN, INVALID, NOT_FOUND, Request, Tally, case};
use crate::world::{Backing, World};

/// Odd names reach no file, no other route and no other user's data.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let world = World::start(backing).await;
    let mut tally = Tally::new("names");
    tally.run(&world, "tools", tools(&world)).await;
    tally.run(&world, "records", records(&world)).await;
    tally.run(&world, "routes", routes(&world)).await;
    tally.run(&world, "tools of MCP", of_mcp(&world)).await;
    tally
}

const HARM: &str = "a tool, a file or a route that was not named";

fn tools(world: &World) -> Vec<Case> {
    let long = "a".repeat(8_000);
    let mut cases = Vec::new();
    for name in [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "..%5c..%5cwindows",
        "%00",
        "notes.add%00",
        "notes.add%00.json",
        "NOTES.ADD",
        "Notes.add",
        "notes..add",
        ".notes.add",
        "notes.add.",
        "notes%2eadd%2e",
        "notes.add%20",
        "%20notes.add",
        "notes.add%0d%0ax-evil:%201",
        "notes.add%3fdry_run=true",
        "notes.add;v=1",
        "notes.*",
        "*",
        "%EF%BD%8Eotes.add",
        "notes%E2%80%8B.add",
        "notes.ad%C4%91",
        "$mcp",
        "constructor",
        &long,
    ] {
        let body = json!({"arguments": {"text": "forged"}}).to_string();
        let request = Request::post(format!("/v1/tools/{name}"), body).by(&world.cast.bob);
        let shown: String = name.chars().take(30).collect();
        cases.push(case(format!("the tool {shown}"), request, NOT_FOUND, HARM));
    }
    for name in ["%FF", "%C3%28", "notes.add%ff", "%ED%A0%80"] {
        let request = Request::post(format!("/v1/tools/{name}"), "{}").by(&world.cast.bob);
        cases.push(case(format!("the tool {name}"), request, INVALID, HARM));
    }
    cases
}

fn records(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let mut cases = Vec::new();
    let own = &world.record;
    let upper = own.to_uppercase();
    for id in [
        "..%2f..%2fcountersign.db",
        "%00",
        "ev_",
        "ev_%00",
        "ev_00000000-0000-0000-0000-000000000000",
        &upper,
        "ev_1%27%20OR%20%271%27=%271",
        "*",
        "%25",
        "ev_%E2%80%8B",
        &format!("{own}%00"),
        &format!("%20{own}"),
    ] {
        for path in [
            format!("/v1/evidence/{id}"),
            format!("/v1/evidence/{id}/bundle"),
        ] {
            cases.push(case(
                format!("the record {path}"),
                Request::get(path).by(bob),
                NOT_FOUND,
                HARM,
            ));
        }
    }
    for tile in [
        "0/../../../etc/passwd",
        "0/..%2f..%2fetc%2fpasswd",
        "0/-01",
        "0/999999999999999999999",
        "64/000",
        "0/x000/x000/000",
        "entries/../0/000",
        "0/000.p/256",
        "0/000.p/0",
        "data/000",
        "%00",
        "0/%2e%2e/000",
    ] {
        let request = Request::get(format!("/v1/log/tile/{tile}")).by(bob);
        cases.push(case(format!("the tile {tile}"), request, NOT_FOUND, HARM));
    }
    for path in [
        "/v1/approvals/..%2fkeys",
        "/v1/approvals/%00",
        "/v1/approvals/ap_%25",
        "/v1/calls/..%2f..%2f",
    ] {
        cases.push(case(
            format!("the path {path}"),
            Request::get(path).by(bob),
            NOT_FOUND,
            HARM,
        ));
    }
    for path in [
        "/v1/evidence/%FF",
        "/v1/calls/%FF",
        "/v1/approvals/%FF",
        "/v1/log/tile/%FF",
    ] {
        cases.push(case(
            format!("the path {path}"),
            Request::get(path).by(bob),
            INVALID,
            HARM,
        ));
    }
    for query in [
        "user=ann&user=bob",
        "user=bob&%75ser=ann",
        "cursor=..%2f",
        "limit=-1",
        "limit=1e9",
        "since=now()",
        "users=ann",
    ] {
        let request = Request::get(format!("/v1/calls?{query}")).by(bob);
        cases.push(case(
            format!("the calls of {query}"),
            request,
            INVALID,
            HARM,
        ));
    }
    cases.push(case(
        "the calls of %61nn",
        Request::get("/v1/calls?user=%61nn").by(bob),
        FORBIDDEN,
        HARM,
    ));
    cases
}

fn routes(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let mut cases = Vec::new();
    for path in [
        "/v1/tools//notes.add",
        "/v1/tools/notes.add/",
        "/v1//keys",
        "//v1/keys",
        "/../v1/keys",
        "/v1/./keys",
        "/v1/tools/../keys",
        "/v1/%6beys",
        "/V1/keys",
        "/v1/keys%2f",
        "/v1/keys;a=b",
        "/v1/rules/../keys",
        "/v1/policies",
        "/v1/rules",
        "/policy.toml",
        "/countersign.db",
        "/.env",
        "/server.json",
        "/%2e%2e/",
        "/v1/log/tile/",
        "/openapi.json/",
        "/metrics/..;/v1/keys",
    ] {
        cases.push(case(
            format!("the path {path}"),
            Request::get(path).by(bob),
            NOT_FOUND,
            HARM,
        ));
    }
    for (method, path) in [
        ("PUT", "/v1/tools/notes.add"),
        ("DELETE", "/v1/tools/notes.add"),
        ("TRACE", "/v1/tools"),
        ("PATCH", "/v1/keys"),
        ("CONNECT", "/v1/keys"),
        ("GET", "/v1/providers/openai/calls"),
    ] {
        let request = Request::new(method, path).by(bob);
        let expected = Expected::Code(405, "INVALID_ARGUMENT");
        cases.push(case(format!("{method} {path}"), request, expected, HARM));
    }
    cases
}

fn of_mcp(world: &World) -> Vec<Case> {
    let bob = &world.cast.bob;
    let mut cases = Vec::new();
    for name in [
        "../notes_add",
        "notes_add\u{0}",
        "Notes_Add",
        "notes_add ",
        "",
        "notes/add",
        "$mcp",
        "notes\u{200b}_add",
    ] {
        let params = json!({"name": name, "arguments": {"text": "forged"}});
        let request = Request::older_mcp("tools/call", &params).by(bob);
        cases.push(case(
            format!("the tool {name:?} (MCP)"),
            request,
            Expected::Rpc(200, -32602),
            HARM,
        ));
    }
    for uri in [
        "evidence://../keys",
        "file:///etc/passwd",
        "EVIDENCE://x",
        "evidence://%00",
        "http://169.254.169.254/",
        "evidence://",
    ] {
        let params = json!({"uri": uri});
        let request = Request::older_mcp("resources/read", &params).by(bob);
        cases.push(case(
            format!("the resource {uri:?}"),
            request,
            Expected::Rpc(200, -32002),
            HARM,
        ));
    }
    cases
}
