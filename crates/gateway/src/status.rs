//! `GET /v1/status`: the state of the server and its problems, as far as they concern the caller.
//!
//! An ordinary caller sees what is about them: their identity, the tools they may call, the rest of their
//! limits and budgets, and the problems that affect their calls. An operator sees everything, and may ask about
//! a user. No other caller sees another user's figures.
//!
//! The store is queried for figures of the whole server at most once a second, and the policy bounds the
//! queries for one caller: one look for each budget and each limit.

use countersign::Principal;
use countersign::contract::{Actor, Digest, Language};
use countersign::recording::Counts;
use jiff::Timestamp;
use serde::Serialize;

use crate::caller::Caller;
use crate::config_file::ConfigStatus;
use crate::gateway::Gateway;
use crate::metrics::Stored;
use crate::witness::{Trouble, WitnessState};

mod allowance;
mod problem;
mod upstream;
mod verified;

pub use allowance::{About, BudgetStatus, LimitStatus};
pub use problem::Problem;
pub(crate) use upstream::Probes;
pub use upstream::{UpstreamError, UpstreamHealth, UpstreamStatus};
pub use verified::Verified;

/// Status of the server.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Problems, the gravest first; empty if there are none.
    pub problems: Vec<Problem>,
    /// Status of the program.
    pub program: ProgramStatus,
    /// Status of the policy in force.
    pub policy: PolicyStatus,
    /// Identity and rights of the caller.
    pub caller: CallerStatus,
    /// Rest of the limits on calls.
    pub limits: Vec<LimitStatus>,
    /// Rest of the budgets.
    pub budgets: Vec<BudgetStatus>,
    /// Status of the signed log.
    pub signing: SigningStatus,
    /// The recording that answers in the place of the tools, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingStatus>,
    /// Status of the whole server, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerStatus>,
}

/// Status of the program.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramStatus {
    /// Version.
    pub version: &'static str,
    /// SHA-256 of the executable, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Digest>,
    /// Start time.
    pub started_at: Timestamp,
    /// Uptime in seconds.
    pub up_seconds: i64,
}

/// Status of the policy in force.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyStatus {
    /// Policy name in records.
    pub revision: String,
    /// SHA-256 of its file; `None` if there is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Time since when it is in force in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// False if the file on disk is another one, which was not accepted; `None` if there is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_file_in_force: Option<bool>,
    /// The last file that was not accepted, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectedPolicy>,
}

/// A policy file that was not accepted.
#[derive(Debug, Clone, Serialize)]
pub struct RejectedPolicy {
    /// Time of the check.
    pub at: Timestamp,
    /// Line of the mistake; 0 if it is about the whole file.
    pub line: usize,
    /// Column in characters.
    pub column: usize,
    /// Description of the mistake.
    pub message: String,
    /// Number of files that were not accepted since the process began.
    pub count: u64,
}

/// Identity and rights of the caller.
#[derive(Debug, Clone, Serialize)]
pub struct CallerStatus {
    /// Actor of the credential.
    pub actor: Actor,
    /// User for whom the caller acts, or about whom an operator asks.
    pub user_id: String,
    /// Scopes that the credential grants.
    pub scopes: Vec<String>,
    /// Effects that its calls may have.
    pub effects: countersign::Effects,
    /// Number of tools that the caller may call.
    pub tools: usize,
    /// True if requests need a credential.
    pub credentials_required: bool,
    /// Number of approvals that wait and that the caller may see; an operator sees the number of the whole server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_open: Option<usize>,
}

/// Status of the signed log.
#[derive(Debug, Clone, Serialize)]
pub struct SigningStatus {
    /// False if signing has stopped and an operator has to act.
    pub is_running: bool,
    /// Number of records under the newest checkpoint; `None` if the store does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_size: Option<u64>,
    /// Time since this process has known it, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_age_seconds: Option<u64>,
    /// Number of records that are committed and not signed yet, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsigned_records: Option<u64>,
    /// The last verification of the whole log since the process began; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// Witnesses that are configured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<WitnessStatus>,
}

/// Status of a witness.
#[derive(Debug, Clone, Serialize)]
pub struct WitnessStatus {
    /// Name of the witness.
    pub name: String,
    /// Number of records under the newest checkpoint that it has cosigned since the start.
    pub size: u64,
    /// `cosigns`, `silent` or `refuses`; the last one if it has cosigned another history of the log.
    pub state: &'static str,
}

