//! A tool whose calls are requests to an upstream.

use std::sync::Arc;

use countersign::contract::{ErrorCode, ToolSpec};
use countersign::{
    Arguments, BoxFuture, CallContext, DryRun, DynTool, Reconciled, Reply, ToolError,
};

use super::answer::{Reader, Whose};
use super::fault::{self, Faults, Owner};
use super::identity::Purpose;
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
    /// The name that the upstream knows it by.
    pub(super) name: String,
    pub(super) service: Arc<Service>,
    plan: Plan,
    pub(super) faults: Faults,
    pub(super) reader: Reader,
    pages: Option<Pages>,
    lookup: Option<Lookup>,
    dry_run: DryRun,
    pub(super) chooses: bool,
}

/// An entry cannot be made into a tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolFault {
    /// The declaration is wrong. Usually a schema of the manifest has a keyword that is not supported.
    #[error(transparent)]
    Declaration(#[from] Undeclared),
    /// The path is not a valid template, usually because of an unbalanced brace.
    #[error("the path of {tool}: {source}")]
    Path {
        /// The tool.
        tool: String,
        /// The cause.
        source: TemplateError,
    },
    /// The look-up of a lost call cannot be made. Usually its template names an argument that the tool does not have.
    #[error("the look-up of {tool}: {why}")]
    LookUp {
        /// The tool.
        tool: String,
        /// The cause.
        why: String,
    },
    /// The filter is not valid. Usually it has a typing error, or a function that is not offered.
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
            plan: Plan::of(entry).map_err(path)?.at(&service.entry),
            faults: Faults::of(entry, Owner::of(&service.entry)),
            reader: Reader::of(entry).map_err(filter)?,
            pages: entry.pagination.clone().map(Pages::new),
            lookup: Lookup::of(entry, &service.entry).map_err(path)?,
            dry_run: match entry.dry_run.unwrap_or_default() {
                DryRunRule::Validate => DryRun::Validate,
                DryRunRule::Simulate => DryRun::Simulate,
            },
            chooses: entry.response.as_ref().is_some_and(|it| it.select_by_model),
            name: entry.name.clone(),
            spec,
            service,
        })
    }

    /// The request and its answer.
    async fn run(&self, ctx: &CallContext, arguments: &Arguments) -> Result<Reply, ToolError> {
        // What cannot be asked for is refused before anything is sent.
        let chosen = chosen_by_model(self.chooses, arguments)?;
        let request = self.plan.fill(ctx, arguments)?;
        let sending = Sending {
            ctx,
            tool: &self.name,
            purpose: Purpose::Call,
            request: &request,
            is_repeatable: declare::is_repeatable(&self.spec, ctx),
            is_write: self.is_write(),
            faults: &self.faults,
        };
        if let Some(pages) = &self.pages {
            return pages.fetch(self, sending, chosen.as_ref()).await;
        }
        let answer = self.service.send(sending).await?;
        let reply = self.reader.reply(self, &answer, chosen.as_ref()).await;
        match (&answer.doubt, self.is_write()) {
            // What says that nothing was done speaks for the last attempt only.
            (Some(earlier), true) => reply.map_err(|error| {
                if error.leaves_doubt() {
                    error
                } else {
                    fault::told(earlier, self.service.name())
                }
            }),
            (Some(_) | None, _) => reply,
        }
    }

    pub(super) fn is_write(&self) -> bool {
        self.spec.behaviour.effect.changes_something()
    }

    /// The tool as a reader of answers knows it.
    pub(super) fn whose(&self) -> Whose<'_> {
        Whose {
            upstream: self.service.name(),
            bytes_max: self.service.response_bytes_max(),
            is_write: self.is_write(),
        }
    }
}

/// The filter that a model has chosen.
pub(crate) fn chosen_by_model(
    chooses: bool,
    arguments: &Arguments,
) -> Result<Option<Arc<Filter>>, ToolError> {
    if !chooses {
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
    filter.map(|filter| Some(Arc::new(filter)))
}

impl DynTool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn upstream(&self) -> Option<&str> {
        Some(self.service.name())
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
