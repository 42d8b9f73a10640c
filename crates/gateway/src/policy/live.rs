//! The policy in force: read from its file, and reloaded when the file changes.
//!
//! A new policy counts from the moment at which its record is durable; calls that have been decided go on. A
//! file that is not accepted changes nothing, is logged once, and is reported by [`LivePolicy::fault`]. A file
//! that is just being written is not read until it stays the same for a moment.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use countersign::authorize::{Authorizer, Decision};
use countersign::contract::{Digest, ToolSpec};
use countersign::ledger;
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Catalog, Principal};
use jiff::Timestamp;
use serde_json::json;

use super::fitted::{Fitted, Misfit, Unfit};
use super::{FILE_BYTES_MAX, Policy, PolicyError};
use crate::limits::Controls;
use crate::recorder::Recorder;
use crate::regular_file;

/// Poll interval of the file.
const POLL: Duration = Duration::from_secs(2);

/// Time for which a changed file has to stay the same.
const SETTLE: Duration = Duration::from_millis(50);

/// The policy in force. It decides like the policy that it holds.
#[derive(Debug)]
pub struct LivePolicy {
    /// `None` if the policy has no file of its own.
    path: ArcSwapOption<PathBuf>,
    current: ArcSwap<Policy>,
    /// The limits of the policy in force.
    controls: Controls,
    fault: ArcSwapOption<PolicyError>,
    /// The last file that was not accepted, kept after a later one was.
    rejected: ArcSwapOption<Rejection>,
    /// Number of files that were not accepted.
    rejections: AtomicU64,
    /// Time since when the policy is in force; `None` before it was announced.
    since: ArcSwapOption<Timestamp>,
    /// Digest of the last file that was read, accepted or not.
    seen: Mutex<Option<Digest>>,
    /// True if this policy or an earlier one named an issuer.
    has_had_issuers: AtomicBool,
    keeper: OnceLock<Keeper>,
    /// The tools that conditions of rules are checked against; not set if they were not given.
    catalog: OnceLock<Catalog>,
    /// The policy and the tools, as they were compared last.
    fitted: ArcSwap<Fitted>,
    /// Held while they are compared.
    fitting: Mutex<()>,
    /// Held while a change of the policy is decided, so that two changes do not cross.
    changing: tokio::sync::Mutex<()>,
}

/// A file that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Time of the check.
    pub at: Timestamp,
    /// Mistake in the file.
    pub error: PolicyError,
}

/// Stores the text of a policy by its digest, durably, and finds it again.
#[derive(Clone)]
#[expect(clippy::type_complexity, reason = "it is named here, and nowhere else")]
pub struct Keeper {
    keep: Arc<dyn Fn(Digest, &str) -> std::io::Result<()> + Send + Sync>,
    find: Option<Arc<dyn Fn(&str) -> Option<Policy> + Send + Sync>>,
}

impl Keeper {
    /// Stores with this function, which must not return before the text is durable.
    pub fn new(keep: impl Fn(Digest, &str) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        Self {
            keep: Arc::new(keep),
            find: None,
        }
    }

    /// Finds a stored policy by its name in records with this function.
    #[must_use]
    pub fn finding(self, find: impl Fn(&str) -> Option<Policy> + Send + Sync + 'static) -> Self {
        Self {
            find: Some(Arc::new(find)),
            ..self
        }
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keeper(..)")
    }
}

/// Result of a reload.
#[derive(Debug)]
pub enum Reloaded {
    /// The file is the one that was read last.
    Unchanged,
    /// The file is being written, and is read again the next time.
    Changing,
    /// The file is in force.
    Accepted(Arc<Policy>),
    /// The file is not accepted, and the previous policy stays in force.
    Refused(PolicyError),
}

impl LivePolicy {
    /// Creates a policy without a file.
    pub fn fixed(policy: Policy) -> Self {
        Self {
            path: ArcSwapOption::empty(),
            seen: Mutex::new(policy.digest()),
            has_had_issuers: AtomicBool::new(!policy.file().issuers.is_empty()),
            controls: Controls::new(policy.file()),
            current: ArcSwap::from_pointee(policy),
            fault: ArcSwapOption::empty(),
            rejected: ArcSwapOption::empty(),
            rejections: AtomicU64::new(0),
            since: ArcSwapOption::empty(),
            keeper: OnceLock::new(),
            catalog: OnceLock::new(),
            fitted: ArcSwap::default(),
            fitting: Mutex::new(()),
            changing: tokio::sync::Mutex::new(()),
        }
    }

