//! The catalog of tools while it changes (B1, B11, B14), and old handlers in it (B8, B13).

use std::sync::Arc;

use countersign::adapter::{
    Handler, HandlerError, HandlerRequest, HandlerResult, HandlerTool, ToolHandler,
};
use countersign::catalog::Error;
use countersign::contract::{Input, Parameter, ToolName, ToolSpec, ValueKind};
use countersign::sample::{Diagnostics, MemorySearch};
use countersign::{BoxFuture, CallContext, Catalog, DynTool, Executor, Principal, ToolCall};
use serde_json::{Value, json};

use crate::world::{Probe, World, check_error};

fn names(catalog: &Catalog) -> Vec<String> {
    catalog
        .list()
        .iter()
        .map(|entry| entry.name().to_string())
        .collect()
}

/// B1: a declaration can be read without running anything, in the same order every time.
#[test]
fn tools_are_listed_by_name() {
    let catalog = Catalog::builder()
        .tool(MemorySearch::new(["a note"]))
        .tool(Diagnostics)
        .build()
        .unwrap();
    assert_eq!(names(&catalog), ["diagnostics.echo", "memory.search"]);
    let entry = catalog.get("memory_search").unwrap();
    assert_eq!(entry.spec().json_schema()["required"], json!(["query"]));
    assert_eq!(entry.alias(), "memory_search");
}

/// B14: two tools that a provider could not tell apart are refused at the second, with both names.
#[test]
fn names_that_meet_in_one_alias_are_refused() {
    let build = |names: [&str; 2]| {
        names
            .into_iter()
            .fold(Catalog::builder(), |builder, name| {
                builder.dyn_tool(Arc::new(Probe::read(name)))
            })
            .build()
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let taken = |name: &str, other: &str| {
        Err(format!(
            "the tool {name} has the provider name \"a_b_c\", which is that of {other}; \
             rename one of them"
        ))
    };
    assert_eq!(build(["a.b_c", "a_b.c"]), taken("a_b.c", "a.b_c"));
    assert_eq!(build(["a.b.c", "a_b_c"]), taken("a_b_c", "a.b.c"));
    assert_eq!(build(["a_b_c", "a.b.c"]), taken("a.b.c", "a_b_c"));
    let twice = "the tool a.b is registered already; replace it or choose another name";
    assert_eq!(build(["a.b", "a.b"]), Err(twice.to_owned()));
    assert_eq!(build(["a.b", "a-b"]), Ok(()));
}

/// B14: a declaration that cannot be bound against is refused when it is registered, with its place.
#[test]
fn a_broken_declaration_is_refused_at_once() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "nonsense"}}});
    let broken = || Arc::new(Probe::read("a.broken").input(Input::Schema(schema.clone())));
    let Err(Error::Schema { name, source }) = Catalog::builder().dyn_tool(broken()).build() else {
        panic!("it was registered");
    };
    assert_eq!(
        (name.as_str(), source.path.as_str()),
        ("a.broken", "/properties/n/type")
    );

    let catalog = Catalog::builder().build().unwrap();
    assert!(catalog.add(broken()).is_err());
    assert_eq!((catalog.revision(), names(&catalog)), (1, vec![]));
    let misnamed = Catalog::builder().handler("not a name", Old).build();
    assert!(matches!(misnamed, Err(Error::Name(_))));
}

/// B2: a default and an example are values that the declaration accepts; a wrong one is refused when
/// the tool is registered, with the tool and the place.
#[test]
fn a_wrong_default_or_example_is_refused_at_once() {
    let limit = || Parameter::new("limit", ValueKind::Integer, "").range(Some(1.into()), None);
    let inside = |limit: Parameter| {
        Parameter::new("lines", ValueKind::Object, "")
            .fields(vec![limit])
            .list()
    };
    let speed = || Parameter::one_of("speed", ["economy", "express"], "");
    let referred = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a", "default": 1}},
        "$defs": {"a": {"type": "string"}},
    });
    let parameter = |parameter| Input::parameters([parameter]);
    for (input, path) in [
        (
            parameter(limit().default_value("3")),
            "/properties/limit/default",
        ),
        (
            parameter(limit().default_value(0)),
            "/properties/limit/default",
        ),
        (
            parameter(limit().example(1.5)),
            "/properties/limit/examples/0",
        ),
        (
            parameter(speed().example("Express")),
            "/properties/speed/examples/0",
        ),
        (
            parameter(inside(limit().default_value(0))),
            "/properties/lines/items/properties/limit/default",
        ),
        (
            parameter(inside(limit()).default_value(json!([{}]))),
            "/properties/lines/default",
        ),
        (Input::Schema(referred), "/properties/a/default"),
    ] {
        let tool = Arc::new(Probe::read("a.wrong").input(input));
        let Err(error) = Catalog::builder().dyn_tool(tool).build() else {
            panic!("{path} was registered");
        };
        let text = error.to_string();
        assert!(
            text.starts_with("the tool a.wrong cannot be registered"),
            "{text}"
        );
        let Error::Schema { source, .. } = error else {
            panic!("{text}");
        };
        assert_eq!(source.path, path, "{text}");
    }
    let right = [
        limit().default_value(3),
        inside(limit().example(2)),
        speed().example("express"),
    ];
    let right = Arc::new(Probe::read("a.right").input(Input::parameters(right)));
    assert!(Catalog::builder().dyn_tool(right).build().is_ok());
}

