//! The life of a call. [`Executor::execute`] names the steps in their order and cannot fail: every
//! refusal and every failure is a reply envelope, and every call leaves a record.
//!
//! One file a step. Each consumes one type and returns the next, so that a step that is skipped does
//! not compile:
//!
//! | step | takes | gives | may answer |
//! |---|---|---|---|
//! | `resolve` | [`ToolCall`] | `Resolved` | `NOT_FOUND`, `INVALID_ARGUMENT` |
//! | `authorize` | `Resolved` | `Allowed` | `UNAUTHORIZED`, `FORBIDDEN` |
//! | `admit` | `Allowed` | `Admitted` | `RATE_LIMITED` |
//! | `bind` | `Admitted` | `Bound` | `INVALID_ARGUMENT`, `CONFLICT`, `RATE_LIMITED`, an earlier answer |
//! | `confirm` | `Bound` | `Confirmed` | `NEEDS_USER_CONFIRMATION`, `FORBIDDEN`; the tool's refusal, if a dry run predicts it |
//! | `claim` | `Confirmed` | `Claimed` | `CONFLICT`, `RATE_LIMITED`, `FORBIDDEN`, an earlier answer |
//! | `run` | `Claimed` | `Done` | any code |
//! | `record` | `Done` | `Recorded` | |
//! | `settle` | `Recorded` | the reply | `CONFLICT`, `UPSTREAM_ERROR` |
//!
//! Nothing before `claim` touches the key of a call, so a corrected or confirmed call may use it. The last three steps
//! are repeated if a document changed after the tool had read it.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use countersign_contract::{ErrorBody, ErrorCode, FaultSource, ReplyEnvelope};
use countersign_evidence::seal::Kms;
use tracing::Instrument;

use crate::BoxFuture;
use crate::approve::{self, Approver, StoredApprovals};
use crate::authorize::{AllowAll, Authorizer};
use crate::budget::Budgets;
use crate::catalog::{Catalog, Entry};
use crate::clock::{Clock, SystemClock};
use crate::grant::{Language, StoredGrants};
use crate::ids::{IdSource, RandomIds};
use crate::ledger::{self, MemoryStore, Store};
use crate::limit::{Breaker, Limiter, Unlimited};
use crate::newest::{NewestCheckpoint, SIGNING_GRACE};
use crate::observe::Observer;
use crate::principal::Principal;
use crate::recording::Player;
use crate::redact::error_text;
use crate::retention::RetentionPlan;
use crate::rules::Rules;
use crate::scribe::Build;
use crate::vault::Vault;
use crate::words::Say;

mod admit;
mod authorize;
mod bind;
mod call;
mod claim;
mod confirm;
mod draft;
mod envelope;
mod grant;
mod intent;
mod joins;
mod play;
mod print;
pub(crate) mod queue;
mod reading;
mod reconcile;
mod record;
mod refusals;
mod resolve;
mod reuse;
mod run;
mod settle;
mod simulate;
mod spend;
mod stop;
mod tell;
mod trail;
mod unkeyed;

pub use bind::refusal_of;
pub(crate) use bind::{bind_again, canonical_text, has_long_decimal};
use call::CallParts;
pub use call::ToolCall;
pub(crate) use envelope::is_name;
use joins::Joins;
pub(crate) use print::StoredReply;
use queue::Queue;
pub use reading::Reader;
use refusals::Refusals;
pub(crate) use resolve::without_declaration;
use reuse::Recent;
pub(crate) use run::{guarded, is_validated_only};
use settle::Settled;
use stop::Stop;
use trail::Trail;

/// Runs calls. Clones share everything.
///
/// # Example
///
/// ```
/// use countersign::sample::MemorySearch;
/// use countersign::{Catalog, Executor, Principal, ToolCall};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let catalog = Catalog::builder().tool(MemorySearch::new(["buy milk"])).build()?;
/// let executor = Executor::new(catalog);
/// let call = ToolCall::new("memory.search", r#"{"query": "milk"}"#, Principal::user("u_1"));
/// let reply = executor.execute(call).await;
/// assert!(reply.ok);
/// # Ok::<(), countersign::catalog::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Executor {
    parts: Arc<Parts>,
}

