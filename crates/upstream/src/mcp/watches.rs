//! Subscriptions to resources at servers of the newest era: there a subscription is a request that stays open, and not one that is answered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign::offer::Refused;
use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::Subscription;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::client::Updates;
use super::connection::Connection;

/// Most resources that are watched over one connection.
const WATCHED_MAX: usize = 1_000;

/// Resources that are watched over one connection, by their addresses at the server. Dropped, none is.
#[derive(Default)]
pub(super) struct Watches(Mutex<HashMap<String, Watch>>);

struct Watch {
    /// Subscriptions of callers.
    count: usize,
    task: JoinHandle<()>,
}

impl Watches {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one subscription more, if the resource is watched.
    fn join(&self, uri: &str) -> bool {
        let mut watched = self.lock();
        watched.retain(|_, watch| !watch.task.is_finished());
        let found = watched.get_mut(uri);
        found.map(|watch| watch.count += 1).is_some()
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        for watch in self.lock().values() {
            watch.task.abort();
        }
    }
}

impl Connection {
    /// Subscribes to changes of a resource.
    pub(super) async fn watch(&self, uri: &str) -> Result<Value, Refused> {
        let refused = |code: i32, message: &str| Refused::Protocol {
            code,
            message: message.to_owned(),
            data: None,
        };
        if self.watches.join(uri) {
            return Ok(json!({}));
        }
        let Some(updates) = self.updates.clone() else {
            return Err(refused(-32_601, "changes of resources are not told here"));
        };
        if self.watches.lock().len() >= WATCHED_MAX {
            return Err(refused(-32_603, "too many resources are watched"));
        }
        let filter = SubscriptionFilter::builder().resource_subscription(uri);
        let opened = self.peer.listen(filter.build()).await;
        let opened = opened.map_err(|error| self.refused(error))?;
        let taken = opened.acknowledged().resource_subscriptions.as_ref();
        if !taken.is_some_and(|own| own.iter().any(|taken| taken == uri)) {
            return Err(refused(
                -32_601,
                "the server does not tell changes of this resource",
            ));
        }
        let mut watched = self.watches.lock();
        // Another caller may have been as fast; then this subscription ends here.
        let watch = watched.entry(uri.to_owned()).or_insert_with(|| Watch {
            count: 0,
            task: tokio::spawn(tell(opened, updates)),
        });
        watch.count += 1;
        Ok(json!({}))
    }

    /// Ends one subscription to a resource.
    pub(super) fn unwatch(&self, uri: &str) {
        let mut watched = self.watches.lock();
        if let Some(watch) = watched.get_mut(uri) {
            watch.count = watch.count.saturating_sub(1);
            if watch.count == 0 {
                watch.task.abort();
                watched.remove(uri);
            }
        }
    }
}

/// Tells changes for as long as the server does.
async fn tell(mut opened: Subscription, Updates { to, prefix }: Updates) {
    while let Ok(Some(told)) = opened.next().await {
        if let ServerNotification::ResourceUpdatedNotification(updated) = told {
            // It fails where nobody listens.
            let _nobody = to.send(format!("{prefix}{}", updated.params.uri));
        }
    }
}
