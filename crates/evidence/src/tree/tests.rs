//! Known answers, and laws against an independent implementation (`ct-merkle`).

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use proptest::prelude::*;

use super::*;
use crate::tile::{TileMap, TileWriter};

/// The eight leaves that the reference implementations of RFC 6962 are tested with.
const LEAVES: [&str; 8] = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
];

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn hash(hex: &str) -> Hash {
    bytes(hex).try_into().unwrap()
}

fn tree_of(leaves: &[Vec<u8>]) -> (TileMap, Frontier) {
    let hashes: Vec<Hash> = leaves.iter().map(|leaf| leaf_hash(leaf)).collect();
    let mut writer = TileWriter::new();
    let tiles = writer.append(&hashes).into_iter().collect();
    (tiles, writer.frontier().clone())
}

fn numbered(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|n| n.to_string().into_bytes()).collect()
}

/// The roots that the reference implementations of RFC 6962 give for [`LEAVES`].
#[test]
fn known_roots() {
    let mut frontier = Frontier::new();
    let mut roots = vec![frontier.root()];
    for leaf in LEAVES {
        frontier.push(leaf_hash(&bytes(leaf)));
        roots.push(frontier.root());
    }
    let expected = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    assert_eq!(roots, expected.map(hash));
}

/// Every proof of every tree up to 33 leaves is accepted, and none for another index or size.
#[test]
fn proofs_hold_for_their_place_only() {
    let leaves = numbered(33);
    let (tiles, _) = tree_of(&leaves);
    let roots: Vec<Hash> = (0..=33).map(|n| tree_of(&leaves[..n]).1.root()).collect();
    for size in 1..=33_u64 {
        for index in 0..size {
            let proof = inclusion_proof(index, size, &tiles).unwrap();
            let leaf = leaf_hash(&leaves[index as usize]);
            for (other, root) in roots.iter().enumerate() {
                for at in 0..size {
                    let holds = verify_inclusion(&leaf, at, other as u64, &proof, root).is_ok();
                    // The shape of a path does not determine every size, but the root does.
                    assert_eq!(
                        holds,
                        (at, other as u64) == (index, size),
                        "{index}/{size} at {at}/{other}"
                    );
                }
            }
        }
    }
    for new in 0..=33_u64 {
        for old in 0..=new {
            let proof = consistency_proof(old, new, &tiles).unwrap();
            let root = |size: u64| &roots[size as usize];
            verify_consistency(old, root(old), new, root(new), &proof).unwrap();
            for other in (0..=33).filter(|other| *other != old) {
                // There is nothing to prove if the earlier tree is empty or the same.
                let trivial = proof.is_empty() && (other == 0 || other == new);
                let outcome = verify_consistency(other, root(other), new, root(new), &proof);
                assert_eq!(outcome.is_ok(), trivial, "{old} as {other} of {new}");
            }
        }
    }
}

/// A flipped bit, an additional hash or a missing hash is always detected.
#[test]
fn altered_proofs_are_refused() {
    let leaves = numbered(7);
    let (tiles, frontier) = tree_of(&leaves);
    let root = frontier.root();
    let (leaf, proof) = (leaf_hash(b"3"), inclusion_proof(3, 7, &tiles).unwrap());
    let old_root = tree_of(&leaves[..3]).1.root();
    let grown = consistency_proof(3, 7, &tiles).unwrap();
    let included = |proof: &[Hash]| verify_inclusion(&leaf, 3, 7, proof, &root);
    let consistent = |proof: &[Hash]| verify_consistency(3, &old_root, 7, &root, proof);
    let altered = |proof: &[Hash]| -> Vec<Vec<Hash>> {
        let flipped = (0..proof.len() * 32).map(|at| {
            let mut proof = proof.to_vec();
            proof[at / 32][at % 32] ^= 1;
            proof
        });
        let mut all: Vec<_> = flipped.collect();
        all.push(proof[1..].to_vec());
        all.push(proof[..proof.len() - 1].to_vec());
        all.push([proof, &[root]].concat());
        all.push([&[root], proof].concat());
        all
    };
    assert_eq!((included(&proof), consistent(&grown)), (Ok(()), Ok(())));
    for proof in altered(&proof) {
        assert!(included(&proof).is_err());
    }
    for proof in altered(&grown) {
        assert!(consistent(&proof).is_err());
    }
}

#[test]
fn a_proof_that_cannot_be_is_refused() {
    let (tiles, frontier) = tree_of(&numbered(5));
    let check = |outcome: Result<Vec<Hash>, ProofError>, expected: &str| {
        assert_eq!(outcome.unwrap_err().to_string(), expected);
    };
    check(
        inclusion_proof(5, 5, &tiles),
        "leaf 5 is not in a tree of 5 leaves",
    );
    check(
        inclusion_proof(0, u64::MAX, &tiles),
        "leaf 0 is not in a tree of 18446744073709551615 leaves",
    );
    check(
        consistency_proof(6, 5, &tiles),
        "a tree of 5 leaves did not grow from one of 6",
    );
    check(
        inclusion_proof(0, 6, &tiles),
        "tile 0/0 of width 6 is missing or cut short",
    );
    let kept = frontier.hashes().to_vec();
    assert_eq!(Frontier::from_parts(5, kept.clone()), Ok(frontier));
    let error = Frontier::from_parts(7, kept).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a tree of 7 leaves has an edge of 3 hashes, not 2"
    );
}

type Reference = MemoryBackedTree<sha2::Sha256, Vec<u8>>;

fn reference(leaves: &[Vec<u8>]) -> Reference {
    let mut tree = Reference::new();
    for leaf in leaves {
        tree.push(leaf.clone());
    }
    tree
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Roots and proofs equal those of another implementation, also across tile borders; and the tiles that are
    /// named beforehand are enough.
    #[test]
    fn another_implementation_agrees(new in 1_u64..700, at: prop::sample::Index) {
        let leaves = numbered(new);
        let (tiles, frontier) = tree_of(&leaves);
        let theirs = reference(&leaves);
        prop_assert_eq!(frontier.root().to_vec(), theirs.root().as_bytes().to_vec());

        let index = at.index(new as usize) as u64;
        let only = |wanted: Vec<(TileId, u16)>| -> TileMap {
            let row = |(id, width): (TileId, u16)| (id, tiles[&id][..usize::from(width) * 32].to_vec());
            wanted.into_iter().map(row).collect()
        };
        let fetched = only(tiles_for_inclusion(index, new).unwrap());
        let proof = inclusion_proof(index, new, &fetched).unwrap();
        let their_proof = theirs.prove_inclusion(index as usize);
        prop_assert_eq!(proof.concat(), their_proof.as_bytes());

        let old = index + 1;
        let fetched = only(tiles_for_consistency(old, new).unwrap());
        let proof = consistency_proof(old, new, &fetched).unwrap();
        if old < new {
            let their_proof = theirs.prove_consistency((new - old) as usize);
            prop_assert_eq!(proof.concat(), their_proof.as_bytes());
        }
        let old_root = reference(&leaves[..old as usize]).root();
        let old_root: &Hash = old_root.as_bytes().as_slice().try_into().unwrap();
        prop_assert_eq!(verify_consistency(old, old_root, new, &frontier.root(), &proof), Ok(()));
        let fetched = only(tiles_for_frontier(old));
        prop_assert_eq!(&super::frontier(old, &fetched).unwrap().root(), old_root);
    }
}
