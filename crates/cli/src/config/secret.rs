//! Secrets of the configuration: it names them, and they are read here. None of them is ever shown.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use countersign_config::value::SecretRef;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// The longest secret, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// Reads a secret, without the line break at its end. `key` is the setting that names it.
pub(crate) fn read(key: &str, secret: &SecretRef) -> Result<Zeroizing<String>, Failure> {
    let text = match secret {
        SecretRef::Env(name) => Zeroizing::new(std::env::var(name).map_err(|_| {
            let message = format!("{key}: the variable {name} is not set, or is not UTF-8");
            Failure::new(message).hint(format!("set {name} for this command"))
        })?),
        SecretRef::File(path) => in_file(key, path)?,
    };
    Ok(Zeroizing::new(
        text.trim_end_matches(['\r', '\n']).to_owned(),
    ))
}

fn in_file(key: &str, path: &Path) -> Result<Zeroizing<String>, Failure> {
    let unreadable = |error| {
        let failure = Failure::unreadable(format_args!("the secret {}", path.display()), error);
        failure.hint(format!("{key} names it"))
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if let Some(message) = exposed(path, metadata.mode()) {
        let hint = format!("run `chmod 600 {}`", path.display());
        return Err(Failure::new(format!("{key}: {message}")).hint(hint));
    }
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        let message = format!(
            "{key}: {} is not a regular file of at most 64 KiB",
            path.display()
        );
        return Err(Failure::new(message).hint("name a file that has only the secret"));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Ok(Zeroizing::new(text))
}

/// Describes permissions that let others read a file with a secret; `None` if they do not.
pub(crate) fn exposed(path: &Path, mode: u32) -> Option<String> {
    let mode = mode & 0o7777;
    (mode & 0o077 != 0).then(|| {
        format!(
            "other accounts can read {} (mode {mode:04o})",
            path.display()
        )
    })
}
