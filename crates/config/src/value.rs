//! The values of settings that are more than a number or a string. Each is checked where it is read, so that a mistake is reported at its
//! place, and none of their errors repeats the value.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod pattern;
mod store;

pub use pattern::NamePattern;
pub use store::StoreAddress;

/// A value that is written as text.
trait Written: Sized + fmt::Display {
    /// The name of the type in the schema.
    const NAME: &'static str;
    /// The form that is expected, for people.
    const FORM: &'static str;

    /// Reads it.
    fn read(text: &str) -> Option<Self>;
}

macro_rules! written {
    ($($name:ident),+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                <Self as Written>::read(text)
                    .ok_or_else(|| format!("expected {}", <Self as Written>::FORM))
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                <Self as Written>::NAME.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "x-form": <Self as Written>::FORM})
            }
        }
    )+};
}

written!(
    Period,
    Pause,
    Keep,
    CheckpointCopy,
    Listen,
    WebUrl,
    PageUrl,
    SmtpAddress,
    SecretRef,
    StoreAddress,
    NamePattern
);

/// A duration such as `500ms`, `10s`, `15m`, `24h` or `30d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period(Duration);

/// The units, from the longest.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A hundred years.
const PERIOD_MS_MAX: u64 = 36_525 * 86_400_000;

impl Period {
    /// A period of this number of seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// A period of this number of minutes.
    pub const fn from_mins(minutes: u64) -> Self {
        Self::from_secs(60 * minutes)
    }

    /// Returns the duration.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl Written for Period {
    const NAME: &'static str = "Period";
    const FORM: &'static str = "a duration such as \"500ms\", \"10s\", \"15m\", \"24h\" or \"30d\"";

    fn read(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        let (_, unit_ms) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        let ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
        let is_fine = (1..=PERIOD_MS_MAX).contains(&ms);
        is_fine.then(|| Self(Duration::from_millis(ms)))
    }
}

/// In the longest unit that is exact.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        for (name, unit_ms) in UNITS {
            if ms.is_multiple_of(unit_ms) {
                return write!(f, "{}{name}", ms / unit_ms);
            }
        }
        Ok(())
    }
}

/// A duration that may be none: `0s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause(Duration);

impl Pause {
    /// A pause of this number of minutes.
    pub const fn from_mins(minutes: u64) -> Self {
        Self(Duration::from_secs(60 * minutes))
    }

    /// Returns the duration.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl Written for Pause {
    const NAME: &'static str = "Pause";
    const FORM: &'static str = "a duration such as \"10s\" or \"2m\", or \"0s\" for none";

    fn read(text: &str) -> Option<Self> {
        if text == "0s" {
            return Some(Self(Duration::ZERO));
        }
        Period::read(text).map(|period| Self(period.duration()))
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return f.write_str("0s");
        }
        Period(self.0).fmt(f)
    }
}

/// A duration, or `forever`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Retention for this period.
    For(Period),
    /// Retention without an end.
    Forever,
}

impl Keep {
    /// A retention of this number of days.
    pub const fn days(days: u64) -> Self {
        Self::For(Period::from_secs(86_400 * days))
    }

    /// Returns the duration; `None` for ever.
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::For(period) => Some(period.duration()),
            Self::Forever => None,
        }
    }
}

impl Written for Keep {
    const NAME: &'static str = "Keep";
    const FORM: &'static str = "a duration such as \"90d\", or \"forever\"";

    fn read(text: &str) -> Option<Self> {
        if text == "forever" {
            return Some(Self::Forever);
        }
        Period::read(text).map(Self::For)
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::For(period) => period.fmt(f),
            Self::Forever => f.write_str("forever"),
        }
    }
}

/// An address to listen on. Names are not looked up, because they may mean many addresses; only `localhost`, which
/// means this machine, is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen(SocketAddr);

impl Default for Listen {
    fn default() -> Self {
        Self(SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)))
    }
}

impl Deref for Listen {
    type Target = SocketAddr;

    fn deref(&self) -> &SocketAddr {
        &self.0
    }
}

impl Written for Listen {
    const NAME: &'static str = "Listen";
    const FORM: &'static str = "an address and a port such as 127.0.0.1:8787, [::1]:8787 or localhost:8787, or a port alone; \
                                0.0.0.0:8787 is every network";

