//! Signing in at an issuer: the way there and the way back.
//!
//! The browser keeps one secret between the two, in a cookie that comes back from another site (`SameSite=Lax`). The session's own
//! cookie does not (`Strict`), so the way back ends on a page of ours that leads on.

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use countersign_gateway::identity::{FromIssuer, NotLetIn, NotSignedIn};
use http::HeaderMap;
use url::form_urlencoded;

use super::{SESSION, SignIn, add_cookie, cookie, language, local, query, set_cookie, url};
use crate::answer::{self, Stop, see_other};
use crate::assets;
use crate::words::{self, Words};
use crate::{Console, Shared};

/// Path to which the issuer redirects the browser.
pub(super) const RETURN: &str = "/sign-in/return";

/// The secret of a sign-in that has begun, and the page that was wanted.
const BEGUN: &str = "countersign_sign_in";

/// Maximum duration of a sign-in, in seconds.
const BEGUN_SECONDS: u32 = 600;

/// The longest address that is remembered.
const NEXT_BYTES_MAX: usize = 1_000;

/// The name of the issuer: its host.
pub(super) fn name(console: &Console) -> Option<String> {
    let client = console.gateway.identity().issuer_client()?;
    let url = url::Url::parse(&client.issuer).ok();
    let host = url.and_then(|url| url.host_str().map(str::to_owned));
    Some(host.unwrap_or_else(|| client.issuer.clone()))
}

/// Goes to the issuer.
pub(super) async fn go(
    State(console): State<Shared>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Stop> {
    let w = words::of(language(&headers));
    let query = query(request.uri().query());
    let next = query.iter().find(|(name, _)| name == "next");
    let next = local(next.map_or("/", |(_, value)| value.as_str()));
    let next = if next.len() > NEXT_BYTES_MAX {
        "/"
    } else {
        next
    };
    let gateway = &console.gateway;
    let return_to = format!("{}{RETURN}", url(&console, &headers));
    let way = gateway.sessions().to_issuer(gateway.identity(), &return_to);
    match way.await {
        Ok(way) => {
            let mut response = see_other(&way.url);
            let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
            set_begun(
                &console,
                &mut response,
                &format!("{}.{next}", way.secret),
                BEGUN_SECONDS,
            );
            Ok(response)
        }
        Err(error) => SignIn::refused(&console, w, next, told(&error, w)),
    }
}

/// Comes back from the issuer.
pub(super) async fn back(
    State(console): State<Shared>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Stop> {
    let w = words::of(language(&headers));
    let back = from_issuer(&query(request.uri().query()));
    let begun = cookie(&headers, BEGUN).unwrap_or_default();
    let (secret, next) = begun.split_once('.').unwrap_or_default();
    let next = form_urlencoded::parse(next.as_bytes()).next();
    let next = next.map(|(next, _)| next.into_owned()).unwrap_or_default();
    let gateway = &console.gateway;
    let now = gateway.executor().now();
    let return_to = format!("{}{RETURN}", url(&console, &headers));
    let signed_in = gateway.sessions().sign_in_from_issuer(
        gateway.identity(),
        (secret, &back),
        &return_to,
        now,
    );
    let mut response = match signed_in.await {
        Ok(cookie) => {
            let mut response = answer::html(&Arrived {
                w,
                version: &assets::VERSION,
                next: local(&next).to_owned(),
            })?;
            set_cookie(&console, &mut response, SESSION, &cookie);
            response
        }
        Err(NotSignedIn::Refused(refused)) => {
            let reason = refused.reason.as_str();
            tracing::warn!(
                reason,
                "a token of the issuer at which people sign in is not accepted"
            );
            SignIn::refused(&console, w, &next, w.token_not_accepted)?
        }
        Err(NotSignedIn::Agent) => {
            tracing::warn!(
                "a person who has signed in counts as an agent: the policy lacks the client_id in user_clients"
            );
            SignIn::refused(&console, w, &next, w.token_is_an_agents)?
        }
        Err(NotSignedIn::Issuer(error)) => SignIn::refused(&console, w, &next, told(&error, w))?,
    };
    // Whatever came of it, the secret has been used.
    set_begun(&console, &mut response, "", 0);
    Ok(response)
}

/// Query with which the issuer redirected the browser. A value that occurs twice is ignored.
fn from_issuer(query: &[(String, String)]) -> FromIssuer {
    let value = |name: &str| {
        let mut values = query.iter().filter(|(known, _)| known == name);
        match (values.next(), values.next()) {
            (Some((_, value)), None) => Some(value.clone()),
            (_, _) => None,
        }
    };
    FromIssuer {
        code: value("code").unwrap_or_default(),
        state: value("state").unwrap_or_default(),
        iss: value("iss"),
        error: value("error"),
    }
}

fn set_begun(console: &Console, response: &mut Response, value: &str, seconds: u32) {
    let text = format!("{BEGUN}={value}; Path=/sign-in; HttpOnly; SameSite=Lax; Max-Age={seconds}");
    add_cookie(console, response, text);
}

/// The reason for people; the log has more.
fn told(error: &NotLetIn, w: &'static Words) -> &'static str {
    match error {
        NotLetIn::NotConfigured => w.issuer_not_configured,
        NotLetIn::NotAsked => w.issuer_not_asked,
        NotLetIn::Declined(_) => w.issuer_declined,
        NotLetIn::Unusable(_) => {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "a person could not sign in"
            );
            w.issuer_unusable
        }
    }
}

/// The page after the way back.
#[derive(Template)]
#[template(path = "arrived.html")]
struct Arrived {
    w: &'static Words,
    version: &'static str,
    next: String,
}
