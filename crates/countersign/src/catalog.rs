//! The catalog of tools: an immutable snapshot that readers never wait for (B11, B14).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use countersign_args::{Arguments, Binder, Limits, Reading, SchemaError};
use countersign_contract::id::InvalidId;
use countersign_contract::tool::{Confirmation, Terms};
use countersign_contract::{Digest, Issue, ToolName, ToolSpec, canonical};
use tokio::sync::watch;

use crate::adapter::{Handler, HandlerTool, ToolHandler};
use crate::alias::alias;
use crate::defaults::Defaults;
use crate::redact::Redaction;
use crate::tool::{self, DynTool, Tool};

mod payment;
mod select;

pub use select::{Unmatched, select};

/// A set of tools. Clones share it.
///
/// A look-up reads the current snapshot and allocates nothing. [`add`](Catalog::add),
/// [`replace`](Catalog::replace), [`remove`](Catalog::remove) and [`renew`](Catalog::renew) build the next snapshot and
/// swap it in at once: a call that has found its tool keeps it, whatever happens to the catalog.
///
/// # Example
///
/// ```
/// use countersign::Catalog;
/// use countersign::sample::{Diagnostics, MemorySearch};
///
/// let catalog = Catalog::builder()
///     .tool(MemorySearch::new(["buy milk"]))
///     .tool(Diagnostics)
///     .build()?;
/// assert!(catalog.get("memory.search").is_some());
/// assert!(catalog.get("memory_search").is_some(), "by the provider's name too");
/// # Ok::<(), countersign::catalog::Error>(())
/// ```
#[derive(Clone)]
pub struct Catalog {
    shared: Arc<Shared>,
}

struct Shared {
    current: ArcSwap<Snapshot>,
    /// Held while the next snapshot is built, so that two changes do not lose each other.
    changing: Mutex<()>,
    /// The current revision, for callers that wait for the next one.
    revisions: watch::Sender<u64>,
    /// Limits on the arguments of every tool.
    limits: Limits,
}

#[derive(Clone, Default)]
struct Snapshot {
    revision: u64,
    /// Tools by canonical name and by alias.
    names: HashMap<Arc<str>, Arc<Entry>>,
    /// Tools in the order of their canonical names.
    ordered: Vec<Arc<Entry>>,
}

/// A registered tool with everything that is prepared once.
pub struct Entry {
    tool: Arc<dyn DynTool>,
    alias: Arc<str>,
    digest: Digest,
    pub(crate) binder: Binder,
    /// The binder that also accepts the argument `again`; made for the first call that has it.
    pub(crate) again: OnceLock<Option<Binder>>,
    pub(crate) defaults: Defaults,
    pub(crate) redaction: Redaction,
    /// Used once to log that a tool has no declaration (B8).
    pub(crate) warned: Once,
}

