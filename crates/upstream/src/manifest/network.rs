//! Networks of addresses that are not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: addresses with a prefix in common.
///
/// # Example
///
/// ```
/// use countersign_upstream::manifest::Network;
///
/// let network: Network = "10.1.0.0/16".parse()?;
/// assert!(network.contains("10.1.2.3".parse()?) && !network.contains("10.2.0.1".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// `127.0.0.0/8` and `::1`.
    Loopback,
    /// Addresses whose first bits are those of this one.
    Prefix(IpAddr, u8),
}

/// The text names no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not valid: use an address such as 192.168.1.7, a network such as 10.1.0.0/16, loopback"
)]
pub struct NotANetwork;

impl Network {
    /// True if the address is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match self {
            Self::Loopback => address.is_loopback(),
            Self::Prefix(own, bits) => match (own, address) {
                (IpAddr::V4(own), IpAddr::V4(address)) => shares(
                    u128::from(own.to_bits()) << 96,
                    u128::from(address.to_bits()) << 96,
                    bits,
                ),
                (IpAddr::V6(own), IpAddr::V6(address)) => {
                    shares(own.to_bits(), address.to_bits(), bits)
                }
                (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
            },
        }
    }
}

/// True if two addresses have the first bits in common.
fn shares(a: u128, b: u128, bits: u8) -> bool {
    bits == 0 || (a ^ b) >> (128 - u32::from(bits)) == 0
}

impl std::str::FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        if text == "loopback" {
            return Ok(Self::Loopback);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let most = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().map_err(|_| NotANetwork)?,
        };
        if bits > most {
            return Err(NotANetwork);
        }
        Ok(Self::Prefix(address, bits))
    }
}

/// True if an address is one of the public internet. Every other one is reached only if `allow_private` names it.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Every block of the IANA special-purpose registry is refused but the anycast ones that are global.
fn is_public_v4(address: Ipv4Addr) -> bool {
    const SPECIAL: [(u32, u8); 15] = [
        (0x0000_0000, 8),  // this network
        (0x0a00_0000, 8),  // private
        (0x6440_0000, 10), // carrier-grade NAT
        (0x7f00_0000, 8),  // loopback
        (0xa9fe_0000, 16), // link-local, metadata services
        (0xac10_0000, 12), // private
        (0xc000_0000, 24), // protocol assignments
        (0xc000_0200, 24), // documentation
        (0xc058_6300, 24), // 6to4 relay anycast, deprecated
        (0xc0a8_0000, 16), // private
        (0xc612_0000, 15), // benchmarking
        (0xc633_6400, 24), // documentation
        (0xcb00_7100, 24), // documentation
        (0xe000_0000, 4),  // multicast
        (0xf000_0000, 4),  // reserved, broadcast
    ];
    let bits = address.to_bits();
    !SPECIAL
        .iter()
        .any(|(network, prefix)| (bits ^ network) >> (32 - u32::from(*prefix)) == 0)
}

/// True for a global address: only `2000::/3` is global, except its special parts.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let starts = |network: u128, prefix: u32| (bits ^ network) >> (128 - prefix) == 0;
    let is_global = starts(0x2000 << 112, 3);
    let is_special = starts(0x2001_0db8 << 96, 32) // documentation
        || starts(0x3fff << 112, 20) // documentation
        || starts(0x2001 << 112, 23) // protocol assignments, Teredo
        || starts(0x2002 << 112, 16); // 6to4: a v4 address in it may be anything
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        let check = |address: &str, expected: bool| {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        };
        for public in [
            "8.8.8.8",
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
        ] {
            check(public, true);
        }
        for special in [
            "127.0.0.1",
            "127.255.1.2",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.9",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "2001::1",
            "3fff::1",
        ] {
            check(special, false);
        }
    }

    #[test]
    fn a_network_has_its_addresses_only() {
        let check = |network: &str, address: &str, expected: bool| {
            let network: Network = network.parse().unwrap();
            assert_eq!(
                network.contains(address.parse().unwrap()),
                expected,
                "{address}"
            );
        };
        check("10.1.0.0/16", "10.1.255.255", true);
        check("10.1.0.0/16", "10.2.0.0", false);
        check("192.168.1.7", "192.168.1.7", true);
        check("192.168.1.7", "192.168.1.8", false);
        check("0.0.0.0/0", "10.9.9.9", true);
        check("loopback", "127.0.0.9", true);
        check("loopback", "::1", true);
        check("loopback", "::ffff:127.0.0.1", true);
        check("loopback", "10.0.0.1", false);
        check("fd00::/8", "fd12::1", true);
        check("fd00::/8", "fc12::1", false);
        check("10.0.0.0/8", "::ffff:10.0.0.1", true);
        check("10.0.0.0/8", "fd00::1", false);
        for wrong in ["", "local", "10.0.0.0/33", "10.0.0", "::/129", "10.0.0.0/x"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
