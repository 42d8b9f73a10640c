//! A tool that does everything with its arguments that a careless tool may do.

use std::io;

use countersign::adapter::{Handler, HandlerError, HandlerRequest, HandlerResult};
use countersign::contract::tool::{Confirmation, KeyRule};
use countersign::contract::{Effect, ErrorCode, Input, ToolName, ToolSpec};
use countersign::state::Collection;
use countersign::{Arguments, BoxFuture, CallContext, DynTool, Reply, ToolError};
use serde_json::json;

const PARCELS: Collection = Collection::of_user("parcel");

pub(crate) struct Courier {
    spec: ToolSpec,
}

/// Modes of the tool.
pub(crate) const MODES: [&str; 7] = [
    "ok", "error", "cause", "panic", "remark", "upstream", "state",
];

impl Courier {
    pub(crate) fn new(name: &str, effect: Effect) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "mode": {"type": "string", "enum": MODES},
                "recipient": {"type": "string", "x-sensitivity": "personal"},
                "passport": {"type": "string", "x-sensitivity": "personal"},
                "note": {"type": "string"},
                "extra": {"type": "object", "additionalProperties": true},
                "count": {"type": "integer"},
            },
            "additionalProperties": false,
        });
        let mut spec = ToolSpec::new(ToolName::new(name).unwrap(), "Sends something.")
            .version("1")
            .input(Input::Schema(schema));
        spec.behaviour.effect = effect;
        spec.behaviour.idempotency.key = KeyRule::Optional;
        Self { spec }
    }

    /// Makes the tool ask the user first.
    pub(crate) fn confirmed(mut self) -> Self {
        self.spec.behaviour.confirmation = Confirmation::Always;
        self
    }
}

impl DynTool for Courier {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            let arguments = arguments.to_value();
            let text = arguments.to_string();
            match arguments["mode"].as_str().unwrap_or("ok") {
                "error" => Err(ToolError::new(ErrorCode::AddressInvalid, &text).hint(&text)),
                "cause" => Err(ToolError::new(ErrorCode::UpstreamError, "it failed")
                    .with_source(io::Error::other(text))),
                // Like a panic, but without the hook: this process has that of the tests.
                "panic" => std::panic::resume_unwind(Box::new(text)),
                "remark" => {
                    ctx.remark("PARTLY", &text);
                    Ok(json!({"said": text}).into())
                }
                "upstream" => Err(ToolError::upstream("E42", &text).detail("body", text)),
                "state" => {
                    ctx.state().put(&PARCELS, "p_1", &text).await?;
                    Ok(json!({"kept": text}).into())
                }
                _ => Ok(json!({"said": text}).into()),
            }
        })
    }
}

/// A handler without declarations.
pub(crate) struct Legacy;

impl Handler for Legacy {
    fn name(&self) -> &'static str {
        "courier.legacy"
    }

    fn execute<'a>(
        &'a self,
        request: HandlerRequest<'a>,
    ) -> BoxFuture<'a, Result<HandlerResult, HandlerError>> {
        let text = request.arguments.to_owned();
        Box::pin(async move {
            if text.contains("error") {
                return Err(HandlerError::new(text));
            }
            Ok(HandlerResult::success(text))
        })
    }
}
