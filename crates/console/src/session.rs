//! Signing in and out, and who looks.
//!
//! The session itself is [`countersign_gateway::identity::Sessions`]; here it becomes a cookie that no script can read
//! and no other site can send.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use countersign::contract::Language;
use countersign_gateway::Caller;
use countersign_gateway::identity::{NotSignedIn, SignedIn, Use};
use http::header::{ACCEPT, ACCEPT_LANGUAGE, COOKIE, HOST, REFERER, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use url::form_urlencoded;

use crate::answer::{self, Stop, see_other};
use crate::assets;
use crate::words::{self, Words};
use crate::{Console, Shared};

mod issuer;

/// The session.
const SESSION: &str = "countersign_session";

/// The chosen language.
const LANGUAGE: &str = "countersign_language";

/// The longest form.
const FORM_BYTES_MAX: usize = 1 << 20;

/// A person who has signed in, and what they look at.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) console: Shared,
    pub(crate) caller: Caller,
    pub(crate) csrf: Arc<str>,
    pub(crate) words: &'static Words,
    pub(crate) path: String,
    /// Origin that the browser used, such as `http://127.0.0.1:8787`.
    pub(crate) url: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) wants_json: bool,
}

impl Visit {
    /// A value behind the question mark; `None` if it is empty.
    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

/// Fields of a form that was sent from a page of this session.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) visit: Visit,
    pub(crate) fields: Vec<(String, String)>,
}

impl Posted {
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// Puts the [`Visit`] into the extensions of a request, or leads to the sign-in.
pub(crate) async fn layer(
    State(console): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let gateway = &console.gateway;
    let (identity, sessions) = (gateway.identity(), gateway.sessions());
    let now = gateway.executor().now();
    let used = (now, usage(&request));
    let given = cookie(request.headers(), SESSION);
    let mut found = match &given {
        Some(cookie) => sessions.find(identity, cookie, used).await,
        None => None,
    };
    let mut begun = None;
    // On a first start there is no credential to ask for. Only looking begins a session.
    if found.is_none() && request.method() == Method::GET {
        begun = sessions.sign_in_openly(identity, now).await;
        if let Some(cookie) = &begun {
            found = sessions.find(identity, cookie, used).await;
        }
    }
    let wants_json = wants_json(&request);
    let Some(signed_in) = found else {
        return not_signed_in(&request, wants_json);
    };
    let language = language(request.headers());
    let visit = Visit {
        caller: signed_in.caller,
        csrf: signed_in.csrf,
        words: words::of(language),
        path: request.uri().path().to_owned(),
        url: url(&console, request.headers()),
        query: query(request.uri().query()),
        wants_json,
        console: console.clone(),
    };
    request.extensions_mut().insert(visit.clone());
    let mut response = next.run(request).await;
    if let Some(stop) = response.extensions_mut().remove::<Stop>() {
        response = stop.page(&visit).await;
    }
    if let Some(cookie) = begun {
        set_cookie(&console, &mut response, SESSION, &cookie);
    }
    response
}

/// Live pages ask by themselves.
fn usage(request: &Request) -> Use {
    let path = request.uri().path();
    let query = request.uri().query().unwrap_or_default();
    if path == "/calls/live" || query.contains("part=rows") {
        Use::ByItself
    } else {
        Use::ByHand
    }
}

fn not_signed_in(request: &Request, wants_json: bool) -> Response {
    if wants_json {
        let mut response = answer::typed(
            "{\"code\": \"UNAUTHORIZED\", \"message\": \"sign in first, or ask the API with a credential\"}",
            "application/json",
        );
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return response;
    }
    let wanted = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    if request.method() != Method::GET || wanted == "/" {
        return see_other("/sign-in");
    }
    let wanted: String = form_urlencoded::byte_serialize(wanted.as_bytes()).collect();
    see_other(&format!("/sign-in?next={wanted}"))
}

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/sign-in", get(ask).post(sign_in))
        .route("/sign-in/issuer", get(issuer::go))
        .route(issuer::RETURN, get(issuer::back))
        .route("/language/{tag}", get(choose))
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    w: &'static Words,
    version: &'static str,
    next: String,
    /// A one-time link that only has to be opened.
    link: String,
    /// The name of the issuer at which people sign in.
    issuer: Option<String>,
    error: Option<&'static str>,
}

