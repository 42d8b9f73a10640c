//! The scratch installation: the operator's configuration and policy over a store and a log key of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::approve::{Response, SCOPE_ANSWER};
use countersign::catalog::{CatalogBuilder, Entry};
use countersign::contract::{Actor, ActorType, ErrorCode, ReplyEnvelope, RequestEnvelope};
use countersign::executor::ExecutorBuilder;
use countersign::rules::Rules;
use countersign::{Catalog, DynTool, Executor, Principal, ToolCall};
use countersign_config::Given;
use countersign_gateway::policy::LivePolicy;
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::double::Double;
use super::example;
use crate::catalog;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::place::{Place, PlaceOptions};
use crate::policy;

/// A scratch installation.
pub(crate) struct Scratch {
    /// Deleted with the drill; `None` in the process that is killed.
    _folder: Option<TempDir>,
    path: PathBuf,
    options: PlaceOptions,
    catalog: Catalog,
    policy: Arc<LivePolicy>,
    /// `None` while another process has the store.
    open: Option<Open>,
    /// Effects of one call.
    pub(super) times: usize,
    users: usize,
}

/// A scratch store that is open.
struct Open {
    place: Place,
    journal: Journal,
    executor: Executor,
}

/// A tool that changes something, with arguments that it accepts.
#[derive(Clone)]
pub(super) struct Subject {
    pub(super) entry: Arc<Entry>,
    pub(super) arguments: Map<String, Value>,
}

impl Subject {
    pub(super) fn name(&self) -> &str {
        self.entry.spec().name.as_str()
    }

    pub(super) fn text(&self) -> String {
        Value::Object(self.arguments.clone()).to_string()
    }
}

/// A call of the drill.
#[derive(Clone)]
pub(super) struct Try<'a> {
    pub(super) user: &'a str,
    pub(super) tool: &'a str,
    pub(super) arguments: String,
    pub(super) key: &'a str,
    pub(super) dry_run: bool,
}

