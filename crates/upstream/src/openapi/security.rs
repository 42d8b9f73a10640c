//! The credential of the service, as references to secrets that the operator sets.

use std::collections::BTreeSet;

use super::document::{Document, Version};
use super::source::Node;
use crate::manifest::{Auth, ClientAuth, ClientCredentials, SecretRef};

/// A credential, with notes about the decisions made for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Credential {
    pub(crate) auth: Option<Auth>,
    pub(crate) notes: Vec<String>,
}

/// The credential that most operations need: that of the document, else that of the first operation that has one.
pub(crate) fn of(document: &Document<'_>, upstream: &str, base_url: &str) -> Credential {
    let schemes = match document.version {
        Version::V2 => document.root().get("securityDefinitions"),
        Version::V30 | Version::V31 => document
            .root()
            .get("components")
            .and_then(|it| it.get("securitySchemes")),
    };
    let schemes = schemes.map_or(&[][..], Node::members);
    let mut notes = Vec::new();
    let wanted = wanted(document);
    let chosen = wanted
        .iter()
        .find_map(|name| schemes.iter().find(|it| it.name == *name))
        .or_else(|| schemes.first().filter(|_| wanted.is_empty()));
    let Some(chosen) = chosen else {
        return Credential { auth: None, notes };
    };
    let variable = |suffix: &str| SecretRef::Env(format!("{}_{suffix}", shouted(upstream)));
    let scheme = document.follow(&chosen.node).unwrap_or(&chosen.node);
    let auth = auth_of(scheme, &variable, &mut notes);
    if schemes.len() > 1 {
        let others = schemes
            .iter()
            .filter(|it| it.name != chosen.name)
            .map(|it| &*it.name);
        let others: Vec<&str> = others.take(8).collect();
        notes.push(format!(
            "of several credentials {:?} was chosen; the others: {}",
            chosen.name,
            others.join(", ")
        ));
    }
    if auth.is_some() && base_url.starts_with("http:") {
        notes.push(
            "the address is not https, so no credential is sent: set base_url and auth".to_owned(),
        );
        return Credential { auth: None, notes };
    }
    Credential { auth, notes }
}

/// The names of the schemes that are needed, the most common first.
fn wanted<'d>(document: &Document<'d>) -> Vec<&'d str> {
    let of = |node: &'d Node<'d>| {
        node.list("security")
            .iter()
            .flat_map(Node::members)
            .map(|it| &*it.name)
    };
    let mut names: Vec<&str> = of(document.root()).collect();
    let mut known: BTreeSet<&str> = names.iter().copied().collect();
    let items = document.root().get("paths").map_or(&[][..], Node::members);
    for operation in items.iter().flat_map(|it| it.node.members()) {
        for name in of(&operation.node) {
            if known.insert(name) {
                names.push(name);
            }
        }
    }
    names
}

fn auth_of(
    scheme: &Node<'_>,
    variable: &dyn Fn(&str) -> SecretRef,
    notes: &mut Vec<String>,
) -> Option<Auth> {
    let bearer = || {
        Some(Auth::Bearer {
            token: variable("TOKEN"),
        })
    };
    match scheme.text("type").unwrap_or_default() {
        "basic" => Some(basic(variable, notes)),
        "http" => match scheme
            .text("scheme")
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "basic" => Some(basic(variable, notes)),
            "bearer" => bearer(),
            other => {
                notes.push(format!(
                    "the authentication scheme {other:?} is not supported: set auth by hand"
                ));
                None
            }
        },
        "apiKey" => api_key(scheme, variable("API_KEY"), notes),
        "oauth2" => oauth(scheme, variable, notes).or_else(bearer),
        "openIdConnect" => {
            notes.push("the credential is a token of an OpenID issuer: a fixed one is written, or set auth".to_owned());
            bearer()
        }
        "mutualTLS" => {
            notes.push("the service wants a client certificate, which is not supported".to_owned());
            None
        }
        _ => None,
    }
}

/// A key in a header, the query or a cookie.
fn api_key(scheme: &Node<'_>, value: SecretRef, notes: &mut Vec<String>) -> Option<Auth> {
    let name = scheme.text("name").unwrap_or_default().to_owned();
    let is_cookie = |b: u8| b.is_ascii_graphic() && !b";=,\"".contains(&b);
    match scheme.text("in").unwrap_or_default() {
        "header" if crate::manifest::is_free_header(&name) => {
            if name.eq_ignore_ascii_case("authorization") {
                let note = "the API key goes into Authorization as it is: set auth.header.prefix if it has one";
                notes.push(note.to_owned());
            }
            let prefix = String::new();
            Some(Auth::Header {
                name,
                value,
                prefix,
            })
        }
        "query" if !name.is_empty() => Some(Auth::Query { name, value }),
        "cookie" if !name.is_empty() && name.bytes().all(is_cookie) => {
            Some(Auth::Cookie { name, value })
        }
        _ => {
            notes.push("the place of the API key is not known: set auth by hand".to_owned());
            None
        }
    }
}

fn basic(variable: &dyn Fn(&str) -> SecretRef, notes: &mut Vec<String>) -> Auth {
    notes.push("set auth.basic.username".to_owned());
    Auth::Basic {
        username: "set-me".to_owned(),
        password: variable("PASSWORD"),
    }
}

/// Builds client credentials, if the issuer grants them; with any other flow, the token is fetched elsewhere and used as a bearer token.
fn oauth(
    scheme: &Node<'_>,
    variable: &dyn Fn(&str) -> SecretRef,
    notes: &mut Vec<String>,
) -> Option<Auth> {
    let flows = scheme.get("flows");
    let flow = match scheme.text("flow") {
        Some("application") => Some(scheme),
        Some(_) => None,
        None => flows.and_then(|it| it.get("clientCredentials")),
    };
    let address = flow
        .and_then(|it| it.text("tokenUrl"))
        .filter(|it| it.starts_with("https://"));
    let Some(token_url) = address.filter(|it| {
        url::Url::parse(it).is_ok_and(|it| it.query().is_none() && it.fragment().is_none())
    }) else {
        notes.push("OAuth: a fixed token is written; auth.user_token or auth.token_exchange fit users of their own".to_owned());
        return None;
    };
    notes.push("set auth.client_credentials.client_id and the scopes".to_owned());
    Some(Auth::ClientCredentials(ClientCredentials {
        token_url: token_url.to_owned(),
        client_id: "set-me".to_owned(),
        client_secret: variable("CLIENT_SECRET"),
        scopes: Vec::new(),
        audience: None,
        client_auth: ClientAuth::Basic,
    }))
}

/// The name of an upstream as a variable of the environment begins.
fn shouted(upstream: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    upstream.chars().map(letter).collect()
}
