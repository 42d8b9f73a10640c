//! The configuration file while a server runs: read again when it changes, checked whole, and taken as far as a running
//! server can.
//!
//! A file that is not accepted changes nothing. The log names keys, and never their values.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign::contract::Digest;
use countersign_config::sections::PolicySource;
use countersign_config::{Change, Loaded, Mistake, Mistakes};
use countersign_gateway::Gateway;
use countersign_gateway::config_file::{ConfigFile, ConfigRefusal, InForce};
use countersign_gateway::notify::Target;
use countersign_gateway::policy::{LivePolicy, Policy};
use countersign_gateway::recorder::Recorder;
use countersign_gateway::telemetry::{self, LogFilter};
use countersign_upstream::Upstreams;
use countersign_upstream::mcp::Following;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::catalog::FirstUses;
use crate::catalog::assemble::{self, Assembled};
use crate::config::Texts;
use crate::config::parts::offer_rules;
use crate::failure::Failure;
use crate::place::{Place, store_failed};
use crate::{notify, policy};

/// Poll interval of the configuration file.
const POLL: Duration = Duration::from_secs(2);

/// Time that a changed file has to stay the same before it is read. Many editors empty a file before they write it.
const SETTLE: Duration = Duration::from_millis(50);

/// Maximum number of keys that a log line names.
const NAMED_MAX: usize = 50;

/// The configuration of a running server.
pub(super) struct Reload {
    path: PathBuf,
    /// The configuration at start, whose values stay in force for settings that need a restart.
    started: Arc<Loaded>,
    /// The configuration that was accepted last.
    current: Arc<Loaded>,
    upstreams: Arc<Upstreams>,
    /// Tasks that keep the tools of MCP servers up to date.
    following: Following,
    parts: Parts,
    file: Arc<ConfigFile>,
    /// The text that was looked at last and not accepted.
    refused: Option<Digest>,
    hangup: Signal,
}

/// Parts of the server that a new configuration changes.
pub(super) struct Parts {
    pub(super) gateway: Gateway,
    pub(super) policy: Arc<LivePolicy>,
    pub(super) filter: LogFilter,
    pub(super) recorder: Recorder,
}

/// Reason for which the file is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The poll interval has passed.
    Poll,
    /// The operator has asked for it with a signal: secrets are read again, too.
    Asked,
}

/// A configuration that can be taken.
struct Next {
    loaded: Loaded,
    assembled: Assembled,
    policy: Policy,
    notify: Vec<Target>,
}

impl Reload {
    /// Records the file that a server starts with; `None` if there is no file.
    pub(super) fn begin(
        place: &Place,
        loaded: &Arc<Loaded>,
        upstreams: Arc<Upstreams>,
        parts: Parts,
    ) -> Result<Option<Self>, Failure> {
        let Some(document) = loaded.document() else {
            return Ok(None);
        };
        // A file that has changed since it was read is seen with the first look.
        let digest = match Texts::read(document.path()) {
            Ok(texts) if texts.own() == document.text() => texts.digest(),
            Ok(_) | Err(_) => Digest::of_bytes(document.text().as_bytes()),
        };
        let about = json!({"event": "config_loaded", "digest": digest.to_string()});
        let kept = place.runtime.block_on(parts.recorder.append(about));
        kept.map_err(store_failed)?;
        let path = document.path().to_owned();
        let file = Arc::new(ConfigFile::new(
            path.display().to_string(),
            digest,
            parts.recorder.now(),
            in_force(loaded, &[]),
        ));
        drop(parts.gateway.clone().with_config_file(file.clone()));
        let _inside = place.runtime.enter();
        let following = upstreams.follow(parts.gateway.executor().catalog());
        Ok(Some(Self {
            following,
            path,
            started: loaded.clone(),
            current: loaded.clone(),
            upstreams,
            parts,
            file,
            refused: None,
            hangup: signal(SignalKind::hangup())?,
        }))
    }

    /// Looks at the file every two seconds and whenever the process gets SIGHUP; for ever.
    pub(super) async fn watch(mut self) {
        loop {
            let why = tokio::select! {
                _ = self.hangup.recv() => Why::Asked,
                () = tokio::time::sleep(POLL) => Why::Poll,
            };
            self.look(why).await;
        }
    }

    async fn look(&mut self, why: Why) {
        let texts = match read(&self.path).await {
            Ok(texts) => texts,
            Err(error) => {
                let mistake = self
                    .current
                    .mistake("", format!("it cannot be read: {error}"));
                return self.refuse(None, &[mistake]);
            }
        };
        let digest = texts.digest();
        if why == Why::Poll {
            if self.file.digest() == digest {
                self.refused = None;
                return self.file.mended();
            }
            if self.refused == Some(digest) {
                return;
            }
        }
        tokio::time::sleep(SETTLE).await;
        if read(&self.path).await.ok().as_ref() != Some(&texts) {
            // It is being written, and is looked at again the next time.
            return;
        }
        let (path, current) = (self.path.clone(), self.current.clone());
        let before = (why == Why::Poll).then(|| self.upstreams.clone());
        let checked =
            tokio::task::spawn_blocking(move || check(&path, &texts, &current, before.as_deref()));
        match checked.await {
            Ok(Ok(next)) => match self.take(next, digest, why).await {
                Ok(()) => self.refused = None,
                // Not remembered: it is tried again until it can be kept.
                Err(mistakes) => self.refuse(None, &mistakes),
            },
            Ok(Err(Mistakes(mistakes))) => self.refuse(Some(digest), &mistakes),
            Err(error) => {
                let mistake = self
                    .current
                    .mistake("", format!("it cannot be read: {error}"));
                self.refuse(None, &[mistake]);
            }
        }
    }

