//! Paths of tiles: `tile/0/x001/234`, `tile/0/x001/234.p/5`, `tile/entries/000`.

use std::fmt;
use std::str::FromStr;

use crate::tile::{TileId, WIDTH};

/// Content of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TileKind {
    /// Hashes of this level.
    Hashes(u8),
    /// The leaves themselves.
    Entries,
}

/// The path of a tile in the form that mirrors and auditors request.
///
/// # Example
///
/// ```
/// use countersign_evidence::tile::{TileId, TilePath};
///
/// let path = TilePath::hashes(TileId { level: 0, index: 1234 }, 5);
/// assert_eq!(path.to_string(), "tile/0/x001/234.p/5");
/// assert_eq!("tile/0/x001/234.p/5".parse(), Ok(path));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TilePath {
    /// Content of the tile.
    pub kind: TileKind,
    /// Index of the tile.
    pub index: u64,
    /// Number of hashes or entries: 1 to [`WIDTH`].
    pub width: u16,
}

/// The text is not the path of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a tile path: expected tile/LEVEL/INDEX or tile/entries/INDEX, with .p/WIDTH where partial"
)]
pub struct InvalidPath;

impl TilePath {
    /// Creates the path of a tile of hashes.
    pub const fn hashes(id: TileId, width: u16) -> Self {
        Self {
            kind: TileKind::Hashes(id.level),
            index: id.index,
            width,
        }
    }

    /// Creates the path of a bundle of entries.
    pub const fn entries(index: u64, width: u16) -> Self {
        Self {
            kind: TileKind::Entries,
            index,
            width,
        }
    }
}

impl fmt::Display for TilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TileKind::Hashes(level) => write!(f, "tile/{level}/")?,
            TileKind::Entries => f.write_str("tile/entries/")?,
        }
        write_index(f, self.index / 1000)?;
        write!(f, "{:03}", self.index % 1000)?;
        if self.width < WIDTH {
            write!(f, ".p/{}", self.width)?;
        }
        Ok(())
    }
}

/// Writes all groups of three digits but the last.
fn write_index(f: &mut fmt::Formatter<'_>, thousands: u64) -> fmt::Result {
    if thousands > 0 {
        write_index(f, thousands / 1000)?;
        write!(f, "x{:03}/", thousands % 1000)?;
    }
    Ok(())
}

impl FromStr for TilePath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        // The path is formatted again and compared: there is one spelling, and a cache must not have two.
        parse(text)
            .filter(|path| path.to_string() == text)
            .ok_or(InvalidPath)
    }
}

fn parse(text: &str) -> Option<TilePath> {
    let (kind, rest) = text.strip_prefix("tile/")?.split_once('/')?;
    let kind = match kind {
        "entries" => TileKind::Entries,
        level => TileKind::Hashes(level.parse().ok().filter(|level| *level < 64)?),
    };
    let (groups, width) = match rest.split_once(".p/") {
        Some((groups, width)) => (
            groups,
            width.parse().ok().filter(|w| (1..WIDTH).contains(w))?,
        ),
        None => (rest, WIDTH),
    };
    let mut index = 0_u64;
    for group in groups.split('/') {
        let digits: u64 = group.trim_start_matches('x').parse().ok()?;
        index = index.checked_mul(1000)?.checked_add(digits)?;
    }
    Some(TilePath { kind, index, width })
}