struct Parts {
    catalog: Catalog,
    store: Arc<dyn Store>,
    authorizer: Arc<dyn Authorizer>,
    limiter: Arc<dyn Limiter>,
    breaker: Arc<Breaker>,
    budgets: Arc<Budgets>,
    approver: Arc<dyn Approver>,
    approvals: Arc<StoredApprovals>,
    grants: Arc<StoredGrants>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    vault: Arc<Vault>,
    rules: Rules,
    retention: RetentionPlan,
    build: Option<Build>,
    newest: NewestCheckpoint,
    signing_grace: Duration,
    joins: Joins,
    recent: Recent,
    queue: Queue,
    refusals: Refusals,
    observer: Option<Arc<dyn Observer>>,
    player: Option<Arc<Player>>,
}

impl Executor {
    /// An executor with everything in memory, no limit, and a policy that allows everything.
    pub fn new(catalog: Catalog) -> Self {
        Self::builder(catalog).build()
    }

    /// A builder; parts that are not given are as in [`new`](Executor::new).
    pub fn builder(catalog: Catalog) -> ExecutorBuilder {
        ExecutorBuilder {
            catalog,
            store: None,
            authorizer: None,
            limiter: None,
            breaker: None,
            budgets: None,
            approver: None,
            approval_limits: approve::Limits::default(),
            grant_language: None,
            clock: None,
            ids: None,
            kms: None,
            vault: None,
            rules: Rules::default(),
            retention: RetentionPlan::default(),
            build: None,
            newest: NewestCheckpoint::new(),
            signing_grace: SIGNING_GRACE,
            observer: None,
            player: None,
        }
    }

    /// Runs one call. Never fails: every error is in the reply.
    ///
    /// Dropping the future abandons the call. A claim that it held stays taken until its lease is
    /// over, so a server that must survive a caller who hangs up spawns this.
    pub async fn execute(&self, call: ToolCall) -> ReplyEnvelope {
        let mut call = call.parts;
        let mut trail = self.arrive(&mut call);
        let span = trail.span();
        async {
            match self.steps(call, &mut trail).await {
                Ok(Settled::Committed(reply)) => self.answer_as(*reply, &trail),
                Ok(Settled::RecordOnly(recorded)) => self.finish(*recorded, trail).await,
                Err(stop) => self.stop(stop, trail).await,
            }
        }
        .instrument(span)
        .await
    }

    async fn steps(&self, call: Box<CallParts>, trail: &mut Trail) -> Result<Settled, Stop> {
        let resolved = self.resolve(call, trail)?;
        let allowed = self.authorize(resolved, trail).await?;
        self.check_signing()?;
        let admitted = self.admit(allowed, trail).await?;
        let bound = self.bind(admitted, trail).await?;
        if let Some(player) = &self.parts.player {
            return self.play(player, bound, trail);
        }
        let confirmed = self.confirm(bound, trail).await?;
        let mut claimed = self.claim(confirmed, trail).await?;
        self.use_approval(&mut claimed, trail).await?;
        loop {
            let done = self.run(&mut claimed, trail).await;
            let recorded = self.record(done, &claimed, trail);
            if let Some(settled) = self.settle(recorded, &mut claimed, trail).await? {
                return Ok(settled);
            }
        }
    }