    /// Applies the settings that a running server can change.
    async fn take(&mut self, next: Next, digest: Digest, why: Why) -> Result<(), Vec<Mistake>> {
        let Next {
            loaded,
            assembled,
            policy,
            notify,
        } = next;
        let loaded = Arc::new(loaded);
        let parts = &self.parts;
        let (old, new) = (self.current.config(), loaded.config());
        if old.policy != new.policy {
            let path = match &new.policy {
                Some(PolicySource::File(path)) => Some(path.clone()),
                Some(PolicySource::Inline(_)) | None => None,
            };
            let adopted = parts.policy.adopt(policy, path, &parts.recorder).await;
            adopted.map_err(|error| vec![loaded.mistake("policy", error.message)])?;
        }
        if self.file.digest() != digest {
            let about = json!({"event": "config_changed", "digest": digest.to_string()});
            let kept = parts.recorder.append(about).await;
            kept.map_err(|error| {
                let message = format!("the record of it cannot be kept: {error}");
                vec![loaded.mistake("", message)]
            })?;
        }
        let has_tools = old.shop.enabled != new.shop.enabled || old.manifest() != new.manifest();
        if has_tools || why == Why::Asked {
            let renewed = parts.gateway.executor().catalog().renew(assembled.tools);
            renewed.map_err(|error| assemble::refused(&loaded, &error).0)?;
            parts.policy.accept_tools();
            self.upstreams = assembled.upstreams;
            let witness = FirstUses(parts.recorder.clone());
            self.upstreams.set_witness(Arc::new(witness));
            parts.gateway.set_offers(self.upstreams.clone());
            // Those of before would go on with what was said before.
            self.following = Following::default();
            self.following = self.upstreams.follow(parts.gateway.executor().catalog());
        }
        parts.gateway.catalog_view().replace(offer_rules(new));
        if old.notify != new.notify || why == Why::Asked {
            parts.gateway.set_notify(notify);
        }
        if old.telemetry.log != new.telemetry.log
            && let Err(error) = parts.filter.set(&new.telemetry.log)
        {
            tracing::warn!(%error, "the new log filter was rejected; the earlier one stays in force");
        }
        let changes = self.current.changes(&loaded);
        let waiting = self.started.changes(&loaded);
        let waiting: Vec<Change> = waiting.into_iter().filter(|it| !it.is_live).collect();
        if !changes.is_empty() {
            tracing::info!(
                file = %self.path.display(),
                live = %named(changes.iter().filter(|change| change.is_live)),
                at_next_start = %named(waiting.iter()),
                "a new configuration is in force"
            );
        } else if why == Why::Asked {
            tracing::info!(file = %self.path.display(), "the configuration and its secrets were reloaded");
        }
        let now = parts.recorder.now();
        self.file.accepted(digest, now, in_force(&loaded, &waiting));
        self.current = loaded;
        Ok(())
    }

    fn refuse(&mut self, digest: Option<Digest>, mistakes: &[Mistake]) {
        self.refused = digest;
        let Some(first) = mistakes.first() else {
            return;
        };
        let is_new = self.file.refused(ConfigRefusal {
            at: self.parts.recorder.now(),
            file: first.file.clone(),
            line: first.line,
            column: first.column,
            key: first.key.clone(),
            message: first.message.clone(),
            mistakes: mistakes.len(),
        });
        if is_new {
            for mistake in mistakes.iter().take(NAMED_MAX) {
                tracing::warn!(
                    %mistake,
                    "the configuration was rejected; the earlier one stays in force"
                );
            }
        }
    }
}

/// Looks at a text whole, with everything behind it.
fn check(
    path: &Path,
    texts: &Texts,
    current: &Loaded,
    before: Option<&Upstreams>,
) -> Result<Next, Mistakes> {
    let loaded = current.with_document(texts.document(path)?)?;
    let assembled = assemble::ready(&loaded, before)?;
    let catalog = assemble::catalog(&loaded, assembled.tools.clone())?;
    let policy = policy::read(&loaded);
    let policy = policy.and_then(|policy| policy::fits(&policy, &catalog).map(|()| policy));
    let policy = policy.map_err(|error| Mistakes(vec![policy::mistake(&loaded, &error)]))?;
    telemetry::check_filter(&loaded.config().telemetry.log)
        .map_err(|error| Mistakes(vec![loaded.mistake("telemetry.log", error.to_string())]))?;
    let notify = notify::targets(&loaded)?;
    Ok(Next {
        loaded,
        assembled,
        policy,
        notify,
    })
}

/// Reads the file and those that it includes, on a thread where blocking is allowed.
async fn read(path: &Path) -> std::io::Result<Texts> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || Texts::read(&path));
    read.await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

fn in_force(loaded: &Loaded, waiting: &[Change]) -> InForce {
    let upstreams = loaded.config().upstream.iter();
    InForce {
        upstreams: upstreams.map(|upstream| upstream.name.clone()).collect(),
        at_next_start: waiting.iter().map(|change| change.key.clone()).collect(),
    }
}

/// Keys, for the log.
fn named<'c>(changes: impl Iterator<Item = &'c Change>) -> String {
    let keys: Vec<&str> = changes.map(|change| change.key.as_str()).collect();
    let shown: Vec<&str> = keys.iter().take(NAMED_MAX).copied().collect();
    let more = keys.len().saturating_sub(NAMED_MAX);
    match (shown.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}
