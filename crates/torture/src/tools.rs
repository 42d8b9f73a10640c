//! Tools whose effects can be counted from outside.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::budget::{Budget, BudgetScope, Budgets, Currency, ToolAmount, Unit};
use countersign::contract::tool::{Behaviour, Confirmation, KeyRule, Recovery};
use countersign::contract::{Effect, Input, ToolName, ToolSpec};
use countersign::pattern::ToolPattern;
use countersign::state::Collection;
use countersign::{
    Arguments, BoxFuture, CallContext, Catalog, DynTool, Reconciled, Reply, ToolError,
};
use serde_json::json;

use crate::point::{Fate, Point};

/// The kind of a tool: its effect, and the recovery when the result of the effect is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// State that is committed with the call.
    Write,
    /// A line in a file; an operator has to find out if it was written.
    Operator,
    /// A line in a file; a second run does no harm.
    Retry,
    /// A line in a file; the file's reader honours the downstream key.
    Downstream,
    /// A line in a file that the tool can look for.
    Reconcile,
    /// State that is committed with the call, once a user has confirmed it.
    ConfirmedWrite,
    /// A line in a file, once a user has confirmed it; the file's reader honours the downstream key.
    ConfirmedDownstream,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Write,
        Self::Operator,
        Self::Retry,
        Self::Downstream,
        Self::Reconcile,
        Self::ConfirmedWrite,
        Self::ConfirmedDownstream,
    ];

    /// The name of the tool.
    pub const fn tool(self) -> &'static str {
        match self {
            Self::Write => "torture.write",
            Self::Operator => "torture.operator",
            Self::Retry => "torture.retry",
            Self::Downstream => "torture.downstream",
            Self::Reconcile => "torture.reconcile",
            Self::ConfirmedWrite => "torture.confirmed_write",
            Self::ConfirmedDownstream => "torture.confirmed_downstream",
        }
    }

    fn behaviour(self) -> Behaviour {
        let mut behaviour = Behaviour {
            effect: Effect::External,
            deadline_ms: 10_000,
            ..Behaviour::default()
        };
        behaviour.idempotency.key = KeyRule::Required;
        behaviour.idempotency.attempts_max = 1_000;
        behaviour.recovery = match self {
            Self::Write | Self::ConfirmedWrite => {
                behaviour.effect = Effect::Write;
                Recovery::Operator
            }
            Self::Operator => Recovery::Operator,
            Self::Retry => Recovery::Retry,
            Self::Downstream | Self::ConfirmedDownstream => Recovery::DownstreamKey {
                window_seconds: 3_600,
            },
            Self::Reconcile => Recovery::Reconcile { grace_seconds: 0 },
        };
        behaviour.confirmation = match self {
            Self::ConfirmedWrite | Self::ConfirmedDownstream => Confirmation::Always,
            Self::Write | Self::Operator | Self::Retry | Self::Downstream | Self::Reconcile => {
                Confirmation::Never
            }
        };
        behaviour
    }
}

/// Budgets under which every call costs one cent. The limits are never reached; the tests only check that the sums are
/// right.
pub fn budgets() -> anyhow::Result<Budgets> {
    let currency = Currency::new("EUR")?;
    let budgets = Kind::ALL.map(|kind| {
        Ok(Budget {
            name: kind.tool().to_owned(),
            scope: BudgetScope::User,
            limit: currency.amount("1000000")?,
            currency: currency.clone(),
            window: None,
            tools: vec![ToolAmount {
                unit: Unit::Minor,
                ..ToolAmount::spends(ToolPattern::new(kind.tool())?, "/cost")
            }],
        })
    });
    let budgets: anyhow::Result<Vec<Budget>> = budgets.into_iter().collect();
    Ok(Budgets::new(budgets?)?)
}

/// A file that only grows: one line an effect, on the disk before the effect counts as done.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger in this file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Notes an effect.
    pub fn note(&self, line: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?;
        // One write: lines of several processes do not mix.
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }

    /// Every effect so far.
    pub fn lines(&self) -> std::io::Result<Vec<String>> {
        match File::open(&self.path) {
            Ok(file) => BufReader::new(file).lines().collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// All tools, with this ledger and this fate.
pub fn catalog(ledger: &Path, fate: &Fate) -> anyhow::Result<Catalog> {
    let mut catalog = Catalog::builder();
    for kind in Kind::ALL {
        catalog = catalog.dyn_tool(Arc::new(Counted {
            kind,
            spec: spec(kind)?,
            ledger: Ledger::at(ledger),
            fate: fate.clone(),
        }));
    }
    Ok(catalog.build()?)
}

/// The declaration of a tool.
pub(crate) fn spec(kind: Kind) -> anyhow::Result<ToolSpec> {
    let input = Input::Schema(json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "into": {"type": "string"},
            "fails": {"type": "boolean"},
            "cost": {"type": "integer", "default": 1}},
        "required": ["n"],
    }));
    let name = ToolName::new(kind.tool())?;
    let spec = ToolSpec::new(name, "Has an effect that can be counted.");
    Ok(spec.input(input).behaviour(kind.behaviour()))
}

struct Counted {
    kind: Kind,
    spec: ToolSpec,
    ledger: Ledger,
    fate: Fate,
}

/// The documents in which the writing tools count.
const COUNTERS: Collection = Collection::of_user("counter");

impl DynTool for Counted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            let arguments = arguments.to_value();
            let n = arguments.get("n").cloned().unwrap_or_default();
            if arguments.get("fails").is_some() {
                return Err(ToolError::not_found("there is nothing to do"));
            }
            match self.kind {
                Kind::Write | Kind::ConfirmedWrite => {
                    let own = n.to_string();
                    let into = arguments.get("into").and_then(|into| into.as_str());
                    let counter = into.unwrap_or(&own);
                    let before: Option<u64> = ctx.state().get(&COUNTERS, counter).await?;
                    self.fate.pass(Point::BeforeEffect);
                    let after = before.unwrap_or_default() + 1;
                    ctx.state().put(&COUNTERS, counter, &after).await?;
                    self.fate.pass(Point::AfterEffect);
                    Ok(json!({ "n": n, "count": after }).into())
                }
                Kind::Operator
                | Kind::Retry
                | Kind::Downstream
                | Kind::Reconcile
                | Kind::ConfirmedDownstream => {
                    self.fate.pass(Point::BeforeEffect);
                    let line = format!("{} {} {n}", self.spec.name, key_of(ctx)?);
                    self.ledger.note(&line).map_err(lost)?;
                    self.fate.pass(Point::AfterEffect);
                    Ok(json!({ "n": n, "request": ctx.request_id().as_str() }).into())
                }
            }
        })
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(async move {
            let n = arguments.to_value().get("n").cloned().unwrap_or_default();
            let line = format!("{} {} {n}", self.spec.name, key_of(ctx)?);
            let lines = self.ledger.lines().map_err(lost)?;
            Ok(if lines.contains(&line) {
                Reconciled::Happened(json!({ "n": n, "request": "looked up" }).into())
            } else {
                Reconciled::DidNotHappen
            })
        })
    }
}

pub(crate) fn key_of(ctx: &CallContext) -> Result<&str, ToolError> {
    let key = ctx.downstream_key();
    key.ok_or_else(|| {
        ToolError::invalid("/idempotency_key", "the call has no key").without_effect()
    })
}

fn lost(error: std::io::Error) -> ToolError {
    ToolError::upstream("IO", "the ledger did not answer").with_source(error)
}
