//! Adapters between a tool and an old-style handler, in both directions, so that they live side by side while a program
//! migrates (B13). `docs/from-old-handlers.md` goes through it step by step.

use std::sync::Arc;

use countersign_args::{Arguments, Binder, Reading, SchemaError};
use countersign_contract::{
    ErrorBody, ErrorCode, FaultSource, Input, Issue, Source, ToolName, ToolSpec, Warning, Wording,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::catalog::Entry;
use crate::context::{CallContext, Notes};
use crate::defaults::Defaults;
use crate::executor;
use crate::tool::{DynTool, Reply, ToolError};
use crate::words::Say;

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

impl<H: Handler + ?Sized> Handler for Arc<H> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn execute<'a>(
        &'a self,
        request: HandlerRequest<'a>,
    ) -> BoxFuture<'a, Result<HandlerResult, HandlerError>> {
        (**self).execute(request)
    }
}

/// Request to a handler.
#[derive(Debug, Clone, Copy)]
pub struct HandlerRequest<'a> {
    /// The context: caller and deadline.
    pub context: &'a CallContext,
    /// The arguments as JSON text.
    pub arguments: &'a str,
}

/// Outcome that a handler reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum HandlerStatus {
    /// It succeeded.
    #[default]
    Success,
    /// It failed; the output gives the reason.
    Failed,
}

/// Result of a handler: outcome, output, metadata and warnings.
///
/// # Example
///
/// ```
/// use countersign::adapter::{HandlerResult, HandlerStatus, TTL_SECONDS};
/// use serde_json::json;
///
/// let result = HandlerResult::success(json!({"price": 3}))
///     .metadata(TTL_SECONDS, 60)
///     .warning("PARTIAL", "two of three shops answered");
/// assert_eq!(result.status, HandlerStatus::Success);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HandlerResult {
    /// The outcome.
    pub status: HandlerStatus,
    /// The output; if it failed, the reason.
    pub output: Value,
    /// Metadata of its own. [`TTL_SECONDS`] and [`SOURCES`] mean the same on both sides of an adapter.
    pub metadata: Map<String, Value>,
    /// Warnings for the caller: the binder's changes, and the tool's own remarks.
    pub warnings: Vec<Warning>,
}

/// Name of the metadata for the time in seconds in which the output may be relied on (A8).
pub const TTL_SECONDS: &str = "ttl_seconds";

/// Name of the metadata for the sources of the output (A9), as in the evidence of a reply.
pub const SOURCES: &str = "sources";

/// Code of the remark that carries the rest of a handler's metadata, as JSON.
const METADATA: &str = "METADATA";

impl HandlerResult {
    /// An answer.
    pub fn success(output: impl Into<Value>) -> Self {
        Self {
            output: output.into(),
            ..Self::default()
        }
    }

    /// A failure, in one sentence.
    pub fn failure(message: impl Into<String>) -> Self {
        Self {
            status: HandlerStatus::Failed,
            output: Value::String(message.into()),
            ..Self::default()
        }
    }

    /// Adds an entry of metadata.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Adds a remark: a code of the handler's own and one sentence.
    pub fn warning(mut self, code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        self.warnings.push(Warning::Remark { code, message });
        self
    }

    /// The result of a tool, with the notes of its context.
    fn of(reply: Reply, notes: Notes, declared_ttl: Option<u32>, issues: Vec<Issue>) -> Self {
        let mut result = Self::success(reply.data);
        let ttl_seconds = reply.ttl_seconds.or(notes.ttl_seconds).or(declared_ttl);
        if let Some(seconds) = ttl_seconds {
            result = result.metadata(TTL_SECONDS, seconds);
        }
        let sources: Vec<Source> = reply.sources.into_iter().chain(notes.sources).collect();
        if !sources.is_empty() {
            let sources = serde_json::to_value(sources).unwrap_or_default();
            result = result.metadata(SOURCES, sources);
        }
        result.warnings = warnings(issues, notes.remarks.into_iter().chain(reply.remarks));
        result
    }

