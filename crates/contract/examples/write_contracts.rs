//! Writes the contract files into `contracts/`, or into the folder given as the argument.

use std::io::Error;
use std::path::PathBuf;

fn main() -> Result<(), Error> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contracts");
    let folder = std::env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from(own), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    for file in countersign_contract::contracts::files() {
        std::fs::write(folder.join(file.name), file.text)?;
    }
    Ok(())
}
