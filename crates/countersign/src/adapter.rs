//! Both ways between a tool and an old-style handler, so that they live side by side while a program
//! migrates (B13).

use std::sync::Arc;

use countersign_args::{Arguments, Binder, Reading, SchemaError};
use countersign_contract::{ErrorBody, ErrorCode, FaultSource, Input, ToolName, ToolSpec};
use serde_json::Value;

use crate::BoxFuture;
use crate::context::CallContext;
use crate::defaults::Defaults;
use crate::executor;
use crate::tool::{DynTool, Reply, ToolError};

/// The old interface: a name and a way to run it, no declaration.
pub trait Handler: Send + Sync + 'static {
    /// The name under which it is called.
    fn name(&self) -> &str;

    /// Runs it.
    fn execute<'a>(
        &'a self,
        request: HandlerRequest<'a>,
    ) -> BoxFuture<'a, Result<HandlerResult, HandlerError>>;
}

/// What a handler is given.
#[derive(Debug, Clone, Copy)]
pub struct HandlerRequest<'a> {
    /// Who asks, and until when.
    pub context: &'a CallContext,
    /// The arguments as JSON text.
    pub arguments: &'a str,
}

/// What a handler answers.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerResult {
    /// What it answers.
    pub output: Value,
}

/// A handler failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{body}")]
pub struct HandlerError {
    /// What the caller is told.
    pub body: Box<ErrorBody>,
}

impl HandlerError {
    /// A handler knows no codes; what it says is its own failure.
    pub fn new(message: impl Into<String>) -> Self {
        let body = ErrorBody::new(ErrorCode::UpstreamError, message).source(FaultSource::Tool);
        Self::from(body)
    }
}

impl From<ErrorBody> for HandlerError {
    fn from(body: ErrorBody) -> Self {
        Self {
            body: Box::new(body),
        }
    }
}

/// An old-style handler as a tool.
pub struct HandlerTool<H> {
    handler: H,
    spec: ToolSpec,
}

impl<H: Handler> HandlerTool<H> {
    /// Without a declaration: the arguments are only parsed, and each reply warns of it (B8).
    pub fn undeclared(name: ToolName, handler: H) -> Self {
        let spec = ToolSpec::new(name, "").input(Input::Undeclared);
        Self::declared(spec, handler)
    }

    /// With a declaration that is given here.
    pub fn declared(spec: ToolSpec, handler: H) -> Self {
        Self { handler, spec }
    }
}

impl<H: Handler> DynTool for HandlerTool<H> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            let request = HandlerRequest {
                context: ctx,
                arguments: arguments.as_json(),
            };
            match self.handler.execute(request).await {
                Ok(result) => Ok(Reply::from(result.output)),
                Err(error) => Err(ToolError::from(*error.body)),
            }
        })
    }
}

/// A tool as an old-style handler: its arguments are still bound to its declaration, and its defaults
/// filled in.
pub struct ToolHandler {
    tool: Arc<dyn DynTool>,
    binder: Binder,
    defaults: Defaults,
}

impl ToolHandler {
    /// Prepares the tool's declaration.
    pub fn new(tool: Arc<dyn DynTool>) -> Result<Self, SchemaError> {
        let binder = Binder::new(tool.spec())?;
        let defaults = Defaults::of(tool.spec());
        Ok(Self {
            tool,
            binder,
            defaults,
        })
    }
}

impl Handler for ToolHandler {
    fn name(&self) -> &str {
        self.tool.spec().name.as_str()
    }

    fn execute<'a>(
        &'a self,
        request: HandlerRequest<'a>,
    ) -> BoxFuture<'a, Result<HandlerResult, HandlerError>> {
        Box::pin(async move {
            let context = request.context;
            let asked = context.request();
            let reading = Reading::new(asked.locale.as_deref(), asked.timezone.as_deref());
            let bound = self.binder.bind_with(request.arguments, &reading);
            let arguments = match bound.arguments {
                Some(arguments) if bound.status.is_executable() => arguments,
                Some(_) | None => return Err(executor::refusal_of(bound.issues).into()),
            };
            let arguments = self.defaults.fill(&arguments).unwrap_or(arguments);
            match self.tool.call(context, arguments).await {
                Ok(reply) => Ok(HandlerResult { output: reply.data }),
                Err(error) => Err(error.into_body().into()),
            }
        })
    }
}
