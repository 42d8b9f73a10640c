//! The policy of a configuration: a table of the file itself, or a file that it names.

use std::path::PathBuf;
use std::sync::Arc;

use countersign::Catalog;
use countersign::contract::{Digest, ToolSpec};
use countersign::executor::ExecutorBuilder;
use countersign_config::sections::PolicySource;
use countersign_config::{Loaded, Mistake};
use countersign_gateway::policy::{LivePolicy, Policy, PolicyError};

use serde_json::Value;

use crate::failure::Failure;
use crate::folder::Folder;
use crate::running::Running;

/// Reads the policy. Fails with the mistake and its place in the file.
pub(crate) fn open(loaded: &Loaded) -> Result<LivePolicy, Failure> {
    let refused = |error: PolicyError| refused(loaded, error);
    match &loaded.config().policy {
        Some(PolicySource::File(path)) => LivePolicy::open(path).map_err(refused),
        Some(PolicySource::Inline(_)) | None => {
            read(loaded).map(LivePolicy::fixed).map_err(refused)
        }
    }
}

/// A mistake in the policy, with the file that has it.
pub(crate) fn refused(loaded: &Loaded, error: PolicyError) -> Failure {
    // Where it is about the whole file, it names the file itself.
    if error.line == 0 {
        return Failure::new(error.message).hint(error.hint);
    }
    let file = file_of(loaded).map(|path| path.display().to_string());
    Failure::new(format!("{}: {error}", file.unwrap_or_default())).hint(error.hint)
}

/// Checks the conditions of a policy against the tools of a catalog.
pub(crate) fn fits(policy: &Policy, catalog: &Catalog) -> Result<(), PolicyError> {
    let entries = catalog.list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    policy.fits(&specs)
}

/// Reads the policy once, without following later changes.
pub(crate) fn read(loaded: &Loaded) -> Result<Policy, PolicyError> {
    match &loaded.config().policy {
        None => Ok(Policy::allow_all()),
        Some(PolicySource::File(path)) => Policy::read(path),
        Some(PolicySource::Inline(_)) => {
            let text = loaded.document().map_or("", |document| document.text());
            Policy::within(text, loaded.folder())
        }
    }
}

/// A mistake in the policy, at its place in the file that has it.
pub(crate) fn mistake(loaded: &Loaded, error: &PolicyError) -> Mistake {
    let mistake = loaded.mistake("policy", error.message.clone());
    let document = loaded.document();
    match (&loaded.config().policy, error.line) {
        (_, 0) | (None, _) => mistake,
        (Some(PolicySource::File(path)), _) => Mistake {
            file: path.display().to_string(),
            line: error.line,
            column: error.column,
            ..mistake
        },
        (Some(PolicySource::Inline(_)), _) => {
            let key = document.map_or("policy", |it| it.key_at(error.line, error.column));
            Mistake {
                line: error.line,
                column: error.column,
                key: key.to_owned(),
                ..mistake
            }
        }
    }
}

/// The revision of the policy under which a server runs, if it is not this one. A server with a policy from `--policy` has another one than
/// commands that read the configuration.
pub(crate) fn other_in_force(running: &Running, policy: &Policy) -> Option<String> {
    // A server that cannot answer now is for the commands that need it to say.
    let status: Value = serde_json::from_str(&running.ask("/v1/status").ok()?).ok()?;
    let revision = status.pointer("/policy/revision")?.as_str()?;
    (revision != &**policy.revision()).then(|| revision.to_owned())
}

/// Returns the file that has the policy; `None` if there is no policy.
pub(crate) fn file_of(loaded: &Loaded) -> Option<PathBuf> {
    match &loaded.config().policy {
        None => None,
        Some(PolicySource::File(path)) => Some(path.clone()),
        Some(PolicySource::Inline(_)) => {
            loaded.document().map(|document| document.path().to_owned())
        }
    }
}

/// Has calls decided by the policy of a configuration, where it has one. A policy with conditions that do not fit the tools is
/// refused, as a server refuses it.
pub(crate) fn decide(
    builder: ExecutorBuilder,
    loaded: &Loaded,
    catalog: &Catalog,
) -> Result<ExecutorBuilder, Failure> {
    if loaded.config().policy.is_none() {
        return Ok(builder);
    }
    let policy = Arc::new(open(loaded)?);
    let fits = policy.check_against(catalog);
    fits.map_err(|error| refused(loaded, error))?;
    let builder = builder.authorizer(policy.clone());
    Ok(policy.controls().install(builder))
}

/// Folder of kept policies in the data folder.
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

/// The policy that a record names, and its file; `None` if it is not kept.
pub(crate) fn kept(data: &Folder, revision: &str) -> Result<Option<(Policy, PathBuf)>, Failure> {
    let digits = revision
        .rsplit_once('@')
        .map_or(revision, |(_, digits)| digits);
    let digits = digits.trim_start_matches("sha256:");
    let is_digest = digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Ok(entries) = std::fs::read_dir(data.file(FOLDER)) else {
        return Ok(None);
    };
    let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let found = paths.find(|path| {
        let name = path.file_stem().and_then(|name| name.to_str());
        is_digest && name.is_some_and(|name| name.starts_with(digits))
    });
    let Some(path) = found else { return Ok(None) };
    let policy = Policy::read(&path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())).hint(error.hint))?;
    Ok(Some((policy, path)))
}
