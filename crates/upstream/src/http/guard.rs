//! The guard against requests to addresses that nobody declared (SSRF): a name is resolved here, every address is checked, and
//! the client connects to the checked ones only.

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
    /// Where it is.
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

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found
                .iter()
                .copied()
                .filter(|found| guard.allows(found.ip()))
                .collect();
            // One private address among public ones is a trap as well: it is left out, and never connected to.
            match (allowed.is_empty(), found.first()) {
                (true, Some(first)) => Err(Refused {
                    host: host.to_owned(),
                    address: first.ip(),
                }
                .into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
