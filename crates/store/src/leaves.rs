//! Codes of records that are not signed yet. Without the keys no program can write a row that is taken for a record.

use std::sync::{Arc, OnceLock};

use countersign_evidence::seal::{LEAF_CODE_BYTES, LeafKey};
use countersign_evidence::tree::{Hash, leaf_hash};

/// Code of a record; `None` if the store has no key.
pub(crate) type Code = Option<[u8; LEAF_CODE_BYTES]>;

/// The key of the codes; empty until the installation's keys are known. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaves(Arc<OnceLock<LeafKey>>);

impl Leaves {
    /// Sets the key. A second one is ignored: an installation has one.
    pub(crate) fn set(&self, key: LeafKey) {
        self.0.set(key).ok();
    }

    /// Computes the code of a record.
    pub(crate) fn code(&self, id: &str, hash: &Hash) -> Code {
        self.0.get().map(|key| key.code(id, hash))
    }

    /// Computes the code of a record from its leaf.
    pub(crate) fn code_of_leaf(&self, id: &str, leaf: &[u8]) -> Code {
        self.0.get().map(|key| key.code(id, &leaf_hash(leaf)))
    }

    /// Checks the code that is stored with a record. The error names what is damaged.
    pub(crate) fn check(&self, id: &str, hash: &Hash, stored: Option<&[u8]>) -> Result<(), String> {
        let expected = self.code(id, hash);
        if expected.is_none_or(|expected| stored == Some(&expected)) {
            return Ok(());
        }
        Err(format!(
            "the record {id}, which is not signed yet (another program has written or changed it),"
        ))
    }
}
