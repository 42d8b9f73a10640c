//! The tool of a simulation: its effect is in the store, or in the list of the world.

use std::sync::Arc;

use anyhow::Result;
use countersign::contract::ToolSpec;
use countersign::state::Collection;
use countersign::{Arguments, BoxFuture, CallContext, DynTool, Reconciled, Reply, ToolError};
use serde_json::json;

use super::world::{Mortal, World};
use crate::tools::{self, Kind};

/// A tool of the kind of its world.
pub(super) struct Effect {
    world: Arc<World>,
    mortal: Mortal,
    spec: ToolSpec,
}

const COUNTERS: Collection = Collection::of_user("counter");

/// Names of the points in the tool, beside those of the store.
const BEFORE: u64 = 100;
const AFTER: u64 = 101;

impl Effect {
    pub(super) fn new(world: Arc<World>, mortal: Mortal) -> Result<Self> {
        let spec = tools::spec(world.kind)?;
        Ok(Self {
            world,
            mortal,
            spec,
        })
    }
}

impl DynTool for Effect {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            let n = number(&arguments);
            // A point in a tool cannot fail, it can only be late or the last one.
            self.mortal.pass(&[BEFORE]).await;
            let answer = if self.world.kind == Kind::Write {
                let before: Option<u64> = ctx.state().get(&COUNTERS, &n.to_string()).await?;
                let after = before.unwrap_or_default() + 1;
                ctx.state().put(&COUNTERS, &n.to_string(), &after).await?;
                json!({ "n": n, "count": after })
            } else {
                self.world.effect(n, tools::key_of(ctx)?);
                json!({ "n": n, "request": ctx.request_id().as_str() })
            };
            self.mortal.pass(&[AFTER]).await;
            Ok(answer.into())
        })
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(async move {
            let n = number(&arguments);
            self.mortal.pass(&[BEFORE]).await;
            Ok(if self.world.has_effect(n, tools::key_of(ctx)?) {
                Reconciled::Happened(json!({ "n": n, "request": "looked up" }).into())
            } else {
                Reconciled::DidNotHappen
            })
        })
    }
}

fn number(arguments: &Arguments) -> u32 {
    let n = arguments
        .to_value()
        .get("n")
        .and_then(serde_json::Value::as_u64);
    n.and_then(|n| u32::try_from(n).ok()).unwrap_or_default()
}
