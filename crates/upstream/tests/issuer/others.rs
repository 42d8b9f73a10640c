//! Issuers that others have written, so that our reading of OAuth is not on both sides.

use std::sync::Arc;

use countersign::Principal;
use countersign::principal::BearerToken;
use countersign_testkit::patience::until;
use jsonwebtoken::Algorithm;
use serde_json::json;

use crate::process::Issuer;
use crate::service::{Service, json as answer};
use crate::{World, credentials, is_absent, resource};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// B17: `oidc-provider` takes both ways in which the client proves itself, with a secret that has to be encoded, and its tokens are renewed.
#[tokio::test]
async fn a_certified_issuer_gives_and_renews_client_tokens() {
    for (method, client_auth) in [
        ("client_secret_basic", "basic"),
        ("client_secret_post", "post"),
    ] {
        let issuer = Arc::new(Issuer::oidc_provider(2, method));
        let service = resource(&issuer, Algorithm::RS256).await;
        let world = World::new(&service, |client| {
            let url = issuer.endpoint();
            format!(
                "auth.client_credentials = {{ token_url = '{url}', {client}, scopes = ['orders'], client_auth = '{client_auth}' }}"
            )
        });
        until(async || {
            let reply = world.call(Principal::user("ann"), "svc.get", "{}").await;
            assert_eq!(reply.data["sub"], "gw", "{method}: {reply:?}");
            issuer.issued("client_credentials") >= 2
        })
        .await;
        assert!(service.seen().len() > 2, "a token serves many calls");
        let sinks = world.sinks().await;
        for token in credentials(&service) {
            is_absent(&token, &sinks);
        }
    }
}

/// B17: `oidc-provider` refuses a client that it does not know, and this is reported as such.
#[tokio::test]
async fn a_certified_issuer_that_refuses_the_client_is_told() {
    let issuer = Arc::new(Issuer::oidc_provider(60, "client_secret_basic"));
    let service = resource(&issuer, Algorithm::RS256).await;
    let world = World::new(&service, |client| {
        let (url, client) = (issuer.endpoint(), client.replace("gw", "other"));
        format!("auth.client_credentials = {{ token_url = '{url}', {client} }}")
    });
    let reply = world.call(Principal::user("ann"), "svc.order", "{}").await;
    let message = reply.error.unwrap().message.to_string();
    assert!(
        message.contains("refused a token with status 401"),
        "{message}"
    );
    assert!(service.seen().is_empty());
    assert_eq!(issuer.issued("client_credentials"), 0);
}

/// B17, A21: `idpyoidc` exchanges the tokens of callers by its own reading of RFC 8693. Each user has a token of the same subject for our client, fetched
/// once; a forged token and an audience that the issuer does not allow are refused.
#[tokio::test]
async fn another_issuer_exchanges_the_tokens_of_callers() {
    let issuer = Arc::new(Issuer::idpyoidc());
    let own = issuer.clone();
    let service = Service::start(move |seen, _| {
        let token = seen.header("authorization").strip_prefix("Bearer ");
        match token.and_then(|token| own.claims(token)) {
            Some(claims) => answer(200, &claims.to_string()),
            None => answer(401, "{}"),
        }
    })
    .await;
    let world = |audience: &str| {
        World::new(&service, |client| {
            let url = issuer.endpoint();
            format!(
                "auth.token_exchange = {{ token_url = '{url}', {client}, audience = '{audience}', scopes = ['orders'], client_auth = 'post' }}"
            )
        })
    };
    let by = |user: &str, token: &str| Principal::user(user).with_token(BearerToken::new(token));
    let login = |user: &str| issuer.login_elsewhere("app", user);
    let (ann, bob) = (login("ann"), login("bob"));
    let allowed = world("svc");
    let mut subjects = Vec::new();
    for (user, token) in [("ann", &ann), ("bob", &bob), ("ann", &ann)] {
        let before = issuer.claims(token).unwrap();
        let reply = allowed.call(by(user, token), "svc.order", "{}").await;
        assert!(reply.ok, "{reply:?}");
        assert_eq!(reply.data["sub"], before["sub"], "the same user");
        assert_eq!(
            (&before["client_id"], &reply.data["client_id"]),
            (&json!("app"), &json!("gw"))
        );
        assert_eq!(reply.data["scope"], "orders");
        subjects.push(reply.data["sub"].clone());
    }
    assert_ne!(subjects[0], subjects[1]);
    // The issuer says so before it answers, and is read beside.
    until(async || issuer.issued(EXCHANGE) >= 2).await;
    assert_eq!(
        issuer.audiences(EXCHANGE),
        [json!(["svc"]), json!(["svc"])],
        "one a caller, each for the service"
    );

    let sent = service.seen().len();
    let forged = format!("{ann}x");
    for (world, token) in [(&allowed, &forged), (&world("other"), &ann)] {
        let reply = world.call(by("ann", token), "svc.get", "{}").await;
        let message = reply.error.unwrap().message.to_string();
        assert!(
            message.contains("refused a token with status 400"),
            "{message}"
        );
    }
    assert_eq!(service.seen().len(), sent, "nothing was sent");
    let sinks = allowed.sinks().await;
    for secret in credentials(&service).iter().chain([&ann, &bob]) {
        is_absent(secret, &sinks);
    }
}

/// B17, A21: the audience of the configuration is that of the token which `idpyoidc` issues. A service that looks at the audience takes the token for
/// itself, and neither the one that the caller came with nor one for another service.
#[tokio::test]
async fn another_issuer_binds_the_token_to_the_service() {
    let issuer = Arc::new(Issuer::idpyoidc());
    let service = resource(&issuer, Algorithm::RS256).await;
    let own = issuer.login_elsewhere("gw", "ann");
    assert_eq!(issuer.claims(&own).unwrap()["aud"], json!(["gw"]));
    assert_eq!(issuer.verified(&own, Algorithm::RS256), None);
    for (audience, is_taken) in [("svc", true), ("billing", false)] {
        let world = World::new(&service, |client| {
            let url = issuer.endpoint();
            format!(
                "auth.token_exchange = {{ token_url = '{url}', {client}, audience = '{audience}', scopes = ['orders'], client_auth = 'post' }}"
            )
        });
        let ann = Principal::user("ann").with_token(BearerToken::new(own.as_str()));
        let reply = world.call(ann, "svc.order", "{}").await;
        assert_eq!(reply.ok, is_taken, "{audience}: {reply:?}");
        let sent = service.last();
        let token = sent.header("authorization").strip_prefix("Bearer ");
        let claims = issuer.claims(token.unwrap()).unwrap();
        assert_eq!(claims["aud"], json!([audience]), "{claims}");
    }
    until(async || issuer.issued(EXCHANGE) >= 2).await;
    let asked = issuer.audiences(EXCHANGE);
    assert!(
        asked.starts_with(&[json!(["svc"]), json!(["billing"])]),
        "{asked:?}"
    );
}