/// B14: a change is seen at once and whole; the declaration's digest changes with the declaration.
#[test]
fn tools_come_and_go() {
    let catalog = Catalog::builder().build().unwrap();
    assert_eq!(catalog.revision(), 1);
    catalog.add(Arc::new(Probe::read("a.b"))).unwrap();
    catalog.add(Arc::new(Probe::read("a.a"))).unwrap();
    assert_eq!(
        (catalog.revision(), names(&catalog)),
        (3, vec!["a.a".into(), "a.b".into()])
    );

    let digest = catalog.get("a.b").unwrap().digest();
    catalog.replace(Arc::new(Probe::read("a.b"))).unwrap();
    assert_eq!(catalog.get("a_b").unwrap().digest(), digest);
    catalog.replace(Arc::new(Probe::write("a.b"))).unwrap();
    assert_ne!(catalog.get("a_b").unwrap().digest(), digest);

    catalog.remove("a_b").unwrap();
    assert!(catalog.get("a.b").is_none() && catalog.get("a_b").is_none());
    let unknown = Error::Unknown { name: "a.b".into() };
    assert_eq!(catalog.remove("a.b"), Err(unknown.clone()));
    assert_eq!(catalog.replace(Arc::new(Probe::read("a.b"))), Err(unknown));
    assert_eq!(catalog.revision(), 6, "what failed changed nothing");
}

/// B14: a whole set replaces another at once; if one tool of it is refused, nothing changes.
#[test]
fn all_tools_change_at_once() {
    let stays: Arc<dyn DynTool> = Arc::new(Probe::read("a.stays"));
    let catalog = Catalog::builder()
        .dyn_tool(stays.clone())
        .dyn_tool(Arc::new(Probe::read("a.goes")))
        .build()
        .unwrap();
    let entry = catalog.get("a.stays").unwrap();
    let comes: Arc<dyn DynTool> = Arc::new(Probe::read("a.comes"));
    catalog.renew([comes.clone(), stays.clone()]).unwrap();
    assert_eq!(
        (catalog.revision(), names(&catalog)),
        (2, vec!["a.comes".into(), "a.stays".into()])
    );
    assert!(Arc::ptr_eq(&entry, &catalog.get("a_stays").unwrap()));
    let twice = catalog.renew([comes.clone(), comes, stays]);
    assert!(matches!(twice, Err(Error::Duplicate { .. })), "{twice:?}");
    assert_eq!(catalog.revision(), 2, "what failed changed nothing");
}

/// B14: calls go on while a tool is taken out and put back; each either finds it or does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_changes_do_not_disturb_each_other() {
    let world = Arc::new(World::new(Probe::read("a.stays")));
    let catalog = world.executor.catalog().clone();
    let changes = std::thread::spawn(move || {
        for _ in 0..300 {
            catalog.add(Arc::new(Probe::read("b.moves"))).unwrap();
            catalog.remove("b.moves").unwrap();
        }
    });
    let mut calls = 0;
    while calls < 100 || !changes.is_finished() {
        let reply = world.send("a.stays", &json!({}), &json!({})).await;
        assert_eq!(reply["ok"], true);
        let reply = world.send("b_moves", &json!({}), &json!({})).await;
        if reply["ok"] == false {
            check_error(&reply, "NOT_FOUND", &json!({}));
        }
        calls += 1;
    }
    changes.join().unwrap();
    assert_eq!(world.executor.catalog().revision(), 601);
}

/// An old handler: it echoes its arguments.
struct Old;

impl Handler for Old {
    fn name(&self) -> &'static str {
        "old.echo"
    }

    fn execute<'a>(
        &'a self,
        request: HandlerRequest<'a>,
    ) -> BoxFuture<'a, Result<HandlerResult, HandlerError>> {
        Box::pin(async move {
            let output: Value = serde_json::from_str(request.arguments).unwrap();
            if output["fail"] == true {
                return Err(HandlerError::new("the old one failed"));
            }
            Ok(HandlerResult::success(output))
        })
    }
}

