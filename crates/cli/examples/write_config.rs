//! Writes `contracts/config.schema.json` and `docs/configuration.md`, below the folder given as the argument or in
//! this repository. The settings are those of the configuration, and those of a policy, which only the gateway knows.

use std::io::Error;
use std::path::PathBuf;

use countersign_config::{page, schema};
use countersign_gateway::policy;

fn main() -> Result<(), Error> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let folder = std::env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from(own), PathBuf::from);
    let policy = policy::schema();
    let text = schema::text(&policy);
    std::fs::write(folder.join("contracts/config.schema.json"), text)?;
    std::fs::write(folder.join("docs/configuration.md"), page::page(&policy))
}