/// Errors of registering or finding a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The name is not well formed. Usually it is empty, too long or has a space.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// A tool of this name is registered already. Usually two upstreams list the same name, or a tool is added twice.
    #[error("the tool {name} is registered already; replace it or choose another name")]
    Duplicate {
        /// The name.
        name: ToolName,
    },
    /// The alias of the tool is already that of another. Usually their names differ only in characters that aliases do
    /// not have.
    #[error(
        "the tool {name} has the provider name {alias:?}, which is that of {other}; rename one of them"
    )]
    AliasTaken {
        /// The tool.
        name: ToolName,
        /// Its provider name.
        alias: String,
        /// The tool that has the alias.
        other: ToolName,
    },
    /// The declaration's schema cannot be prepared for binding.
    /// Usually it uses a keyword or a pattern that the binder does not support.
    #[error("the tool {name} cannot be registered: {source}")]
    Schema {
        /// The tool.
        name: ToolName,
        /// The place, and the reason.
        source: SchemaError,
    },
    /// The declaration has no canonical form, so it has no digest.
    /// Usually an example or a default has a number that no double can hold.
    #[error("the declaration of {name} cannot be hashed: {source}")]
    Canonical {
        /// The tool.
        name: ToolName,
        /// The place, and the reason.
        source: canonical::Error,
    },
    /// The tool takes money. A person pays; an agent never does (A13).
    /// Usually the declaration of a payment service was taken over as it is.
    #[error(
        "the tool {name} captures or confirms a payment, which no agent may do; let it prepare one \
         (`Payment::Intent`), and let the user pay"
    )]
    TakesMoney {
        /// The tool.
        name: ToolName,
    },
    /// The name says that the tool takes money, and the declaration says nothing about payments.
    /// Usually it captures or confirms a payment.
    #[error(
        "the name of {name} says that it captures or confirms a payment, which no agent may do; where it \
         does not, declare what it does with payments (`Payment::Intent`), or rename it"
    )]
    SoundsLikePayment {
        /// The tool.
        name: ToolName,
    },
    /// The terms that a user is to agree to have an invalid JSON pointer. Usually the slash at its start is missing.
    #[error("the terms of {name} name {pointer:?}, which is not a JSON pointer")]
    Terms {
        /// The tool.
        name: ToolName,
        /// The invalid pointer.
        pointer: String,
    },
    /// The fields that a key is derived from have an invalid JSON pointer. Usually the slash at its start is missing.
    #[error("the key fields of {name} name {pointer:?}, which is not a JSON pointer")]
    KeyFields {
        /// The tool.
        name: ToolName,
        /// The invalid pointer.
        pointer: String,
    },
    /// A narrowing that the tool declares is beside terms, has an invalid pointer, or is inside another narrowing.
    /// Usually a parameter was listed together with the object that it is in.
    #[error(
        "{name} lets approvers narrow {pointer:?}, which is not a JSON pointer of its own, or is beside terms"
    )]
    Narrowing {
        /// The tool.
        name: ToolName,
        /// The invalid pointer.
        pointer: String,
    },
    /// No tool has this name. Usually it is misspelt, or its upstream is not configured.
    #[error("there is no tool {name:?}")]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
}

impl Catalog {
    /// A builder for the tools that are known at start-up.
    pub fn builder() -> CatalogBuilder {
        CatalogBuilder {
            tools: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// The tool of this canonical name or provider alias.
    pub fn get(&self, name: &str) -> Option<Arc<Entry>> {
        self.shared.current.load().names.get(name).cloned()
    }

    /// Every tool, by canonical name.
    pub fn list(&self) -> Vec<Arc<Entry>> {
        self.shared.current.load().ordered.clone()
    }

    /// Every tool as an old-style handler, by canonical name: for a program that still has an executor of its own
    /// (B13, B14). Later changes of the catalog do not reach them.
    pub fn handlers(&self) -> Vec<Arc<dyn Handler>> {
        let handler =
            |entry: &Arc<Entry>| -> Arc<dyn Handler> { Arc::new(ToolHandler::from(&**entry)) };
        self.shared
            .current
            .load()
            .ordered
            .iter()
            .map(handler)
            .collect()
    }

    /// The revision, which rises with every change.
    pub fn revision(&self) -> u64 {
        self.shared.current.load().revision
    }

    /// Watches the revision, for callers that wait for the next one.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.revisions.subscribe()
    }

    /// Adds a tool while calls are running.
    pub fn add(&self, tool: Arc<dyn DynTool>) -> Result<(), Error> {
        let entry = Arc::new(Entry::new(tool, self.shared.limits)?);
        self.change(|next| next.insert(entry))
    }

    /// Replaces the tool of the same name.
    pub fn replace(&self, tool: Arc<dyn DynTool>) -> Result<(), Error> {
        let entry = Arc::new(Entry::new(tool, self.shared.limits)?);
        self.change(|next| {
            next.take_out(entry.name().as_str())?;
            next.insert(entry)
        })
    }

    /// Removes a tool; calls that have found it finish with it.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.change(|next| next.take_out(name))
    }