impl SignIn {
    /// The page with a message.
    fn refused(
        console: &Console,
        w: &'static Words,
        next: &str,
        error: &'static str,
    ) -> Result<Response, Stop> {
        let mut response = answer::html(&Self {
            w,
            version: &assets::VERSION,
            next: next.to_owned(),
            link: String::new(),
            issuer: issuer::name(console),
            error: Some(error),
        })?;
        *response.status_mut() = StatusCode::FORBIDDEN;
        Ok(response)
    }
}

/// The page on which people sign in. A link is opened by its form, so that a program that looks ahead does not use it up.
async fn ask(State(console): State<Shared>, request: Request) -> Result<Response, Stop> {
    let query = query(request.uri().query());
    let value = |name: &str| {
        let found = query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    answer::html(&SignIn {
        w: words::of(language(request.headers())),
        version: &assets::VERSION,
        next: value("next"),
        link: value("link"),
        issuer: issuer::name(&console),
        error: None,
    })
}

/// Signs in by a key or by a link. A form of another site is refused before it comes here, by its `Origin`.
async fn sign_in(State(console): State<Shared>, request: Request) -> Result<Response, Stop> {
    let w = words::of(language(request.headers()));
    let fields = fields(request.into_body()).await?;
    let value = |name: &str| {
        let found = fields.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let gateway = &console.gateway;
    let (sessions, now) = (gateway.sessions(), gateway.executor().now());
    let begun = match (value("link"), value("key")) {
        ("", key) => sessions
            .sign_in(gateway.identity(), key, now)
            .await
            .map_err(|error| match error {
                NotSignedIn::Refused(_) | NotSignedIn::Issuer(_) => w.key_not_accepted,
                NotSignedIn::Agent => w.key_is_an_agents,
            }),
        (link, _) => sessions.redeem(link, now).ok_or(w.link_is_over),
    };
    match begun {
        Ok(cookie) => {
            let mut response = see_other(local(value("next")));
            set_cookie(&console, &mut response, SESSION, &cookie);
            Ok(response)
        }
        Err(error) => SignIn::refused(&console, w, value("next"), error),
    }
}

/// Ends the session, here and in the browser.
pub(crate) async fn sign_out(headers: HeaderMap, posted: Posted) -> Response {
    let console = &posted.visit.console;
    if let Some(cookie) = cookie(&headers, SESSION) {
        console.gateway.sessions().end(&cookie);
    }
    let mut response = see_other("/sign-in");
    let over = format!("{SESSION}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    if let Ok(over) = HeaderValue::try_from(over) {
        response.headers_mut().append(SET_COOKIE, over);
    }
    response
}

/// Chooses a language, and goes back.
async fn choose(
    State(console): State<Shared>,
    axum::extract::Path(tag): axum::extract::Path<String>,
    headers: HeaderMap,
) -> Response {
    let from = headers.get(REFERER).and_then(|from| from.to_str().ok());
    let from = from.and_then(|from| url::Url::parse(from).ok());
    let back = from.map(|from| from[url::Position::BeforePath..].to_owned());
    let mut response = see_other(local(back.as_deref().unwrap_or("/")));
    let chosen = words::of(Language::of(Some(&tag)));
    set_cookie(&console, &mut response, LANGUAGE, chosen.tag);
    response
}

impl<S: Send + Sync> FromRequestParts<S> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let visit = parts.extensions.get::<Self>().cloned();
        visit.ok_or_else(|| see_other("/sign-in"))
    }
}

impl<S: Send + Sync> FromRequest<S> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, state).await?;
        let fields = fields(body).await.map_err(IntoResponse::into_response)?;
        let posted = Self { visit, fields };
        let session = SignedIn {
            caller: posted.visit.caller.clone(),
            csrf: posted.visit.csrf.clone(),
        };
        if session.is_from_here(posted.get("csrf")) {
            return Ok(posted);
        }
        let message = posted.visit.words.form_too_old;
        Err(Stop::new(StatusCode::FORBIDDEN, "FORBIDDEN", message).into_response())
    }
}

