//! Rows that continue where they stopped, and the paths and bundles of C2SP tlog-tiles.

use proptest::prelude::*;

use super::*;
use crate::tree::{Frontier, leaf_hash};

fn leaves(count: u64) -> Vec<Hash> {
    (0..count).map(|n| leaf_hash(&n.to_be_bytes())).collect()
}

/// The rows do not depend on the number of steps in which a log grows, nor on restarts of the writer.
#[test]
fn rows_do_not_depend_on_batches_or_restarts() {
    let all = leaves(66_000);
    let mut at_once = TileWriter::new();
    let expected: TileMap = at_once.append(&all).into_iter().collect();
    let mut rows = TileMap::new();
    let (mut size, mut steps) = (
        0_usize,
        [1, 254, 1, 1, 255, 65_023, 1, 300, 7].into_iter().cycle(),
    );
    while size < all.len() {
        let end = (size + steps.next().unwrap()).min(all.len());
        let mut writer = TileWriter::resume(size as u64, &rows).unwrap();
        rows.extend(writer.append(&all[size..end]));
        size = end;
        let mut frontier = Frontier::new();
        all[..size].iter().for_each(|leaf| frontier.push(*leaf));
        assert_eq!(writer.frontier(), &frontier, "{size}");
    }
    assert_eq!(rows, expected);
    for (id, row) in &rows {
        assert_eq!(row.len(), usize::from(width_at(*id, 66_000)) * 32, "{id:?}");
    }
    let widths: Vec<_> = rows
        .iter()
        .map(|(id, row)| (id.level, row.len() / 32))
        .collect();
    assert_eq!(
        widths[256..],
        [(0, 256), (0, 208), (1, 256), (1, 1), (2, 1)]
    );
}

/// A row is written again only if it changed.
#[test]
fn a_row_is_written_when_it_changed() {
    let all = leaves(514);
    let mut writer = TileWriter::new();
    writer.append(&all[..512]);
    let ids = |rows: Vec<(TileId, Vec<u8>)>| -> Vec<(u8, u64, usize)> {
        let shape = |(id, row): &(TileId, Vec<u8>)| (id.level, id.index, row.len() / 32);
        rows.iter().map(shape).collect()
    };
    assert_eq!(ids(writer.append(&[])), []);
    assert_eq!(ids(writer.append(&all[512..])), [(0, 2, 2)]);
}

#[test]
fn a_missing_or_short_row_is_told() {
    let mut writer = TileWriter::new();
    let mut rows: TileMap = writer.append(&leaves(300)).into_iter().collect();
    let id = TileId { level: 0, index: 1 };
    rows.get_mut(&id).unwrap().truncate(43 * 32 + 31);
    let error = TileWriter::resume(300, &rows).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tile 0/1 of width 44 is missing or cut short"
    );
    rows.remove(&id);
    assert_eq!(TileWriter::resume(300, &rows).unwrap_err(), error);
}

/// The examples of C2SP tlog-tiles, and texts that are almost paths.
#[test]
fn paths_have_one_spelling() {
    for (text, kind, index, width) in [
        ("tile/0/000", TileKind::Hashes(0), 0, 256),
        ("tile/0/x001/x234/067", TileKind::Hashes(0), 1_234_067, 256),
        ("tile/1/x016/383.p/112", TileKind::Hashes(1), 16_383, 112),
        ("tile/entries/999", TileKind::Entries, 999, 256),
        ("tile/entries/x273/894.p/1", TileKind::Entries, 273_894, 1),
    ] {
        let path = TilePath { kind, index, width };
        assert_eq!(path.to_string(), text);
        assert_eq!(text.parse(), Ok(path));
    }
    for text in [
        "tile/0/0",
        "tile/0/x000/001",
        "tile/0/001/234",
        "tile/0/x001/x234",
        "tile/0/000.p/256",
        "tile/0/000.p/0",
        "tile/0/000.p/01",
        "tile/64/000",
        "tile/00/000",
        "tile/+1/000",
        "tile/0/",
        "tile/0/000/",
        "tile/data/000",
        "tile/0/xx01/234",
        "tile/0/x99/999/999/999/999/999/999/999",
        "/tile/0/000",
        "tile/0/+01",
        "",
    ] {
        assert_eq!(text.parse::<TilePath>(), Err(InvalidPath), "{text:?}");
    }
}

#[test]
fn bundles_refuse_what_does_not_fit() {
    let long = vec![0; 65_536];
    assert_eq!(
        encode_entries(&[&long[1..], &long[..]]),
        Err(EntriesError::TooLong {
            position: 1,
            found: 65_536
        })
    );
    let empty: &[u8] = b"";
    assert!(encode_entries(&[empty; 256]).is_ok());
    assert_eq!(encode_entries(&[empty; 257]), Err(EntriesError::TooMany));
    assert_eq!(decode_entries(&[0; 514]), Err(EntriesError::TooMany));
    for cut in [&b"\x00\x01a\x00"[..], b"\x00\x01a\x00\x02b"] {
        assert_eq!(
            decode_entries(cut),
            Err(EntriesError::CutShort { position: 1 })
        );
    }
    assert_eq!(
        decode_entries(b"\x00\x02ab\x00\x00"),
        Ok(vec![&b"ab"[..], b""])
    );
}

proptest! {
    #[test]
    fn bundles_come_back(entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
        let bytes = encode_entries(&entries).unwrap();
        prop_assert_eq!(decode_entries(&bytes).unwrap(), entries);
    }

    #[test]
    fn paths_come_back(level in 0_u8..64, index: u64, width in 1_u16..=256) {
        for path in [TilePath::hashes(TileId { level, index }, width), TilePath::entries(index, width)] {
            prop_assert_eq!(path.to_string().parse(), Ok(path));
        }
    }
}
