//! Recorded calls, checked and computed again (A16).
//!
//! [`Replayer::verify`] checks that the stored data is what was recorded. [`Replayer::replay`] gives a recorded call to
//! a [`Target`] and compares the answers: to [`Local`] with the versions of the record, to see that the answer can be
//! computed again; with other tools or rule sets, to see what a change would have done to recorded traffic. Nothing is
//! committed, and no key is claimed; the only trace is a record of each payload that was opened.
//!
//! Only tools that are declared [`Pure`](countersign_contract::tool::Replay::Pure) are computed again. If such a tool
//! reads its [`state`](crate::CallContext::state), it gets the current state.

use std::sync::Arc;

use countersign_contract::{Digest, ErrorCode, EvidenceRecord, RecordKind, SnapshotId};
use serde_json::Value;

use crate::BoxFuture;
use crate::clock::{Clock, SystemClock};
use crate::ids::{IdSource, RandomIds};
use crate::ledger::{self, Store};
use crate::principal::Principal;
use crate::vault::Vault;

mod compare;
mod local;
mod payload;
mod range;
mod report;
mod verify;

pub use compare::{DIFFERENCES_MAX, Difference};
pub use local::{Local, RulesAt};
pub use payload::RecordedCall;
pub use range::Options;
pub use report::{Report, ToolReport};
pub use verify::{Breach, Standing, Verified};

use payload::Found;

/// The scope that a replay requires: payloads are opened.
pub const SCOPE: &str = "evidence:open";

/// Replays recorded calls.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use countersign::clock::SystemClock;
/// use countersign::contract::{Behaviour, tool::Replay};
/// use countersign::ids::RandomIds;
/// use countersign::ledger::MemoryStore;
/// use countersign::replay::{Replayer, RulesAt, Verdict};
/// use countersign::rules::Rules;
/// use countersign::vault::Vault;
/// use countersign::{CallContext, Catalog, Executor, Principal, Tool, ToolCall, ToolError};
/// use countersign_evidence::seal::MasterKey;
/// use serde_json::json;
///
/// struct Vat;
///
/// impl Tool for Vat {
///     const NAME: &'static str = "tax.vat";
///     const DESCRIPTION: &'static str = "The rate of a country.";
///     type Args = ();
///     type Output = serde_json::Value;
///
///     fn behaviour() -> Behaviour {
///         Behaviour { replay: Replay::Pure { volatile: vec![] }, ..Behaviour::default() }
///     }
///
///     async fn call(&self, ctx: &CallContext, (): ()) -> Result<serde_json::Value, ToolError> {
///         Ok(ctx.rules("vat")?.data["DE"].clone())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let old = Rules::builder().version("vat", json!({"DE": 1900}))?;
/// let store = Arc::new(MemoryStore::new().keeping_log());
/// let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
/// let executor = Executor::builder(Catalog::builder().tool(Vat).build()?)
///     .store(store.clone())
///     .kms(master.clone())
///     .rules(old.build())
///     .build();
/// let reply = executor.execute(ToolCall::new("tax.vat", "{}", Principal::user("u_1"))).await;
/// let id = reply.evidence.ok_or("there is a log")?.snapshot_id;
///
/// let clock = Arc::new(SystemClock::new());
/// let ids = Arc::new(RandomIds::new(clock.clone()));
/// let vault = Arc::new(Vault::new(store.clone(), master, clock, ids));
/// let auditor = Principal::user("auditor").scope("evidence:open");
/// let replayer = Replayer::new(store, vault, auditor)?;
/// let rules = Rules::builder()
///     .version("vat", json!({"DE": 1900}))?
///     .version("vat", json!({"DE": 2000}))?
///     .build();
/// let catalog = Catalog::builder().tool(Vat).build()?;
///
/// // With the rules of the record the answer is the same; with those of today it would be another.
/// let then = replayer.local(catalog.clone(), rules.clone(), RulesAt::Recorded);
/// assert_eq!(replayer.replay(&id, &then).await?.verdict, Verdict::Identical);
/// let now = replayer.local(catalog, rules, RulesAt::InForce);
/// let Verdict::Drift(differences) = replayer.replay(&id, &now).await?.verdict else {
///     return Err("the rate has changed".into());
/// };
/// assert_eq!(differences[0].computed, Some(json!(2000)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Replayer {
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    by: Arc<Principal>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

