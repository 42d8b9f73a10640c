//! The address of a store.

use std::fmt;
use std::path::PathBuf;

use super::{SecretRef, Written};

/// The address of a store. It is always shown without a password.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// A store in memory, which ends with the process.
    Memory,
    /// A file.
    Sqlite(PathBuf),
    /// A database of PostgreSQL. From the environment or a flag it may hold a password; in the file it must not.
    Postgres(String),
    /// The place of the whole address.
    Secret(SecretRef),
}

impl StoreAddress {
    /// Returns the whole address as it was written, with its password if it has one. It is for connecting, and never shown.
    pub fn written(&self) -> String {
        match self {
            Self::Postgres(address) => address.clone(),
            Self::Memory | Self::Sqlite(_) | Self::Secret(_) => self.to_string(),
        }
    }

    /// True if the address has a password in it.
    pub fn holds_password(&self) -> bool {
        let Self::Postgres(address) = self else {
            return false;
        };
        let (plain, options) = address.split_once('?').unwrap_or((address, ""));
        let user = plain.rsplit_once('@').map_or("", |(user, _)| {
            user.split_once("://").map_or(user, |(_, user)| user)
        });
        user.contains(':')
            || options
                .split('&')
                .any(|option| option.starts_with("password="))
    }
}

impl Written for StoreAddress {
    const NAME: &'static str = "StoreAddress";
    const FORM: &'static str =
        "sqlite:PATH, postgres://USER@HOST/DATABASE, memory, env:NAME or file:PATH";

    fn read(text: &str) -> Option<Self> {
        if text == "memory" {
            return Some(Self::Memory);
        }
        if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
            return Some(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Some(Self::Postgres(text.to_owned()));
        }
        SecretRef::read(text).map(Self::Secret)
    }
}

/// Shows the address without a password: one that has a password is shown with its host and its database only.
impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(address) if !self.holds_password() => f.write_str(address),
            Self::Postgres(address) => {
                // Everything before the last `@` may be a user and a password; the options may hold one.
                let plain = address.split('?').next().unwrap_or_default();
                let host = plain.rsplit_once('@').map_or_else(
                    || plain.split_once("://").map_or("", |(_, host)| host),
                    |(_, host)| host,
                );
                write!(f, "postgres://{host}")
            }
            Self::Secret(place) => place.fmt(f),
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_shown_without_its_password() {
        let check = |text: &str, shown: &str, holds_password: bool| {
            let address: StoreAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.holds_password(), holds_password, "{text}");
        };
        check("memory", "memory", false);
        check("sqlite:a/b.db", "sqlite:a/b.db", false);
        check(
            "postgres://u:s3cret@db:5432/x",
            "postgres://db:5432/x",
            true,
        );
        check(
            "postgres://u@db:5432/x?password=s",
            "postgres://db:5432/x",
            true,
        );
        check("postgresql://u:p%40@q@db/x", "postgres://db/x", true);
        let plain = "postgres://u@db:5432/x?sslmode=require";
        check(plain, plain, false);
        check("postgres://db:5432/x", "postgres://db:5432/x", false);
        check("env:DATABASE_URL", "env:DATABASE_URL", false);
        for text in ["", "sqlite:", "mysql://x", "countersign.db"] {
            assert!(text.parse::<StoreAddress>().is_err(), "{text}");
        }
    }
}
