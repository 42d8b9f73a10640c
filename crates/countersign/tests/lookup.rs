//! B11: a look-up on the hot path allocates nothing. A file of its own, because it replaces the
//! allocator of its whole program.

use countersign::Catalog;
use countersign::sample::{Diagnostics, MemorySearch};

/// B11: found by name, found by alias, not found: none of them allocates.
#[test]
fn a_lookup_allocates_nothing() {
    let catalog = Catalog::builder()
        .tool(MemorySearch::new(["a note"]))
        .tool(Diagnostics)
        .build()
        .unwrap();
    // The first look-up of a thread sets up what the thread keeps for itself.
    assert!(catalog.get("memory.search").is_some());

    let measured = allocation_counter::measure(|| {
        assert!(catalog.get("memory.search").is_some());
        assert!(catalog.get("memory_search").is_some());
        assert!(catalog.get("nobody").is_none());
    });
    assert_eq!(measured.count_total, 0);

    let counted = allocation_counter::measure(|| drop(catalog.list()));
    assert!(counted.count_total > 0, "the counter counts");
}
