//! Late use: every tool, in every order that the flow allows, after the TTLs of the answers that it names are over.
//!
//! A sequence of steps plays two buyers, the approver of their questions, and an operator: calls, whole ways to a
//! payment with a pause anywhere, repeats under the same and under other keys, wrong arguments, answers, holds,
//! erasures, restarts, changed rules, and a clock that jumps. After each step the whole log and the bundles of the
//! newest orders, payments and snapshots have to be valid, and every record has to be true (`laws`).
//!
//! `cargo test` plays a few sequences, always the same ones. `COUNTERSIGN_LATE=300x60` plays 300 random ones of up
//! to 60 steps; the sequence that fails is printed, the shortest that was found.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod laws;
mod log;
mod place;
mod play;
mod shop;
mod step;
mod story;

use std::sync::Mutex;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use place::{Kind, Place};
use play::{Play, Tally};

/// The number of sequences of the quick form, and their maximum number of steps.
const QUICK: (u32, usize) = (24, 40);

/// The environment variable that asks for more.
const VARIABLE: &str = "COUNTERSIGN_LATE";

/// A8, A14, A15: whatever is done, and however late, the log stays valid and its records are true.
#[test]
fn whatever_is_done_late_the_log_stays_valid() {
    let asked = std::env::var(VARIABLE).ok();
    let (cases, steps) = asked.as_deref().map_or(QUICK, wanted);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let rng = match asked {
        Some(_) => TestRng::from_seed(RngAlgorithm::ChaCha, &seed()),
        // Always the same sequences: a failure on one machine is one on every other.
        None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    };
    let tally = Mutex::new(Tally::default());
    let strategy = (any::<bool>(), vec(step::step(), 1..=steps));
    let played = TestRunner::new_with_rng(config, rng).run(&strategy, |(is_file, steps)| {
        let kind = if is_file {
            Kind::file()
        } else {
            Kind::memory()
        };
        let case = block_on(async {
            let mut play = Play::new(Place::open(kind).await);
            for step in &steps {
                play.step(step).await;
            }
            play.end().await
        });
        tally.lock().unwrap().add(case);
        Ok(())
    });
    let failure = played.err().map(|error| error.to_string());
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    let tally = tally.into_inner().unwrap();
    eprintln!("{tally}");
    tally.check_called();
}

/// The number of sequences and of their steps in `300x60`.
fn wanted(text: &str) -> (u32, usize) {
    let (cases, steps) = text.split_once('x').expect("such as 300x60");
    (cases.parse().unwrap(), steps.parse().unwrap())
}

/// 32 bytes that differ from run to run.
fn seed() -> [u8; 32] {
    use std::hash::{BuildHasher as _, RandomState};
    let mut seed = [0; 32];
    for (at, chunk) in seed.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&RandomState::new().hash_one(at).to_ne_bytes());
    }
    seed
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}