/// The recording that answers in the place of the tools.
#[derive(Debug, Clone, Serialize)]
pub struct RecordingStatus {
    /// SHA-256 of the file.
    pub digest: Digest,
    /// Use of the recording so far.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Status that only operators see.
#[derive(Debug, Clone, Serialize)]
pub struct ServerStatus {
    /// Status of the store; `None` if it does not answer.
    pub store: Option<StoreStatus>,
    /// Status of the API keys; `None` if the store does not answer.
    pub keys: Option<KeysStatus>,
    /// Number of all tools.
    pub tools: usize,
    /// Number of running calls.
    pub calls_running: usize,
    /// Number of calls whose effect is in doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_in_doubt: Option<u64>,
    /// Number of approvals that users have not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_open: Option<usize>,
    /// Upstream servers.
    pub upstreams: Vec<UpstreamStatus>,
    /// Status of the configuration file; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigStatus>,
}

/// Status of the store.
#[derive(Debug, Clone, Serialize)]
pub struct StoreStatus {
    /// Kind: memory, sqlite or postgres.
    pub kind: &'static str,
    /// True if it accepts writes.
    pub is_writable: bool,
    /// Disk space that it takes, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Free space on its disk, in bytes; unknown for PostgreSQL, whose disk is the database server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Number of records, signed or not.
    pub records: u64,
    /// Time of the newest record: the last successful commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_commit: Option<Timestamp>,
}

/// Status of the API keys.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct KeysStatus {
    /// Number of accepted keys.
    pub active: usize,
    /// Number of keys that were revoked or have expired, and are still listed.
    pub ended: usize,
}

/// Visible part of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Only the part that is about the caller.
    Own,
    /// Everything.
    Operator,
}

impl Gateway {
    /// Returns the status for this caller, with the limits and budgets of this user, and problems in a language.
    pub async fn status(
        &self,
        caller: &Caller,
        about: About<'_>,
        view: View,
        language: Language,
    ) -> Status {
        let user_id = about.user_id;
        let stored = self.stored().await;
        let principal = &*caller.principal;
        let policy = self.identity().policy();
        let is_for_operator = view == View::Operator;
        let (limits, mut budgets) = self.allowances(principal, about).await;
        if !is_for_operator {
            // The rest of a shared budget is not shown to ordinary callers.
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
            caller: self.caller_status(principal, user_id, view).await,
            limits,
            budgets,
            signing: signing_status(self, stored, view),
            recording: self.executor().player().map(|player| RecordingStatus {
                digest: player.digest(),
                counts: player.counts(),
            }),
            server: match view {
                View::Own => None,
                View::Operator => Some(self.server_status(stored).await),
            },
        };
        status.problems = problem::found(self, stored, &status, view, language);
        status
    }

    async fn caller_status(
        &self,
        principal: &Principal,
        user_id: &str,
        view: View,
    ) -> CallerStatus {
        let tools = self.executor().list(principal).await;
        let approvals = self.executor().approvals();
        let approvals_open = match view {
            View::Own => approvals.waiting_for(principal).await.ok(),
            View::Operator => None,
        };
        CallerStatus {
            actor: principal.actor.clone(),
            user_id: user_id.to_owned(),
            scopes: principal.scopes.clone(),
            effects: principal.effects,
            tools: tools.map_or(0, |tools| tools.len()),
            credentials_required: self.identity().without_credential().await.is_none(),
            approvals_open,
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
            upstreams: self.upstreams_status(),
            config: self.config_file().map(|file| file.status()),
        }
    }

    /// Returns the digest of the executable. Computing it reads the whole file, once.
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
        verified: gateway.verified().load_full().map(|one| (*one).clone()),
        witnesses: gateway
            .witnesses()
            .map(|witnesses| witnesses.states().into_iter().map(witness_status).collect())
            .unwrap_or_default(),
    }
}

fn witness_status(state: WitnessState) -> WitnessStatus {
    WitnessStatus {
        name: state.name,
        size: state.size,
        state: match state.trouble {
            None => "cosigns",
            Some(Trouble::Silent(_)) => "silent",
            Some(Trouble::Refuses(_)) => "refuses",
        },
    }
}
