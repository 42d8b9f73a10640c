//! Reasons of holds: an operator's own words, which may name any person. The store keeps them sealed for as long as the
//! hold lasts.

use std::fmt::Write as _;

use countersign_contract::SnapshotId;
use countersign_evidence::seal::UserKey;

use super::{Archive, Error};
use crate::ledger::{self, Hold};
use crate::vault::SHARED;

/// Prefix of a sealed reason. Reasons of holds that an earlier version placed are plain.
const SEALED: &str = "sealed:";

/// Text that is shown for a reason that no key opens.
const CLOSED: &str = "(sealed under a key that is not here)";

impl Archive {
    /// Seals a reason for the store, under the user's key, or under the key for data without a user if the user has
    /// none.
    pub(super) async fn seal_words(
        &self,
        hold: &Hold,
        keys: Option<&UserKey>,
    ) -> Result<String, Error> {
        let shared;
        let keys = if let Some(keys) = keys {
            keys
        } else {
            shared = self.vault.key(SHARED).await?;
            &*shared
        };
        let sealed = keys.seal(self.entropy().nonce, &aad(hold), hold.reason.as_bytes());
        let mut text = SEALED.to_owned();
        for byte in sealed {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(text)
    }

    /// Opens the reason of a hold.
    pub(super) async fn open_words(&self, hold: &Hold) -> Result<String, Error> {
        let Some(sealed) = hold.reason.strip_prefix(SEALED) else {
            return Ok(hold.reason.clone());
        };
        let Some(sealed) = bytes(sealed) else {
            return Ok(CLOSED.to_owned());
        };
        for owner in [hold.user_id.as_str(), SHARED] {
            if let Some(keys) = self.vault.existing_key(owner).await?
                && let Ok(plain) = keys.open(&aad(hold), &sealed)
                && let Ok(words) = std::str::from_utf8(&plain)
            {
                return Ok(words.to_owned());
            }
        }
        Ok(CLOSED.to_owned())
    }

    /// Adds the opened reason of the hold to an error of the store that is about a hold.
    pub(super) async fn told(&self, error: ledger::Error, user_id: &str) -> Error {
        let ledger::Error::UnderHold { reason } = error else {
            return error.into();
        };
        // The words open for the hold that they belong to, which may be one on a record.
        let is_it = |hold: &Hold| hold.user_id == user_id && hold.reason == reason;
        let holds = self.store.holds(HOLDS_MAX).await.unwrap_or_default();
        let words = match holds.into_iter().find(is_it) {
            Some(hold) => self.open_words(&hold).await.ok(),
            None => None,
        };
        let reason = words.unwrap_or_else(|| CLOSED.to_owned());
        ledger::Error::UnderHold { reason }.into()
    }
}

/// Maximum number of holds that are searched for the one that forbids an operation.
const HOLDS_MAX: usize = 10_000;

/// Additional data of the seal: a reason opens for its own hold only.
fn aad(hold: &Hold) -> Vec<u8> {
    let record = hold.record.as_ref().map_or("", SnapshotId::as_str);
    ["hold", &hold.user_id, record].join("\0").into_bytes()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}