impl Scratch {
    /// Makes a scratch installation in a new folder.
    pub(super) fn make(options: &PlaceOptions, times: usize) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("countersign-drill-")
            .tempdir()?;
        let path = folder.path().to_owned();
        Self::enter(options, path, Some(folder), times)
    }

    /// Enters the folder of a drill.
    pub(super) fn enter(
        options: &PlaceOptions,
        path: PathBuf,
        folder: Option<TempDir>,
        times: usize,
    ) -> Result<Self, Failure> {
        let data = path.join("data");
        let store = format!("sqlite:{}", data.join("countersign.db").display());
        let given = vec![
            Given::flag("store.data", "drill", data.display().to_string()),
            Given::flag("store.url", "drill", store),
            // They are of the real log.
            Given::flag("log.copies", "drill", Vec::<Value>::new()),
        ];
        let policy = policy::open(options.loaded())?;
        let real = catalog::declared(options.loaded())?;
        let doubles = real.list().into_iter().map(|entry| {
            let double: Arc<dyn DynTool> = Arc::new(Double::of(entry.tool(), &path, times));
            double
        });
        let builder = doubles.fold(Catalog::builder(), CatalogBuilder::dyn_tool);
        let catalog = builder
            .build()
            .map_err(|error| Failure::from(anyhow::Error::new(error)))?;
        let fits = policy.check_against(&catalog);
        fits.map_err(|error| policy::refused(options.loaded(), error))?;
        let mut scratch = Self {
            _folder: folder,
            path,
            options: options.with(given)?,
            catalog,
            policy: Arc::new(policy),
            open: None,
            times,
            users: 0,
        };
        scratch.open()?;
        Ok(scratch)
    }

    /// Opens the store again.
    pub(super) fn open(&mut self) -> Result<(), Failure> {
        let place = self.options.open_or_make_quietly()?;
        let journal = Journal::start(&place)?;
        let builder = place.executor_builder(self.catalog.clone(), Rules::default());
        let executor = self.decided(builder).build();
        self.open = Some(Open {
            place,
            journal,
            executor,
        });
        Ok(())
    }

    /// Has calls decided by the operator's policy.
    pub(super) fn decided(&self, builder: ExecutorBuilder) -> ExecutorBuilder {
        let builder = builder.authorizer(self.policy.clone());
        self.policy.controls().install(builder)
    }

    /// Signs everything and closes the store.
    pub(super) fn close(&mut self) -> Result<(), Failure> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        open.journal.sign(&open.place)
    }

    /// Signs everything that was committed.
    pub(super) fn sign(&mut self) -> Result<(), Failure> {
        match &mut self.open {
            Some(open) => open.journal.sign(&open.place),
            None => Ok(()),
        }
    }

    pub(super) fn place(&self) -> Result<&Place, Failure> {
        Ok(&self.opened()?.place)
    }

    pub(super) fn executor(&self) -> Result<&Executor, Failure> {
        Ok(&self.opened()?.executor)
    }

    fn opened(&self) -> Result<&Open, Failure> {
        let open = self.open.as_ref();
        open.ok_or_else(|| Failure::new("the scratch store is closed"))
    }

    pub(super) fn options(&self) -> &PlaceOptions {
        &self.options
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a user of one check only: what one check uses up, no other misses.
    pub(super) fn user(&mut self) -> String {
        self.users += 1;
        format!("drill-{}", self.users)
    }

    /// Returns a person with every scope that the policy names.
    pub(super) fn person(&self, user: &str) -> Principal {
        let policy = self.policy.current();
        let scopes = policy.scopes().into_iter();
        scopes.fold(Principal::user(user), Principal::scope)
    }

    /// Returns the tools that change something, that a person may call, and for which arguments could be made.
    pub(super) fn subjects(&mut self) -> Result<Vec<Subject>, Failure> {
        let user = self.user();
        let person = self.person(&user);
        let open = self.opened()?;
        let listed = open.place.runtime.block_on(open.executor.list(&person));
        let listed = listed.map_err(|error| Failure::new(error.message.to_string()))?;
        let changing = listed.into_iter().filter(|entry| {
            let behaviour = &entry.spec().behaviour;
            behaviour.effect.changes_something()
        });
        let subjects = changing.filter_map(|entry| {
            let arguments = example::arguments(&entry)?;
            Some(Subject { entry, arguments })
        });
        Ok(subjects.collect())
    }

    /// Makes a call as a person.
    pub(super) fn call(&self, tried: &Try<'_>) -> Result<ReplyEnvelope, Failure> {
        let open = self.opened()?;
        let call = self.tool_call(tried);
        Ok(open.place.runtime.block_on(open.executor.execute(call)))
    }

    pub(super) fn tool_call(&self, tried: &Try<'_>) -> ToolCall {
        let envelope = RequestEnvelope {
            currency: Some("EUR".to_owned()),
            idempotency_key: Some(tried.key.to_owned()),
            dry_run: tried.dry_run,
            ..RequestEnvelope::default()
        };
        let person = self.person(tried.user);
        ToolCall::new(tried.tool, tried.arguments.as_str(), person).envelope(envelope)
    }

    /// Makes a call, and confirms it as the user, and as a second person where two have to.
    pub(super) fn confirmed(&self, tried: &Try<'_>) -> Result<ReplyEnvelope, Failure> {
        let reply = self.call(tried)?;
        let Some(id) = asked(&reply) else {
            return Ok(reply);
        };
        self.approve(&id, tried.user)?;
        self.call(tried)
    }

    /// Approves a question as its user, and as a second person.
    pub(super) fn approve(&self, id: &str, user: &str) -> Result<(), Failure> {
        let open = self.opened()?;
        let second = Actor {
            kind: ActorType::User,
            id: "drill-second".to_owned(),
        };
        let second = Principal::new(second, "drill-second").scope(SCOPE_ANSWER);
        for by in [self.person(user), second] {
            let answer = Response::approve();
            let answered = open.executor.approvals().decide(id, &by, &answer);
            // A question that needs one approval is not open to a second one.
            let _ = open.place.runtime.block_on(answered);
        }
        Ok(())
    }
}

/// Returns the id of the question that a call waits for.
pub(super) fn asked(reply: &ReplyEnvelope) -> Option<String> {
    let error = reply.error.as_ref()?;
    if error.code != ErrorCode::NeedsUserConfirmation {
        return None;
    }
    let details = serde_json::to_value(&error.details).ok()?;
    details.get("approval_id")?.as_str().map(str::to_owned)
}

/// Returns the number of effects that the tool has counted for the user.
pub(super) fn count(reply: &ReplyEnvelope) -> Option<usize> {
    let count = reply.data.get("count").and_then(Value::as_u64)?;
    usize::try_from(count).ok()
}