    fn into_answer(mut self, ctx: &CallContext) -> Result<Reply, ToolError> {
        let remarks = self.warnings.iter().map(remark).collect();
        match self.status {
            HandlerStatus::Success => {
                let mut reply = Reply {
                    remarks,
                    ttl_seconds: take(&mut self.metadata, TTL_SECONDS),
                    sources: take(&mut self.metadata, SOURCES).unwrap_or_default(),
                    data: self.output,
                };
                if !self.metadata.is_empty() {
                    let rest = Value::Object(self.metadata).to_string();
                    reply.remarks.push((METADATA.to_owned(), rest));
                }
                Ok(reply)
            }
            HandlerStatus::Failed => {
                for (code, message) in remarks {
                    ctx.remark(code, message);
                }
                let message = match self.output {
                    Value::String(message) => Wording::from(message),
                    Value::Null => Say::ToolFailed.into(),
                    output => output.to_string().into(),
                };
                let error = ToolError::from(*HandlerError::new(message).body);
                Err(if self.metadata.is_empty() {
                    error
                } else {
                    error.detail("metadata", self.metadata)
                })
            }
        }
    }
}

/// Takes out a member if it can be read as this type; any other stays.
fn take<T: DeserializeOwned>(metadata: &mut Map<String, Value>, name: &str) -> Option<T> {
    let value = T::deserialize(metadata.get(name)?).ok()?;
    metadata.remove(name);
    Some(value)
}

fn warnings(issues: Vec<Issue>, remarks: impl Iterator<Item = (String, String)>) -> Vec<Warning> {
    let remarks = remarks.map(|(code, message)| Warning::Remark { code, message });
    issues
        .into_iter()
        .map(Warning::Issue)
        .chain(remarks)
        .collect()
}

fn remark(warning: &Warning) -> (String, String) {
    let message = match warning {
        Warning::Issue(issue) => &issue.message,
        Warning::Remark { message, .. } => message,
    };
    (warning.code().to_owned(), message.clone())
}

/// The error of a handler.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{body}")]
pub struct HandlerError {
    /// The body for the caller.
    pub body: Box<ErrorBody>,
    /// Warnings for the caller.
    pub warnings: Vec<Warning>,
}

impl HandlerError {
    /// The handler's own failure, with this message: a handler has no codes.
    pub fn new(message: impl Into<Wording>) -> Self {
        let body = ErrorBody::new(ErrorCode::UpstreamError, message).source(FaultSource::Tool);
        Self::from(body)
    }
}

impl From<ErrorBody> for HandlerError {
    fn from(body: ErrorBody) -> Self {
        Self {
            body: Box::new(body),
            warnings: Vec::new(),
        }
    }
}

/// For programs that only have results: the message is the output, code and details are metadata.
impl From<HandlerError> for HandlerResult {
    fn from(error: HandlerError) -> Self {
        let details = serde_json::to_value(&error.body.details).unwrap_or_default();
        let result = Self::failure(&*error.body.message)
            .metadata("code", error.body.code.as_str())
            .metadata("details", details);
        Self {
            warnings: error.warnings,
            ..result
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
                Ok(result) => result.into_answer(ctx),
                Err(error) => {
                    for (code, message) in error.warnings.iter().map(remark) {
                        ctx.remark(code, message);
                    }
                    Err(ToolError::from(*error.body))
                }
            }
        })
    }
}

/// A tool as an old-style handler: its arguments are still bound to its declaration, and its defaults
/// filled in. Nothing else of an executor happens: no policy, no key, no confirmation, no record.
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

/// A registered tool, whose declaration is prepared already.
impl From<&Entry> for ToolHandler {
    fn from(entry: &Entry) -> Self {
        Self {
            tool: entry.tool().clone(),
            binder: entry.binder.clone(),
            defaults: entry.defaults.clone(),
        }
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
            // The context is the caller's, so the tool could not be told.
            let unreadable = bound.unreadable.into_iter().flat_map(|it| it.errors);
            let unreadable: Vec<Issue> = unreadable.collect();
            if !unreadable.is_empty() {
                return Err(executor::refusal_of(unreadable).into());
            }
            let arguments = match bound.arguments {
                Some(arguments) if bound.status.is_executable() => arguments,
                Some(_) | None => {
                    let refusal = executor::refusal_of(bound.issues);
                    return Err(refusal.in_language(context.language()).into());
                }
            };
            let arguments = self.defaults.fill(&arguments).unwrap_or(arguments);
            let before = context.said();
            let answer = self.tool.call(context, arguments).await;
            let notes = context.take_since(&before);
            match answer {
                Ok(reply) => {
                    let declared_ttl = self.tool.spec().behaviour.ttl_seconds;
                    Ok(HandlerResult::of(reply, notes, declared_ttl, bound.issues))
                }
                Err(error) => Err(HandlerError {
                    body: Box::new(error.into_body().in_language(context.language())),
                    warnings: warnings(bound.issues, notes.remarks.into_iter()),
                }),
            }
        })
    }
}
