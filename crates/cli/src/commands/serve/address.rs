//! Where to listen, as people write it.

use std::net::{Ipv4Addr, SocketAddr};

/// An address on the command line. Names are not looked up, because they may mean many addresses; the one
/// that everybody uses means this machine.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    match port.parse() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => Err(
            "expected an address and a port such as 127.0.0.1:8787, [::1]:8787 or localhost:8787, \
             or a port alone; 0.0.0.0:8787 is every network"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_addresses_in_many_ways() {
        let check = |text: &str, meant: Option<&str>| {
            let read = address(text).ok().map(|address| address.to_string());
            assert_eq!(read.as_deref(), meant, "{text:?}");
        };
        check("127.0.0.1:8787", Some("127.0.0.1:8787"));
        check("[::1]:0", Some("[::1]:0"));
        check("0.0.0.0:80", Some("0.0.0.0:80"));
        check("localhost:9000", Some("127.0.0.1:9000"));
        check("9000", Some("127.0.0.1:9000"));
        for text in [
            "",
            ":8787",
            "localhost",
            "127.0.0.1",
            "65536",
            "example.com:80",
            "-1",
        ] {
            check(text, None);
        }
    }
}
