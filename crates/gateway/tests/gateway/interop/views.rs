//! Pages built from a tool's answer, and their discovery by clients.

use countersign::Principal;
use countersign_gateway::Gateway;
use countersign_gateway::http::interop::{Page, Profile, View};
use insta::assert_snapshot;

use super::*;

/// Keeps one order for each user.
struct Show;

#[derive(Deserialize, ToolArgs)]
struct ShowArgs {
    /// Which.
    order_id: String,
}

impl Tool for Show {
    const NAME: &'static str = "orders.show";
    const DESCRIPTION: &'static str = "Shows an order of the user.";
    type Args = ShowArgs;
    type Output = Value;

    async fn call(&self, ctx: &CallContext, args: ShowArgs) -> Result<Value, ToolError> {
        let request = ctx.request();
        if args.order_id != format!("o_{}", request.user_id) {
            return Err(ToolError::not_found("there is no such order").field("/order_id"));
        }
        Ok(json!({"order": args.order_id, "locale": request.locale}))
    }
}

fn views() -> Vec<View> {
    let view = |profile, resource| {
        View::new(
            profile,
            resource,
            "orders.show",
            "order_id",
            |data, page| {
                Ok(json!({
                    "id": data["order"],
                    "locale": [&data["locale"], &json!(page.locale)],
                    "continue_url": page.continue_url,
                }))
            },
        )
    };
    let broken = |_: &Value, _: &Page| Err("it does not add up".into());
    vec![
        view(Profile::Acp, "checkout_sessions"),
        view(Profile::Ucp, "checkout-sessions"),
        View::new(Profile::Acp, "broken", "orders.show", "order_id", broken),
    ]
}

async fn world_with_views() -> World {
    let settings = Settings {
        checkout_url: Some("https://shop.example.com/orders/{id}".to_owned()),
        ..Settings::default()
    };
    let catalog = Catalog::builder().tool(Show).build().unwrap();
    World::viewing(settings, catalog, |gateway: Gateway| {
        gateway.with_views(views())
    })
    .await
}

/// The page of one's own order, in one's own language; requesting it leaves a record.
#[tokio::test]
async fn a_page_is_made_from_a_call() {
    let world = world_with_views().await;
    let headers = [("request-id", "r_1"), ("accept-language", "zh-CN,en;q=0.5")];
    for path in [
        "/acp/checkout_sessions/o_u_local",
        "/ucp/checkout-sessions/o_u_local",
    ] {
        let answer = send(&world, "GET", path, &headers, "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.json(),
            json!({"id": "o_u_local", "locale": ["zh-CN", "zh-CN"], "continue_url": "https://shop.example.com/orders/o_u_local"})
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("request-id"), Some("r_1"));
    }
    let records = send(&world, "GET", "/v1/calls/r_1", &[], "").await.json();
    assert_eq!(records["records"].as_array().unwrap().len(), 2);
    assert_eq!(
        records["records"][0]["record"]["tool"]["name"],
        "orders.show"
    );
}

/// Another user's order is answered exactly like a missing one; a caller that acts for others names the user.
#[tokio::test]
async fn only_ones_own() {
    let world = world_with_views().await;
    let check = async |world: &World, path: &str| {
        let answer = send(world, "GET", path, &[("request-id", "r_1")], "").await;
        format!("{} {}", answer.status, answer.json())
    };
    assert_snapshot!(check(&world, "/acp/checkout_sessions/o_u_2").await, @r#"404 {"code":"not_found","message":"there is no such order","type":"invalid_request"}"#);
    assert_snapshot!(check(&world, "/ucp/checkout-sessions/o_u_2").await, @r#"200 {"messages":[{"code":"not_found","content":"there is no such order","content_type":"plain","severity":"unrecoverable","type":"error"}],"ucp":{"status":"error","version":"2026-04-08"}}"#);
    let named = check(&world, "/acp/checkout_sessions/o_u_2?user_id=u_2").await;
    assert!(named.starts_with("200 "), "{named}");
    let other = world
        .beside_with(Principal::user("u_3"), |gateway| {
            gateway.with_views(views())
        })
        .await;
    assert_snapshot!(check(&other, "/acp/checkout_sessions/o_u_2?user_id=u_2").await, @r#"403 {"code":"forbidden","message":"the user_id in the envelope is not the user of the credential; leave it out, or use a credential that may act for others","type":"invalid_request"}"#);
    assert_snapshot!(check(&other, "/ucp/checkout-sessions/o_u_2?user_id=u_2").await, @r#"403 {"code":"forbidden","content":"the user_id in the envelope is not the user of the credential; leave it out, or use a credential that may act for others"}"#);
}

/// A defect of the page is reported as one, and an unregistered page does not exist.
#[tokio::test]
async fn what_is_not_there_is_not_there() {
    let world = world_with_views().await;
    let check = async |path: &str| {
        let answer = send(&world, "GET", path, &[("request-id", "r_1")], "").await;
        format!("{} {}", answer.status, answer.json())
    };
    assert_snapshot!(check("/acp/broken/o_u_local").await, @r#"502 {"code":"upstream_error","message":"the page could not be made","type":"processing_error"}"#);
    assert_snapshot!(check("/ucp/broken/o_u_local").await, @r#"404 {"code":"not_found","content":"this server has no \"broken\" in the words of a standard; GET /openapi.json lists all paths"}"#);
    assert_snapshot!(check("/acp/checkout_sessions/o_u_local?usr=1").await, @r#"400 {"code":"invalid","message":"\"usr\" is not an option of this address; did you mean user_id?","type":"invalid_request"}"#);
}

/// Clients find the pages by the host alone; a server without pages does not advertise any.
#[tokio::test]
async fn pages_are_found() {
    let world = world_with_views().await;
    let check = async |world: &World, path: &str| {
        let answer = send(world, "GET", path, &[], "").await;
        let cache = answer.header("cache-control").unwrap_or("-").to_owned();
        format!("{} {cache} {}", answer.status, answer.json())
    };
    assert_snapshot!(check(&world, "/.well-known/acp.json").await, @r#"200 public, max-age=3600 {"api_base_url":"http://localhost/acp","capabilities":{"services":[]},"protocol":{"name":"acp","supported_versions":["2026-04-17"],"version":"2026-04-17"},"transports":["rest"]}"#);
    assert_snapshot!(check(&world, "/.well-known/ucp").await, @r#"200 public, max-age=3600 {"ucp":{"capabilities":{},"payment_handlers":{},"services":{"dev.ucp.shopping":[{"endpoint":"http://localhost/ucp","transport":"rest","version":"2026-04-08"}]},"version":"2026-04-08"}}"#);
    let without = World::start().await;
    for path in ["/.well-known/acp.json", "/.well-known/ucp"] {
        let answer = send(&without, "GET", path, &[], "").await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "NOT_FOUND"));
    }
}
