//! Mistakes in an upstream.

use std::net::IpAddr;

use url::{Host, Url};

use super::Checker;
use crate::manifest::{Auth, Network, Upstream, is_public};

pub(super) fn check(upstream: &Upstream, place: &mut Checker<'_>) {
    let is_letter =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
    let name = &upstream.name;
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_letter) {
        let message = format!("{name:?} is not 1 to 64 lower-case letters, digits, - and _");
        place.key("name").complain(message);
    }
    address(&upstream.base_url, upstream, &mut place.key("base_url"));
    for (at, host) in upstream.hosts.iter().enumerate() {
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            let message = format!("{host:?} is no host name; write it without scheme and path");
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
    if let Some(auth) = &upstream.auth {
        credential(auth, upstream, &mut place.key("auth"));
    }
    bounds(upstream, place);
}

fn address(text: &str, upstream: &Upstream, place: &mut Checker<'_>) {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return place.complain(format!("{text:?} is no address: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return place.complain(format!("{text:?} is no address of http or https"));
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
    let has_secret = upstream.auth.is_some() || upstream.identity_secret.is_some();
    if url.scheme() == "http" && has_secret && upstream.allow_private.is_empty() {
        place.complain(
            "the credential would be sent unencrypted; use https, or name the private network of the \
             upstream in allow_private",
        );
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
                let message = format!("{name:?} is no name of a cookie");
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
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_letter) {
        place.complain(format!("{name:?} is no name of a header"));
    } else if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        place.complain(format!("the header {name} cannot be set"));
    }
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