    /// Replaces all tools at once. Unchanged tools keep their prepared data. If one tool is refused, nothing changes.
    pub fn renew(&self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Result<(), Error> {
        let limits = self.shared.limits;
        self.change(|next| {
            let before = std::mem::take(next);
            next.revision = before.revision;
            for tool in tools {
                let known = before.names.get(tool.spec().name.as_str());
                match known.filter(|entry| Arc::ptr_eq(&entry.tool, &tool)) {
                    Some(entry) => next.insert(entry.clone())?,
                    None => next.insert(Arc::new(Entry::new(tool, limits)?))?,
                }
            }
            Ok(())
        })
    }

    fn change(&self, edit: impl FnOnce(&mut Snapshot) -> Result<(), Error>) -> Result<(), Error> {
        let _one_at_a_time = self
            .shared
            .changing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.shared.current.load());
        edit(&mut next)?;
        next.revision += 1;
        let revision = next.revision;
        self.shared.current.store(Arc::new(next));
        self.shared.revisions.send_replace(revision);
        Ok(())
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.shared.current.load();
        let names = current.ordered.iter().map(|entry| entry.name());
        f.debug_list().entries(names).finish()
    }
}

/// Builder for a [`Catalog`]; [`build`](CatalogBuilder::build) reports the first error.
pub struct CatalogBuilder {
    tools: Vec<Result<Arc<dyn DynTool>, InvalidId>>,
    limits: Limits,
}

impl CatalogBuilder {
    /// Adds a typed tool.
    pub fn tool<T: Tool>(mut self, tool: T) -> Self {
        self.tools.push(tool::erase(tool));
        self
    }

    /// Adds an erased tool, from a manifest for instance.
    pub fn dyn_tool(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.tools.push(Ok(tool));
        self
    }

    /// Adds an old-style handler without a declaration, under this name (B13).
    pub fn handler(mut self, name: &str, handler: impl Handler) -> Self {
        let tool = ToolName::new(name)
            .map(|name| Arc::new(HandlerTool::undeclared(name, handler)) as Arc<dyn DynTool>);
        self.tools.push(tool);
        self
    }

    /// Sets the limits on the arguments of every tool, also of those that are added later.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Builds the catalog, or answers the first error.
    pub fn build(self) -> Result<Catalog, Error> {
        let mut snapshot = Snapshot {
            revision: 1,
            ..Snapshot::default()
        };
        for tool in self.tools {
            snapshot.insert(Arc::new(Entry::new(tool?, self.limits)?))?;
        }
        Ok(Catalog {
            shared: Arc::new(Shared {
                revisions: watch::Sender::new(snapshot.revision),
                current: ArcSwap::from_pointee(snapshot),
                changing: Mutex::new(()),
                limits: self.limits,
            }),
        })
    }
}

impl Entry {
    fn new(tool: Arc<dyn DynTool>, limits: Limits) -> Result<Self, Error> {
        let spec = tool.spec();
        let name = &spec.name;
        payment::check(spec)?;
        check_terms(spec)?;
        check_key_fields(spec)?;
        check_narrowing(spec)?;
        let unusable = |source| Error::Schema {
            name: name.clone(),
            source,
        };
        let binder = Binder::new(spec).map_err(unusable)?.with_limits(limits);
        // A default goes to the tool unbound, and a model copies an example: both must be right.
        binder.check_shown().map_err(unusable)?;
        let declaration = serde_json::to_value(spec).unwrap_or_default();
        let digest = Digest::of_canonical(&declaration).map_err(|source| Error::Canonical {
            name: name.clone(),
            source,
        })?;
        Ok(Self {
            alias: alias(name).into(),
            redaction: Redaction::of(spec),
            defaults: Defaults::of(spec),
            warned: Once::new(),
            digest,
            binder,
            again: OnceLock::new(),
            tool,
        })
    }

    /// The declaration.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// The canonical name.
    pub fn name(&self) -> &ToolName {
        &self.spec().name
    }

    /// The tool's name for providers.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// Digest of the canonical JSON of the declaration: it changes when the declaration does.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The tool itself.
    pub fn tool(&self) -> &Arc<dyn DynTool> {
        &self.tool
    }

    /// The arguments of a text, as the tool would be given them: bound, with defaults. The issues if there are none.
    pub fn arguments(&self, raw: &str) -> Result<Arguments, Vec<Issue>> {
        let bound = self.binder.bind(raw);
        match bound.arguments {
            Some(arguments) if bound.status.is_executable() => {
                Ok(self.defaults.fill(&arguments).unwrap_or(arguments))
            }
            Some(_) | None => Err(bound.issues),
        }
    }

