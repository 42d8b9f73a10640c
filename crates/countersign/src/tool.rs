//! Tools: typed ones, which tool authors write, and erased ones, which the catalog holds.

use std::sync::Arc;

use countersign_args::Arguments;
use countersign_contract::id::InvalidId;
use countersign_contract::{Behaviour, Input, Source, ToolName, ToolSpec};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::BoxFuture;
use crate::args::ToolArgs;
use crate::context::CallContext;
use crate::redact::Redaction;

mod error;
mod question;

pub use error::ToolError;
pub use question::Question;

/// A tool with typed arguments and a typed answer.
///
/// Everything but [`call`](Tool::call) is declaration and can be read without running anything (B1).
/// A tool adds remarks, sources or another window of validity to its answer through the [`CallContext`].
///
/// # Example
///
/// ```
/// use countersign::{CallContext, Tool, ToolError};
///
/// struct Now;
///
/// impl Tool for Now {
///     const NAME: &'static str = "sample.now";
///     const DESCRIPTION: &'static str = "The time of the call.";
///     type Args = ();
///     type Output = String;
///
///     async fn call(&self, ctx: &CallContext, (): ()) -> Result<String, ToolError> {
///         Ok(ctx.now().to_string())
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// The canonical name.
    const NAME: &'static str;
    /// The description, for the model and for planners.
    const DESCRIPTION: &'static str;
    /// Its version or build hash, part of every record; `env!("CARGO_PKG_VERSION")` is a good one.
    const VERSION: &'static str = "0";
    /// Treatment of a dry run, if the tool changes something.
    const DRY_RUN: DryRun = DryRun::Validate;
    /// Type of the arguments.
    type Args: ToolArgs;
    /// Type of the answer in `data`. JSON has no NaN and no infinity: such a float becomes null.
    ///
    /// A struct derives `serde::Serialize` and [`schemars::JsonSchema`]; a `serde_json::Value` declares nothing.
    type Output: Serialize + JsonSchema + Send;

    /// The declared behaviour; a read by default.
    fn behaviour() -> Behaviour {
        Behaviour::default()
    }

    /// The JSON Schema of its answer; by default that of [`Output`](Self::Output).
    fn output_schema() -> Option<Value> {
        crate::output::schema_of::<Self::Output>()
    }

    /// Runs one call. Dropping the future cancels it.
    fn call(
        &self,
        ctx: &CallContext,
        args: Self::Args,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// Looks up the result of an earlier run of the very same call whose answer was lost, by
    /// [`CallContext::downstream_key`]. Called if the tool declares `Recovery::Reconcile`.
    fn reconcile(
        &self,
        _ctx: &CallContext,
        _args: Self::Args,
    ) -> impl Future<Output = Result<Reconciled<Self::Output>, ToolError>> + Send {
        std::future::ready(Ok(Reconciled::Unknown))
    }

    /// Describes in words for people what the call would do, before an approver is asked (A13), if the call has to be
    /// confirmed. The context is that of a dry run, and nothing of it is kept. An error becomes the answer of the call,
    /// and the approver is not asked.
    fn question(
        &self,
        _ctx: &CallContext,
        _args: Self::Args,
    ) -> impl Future<Output = Result<Option<Question>, ToolError>> + Send {
        std::future::ready(Ok(None))
    }
}

