//! Standing grants: a user's yes in advance counts within its bounds, for the agent that it was given to, and never for
//! more than the policy allows. `making` has who gives and takes one, `using` what becomes of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::authorize::{Authorizer, Decision, Facts, Verdict};
use countersign::contract::grant::GrantAmount;
use countersign::contract::tool::AmountUnit;
use countersign::contract::{Actor, ActorType, Grant, NewGrant, ToolName, ToolSpec};
use countersign::executor::ExecutorBuilder;
use countersign::grant::{Clause, Language, Wrong};
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Principal};
use serde_json::{Value, json};

use crate::world::{Probe, World, call_as, check_error};

mod making;
mod using;

const NEEDS: &str = "NEEDS_USER_CONFIRMATION";

pub(crate) fn agent(id: &str) -> Principal {
    Principal::new(actor(id), "u_1")
}

pub(crate) fn actor(id: &str) -> Actor {
    Actor {
        kind: ActorType::Agent,
        id: id.to_owned(),
    }
}

/// A grant to `a_7` for `shop.buy`, for a day.
fn grant() -> NewGrant {
    NewGrant {
        user_id: None,
        to: actor("a_7"),
        tools: vec![ToolName::new("shop.buy").unwrap()],
        when: None,
        calls: None,
        amount: None,
        until: "2026-11-16T12:00:00Z".to_owned(),
        parent: None,
    }
}

fn euros(limit: &str) -> GrantAmount {
    GrantAmount {
        limit: limit.to_owned(),
        currency: "EUR".to_owned(),
        at: Some("/total".to_owned()),
        currency_at: None,
        unit: AmountUnit::Major,
    }
}

/// A language with one kind of condition: `member<number`.
#[derive(Debug)]
pub(crate) struct Below;

struct Bound {
    member: String,
    most: f64,
}

impl Language for Below {
    fn read(&self, text: &str, tools: &[&ToolSpec]) -> Result<Box<dyn Clause>, Wrong> {
        let wrong = |offset: usize, message: &str| Wrong {
            offset,
            message: message.to_owned(),
        };
        let (member, most) = text.split_once('<').ok_or_else(|| wrong(0, "no <"))?;
        let most = most
            .parse()
            .map_err(|_| wrong(member.len() + 1, "no number"))?;
        if !tools.is_empty() && member == "unknown" {
            return Err(wrong(0, "there is no such member"));
        }
        let member = member.to_owned();
        Ok(Box::new(Bound { member, most }))
    }

    fn has(&self, _: &ToolSpec, _: &str) -> bool {
        true
    }

    fn currency_beside(&self, _: &ToolSpec, _: &str) -> Option<String> {
        None
    }
}

/// A language that counts how often it reads a condition.
#[derive(Debug, Default)]
pub(crate) struct Counting(pub(crate) AtomicUsize);

impl Language for Counting {
    fn read(&self, text: &str, tools: &[&ToolSpec]) -> Result<Box<dyn Clause>, Wrong> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Below.read(text, tools)
    }

    fn has(&self, tool: &ToolSpec, pointer: &str) -> bool {
        Below.has(tool, pointer)
    }

    fn currency_beside(&self, tool: &ToolSpec, amount: &str) -> Option<String> {
        Below.currency_beside(tool, amount)
    }
}

impl Clause for Bound {
    fn holds(&self, facts: &Facts<'_>) -> Option<bool> {
        let value = facts.arguments.get(&self.member)?.as_f64()?;
        Some(value < self.most)
    }
}

fn with_language(builder: ExecutorBuilder) -> ExecutorBuilder {
    builder.grant_language(Arc::new(Below))
}

fn world(probe: Probe) -> World {
    World::logging_with([probe.confirmed()], with_language)
}

async fn make(world: &World, new: &NewGrant) -> Grant {
    let by = Principal::user("u_1");
    world.executor.grants().make(&by, new).await.unwrap()
}

async fn revoke(world: &World, id: &str) -> Grant {
    let by = Principal::user("u_1");
    let revoked = world.executor.grants().revoke(id, &by, Some("enough"));
    revoked.await.unwrap()
}

async fn shown(world: &World, id: &str) -> Grant {
    let by = Principal::user("u_1");
    world.executor.grants().show(id, &by).await.unwrap()
}

async fn buy(world: &World, who: &str, total: u32, envelope: &Value) -> Value {
    let arguments = json!({ "total": total });
    let call = call_as(agent(who), "shop.buy", &arguments, envelope);
    world.execute(call).await
}

#[track_caller]
fn check_asked(reply: &Value) {
    check_error(reply, NEEDS, &json!({}));
    let is_question = reply["error"]["details"]["approval_id"].is_string();
    assert!(is_question, "{reply:#}");
}

/// A policy that says the same of every tool.
pub(crate) struct Fixed {
    pub(crate) denies: bool,
    pub(crate) must_confirm: bool,
    pub(crate) four_eyes: bool,
}

impl Authorizer for Fixed {
    fn decide<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let decision = Decision {
            verdict: if self.denies {
                Verdict::Forbid {
                    hint: "ask somebody else".into(),
                }
            } else {
                Verdict::Allow
            },
            policy_revision: "fixed".into(),
            must_confirm: self.must_confirm,
            approval_valid_for: None,
            four_eyes: self.four_eyes,
            cool_down: None,
            unkeyed_writes: None,
            unkeyed_window: None,
            conditions: None,
        };
        Box::pin(std::future::ready(Ok(decision)))
    }
}
