//! Mistakes in an upstream.

use std::collections::BTreeSet;
use std::net::IpAddr;

use url::{Host, Url};

use super::Checker;
use crate::manifest::{
    Auth, Auths, Connections, Discovery, Network, Trust, Upstream, UpstreamKind, is_public,
};

pub(super) fn check(upstream: &Upstream, place: &mut Checker<'_>) {
    let is_letter =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
    let name = &upstream.name;
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_letter) {
        let message = format!("{name:?} is not 1 to 64 lower-case letters, digits, - and _");
        place.key("name").complain(message);
    }
    match upstream.kind {
        UpstreamKind::Http => http(upstream, place),
        UpstreamKind::Mcp => server(upstream, place),
    }
    for (at, host) in upstream.hosts.iter().enumerate() {
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            let message = format!("{host:?} is not a host name; write it without scheme and path");
            place.key("hosts").item(at).complain(message);
        }
    }
    for (at, network) in upstream.allow_private.iter().enumerate() {
        if let Err(error) = network.parse::<Network>() {
            let message = format!("{network:?}: {error}");
            place.key("allow_private").item(at).complain(message);
        }
    }
    for name in upstream.headers.keys() {
        header(name, &mut place.key("headers").key(name));
    }
    header(
        &upstream.idempotency_header,
        &mut place.key("idempotency_header"),
    );
    credentials(&upstream.auth, upstream, &mut place.key("auth"));
    bounds(upstream, place);
}

/// An HTTP service has an address, and nothing of an MCP server.
fn http(upstream: &Upstream, place: &mut Checker<'_>) {
    if upstream.base_url.is_empty() {
        place
            .key("base_url")
            .complain("it is missing: an HTTP service has an address");
    } else {
        address(&upstream.base_url, upstream, &mut place.key("base_url"));
    }
    let said = [
        ("url", upstream.url.is_some()),
        ("command", !upstream.command.is_empty()),
        ("env", !upstream.env.is_empty()),
        ("user_env", upstream.user_env.is_some()),
        ("prefix", !upstream.prefix),
        ("shared", upstream.shared),
        ("trust", upstream.trust != Trust::default()),
        ("discovery", upstream.discovery != Discovery::default()),
        (
            "connections",
            upstream.connections != Connections::default(),
        ),
    ];
    for (key, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
        place
            .key(key)
            .complain("it is for kind = \"mcp\"; leave it out");
    }
}

/// An MCP server has an address or a command.
fn server(upstream: &Upstream, place: &mut Checker<'_>) {
    if !upstream.base_url.is_empty() {
        let message = "it is for kind = \"http\"; the address of an MCP server is its url";
        place.key("base_url").complain(message);
    }
    if upstream.identity_secret.is_some() {
        let message = "an MCP server gets no Countersign-Identity; leave it out";
        place.key("identity_secret").complain(message);
    }
    let is_letter = |b: u8| b.is_ascii_lowercase();
    if !upstream.name.bytes().next().is_some_and(is_letter) {
        let message = "the names of its tools start with it: let it start with a letter";
        place.key("name").complain(message);
    }
    match (&upstream.url, upstream.command.first()) {
        (None, None) => place
            .key("url")
            .complain("it is missing: an MCP server has a url or a command"),
        (Some(_), Some(_)) => place
            .key("command")
            .complain("the server has a url already; leave one of them out"),
        (Some(url), None) => {
            address(url, upstream, &mut place.key("url"));
            if !upstream.env.is_empty() {
                place.key("env").complain("it is for a command");
            }
            if upstream.user_env.is_some() {
                let message = "it is for a command; use auth.user_token";
                place.key("user_env").complain(message);
            }
        }
        (None, Some(program)) => child(program, upstream, place),
    }
    let listing = &upstream.discovery.auth;
    let mut below = place.key("discovery");
    let mut below = below.key("auth");
    credentials(listing, upstream, &mut below);
    if listing.is_of_caller() {
        below.complain("tools are listed without a user; use a fixed credential");
    }
    let own = upstream.connections;
    let mut below = place.key("connections");
    below
        .key("count_max")
        .within(own.count_max.into(), 1, 4_096);
    below
        .key("idle_seconds")
        .within(own.idle_seconds, 1, 86_400);
    below.key("start_ms").within(own.start_ms, 1, 600_000);
    let mut below = place.key("discovery");
    let refresh = upstream.discovery.refresh_seconds;
    below.key("refresh_seconds").within(refresh, 1, 86_400);
}

fn child(program: &str, upstream: &Upstream, place: &mut Checker<'_>) {
    if program.is_empty() {
        place.key("command").item(0).complain("name the program");
    }
    let said = [
        ("auth", !upstream.auth.is_empty()),
        ("headers", !upstream.headers.is_empty()),
        ("ca_file", upstream.ca_file.is_some()),
    ];
    for (key, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
        let message =
            "a server started by `command` gets no HTTP headers; pass its credential with `env`";
        place.key(key).complain(message);
    }
    if !upstream.discovery.auth.is_empty() {
        let message =
            "a server started by `command` gets no HTTP headers; pass its credential with `env`";
        place.key("discovery").key("auth").complain(message);
    }
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    for name in upstream.env.keys().filter(|name| !is_name(name)) {
        let message = format!("{name:?} is not the name of an environment variable");
        place.key("env").key(name).complain(message);
    }
    if let Some(name) = &upstream.user_env {
        let mut place = place.key("user_env");
        if !is_name(name) {
            place.complain(format!(
                "{name:?} is not the name of an environment variable"
            ));
        } else if upstream.shared {
            place.complain(
                "a child that users share cannot have a token of each; leave one of them out",
            );
        }
    }
}

