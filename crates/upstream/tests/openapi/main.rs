//! Import of OpenAPI documents: the documents of this folder, laws, and, where a variable names folders, documents of others.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::format_push_string,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "these are tests: a surprise ends them, and the figures of a corpus are printed"
)]

mod corpus;
mod excuse;
mod honest;
mod hostile;
mod laws;
mod original;
mod sample;
#[path = "../http/service.rs"]
#[expect(dead_code, reason = "faults are for the tests of requests")]
mod service;
mod trip;

use std::collections::BTreeMap;

use countersign_upstream::Manifest;
use countersign_upstream::openapi::{Import, Options, diff, import, import_told, write};
use proptest::prelude::*;
use serde_json::{Value, json};

fn document(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi/documents");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn imported(name: &str) -> Import {
    let options = Options {
        document: name.to_owned(),
        ..Options::default()
    };
    import(&document(name), &options).unwrap()
}

/// The input of a tool.
fn input(import: &Import, tool: &str) -> Value {
    let entry = import.manifest.tool.iter().find(|it| it.name == tool);
    let entry = entry.unwrap_or_else(|| panic!("{tool}: {:#?}", import.report));
    Value::Object(entry.input.clone().unwrap())
}

/// B15: an operation that cannot be imported is refused alone, with its line and the reason.
#[test]
fn refusals_have_their_line_and_reason() {
    let import = imported("refused.yaml");
    let refused = import.report.refused.iter();
    let refused: Vec<String> = refused
        .map(|it| format!("{} {}: {}", it.line, it.operation, it.reason))
        .collect();
    insta::assert_snapshot!(refused.join("\n"));
    let tools: Vec<&str> = import
        .manifest
        .tool
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(tools, ["refused.get_good", "refused.get_apart"]);
}

