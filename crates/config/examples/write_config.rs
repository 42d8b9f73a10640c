//! Writes `contracts/config.schema.json` and `docs/configuration.md`, below the folder given as the argument or in
//! this repository.

use std::io::Error;
use std::path::PathBuf;

use countersign_config::{page, schema};

fn main() -> Result<(), Error> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let folder = std::env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from(own), PathBuf::from);
    std::fs::write(folder.join("contracts/config.schema.json"), schema::text())?;
    std::fs::write(folder.join("docs/configuration.md"), page::page())
}
