//! Copies of the checkpoint at the places of `log.copies`: the log has to continue every one of them. A data folder that
//! was put back as a whole, and a log with a second history, show here and nowhere in the folder.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign::archive::NotGrown;
use countersign_config::value::{CheckpointCopy, WebUrl};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::{NOTE_BYTES_MAX, VerifyingKey};
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::place::{Place, store_failed};

/// Timeout for reading all copies; they are read at the same time.
const READ_MAX: Duration = Duration::from_secs(5);

/// Advice for a log that does not continue a copy.
pub(crate) const CONTRADICTED: &str = "the data folder was put back, or a second copy of it was written to: start the folder that is newest; \
     if it is lost, `countersign store restore --accept-loss` begins a new log";

/// Advice for a copy that cannot be read.
pub(crate) const UNREAD: &str = "make the place of the copy readable, or take it out of log.copies";

/// A copy that was read: the checkpoint of this log in it, or the reason why there is none.
pub(crate) struct Copied {
    pub(crate) name: Arc<str>,
    pub(crate) read: Result<(Checkpoint, String), String>,
}

/// A copy, and the log beside it.
pub(crate) struct Compared {
    pub(crate) name: Arc<str>,
    pub(crate) outcome: Outcome,
}

/// Outcome of a comparison.
pub(crate) enum Outcome {
    /// The log continues the copy, which has this number of records.
    Continued(u64),
    /// No copy exists to compare with.
    Unread(String),
    /// The log does not continue the copy.
    Contradicted(NotGrown),
}

/// Reads all copies, for the log with this key.
pub(crate) fn read(place: &Place, key: &VerifyingKey) -> Vec<Copied> {
    let copies = &place.config().log.copies;
    if copies.is_empty() {
        return Vec::new();
    }
    let read = place.runtime.block_on(async {
        let mut reading = JoinSet::new();
        for (at, copy) in copies.iter().cloned().enumerate() {
            reading.spawn(async move {
                let text = tokio::time::timeout(READ_MAX, text_of(&copy)).await;
                let text = text.unwrap_or_else(|_| Err("it does not answer".to_owned()));
                (at, copy.name(), text)
            });
        }
        let mut read = reading.join_all().await;
        read.sort_by_key(|(at, ..)| *at);
        read
    });
    let opened = read.into_iter().map(|(_, name, text)| Copied {
        name: name.into(),
        read: text.and_then(|text| match Checkpoint::open(&text, key) {
            Ok(checkpoint) => Ok((checkpoint, text)),
            Err(error) => Err(error.to_string()),
        }),
    });
    opened.collect()
}

/// Compares the log with all copies.
pub(crate) fn compare(place: &Place) -> Result<Vec<Compared>, Failure> {
    // In this order: the log grows meanwhile, and never shrinks.
    let copies = read(place, &place.log_key);
    let archive = place.archive();
    let compared = copies.into_iter().map(|copy| {
        let outcome = match copy.read {
            Err(reason) => Outcome::Unread(reason),
            Ok((held, _)) => match place.runtime.block_on(archive.continues(&held)) {
                Ok(()) => Outcome::Continued(held.size),
                Err(NotGrown::Store(error)) => return Err(store_failed(error)),
                Err(
                    error @ (NotGrown::RolledBack { .. }
                    | NotGrown::Forked { .. }
                    | NotGrown::Damaged { .. }
                    | NotGrown::Tile(_)),
                ) => Outcome::Contradicted(error),
            },
        };
        Ok(Compared {
            name: copy.name,
            outcome,
        })
    });
    compared.collect()
}

/// Refuses a log that does not continue one of the copies. Returns the number of copies that could not be read; `None`
/// if none are configured.
pub(crate) fn check(place: &Place) -> Result<Option<usize>, Failure> {
    let compared = compare(place)?;
    let mut unread = 0;
    for copy in &compared {
        let name = &*copy.name;
        match &copy.outcome {
            Outcome::Continued(size) => {
                tracing::debug!(
                    copy = name,
                    size,
                    "the log continues a copy of its checkpoint"
                );
            }
            Outcome::Unread(reason) => {
                unread += 1;
                tracing::warn!(
                    copy = name,
                    reason,
                    "a copy of the checkpoint could not be compared with the log"
                );
            }
            Outcome::Contradicted(error) => {
                let message =
                    format!("the log does not continue the checkpoint in {name}: {error}");
                return Err(Failure::new(message).hint(CONTRADICTED).not_verified());
            }
        }
    }
    Ok((!compared.is_empty()).then_some(unread))
}

async fn text_of(copy: &CheckpointCopy) -> Result<String, String> {
    match copy {
        CheckpointCopy::File(path) => {
            let path = path.clone();
            // A file on a network can hang.
            let read = tokio::task::spawn_blocking(move || file(&path)).await;
            read.map_err(|_| "it could not be read".to_owned())?
        }
        CheckpointCopy::Web(url) => fetch(url).await.map_err(|error| {
            // Without the address, which may hold a token.
            let error = error.without_url();
            format!("{:#}", anyhow::Error::new(error))
        })?,
    }
}

fn file(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| {
        file.take(NOTE_BYTES_MAX as u64 + 1)
            .read_to_string(&mut text)
    });
    read.map(|_| text).map_err(|error| error.to_string())
}

async fn fetch(url: &WebUrl) -> Result<Result<String, String>, reqwest::Error> {
    let client = reqwest::Client::builder().timeout(READ_MAX).build()?;
    let mut answer = client.get(url.to_string()).send().await?;
    if !answer.status().is_success() {
        return Ok(Err(format!("it answers {}", answer.status())));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > NOTE_BYTES_MAX {
            return Ok(Err("it is too long for a checkpoint".to_owned()));
        }
    }
    Ok(String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()))
}
