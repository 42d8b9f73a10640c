//! The address of the service: which server of several, with the defaults of its variables.

use std::net::IpAddr;

use url::{Host, Url};

use super::document::{Document, Version};
use super::source::Node;
use super::text;
use crate::manifest::is_public;

/// Most servers that are looked at, and longest address with the values of its variables, in bytes.
const SERVERS_MAX: usize = 100;
const ADDRESS_BYTES_MAX: usize = 2_048;

/// Most other servers that a note names, and most characters of an address in a note.
const OTHERS_MAX: usize = 8;
const SHOWN_CHARS: usize = 200;

/// The address that an upstream gets if the document names none that can be used. It is one that no name server knows.
pub(crate) const UNKNOWN: &str = "https://set-base-url.invalid";

/// An address, with notes about the decisions made for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) base_url: String,
    pub(crate) notes: Vec<String>,
}

/// The server of a document, or of a path or an operation that has servers of its own.
pub(crate) fn of(document: &Document<'_>, own: Option<&Node<'_>>, base: Option<&Url>) -> Server {
    let mut notes = Vec::new();
    let addresses = match own {
        Some(node) => listed(node, &mut notes),
        None if document.version == Version::V2 => of_swagger(document.root(), base),
        None => listed(document.root(), &mut notes),
    };
    let mut usable = Vec::new();
    for address in &addresses {
        match absolute(address, base) {
            Ok(url) => usable.push(url),
            Err(why) => {
                let address = text::brief(address, SHOWN_CHARS);
                notes.push(format!("the server {address:?} is not used: {why}"));
            }
        }
    }
    // A relative address without a base is at least a path.
    let chosen = usable
        .iter()
        .find(|url| url.scheme() == "https")
        .or(usable.first());
    let base_url = chosen.map_or_else(
        || {
            let path = addresses
                .iter()
                .find(|it| it.starts_with('/') && !it.starts_with("//"));
            let path = path.map_or("", |it| it.trim_end_matches('/'));
            notes.push("no server of the document can be used as it is: set base_url".to_owned());
            format!("{UNKNOWN}{path}")
        },
        |url| url.as_str().trim_end_matches('/').to_owned(),
    );
    let others: Vec<&str> = usable
        .iter()
        .map(Url::as_str)
        .filter(|it| it.trim_end_matches('/') != base_url)
        .take(OTHERS_MAX)
        .collect();
    if !others.is_empty() {
        notes.push(format!(
            "of several servers {base_url} was chosen; the others: {}",
            others.join(", ")
        ));
    }
    Server { base_url, notes }
}

/// The servers of OpenAPI 3, with the defaults of their variables.
fn listed(node: &Node<'_>, notes: &mut Vec<String>) -> Vec<String> {
    let mut addresses = Vec::new();
    for server in node.list("servers").iter().take(SERVERS_MAX) {
        let Some(text) = server.text("url") else {
            continue;
        };
        if text.len() > ADDRESS_BYTES_MAX {
            notes.push("a server is not used: its address is too long".to_owned());
            continue;
        }
        let mut address = text.to_owned();
        let variables = server.get("variables").map_or(&[][..], Node::members);
        for variable in variables.iter().take(SERVERS_MAX) {
            let default = variable
                .node
                .get("default")
                .or_else(|| variable.node.list("enum").first());
            let default = match default {
                Some(Node::Text(text)) => text.to_string(),
                Some(Node::Number(number)) => number.to_string(),
                Some(Node::Bool(value)) => value.to_string(),
                Some(Node::Null | Node::List(_) | Node::Object(_)) | None => continue,
            };
            let place = format!("{{{}}}", variable.name);
            let count = address.matches(&place).count();
            // The default may name other variables, which may name others twice.
            if count > 0 && address.len() + count * default.len() <= ADDRESS_BYTES_MAX {
                address = address.replace(&place, &default);
                notes.push(format!("the server variable {place} is {default:?}"));
            }
        }
        addresses.push(address);
    }
    addresses
}

fn of_swagger(root: &Node<'_>, base: Option<&Url>) -> Vec<String> {
    let path = root.text("basePath").unwrap_or_default();
    let path = if path.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let Some(host) = root.text("host") else {
        return vec![path];
    };
    let schemes: Vec<&str> = root
        .list("schemes")
        .iter()
        .filter_map(Node::as_text)
        .collect();
    let usual = base.map_or("https", Url::scheme);
    let schemes = if schemes.is_empty() {
        vec![usual]
    } else {
        schemes
    };
    schemes
        .iter()
        .map(|scheme| format!("{scheme}://{host}{path}"))
        .collect()
}

/// The address as one that an upstream can have.
fn absolute(address: &str, base: Option<&Url>) -> Result<Url, &'static str> {
    if address.contains(['{', '}']) {
        return Err("a variable of it has no default");
    }
    let url = match (Url::parse(address), base) {
        (Ok(url), _) => url,
        (Err(_), Some(base)) => base.join(address).map_err(|_| "it is not an address")?,
        (Err(_), None) => {
            return Err("it is relative, and the address of the document is not known");
        }
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("it is not an http or https address");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds a credential");
    }
    let literal: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(_)) | None => None,
    };
    if literal.is_some_and(|address| !is_public(address)) {
        return Err("it is a private address; set base_url and allow_private if it is meant");
    }
    let mut url = url;
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}