    /// Refuses calls if records could not be signed for too long: an unsigned record proves nothing.
    fn check_signing(&self) -> Result<(), Stop> {
        match self.unsigned_for() {
            Some(unsigned) if unsigned > self.parts.signing_grace => {
                let body = ErrorBody::new(ErrorCode::UpstreamError, Say::LogUnsigned)
                    .source(FaultSource::Gateway)
                    .hint(Say::LogUnsignedHint);
                Err(body.into())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Time for which nothing could be signed; `None` if this process does not sign.
    pub fn unsigned_for(&self) -> Option<Duration> {
        self.parts.newest.unsigned_for(self.parts.clock.monotonic())
    }

    /// True if the last attempt to sign the log failed. Calls are answered until it has failed for too long.
    pub fn is_signing_failing(&self) -> bool {
        self.parts.newest.is_failing()
    }

    /// True if calls are refused because nothing could be signed for too long, or signing has stopped for good.
    pub fn is_unsigned(&self) -> bool {
        let unsigned = self.unsigned_for();
        self.parts.newest.is_stopped()
            || unsigned.is_some_and(|unsigned| unsigned > self.parts.signing_grace)
    }

    /// The tools that a principal may call, by the same decision that a call gets.
    pub async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Entry>>, ErrorBody> {
        let mut allowed = Vec::new();
        for entry in self.parts.catalog.list() {
            let decision = self.decide(principal, &entry).await?;
            if decision.is_allowed() && !self.is_ruled_out(&decision, principal, &entry) {
                allowed.push(entry);
            }
        }
        Ok(allowed)
    }

    /// All tools, allowed or not.
    pub fn catalog(&self) -> &Catalog {
        &self.parts.catalog
    }

    /// The stored approvals: questions that users have to answer. If another approver was given, that one is asked, and
    /// these are empty.
    pub fn approvals(&self) -> &Arc<StoredApprovals> {
        &self.parts.approvals
    }

    /// The standing grants of users.
    pub fn grants(&self) -> &Arc<StoredGrants> {
        &self.parts.grants
    }

    /// The current time, by the executor's clock.
    pub fn now(&self) -> jiff::Timestamp {
        self.parts.clock.now()
    }

    /// The store of claims, documents and records.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.parts.store
    }

    /// The executor's clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// The running program, if records name it.
    pub fn program(&self) -> Option<&Build> {
        self.parts.build.as_ref()
    }

    /// The player, if a recording answers in the place of the tools.
    pub fn player(&self) -> Option<&Arc<Player>> {
        self.parts.player.as_ref()
    }

    /// The rule sets that tools may use.
    pub fn rules(&self) -> &Rules {
        &self.parts.rules
    }

    /// The cache of users' keys of this executor: code that erases a user in the same process must make it forget that
    /// user's key.
    pub fn vault(&self) -> &Arc<Vault> {
        &self.parts.vault
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("catalog", &self.parts.catalog)
            .finish_non_exhaustive()
    }
}

/// For callers that put layers around the executor. Always ready; never fails.
impl tower_service::Service<ToolCall> for Executor {
    type Response = ReplyEnvelope;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<ReplyEnvelope, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let executor = self.clone();
        Box::pin(async move { Ok(executor.execute(call).await) })
    }
}

/// Builder for an [`Executor`].
pub struct ExecutorBuilder {
    catalog: Catalog,
    store: Option<Arc<dyn Store>>,
    authorizer: Option<Arc<dyn Authorizer>>,
    limiter: Option<Arc<dyn Limiter>>,
    breaker: Option<Arc<Breaker>>,
    budgets: Option<Arc<Budgets>>,
    approver: Option<Arc<dyn Approver>>,
    approval_limits: approve::Limits,
    grant_language: Option<Arc<dyn Language>>,
    clock: Option<Arc<dyn Clock>>,
    ids: Option<Arc<dyn IdSource>>,
    kms: Option<Arc<dyn Kms>>,
    vault: Option<Arc<Vault>>,
    rules: Rules,
    retention: RetentionPlan,
    build: Option<Build>,
    newest: NewestCheckpoint,
    signing_grace: Duration,
    observer: Option<Arc<dyn Observer>>,
    player: Option<Arc<Player>>,
}

impl ExecutorBuilder {
    /// Sets the store of claims, documents and records.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the policy.
    pub fn authorizer(mut self, authorizer: Arc<dyn Authorizer>) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// Sets the rate limits.
    pub fn limiter(mut self, limiter: Arc<dyn Limiter>) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Sets the breaker, which stops a model that repeats itself; without one nothing does.
    pub fn breaker(mut self, breaker: Arc<Breaker>) -> Self {
        self.breaker = Some(breaker);
        self
    }

    /// Sets the budgets; without them no spending is counted.
    pub fn budgets(mut self, budgets: Arc<Budgets>) -> Self {
        self.budgets = Some(budgets);
        self
    }

    /// Sets the approver, which asks the user; without one, questions are kept in the store.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets the bounds of the questions that are kept in the store.
    pub fn approval_limits(mut self, limits: approve::Limits) -> Self {
        self.approval_limits = limits;
        self
    }

