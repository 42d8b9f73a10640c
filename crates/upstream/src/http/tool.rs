//! A tool whose calls are requests to an upstream.

use std::sync::Arc;

use countersign::contract::tool::Recovery;
use countersign::contract::{Effect, ErrorCode, ToolSpec};
use countersign::{
    Arguments, BoxFuture, CallContext, DryRun, DynTool, Reconciled, Reply, ToolError,
};

use super::answer::Reader;
use super::fault::Faults;
use super::pages::Pages;
use super::plan::Plan;
use super::reconcile::Lookup;
use super::send::Sending;
use super::service::Service;
use crate::declare::{self, SELECT, Undeclared};
use crate::manifest::{DryRunRule, TemplateError, ToolEntry};
use crate::select::{Filter, FilterError};
use crate::words::Say;

/// A tool of an HTTP service.
pub struct HttpTool {
    pub(super) spec: ToolSpec,
    pub(super) service: Arc<Service>,
    plan: Plan,
    pub(super) faults: Faults,
    pub(super) reader: Reader,
    pages: Option<Pages>,
    lookup: Option<Lookup>,
    dry_run: DryRun,
    chooses: bool,
}

/// An entry makes no tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolFault {
    /// The declaration is wrong.
    #[error(transparent)]
    Declaration(#[from] Undeclared),
    /// The path is no template.
    #[error("the path of {tool}: {source}")]
    Path {
        /// The tool.
        tool: String,
        /// The cause.
        source: TemplateError,
    },
    /// The filter is none.
    #[error("the filter of {tool}: {source}")]
    Filter {
        /// The tool.
        tool: String,
        /// The cause.
        source: FilterError,
    },
}

impl HttpTool {
    /// A tool, made from its entry.
    pub fn new(entry: &ToolEntry, service: Arc<Service>) -> Result<Self, ToolFault> {
        let spec = declare::spec_of(entry)?;
        let path = |source| ToolFault::Path {
            tool: entry.name.clone(),
            source,
        };
        let filter = |source| ToolFault::Filter {
            tool: entry.name.clone(),
            source,
        };
        Ok(Self {
            plan: Plan::of(entry).map_err(path)?,
            faults: Faults::of(entry),
            reader: Reader::of(entry).map_err(filter)?,
            pages: entry.pagination.clone().map(Pages::new),
            lookup: Lookup::of(entry).map_err(path)?,
            dry_run: match entry.dry_run.unwrap_or_default() {
                DryRunRule::Validate => DryRun::Validate,
                DryRunRule::Simulate => DryRun::Simulate,
            },
            chooses: entry.response.as_ref().is_some_and(|it| it.select_by_model),
            spec,
            service,
        })
    }

    /// The request and its answer.
    async fn run(&self, ctx: &CallContext, arguments: &Arguments) -> Result<Reply, ToolError> {
        // What cannot be asked for is refused before anything is sent.
        let chosen = self.chosen(arguments)?;
        let request = self.plan.fill(ctx, arguments)?;
        let sending = Sending {
            ctx,
            tool: self.spec.name.as_str(),
            request: &request,
            is_repeatable: self.is_repeatable(ctx),
            is_write: self.is_write(),
        };
        if let Some(pages) = &self.pages {
            return pages.fetch(self, sending, chosen.as_ref()).await;
        }
        let answer = self.service.send(sending).await?;
        self.reader.reply(self, &answer, chosen.as_ref())
    }

    /// The filter that a model has chosen.
    fn chosen(&self, arguments: &Arguments) -> Result<Option<Filter>, ToolError> {
        if !self.chooses {
            return Ok(None);
        }
        let value = arguments.to_value();
        let Some(text) = value.get(SELECT).and_then(|text| text.as_str()) else {
            return Ok(None);
        };
        let filter = Filter::parse_for_model(text).map_err(|error| {
            let why = error.to_string();
            ToolError::new(ErrorCode::InvalidArgument, Say::NotAFilter { why })
                .field(format!("/{SELECT}"))
                .without_effect()
        });
        filter.map(Some)
    }

    pub(super) fn is_write(&self) -> bool {
        self.spec.behaviour.effect.changes_something()
    }

    /// True if the upstream may get the request of a call twice: a read, a dry run, or a call that the upstream tells from
    /// another by its key and of which the entry says that a repeat does no harm.
    fn is_repeatable(&self, ctx: &CallContext) -> bool {
        match self.spec.behaviour.effect {
            Effect::Read => true,
            Effect::Write | Effect::External if ctx.is_dry_run() => true,
            Effect::Write | Effect::External => {
                let is_declared = match self.spec.behaviour.recovery {
                    Recovery::Retry | Recovery::DownstreamKey { .. } => true,
                    Recovery::Operator | Recovery::Reconcile { .. } => false,
                };
                is_declared && ctx.downstream_key().is_some()
            }
        }
    }
}

impl DynTool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn dry_run(&self) -> DryRun {
        self.dry_run
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move { self.run(ctx, &arguments).await })
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(async move {
            match &self.lookup {
                Some(lookup) => lookup.ask(self, ctx, &arguments).await,
                None => Ok(Reconciled::Unknown),
            }
        })
    }
}