    /// Stores the text of the policy in force, and from now on that of every new policy before it is in force:
    /// records name it by its digest.
    pub fn keep_with(&self, keeper: Keeper) -> std::io::Result<()> {
        self.keeper.get_or_init(|| keeper);
        self.keep_text(&self.current())
    }

    /// Checks the conditions of the rules against these tools, and those of every later policy against the tools that
    /// there are then.
    pub fn check_against(&self, catalog: &Catalog) -> Result<(), PolicyError> {
        let catalog = self.catalog.get_or_init(|| catalog.clone());
        fits(&self.current(), catalog)?;
        self.accept_tools();
        Ok(())
    }

    /// Accepts the tools that there are now, as a load of the policy does: an operator has changed them, and the policy was checked
    /// against them.
    pub fn accept_tools(&self) {
        if let Some(catalog) = self.catalog.get() {
            let _one_at_a_time = self.fitting.lock().unwrap_or_else(PoisonError::into_inner);
            let fitted = Fitted::accepting(&self.current(), catalog);
            self.fitted.store(Arc::new(fitted));
        }
    }

    /// Returns the entries that do not fit tools which have changed since the policy was accepted. Calls of these tools are
    /// refused.
    pub fn misfits(&self) -> Vec<Misfit> {
        let fitted = self.catalog.get().map(|catalog| {
            let fitted = self.compared(&self.current(), catalog);
            fitted.all(catalog)
        });
        fitted.unwrap_or_default()
    }

    /// The comparison of this policy and the tools that there are.
    fn compared(&self, policy: &Arc<Policy>, catalog: &Catalog) -> Arc<Fitted> {
        let fitted = self.fitted.load();
        if fitted.is_of(policy, catalog) {
            return fitted.clone();
        }
        let _one_at_a_time = self.fitting.lock().unwrap_or_else(PoisonError::into_inner);
        let fitted = self.fitted.load_full();
        if fitted.is_of(policy, catalog) {
            return fitted;
        }
        let next = Arc::new(fitted.after(policy, catalog));
        let known = fitted.all(catalog);
        for misfit in next.all(catalog).iter().filter(|it| !known.contains(it)) {
            tracing::warn!(
                entry = &*misfit.entry,
                tool = %misfit.tool,
                line = misfit.line,
                column = misfit.column,
                message = misfit.message,
                "the policy does not fit a tool that has changed; its calls are refused"
            );
        }
        self.fitted.store(next.clone());
        next
    }