    /// Sets the language of the conditions of standing grants; without one, no grant has a condition.
    pub fn grant_language(mut self, language: Arc<dyn Language>) -> Self {
        self.grant_language = Some(language);
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the source of ids.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Sets the KMS, which wraps the users' keys. Without one, sealed data is readable only as long as the process
    /// lives.
    pub fn kms(mut self, kms: Arc<dyn Kms>) -> Self {
        self.kms = Some(kms);
        self
    }

    /// Sets the vault of users' keys, which other parts may share. It takes precedence over [`kms`](Self::kms), and has
    /// to be of the same store.
    pub fn vault(mut self, vault: Arc<Vault>) -> Self {
        self.vault = Some(vault);
        self
    }

    /// Sets the rule sets that tools may use.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the retention of payloads.
    pub fn retention(mut self, retention: RetentionPlan) -> Self {
        self.retention = retention;
        self
    }

    /// Sets the digest of the running program, for records (A15).
    pub fn build_digest(mut self, build: impl Into<Build>) -> Self {
        self.build = Some(build.into());
        self
    }

    /// Sets the shared cell with the newest checkpoint.
    pub fn newest_checkpoint(mut self, newest: NewestCheckpoint) -> Self {
        self.newest = newest;
        self
    }

    /// Sets the time for which calls are answered while nothing can be signed; [`SIGNING_GRACE`] by default.
    pub fn signing_grace(mut self, grace: Duration) -> Self {
        self.signing_grace = grace;
        self
    }

    /// Sets the observer, which is notified of every call; several are given as a `Vec`.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Answers every call from a recording: no person is asked, no key is claimed and no tool runs.
    pub fn player(mut self, player: Arc<Player>) -> Self {
        self.player = Some(player);
        self
    }

    /// Builds the executor.
    pub fn build(self) -> Executor {
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let ids = self
            .ids
            .unwrap_or_else(|| Arc::new(RandomIds::new(clock.clone())));
        let store = self
            .store
            .unwrap_or_else(|| Arc::new(MemoryStore::with_clock(clock.clone())));
        let vault = self.vault.unwrap_or_else(|| {
            let kms = self.kms.unwrap_or_else(|| Vault::ephemeral_master(&*ids));
            Arc::new(Vault::new(store.clone(), kms, clock.clone(), ids.clone()))
        });
        let approvals =
            StoredApprovals::new(store.clone(), vault.clone(), clock.clone(), ids.clone());
        let approvals = approvals
            .limits(self.approval_limits)
            .catalog(self.catalog.clone());
        let approvals = Arc::new(approvals.retention(self.retention));
        let grants = StoredGrants::new(store.clone(), vault.clone(), clock.clone(), ids.clone())
            .catalog(self.catalog.clone())
            .retention(self.retention);
        let grants = Arc::new(match self.grant_language {
            Some(language) => grants.language(language),
            None => grants,
        });
        let parts = Parts {
            catalog: self.catalog,
            store,
            authorizer: self.authorizer.unwrap_or_else(|| Arc::new(AllowAll::new())),
            limiter: self.limiter.unwrap_or_else(|| Arc::new(Unlimited)),
            breaker: self.breaker.unwrap_or_default(),
            budgets: self.budgets.unwrap_or_default(),
            approver: self.approver.unwrap_or_else(|| approvals.clone()),
            approvals,
            grants,
            clock,
            ids,
            vault,
            rules: self.rules,
            retention: self.retention,
            build: self.build,
            newest: self.newest,
            signing_grace: self.signing_grace,
            joins: Joins::default(),
            recent: Recent::default(),
            queue: Queue::default(),
            refusals: Refusals::default(),
            observer: self.observer,
            player: self.player,
        };
        Executor {
            parts: Arc::new(parts),
        }
    }
}

/// The error for a failed part behind the executor. The caller gets no details; the log gets the cause.
fn gateway_fault(error: &(dyn std::error::Error + 'static)) -> ErrorBody {
    let error = error_text(error);
    tracing::error!(
        error,
        "the store or another part behind the executor failed, so the call was not completed"
    );
    ErrorBody::new(ErrorCode::UpstreamError, Say::GatewayFailed)
        .source(FaultSource::Gateway)
        .hint(Say::SameLaterWithKey)
}

/// The error for a failed store. If the store's reason helps the caller, the caller gets it.
fn store_fault(error: &ledger::Error) -> ErrorBody {
    let body = gateway_fault(error);
    match error {
        ledger::Error::DiskLow { .. } | ledger::Error::Full { .. } => ErrorBody {
            message: Say::NoRoom.into(),
            ..body
        },
        ledger::Error::Unavailable(_)
        | ledger::Error::Damaged { .. }
        | ledger::Error::UnderHold { .. }
        | ledger::Error::Forked { .. } => body,
    }
}
