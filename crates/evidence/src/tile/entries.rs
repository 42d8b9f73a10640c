//! Bundles of up to 256 leaves: for each two bytes of length, then the leaf.

use crate::tile::WIDTH;

/// Reason why a bundle cannot be written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntriesError {
    /// An entry is too long: its length is stored in two bytes.
    /// Usually the bytes are not those of a leaf: leaves are bounded far below this.
    #[error("entry {position} has {found} bytes; at most {max} fit", max = u16::MAX)]
    TooLong {
        /// Position in the bundle.
        position: usize,
        /// Length in bytes.
        found: usize,
    },
    /// The tile has more entries than hashes. Usually a caller has put the leaves of several tiles together.
    #[error("more than {WIDTH} entries in a bundle")]
    TooMany,
    /// The bundle ends inside an entry, usually because it was cut off.
    #[error("the bundle ends inside entry {position}")]
    CutShort {
        /// Position in the bundle.
        position: usize,
    },
}

/// Encodes entries as a bundle.
pub fn encode_entries<E: AsRef<[u8]>>(entries: &[E]) -> Result<Vec<u8>, EntriesError> {
    if entries.len() > usize::from(WIDTH) {
        return Err(EntriesError::TooMany);
    }
    let mut bytes = Vec::new();
    for (position, entry) in entries.iter().enumerate() {
        let entry = entry.as_ref();
        let found = entry.len();
        let length = u16::try_from(found).map_err(|_| EntriesError::TooLong { position, found })?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(entry);
    }
    Ok(bytes)
}

/// Decodes the entries of a bundle.
pub fn decode_entries(bytes: &[u8]) -> Result<Vec<&[u8]>, EntriesError> {
    let mut entries = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let position = entries.len();
        if position == usize::from(WIDTH) {
            return Err(EntriesError::TooMany);
        }
        let cut_short = EntriesError::CutShort { position };
        let (length, after) = rest.split_first_chunk().ok_or(cut_short)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (entry, after) = after.split_at_checked(length).ok_or(cut_short)?;
        entries.push(entry);
        rest = after;
    }
    Ok(entries)
}
