//! Some seeds of what `cargo xtask torture` simulates in thousands.

use countersign_torture::simulation::{Outcome, simulate};

/// A17–A19: whatever fails, dies, is late or lies, nothing acknowledged is lost, nothing happens twice, money adds up and the log verifies.
#[test]
fn no_seed_breaks_a_promise() {
    let mut sum = Outcome::default();
    for seed in 1..=150 {
        let outcome = simulate(seed).expect("a world can be made");
        sum.add(seed, outcome);
    }
    assert!(sum.wrong.is_empty(), "{}", sum.wrong.join("\n"));
    assert!(
        sum.faults > 500 && sum.deaths > 150 && sum.jumps > 20,
        "{sum:?}"
    );
    assert!(sum.succeeded > 400 && sum.in_doubt > 10, "{sum:?}");
}

/// A seed decides everything: the same one is the same run.
#[test]
fn a_seed_repeats_a_run() {
    for seed in 1..=20 {
        let first = simulate(seed).expect("a world can be made");
        let second = simulate(seed).expect("a world can be made");
        assert_eq!(first, second, "seed {seed}");
        let other = simulate(seed + 1_000).expect("a world can be made");
        assert_ne!(first.trace, other.trace, "seed {seed}");
    }
}
