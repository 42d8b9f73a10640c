//! A tool of the program itself, with what an entry of the configuration says on top of its declaration.

use std::sync::Arc;

use countersign::{
    Arguments, BoxFuture, CallContext, DryRun, DynTool, Question, Reconciled, Reply, ToolError,
};
use countersign_contract::{Source, ToolName, ToolSpec};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::declare::{self, Undeclared};
use crate::manifest::ToolEntry;
use crate::words::Say;

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
    let hidden = entry.arguments.iter().filter(|(_, own)| own.is_hidden());
    let hidden = hidden.map(|(name, own)| (name.clone(), own.preset.clone()));
    Ok(Arc::new(Overridden {
        hidden: hidden.collect(),
        spec,
        tool,
    }))
}

struct Overridden {
    spec: ToolSpec,
    tool: Arc<dyn DynTool>,
    /// Arguments that no caller sends, each with its value if it has one.
    hidden: Vec<(String, Option<Value>)>,
}

impl Overridden {
    /// The arguments with the presets.
    fn filled(&self, arguments: Arguments) -> Result<Arguments, ToolError> {
        if self.hidden.is_empty() {
            return Ok(arguments);
        }
        let mut presets = Map::new();
        let sent: Map<String, Value> = arguments.parse().unwrap_or_default();
        for (name, preset) in &self.hidden {
            if sent.contains_key(name) {
                let argument = name.clone();
                let message = Say::HiddenArgument { argument };
                return Err(ToolError::invalid(format!("/{name}"), message).without_effect());
            }
            if let Some(preset) = preset {
                presets.insert(name.clone(), preset.clone());
            }
        }
        if presets.is_empty() {
            return Ok(arguments);
        }
        // The text of the caller's own arguments stays as it is: no number goes through a double.
        let own = arguments.as_json().trim_ascii();
        let own = own.strip_prefix('{').unwrap_or(own).trim_start();
        let presets = Value::Object(presets).to_string();
        let presets = presets.strip_suffix('}').unwrap_or(&presets);
        let comma = if own.starts_with('}') { "" } else { "," };
        let joined = format!("{presets}{comma}{own}");
        Ok(Arguments::from_json(&joined).unwrap_or(arguments))
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
        Box::pin(async move { self.tool.call(ctx, self.filled(arguments)?).await })
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(async move { self.tool.reconcile(ctx, self.filled(arguments)?).await })
    }

    fn question<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>> {
        Box::pin(async move { self.tool.question(ctx, self.filled(arguments)?).await })
    }
}