    /// The arguments of a text, as a caller with this locale and time zone means them and as the tool would be given them.
    /// The issues if there are none. The argument `again`, which is no tool's, is left out.
    pub fn arguments_in(
        &self,
        raw: &str,
        locale: Option<&str>,
        timezone: Option<&str>,
    ) -> Result<Arguments, Vec<Issue>> {
        crate::executor::bind_again(self, raw, &Reading::new(locale, timezone))
    }

    /// The prepared declaration.
    pub fn binder(&self) -> &Binder {
        &self.binder
    }
}

/// Refuses an invalid declaration of narrowings: one beside terms, which are an agreement about less than the
/// arguments, one with an invalid pointer, or one inside another.
fn check_narrowing(spec: &ToolSpec) -> Result<(), Error> {
    let all = &spec.behaviour.narrowing;
    let has_terms = matches!(spec.behaviour.confirmation, Confirmation::Terms(_));
    let is_inside = |one: &str, other: &str| {
        one.strip_prefix(other)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let wrong = all.iter().enumerate().find(|(at, one)| {
        let mut others = all.iter().enumerate().filter(|(other, _)| other != at);
        has_terms
            || !one.pointer.starts_with('/')
            || others.any(|(_, other)| is_inside(&one.pointer, &other.pointer))
    });
    match wrong {
        None => Ok(()),
        Some((_, narrowing)) => Err(Error::Narrowing {
            name: spec.name.clone(),
            pointer: narrowing.pointer.clone(),
        }),
    }
}

/// Refuses terms with an invalid pointer, which would bind nothing.
fn check_terms(spec: &ToolSpec) -> Result<(), Error> {
    let Terms { exact, ceiling } = match &spec.behaviour.confirmation {
        Confirmation::Never | Confirmation::Always => return Ok(()),
        Confirmation::Terms(terms) => terms,
    };
    let pointers = exact.iter().chain([&ceiling.amount, &ceiling.currency]);
    let wrong = pointers
        .into_iter()
        .find(|pointer| !pointer.starts_with('/'));
    match wrong {
        None => Ok(()),
        Some(pointer) => Err(Error::Terms {
            name: spec.name.clone(),
            pointer: pointer.clone(),
        }),
    }
}

/// Refuses key fields with an invalid pointer, which would derive a key from nothing.
fn check_key_fields(spec: &ToolSpec) -> Result<(), Error> {
    let mut fields = spec.behaviour.idempotency.fields.iter();
    match fields.find(|pointer| !pointer.starts_with('/')) {
        None => Ok(()),
        Some(pointer) => Err(Error::KeyFields {
            name: spec.name.clone(),
            pointer: pointer.clone(),
        }),
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(self.name()).finish()
    }
}

impl Snapshot {
    fn insert(&mut self, entry: Arc<Entry>) -> Result<(), Error> {
        let name = entry.name();
        let of_name = self.names.get(name.as_str());
        if of_name.is_some_and(|other| other.name() == name) {
            return Err(Error::Duplicate { name: name.clone() });
        }
        // Both directions: `a_b` may be the alias of `a.b` or a tool's own name.
        if let Some(other) = of_name.or_else(|| self.names.get(entry.alias())) {
            return Err(Error::AliasTaken {
                name: name.clone(),
                alias: entry.alias().to_owned(),
                other: other.name().clone(),
            });
        }
        let place = self.ordered.partition_point(|other| other.name() < name);
        self.names.insert(name.as_str().into(), entry.clone());
        self.names.insert(entry.alias.clone(), entry.clone());
        self.ordered.insert(place, entry);
        Ok(())
    }

    fn take_out(&mut self, name: &str) -> Result<(), Error> {
        let Some(entry) = self.names.get(name).cloned() else {
            return Err(Error::Unknown {
                name: name.to_owned(),
            });
        };
        self.names.remove(entry.name().as_str());
        self.names.remove(entry.alias());
        self.ordered.retain(|other| !Arc::ptr_eq(other, &entry));
        Ok(())
    }
}
