//! Credentials for upstreams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::principal::BearerToken;
use countersign::{Principal, ToolCall};

use crate::service::{Service, json as answer};
use crate::world::{World, told};

const READ: &str = r#"
    [[tool]]
    name = "svc.get"
    upstream = "svc"
    description = "Reads."
    request = { method = "GET", path = "/get" }
"#;

fn secret(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("secret");
    std::fs::write(&path, text).unwrap();
    format!("file:{}", path.display())
}

/// A21: fixed credentials, each in its place, and never in what a caller sees.
#[tokio::test]
async fn fixed_credentials_are_sent() {
    let folder = tempfile::tempdir().unwrap();
    let reference = secret(&folder, "s3cret value");
    let mut lines = Vec::new();
    for auth in [
        format!("auth.bearer.token = '{reference}'"),
        format!("auth.basic = {{ username = 'u', password = '{reference}' }}"),
        format!("auth.header = {{ name = 'X-Key', value = '{reference}', prefix = 'Token ' }}"),
        format!("auth.query = {{ name = 'api key', value = '{reference}' }}"),
        format!("auth.cookie = {{ name = 'sid', value = '{reference}' }}"),
    ] {
        let service = Service::start(|_, _| answer(403, "{}")).await;
        let world = World::new(&service, &auth, READ);
        let reply = world.call("svc.get", "{}").await;
        assert!(
            !serde_json::to_string(&reply).unwrap().contains("s3cret"),
            "{reply:?}"
        );
        let seen = service.last();
        let headers = ["authorization", "x-key", "cookie"].map(|name| seen.header(name));
        lines.push(format!("{} {}", seen.target, headers.join(" ")));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    /base/get Bearer s3cret value  
    /base/get Basic dTpzM2NyZXQgdmFsdWU=  
    /base/get  Token s3cret value 
    /base/get?api%20key=s3cret%20value   
    /base/get   sid=s3cret%20value
    "#);
}

/// An issuer whose tokens are counted; each is good for an hour.
async fn issuer() -> (Service, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let issued = count.clone();
    let issuer = Service::start(move |seen, _| {
        if seen.text().contains("subject_token=bad") {
            return answer(400, r#"{"error": "invalid_grant"}"#);
        }
        let n = issued.fetch_add(1, Ordering::SeqCst) + 1;
        answer(
            200,
            &format!(r#"{{"access_token": "t{n}", "token_type": "Bearer", "expires_in": 3600}}"#),
        )
    })
    .await;
    (issuer, count)
}

/// B17: one token for many calls at once; a token that is taken back is renewed once.
#[tokio::test]
async fn a_client_token_is_fetched_once_and_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let reference = secret(&folder, "pass");
    let (issuer, count) = issuer().await;
    let service = Service::start(|seen, _| match seen.header("authorization") {
        "Bearer t1" if seen.target.contains("after=revoked") => answer(401, "{}"),
        "Bearer t1" | "Bearer t2" => answer(200, "{}"),
        _ => answer(500, "{}"),
    })
    .await;
    let auth = format!(
        "auth.client_credentials = {{ token_url = '{}/token', client_id = 'gw', client_secret = '{reference}', scopes = ['a', 'b'] }}",
        issuer.url
    );
    let after = READ.replace("svc.get", "svc.after").replace(
        "path = \"/get\"",
        "path = \"/get\", query = { after = \"revoked\" }",
    );
    let world = Arc::new(World::new(&service, &auth, &format!("{READ}{after}")));
    let calls = (0..10).map(|_| {
        let world = world.clone();
        tokio::spawn(async move { world.call("svc.get", "{}").await.ok })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap());
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let asked = issuer.last();
    assert_eq!(asked.text(), "grant_type=client_credentials&scope=a%20b");
    assert_eq!(asked.header("authorization"), "Basic Z3c6cGFzcw==");
    assert!(world.call("svc.after", "{}").await.ok);
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// B17: the caller's own token is exchanged (RFC 8693); a caller without one is refused and nothing is sent.
#[tokio::test]
async fn the_callers_token_is_exchanged() {
    let folder = tempfile::tempdir().unwrap();
    let reference = secret(&folder, "pass");
    let (issuer, _) = issuer().await;
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let auth = format!(
        "auth.token_exchange = {{ token_url = '{}/token', client_id = 'gw', client_secret = '{reference}', audience = 'svc', client_auth = 'post' }}",
        issuer.url
    );
    let world = World::new(&service, &auth, READ);
    let reply = world.call("svc.get", "{}").await;
    insta::assert_snapshot!(told(&reply), @r#"UNAUTHORIZED: the upstream svc needs the caller's own token, and the call came without one [final  ]"#);
    assert_eq!(service.seen().len() + issuer.seen().len(), 0);
    let call = |token: &str| {
        let ann = Principal::user("ann").with_token(BearerToken::new(token));
        ToolCall::new("svc.get", "{}", ann)
    };
    assert!(world.executor.execute(call("own")).await.ok);
    assert!(world.executor.execute(call("own")).await.ok);
    assert_eq!(service.last().header("authorization"), "Bearer t1");
    insta::assert_snapshot!(issuer.last().text(), @r#"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=own&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&audience=svc&client_id=gw&client_secret=pass"#);
    assert_eq!(issuer.seen().len(), 1);
    assert!(world.executor.execute(call("other")).await.ok);
    assert_eq!(service.last().header("authorization"), "Bearer t2");
    let reply = world.executor.execute(call("bad")).await;
    insta::assert_snapshot!(told(&reply), @r#"UPSTREAM_ERROR: the issuer of the upstream svc refused a token with status 400; nothing was sent [final  ]"#);
}

/// B17, A21: a user's own token is kept sealed, is used for that user only, and can be removed.
#[tokio::test]
async fn a_users_token_is_kept_for_the_user() {
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let world = World::new(&service, "auth.user_token = {}", READ);
    let reply = world.call("svc.get", "{}").await;
    insta::assert_snapshot!(told(&reply), @r#"UNAUTHORIZED: the user has stored no token for the upstream svc [final  ]"#);
    world
        .data(
            "upstream.store_token",
            r#"{"upstream": "svc", "token": "anns"}"#,
        )
        .await;
    assert!(world.call("svc.get", "{}").await.ok);
    assert_eq!(service.last().header("authorization"), "Bearer anns");
    let other = ToolCall::new("svc.get", "{}", Principal::user("bob"));
    assert!(
        !world.executor.execute(other).await.ok,
        "another user has none"
    );
    world
        .data("upstream.store_token", r#"{"upstream": "svc"}"#)
        .await;
    assert!(!world.call("svc.get", "{}").await.ok);
    assert_eq!(service.seen().len(), 1);
}
