//! `GET /v1/status`: what there is and what is wrong, for those whom it concerns.
//!
//! An ordinary caller sees what is about them: who they are, what they may call, what is left of their limits and budgets,
//! and what keeps their calls from working. An operator sees everything, and may ask for a user. Nobody sees another
//! user's figures otherwise.
//!
//! What the store has to be asked for the whole server is asked at most once a second, and what is
//! asked for one caller is bounded by the policy: one look for each budget and each limit.

use countersign::Principal;
use countersign::contract::{Actor, Digest};
use jiff::Timestamp;
use serde::Serialize;

use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::metrics::Stored;

mod allowance;
mod problem;

pub use allowance::{BudgetStatus, LimitStatus};
pub use problem::Problem;

/// What there is.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// What is wrong, the gravest first; empty where nothing is.
    pub problems: Vec<Problem>,
    /// The program.
    pub program: ProgramStatus,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// Who asks, and what they may.
    pub caller: CallerStatus,
    /// What is left of limits on calls.
    pub limits: Vec<LimitStatus>,
    /// What is left of budgets.
    pub budgets: Vec<BudgetStatus>,
    /// The signed log.
    pub signing: SigningStatus,
    /// The rest, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerStatus>,
}

/// The program.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramStatus {
    /// Its version.
    pub version: &'static str,
    /// SHA-256 of the executable, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Digest>,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// For how long.
    pub up_seconds: i64,
}

/// The policy in force.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyStatus {
    /// Its name in records.
    pub revision: String,
    /// SHA-256 of its file; none where there is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Since when it is in force in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// False if the file on disk is another one, which was not accepted; none where there is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_file_in_force: Option<bool>,
    /// The last file that was not accepted, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectedPolicy>,
}

/// A policy file that was not accepted.
#[derive(Debug, Clone, Serialize)]
pub struct RejectedPolicy {
    /// When it was looked at.
    pub at: Timestamp,
    /// Where it is wrong; 0 where it is about the whole file.
    pub line: usize,
    /// In characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How many were not accepted since the process began.
    pub count: u64,
}

/// Who asks, and what they may.
#[derive(Debug, Clone, Serialize)]
pub struct CallerStatus {
    /// Who it is.
    pub actor: Actor,
    /// On whose behalf, or about whom an operator asks.
    pub user_id: String,
    /// What the credential grants.
    pub scopes: Vec<String>,
    /// The effects that its calls may have.
    pub effects: countersign::Effects,
    /// How many tools they may call.
    pub tools: usize,
    /// True if requests need a credential.
    pub credentials_required: bool,
}

/// The signed log.
#[derive(Debug, Clone, Serialize)]
pub struct SigningStatus {
    /// False if nothing is signed any more, and somebody has to look.
    pub is_running: bool,
    /// Records under the newest checkpoint; none where the store does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_size: Option<u64>,
    /// Since when this process knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_age_seconds: Option<u64>,
    /// Records that are committed and not signed yet, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsigned_records: Option<u64>,
}

/// What only operators see.
#[derive(Debug, Clone, Serialize)]
pub struct ServerStatus {
    /// The store; none where it does not answer.
    pub store: Option<StoreStatus>,
    /// API keys; none where the store does not answer.
    pub keys: Option<KeysStatus>,
    /// All tools.
    pub tools: usize,
    /// Calls that run.
    pub calls_running: usize,
    /// Calls of which nobody knows whether their effect happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_in_doubt: Option<u64>,
    /// Questions that users have not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_open: Option<usize>,
    /// Servers behind this one.
    pub upstreams: Vec<serde_json::Value>,
}

/// The store.
#[derive(Debug, Clone, Serialize)]
pub struct StoreStatus {
    /// memory, sqlite or postgres.
    pub kind: &'static str,
    /// True if it takes writes.
    pub is_writable: bool,
    /// What it takes on its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What its disk has left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Records, signed or not.
    pub records: u64,
    /// The newest record: the last commit that worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_commit: Option<Timestamp>,
}

/// API keys.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct KeysStatus {
    /// Those that are accepted.
    pub active: usize,
    /// Those that were revoked or are over, and are still listed.
    pub ended: usize,
}