async fn fields(body: Body) -> Result<Vec<(String, String)>, Stop> {
    let too_long = |_| {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Stop::new(status, "INVALID_ARGUMENT", "")
    };
    let body = Limited::new(body, FORM_BYTES_MAX).collect().await;
    let body = body.map_err(too_long)?.to_bytes();
    Ok(form_urlencoded::parse(&body).into_owned().collect())
}

fn query(query: Option<&str>) -> Vec<(String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .into_owned()
        .collect()
}

/// An address of this server; any other address leads to the first page.
fn local(address: &str) -> &str {
    let is_local = address.starts_with('/')
        && !address.starts_with("//")
        && !address.contains(['\\', '\r', '\n', '\t']);
    if is_local { address } else { "/" }
}

fn wants_json(request: &Request) -> bool {
    let accept = request.headers().get(ACCEPT);
    let accept = accept
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default();
    request.uri().path().rsplit('.').next() == Some("json")
        || accept.contains("application/json") && !accept.contains("text/html")
}

/// The address of this server as the browser knows it. The edge has looked at the host before.
fn url(console: &Console, headers: &HeaderMap) -> String {
    let public = console.gateway.settings().public_url.as_deref();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    match public {
        Some(public) => public.trim_end_matches('/').to_owned(),
        None => format!("http://{}", host.unwrap_or("127.0.0.1:8787")),
    }
}

fn language(headers: &HeaderMap) -> Language {
    let chosen = cookie(headers, LANGUAGE);
    let accepted = headers
        .get(ACCEPT_LANGUAGE)
        .and_then(|text| text.to_str().ok());
    Language::of(chosen.as_deref().or(accepted.and_then(preferred)))
}

/// The tag of `Accept-Language` with the highest quality among the languages that there are, the first of equals.
fn preferred(accepted: &str) -> Option<&str> {
    let mut best: Option<(f32, &str)> = None;
    for range in accepted.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let tag = parts.next().unwrap_or_default();
        let primary = tag.split('-').next().unwrap_or_default();
        let is_spoken = ["en", "zh"]
            .iter()
            .any(|one| primary.eq_ignore_ascii_case(one));
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let quality = quality.map_or(1.0, |text| text.trim().parse().unwrap_or(0.0));
        if is_spoken && quality > best.map_or(0.0, |(quality, _)| quality) {
            best = Some((quality, tag));
        }
    }
    best.map(|(_, tag)| tag)
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let cookies = headers.get_all(COOKIE).into_iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then(|| value.to_owned())
    })
}

fn set_cookie(console: &Console, response: &mut Response, name: &str, value: &str) {
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict");
    add_cookie(console, response, text);
}

fn add_cookie(console: &Console, response: &mut Response, mut text: String) {
    let public = console.gateway.settings().public_url.as_deref();
    if public.is_some_and(|url| url.starts_with("https:")) {
        text.push_str("; Secure");
    }
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().append(SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_to_another_site() {
        for kept in ["/", "/calls?code=FORBIDDEN", "/tools/a.b"] {
            assert_eq!(local(kept), kept);
        }
        for led in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "/\n/x",
        ] {
            assert_eq!(local(led), "/", "{led:?}");
        }
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=1; countersign_session=x".parse().unwrap());
        headers.append(COOKIE, "countersign_language=zh-CN".parse().unwrap());
        assert_eq!(cookie(&headers, SESSION).as_deref(), Some("x"));
        assert_eq!(language(&headers), Language::Chinese);
        assert_eq!(cookie(&headers, "b"), None);
    }

    /// The browser's languages count by their quality, not by their place; languages that the console does not have are passed over.
    #[test]
    fn the_preferred_language_is_taken() {
        for (accepted, expected) in [
            ("zh-CN,zh;q=0.9", Language::Chinese),
            ("de-DE,de;q=0.9,zh;q=0.8,en;q=0.7", Language::Chinese),
            ("de, en;q=0.5, zh-TW; q=0.6", Language::Chinese),
            ("en;q=0.3,zh;q=0.9", Language::Chinese),
            ("zh;q=0,en;q=0.1", Language::English),
            ("en-GB,zh", Language::English),
            ("fr,*;q=0.5", Language::English),
            ("zh;q=many", Language::English),
            ("", Language::English),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT_LANGUAGE, accepted.parse().unwrap());
            assert_eq!(language(&headers), expected, "{accepted}");
        }
    }
}
