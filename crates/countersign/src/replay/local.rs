//! The tools of this process as a target: run with the recorded arguments at the recorded time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_contract::tool::Replay;
use countersign_contract::{Actor, ActorType, Effect, ErrorCode, TraceContext};

use serde_json::Value;

use super::{Computed, RecordedCall, Replayer, Target};
use crate::BoxFuture;
use crate::cancel::Cancellation;
use crate::catalog::{Catalog, Entry};
use crate::clock::Clock;
use crate::context::{CallContext, Request};
use crate::executor::{guarded, is_validated_only};
use crate::extensions::Extensions;
use crate::ids::IdSource;
use crate::ledger::Store;
use crate::rules::Rules;
use crate::state::State;
use crate::vault::Vault;

/// Versions of rule sets for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesAt {
    /// The versions in the record: shows that the answer can be computed again.
    Recorded,
    /// The versions in force: shows what they would have changed.
    InForce,
}

/// Tools of this process, and rule sets.
pub struct Local {
    catalog: Catalog,
    rules: Rules,
    at: RulesAt,
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl Replayer {
    /// A target with these tools and rule sets.
    pub fn local(&self, catalog: Catalog, rules: Rules, at: RulesAt) -> Local {
        Local {
            catalog,
            rules,
            at,
            store: self.store.clone(),
            vault: self.vault.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
        }
    }
}

impl Target for Local {
    fn compute<'a>(&'a self, call: &'a RecordedCall) -> BoxFuture<'a, Computed> {
        Box::pin(self.computed(call))
    }
}

impl Local {
    async fn computed(&self, call: &RecordedCall) -> Computed {
        let Some(entry) = self.catalog.get(&call.tool) else {
            return Computed::NoSuchTool;
        };
        let behaviour = &entry.spec().behaviour;
        let Replay::Pure { volatile } = &behaviour.replay else {
            return Computed::NotPure;
        };
        for (name, version) in &call.rules {
            let is_known = match self.at {
                RulesAt::InForce => self.rules.current(name).is_some(),
                RulesAt::Recorded => version
                    .parse()
                    .is_ok_and(|version| self.rules.version(name, version).is_some()),
            };
            if !is_known {
                let (name, version) = (name.clone(), version.clone());
                return Computed::MissingRules { name, version };
            }
        }
        let definition = Some(entry.digest());
        // Neither was it run then.
        if call.dry_run && is_validated_only(&entry) {
            return Computed::Answered {
                data: Value::Null,
                volatile: Vec::new(),
                definition,
            };
        }
        let Some(ctx) = self.context(call, &entry).await else {
            let code = ErrorCode::UpstreamError;
            return Computed::Failed { code, definition };
        };
        let limit = Duration::from_millis(behaviour.deadline_ms);
        let start = || entry.tool().call(&ctx, call.arguments.clone());
        match guarded(start, limit, &ctx.cancellation).await {
            Ok(reply) => Computed::Answered {
                data: reply.data,
                volatile: volatile.clone(),
                definition,
            },
            Err(error) => Computed::Failed {
                code: error.code(),
                definition,
            },
        }
    }

    /// The context that the tool had then. Its writes to its state are dropped with this; it has no key.
    async fn context(&self, call: &RecordedCall, entry: &Entry) -> Option<CallContext> {
        let keys = self.vault.existing_key(&call.user_id).await.ok()??;
        let may_write = match entry.spec().behaviour.effect {
            Effect::Read => false,
            Effect::Write | Effect::External => true,
        };
        let state = State::new(
            self.store.clone(),
            self.vault.clone(),
            self.ids.clone(),
            call.user_id.clone(),
            keys,
            may_write,
        );
        let request_id = call.request_id.clone();
        Some(CallContext {
            request: Request {
                request_id: request_id.unwrap_or_else(|| self.ids.request_id()),
                actor: call.actor.clone().unwrap_or_else(|| Actor {
                    kind: ActorType::User,
                    id: call.user_id.clone(),
                }),
                user_id: call.user_id.clone(),
                session_id: call.session_id.clone(),
                locale: call.locale.clone(),
                currency: call.currency.clone(),
                timezone: call.timezone.clone(),
                client: call.client.clone(),
                dry_run: call.dry_run,
                idempotency_key: None,
            },
            raw: call.raw.as_str().into(),
            issues: Vec::new(),
            unreadable: Vec::new(),
            extensions: Extensions::new(),
            trace: TraceContext {
                trace_id: self.ids.trace_id(),
                span_id: self.ids.span_id(),
                parent_span_id: None,
                sampled: false,
            },
            trace_state: None,
            cancellation: Cancellation::never(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            deadline: Duration::MAX,
            notes: Mutex::default(),
            state,
            rules: self.rules.clone(),
            pinned: match self.at {
                RulesAt::Recorded => Some(call.rules.clone()),
                RulesAt::InForce => None,
            },
            frozen_at: Some(call.ran_at),
            downstream_key: None,
            caller_token: None,
        })
    }
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Local");
        shown.field("catalog", &self.catalog).field("at", &self.at);
        shown.finish_non_exhaustive()
    }
}