/// Computes a recorded call again: with tools in this process, or with another build behind an endpoint.
pub trait Target: Send + Sync + 'static {
    /// Computes the call. Must change nothing.
    fn compute<'a>(&'a self, call: &'a RecordedCall) -> BoxFuture<'a, Computed>;
}

/// Result of computing a recorded call again. Closed.
#[derive(Clone, PartialEq)]
pub enum Computed {
    /// The tool answered.
    Answered {
        /// The answer.
        data: Value,
        /// JSON pointers to volatile members, which differ each time.
        volatile: Vec<String>,
        /// Digest of the tool's declaration, if it is known.
        definition: Option<Digest>,
    },
    /// The tool refused or failed.
    Failed {
        /// The error code.
        code: ErrorCode,
        /// Digest of the tool's declaration, if it is known.
        definition: Option<Digest>,
    },
    /// The target has no such tool.
    NoSuchTool,
    /// The tool is not pure: it reads from outside.
    NotPure,
    /// The target does not have a rule set in the recorded version.
    MissingRules {
        /// Name of the rule set.
        name: String,
        /// The version of the record.
        version: String,
    },
}

/// A record that was replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// Its name.
    pub id: SnapshotId,
    /// The tool that it is a record of.
    pub tool: Option<String>,
    /// Verdict of the replay.
    pub verdict: Verdict,
    /// The recorded and the current declaration, if they differ. The answers were compared all the same.
    pub definition: Option<DefinitionChanged>,
}

/// A change of the tool's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionChanged {
    /// Digest of the declaration in the record.
    pub recorded: Digest,
    /// Digest of the current declaration.
    pub computed: Digest,
}

/// Verdict of a replay. Closed.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The same answer, or the same refusal.
    Identical,
    /// Another answer, with the differences.
    Drift(Vec<Difference>),
    /// Another code: it succeeds now and did not then, or the other way round, or fails otherwise.
    OtherCode {
        /// The recorded code; `None` if it succeeded.
        recorded: Option<ErrorCode>,
        /// The computed code; `None` if it succeeds.
        computed: Option<ErrorCode>,
    },
    /// A rule set is not known in the version of the record.
    MissingRules {
        /// Name of the rule set.
        name: String,
        /// The version of the record.
        version: String,
    },
    /// The tool is not pure: only its record can be verified.
    NotPure,
    /// The tool did not run, or its answer has no canonical form: there is nothing to compare with.
    NothingToCompare,
    /// The tool does not exist any more.
    NoSuchTool,
    /// The user was erased.
    Erased,
    /// The payload is no longer stored.
    Gone,
    /// The stored data differs from what was recorded.
    Broken(Vec<Breach>),
}

impl Verdict {
    /// Its name for programs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Drift(_) => "drift",
            Self::OtherCode { .. } => "other_code",
            Self::MissingRules { .. } => "missing_rules",
            Self::NotPure => "not_pure",
            Self::NothingToCompare => "nothing_to_compare",
            Self::NoSuchTool => "no_such_tool",
            Self::Erased => "erased",
            Self::Gone => "gone",
            Self::Broken(_) => "broken",
        }
    }

    /// The differences, one line each.
    pub fn into_differences(self) -> Vec<Difference> {
        let code = |code: Option<ErrorCode>| Some(code.map_or("OK", ErrorCode::as_str).into());
        match self {
            Self::Drift(differences) => differences,
            Self::OtherCode { recorded, computed } => vec![Difference {
                path: "code".to_owned(),
                recorded: code(recorded),
                computed: code(computed),
            }],
            Self::MissingRules { name, version } => vec![Difference {
                path: format!("rules {name}"),
                recorded: Some(version.into()),
                computed: None,
            }],
            Self::Broken(breaches) => breaches.into_iter().map(Difference::from).collect(),
            Self::Identical
            | Self::NotPure
            | Self::NothingToCompare
            | Self::NoSuchTool
            | Self::Erased
            | Self::Gone => Vec::new(),
        }
    }
}

