//! Refuses foreign web pages: a browser on this machine sends whatever any page tells it to, to any address,
//! and only the `Origin` and `Host` headers show it.

use std::net::IpAddr;

use countersign::contract::ErrorCode;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};

use super::answer::Refusal;
use crate::mcp::PATH;
use crate::words::Say;

/// Refuses a page of another site, and a foreign host name that resolves to this machine.
///
/// A request is accepted if its host is an address, `localhost`, or the name in the public URL. A request with
/// a credential may use any name if the credential is checked: a page whose own name resolves to this machine
/// can send any header, but no valid credential. The request may come from no page, from a page of this
/// machine, or from one under the public URL.
pub(crate) fn check(
    headers: &HeaderMap,
    path: &str,
    public_url: Option<&str>,
) -> Result<(), Refusal> {
    let public = public_url.map(host_of_url);
    let is_proved = headers.contains_key(AUTHORIZATION) && needs_caller(path);
    if let Some(host) = headers.get(HOST)
        && !is_proved
    {
        let host = host.to_str().map(host_of);
        let is_ours = host.is_ok_and(|host| {
            is_local_name(host) || bare(host).parse::<IpAddr>().is_ok() || public == Some(host)
        });
        if !is_ours {
            return Err(refusal(Say::OtherHost));
        }
    }
    for origin in headers.get_all(ORIGIN) {
        let host = origin.to_str().map(host_of_url);
        let is_ours = host.is_ok_and(|host| {
            let is_loopback = bare(host).parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
            is_local_name(host) || is_loopback || public == Some(host)
        });
        if !is_ours {
            return Err(refusal(Say::OtherSite));
        }
    }
    Ok(())
}

/// True if a path is behind the identity layer.
fn needs_caller(path: &str) -> bool {
    let areas = ["/v1/", "/acp/", "/ucp/"];
    areas.iter().any(|area| path.starts_with(area)) || [PATH, "/openapi.json"].contains(&path)
}

fn refusal(message: Say) -> Refusal {
    Refusal::new(ErrorCode::Forbidden, message).hint(Say::SetPublicUrl)
}

fn is_local_name(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
}

/// Returns the host of `https://host:port/path`.
fn host_of_url(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    host_of(rest.split('/').next().unwrap_or_default())
}

/// Returns the host of `host:port`, with the brackets of an IPv6 address.
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !host.is_empty() => host,
        Some(_) | None => authority,
    }
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_let_in(host: &str, origin: Option<&str>, public_url: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        check(&headers, "/v1/calls", public_url).is_ok()
    }

    #[test]
    fn programs_and_pages_of_this_machine_are_let_in() {
        for host in [
            "localhost:8787",
            "127.0.0.1:8787",
            "[::1]:8787",
            "10.0.0.7",
            "LOCALHOST",
        ] {
            assert!(is_let_in(host, None, None), "{host}");
            assert!(
                is_let_in(host, Some("http://localhost:6274"), None),
                "{host}"
            );
            assert!(is_let_in(host, Some("http://[::1]:1"), None), "{host}");
        }
        let public = Some("https://tools.example.com");
        let page = Some("https://tools.example.com");
        assert!(is_let_in("tools.example.com", page, public));
        assert!(is_let_in("tools.example.com:443", None, public));
    }

    /// Behind a proxy, or in a network of containers, a server has other names.
    #[test]
    fn whoever_has_a_credential_may_call_us_by_any_name() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "countersign:8787".parse().unwrap());
        assert!(check(&headers, "/v1/calls", None).is_err());
        headers.insert(AUTHORIZATION, "Bearer x".parse().unwrap());
        assert!(check(&headers, "/v1/calls", None).is_ok());
        // If the credential is not checked, it proves nothing about the name.
        assert!(check(&headers, "/metrics", None).is_err());
        headers.insert(ORIGIN, "http://evil.example".parse().unwrap());
        assert!(check(&headers, "/v1/calls", None).is_err());
    }

    #[test]
    fn other_sites_are_not() {
        for origin in [
            "http://evil.example",
            "https://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "http://10.0.0.7",
            "null",
            "",
        ] {
            assert!(
                !is_let_in("127.0.0.1:8787", Some(origin), None),
                "{origin:?}"
            );
        }
        for host in [
            "evil.example:8787",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            ":80",
        ] {
            assert!(!is_let_in(host, None, None), "{host:?}");
            let public = Some("https://tools.example.com");
            assert!(!is_let_in(host, None, public), "{host:?}");
        }
    }
}
