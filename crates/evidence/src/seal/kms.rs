//! Key management: wraps the users' keys with a local master key, or with a remote service.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use aws_lc_rs::hmac;

use crate::hex;
use crate::seal::{SealError, SealKey, UserKey, derive, mac};

/// Future of a [`Kms`] answer.
pub type KmsFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, KmsError>> + Send + 'a>>;

/// Reason why a key could not be wrapped or unwrapped.
#[derive(Debug, thiserror::Error)]
pub enum KmsError {
    /// The service refused, usually because another master key wrapped the user key. A retry does not help.
    #[error("the key {id:?} does not unwrap this user key: {source}")]
    Refused {
        /// Id of the master key.
        id: String,
        /// Cause.
        source: SealError,
    },
    /// The unwrapped bytes are not a user key. Usually the key was wrapped by another program.
    #[error("the key {id:?} unwrapped {found} bytes; a user key has 32")]
    NotAKey {
        /// Id of the master key.
        id: String,
        /// Number of bytes.
        found: usize,
    },
    /// The service did not answer, usually because of the network. A retry may help.
    #[error("the key {id:?} is not available")]
    Unavailable {
        /// Id of the master key.
        id: String,
        /// Cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Wraps and unwraps the keys of users. `context` names the user; a key only unwraps in its own context.
pub trait Kms: Send + Sync {
    /// Returns the id of the current master key, which is stored with each wrapped key.
    fn id(&self) -> &str;

    /// Wraps a user's key.
    fn wrap<'a>(
        &'a self,
        key: &'a UserKey,
        nonce: [u8; 12],
        context: &'a [u8],
    ) -> KmsFuture<'a, Vec<u8>>;

    /// Unwraps a user's key.
    fn unwrap<'a>(&'a self, wrapped: &'a [u8], context: &'a [u8]) -> KmsFuture<'a, UserKey>;
}

/// A master key in memory, from a file or the environment.
///
/// # Example
///
/// ```
/// use countersign_evidence::seal::{MasterKey, UserKey};
///
/// let master = MasterKey::from_bytes(&[1; 32]);
/// let wrapped = master.wrap([0; 12], b"user", &UserKey::from_bytes(&[2; 32]));
/// assert_eq!(master.unwrap(b"user", &wrapped)?.secret_bytes(), &[2; 32]);
/// assert!(master.unwrap(b"another user", &wrapped).is_err());
/// # Ok::<(), countersign_evidence::seal::KmsError>(())
/// ```
pub struct MasterKey {
    id: String,
    wrap: SealKey,
}

impl MasterKey {
    /// Creates the key of these 32 bytes, which must come from a cryptographic source of randomness.
    pub fn from_bytes(secret: &[u8; 32]) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let mut id = hex::encode(&mac(&root, &[b"countersign.dev/key/id@v1"]));
        id.truncate(16);
        Self {
            id,
            wrap: SealKey::new(&derive(&root, "wrap")),
        }
    }

    /// Returns a short id that reveals nothing of the key: 16 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Wraps a user's key.
    pub fn wrap(&self, nonce: [u8; 12], context: &[u8], key: &UserKey) -> Vec<u8> {
        self.wrap.seal(nonce, context, key.secret_bytes())
    }

    /// Unwraps a user's key.
    pub fn unwrap(&self, context: &[u8], wrapped: &[u8]) -> Result<UserKey, KmsError> {
        let id = || self.id.clone();
        let secret = self
            .wrap
            .open(context, wrapped)
            .map_err(|source| KmsError::Refused { id: id(), source })?;
        let secret = secret
            .as_slice()
            .try_into()
            .map_err(|_| KmsError::NotAKey {
                id: id(),
                found: secret.len(),
            })?;
        Ok(UserKey::from_bytes(secret))
    }
}

/// Omits the secret, so that it stays out of logs.
impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

impl Kms for MasterKey {
    fn id(&self) -> &str {
        &self.id
    }

    fn wrap<'a>(
        &'a self,
        key: &'a UserKey,
        nonce: [u8; 12],
        context: &'a [u8],
    ) -> KmsFuture<'a, Vec<u8>> {
        Box::pin(async move { Ok(Self::wrap(self, nonce, context, key)) })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a [u8], context: &'a [u8]) -> KmsFuture<'a, UserKey> {
        Box::pin(async move { Self::unwrap(self, context, wrapped) })
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::seal::OVERHEAD_BYTES;

    #[test]
    fn a_wrapped_key_opens_with_its_master_and_in_its_place_only() {
        let (master, other) = (
            MasterKey::from_bytes(&[1; 32]),
            MasterKey::from_bytes(&[2; 32]),
        );
        assert_ne!(master.id(), other.id());
        let wrapped = master.wrap([9; 12], b"u1", &UserKey::from_bytes(&[3; 32]));
        assert_eq!(
            master.unwrap(b"u1", &wrapped).unwrap().secret_bytes(),
            &[3; 32]
        );
        let refused =
            |outcome: Result<UserKey, KmsError>| matches!(outcome, Err(KmsError::Refused { .. }));
        assert!(refused(other.unwrap(b"u1", &wrapped)));
        assert!(refused(master.unwrap(b"u2", &wrapped)));
        // A sealed payload is not a wrapped key, whatever the bytes of the two secrets.
        let sealed = UserKey::from_bytes(&[1; 32]).seal([9; 12], b"u1", &[3; 32]);
        assert!(refused(master.unwrap(b"u1", &sealed)));
    }

    /// A master key implements the trait, and answers at once.
    #[test]
    fn a_master_key_is_a_kms() {
        fn now<T>(mut future: KmsFuture<'_, T>) -> T {
            let mut context = Context::from_waker(Waker::noop());
            match future.as_mut().poll(&mut context) {
                Poll::Ready(outcome) => outcome.unwrap(),
                Poll::Pending => panic!("a key in memory waits for nothing"),
            }
        }

        let kms: &dyn Kms = &MasterKey::from_bytes(&[1; 32]);
        let wrapped = now(kms.wrap(&UserKey::from_bytes(&[3; 32]), [9; 12], b"u1"));
        assert_eq!(now(kms.unwrap(&wrapped, b"u1")).secret_bytes(), &[3; 32]);
        let same = MasterKey::from_bytes(&[1; 32]);
        assert_eq!((kms.id(), wrapped.len()), (same.id(), 32 + OVERHEAD_BYTES));
    }

    #[test]
    fn only_a_key_unwraps_to_a_key() {
        let master = MasterKey::from_bytes(&[1; 32]);
        let wrapped = master.wrap.seal([0; 12], b"u1", &[3; 31]);
        let error = master.unwrap(b"u1", &wrapped).unwrap_err().to_string();
        let id = master.id();
        assert_eq!(
            error,
            format!("the key {id:?} unwrapped 31 bytes; a user key has 32")
        );
        assert_eq!(format!("{master:?}"), format!("MasterKey({id})"));
    }
}
