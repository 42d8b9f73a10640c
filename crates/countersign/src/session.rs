//! A conversation with a model: one principal whose calls go through one executor (B16).

use std::sync::Arc;

use countersign_contract::{ReplyEnvelope, RequestEnvelope};

use crate::dialect::ProviderCall;
use crate::executor::{Executor, ToolCall};
use crate::principal::Principal;

/// An executor on behalf of one principal: the layer between a provider and the tools.
///
/// # Example
///
/// ```
/// use countersign::dialect::Dialect;
/// use countersign::sample::MemorySearch;
/// use countersign::session::Session;
/// use countersign::{Catalog, Executor, Principal};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let catalog = Catalog::builder().tool(MemorySearch::new(["buy milk"])).build()?;
/// let session = Session::new(Executor::new(catalog), Principal::user("u_1"));
///
/// let message = r#"{"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1",
///     "name": "memory_search", "input": {"query": "milk"}}]}"#;
/// let mut answered = Vec::new();
/// for call in Dialect::Anthropic.calls(message)? {
///     let reply = session.run(&call).await;
///     answered.push((call, reply));
/// }
/// let results = Dialect::Anthropic.results(&answered);
/// assert_eq!(results["content"][0]["tool_use_id"], "toolu_1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    executor: Executor,
    principal: Arc<Principal>,
    envelope: RequestEnvelope,
    key_prefix: Option<String>,
}

impl Session {
    /// A conversation of this principal.
    pub fn new(executor: Executor, principal: impl Into<Arc<Principal>>) -> Self {
        Self {
            executor,
            principal: principal.into(),
            envelope: RequestEnvelope::default(),
            key_prefix: None,
        }
    }

    /// Sets the members that every call of the conversation has: session, locale, time zone, client.
    ///
    /// A `request_id` and an `idempotency_key` belong to one call, so they are left out; see
    /// [`key_prefix`](Session::key_prefix).
    pub fn envelope(mut self, envelope: RequestEnvelope) -> Self {
        self.envelope = RequestEnvelope {
            request_id: None,
            idempotency_key: None,
            ..envelope
        };
        self
    }

    /// Gives each call a key of its own: this text, a colon and the provider's id of the call. A message that comes
    /// again under the same text then runs nothing twice.
    ///
    /// Colons within the text are written as `%3A` and percent signs as `%25`, so that no two pairs of text
    /// and id make the same key.
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefix = Some(prefix.into());
        self
    }

    /// One call of a model as the executor takes it, for programs that run it themselves.
    pub fn call(&self, call: &ProviderCall) -> ToolCall {
        let envelope = RequestEnvelope {
            idempotency_key: self.key(call),
            ..self.envelope.clone()
        };
        ToolCall::from_provider(call, self.principal.clone()).envelope(envelope)
    }

    fn key(&self, call: &ProviderCall) -> Option<String> {
        let prefix = escaped(self.key_prefix.as_ref()?);
        Some(format!("{prefix}:{}", call.id_or_place()))
    }

    /// Runs one call of a model; a call that was cut off is answered and never run.
    pub async fn run(&self, call: &ProviderCall) -> ReplyEnvelope {
        self.executor.execute(self.call(call)).await
    }
}

/// An escaped text without colons; no two texts have the same escaped form.
fn escaped(prefix: &str) -> String {
    prefix.replace('%', "%25").replace(':', "%3A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::dialect::Dialect;

    fn key(prefix: &str, id: &str) -> String {
        let message = serde_json::json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "t", "input": {}},
        ]});
        let calls = Dialect::Anthropic.calls(&message.to_string()).unwrap();
        let executor = Executor::new(Catalog::builder().build().unwrap());
        let session = Session::new(executor, Principal::user("u_1")).key_prefix(prefix);
        session.key(calls.first().unwrap()).unwrap()
    }

    /// Different calls have different keys (A5).
    #[test]
    fn no_two_calls_share_a_key() {
        assert_eq!(key("m_1", "toolu_1"), "m_1:toolu_1");
        for ((a, b), (c, d)) in [
            (("a", "b:c"), ("a:b", "c")),
            (("a:", "b"), ("a", ":b")),
            (("a%3A", "b"), ("a:", "b")),
            (("a%", "3A:b"), ("a:", "b")),
        ] {
            assert_ne!(key(a, b), key(c, d), "{a} {b} {c} {d}");
        }
    }
}
