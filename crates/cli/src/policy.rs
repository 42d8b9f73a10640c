//! A policy file that an option names.

use std::path::Path;

use countersign::contract::Digest;
use countersign_gateway::policy::LivePolicy;

use crate::failure::Failure;
use crate::folder::Folder;

/// Reads it, or says what is wrong with it and where.
pub(crate) fn open(path: &Path) -> Result<LivePolicy, Failure> {
    LivePolicy::open(path).map_err(|error| {
        // Where it is about the whole file, it names the file itself.
        if error.line == 0 {
            return Failure::new(error.message).hint(error.hint);
        }
        Failure::new(format!("{}: {error}", path.display())).hint(error.hint)
    })
}

/// Where policies are kept in the data folder.
const FOLDER: &str = "policies";

/// Keeps the text of a policy under its digest, durably: records name the policy that decided by the start of it.
pub(crate) fn keep(data: &Folder, digest: Digest, text: &str) -> Result<(), Failure> {
    let digits = digest.to_string();
    let name = format!("{}.toml", digits.trim_start_matches("sha256:"));
    let folder = data.subfolder(FOLDER)?;
    if folder.read(&name)?.as_deref() == Some(text) {
        return Ok(());
    }
    folder.write(&name, text, 0o600)
}