/// A tool without its types. The catalog contains these, and manifests are turned into them. Implement it by hand
/// only if the declaration is not known before the program runs.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use countersign::contract::{ToolName, ToolSpec};
/// use countersign::{Arguments, BoxFuture, CallContext, Catalog, DynTool, Reply, ToolError};
///
/// /// Answers with its arguments; nothing is declared, so they are only parsed.
/// struct Echo(ToolSpec);
///
/// impl DynTool for Echo {
///     fn spec(&self) -> &ToolSpec {
///         &self.0
///     }
///
///     fn call<'a>(
///         &'a self,
///         _: &'a CallContext,
///         arguments: Arguments,
///     ) -> BoxFuture<'a, Result<Reply, ToolError>> {
///         Box::pin(async move { Ok(Reply::from(arguments.to_value())) })
///     }
/// }
///
/// let spec = ToolSpec::new(ToolName::new("sample.echo")?, "Says what it was told.");
/// let catalog = Catalog::builder().dyn_tool(Arc::new(Echo(spec))).build()?;
/// assert!(catalog.get("sample.echo").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait DynTool: Send + Sync + 'static {
    /// The declaration; the same for as long as the tool is registered.
    fn spec(&self) -> &ToolSpec;

    /// Name of the upstream that the tool belongs to; `None` if it is a tool of the program itself.
    fn upstream(&self) -> Option<&str> {
        None
    }

    /// Treatment of a dry run, if the tool changes something.
    fn dry_run(&self) -> DryRun {
        DryRun::Validate
    }

    /// Sources that every record of the tool names, whatever becomes of the call: those of its declaration, for
    /// example the pin of an MCP server's tools. `at` is the time of the record.
    fn fixed_sources(&self, _at: Timestamp) -> Vec<Source> {
        Vec::new()
    }

    /// Runs one call with arguments that the declaration accepts.
    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>>;

    /// Looks up the result of an earlier run of the very same call whose answer was lost.
    fn reconcile<'a>(
        &'a self,
        _ctx: &'a CallContext,
        _arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(std::future::ready(Ok(Reconciled::Unknown)))
    }

    /// Describes in words for people what the call would do, before a person is asked to confirm it.
    fn question<'a>(
        &'a self,
        _ctx: &'a CallContext,
        _arguments: Arguments,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// Result of looking up a call whose answer was lost.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconciled<T> {
    /// The call had its effect; this is its answer.
    Happened(T),
    /// The call had no effect: nothing is known of it where it would have to be.
    DidNotHappen,
    /// The tool cannot tell.
    Unknown,
}

/// Treatment of a dry run of a tool that changes something (A4). A read always runs.
///
/// The default is the safe one: a tool whose author did not consider dry runs is not called at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DryRun {
    /// The call is checked up to the point where the tool would start; the tool is not called.
    #[default]
    Validate,
    /// The tool is called and changes nothing: it looks at [`CallContext::is_dry_run`], or it changes
    /// nothing but its [`state`](CallContext::state), which a dry run does not commit.
    Simulate,
}

/// Answer of an erased tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The data of the answer.
    pub data: Value,
    /// Another window of validity than the declared one.
    pub ttl_seconds: Option<u32>,
    /// Sources that the answer rests on, besides the tool itself.
    pub sources: Vec<Source>,
    /// Remarks for the caller of a successful call: a code of the tool's own and one sentence.
    pub remarks: Vec<(String, String)>,
}

impl From<Value> for Reply {
    fn from(data: Value) -> Self {
        Self {
            data,
            ..Self::default()
        }
    }
}

/// Erases a typed tool's types, so that it can be [added](crate::Catalog::add) to a catalog that is in use.
pub fn erase<T: Tool>(tool: T) -> Result<Arc<dyn DynTool>, InvalidId> {
    let spec = ToolSpec::new(ToolName::new(T::NAME)?, T::DESCRIPTION)
        .input(Input::Parameters(T::Args::parameters()))
        .version(T::VERSION)
        .behaviour(T::behaviour());
    let spec = ToolSpec {
        output: T::output_schema(),
        ..spec
    };
    let is_quotable = Redaction::of(&spec).is_empty();
    Ok(Arc::new(Typed {
        tool,
        spec,
        is_quotable,
    }))
}

struct Typed<T> {
    tool: T,
    spec: ToolSpec,
    /// True if an error may quote an argument: false if a parameter is sensitive.
    is_quotable: bool,
}

impl<T: Tool> DynTool for Typed<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn dry_run(&self) -> DryRun {
        T::DRY_RUN
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            let args = T::Args::from_json(arguments.as_json())
                .map_err(|error| ToolError::unreadable_arguments(&error, self.is_quotable))?;
            let output = self.tool.call(ctx, args).await?;
            serde_json::to_value(output)
                .map(Reply::from)
                .map_err(ToolError::unwritable_output)
        })
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(async move {
            let args = T::Args::from_json(arguments.as_json())
                .map_err(|error| ToolError::unreadable_arguments(&error, self.is_quotable))?;
            Ok(match self.tool.reconcile(ctx, args).await? {
                Reconciled::Happened(output) => {
                    let data = serde_json::to_value(output);
                    Reconciled::Happened(Reply::from(data.map_err(ToolError::unwritable_output)?))
                }
                Reconciled::DidNotHappen => Reconciled::DidNotHappen,
                Reconciled::Unknown => Reconciled::Unknown,
            })
        })
    }

    fn question<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>> {
        Box::pin(async move {
            let args = T::Args::from_json(arguments.as_json())
                .map_err(|error| ToolError::unreadable_arguments(&error, self.is_quotable))?;
            self.tool.question(ctx, args).await
        })
    }
}
