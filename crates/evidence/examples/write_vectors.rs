//! Regenerates `docs/evidence-vectors/`.

#[expect(
    clippy::indexing_slicing,
    reason = "the sample has the places it names"
)]
#[path = "../tests/evidence/common/mod.rs"]
mod common;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence-vectors");
    std::fs::create_dir_all(folder.join("bundles"))?;
    for file in common::vectors::files() {
        std::fs::write(folder.join(file.path), file.text)?;
    }
    Ok(())
}
