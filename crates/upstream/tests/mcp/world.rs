//! A gateway in one process: a manifest, an executor over it, and calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign::clock::{Clock, SystemClock};
use countersign::contract::{ReplyEnvelope, RequestEnvelope};
use countersign::ledger::{MemoryStore, Store};
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_upstream::mcp::pins::Pin;
use countersign_upstream::{Manifest, Upstreams};
use serde_json::Value;
use tempfile::TempDir;

/// An executor over the tools of a manifest, in a folder of its own.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) executor: Executor,
    pub(crate) catalog: Catalog,
    pub(crate) upstreams: Upstreams,
}

/// A folder for a world, with what its children find there.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Approves what a server lists now.
pub(crate) async fn approve(upstreams: &Upstreams, name: &str) -> Pin {
    let pin = upstreams.proposed(name).await.unwrap();
    upstreams.approve(name, pin.clone()).unwrap();
    pin
}

/// The manifest of a child that is written in Python, with further lines.
pub(crate) fn plain(folder: &Path, options: &str, rest: &str) -> String {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py");
    let (server, world) = (server.display(), folder.display());
    format!(
        "[[upstream]]\nname = 'plain'\nkind = 'mcp'\ntrust = 'first_use'\n\
         command = ['python3', '-S', '{server}', '{world}'{options}]\n{rest}"
    )
}

impl World {
    /// A world whose servers were asked once.
    pub(crate) async fn new(folder: TempDir, manifest: &str) -> Self {
        let world = Self::unasked(folder, manifest);
        world.ask().await;
        world
    }

    /// A world whose servers have not been asked yet.
    pub(crate) fn unasked(folder: TempDir, manifest: &str) -> Self {
        let manifest: Manifest =
            toml::from_str(manifest).unwrap_or_else(|error| panic!("{error}\n{manifest}"));
        assert_eq!(manifest.check(), []);
        let catalog = Catalog::builder().build().unwrap();
        let upstreams = Upstreams::prepare(&manifest, folder.path()).unwrap();
        for tool in upstreams.tools().unwrap() {
            catalog.add(tool).unwrap();
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        let executor = Executor::builder(catalog.clone())
            .store(store as Arc<dyn Store>)
            .clock(clock)
            .build();
        Self {
            folder,
            executor,
            catalog,
            upstreams,
        }
    }

    /// Asks every server for its tools.
    pub(crate) async fn ask(&self) {
        let limit = Duration::from_mins(1);
        self.upstreams.discover(&self.catalog, limit).await;
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let list = self.catalog.list();
        list.iter().map(|entry| entry.name().to_string()).collect()
    }

    /// A call of a user, with a key if there is one.
    pub(crate) async fn call_of(
        &self,
        user: &str,
        tool: &str,
        arguments: &str,
        key: Option<&str>,
    ) -> ReplyEnvelope {
        let envelope = RequestEnvelope {
            idempotency_key: key.map(str::to_owned),
            ..RequestEnvelope::default()
        };
        let call = ToolCall::new(tool, arguments, Principal::user(user)).envelope(envelope);
        self.executor.execute(call).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> ReplyEnvelope {
        self.call_of("ann", tool, arguments, None).await
    }

    /// The data of a call that works.
    pub(crate) async fn data(&self, tool: &str, arguments: &str) -> Value {
        let reply = self.call(tool, arguments).await;
        assert!(reply.ok, "{reply:#?}");
        reply.data
    }

    /// The lines of a file that a child writes.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        lines(&self.folder.path().join(name))
    }
}

pub(crate) fn lines(path: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A failure as one line: the code, the message, whether it is retryable, and the upstream's particulars.
pub(crate) fn told(reply: &ReplyEnvelope) -> String {
    let Some(error) = &reply.error else {
        let remarks = reply.warnings.iter().map(|it| it.code().to_owned());
        let remarks: Vec<_> = remarks.collect();
        return format!("ok {} {}", reply.data, remarks.join(","));
    };
    let details = &error.details;
    let retry = if details.retryable {
        "retryable"
    } else {
        "final"
    };
    let reason = details.reason.map_or("", |reason| reason.as_str());
    let code = details.upstream_code.as_deref().unwrap_or("");
    format!(
        "{}: {} [{retry} {reason} {code}]",
        error.code, error.message
    )
}
