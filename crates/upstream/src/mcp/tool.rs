//! A tool of an MCP server.

use std::sync::Arc;

use countersign::contract::{Source, ToolSpec};
use countersign::{
    Arguments, BoxFuture, CallContext, DryRun, DynTool, Reconciled, Reply, ToolError,
};
use countersign_contract::Digest;
use jiff::Timestamp;
use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::time::timeout;

use super::definition::Definition;
use super::exchange::{Sending, TIMER_MAX};
use super::pins::Pin;
use super::reconcile::Lookup;
use super::server::{Approved, Server, Standing};
use super::trouble::Trouble;
use super::{DEADLINE, VENDOR};
use super::{answer, digits};
use crate::declare;
use crate::http::answer::{Reader, Whose};
use crate::http::auth::Credentials;
use crate::http::fault::{Faults, Owner};
use crate::http::plan::Plan;
use crate::http::reconcile::Finder;
use crate::http::tool::{ToolFault, chosen_by_model};
use crate::manifest::{DryRunRule, ToolEntry};
use crate::words::Say;

/// A tool of an MCP server, as it was approved.
pub struct McpTool {
    pub(super) spec: ToolSpec,
    pub(super) server: Arc<Server>,
    approved: Approved,
    pin: Digest,
    plan: Plan,
    pub(super) faults: Faults,
    pub(super) reader: Reader,
    lookup: Option<Lookup>,
    dry_run: DryRun,
    chooses: bool,
}

impl McpTool {
    /// A tool, made from its approved definition and what an entry says on top of it. `pin` is the approved set.
    pub fn new(
        definition: &Definition,
        said: Option<ToolEntry>,
        pin: &Pin,
        server: Arc<Server>,
    ) -> Result<Self, ToolFault> {
        let mut entry = definition.entry(&server.entry);
        if let Some(said) = said {
            entry.join(said);
        }
        let name = || entry.name.clone();
        let path = |source| ToolFault::Path {
            tool: name(),
            source,
        };
        let filter = |source| ToolFault::Filter {
            tool: name(),
            source,
        };
        Ok(Self {
            spec: declare::spec_of(&entry)?,
            plan: Plan::of(&entry).map_err(path)?,
            faults: Faults::of(&entry, Owner::of(&server.entry)),
            reader: Reader::of(&entry).map_err(filter)?,
            lookup: Lookup::of(&entry, pin, &server.entry)?,
            dry_run: match entry.dry_run.unwrap_or_default() {
                DryRunRule::Validate => DryRun::Validate,
                DryRunRule::Simulate => DryRun::Simulate,
            },
            chooses: entry.response.as_ref().is_some_and(|it| it.select_by_model),
            approved: Approved::new(name(), definition),
            pin: pin.digest,
            server,
        })
    }

    /// The call and its answer.
    async fn run(&self, ctx: &CallContext, arguments: &Arguments) -> Result<Reply, ToolError> {
        // What cannot be asked for is refused before anything is sent.
        let chosen = chosen_by_model(self.chooses, arguments)?;
        self.compare(ctx).await?;
        self.check_standing(&self.approved)?;
        let mut meta = self.meta(ctx);
        if let Some(key) = ctx.downstream_key() {
            meta.insert(format!("{VENDOR}idempotency_key"), key.into());
        }
        let sending = Sending {
            ctx,
            approved: &self.approved,
            arguments: self.values(ctx, arguments)?,
            meta,
            is_repeatable: declare::is_repeatable(&self.spec, ctx),
            is_write: self.is_write(),
        };
        let mut sent = Credentials::default();
        let result = self.server.send(&sending, &mut sent).await?;
        answer::reply(self, result, &sent.secrets, chosen.as_ref()).await
    }