fn address(text: &str, upstream: &Upstream, place: &mut Checker<'_>) {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return place.complain(format!("{text:?} is not an address: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return place.complain(format!("{text:?} is not an http or https address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The text is not quoted: it holds a credential.
        return place.complain("a credential does not stand in the address; use auth.basic");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return place.complain("leave ? and # out; fixed parameters stand in request.query");
    }
    let address: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(_)) | None => None,
    };
    let networks = upstream.allow_private.iter();
    let mut networks = networks.filter_map(|text| text.parse::<Network>().ok());
    if let Some(address) = address.filter(|address| !is_public(*address))
        && !networks.any(|network| network.contains(address))
    {
        place.complain(format!(
            "{address} is not a public address; name it in allow_private if it is meant"
        ));
    }
    let has_secret = !upstream.auth.is_empty()
        || !upstream.discovery.auth.is_empty()
        || upstream.identity_secret.is_some();
    if url.scheme() == "http" && has_secret && upstream.allow_private.is_empty() {
        place.complain(
            "the credential would be sent unencrypted; use https, or name the private network of the \
             upstream in allow_private",
        );
    }
}

/// Every credential by itself, and that no two are written to the same place.
fn credentials(auths: &Auths, upstream: &Upstream, place: &mut Checker<'_>) {
    let mut taken = BTreeSet::new();
    for (at, auth) in auths.placed() {
        let Some(at) = at else {
            credential(auth, upstream, place);
            continue;
        };
        let mut below = place.item(at);
        credential(auth, upstream, &mut below);
        if !taken.insert(auth.target()) {
            below.complain("another credential has this place in the request already");
        }
    }
}

fn credential(auth: &Auth, upstream: &Upstream, place: &mut Checker<'_>) {
    match auth {
        Auth::Bearer { .. } | Auth::Basic { .. } => {}
        Auth::Header { name, .. } => header(name, &mut place.key("header").key("name")),
        Auth::Query { name, .. } => {
            if name.is_empty() {
                place
                    .key("query")
                    .key("name")
                    .complain("name the parameter");
            }
        }
        Auth::Cookie { name, .. } => {
            let is_letter = |b: u8| b.is_ascii_graphic() && !b";=,\"".contains(&b);
            if name.is_empty() || !name.bytes().all(is_letter) {
                let message = format!("{name:?} is not a cookie name");
                place.key("cookie").key("name").complain(message);
            }
        }
        Auth::ClientCredentials(own) => {
            let mut place = place.key("client_credentials");
            address(&own.token_url, upstream, &mut place.key("token_url"));
        }
        Auth::TokenExchange(own) => {
            let mut place = place.key("token_exchange");
            address(&own.token_url, upstream, &mut place.key("token_url"));
        }
        Auth::UserToken { header: name, .. } => {
            header(name, &mut place.key("user_token").key("header"));
        }
    }
}

/// Headers that belong to the connection, or that only the gateway writes.
const RESERVED: [&str; 12] = [
    "connection",
    "content-length",
    "countersign-deadline",
    "countersign-dry-run",
    "countersign-identity",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authorization",
];

pub(super) fn header(name: &str, place: &mut Checker<'_>) {
    if !is_header(name) {
        place.complain(format!("{name:?} is not a header name"));
    } else if !is_free_header(name) {
        place.complain(format!("the header {name} cannot be set"));
    }
}

/// True if a header can have this name.
pub(crate) fn is_header(name: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(is_letter)
}

/// True if a tool may set a header of this name.
pub(crate) fn is_free_header(name: &str) -> bool {
    is_header(name) && !RESERVED.contains(&name.to_ascii_lowercase().as_str())
}

fn bounds(upstream: &Upstream, place: &mut Checker<'_>) {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let Upstream {
        timeouts,
        pool,
        retries,
        ..
    } = upstream;
    let mut below = place.key("timeouts");
    below
        .key("connect_ms")
        .within(timeouts.connect_ms, 1, DAY_MS);
    below
        .key("attempt_ms")
        .within(timeouts.attempt_ms, 1, DAY_MS);
    let mut below = place.key("pool");
    below
        .key("concurrent_max")
        .within(pool.concurrent_max.into(), 1, 65_536);
    let mut below = place.key("retries");
    below
        .key("attempts_max")
        .within(retries.attempts_max.into(), 1, 10);
    below
        .key("budget_percent")
        .within(retries.budget_percent.into(), 0, 1_000);
    place
        .key("response_bytes_max")
        .within(upstream.response_bytes_max, 1, 256 * 1024 * 1024);
}
