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

/// Separates the reason from the id of what a hold was placed for. A reason has no control character.
pub(super) const OF: char = '\u{1e}';

/// A hold as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedHold {
    /// The user whose records are held.
    pub user_id: String,
    /// Only this record; `None` if everything of the user is held.
    pub record: Option<SnapshotId>,
    /// The id of the order that the record is held for; `None` if the record or the user itself was named.
    pub of: Option<String>,
    /// The reason.
    pub reason: String,
}

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

    /// Opens the words of a hold: its reason, and the id of what it was placed for, if that is more than one record.
    pub(super) async fn open_hold(&self, hold: Hold) -> Result<ListedHold, Error> {
        let words = self.open_words(&hold).await?;
        let (reason, of) = match words.split_once(OF) {
            Some((reason, of)) => (reason.to_owned(), Some(of.to_owned())),
            None => (words, None),
        };
        Ok(ListedHold {
            user_id: hold.user_id,
            record: hold.record,
            of,
            reason,
        })
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
            Some(hold) => self.open_hold(hold).await.ok(),
            None => None,
        };
        let reason = words.map_or_else(|| CLOSED.to_owned(), |hold| hold.reason);
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