    /// The arguments that are sent. A number that the protocol would not carry whole is refused.
    fn values(&self, ctx: &CallContext, arguments: &Arguments) -> Result<JsonObject, ToolError> {
        let mut bound = JsonObject::new();
        for (name, json) in self.plan.values(ctx, arguments)? {
            if let Some(digits) = digits::lost(json.get()) {
                let say = Say::TooManyDigits {
                    tool: self.spec.name.to_string(),
                    digits: digits.to_owned(),
                };
                return Err(ToolError::invalid(format!("/{name}"), say).without_effect());
            }
            let value = serde_json::from_str(json.get()).unwrap_or_default();
            bound.insert(name, value);
        }
        Ok(bound)
    }

    /// Looks a lost call up with another tool of the server, as a read over the same connection. What cannot be read says nothing about
    /// the call.
    async fn look_up(
        &self,
        ctx: &CallContext,
        arguments: &Arguments,
    ) -> Result<Reconciled<Reply>, ToolError> {
        let Some(lookup) = &self.lookup else {
            return Ok(Reconciled::Unknown);
        };
        self.compare(ctx).await?;
        self.check_standing(&lookup.approved)?;
        let Some(asked) = lookup.arguments(ctx, &self.values(ctx, arguments)?) else {
            return Ok(Reconciled::Unknown);
        };
        let sending = Sending {
            ctx,
            approved: &lookup.approved,
            arguments: asked,
            meta: self.meta(ctx),
            is_repeatable: true,
            is_write: false,
        };
        let mut sent = Credentials::default();
        let result = self.server.send(&sending, &mut sent).await?;
        let chosen = chosen_by_model(self.chooses, arguments)?;
        let finder = Finder {
            reader: &self.reader,
            whose: self.whose(),
            chosen: chosen.as_ref(),
            bytes: answer::bytes_of(&result),
        };
        lookup.read(result, &sent.secrets, finder).await
    }

    /// Has the server list its tools if it has not done so yet: nothing is called whose definition was not compared.
    async fn compare(&self, ctx: &CallContext) -> Result<(), ToolError> {
        if self.server.has_listed() {
            return Ok(());
        }
        let listed = timeout(ctx.remaining().min(TIMER_MAX), self.server.discover()).await;
        let why = match listed {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => error.why,
            Err(_) => "the server did not list its tools in time".to_owned(),
        };
        let trouble = Trouble::NoConnection(why);
        Err(self.server.told(&trouble, &[]))
    }

    /// Refuses a call to a tool that is not the approved one any more.
    fn check_standing(&self, approved: &Approved) -> Result<(), ToolError> {
        match self.server.standing(&approved.definition) {
            Standing::Approved => Ok(()),
            Standing::Changed => Err(self.server.quarantined(&approved.name)),
            Standing::Unlisted => Err(self.server.unlisted(&approved.name)),
        }
    }

    /// Builds the `_meta` member of a call: its trace, request id, deadline and dry run.
    fn meta(&self, ctx: &CallContext) -> JsonObject {
        let mut meta = JsonObject::new();
        let mut set = |name: &str, value: Value| drop(meta.insert(name.to_owned(), value));
        if self.server.entry.send_context {
            for (name, value) in ctx.trace_headers() {
                set(name, value.into());
            }
            set(
                &format!("{VENDOR}request_id"),
                ctx.request_id().as_str().into(),
            );
            set(DEADLINE, ctx.deadline().to_string().into());
        }
        if ctx.is_dry_run() {
            set(&format!("{VENDOR}dry_run"), true.into());
        }
        meta
    }

    pub(super) fn whose(&self) -> Whose<'_> {
        Whose {
            upstream: self.server.name(),
            bytes_max: self.server.entry.response_bytes_max,
            is_write: self.is_write(),
        }
    }

    fn is_write(&self) -> bool {
        self.spec.behaviour.effect.changes_something()
    }
}

impl DynTool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn upstream(&self) -> Option<&str> {
        Some(self.server.name())
    }

    fn dry_run(&self) -> DryRun {
        self.dry_run
    }

    fn fixed_sources(&self, at: Timestamp) -> Vec<Source> {
        vec![Source {
            kind: "mcp_pin".to_owned(),
            name: self.server.name().to_owned(),
            hash: self.pin.to_string(),
            ts: at.to_string(),
        }]
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
        Box::pin(async move { self.look_up(ctx, &arguments).await })
    }
}