/// Who sees what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// What is about the caller.
    Own,
    /// Everything.
    Operator,
}

impl Gateway {
    /// What there is, for this caller, about the limits and budgets of this user.
    pub async fn status(&self, caller: &Caller, user_id: &str, view: View) -> Status {
        let stored = self.stored().await;
        let principal = &*caller.principal;
        let policy = self.identity().policy();
        let is_for_operator = view == View::Operator;
        let (limits, mut budgets) = self.allowances(principal, user_id).await;
        if !is_for_operator {
            // What is left for everybody is nobody's business.
            for budget in budgets.iter_mut().filter(|budget| budget.scope == "global") {
                budget.left = None;
            }
        }
        let now = self.executor().now();
        let started_at = self.started_at();
        let mut status = Status {
            problems: Vec::new(),
            program: ProgramStatus {
                version: env!("CARGO_PKG_VERSION"),
                build: if is_for_operator {
                    self.build().await
                } else {
                    None
                },
                started_at,
                up_seconds: now.duration_since(started_at).as_secs().max(0),
            },
            policy: policy_status(policy, view),
            caller: self.caller_status(principal, user_id).await,
            limits,
            budgets,
            signing: signing_status(self, stored, view),
            server: match view {
                View::Own => None,
                View::Operator => Some(self.server_status(stored).await),
            },
        };
        status.problems = problem::found(self, stored, &status, view);
        status
    }

    async fn caller_status(&self, principal: &Principal, user_id: &str) -> CallerStatus {
        let tools = self.executor().list(principal).await;
        CallerStatus {
            actor: principal.actor.clone(),
            user_id: user_id.to_owned(),
            scopes: principal.scopes.clone(),
            effects: principal.effects,
            tools: tools.map_or(0, |tools| tools.len()),
            credentials_required: self.identity().without_credential().await.is_none(),
        }
    }

    async fn server_status(&self, stored: Option<Stored>) -> ServerStatus {
        let store = match stored {
            None => None,
            Some(stored) => Some(StoreStatus {
                kind: stored.vitals.kind.as_str(),
                is_writable: stored.vitals.is_writable,
                bytes: self.stored_bytes().await,
                free_bytes: stored.vitals.free_bytes,
                records: stored.records(),
                last_commit: stored.vitals.newest_record,
            }),
        };
        let keys = match self.identity().keys() {
            Some(keys) => keys.counts().await.ok(),
            None => None,
        };
        ServerStatus {
            store,
            keys: keys.map(|(active, ended)| KeysStatus { active, ended }),
            tools: self.executor().catalog().list().len(),
            calls_running: self.calls_running(),
            calls_in_doubt: stored.map(|stored| stored.vitals.in_doubt),
            approvals_open: stored.and_then(|stored| stored.approvals_pending),
            upstreams: Vec::new(),
        }
    }

    /// The digest of the executable. Computing it reads the whole file, once.
    async fn build(&self) -> Option<Digest> {
        let build = self.executor().program()?.clone();
        let digest = tokio::task::spawn_blocking(move || build.digest());
        digest.await.ok().flatten()
    }
}

fn policy_status(policy: &crate::policy::LivePolicy, view: View) -> PolicyStatus {
    let current = policy.current();
    let rejected = policy.rejected().filter(|_| view == View::Operator);
    PolicyStatus {
        revision: current.revision().to_string(),
        digest: current.digest(),
        since: policy.since(),
        is_file_in_force: policy.is_file_in_force(),
        rejected: rejected.map(|rejection| RejectedPolicy {
            at: rejection.at,
            line: rejection.error.line,
            column: rejection.error.column,
            message: rejection.error.message.clone(),
            count: policy.rejections(),
        }),
    }
}

fn signing_status(gateway: &Gateway, stored: Option<Stored>, view: View) -> SigningStatus {
    SigningStatus {
        is_running: !gateway.health().is_log_stopped(),
        checkpoint_size: stored.map(|stored| stored.checkpoint_size),
        checkpoint_age_seconds: stored.map(|stored| stored.checkpoint_age.as_secs()),
        unsigned_records: stored
            .filter(|_| view == View::Operator)
            .map(Stored::unsigned),
    }
}
