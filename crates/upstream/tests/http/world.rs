//! A gateway in one process: a manifest, an executor over it, and calls.

use std::path::Path;
use std::sync::Arc;

use countersign::clock::{Clock, SystemClock};
use countersign::contract::{ReplyEnvelope, RequestEnvelope};
use countersign::ledger::{MemoryStore, Store};
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_upstream::{Manifest, Upstreams};
use serde_json::Value;

use crate::service::Service;

/// An executor over the tools of a manifest.
pub(crate) struct World {
    pub(crate) executor: Executor,
    pub(crate) store: Arc<MemoryStore>,
}

/// The manifest of one upstream at a service, with further lines of the upstream, and tools.
pub(crate) fn manifest(service: &Service, upstream: &str, tools: &str) -> Manifest {
    let text = format!(
        "[[upstream]]\nname = 'svc'\nbase_url = '{}/base'\nallow_private = ['loopback']\n{upstream}\n{tools}",
        service.url
    );
    toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

impl World {
    pub(crate) fn new(service: &Service, upstream: &str, tools: &str) -> Self {
        Self::of(&manifest(service, upstream, tools))
    }

    pub(crate) fn of(manifest: &Manifest) -> Self {
        assert_eq!(manifest.check(), []);
        let catalog = Catalog::builder().build().unwrap();
        let upstreams = Upstreams::prepare(manifest, Path::new(".")).unwrap();
        for tool in upstreams.tools().unwrap() {
            catalog.add(tool).unwrap();
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        let executor = Executor::builder(catalog)
            .store(store.clone() as Arc<dyn Store>)
            .clock(clock)
            .build();
        Self { executor, store }
    }

    /// A call of a user without a key.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> ReplyEnvelope {
        let call = ToolCall::new(tool, arguments, Principal::user("ann"));
        self.executor.execute(call).await
    }

    /// A call with a key.
    pub(crate) async fn keyed(&self, tool: &str, arguments: &str, key: &str) -> ReplyEnvelope {
        let envelope = RequestEnvelope {
            idempotency_key: Some(key.to_owned()),
            ..RequestEnvelope::default()
        };
        let call = ToolCall::new(tool, arguments, Principal::user("ann")).envelope(envelope);
        self.executor.execute(call).await
    }

    /// The data of a call that works.
    pub(crate) async fn data(&self, tool: &str, arguments: &str) -> Value {
        let reply = self.call(tool, arguments).await;
        assert!(reply.ok, "{reply:#?}");
        reply.data
    }
}

/// A failure as one line: the code, the message, whether it is retryable, and the upstream's particulars.
pub(crate) fn told(reply: &ReplyEnvelope) -> String {
    let Some(error) = &reply.error else {
        let remarks: Vec<_> = reply
            .warnings
            .iter()
            .map(|it| it.code().to_owned())
            .collect();
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
