//! Credentials for upstreams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::contract::{Actor, ActorType};
use countersign::principal::BearerToken;
use countersign::{Principal, ToolCall};

use crate::service::{Act, Service, json as answer};
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

/// A21, B17: a service that wants a key and an application key gets both, and neither of them is answered. Two that would be written
/// to the same place are a mistake of the configuration.
#[tokio::test]
async fn several_credentials_are_sent_together() {
    let folder = tempfile::tempdir().unwrap();
    let first = secret(&folder, "first-secret");
    let (second, third) = (
        first.replace("secret", "second"),
        first.replace("secret", "third"),
    );
    std::fs::write(folder.path().join("second"), "second-secret").unwrap();
    std::fs::write(folder.path().join("third"), "third-secret").unwrap();
    let auth = format!(
        "auth = [{{ header = {{ name = 'DD-API-KEY', value = '{first}' }} }}, {{ header = {{ name = 'DD-APPLICATION-KEY', value = '{second}' }} }}, {{ query = {{ name = 'site', value = '{third}' }} }}]"
    );
    let service = Service::start(|seen, _| {
        let keys = ["dd-api-key", "dd-application-key"].map(|name| seen.header(name));
        answer(200, &format!("{:?}", [keys[0], keys[1], &seen.target]))
    })
    .await;
    let world = World::new(&service, &auth, READ);
    let reply = world.call("svc.get", "{}").await;
    assert_eq!(
        told(&reply),
        r#"ok ["[credential]","[credential]","/base/get?site=[credential]"] "#
    );
    let seen = service.last();
    assert_eq!(seen.header("dd-api-key"), "first-secret");
    assert_eq!(seen.header("dd-application-key"), "second-secret");
    assert_eq!(seen.target, "/base/get?site=third-secret");
    let twice = auth.replace("DD-APPLICATION-KEY", "dd-api-key");
    let complaints = crate::world::manifest(&service, &twice, READ).check();
    let messages: Vec<_> = complaints.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        messages,
        ["another credential has this place in the request already"]
    );
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
    insta::assert_snapshot!(told(&reply), @r#"UNAUTHORIZED: the user has not stored a token for the upstream svc [final  ]"#);
    let listed = async || world.data("upstream.list_tokens", "{}").await.to_string();
    let none = r#"{"upstreams":[{"kept":false,"upstream":"svc"}]}"#;
    assert_eq!(listed().await, none);
    world
        .data(
            "upstream.store_token",
            r#"{"upstream": "svc", "token": "anns"}"#,
        )
        .await;
    assert_eq!(listed().await, none.replace("false", "true"));
    let other = ToolCall::new("upstream.list_tokens", "{}", Principal::user("bob"));
    let other = world.executor.execute(other).await;
    assert_eq!(
        other.data.to_string(),
        none,
        "a token of another user is not told"
    );
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

/// B17: a user's token that the upstream refuses is the user's to replace, and not the operator's.
#[tokio::test]
async fn a_refused_token_of_a_user_is_the_users_to_replace() {
    let service = Service::start(|_, _| answer(401, "{}")).await;
    let world = World::new(&service, "auth.user_token = {}", READ);
    let arguments = r#"{"upstream": "svc", "token": "expired"}"#;
    world.data("upstream.store_token", arguments).await;
    let reply = world.call("svc.get", "{}").await;
    insta::assert_snapshot!(told(&reply), @r#"UNAUTHORIZED: the upstream svc refused the user's token with status 401 [final  401]"#);
    let hint = reply.error.unwrap().details.hint.unwrap().to_string();
    assert!(hint.contains("upstream.store_token"), "{hint}");
}

/// B17: many calls whose token was taken back at the same time fetch one new token, not one each.
#[tokio::test]
async fn a_token_that_was_taken_back_is_renewed_once_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let reference = secret(&folder, "pass");
    let (issuer, count) = issuer().await;
    let revoked = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_revoked = revoked.clone();
    let service = Service::start(move |seen, _| match seen.header("authorization") {
        "Bearer t1" if is_revoked.load(Ordering::SeqCst) => answer(401, "{}"),
        _ => answer(200, "{}"),
    })
    .await;
    let auth = format!(
        "auth.client_credentials = {{ token_url = '{}/token', client_id = 'gw', client_secret = '{reference}' }}",
        issuer.url
    );
    let world = Arc::new(World::new(&service, &auth, READ));
    assert!(world.call("svc.get", "{}").await.ok);
    revoked.store(true, Ordering::SeqCst);
    let calls = (0..20).map(|_| {
        let world = world.clone();
        tokio::spawn(async move { world.call("svc.get", "{}").await.ok })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap());
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// T8, B17: an issuer that does not answer leaves no doubt about a write, and is not the upstream's failure.
#[tokio::test]
async fn an_issuer_that_hangs_leaves_no_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let reference = secret(&folder, "pass");
    let issuer = Service::start(|_, before| {
        if before < 2 {
            Act::Wait(Arc::new(tokio::sync::Notify::new()))
        } else {
            answer(200, r#"{"access_token": "t", "expires_in": "3600"}"#)
        }
    })
    .await;
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let auth = format!(
        "timeouts.attempt_ms = 200\nbreaker.failures = 1\n\
         auth.client_credentials = {{ token_url = '{}', client_id = 'gw', client_secret = '{reference}' }}",
        issuer.url
    );
    let write = READ.replace("GET", "POST");
    let world = World::new(&service, &auth, &write);
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.push(told(&world.keyed("svc.get", "{}", "k").await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    UPSTREAM_ERROR: the issuer of the upstream svc gave no token; nothing was sent [retryable  ]
    UPSTREAM_ERROR: the issuer of the upstream svc gave no token; nothing was sent [retryable  ]
    ok {} 
    ok {}
    "#);
    assert_eq!(service.seen().len(), 1);
    assert_eq!(
        issuer.seen().len(),
        3,
        "a number of seconds that is a text is one"
    );
}

/// B17: a token that cannot be sent as a bearer token is not sent.
#[tokio::test]
async fn a_token_of_another_type_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let reference = secret(&folder, "pass");
    for body in [
        r#"{"access_token": "t", "token_type": "DPoP"}"#,
        r#"{"access_token": ""}"#,
        r#"{"token": "t"}"#,
        "<html>",
    ] {
        let issuer = Service::start(|_, _| answer(200, body)).await;
        let service = Service::start(|_, _| answer(200, "{}")).await;
        let auth = format!(
            "auth.client_credentials = {{ token_url = '{}', client_id = 'gw', client_secret = '{reference}' }}",
            issuer.url
        );
        let world = World::new(&service, &auth, READ);
        let reply = world.call("svc.get", "{}").await;
        assert_eq!(
            told(&reply),
            "UPSTREAM_ERROR: the issuer of the upstream svc gave no token; nothing was sent [retryable  ]",
            "{body}"
        );
        assert!(service.seen().is_empty());
    }
}

/// B15, B17: cookies of the arguments and of the credential stand side by side.
#[tokio::test]
async fn a_cookie_credential_does_not_take_the_place_of_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let reference = secret(&folder, "s3cret");
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let tool =
        format!("{READ}\nparameters = [{{ name = 'theme' }}]\narguments.theme.in = 'cookie'");
    let auth = format!("auth.cookie = {{ name = 'sid', value = '{reference}' }}");
    let world = World::new(&service, &auth, &tool);
    world.data("svc.get", r#"{"theme": "dark"}"#).await;
    assert_eq!(service.last().header("cookie"), "theme=dark; sid=s3cret");
}

/// A21, A12: what an upstream quotes of our credential is not handed on, wherever the excerpt is cut.
#[tokio::test]
async fn a_credential_that_is_quoted_is_not_handed_on() {
    let folder = tempfile::tempdir().unwrap();
    let reference = secret(&folder, "s3cret-value");
    for auth in [
        format!("auth.bearer.token = '{reference}'"),
        format!("auth.basic = {{ username = 'u', password = '{reference}' }}"),
        format!("auth.query = {{ name = 'key', value = '{reference}' }}"),
        format!("auth.cookie = {{ name = 'sid', value = '{reference}' }}"),
    ] {
        let service = Service::start(|seen, before| {
            let own = format!(
                "{} {} {}",
                seen.header("authorization"),
                seen.header("cookie"),
                seen.target
            );
            let filler = "x".repeat(490 * before);
            answer(500, &format!("{filler} {own} mail ann@example.com"))
        })
        .await;
        let world = World::new(&service, &format!("retries.attempts_max = 1\n{auth}"), READ);
        for _ in 0..2 {
            let reply = world.call("svc.get", "{}").await;
            let text = serde_json::to_string(&reply).unwrap();
            for part in ["s3cret", "dTpzM2NyZXQ", "ann@"] {
                assert!(!text.contains(part), "{text}");
            }
            assert!(text.contains("upstream_body"), "{text}");
        }
    }
}

/// T8, B17: a user who stores another token while a call runs does not make that call doubtful.
#[tokio::test]
async fn a_token_that_is_replaced_meanwhile_changes_nothing() {
    let go = Arc::new(tokio::sync::Notify::new());
    let held = go.clone();
    let service = Service::start(move |_, _| Act::Late(held.clone(), b"{}".to_vec())).await;
    let write = READ.replace("GET", "POST");
    let world = Arc::new(World::new(&service, "auth.user_token = {}", &write));
    let store = |token: &str| format!(r#"{{"upstream": "svc", "token": "{token}"}}"#);
    world.data("upstream.store_token", &store("one")).await;
    let calling = world.clone();
    let call = tokio::spawn(async move { calling.keyed("svc.get", "{}", "k").await });
    service.arrival().await;
    world.data("upstream.store_token", &store("two")).await;
    go.notify_one();
    assert_eq!(told(&call.await.unwrap()), "ok {} ");
}

/// A21, B17: an agent cannot replace the token of its user, nor remove it.
#[tokio::test]
async fn an_agent_cannot_store_a_token() {
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let world = World::new(&service, "auth.user_token = {}", READ);
    world
        .data(
            "upstream.store_token",
            r#"{"upstream": "svc", "token": "anns"}"#,
        )
        .await;
    let actor = Actor {
        kind: ActorType::Agent,
        id: "bot".to_owned(),
    };
    let agent = Principal::new(actor, "ann");
    for arguments in [
        r#"{"upstream": "svc", "token": "evil"}"#,
        r#"{"upstream": "svc"}"#,
    ] {
        let call = ToolCall::new("upstream.store_token", arguments, agent.clone());
        let reply = world.executor.execute(call).await;
        assert_eq!(
            told(&reply),
            "FORBIDDEN: a token is stored by its user, not by an agent [final  ]"
        );
    }
    let call = ToolCall::new("svc.get", "{}", agent);
    assert!(world.executor.execute(call).await.ok);
    assert_eq!(service.last().header("authorization"), "Bearer anns");
}
