//! The credential of the service, as references to secrets that the operator sets.

use super::document::{Document, Version};
use super::source::Node;
use crate::manifest::{Auth, Auths, ClientAuth, ClientCredentials, SecretRef};

/// The credentials, with notes about the decisions made for them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Credential {
    pub(crate) auth: Auths,
    pub(crate) notes: Vec<String>,
}

/// The credentials that most operations need: those of the document's first requirement, else of that of the first operation that has
/// one. The schemes of one requirement are sent together.
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
    let known = |name: &&str| schemes.iter().find(|it| it.name == **name);
    let mut asked = wanted
        .iter()
        .map(|names| names.iter().filter_map(known).collect::<Vec<_>>());
    let chosen = asked.find(|known| !known.is_empty());
    let only = schemes.first().filter(|_| wanted.is_empty());
    let chosen: Vec<_> = chosen.unwrap_or_else(|| only.into_iter().collect());
    let mut auths = Vec::new();
    for scheme in &chosen {
        // Of several secrets each has a variable of its own.
        let name = match chosen.as_slice() {
            [_] => shouted(upstream),
            _ => format!("{}_{}", shouted(upstream), shouted(&scheme.name)),
        };
        let variable = |suffix: &str| SecretRef::Env(format!("{name}_{suffix}"));
        let node = document.follow(&scheme.node).unwrap_or(&scheme.node);
        let mut own = Vec::new();
        let Some(auth) = auth_of(node, &variable, &mut own) else {
            notes.append(&mut own);
            continue;
        };
        if auths.iter().any(|it: &Auth| it.target() == auth.target()) {
            notes.push(format!(
                "the credential {:?} is left out: another one has its place in the request",
                scheme.name
            ));
            continue;
        }
        notes.append(&mut own);
        auths.push(auth);
    }
    if !chosen.is_empty() && schemes.len() > chosen.len() {
        let is_other = |name: &str| !chosen.iter().any(|it| it.name == name);
        let others = schemes.iter().map(|it| &*it.name);
        let others: Vec<&str> = others.filter(|name| is_other(name)).take(8).collect();
        let names: Vec<_> = chosen.iter().map(|it| format!("{:?}", it.name)).collect();
        let verb = if chosen.len() == 1 { "was" } else { "were" };
        notes.push(format!(
            "of several credentials {} {verb} chosen; the others: {}",
            names.join(" and "),
            others.join(", ")
        ));
    }
    if !auths.is_empty() && base_url.starts_with("http:") {
        notes.push(
            "the address is not https, so no credential is sent: set base_url and auth".to_owned(),
        );
        auths.clear();
    }
    let auth = auths.into_iter().collect();
    Credential { auth, notes }
}

/// The requirements, each with the names of its schemes: those of the document first. One without a name asks for no credential.
fn wanted<'d>(document: &Document<'d>) -> Vec<Vec<&'d str>> {
    let of = |node: &'d Node<'d>| {
        let names = |it: &'d Node<'d>| it.members().iter().map(|it| &*it.name).collect();
        node.list("security").iter().map(names)
    };
    let mut wanted: Vec<Vec<&str>> = of(document.root()).collect();
    let items = document.root().get("paths").map_or(&[][..], Node::members);
    for operation in items.iter().flat_map(|it| it.node.members()) {
        wanted.extend(of(&operation.node));
    }
    wanted.retain(|names| !names.is_empty());
    wanted
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
