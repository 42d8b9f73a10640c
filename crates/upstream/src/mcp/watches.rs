//! Subscriptions to resources. Callers share them, and each ends its own only. At a server of the newest era a subscription is a request that
//! stays open, and not one that is answered.

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

/// Resources that callers have subscribed to over one connection, by their addresses at the server. Dropped, none is watched.
#[derive(Default)]
pub(super) struct Watches(Mutex<HashMap<String, Watch>>);

#[derive(Default)]
struct Watch {
    /// Subscriptions of each user.
    held: HashMap<String, usize>,
    /// The request that stays open; `None` at a server of an older era, which tells changes by itself.
    task: Option<JoinHandle<()>>,
}

impl Watches {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a resource is watched.
    pub(super) fn is_any(&self) -> bool {
        self.lock().values().any(|watch| !watch.has_ended())
    }

    /// Counts one subscription more, if the resource is watched.
    fn join(&self, uri: &str, user: &str) -> bool {
        let mut watched = self.lock();
        watched.retain(|_, watch| !watch.has_ended());
        let found = watched.get_mut(uri);
        found.map(|watch| watch.add(user)).is_some()
    }

    /// Counts a subscription at a server of an older era. Beyond the bound it is not counted, and ends with any other of the resource.
    pub(super) fn hold(&self, uri: &str, user: &str) {
        let mut watched = self.lock();
        if watched.len() < WATCHED_MAX || watched.contains_key(uri) {
            watched.entry(uri.to_owned()).or_default().add(user);
        }
    }

    /// Counts one subscription of a user less. True if none is left, so that the server need not tell changes any more.
    pub(super) fn release(&self, uri: &str, user: &str) -> bool {
        let mut watched = self.lock();
        let Some(watch) = watched.get_mut(uri) else {
            return true;
        };
        if let Some(count) = watch.held.get_mut(user) {
            *count -= 1;
            if *count == 0 {
                watch.held.remove(user);
            }
        }
        let is_over = watch.held.is_empty();
        if is_over {
            watched.remove(uri);
        }
        is_over
    }
}

impl Watch {
    /// True if the server has ended the subscription.
    fn has_ended(&self) -> bool {
        self.task.as_ref().is_some_and(JoinHandle::is_finished)
    }

    fn add(&mut self, user: &str) {
        *self.held.entry(user.to_owned()).or_default() += 1;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Connection {
    /// Subscribes a user to changes of a resource at a server of the newest era.
    pub(super) async fn watch(&self, uri: &str, user: &str) -> Result<Value, Refused> {
        let refused = |code: i32, message: &str| Refused::Protocol {
            code,
            message: message.to_owned(),
            data: None,
        };
        if self.watches.join(uri, user) {
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
            held: HashMap::new(),
            task: Some(tokio::spawn(tell(opened, updates))),
        });
        watch.add(user);
        Ok(json!({}))
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