    fn keep_text(&self, policy: &Policy) -> std::io::Result<()> {
        match (self.keeper.get(), policy.digest()) {
            (Some(keeper), Some(digest)) => (keeper.keep)(digest, policy.text()),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Opens the policy in a file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, PolicyError> {
        let path = path.into();
        let policy = read(&path)?;
        Ok(Self {
            path: ArcSwapOption::from_pointee(path),
            ..Self::fixed(policy)
        })
    }

    /// Returns the policy with this name in records: the one in force, or one that was stored. Reads a file, so it does not belong
    /// on a thread that serves others.
    pub fn of_revision(&self, revision: &str) -> Option<Arc<Policy>> {
        let current = self.current();
        if **current.revision() == *revision {
            return Some(current);
        }
        let find = self.keeper.get()?.find.as_ref()?;
        find(revision).map(Arc::new)
    }

    /// Returns the policy in force.
    pub fn current(&self) -> Arc<Policy> {
        self.current.load_full()
    }

    /// True if an issuer was named since this process began. It stays true if a later file names none: a file
    /// that lost its issuers by mistake must not open the server to everyone.
    pub fn has_had_issuers(&self) -> bool {
        self.has_had_issuers.load(Ordering::Acquire)
    }

    /// Returns the limits and budgets in force; they follow later policies.
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// Returns the reason why the newest file is not in force; `None` if it is.
    pub fn fault(&self) -> Option<Arc<PolicyError>> {
        self.fault.load_full()
    }

    /// Returns the last file that was not accepted, even if a later one was; `None` if there was none since the
    /// process began.
    pub fn rejected(&self) -> Option<Arc<Rejection>> {
        self.rejected.load_full()
    }

    /// Returns the number of files that were not accepted since the process began.
    pub fn rejections(&self) -> u64 {
        self.rejections.load(Ordering::Relaxed)
    }

    /// Returns the time since when this process uses the policy in force.
    pub fn since(&self) -> Option<Timestamp> {
        self.since.load().as_deref().copied()
    }

    /// False if the file on disk is not the one in force; `None` if there is no file.
    pub fn is_file_in_force(&self) -> Option<bool> {
        self.path.load().as_ref()?;
        Some(self.fault.load().is_none())
    }

    /// Records the policy that a server starts with.
    pub async fn announce(&self, recorder: &Recorder) -> Result<(), ledger::Error> {
        self.since.store(Some(Arc::new(recorder.now())));
        self.record(&self.current(), "policy_loaded", recorder)
            .await
    }

    /// Reads the file again.
    pub async fn reload(&self, recorder: &Recorder) -> Reloaded {
        let _one_at_a_time = self.changing.lock().await;
        let Some(path) = self.path.load_full() else {
            return Reloaded::Unchanged;
        };
        let path = &**path;
        let text = match read_off(path).await {
            Ok(text) => text,
            Err(error) => return self.refuse(error, None, recorder),
        };
        let digest = Digest::of_bytes(text.as_bytes());
        if self.current.load().digest() == Some(digest) {
            // An earlier mistake is fixed.
            self.fault.store(None);
            *self.seen() = Some(digest);
            return Reloaded::Unchanged;
        }
        if *self.seen() == Some(digest) {
            return Reloaded::Unchanged;
        }
        tokio::time::sleep(SETTLE).await;
        if read_off(path).await.as_ref() != Ok(&text) {
            return Reloaded::Changing;
        }
        let policy = parse(path, &text).and_then(|policy| match self.catalog.get() {
            Some(catalog) => fits(&policy, catalog).map(|()| policy),
            None => Ok(policy),
        });
        let policy = match policy {
            Ok(policy) => Arc::new(policy),
            Err(error) => return self.refuse(error, Some(digest), recorder),
        };
        if let Err(error) = self.put_in_force(&policy, recorder).await {
            // Not marked as seen: it is retried until the text can be stored.
            return self.refuse(error, None, recorder);
        }
        *self.seen() = Some(digest);
        Reloaded::Accepted(policy)
    }

    /// Puts another policy in force, together with its file, if it has one of its own. It counts from the
    /// moment at which its record is durable.
    pub async fn adopt(
        &self,
        policy: Policy,
        path: Option<PathBuf>,
        recorder: &Recorder,
    ) -> Result<(), PolicyError> {
        let _one_at_a_time = self.changing.lock().await;
        let policy = Arc::new(policy);
        let is_same = self.current.load().digest() == policy.digest();
        if !is_same {
            self.put_in_force(&policy, recorder).await?;
        }
        self.fault.store(None);
        *self.seen() = policy.digest();
        self.path.store(path.map(Arc::new));
        Ok(())
    }

    async fn put_in_force(
        &self,
        policy: &Arc<Policy>,
        recorder: &Recorder,
    ) -> Result<(), PolicyError> {
        let hint = "it is tried again every two seconds";
        self.keep_text(policy).map_err(|error| {
            let message = format!("the text of the new policy cannot be kept: {error}");
            PolicyError::of_file(message, hint)
        })?;
        let kept = self.record(policy, "policy_changed", recorder).await;
        kept.map_err(|error| {
            let message = format!("the record of the new policy cannot be kept: {error}");
            PolicyError::of_file(message, hint)
        })?;
        tracing::info!(policy = %policy.revision(), "a new policy is in force");
        if !policy.file().issuers.is_empty() {
            self.has_had_issuers.store(true, Ordering::Release);
        }
        self.controls.replace(policy.file());
        self.current.store(policy.clone());
        self.accept_tools();
        self.since.store(Some(Arc::new(recorder.now())));
        self.fault.store(None);
        Ok(())
    }

    /// Reads the file every two seconds and whenever the process gets SIGHUP; never returns.
    pub async fn watch(self: Arc<Self>, recorder: Recorder) {
        use tokio::signal::unix::{SignalKind, signal};

        let Ok(mut hangup) = signal(SignalKind::hangup()) else {
            tracing::error!(
                "the SIGHUP handler could not be installed; changes of the policy file are ignored until a restart"
            );
            return;
        };
        loop {
            tokio::select! {
                _ = hangup.recv() => {}
                () = tokio::time::sleep(POLL) => {}
            }
            self.reload(&recorder).await;
            // A misfit is logged also where nobody calls the tool.
            self.misfits();
        }
    }

    fn refuse(&self, error: PolicyError, digest: Option<Digest>, recorder: &Recorder) -> Reloaded {
        let known = self.fault.load();
        if known.as_deref() != Some(&error) {
            tracing::warn!(
                %error,
                policy = %self.current.load().revision(),
                "the policy file was rejected; the earlier policy stays in force"
            );
            self.rejections.fetch_add(1, Ordering::Relaxed);
            let rejection = Rejection {
                at: recorder.now(),
                error: error.clone(),
            };
            self.rejected.store(Some(Arc::new(rejection)));
            self.fault.store(Some(Arc::new(error.clone())));
        }
        if digest.is_some() {
            *self.seen() = digest;
        }
        Reloaded::Refused(error)
    }

    async fn record(
        &self,
        policy: &Policy,
        event: &str,
        recorder: &Recorder,
    ) -> Result<(), ledger::Error> {
        let about = json!({
            "event": event,
            "revision": &**policy.revision(),
            "digest": policy.digest().map(|digest| digest.to_string()),
        });
        recorder.append(about).await
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Option<Digest>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authorizer for LivePolicy {
    fn decide<'a>(
        &'a self,
        principal: &'a Principal,
        tool: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let policy = self.current.load();
        let mut decision = policy.decision(principal, tool);
        let misfits = self.catalog.get().and_then(|catalog| {
            let fitted = self.compared(&policy, catalog);
            fitted.of_tool(&tool.name)
        });
        if let Some(misfits) = misfits {
            let rules = decision.conditions.take();
            decision.conditions = Some(Arc::new(Unfit::new(rules, misfits)));
        }
        Box::pin(std::future::ready(Ok(decision)))
    }
}

/// Checks a policy against the tools of a catalog.
fn fits(policy: &Policy, catalog: &Catalog) -> Result<(), PolicyError> {
    let entries = catalog.list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    policy.fits(&specs)
}

/// Reads a policy file; paths in it are relative to its folder.
pub(super) fn read(path: &Path) -> Result<Policy, PolicyError> {
    parse(path, &read_text(path)?)
}

fn parse(path: &Path, text: &str) -> Result<Policy, PolicyError> {
    let mut policy = Policy::parse(text)?;
    if let Some(folder) = path.parent() {
        policy.files_are_in(folder);
    }
    Ok(policy)
}

/// Reads the text of a file on a thread that may block.
async fn read_off(path: &Path) -> Result<String, PolicyError> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || read_text(&path)).await;
    read.unwrap_or_else(|error| {
        let message = format!("the policy cannot be read: {error}");
        Err(PolicyError::of_file(message, "it is tried again"))
    })
}

fn read_text(path: &Path) -> Result<String, PolicyError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        let message = format!("{} cannot be read: {error}", path.display());
        PolicyError::of_file(message, "name a file that this account may read")
    };
    let file = regular_file::open(path).map_err(|error| unreadable(&error))?;
    let mut text = String::new();
    // One byte more than the limit, so that a longer file is told from one that just fits.
    let read = file
        .take(FILE_BYTES_MAX as u64 + 1)
        .read_to_string(&mut text);
    read.map_err(|error| unreadable(&error))?;
    Ok(text)
}
