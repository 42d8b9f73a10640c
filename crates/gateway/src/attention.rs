//! `GET /v1/attention`: everything that needs a person now, each item with the command and the page that settle it.
//!
//! An ordinary caller sees the items that they can settle: their questions and their spent budgets. An operator sees all.

use countersign::approve::{self, Wanted};
use countersign::archive;
use countersign::budget::LowPot;
use countersign::contract::{Approval, ApprovalState, Language, Message as _, ToolName};
use countersign::ledger::{self, ClaimQuery, ClaimRow, ClaimState, FailedDeliveries};
use jiff::Timestamp;
use serde::Serialize;

use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::status::{About, Problem, Status, UpstreamHealth, View};
use crate::words::Say;

/// Maximum number of items of one kind; the rest is counted.
const LISTED_MAX: usize = 200;

/// Maximum number of pots of budgets that are read.
const POTS_MAX: usize = 10_000;

/// Everything that needs a person now.
#[derive(Debug, Clone, Serialize)]
pub struct Attention {
    /// The items, the gravest first, then the oldest.
    pub items: Vec<AttentionItem>,
    /// Number of items that are not listed.
    pub more: usize,
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttentionItem {
    /// Id of the item, the same for as long as it waits.
    pub id: String,
    /// Code of its kind: `question`, `call_in_doubt`, `notification_failed`, `budget_nearly_used_up`, `verification_failed`,
    /// `definitions_changed`, `upstream_away`, or the code of a problem of the status.
    pub kind: &'static str,
    /// Time since when it waits; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Description for people.
    pub what: String,
    /// User whom it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Agent whom it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Tool that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// Command or action that settles it.
    pub settle: String,
    /// Page of the console on which it is settled.
    pub page: String,
}

/// Errors of reading the items.
#[derive(Debug, thiserror::Error)]
pub enum AttentionError {
    /// The questions could not be read, usually because the store does not answer.
    #[error("the questions could not be read")]
    Questions(#[source] approve::Error),
    /// The claims could not be read, usually because the store does not answer.
    #[error("the calls in doubt could not be read")]
    Claims(#[source] archive::Error),
    /// The outbox could not be read, usually because the store does not answer.
    #[error("the notifications could not be read")]
    Outbox(#[source] ledger::Error),
    /// The pots of the budgets could not be read, usually because the store does not answer.
    #[error("the budgets could not be read")]
    Budgets(#[source] ledger::Error),
}

impl Gateway {
    /// Returns everything that needs a person, as far as it concerns this caller.
    pub async fn attention(
        &self,
        caller: &Caller,
        view: View,
        language: Language,
    ) -> Result<Attention, AttentionError> {
        let user_id = &caller.principal.user_id;
        let status = self
            .status(
                caller,
                About {
                    user_id,
                    agent: None,
                },
                view,
                language,
            )
            .await;
        let mut items = of_verification(&status, language);
        items.extend(of_problems(&status, view));
        items.extend(of_upstreams(&status, language));
        let budgets = match view {
            View::Own => Vec::new(),
            View::Operator => self.low_budgets(language).await?,
        };
        let doubts = match view {
            View::Own => Vec::new(),
            View::Operator => {
                items.extend(self.undelivered(language).await?);
                self.doubts().await?
            }
        };
        let questions = self.questions(caller, language).await?;
        let counts = [budgets.len(), doubts.len(), questions.len()];
        let more = counts.map(|count| count.saturating_sub(LISTED_MAX));
        let more = more.into_iter().sum();
        items.extend(budgets.into_iter().take(LISTED_MAX));
        items.extend(
            doubts
                .iter()
                .take(LISTED_MAX)
                .map(|row| of_doubt(row, language)),
        );
        items.extend(
            questions
                .iter()
                .take(LISTED_MAX)
                .map(|question| of_question(question, language)),
        );
        Ok(Attention { items, more })
    }

    /// Returns the budgets of users, of agents and of all callers that are spent or nearly spent; the spent ones first.
    async fn low_budgets(&self, language: Language) -> Result<Vec<AttentionItem>, AttentionError> {
        let budgets = self.identity().policy().controls().budgets();
        let executor = self.executor();
        let low = budgets.low(&**executor.store(), executor.now(), POTS_MAX);
        let mut low = low.await.map_err(AttentionError::Budgets)?;
        low.sort_by_key(|pot| !pot.budget.is_used_up());
        Ok(low.iter().map(|pot| of_budget(pot, language)).collect())
    }

    /// Returns the targets of the configuration to which notifications were given up.
    async fn undelivered(&self, language: Language) -> Result<Vec<AttentionItem>, AttentionError> {
        let targets = self.notify_targets();
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let failed = self.executor().store().failed_deliveries().await;
        let failed = failed.map_err(AttentionError::Outbox)?.into_iter();
        let failed = failed.filter(|one| targets.iter().any(|target| target.name == one.target));
        Ok(failed.map(|one| of_failed(&one, language)).collect())
    }

    /// Returns the calls in doubt, oldest first.
    async fn doubts(&self) -> Result<Vec<ClaimRow>, AttentionError> {
        let query = ClaimQuery {
            state: Some(ClaimState::InDoubt),
            limit: LISTED_MAX * 5,
            ..ClaimQuery::default()
        };
        let rows = self.archive().claims(&query).await;
        let mut rows = rows.map_err(AttentionError::Claims)?;
        rows.sort_by_key(|row| row.claimed_at);
        Ok(rows)
    }

    /// Returns the open questions that the caller may see, oldest first.
    async fn questions(
        &self,
        caller: &Caller,
        language: Language,
    ) -> Result<Vec<Approval>, AttentionError> {
        let wanted = Wanted {
            state: Some(ApprovalState::Pending),
            limit: LISTED_MAX * 5,
            language,
            ..Wanted::default()
        };
        let approvals = self.executor().approvals();
        let listed = approvals.list(&caller.principal, &wanted).await;
        let mut questions = listed.map_err(AttentionError::Questions)?;
        questions.reverse();
        Ok(questions)
    }
}

/// Returns the last verification of this process, if it found a fault.
fn of_verification(status: &Status, language: Language) -> Vec<AttentionItem> {
    let verified = status.signing.verified.as_ref();
    let faulty = verified.filter(|verified| !verified.is_valid);
    let item = faulty.map(|verified| AttentionItem {
        id: "verification_failed".to_owned(),
        kind: "verification_failed",
        since: Some(verified.at),
        what: Say::LogNotValid {
            size: verified.size.to_string(),
        }
        .text(language),
        user_id: None,
        agent: None,
        tool: None,
        settle: Say::VerifyNames.text(language),
        page: "/evidence".to_owned(),
    });
    item.into_iter().collect()
}

/// Returns the upstreams that list tools which are not as they were approved, and those that do not answer.
fn of_upstreams(status: &Status, language: Language) -> Vec<AttentionItem> {
    let server = status.server.iter();
    let upstreams = server.flat_map(|server| &server.upstreams);
    let items = upstreams.filter_map(|one| {
        let upstream = one.name.clone();
        let (kind, since, what, settle) = match one.health {
            UpstreamHealth::Unknown | UpstreamHealth::Up => return None,
            UpstreamHealth::Changed => (
                "definitions_changed",
                one.asked_at,
                Say::ToolsChanged {
                    upstream: upstream.clone(),
                },
                Say::ApproveTools { upstream },
            ),
            UpstreamHealth::Away => (
                "upstream_away",
                None,
                Say::UpstreamAway { upstream },
                Say::ListUpstreams,
            ),
        };
        Some(AttentionItem {
            id: format!("{kind}:{}", one.name),
            kind,
            since,
            what: what.text(language),
            user_id: None,
            agent: None,
            tool: None,
            settle: settle.text(language),
            page: "/upstreams".to_owned(),
        })
    });
    items.collect()
}

/// Returns the problems of the status, without those that pass by themselves or are listed one by one. For an operator the
/// budgets are, too.
fn of_problems(status: &Status, view: View) -> Vec<AttentionItem> {
    let passes = ["calls_in_doubt", "limit_used_up", "stopping"];
    let is_for_a_person = |problem: &&Problem| match view {
        View::Operator if problem.code == "budget_used_up" => false,
        View::Own | View::Operator => !passes.contains(&problem.code),
    };
    let problems = status.problems.iter().filter(is_for_a_person);
    let items = problems.map(|problem| AttentionItem {
        id: problem.code.to_owned(),
        kind: problem.code,
        since: since(status, problem.code),
        what: problem.message.clone(),
        user_id: None,
        agent: None,
        tool: None,
        settle: problem.hint.clone(),
        page: page(problem.code).to_owned(),
    });
    items.collect()
}

/// Returns the time since when a problem is there, for those whose beginning is known.
fn since(status: &Status, code: &str) -> Option<Timestamp> {
    match code {
        "policy_rejected" => status.policy.rejected.as_ref().map(|rejected| rejected.at),
        _ => None,
    }
}

fn page(code: &str) -> &'static str {
    match code {
        "policy_rejected" | "policy_misfit" | "budget_used_up" | "budget_nearly_used_up" => {
            "/policy"
        }
        "config_refused" => "/settings",
        "signing_stopped" | "signing_late" => "/evidence",
        _ => "/",
    }
}

fn of_budget(pot: &LowPot, language: Language) -> AttentionItem {
    let LowPot {
        budget,
        user_id,
        agent,
    } = pot;
    let name = budget.name.clone();
    let (kind, what) = if budget.is_used_up() {
        ("budget_used_up", Say::BudgetUsedUp { name })
    } else {
        let left = budget.left.map(|left| budget.currency.shown(left));
        let left = left.unwrap_or_default();
        let limit = budget.currency.shown(budget.limit);
        let what = Say::BudgetNearlyUsedUp { name, left, limit };
        ("budget_nearly_used_up", what)
    };
    let settle = match budget.resets_at {
        Some(at) => Say::FullAgain { at: at.to_string() },
        None => Say::RaiseBudget,
    };
    let owner = user_id.as_deref().or(agent.as_deref()).unwrap_or_default();
    let agent = agent.as_deref();
    AttentionItem {
        id: format!("{kind}:{}:{owner}", budget.name),
        kind,
        since: None,
        what: what.text(language),
        user_id: user_id.clone(),
        agent: agent.map(|agent| agent.strip_prefix("agent:").unwrap_or(agent).to_owned()),
        tool: None,
        settle: settle.text(language),
        page: page(kind).to_owned(),
    }
}

fn of_failed(failed: &FailedDeliveries, language: Language) -> AttentionItem {
    let FailedDeliveries {
        target,
        count,
        since,
    } = failed;
    AttentionItem {
        id: format!("notification_failed:{target}"),
        kind: "notification_failed",
        since: Some(*since),
        what: Say::DeliveriesGivenUp {
            target: target.clone(),
            count: count.to_string(),
        }
        .text(language),
        user_id: None,
        agent: None,
        tool: None,
        settle: Say::RetryTarget {
            target: target.clone(),
        }
        .text(language),
        page: "/notifications".to_owned(),
    }
}

fn of_doubt(row: &ClaimRow, language: Language) -> AttentionItem {
    let (user_id, tool) = (&row.scope.user_id, &row.scope.tool);
    let key = row.scope.key.to_string();
    let short = key.get(..16).unwrap_or(&key);
    AttentionItem {
        id: format!("doubt:{user_id}:{tool}:{key}"),
        kind: "call_in_doubt",
        since: Some(row.claimed_at),
        what: Say::EffectInDoubt {
            tool: tool.to_string(),
        }
        .text(language),
        user_id: Some(user_id.clone()),
        agent: None,
        tool: Some(tool.clone()),
        settle: Say::ResolveClaim {
            user: user_id.clone(),
            tool: tool.to_string(),
            key: short.to_owned(),
        }
        .text(language),
        page: "/in-doubt".to_owned(),
    }
}

fn of_question(approval: &Approval, language: Language) -> AttentionItem {
    let id = &approval.id;
    let name = approval.title.as_deref().unwrap_or(approval.tool.as_str());
    let what = match &approval.question {
        Some(question) => question.title.clone(),
        None => Say::WaitsForApproval {
            name: name.to_owned(),
        }
        .text(language),
    };
    AttentionItem {
        id: id.clone(),
        kind: "question",
        since: approval.asked_at.parse().ok(),
        what,
        user_id: Some(approval.user_id.clone()),
        agent: None,
        tool: Some(approval.tool.clone()),
        settle: Say::AnswerQuestion { id: id.clone() }.text(language),
        page: format!("/approvals/{id}"),
    }
}