/// B15: the file is read by people, and by the program as it was meant.
#[test]
fn the_file_says_what_was_imported() {
    let import = imported("swagger.json");
    let text = write::toml(&import, &[]);
    insta::assert_snapshot!(text);
    for name in [
        "swagger.json",
        "styles.yaml",
        "bodies.yaml",
        "schemas.yaml",
        "schemas31.yaml",
        "names.yaml",
        "servers.yaml",
        "refused.yaml",
    ] {
        let import = imported(name);
        let text = write::toml(&import, &[]);
        let read = write::read(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        assert_eq!(read, import.manifest, "{name}");
        assert_eq!(read.check(), [], "{name}");
    }
}

/// B15: effects are guesses by the method and say so; a POST is never a read.
#[test]
fn effects_are_guesses() {
    use countersign::contract::Effect;
    for name in ["bodies.yaml", "styles.yaml", "swagger.json"] {
        for entry in imported(name).manifest.tool {
            let method = entry.request.as_ref().unwrap().method;
            let expected = if method.is_safe() {
                Effect::Read
            } else {
                Effect::External
            };
            assert_eq!(entry.effect, Some(expected), "{}", entry.name);
            assert_eq!(entry.guessed, ["effect"], "{}", entry.name);
        }
    }
}

#[test]
fn names_are_made_of_ids_or_of_method_and_path() {
    let import = imported("names.yaml");
    let names: Vec<&str> = import
        .manifest
        .tool
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    insta::assert_snapshot!(names.join("\n"));
    let arguments = input(&import, "names.get_users_user_id_posts_post_id");
    let names: Vec<&String> = arguments["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(names, ["postId", "top", "top_query", "user_id"]);
}

/// The address, the variables and the credential are chosen, and the choice is reported.
#[test]
fn servers_and_credentials_are_chosen_and_told() {
    let import = imported("servers.yaml");
    let upstreams = import
        .manifest
        .upstream
        .iter()
        .map(|it| format!("{} {}", it.name, it.base_url));
    let told = upstreams
        .chain(import.report.notes.clone())
        .collect::<Vec<_>>();
    insta::assert_snapshot!(told.join("\n"));
    let auth = serde_json::to_value(&import.manifest.upstream[0].auth).unwrap();
    assert_eq!(
        auth["client_credentials"]["client_secret"],
        "env:SERVERS_CLIENT_SECRET"
    );
}

/// B17: the schemes of one requirement are sent together, each with a variable of its own; those of another one are left out.
#[test]
fn every_scheme_of_a_requirement_is_written() {
    let text = r#"{
        "openapi": "3.0.0",
        "info": { "title": "Metrics", "version": "1" },
        "servers": [{ "url": "https://api.metrics.example" }],
        "security": [{ "apiKey": [], "appKey": [] }, { "token": [] }],
        "components": { "securitySchemes": {
            "apiKey": { "type": "apiKey", "in": "header", "name": "DD-API-KEY" },
            "appKey": { "type": "apiKey", "in": "header", "name": "DD-APPLICATION-KEY" },
            "token": { "type": "http", "scheme": "bearer" }
        } },
        "paths": { "/a": { "get": { "operationId": "a", "responses": {} } } }
    }"#;
    let import = import(text, &Options::default()).unwrap();
    let written = write::toml(&import, &[]);
    let lines = written
        .lines()
        .skip_while(|line| !line.starts_with("[[upstream]]"));
    let lines: Vec<_> = lines
        .take_while(|line| !line.starts_with("[[tool]]"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    [[upstream]]
    name = "metrics"
    base_url = "https://api.metrics.example"
    auth = [{ header = { name = "DD-API-KEY", value = "env:METRICS_APIKEY_API_KEY" } }, { header = { name = "DD-APPLICATION-KEY", value = "env:METRICS_APPKEY_API_KEY" } }]
    "#);
    assert_eq!(
        import.report.notes,
        ["of several credentials \"apiKey\" and \"appKey\" were chosen; the others: token"]
    );
    let again = write::read(&written).unwrap();
    assert_eq!(again.upstream[0].auth, import.manifest.upstream[0].auth);
    assert_eq!(again.upstream[0].auth.iter().count(), 2);
}

/// Two schemes of one requirement that both go into `Authorization` cannot be sent together.
#[test]
fn a_scheme_whose_place_is_taken_is_left_out() {
    let text = r#"{
        "openapi": "3.0.0",
        "info": { "title": "Metrics", "version": "1" },
        "servers": [{ "url": "https://api.metrics.example" }],
        "security": [{ "token": [], "key": [], "login": [] }],
        "components": { "securitySchemes": {
            "token": { "type": "http", "scheme": "bearer" },
            "key": { "type": "apiKey", "in": "query", "name": "key" },
            "login": { "type": "http", "scheme": "basic" }
        } },
        "paths": { "/a": { "get": { "operationId": "a", "responses": {} } } }
    }"#;
    let import = import(text, &Options::default()).unwrap();
    assert_eq!(import.manifest.check(), []);
    assert_eq!(import.manifest.upstream[0].auth.iter().count(), 2);
    assert_eq!(
        import.report.notes,
        ["the credential \"login\" is left out: another one has its place in the request"]
    );
}

#[test]
fn schemas_become_json_schema() {
    let import = imported("schemas.yaml");
    let names = ["tree", "pet", "cat", "joined", "numbers", "union"];
    let inputs: BTreeMap<&str, Value> = names
        .into_iter()
        .map(|it| (it, input(&import, &format!("schemas.{it}"))))
        .collect();
    insta::assert_json_snapshot!(inputs);
    insta::assert_json_snapshot!(
        "schemas_of_3_1",
        input(&imported("schemas31.yaml"), "schemas_of_3_1.thing")
    );
}

/// An import tells how far it is, and its last count is the number of operations in the report.
#[test]
fn an_import_tells_how_far_it_is() {
    for name in ["bodies.yaml", "servers.yaml", "schemas.yaml"] {
        let mut told = Vec::new();
        let mut tell = |done, all| told.push((done, all));
        let made = import_told(&document(name), &Options::default(), &mut tell).unwrap();
        let all = made.report.operations;
        assert_eq!(told.first(), Some(&(0, all)), "{name}");
        assert_eq!(told.last(), Some(&(all, all)), "{name}");
        assert!(told.is_sorted(), "{name}: {told:?}");
    }
}

/// A default is described and never sent: a PATCH would overwrite members that the caller did not name.
#[test]
fn defaults_are_words() {
    let import = imported("bodies.yaml");
    let merge = input(&import, "bodies.json_merge");
    assert_eq!(
        merge["properties"]["note"],
        json!({"type": ["string", "null"], "description": "Default: none."})
    );
}

fn changed(old: &Manifest, new: &str) -> (Import, diff::Difference) {
    let options = Options {
        names: diff::names(old),
        document: "pets".to_owned(),
        ..Options::default()
    };
    let import = import(new, &options).unwrap();
    let difference = diff::between(old, &import.manifest);
    (import, difference)
}

/// B15: the next import tells what differs, keeps the names, and notices edits by hand.
#[test]
fn the_next_import_tells_the_difference() {
    let first = "
openapi: 3.0.0
info: { title: Pets }
servers: [{ url: 'https://pets.example' }]
paths:
  /pets: { get: { operationId: list, parameters: [{ name: limit, in: query, schema: { type: integer, maximum: 100 } }] } }
  /pets/{id}: { delete: { operationId: remove, parameters: [{ name: id, in: path, required: true, schema: { type: string } }] } }
";
    let second = "
openapi: 3.0.0
info: { title: Pets }
servers: [{ url: 'https://pets.example' }]
paths:
  /aaa: { get: { operationId: list } }
  /pets: { get: { operationId: listAll, parameters: [{ name: limit, in: query, required: true, schema: { type: integer, maximum: 50 } }] } }
";
    let none = Manifest::default();
    let (old, all) = changed(&none, first);
    assert_eq!((all.added.len(), all.changed.len()), (2, 0));
    let written = write::toml(&old, &[]);
    let mut old = write::read(&written).unwrap();
    assert!(changed(&old, first).1.is_empty(), "nothing has changed");
    let (new, difference) = changed(&old, second);
    insta::assert_json_snapshot!(difference);
    assert_eq!(
        new.manifest.tool[1].name, "pets.list",
        "the operation keeps its name"
    );
    assert_ne!(new.manifest.tool[0].name, "pets.list");
    old.tool[0].title = Some("By hand".to_owned());
    let edited = changed(&old, first).1.edited;
    assert_eq!(
        edited.iter().map(|it| it.tool.as_str()).collect::<Vec<_>>(),
        ["pets.list"]
    );
}

#[test]
fn operations_are_chosen_by_patterns() {
    let check = |only: &[&str], skip: &[&str], expected: &[&str]| {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let options = Options {
            only: owned(only),
            skip: owned(skip),
            ..Options::default()
        };
        let import = import(&document("swagger.json"), &options).unwrap();
        let names: Vec<&str> = import
            .manifest
            .tool
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(names, expected);
    };
    check(&["*pet*"], &[], &["swagger.list_pets", "swagger.add_pet"]);
    check(&["POST *"], &["addPet", "/photo"], &["swagger.post_form"]);
}

/// Any JSON at all.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "$ref",
        "type",
        "properties",
        "allOf",
        "oneOf",
        "items",
        "parameters",
        "requestBody",
        "content",
        "application/json",
        "schema",
        "get",
        "post",
        "name",
        "in",
        "query",
        "path",
        "required",
        "enum",
        "#/paths/~1a/get",
        "#/components/schemas/A",
        "object",
        "array",
        "string",
        "{id}",
        "servers",
        "url",
        "security",
        "security",
        "additionalProperties",
        "nullable",
        "pattern",
        "(",
        "multipart/form-data",
        "style",
        "deepObject",
        "readOnly",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 80, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(
                prop_oneof![word.clone().prop_map(str::to_owned), "\\PC{0,6}"],
                inner,
                0..8
            )
            .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever stands in a document: no panic, every operation is a tool or refused, and the file can be used.
    #[test]
    fn any_document_is_imported_or_refused(item in any_json(), schemas in any_json(), servers in any_json(), version in prop::sample::select(vec!["2.0", "3.0.0", "3.1.0"])) {
        let versioned = if version == "2.0" { "swagger" } else { "openapi" };
        let document = json!({
            versioned: version, "servers": servers, "info": { "title": "Any" },
            "paths": { "/a": item, "/b/{id}": { "post": item, "get": { "parameters": item, "requestBody": item } } },
            "components": { "schemas": { "A": schemas } }, "definitions": { "A": schemas },
        });
        let import = import(&document.to_string(), &Options::default()).unwrap();
        let report = &import.report;
        prop_assert_eq!(report.operations, report.tools.len() + report.refused.len());
        let text = write::toml(&import, &[]);
        let read = write::read(&text);
        prop_assert!(read.is_ok(), "{:?}\n{}", read, text);
        prop_assert_eq!(read.unwrap().check(), []);
    }

    #[test]
    fn any_text_is_a_document_or_none(text in "\\PC{0,200}|(openapi: 3.0.0\n)?(\\PC{0,20}: [\\[{]?\\PC{0,10}\n){0,9}") {
        let _ = import(&text, &Options::default());
    }
}