    fn read(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self(address));
        }
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        let port = port.parse().ok()?;
        Some(Self(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An address of the web without a password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl(String);

impl Written for WebUrl {
    const NAME: &'static str = "WebUrl";
    const FORM: &'static str =
        "an address that begins with http:// or https://, without a user and a password in it";

    fn read(text: &str) -> Option<Self> {
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"))?;
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_visible = text.chars().all(|c| !c.is_whitespace() && !c.is_control());
        let is_fine = !host.is_empty() && !host.contains('@') && is_visible;
        is_fine.then(|| Self(text.to_owned()))
    }
}

impl WebUrl {
    /// True if what is sent there cannot be read on the way: it is encrypted, or stays on this machine.
    pub fn is_safe(&self) -> bool {
        let Some(rest) = self.0.strip_prefix("http://") else {
            return true;
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        is_loopback(host_of(host))
    }
}

/// A host without its port.
fn host_of(text: &str) -> &str {
    match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => text.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address of a page, with `{id}` where the name of the thing goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageUrl(String);

impl Written for PageUrl {
    const NAME: &'static str = "PageUrl";
    const FORM: &'static str =
        "the address of a page with {id} in it, such as \"https://shop.example.com/orders/{id}\"";

    fn read(text: &str) -> Option<Self> {
        let url = WebUrl::read(text)?;
        url.0.contains("{id}").then_some(Self(url.0))
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address of a mail server: `smtp://HOST:PORT` or `smtps://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpAddress {
    /// True if TLS begins with the first byte.
    pub is_wrapped: bool,
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl SmtpAddress {
    /// True if the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }
}

impl Written for SmtpAddress {
    const NAME: &'static str = "SmtpAddress";
    const FORM: &'static str =
        "\"smtp://HOST:PORT\" or \"smtps://HOST:PORT\", without a user and a password in it";

    fn read(text: &str) -> Option<Self> {
        let (is_wrapped, rest) = match text.strip_prefix("smtps://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("smtp://")?),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let usual = if is_wrapped { 465 } else { 587 };
        let host = host_of(rest);
        let behind = rest.trim_start_matches('[').strip_prefix(host)?;
        let behind = behind.strip_prefix(']').unwrap_or(behind);
        let port = match behind.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port > 0)?,
            None if behind.is_empty() => usual,
            None => return None,
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-.:_".contains(c);
        let is_fine = !host.is_empty() && host.chars().all(fits);
        is_fine.then(|| Self {
            is_wrapped,
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for SmtpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            is_wrapped,
            host,
            port,
        } = self;
        let scheme = if *is_wrapped { "smtps" } else { "smtp" };
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}://{host}:{port}")
        }
    }
}

/// The place of a secret. A secret itself is never written into the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// A variable of the environment.
    Env(String),
    /// A file.
    File(PathBuf),
}

impl Written for SecretRef {
    const NAME: &'static str = "SecretRef";
    const FORM: &'static str =
        "\"env:NAME\" or \"file:PATH\"; the secret itself is never written here";

    fn read(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_prefix("env:") {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let is_fine = !name.is_empty() && name.bytes().all(fits);
            return is_fine.then(|| Self::Env(name.to_owned()));
        }
        let path = text.strip_prefix("file:").filter(|path| !path.is_empty())?;
        Some(Self::File(path.into()))
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

/// The place of a copy of the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckpointCopy {
    /// A file.
    File(PathBuf),
    /// An address of the web.
    Web(WebUrl),
}

impl Written for CheckpointCopy {
    const NAME: &'static str = "CheckpointCopy";
    const FORM: &'static str = "\"file:PATH\", or an address that begins with http:// or https://";

    fn read(text: &str) -> Option<Self> {
        match text.strip_prefix("file:") {
            Some("") => None,
            Some(path) => Some(Self::File(path.into())),
            None => WebUrl::read(text).map(Self::Web),
        }
    }
}

impl CheckpointCopy {
    /// Returns the place without the query of an address, which may hold a token.
    pub fn name(&self) -> String {
        let text = self.to_string();
        text.split('?').next().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for CheckpointCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Web(url) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Written + FromStr<Err = String>>(text: &str, meant: Option<&str>) {
        let read = text.parse::<T>().ok().map(|value| value.to_string());
        assert_eq!(read.as_deref(), meant, "{text:?}");
    }

    #[test]
    fn a_mail_server_has_a_host_and_a_port() {
        check::<SmtpAddress>(
            "smtp://mail.example.com",
            Some("smtp://mail.example.com:587"),
        );
        check::<SmtpAddress>(
            "smtps://mail.example.com/",
            Some("smtps://mail.example.com:465"),
        );
        check::<SmtpAddress>("smtp://127.0.0.1:2525", Some("smtp://127.0.0.1:2525"));
        check::<SmtpAddress>("smtp://[::1]:25", Some("smtp://[::1]:25"));
        for wrong in [
            "mail.example.com",
            "http://mail.example.com",
            "smtp://",
            "smtp://a:b@mail.example.com",
            "smtp://mail.example.com:0",
            "smtp://mail.example.com:25/x",
        ] {
            check::<SmtpAddress>(wrong, None);
        }
        let safe = |text: &str| text.parse::<WebUrl>().unwrap().is_safe();
        assert!(safe("https://a.example") && safe("http://127.0.0.1:1/x") && safe("http://[::1]/"));
        assert!(safe("http://localhost:80"));
        assert!(!safe("http://a.example") && !safe("http://localhost.example"));
    }

    #[test]
    fn a_copy_is_a_file_or_an_address() {
        check::<CheckpointCopy>(
            "file:/mnt/worm/checkpoint",
            Some("file:/mnt/worm/checkpoint"),
        );
        check::<CheckpointCopy>("https://a.example/c?t=1", Some("https://a.example/c?t=1"));
        let copy: CheckpointCopy = "https://a.example/c?t=1".parse().unwrap();
        assert_eq!(copy.name(), "https://a.example/c");
        for wrong in ["", "file:", "/mnt/worm/checkpoint", "ftp://a.example/c"] {
            check::<CheckpointCopy>(wrong, None);
        }
    }

    #[test]
    fn a_period_is_shown_in_its_longest_exact_unit() {
        check::<Period>("90s", Some("90s"));
        check::<Period>("120s", Some("2m"));
        check::<Period>("1500ms", Some("1500ms"));
        check::<Period>("48h", Some("2d"));
        for text in [
            "",
            "s",
            "0s",
            "10",
            "1.5h",
            "+1s",
            "1 m",
            "1ä",
            "36526d",
            "99999999999999999999d",
            "10S",
        ] {
            check::<Period>(text, None);
        }
        check::<Keep>("forever", Some("forever"));
        check::<Keep>("3650d", Some("3650d"));
        check::<Keep>("never", None);
        check::<Pause>("0s", Some("0s"));
        check::<Pause>("120s", Some("2m"));
        check::<Pause>("0", None);
    }

    #[test]
    fn people_write_addresses_in_many_ways() {
        check::<Listen>("127.0.0.1:8787", Some("127.0.0.1:8787"));
        check::<Listen>("[::1]:0", Some("[::1]:0"));
        check::<Listen>("0.0.0.0:80", Some("0.0.0.0:80"));
        check::<Listen>("localhost:9000", Some("127.0.0.1:9000"));
        check::<Listen>("9000", Some("127.0.0.1:9000"));
        for text in [
            "",
            ":8787",
            "localhost",
            "127.0.0.1",
            "65536",
            "example.com:80",
            "-1",
        ] {
            check::<Listen>(text, None);
        }
    }

    #[test]
    fn urls_hold_no_password_and_secrets_are_named() {
        check::<WebUrl>("https://a.example:8/b?c", Some("https://a.example:8/b?c"));
        for text in [
            "",
            "a.example",
            "ftp://a",
            "https://",
            "https://u:p@a/",
            "http://a b",
        ] {
            check::<WebUrl>(text, None);
        }
        check::<PageUrl>("https://a/{id}", Some("https://a/{id}"));
        check::<PageUrl>("https://a/", None);
        check::<SecretRef>("env:A_1", Some("env:A_1"));
        check::<SecretRef>("file:keys/a", Some("file:keys/a"));
        for text in ["", "env:", "env:A B", "file:", "s3cret"] {
            check::<SecretRef>(text, None);
            let said = text.parse::<SecretRef>().unwrap_err();
            assert!(text.is_empty() || !said.contains("s3cret"), "{said}");
        }
    }
}