/// Errors of a replay that could not be made at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed. Usually the database cannot be reached, or the disk is full.
    #[error(transparent)]
    Store(#[from] ledger::Error),
    /// No record has this id. Usually the id is mistyped, or belongs to another log.
    #[error("there is no record {id}")]
    NoSuchRecord {
        /// The id that was asked for.
        id: SnapshotId,
    },
    /// The credential lacks the scope. Usually the key was made without it.
    #[error("a replay opens payloads and needs the scope {SCOPE}")]
    NotAllowed,
    /// A part of the replay was lost: a target panicked.
    /// Usually a tool has a defect that the recorded arguments reach.
    #[error("a replay was aborted: {0}")]
    Aborted(#[from] tokio::task::JoinError),
}

impl Replayer {
    /// Replays from this store, on behalf of a principal who may open payloads.
    pub fn new(store: Arc<dyn Store>, vault: Arc<Vault>, by: Principal) -> Result<Self, Error> {
        if !by.holds(SCOPE) {
            return Err(Error::NotAllowed);
        }
        let clock = Arc::new(SystemClock::new());
        Ok(Self {
            store,
            vault,
            by: Arc::new(by),
            ids: Arc::new(RandomIds::new(clock.clone())),
            clock,
        })
    }

    /// The same, with this clock and these ids.
    pub fn with(mut self, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        self.clock = clock;
        self.ids = ids;
        self
    }

    /// Replays one recorded call, and compares the answers.
    pub async fn replay(&self, id: &SnapshotId, target: &dyn Target) -> Result<Replayed, Error> {
        let (stored, record) = self.stored(id).await?;
        let tool = record.tool.as_ref().map(|tool| tool.name.clone());
        let mut definition = None;
        let verdict = match self.found(&stored, &record).await? {
            Found::NotRun => Verdict::NothingToCompare,
            Found::Erased => Verdict::Erased,
            Found::Gone => Verdict::Gone,
            Found::Broken(breach) => Verdict::Broken(vec![breach]),
            Found::Call(call) => {
                let computed = target.compute(&call).await;
                definition = changed(&record, &computed);
                judge(&call, computed)
            }
        };
        Ok(Replayed {
            id: id.clone(),
            tool,
            verdict,
            definition,
        })
    }

    async fn stored(
        &self,
        id: &SnapshotId,
    ) -> Result<(ledger::StoredRecord, EvidenceRecord), Error> {
        let stored = ledger::awaited_record(&*self.store, id).await?;
        let stored = stored.ok_or_else(|| Error::NoSuchRecord { id: id.clone() })?;
        // A leaf that cannot be read is shown as what it is: a record of nothing, which its row is not.
        let record = serde_json::from_slice(&stored.leaf).unwrap_or_else(|_| {
            EvidenceRecord::new(RecordKind::Checkpoint, id.clone(), String::new())
        });
        Ok((stored, record))
    }
}

impl std::fmt::Debug for Replayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replayer").finish_non_exhaustive()
    }
}

/// Shows the kind of result only: answers are personal data.
impl std::fmt::Debug for Computed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Answered { .. } => f.write_str("Answered"),
            Self::Failed { code, .. } => write!(f, "Failed({code})"),
            Self::NoSuchTool => f.write_str("NoSuchTool"),
            Self::NotPure => f.write_str("NotPure"),
            Self::MissingRules { name, version } => write!(f, "MissingRules({name}, {version})"),
        }
    }
}

fn changed(record: &EvidenceRecord, computed: &Computed) -> Option<DefinitionChanged> {
    let now = match computed {
        Computed::Answered { definition, .. } | Computed::Failed { definition, .. } => *definition,
        Computed::NoSuchTool | Computed::NotPure | Computed::MissingRules { .. } => None,
    };
    let (recorded, computed) = (record.tool.as_ref()?.definition?, now?);
    (recorded != computed).then_some(DefinitionChanged { recorded, computed })
}

fn judge(call: &RecordedCall, computed: Computed) -> Verdict {
    let (data, volatile) = match computed {
        Computed::NoSuchTool => return Verdict::NoSuchTool,
        Computed::NotPure => return Verdict::NotPure,
        Computed::MissingRules { name, version } => return Verdict::MissingRules { name, version },
        Computed::Failed { code, .. } if call.code == Some(code) => return Verdict::Identical,
        Computed::Failed { code, .. } => {
            return Verdict::OtherCode {
                recorded: call.code,
                computed: Some(code),
            };
        }
        Computed::Answered { data, volatile, .. } => (data, volatile),
    };
    if call.code.is_some() {
        return Verdict::OtherCode {
            recorded: call.code,
            computed: None,
        };
    }
    let Some(recorded) = &call.data else {
        return Verdict::NothingToCompare;
    };
    let differences = compare::differences(recorded, data, &volatile);
    if differences.is_empty() {
        Verdict::Identical
    } else {
        Verdict::Drift(differences)
    }
}
