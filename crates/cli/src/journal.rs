//! Signing of the log while a command works: everything it commits is in the signed tree when it ends.

use std::time::Duration;

use countersign::sequencer::{self, LastStop, Sequencer, SequencerBuilder};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::VerifyingKey;

use crate::copies;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::keys;
use crate::place::{Place, missing, store_failed};
use crate::running::Running;

/// The newest signed checkpoint, outside of the store.
pub(crate) const CHECKPOINT: &str = "checkpoint";

/// The newest signed checkpoint again, for the signer: it stays when an old store is put into the folder with its old checkpoint.
pub(crate) const SIGNED: &str = "log.signed";

/// Returns the newest checkpoint that was kept outside of the store. A `checkpoint` of another log is returned as well: the caller has to
/// see that it does not fit.
pub(crate) fn held(folder: &Folder, key: &VerifyingKey) -> Result<Option<String>, Failure> {
    let size = |note: &str| Checkpoint::open(note, key).ok().map(|known| known.size);
    let checkpoint = folder.read(CHECKPOINT)?;
    let Some(signed) = folder.read(SIGNED)? else {
        return Ok(checkpoint);
    };
    Ok(match &checkpoint {
        Some(note) if size(note).is_none() || size(note) >= size(&signed) => checkpoint,
        Some(_) => Some(signed),
        None => size(&signed).map(|_| signed),
    })
}

/// Signer of the records that a command commits.
pub(crate) enum Journal {
    /// The command signs them itself.
    Own(Box<Sequencer>),
    /// The server in which the command is carried out signs them.
    Server,
}

/// Timeout for a server to sign what was committed.
const SIGNED_MAX: Duration = Duration::from_secs(30);

impl Journal {
    /// Starts signing. Fails if the log is not a continuation of the checkpoint in the folder, or of one of its copies.
    pub(crate) fn start(place: &Place) -> Result<Self, Failure> {
        if let Some(served) = &place.served {
            if served.gateway.health().is_log_stopped() {
                return Err(Failure::new("the server has stopped signing the log")
                    .hint("read the log of the server, and run `countersign verify --all`")
                    .not_verified());
            }
            return Ok(Self::Server);
        }
        copies::check(place)?;
        let sequencer = sequencer(place, SequencerBuilder::briefly)?;
        Ok(Self::Own(Box::new(sequencer)))
    }

    /// Signs records as they are committed until `stop` is done, and then the rest.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) -> Result<(), Failure> {
        match self {
            Self::Own(sequencer) => sequencer.run(stop).await.map_err(failed),
            Self::Server => {
                stop.await;
                Ok(())
            }
        }
    }

    /// Everything that was committed is in the tree and signed after this.
    pub(crate) fn sign(&mut self, place: &Place) -> Result<(), Failure> {
        let store = place.store();
        place.runtime.block_on(async {
            store.flush().await.map_err(store_failed)?;
            match self {
                Self::Own(sequencer) => sequencer.tick().await.map(|_| ()).map_err(failed),
                Self::Server => tokio::time::timeout(SIGNED_MAX, place.prompt.round())
                    .await
                    .map_err(|_| not_signed_yet()),
            }
        })
    }
}

fn not_signed_yet() -> Failure {
    let seconds = SIGNED_MAX.as_secs();
    let message = format!("done and recorded, but not signed within {seconds} s");
    Failure::new(message).hint("read the log of the server; do not repeat the command")
}

/// Builds the sequencer, which signs the log of a place, for a command or for a server.
pub(crate) fn sequencer(
    place: &Place,
    how: impl FnOnce(SequencerBuilder) -> SequencerBuilder,
) -> Result<Sequencer, Failure> {
    // A server in this folder signs with the same key, for a store that is another one where this is a
    // file: two stores that both grow would be two logs of one name.
    if place.file.is_some()
        && let Some(running) = Running::find(&place.folder)?
    {
        return Err(running.in_the_way("a data folder can sign for one store only"));
    }
    let key = keys::log(&place.folder)?;
    let key = key.ok_or_else(|| missing(&place.folder, keys::LOG))?;
    let held = held(&place.folder, &key.verifying_key())?;
    let folder = place.folder.clone();
    let builder = Sequencer::builder(place.store(), key)
        .clock(place.clock.clone())
        .ids(place.ids.clone())
        .newest(place.newest.clone())
        .prompt(place.prompt.clone())
        .lease(place.config().log.lease.duration())
        .on_checkpoint(move |note| {
            let written = folder
                .write(CHECKPOINT, note, 0o644)
                .and_then(|()| folder.write_soon(SIGNED, note, 0o644));
            written.map_err(|failure| failure.error.into())
        });
    let last = LastStop {
        held: held.as_deref(),
        is_unclean: place.backend.was_lost(),
    };
    let started = async {
        let sequencer = how(builder).start(last).await?;
        if !sequencer.owes_start() {
            place.backend.lost_run_recorded().await?;
        }
        Ok(sequencer)
    };
    place.runtime.block_on(started).map_err(failed)
}

/// Turns an error of the sequencer into a failure with a hint.
pub(crate) fn failed(error: sequencer::Error) -> Failure {
    match error {
        sequencer::Error::Store(error) => store_failed(error),
        sequencer::Error::NotGrown(_) | sequencer::Error::Held(_) | sequencer::Error::Stored(_) => {
            Failure::from(error)
                .hint("run `countersign verify --all`; after a restore, run `countersign store restore`")
                .not_verified()
        }
        sequencer::Error::Sign(_) | sequencer::Error::NotKept(_) => Failure::from(error),
    }
}
