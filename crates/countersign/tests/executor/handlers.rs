//! Tools as old-style handlers and back: nothing that was said is lost on the way (B13, B14).

use std::sync::Arc;

use countersign::adapter::{
    Handler, HandlerError, HandlerRequest, HandlerResult, HandlerStatus, HandlerTool, SOURCES,
    TTL_SECONDS,
};
use countersign::contract::{ErrorCode, Source, ToolName};
use countersign::sample::{Diagnostics, MemorySearch};
use countersign::{
    BoxFuture, CallContext, Catalog, DynTool, Executor, Principal, Reply, ToolError,
};
use serde_json::{Value, json};

use crate::world::{Probe, World, check_error};

/// A handler with a fixed answer.
struct Old(fn() -> Result<HandlerResult, HandlerError>);

impl Handler for Old {
    fn name(&self) -> &'static str {
        "old.answer"
    }

    fn execute<'a>(
        &'a self,
        _: HandlerRequest<'a>,
    ) -> BoxFuture<'a, Result<HandlerResult, HandlerError>> {
        Box::pin(std::future::ready(self.0()))
    }
}

fn source() -> Source {
    Source {
        kind: "document".to_owned(),
        name: "prices".to_owned(),
        hash: "sha256:00".to_owned(),
        ts: "2026-11-15T12:00:00Z".to_owned(),
    }
}

/// Says everything that a tool can say, through its context and in its reply.
fn talkative(ttl_seconds: Option<u32>) -> Probe {
    Probe::read("shop.price")
        .with(|behaviour| behaviour.ttl_seconds = Some(600))
        .body(move |ctx, arguments| {
            ctx.remark("FROM_CONTEXT", "said while it ran");
            ctx.source(source());
            if let Some(seconds) = ttl_seconds {
                ctx.fresh_for(seconds);
            }
            Box::pin(async move {
                if arguments["fail"] == true {
                    return Err(ToolError::new(ErrorCode::OutOfStock, "none left"));
                }
                Ok(Reply {
                    sources: vec![source()],
                    remarks: vec![("FROM_REPLY".to_owned(), "said at the end".to_owned())],
                    ..Reply::from(json!({"price": 3}))
                })
            })
        })
}

async fn execute(handler: &dyn Handler, arguments: &str) -> Result<HandlerResult, HandlerError> {
    let context = CallContext::standalone(&Principal::user("u_1"), arguments);
    let request = HandlerRequest {
        context: &context,
        arguments,
    };
    handler.execute(request).await
}

fn handler_of(probe: Probe) -> Arc<dyn Handler> {
    let catalog = Catalog::builder().dyn_tool(Arc::new(probe)).build();
    catalog.unwrap().handlers().remove(0)
}

fn codes(result: &HandlerResult) -> Vec<&str> {
    result
        .warnings
        .iter()
        .map(countersign::contract::Warning::code)
        .collect()
}

/// B13: status, warnings, window of validity and sources of a tool reach a program that knows handlers only.
#[tokio::test]
async fn a_handler_of_a_tool_says_everything_that_the_tool_said() {
    for (said, expected) in [(None, 600), (Some(60), 60)] {
        let handler = handler_of(talkative(said));
        let result = execute(&*handler, "{item: 'milk'}").await.unwrap();
        assert_eq!(result.status, HandlerStatus::Success);
        assert_eq!(result.output, json!({"price": 3}));
        assert_eq!(result.metadata[TTL_SECONDS], expected);
        let twice = serde_json::to_value([source(), source()]).unwrap();
        assert_eq!(result.metadata[SOURCES], twice);
        let expected = ["KEY_UNQUOTED", "QUOTE_STYLE", "FROM_CONTEXT", "FROM_REPLY"];
        assert_eq!(codes(&result), expected);
    }
}

/// B13: a failure keeps its code, and the warnings before it; as a result it has a status and metadata.
#[tokio::test]
async fn a_failure_of_a_tool_is_a_failure_of_its_handler() {
    let handler = handler_of(talkative(None));
    let error = execute(&*handler, "{fail: true}").await.unwrap_err();
    assert_eq!(error.body.code, ErrorCode::OutOfStock);
    let result = HandlerResult::from(error);
    assert_eq!(result.status, HandlerStatus::Failed);
    assert_eq!(result.output, "none left");
    assert_eq!(result.metadata["code"], "OUT_OF_STOCK");
    assert_eq!(result.metadata["details"]["retryable"], false);
    assert_eq!(codes(&result), ["KEY_UNQUOTED", "FROM_CONTEXT"]);
}

