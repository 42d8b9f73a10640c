//! A tool that declares that it wants to know of unreadable optional parameters (B9).

use std::sync::{Arc, Mutex};

use countersign::adapter::HandlerRequest;
use countersign::contract::parameter::OnOptionalError;
use countersign::contract::{Input, Parameter, ToolSpec, ValueKind};
use countersign::{
    CallContext, Catalog, Principal, Tool, ToolArgs, ToolCall, ToolError, Unreadable,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::{Probe, World, check_error};

type Seen = Arc<Mutex<Vec<(Value, Vec<Unreadable>)>>>;

/// Keeps its arguments and the unreadable parameters.
fn listening(probe: Probe, on_optional_error: OnOptionalError) -> (Probe, Seen) {
    let seen: Seen = Arc::default();
    let heard = seen.clone();
    let parameters = [
        Parameter::new("sku", ValueKind::String, ""),
        Parameter::new("limit", ValueKind::Integer, "").default_value(3),
        Parameter::new("since", ValueKind::Timestamp, "").optional(),
    ];
    let probe = probe
        .input(Input::parameters(parameters))
        .with(|behaviour| behaviour.binding.on_optional_error = on_optional_error)
        .body(move |ctx, arguments| {
            heard
                .lock()
                .unwrap()
                .push((arguments, ctx.unreadable().to_vec()));
            Box::pin(async { Ok(json!("done").into()) })
        });
    (probe, seen)
}

/// B9: refusing is the default.
#[tokio::test]
async fn an_optional_error_refuses_by_default() {
    let (probe, seen) = listening(Probe::read("shop.find"), OnOptionalError::default());
    let world = World::new(probe);
    let reply = world
        .send(
            "shop.find",
            &json!({"sku": "a", "limit": "many"}),
            &json!({}),
        )
        .await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/limit"}));
    assert!(seen.lock().unwrap().is_empty());
}

/// B7, B9: the tool gets the parameter as absent, its default filled in, with the error and the original text; the
/// caller gets a warning. A required parameter still refuses.
#[tokio::test]
async fn a_tool_that_asks_is_told() {
    let (probe, seen) = listening(Probe::read("shop.find"), OnOptionalError::Tell);
    let world = World::new(probe);
    let call = |text: &str| ToolCall::new("shop.find", text, Principal::user("u_1"));
    let reply = world
        .execute(call("{sku: 'a', limit: 'many', since: [1]}"))
        .await;
    assert_eq!(
        (&reply["ok"], &reply["data"]),
        (&json!(true), &json!("done"))
    );
    let warned: Vec<_> = reply["warnings"].as_array().unwrap().iter().collect();
    let told: Vec<_> = warned
        .iter()
        .filter(|it| it["code"] == "OPTIONAL_UNREADABLE")
        .map(|it| (it["path"].as_str().unwrap(), it["before"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("/limit", "'many'"), ("/since", "[1]")]);

    let (arguments, unreadable) = seen.lock().unwrap().pop().unwrap();
    assert_eq!(arguments, json!({"sku": "a", "limit": 3}));
    let heard: Vec<_> = unreadable
        .iter()
        .map(|it| {
            (
                it.path.as_str(),
                it.text.as_str(),
                it.errors[0].code.as_str(),
            )
        })
        .collect();
    assert_eq!(
        heard,
        [
            ("/limit", "'many'", "TYPE_MISMATCH"),
            ("/since", "[1]", "TYPE_MISMATCH")
        ]
    );
    // B19: telemetry and record count it.
    assert_eq!(
        world.record()["binding"]["issues"]["OPTIONAL_UNREADABLE"],
        2
    );

    let reply = world.execute(call("{sku: [], limit: 'many'}")).await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/sku"}));
}

/// A9, A17: record and key have the arguments as they were bound, without the unreadable ones.
#[tokio::test]
async fn evidence_and_key_see_what_was_bound() {
    let (probe, seen) = listening(Probe::write("shop.note"), OnOptionalError::Tell);
    let world = World::logging([probe]);
    let key = json!({"idempotency_key": "k1"});
    let first = world
        .send("shop.note", &json!({"sku": "a", "limit": "many"}), &key)
        .await;
    assert_eq!(first["ok"], true);
    for same in [json!({"sku": "a"}), json!({"sku": "a", "limit": [true]})] {
        let reply = world.send("shop.note", &same, &key).await;
        assert_eq!(reply["replayed"], true, "{same}");
    }
    let reply = world
        .send("shop.note", &json!({"sku": "a", "limit": 4}), &key)
        .await;
    check_error(
        &reply,
        "CONFLICT",
        &json!({"reason": "key_reused", "differing": ["/limit"]}),
    );
    assert_eq!(seen.lock().unwrap().len(), 1);

    let records = world.store.records();
    let digests: Vec<_> = records
        .iter()
        .map(|record| record.arguments_digest.clone())
        .collect();
    assert_eq!(digests[0], digests[1]);
    assert!(!records[0].arguments_redacted.to_string().contains("many"));
    let (leaf, _) = &world.log().await[0];
    assert!(!leaf.to_string().contains("many"), "{leaf:#}");
}

/// B9, B13: an old executor brings a context of its own, which cannot carry unreadable parameters: the tool refuses.
#[tokio::test]
async fn a_handler_of_the_tool_refuses() {
    let (probe, seen) = listening(Probe::read("shop.find"), OnOptionalError::Tell);
    let catalog = Catalog::builder()
        .dyn_tool(Arc::new(probe))
        .build()
        .unwrap();
    let arguments = r#"{"sku": "a", "limit": "many"}"#;
    let context = &CallContext::standalone(&Principal::user("u_1"), arguments);
    let request = HandlerRequest { context, arguments };
    let error = catalog.handlers()[0].execute(request).await.unwrap_err();
    assert_eq!(error.body.code.as_str(), "INVALID_ARGUMENT");
    assert_eq!(error.body.details.field.as_deref(), Some("/limit"));
    assert!(seen.lock().unwrap().is_empty());
}

/// B9: the same with the derive macro, for one parameter.
#[tokio::test]
async fn a_field_says_so_itself() {
    #[derive(Deserialize, ToolArgs)]
    struct Args {
        /// How many.
        #[arg(default = 3, on_optional_error = "tell")]
        limit: u32,
        /// From when on.
        since: Option<u32>,
    }
    struct Find;
    impl Tool for Find {
        const NAME: &'static str = "shop.find";
        const DESCRIPTION: &'static str = "Finds.";
        type Args = Args;
        type Output = (u32, Option<u32>, usize);

        async fn call(&self, ctx: &CallContext, args: Args) -> Result<Self::Output, ToolError> {
            Ok((args.limit, args.since, ctx.unreadable().len()))
        }
    }
    let catalog = Catalog::builder().tool(Find).build().unwrap();
    let spec: ToolSpec = catalog.get("shop.find").unwrap().spec().clone();
    assert_eq!(
        spec.json_schema()["properties"]["limit"]["x-on-optional-error"],
        "tell"
    );
    let world = World::of([], |_| countersign::Executor::builder(catalog));
    let reply = world
        .send(
            "shop.find",
            &json!({"limit": "many", "since": 4}),
            &json!({}),
        )
        .await;
    assert_eq!(reply["data"], json!([3, 4, 1]));
    let reply = world
        .send("shop.find", &json!({"since": "long ago"}), &json!({}))
        .await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/since"}));
}
