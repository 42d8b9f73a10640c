//! Notifications to clients that a list or a resource has changed, over the streams that are open.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::handler::Shared;

/// Poll interval for closed connections of clients of the older protocol versions.
const CLOSED_LOOK: Duration = Duration::from_secs(30);

/// Tells a client of the newer era, as long as it listens: changes of lists, and of the resources that it watches.
pub(super) async fn tell_listener(
    shared: &Shared,
    subscription: &SubscriptionContext,
    mut updates: Option<broadcast::Receiver<String>>,
    watched: &[String],
) {
    let sink = subscription.sink();
    let of_tools = sink.accepted().tools_list_changed == Some(true);
    let of_prompts = sink.accepted().prompts_list_changed == Some(true);
    let fixtures = shared.fixtures.as_ref();
    let mut revisions = Some(shared.gateway.executor().catalog().watch());
    let mut views = Some(shared.gateway.catalog_view().watch());
    let mut tools = fixtures.map(|fixtures| fixtures.watch_tools());
    let mut prompts = fixtures.map(|fixtures| fixtures.watch_prompts());
    let mut offers = shared.gateway.offers().map(|offers| offers.changes());
    loop {
        let told = tokio::select! {
            () = subscription.cancelled() => return,
            () = shared.gateway.health().draining() => return,
            () = change(&mut revisions), if of_tools => sink.notify_tool_list_changed().await,
            () = change(&mut views), if of_tools => sink.notify_tool_list_changed().await,
            () = change(&mut tools), if of_tools => sink.notify_tool_list_changed().await,
            () = change(&mut prompts), if of_prompts => sink.notify_prompt_list_changed().await,
            uri = update(&mut updates, watched) => sink.notify_resource_updated(uri).await,
            // A server that says that its list has changed does not say how.
            () = change(&mut offers) => {
                let mut told = Ok(());
                if of_tools {
                    told = sink.notify_tool_list_changed().await;
                }
                if of_prompts && told.is_ok() {
                    told = sink.notify_prompt_list_changed().await;
                }
                told
            }
        };
        if told.is_err() {
            return;
        }
    }
}

/// Tells a client of the older eras, as long as its connection is there.
pub(super) fn tell_connection(shared: &Shared, peer: Peer<RoleServer>) {
    let mut revisions = Some(shared.gateway.executor().catalog().watch());
    let mut views = Some(shared.gateway.catalog_view().watch());
    let mut look = tokio::time::interval(CLOSED_LOOK);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = look.tick() => {
                    if peer.is_transport_closed() {
                        return;
                    }
                }
                () = change(&mut revisions) => {
                    if peer.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
                () = change(&mut views) => {
                    if peer.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
            }
        }
    });
}

/// The next resource of these that has changed; never, where none changes any more.
async fn update(updates: &mut Option<broadcast::Receiver<String>>, watched: &[String]) -> String {
    if let Some(updates) = updates
        && !watched.is_empty()
    {
        loop {
            match updates.recv().await {
                Ok(uri) if watched.contains(&uri) => return uri,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
    }
    std::future::pending().await
}

/// Returns with the next change; never, where nothing changes any more.
async fn change(revisions: &mut Option<watch::Receiver<u64>>) {
    if let Some(revisions) = revisions
        && revisions.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
