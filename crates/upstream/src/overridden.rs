//! A tool of the program itself, with what an entry of the configuration says on top of its declaration.

use std::sync::Arc;

use countersign::{
    Arguments, BoxFuture, CallContext, DryRun, DynTool, Question, Reconciled, Reply, ToolError,
};
use countersign_contract::{Source, ToolName, ToolSpec};
use jiff::Timestamp;

use crate::declare::{self, Undeclared};
use crate::http::node::Members;
use crate::manifest::ToolEntry;
use crate::preset::{Presets, object};

/// Overrides the declaration of a tool. What belongs to its code stays: effect, recovery, the answer.
pub fn overridden(
    tool: Arc<dyn DynTool>,
    entry: &ToolEntry,
) -> Result<Arc<dyn DynTool>, Undeclared> {
    let own = tool.spec().clone();
    let name = match &entry.shown_as {
        Some(name) => ToolName::new(name.as_str())?,
        None => own.name,
    };
    let spec = ToolSpec {
        title: entry.title.clone().or(own.title),
        description: entry.description.clone().unwrap_or(own.description),
        input: declare::input_over(own.input, entry)?,
        behaviour: declare::behaviour_over(own.behaviour, entry),
        name,
        version: own.version,
        output: own.output,
    };
    Ok(Arc::new(Overridden {
        presets: Presets::of(&entry.arguments),
        spec,
        tool,
    }))
}

struct Overridden {
    spec: ToolSpec,
    tool: Arc<dyn DynTool>,
    /// Arguments that no caller sends.
    presets: Presets,
}

impl Overridden {
    /// The arguments with the presets.
    fn filled(&self, ctx: &CallContext, arguments: Arguments) -> Result<Arguments, ToolError> {
        if self.presets.is_empty() {
            return Ok(arguments);
        }
        let Members(mut values) = arguments.parse().unwrap_or_default();
        self.presets.fill(ctx, &mut values)?;
        Ok(Arguments::from_json(&object(&values)).unwrap_or(arguments))
    }
}

impl DynTool for Overridden {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn upstream(&self) -> Option<&str> {
        self.tool.upstream()
    }

    fn dry_run(&self) -> DryRun {
        self.tool.dry_run()
    }

    fn fixed_sources(&self, at: Timestamp) -> Vec<Source> {
        self.tool.fixed_sources(at)
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move { self.tool.call(ctx, self.filled(ctx, arguments)?).await })
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(async move { self.tool.reconcile(ctx, self.filled(ctx, arguments)?).await })
    }

    fn question<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>> {
        Box::pin(async move { self.tool.question(ctx, self.filled(ctx, arguments)?).await })
    }
}
