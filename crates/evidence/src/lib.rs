//! The evidence log without I/O: hashing, signing and sealing, and the checks of a third party.
//!
//! Nothing here reads a clock, generates randomness or touches a file: nonces, salts and times are arguments,
//! so the same input always gives the same bytes. Read the modules in this order:
//!
//! 1. [`tree`]: the Merkle tree over the leaves, and its proofs; [`tile`]: its form in a store;
//! 2. [`note`] and [`checkpoint`]: the signed statement "the tree of this size has this root";
//!    [`cosignature`] and [`witness`]: the same statement by others, and how a log asks them for it;
//! 3. [`seal`]: the uses of a user's key, and the services that keep that key;
//! 4. [`freshness`]: claims of a record about the answers that it links;
//! 5. [`bundle`]: some records in one file, and the checks of a third party;
//! 6. [`proof`] and [`receipt`]: the same evidence in the formats of C2SP and of the IETF;
//! 7. [`page`]: the same checks as a page for a browser.
//!
//! The formats are specified in `docs/evidence-format.md`.
//!
//! # Example
//!
//! ```
//! use countersign_evidence::checkpoint::Checkpoint;
//! use countersign_evidence::note::SigningKey;
//! use countersign_evidence::tile::{TileMap, TileWriter};
//! use countersign_evidence::tree;
//!
//! let leaves = ["a", "b", "c"].map(|leaf| tree::leaf_hash(leaf.as_bytes()));
//! let mut writer = TileWriter::new();
//! let tiles: TileMap = writer.append(&leaves).into_iter().collect();
//! let root = writer.frontier().root();
//!
//! let key = SigningKey::from_seed("example.com/log", &[7; 32])?;
//! let note = Checkpoint::new("example.com/log", 3, root).sign(&key)?;
//! let signed = Checkpoint::open(&note, &key.verifying_key())?;
//!
//! let proof = tree::inclusion_proof(1, 3, &tiles)?;
//! tree::verify_inclusion(&leaves[1], 1, signed.size, &proof, &signed.root)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bundle;
mod cbor;
pub mod checkpoint;
pub mod cosignature;
pub mod freshness;
pub mod hex;
pub mod note;
pub mod page;
pub mod proof;
pub mod receipt;
pub mod seal;
pub mod tile;
pub mod tree;
pub mod witness;
