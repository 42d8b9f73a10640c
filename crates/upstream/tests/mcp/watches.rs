//! Subscriptions to resources at a server of the newest era.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::Principal;
use countersign::offer::{Asked, Offers as _, Refused, Request};
use countersign_testkit::patience::{until, within};
use rmcp::model::{
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::world::{World, folder, plain};

/// A server that tells changes of `notes://today`, and of nothing else.
#[derive(Clone, Default)]
struct Notes {
    changed: Arc<Notify>,
    listeners: Arc<AtomicUsize>,
}

const TODAY: &str = "notes://today";

impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe();
        ServerConfig::new(capabilities.build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2026_07_28])
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        let tool = Tool::new("note", "Notes.", schema);
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let accepted = SubscriptionFilter::builder().resource_subscription(TODAY);
        Some(accepted.build())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.listeners.fetch_add(1, Ordering::SeqCst);
        loop {
            tokio::select! {
                () = subscription.cancelled() => break,
                () = self.changed.notified() => {
                    if subscription.sink().notify_resource_updated(TODAY).await.is_err() {
                        break;
                    }
                }
            }
        }
        self.listeners.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

async fn served(notes: Notes) -> String {
    let service: StreamableHttpService<Notes, LocalSessionManager> = StreamableHttpService::new(
        move || Ok(notes.clone()),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

/// A subscription is one request that stays open, for all who subscribe over a connection, and ends with the last of them. One that the
/// server does not take is refused.
#[tokio::test]
async fn a_resource_of_a_newer_server_is_watched() {
    let notes = Notes::default();
    let url = served(notes.clone()).await;
    let manifest = format!(
        "[[upstream]]\nname = 'web'\nkind = 'mcp'\nurl = '{url}'\nallow_private = ['loopback']\ntrust = 'first_use'\n"
    );
    let world = World::new(folder(), &manifest).await;
    let tools: BTreeSet<String> = ["web.note".to_owned()].into();
    let ann = Principal::user("ann");
    let ann = world.executor.context_outside_calls(&ann).await.unwrap();
    let ask = async |asked: Asked, uri: &str| {
        let request = Request {
            context: &ann,
            tools: &tools,
            dialogue: None,
            asked,
            params: json!({"uri": format!("upstream://web/{uri}")}),
        };
        within(world.upstreams.ask(request)).await
    };
    let mut updates = world.upstreams.updates();
    for _ in 0..2 {
        let answer: Value = ask(Asked::Subscribe, TODAY).await.unwrap();
        assert_eq!(answer, json!({}));
    }
    let listeners = || notes.listeners.load(Ordering::SeqCst);
    until(async || listeners() == 1).await;
    notes.changed.notify_one();
    let told = within(updates.recv()).await.unwrap();
    assert_eq!(told, "upstream://web/notes://today");

    let other = ask(Asked::Subscribe, "notes://monday").await.unwrap_err();
    let is_refused = matches!(other, Refused::Protocol { code: -32_601, .. });
    assert!(is_refused, "{other:?}");
    ask(Asked::Unsubscribe, TODAY).await.unwrap();
    notes.changed.notify_one();
    within(updates.recv()).await.unwrap();
    ask(Asked::Unsubscribe, TODAY).await.unwrap();
    until(async || listeners() == 0).await;
    world.upstreams.close().await;
}

/// A subscription over a connection that users share ends with the last of its own subscribers: another user's end of a subscription that
/// they do not have changes nothing, at a server of either era.
#[tokio::test]
async fn one_user_does_not_end_the_subscription_of_another() {
    let notes = Notes::default();
    let url = served(notes.clone()).await;
    let newer = format!(
        "[[upstream]]\nname = 'web'\nkind = 'mcp'\nurl = '{url}'\nallow_private = ['loopback']\ntrust = 'first_use'\nshared = true\n"
    );
    let folder = folder();
    let older = plain(folder.path(), ", '--offers'", "shared = true\n");
    let world = World::new(folder, &format!("{newer}{older}")).await;
    let tools: BTreeSet<String> = ["web.note", "plain.say"].map(str::to_owned).into();
    let ask = async |user: &str, asked: Asked, uri: &str| {
        let user = Principal::user(user);
        let context = world.executor.context_outside_calls(&user).await.unwrap();
        let request = Request {
            context: &context,
            tools: &tools,
            dialogue: None,
            asked,
            params: json!({ "uri": uri }),
        };
        let answer: Value = within(world.upstreams.ask(request)).await.unwrap();
        assert_eq!(answer, json!({}));
    };
    let uris = [
        "upstream://web/notes://today",
        "upstream://plain/notes://today",
    ];
    for uri in uris {
        ask("ann", Asked::Subscribe, uri).await;
        ask("bob", Asked::Unsubscribe, uri).await;
        ask("eve", Asked::Subscribe, uri).await;
        ask("eve", Asked::Unsubscribe, uri).await;
        ask("eve", Asked::Unsubscribe, uri).await;
    }
    let listeners = || notes.listeners.load(Ordering::SeqCst);
    until(async || listeners() == 1).await;
    let mut updates = world.upstreams.updates();
    notes.changed.notify_one();
    assert_eq!(within(updates.recv()).await.unwrap(), uris[0]);
    let watched = || world.lines("watched");
    assert!(
        !watched().contains(&"- notes://today".to_owned()),
        "{:?}",
        watched()
    );
    for uri in uris {
        ask("ann", Asked::Unsubscribe, uri).await;
    }
    until(async || listeners() == 0).await;
    until(async || watched().contains(&"- notes://today".to_owned())).await;
    world.upstreams.close().await;
}