/// B14: a catalog yields a handler for each of its tools, in their order.
#[tokio::test]
async fn a_catalog_yields_its_handlers() {
    let catalog = Catalog::builder()
        .tool(MemorySearch::new(["buy milk"]))
        .handler("old.answer", Old(|| Ok(HandlerResult::success("old"))))
        .tool(Diagnostics)
        .build()
        .unwrap();
    let handlers = catalog.handlers();
    catalog.remove("memory.search").unwrap();
    let names: Vec<&str> = handlers.iter().map(Handler::name).collect();
    assert_eq!(names, ["diagnostics.echo", "memory.search", "old.answer"]);
    let found = execute(&*handlers[1], r#"{"query": "milk"}"#)
        .await
        .unwrap();
    assert_eq!(found.output, json!([{"text": "buy milk", "score": 1.0}]));
    // A handler without a declaration warns on this side, too.
    let old = execute(&*handlers[2], "{}").await.unwrap();
    assert_eq!(
        (&old.output, codes(&old)),
        (&json!("old"), vec!["TOOL_DEFINITION_MISSING"])
    );
}

/// The executor's reply for a handler.
async fn reply_of(answer: fn() -> Result<HandlerResult, HandlerError>) -> Value {
    let catalog = Catalog::builder()
        .handler("old.answer", Old(answer))
        .build();
    let world = World::of([], |_| Executor::builder(catalog.unwrap()));
    world.send("old.answer", &json!({}), &json!({})).await
}

/// B13: the metadata and warnings of an old handler reach the caller of the executor.
#[tokio::test]
async fn an_executor_says_everything_that_a_handler_said() {
    let reply = reply_of(|| {
        Ok(HandlerResult::success(json!({"price": 3}))
            .metadata(TTL_SECONDS, 60)
            .metadata(SOURCES, serde_json::to_value([source()]).unwrap())
            .metadata("shops", 3)
            .warning("PARTIAL", "two of three shops answered"))
    })
    .await;
    assert_eq!(reply["data"], json!({"price": 3}));
    assert_eq!(reply["ttl_seconds"], 60);
    let sources = reply["evidence"]["sources"].as_array().unwrap();
    assert_eq!(
        sources.last(),
        Some(&serde_json::to_value(source()).unwrap())
    );
    let expected = json!([
        {"code": "PARTIAL", "message": "two of three shops answered"},
        {"code": "METADATA", "message": "{\"shops\":3}"},
    ]);
    assert_eq!(
        reply["warnings"].as_array().unwrap()[1..],
        *expected.as_array().unwrap()
    );

    // What cannot be what its name says is kept as any other metadata.
    let reply = reply_of(|| Ok(HandlerResult::success(1).metadata(TTL_SECONDS, "soon"))).await;
    assert_eq!(reply["ttl_seconds"], Value::Null);
    assert_eq!(
        reply["warnings"][1]["message"],
        "{\"ttl_seconds\":\"soon\"}"
    );
}

/// B13: a handler that says in its result that it failed has failed.
#[tokio::test]
async fn a_failed_status_is_an_error() {
    let reply = reply_of(|| {
        Ok(HandlerResult::failure("the shop is closed")
            .metadata("opens", "08:00")
            .warning("LATE", "asked after hours"))
    })
    .await;
    let details = json!({"source": "tool", "metadata": {"opens": "08:00"}});
    check_error(&reply, "UPSTREAM_ERROR", &details);
    assert_eq!(reply["error"]["message"], "the shop is closed");
    assert_eq!(
        reply["warnings"][1],
        json!({"code": "LATE", "message": "asked after hours"})
    );
}

/// B13: there and back again, a reply is the same.
#[tokio::test]
async fn both_ways_keep_a_reply() {
    let direct = World::new(talkative(Some(60)));
    let send = async |world: &World, arguments: Value| {
        let mut reply = world.send("shop.price", &arguments, &json!({})).await;
        // The times of the tool's own digest.
        reply["evidence"]["sources"]
            .as_array_mut()
            .map(|sources| sources.remove(0));
        reply
    };
    let spec = {
        let catalog = Catalog::builder()
            .dyn_tool(Arc::new(talkative(Some(60))))
            .build()
            .unwrap();
        catalog.get("shop.price").unwrap().spec().clone()
    };
    assert_eq!(spec.name, ToolName::new("shop.price").unwrap());
    let back = HandlerTool::declared(spec, handler_of(talkative(Some(60))));
    let back: Arc<dyn DynTool> = Arc::new(back);
    let catalog = Catalog::builder().dyn_tool(back).build().unwrap();
    let wrapped = World::of([], |_| Executor::builder(catalog));
    for arguments in [json!({}), json!({"fail": true})] {
        let mut expected = send(&direct, arguments.clone()).await;
        let mut found = send(&wrapped, arguments).await;
        for reply in [&mut expected, &mut found] {
            reply["request_id"] = Value::Null;
            reply["evidence"]["snapshot_id"] = Value::Null;
            let codes = reply["warnings"].as_array_mut().unwrap();
            codes.sort_by_key(|warning| warning["code"].to_string());
            if let Some(sources) = reply["evidence"]["sources"].as_array_mut() {
                sources.sort_by_key(ToString::to_string);
            }
        }
        assert_eq!(found, expected);
    }
}
