//! The same sets under criterion: estimates with their spread, comparison with the last run, and
//! its options (`cargo bench --package countersign-benches --bench estimates -- bind`).
//!
//! One side is measured after the other, so on a busy machine the ratio of two estimates drifts;
//! `table.rs` has the one that does not.

use std::time::Duration;

use countersign_benches::work::{Binding, Executing};
use criterion::{Criterion, Throughput};

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let binding = Binding::prepare();
    let count = binding.count();
    measure(&mut criterion, "bind/well_formed", count, || {
        binding.well_formed();
    });
    measure(&mut criterion, "bind/peer", count, || binding.peer());
    measure(&mut criterion, "bind/damaged", count, || binding.damaged());
    measure(&mut criterion, "canonical/form", count, || {
        binding.canonical();
    });
    let executing = Executing::prepare();
    let count = Executing::COUNT;
    measure(&mut criterion, "executor/no_op_read", count, || {
        executing.no_op_read();
    });
    measure(&mut criterion, "catalog/look_up", count, || {
        executing.look_up();
    });
    criterion.final_summary();
}

/// Measures one pass of `count` calls. The group is what criterion makes folders of.
fn measure(criterion: &mut Criterion, id: &str, count: usize, pass: impl Fn()) {
    let (group, name) = id.split_once('/').unwrap_or((id, id));
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Elements(count as u64));
    group.bench_function(name, |bencher| bencher.iter(&pass));
    group.finish();
}
