//! Guard against requests to undeclared addresses (SSRF): a name is resolved here, every address is checked, and the client connects to the
//! checked ones only.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::manifest::{Network, is_public};

/// The addresses that an upstream may be at.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    private: Arc<[Network]>,
}

/// An address is not public and not declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{host} is at {address}, which is not a public address; name it in allow_private of the upstream if it is meant"
)]
pub struct Refused {
    /// The host as it was asked for.
    pub host: String,
    /// The address that the host resolves to.
    pub address: IpAddr,
}

impl Guard {
    pub(crate) fn new(private: impl IntoIterator<Item = Network>) -> Self {
        Self {
            private: private.into_iter().collect(),
        }
    }

    fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.private.iter().any(|network| network.contains(address))
    }

    /// Checks a host that is an address already: such a one is never resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Refused> {
        let address: IpAddr = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        if self.allows(address) {
            return Ok(());
        }
        Err(Refused {
            host: url.host_str().unwrap_or_default().to_owned(),
            address,
        })
    }
}

impl Guard {
    /// The addresses of a name that may be connected to, each time that it is resolved. One private address among public ones is a trap
    /// as well: it is left out, and never connected to.
    fn pass(&self, host: &str, found: &[SocketAddr]) -> Result<Vec<SocketAddr>, Refused> {
        let allowed = found.iter().filter(|found| self.allows(found.ip()));
        let allowed: Vec<SocketAddr> = allowed.copied().collect();
        match (allowed.is_empty(), found.first()) {
            (true, Some(first)) => Err(Refused {
                host: host.to_owned(),
                address: first.ip(),
            }),
            (true, None) | (false, _) => Ok(allowed),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            let allowed = guard.pass(host, &found)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B17: a name that leads elsewhere the next time (DNS rebinding) is refused that time, and the trap among good addresses is never
    /// handed to the client.
    #[test]
    fn every_answer_of_a_name_is_checked() {
        let guard = Guard::new(["10.1.0.0/16".parse().unwrap()]);
        let check = |found: &[&str], expected: Option<&[&str]>| {
            let sockets = |all: &[&str]| -> Vec<SocketAddr> {
                all.iter()
                    .map(|it| SocketAddr::new(it.parse().unwrap(), 0))
                    .collect()
            };
            let passed = guard.pass("svc.example", &sockets(found));
            assert_eq!(passed.ok(), expected.map(sockets), "{found:?}");
        };
        check(&["93.184.216.34"], Some(&["93.184.216.34"]));
        check(&["169.254.169.254"], None);
        check(&["93.184.216.34", "127.0.0.1"], Some(&["93.184.216.34"]));
        check(
            &["::ffff:127.0.0.1", "93.184.216.34"],
            Some(&["93.184.216.34"]),
        );
        check(&["0.0.0.0"], None);
        check(&["::"], None);
        check(&["::ffff:169.254.169.254"], None);
        check(&["64:ff9b::a9fe:a9fe"], None);
        check(&["fe80::1"], None);
        check(&["10.1.2.3", "10.2.0.1"], Some(&["10.1.2.3"]));
        check(&["::ffff:10.1.2.3"], Some(&["::ffff:10.1.2.3"]));
        check(&[], Some(&[]));
    }
}