/// B8, B13: a handler without a declaration runs; each reply warns, and the record hides the values.
#[tokio::test]
async fn a_handler_without_a_declaration_runs_with_a_warning() {
    let catalog = Catalog::builder().handler("old.echo", Old).build().unwrap();
    let world = World::of([], |_| Executor::builder(catalog));
    let reply = world.send("old_echo", &json!({"a": [1]}), &json!({})).await;
    assert_eq!(
        (&reply["ok"], &reply["data"]),
        (&json!(true), &json!({"a": [1]}))
    );
    let codes: Vec<_> = reply["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| &w["code"])
        .collect();
    assert_eq!(codes, ["TOOL_DEFINITION_MISSING"]);

    let reply = world
        .send("old.echo", &json!({"fail": true}), &json!({}))
        .await;
    check_error(&reply, "UPSTREAM_ERROR", &json!({"source": "tool"}));
    assert_eq!(reply["error"]["message"], "the old one failed");
}

/// B13: a handler may be given its declaration when it is registered.
#[tokio::test]
async fn a_handler_with_a_declaration_is_a_tool_like_any_other() {
    let spec =
        ToolSpec::new(ToolName::new("old.echo").unwrap(), "Echoes.").input(Input::parameters([
            Parameter::new("n", ValueKind::Integer, "").default_value(1),
        ]));
    let tool = Arc::new(HandlerTool::declared(spec, Old));
    let executor = Executor::new(Catalog::builder().dyn_tool(tool).build().unwrap());
    let call = ToolCall::new("old.echo", "{}", Principal::user("u_1"));
    let reply = executor.execute(call).await;
    assert_eq!((reply.data, reply.warnings), (json!({"n": 1}), vec![]));
}

/// B13: a tool serves old code as a handler; its declaration still holds.
#[tokio::test]
async fn a_tool_serves_as_a_handler() {
    let catalog = Catalog::builder()
        .tool(MemorySearch::new(["buy milk"]))
        .build()
        .unwrap();
    let handler = ToolHandler::new(catalog.get("memory.search").unwrap().tool().clone()).unwrap();
    assert_eq!(handler.name(), "memory.search");
    let execute = async |arguments: &str| {
        let context = CallContext::standalone(&Principal::user("u_1"), arguments);
        handler
            .execute(HandlerRequest {
                context: &context,
                arguments,
            })
            .await
    };
    for sent in [r#"{"query": "milk", "limit": "1"}"#, r#"{"query": "milk"}"#] {
        let result = execute(sent).await.unwrap();
        assert_eq!(result.output, json!([{"text": "buy milk", "score": 1.0}]));
    }
    for refused in ["not at all", r#"{"limit": 1, "query": "mil"#] {
        let error = execute(refused).await.unwrap_err();
        assert_eq!(error.body.code.as_str(), "INVALID_ARGUMENT", "{refused}");
    }
}

/// A13: no catalog takes a tool that captures or confirms a payment, however it gets there.
#[test]
fn a_tool_that_takes_money_cannot_be_registered() {
    use countersign::contract::tool::Payment;
    let probe = |name: &str, payment| {
        let probe = Probe::external(name).with(|behaviour| behaviour.payment = payment);
        Arc::new(probe) as Arc<dyn DynTool>
    };
    let cases = [
        (
            "shop.pay",
            Payment::Capture,
            Some("the tool shop.pay captures or confirms a payment"),
        ),
        (
            "payment.confirm",
            Payment::None,
            Some("the name of payment.confirm says that it"),
        ),
        ("payment.confirm", Payment::Intent, None),
        ("shop.pay", Payment::Intent, None),
    ];
    for (name, payment, refusal) in cases {
        let built = Catalog::builder().dyn_tool(probe(name, payment)).build();
        let open = Catalog::builder().build().unwrap();
        let added = open.add(probe(name, payment));
        let calm =
            Arc::new(Probe::read(name).with(|behaviour| behaviour.payment = Payment::Intent));
        let other = Catalog::builder().dyn_tool(calm).build().unwrap();
        let replaced = other.replace(probe(name, payment));
        for outcome in [built.map(drop), added, replaced] {
            match (outcome, refusal) {
                (Ok(()), None) => {}
                (Err(error), Some(refusal)) => {
                    assert!(error.to_string().starts_with(refusal), "{error}");
                }
                (outcome, refusal) => panic!("{name}: {outcome:?} instead of {refusal:?}"),
            }
        }
    }
}
