//! What people write: a typed tool. What the catalog holds: an erased one.

use std::sync::Arc;

use countersign_args::Arguments;
use countersign_contract::id::InvalidId;
use countersign_contract::{Behaviour, Input, Source, ToolName, ToolSpec};
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
/// What an answer carries besides its data (a remark, a source, another window of validity) is said
/// through the [`CallContext`].
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
    /// For the model and for planners.
    const DESCRIPTION: &'static str;
    /// Its version or build hash, part of every record; `env!("CARGO_PKG_VERSION")` is a good one.
    const VERSION: &'static str = "0";
    /// What becomes of a dry run, where the tool changes something.
    const DRY_RUN: DryRun = DryRun::Validate;
    /// What it takes.
    type Args: ToolArgs;
    /// What it answers in `data`. JSON has no NaN and no infinity: such a float becomes null.
    ///
    /// A struct derives `serde::Serialize` and [`schemars::JsonSchema`]; a `serde_json::Value` declares nothing.
    type Output: Serialize + JsonSchema + Send;

    /// How it behaves: a read, unless said otherwise.
    fn behaviour() -> Behaviour {
        Behaviour::default()
    }

    /// The JSON Schema of its answer: that of [`Output`](Self::Output), unless said otherwise.
    fn output_schema() -> Option<Value> {
        crate::output::schema_of::<Self::Output>()
    }

    /// Runs one call. Dropping the future cancels it.
    fn call(
        &self,
        ctx: &CallContext,
        args: Self::Args,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// Looks up what became of an earlier run of the very same call whose answer was lost, by
    /// [`CallContext::downstream_key`]. Asked where the tool declares `Recovery::Reconcile`.
    fn reconcile(
        &self,
        _ctx: &CallContext,
        _args: Self::Args,
    ) -> impl Future<Output = Result<Reconciled<Self::Output>, ToolError>> + Send {
        std::future::ready(Ok(Reconciled::Unknown))
    }

    /// Says in words for people what the call would do: asked before a person is (A13), where the call has to be confirmed. The context is
    /// that of a dry run, and nothing of it is kept. An error is the answer of the call, and nobody is asked.
    fn question(
        &self,
        _ctx: &CallContext,
        _args: Self::Args,
    ) -> impl Future<Output = Result<Option<Question>, ToolError>> + Send {
        std::future::ready(Ok(None))
    }
}

/// A tool without its types: what the catalog holds and what manifests are turned into. Written by
/// hand only where the declaration is not known before the program runs.
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

    /// What becomes of a dry run, where the tool changes something.
    fn dry_run(&self) -> DryRun {
        DryRun::Validate
    }

    /// Runs one call with arguments that the declaration accepts.
    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>>;

    /// Looks up what became of an earlier run of the very same call whose answer was lost.
    fn reconcile<'a>(
        &'a self,
        _ctx: &'a CallContext,
        _arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(std::future::ready(Ok(Reconciled::Unknown)))
    }

    /// Says in words for people what the call would do, before a person is asked to confirm it.
    fn question<'a>(
        &'a self,
        _ctx: &'a CallContext,
        _arguments: Arguments,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// What a tool has found out about a call whose answer was lost.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconciled<T> {
    /// It had its effect; this is its answer.
    Happened(T),
    /// Nothing is known of it where it would have to be.
    DidNotHappen,
    /// It cannot be told.
    Unknown,
}

/// What becomes of a dry run of a tool that changes something (A4). A read always runs.
///
/// The default is the safe one: a tool whose author did not think of dry runs is not called at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DryRun {
    /// The call is checked up to the point where the tool would start; the tool is not called.
    #[default]
    Validate,
    /// The tool is called and changes nothing: it looks at [`CallContext::is_dry_run`], or it changes
    /// nothing but its [`state`](CallContext::state), which a dry run does not commit.
    Simulate,
}

/// What an erased tool answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// What it answers.
    pub data: Value,
    /// Another window of validity than the declared one.
    pub ttl_seconds: Option<u32>,
    /// What the answer rests on besides the tool itself.
    pub sources: Vec<Source>,
    /// What the caller should know although it worked: a code of the tool's own and one sentence.
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
    /// Whether an error may quote an argument: not where a parameter is sensitive.
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
