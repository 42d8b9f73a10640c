//! Secrets: a configuration holds a reference to one, never the secret itself.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zeroize::Zeroizing;

/// A reference to a secret: `env:NAME` for an environment variable, `file:PATH` for a file. The secret itself never
/// stands in a configuration.
///
/// # Example
///
/// ```
/// use countersign_upstream::manifest::SecretRef;
///
/// assert!("env:CRM_TOKEN".parse::<SecretRef>().is_ok());
/// let error = "hunter2".parse::<SecretRef>().unwrap_err();
/// assert!(!error.to_string().contains("hunter2"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// The environment variable of this name.
    Env(String),
    /// The file at this path; one line break at its end is not part of the secret.
    File(PathBuf),
}

/// A secret that was read. It cannot be printed, and its bytes are overwritten when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// The text is not a reference to a secret, usually because it is the secret itself; so it is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret is written as a reference, env:NAME or file:PATH; put the secret itself there and not here"
)]
pub struct NotAReference;

/// A secret could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set. Usually the service was started without its environment file.
    #[error("the environment variable {name} is not set; set it to the secret")]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// The variable is not UTF-8. Usually it has raw bytes in place of hexadecimal digits or base64.
    #[error("the environment variable {name} is not UTF-8")]
    NotText {
        /// Its name.
        name: String,
    },
    /// The file cannot be read. Usually the path is wrong, or the file belongs to another account.
    #[error("the secret in {path:?} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The secret is empty, usually because the file was not written yet.
    #[error("the secret {reference} is empty")]
    Empty {
        /// The reference.
        reference: SecretRef,
    },
    /// The secret is too long, usually because another file was named.
    #[error("the secret {reference} has more than {SECRET_BYTES_MAX} bytes")]
    TooLong {
        /// The reference.
        reference: SecretRef,
    },
}

/// The longest secret, in bytes.
const SECRET_BYTES_MAX: usize = 64 * 1024;

impl SecretRef {
    /// Reads the secret. A relative path counts from `folder`, the folder of the configuration file.
    pub fn read(&self, folder: &Path) -> Result<Secret, SecretError> {
        let text = match self {
            Self::Env(name) => std::env::var(name).map_err(|error| match error {
                std::env::VarError::NotPresent => SecretError::NoVariable { name: name.clone() },
                std::env::VarError::NotUnicode(_) => SecretError::NotText { name: name.clone() },
            })?,
            Self::File(path) => {
                let path = folder.join(path);
                let read = std::fs::read_to_string(&path);
                let mut text = read.map_err(|source| SecretError::Unreadable { path, source })?;
                let end = text.trim_end_matches(['\r', '\n']).len();
                text.truncate(end);
                text
            }
        };
        let text = Zeroizing::new(text);
        let reference = || self.clone();
        match text.len() {
            0 => Err(SecretError::Empty {
                reference: reference(),
            }),
            1..=SECRET_BYTES_MAX => Ok(Secret(text)),
            _ => Err(SecretError::TooLong {
                reference: reference(),
            }),
        }
    }
}

impl Secret {
    /// A secret that the embedding program has read by itself.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The secret, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
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

impl std::str::FromStr for SecretRef {
    type Err = NotAReference;

    fn from_str(text: &str) -> Result<Self, NotAReference> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        match text.split_once(':') {
            Some(("env", name)) if is_name(name) => Ok(Self::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(PathBuf::from(path))),
            _ => Err(NotAReference),
        }
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not through a visitor that would quote the text in its complaint.
        let text = String::deserialize(deserializer)
            .map_err(|_| de::Error::custom(NotAReference.to_string()))?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for SecretRef {
    fn schema_name() -> Cow<'static, str> {
        "SecretRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(env:[A-Za-z0-9_]+|file:.+)$",
            "description": "A reference to a secret: env:NAME or file:PATH. The secret itself never stands here."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A21: neither a complaint nor a debug print shows a secret.
    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "[secret]");
        for text in ["hunter2", "env:hunter 2", "file", "ENV:HUNTER2"] {
            let read = serde_json::from_str::<SecretRef>(&format!("{text:?}"));
            let complaint = read.unwrap_err().to_string();
            assert!(!complaint.to_lowercase().contains("hunter"), "{complaint}");
        }
        let wrong = serde_json::from_str::<SecretRef>("{\"value\": \"hunter2\"}");
        assert!(!wrong.unwrap_err().to_string().contains("hunter2"));
    }

    #[test]
    fn a_secret_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "abc\r\n").unwrap();
        let read = |reference: &str| {
            let reference: SecretRef = reference.parse().unwrap();
            let secret = reference.read(folder.path());
            secret.map(|secret| secret.expose().to_owned())
        };
        assert_eq!(read("file:token").unwrap(), "abc");
        let missing = read("file:none").unwrap_err().to_string();
        assert!(missing.contains("none"), "{missing}");
        let unset = read("env:COUNTERSIGN_TEST_NOT_SET").unwrap_err();
        assert_eq!(
            unset.to_string(),
            "the environment variable COUNTERSIGN_TEST_NOT_SET is not set; set it to the secret"
        );
    }
}
