//! A policy file that an option names.

use std::path::Path;

use countersign_gateway::policy::LivePolicy;

use crate::failure::Failure;

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
