//! A witness: follows logs, checks that each only grows, cosigns.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use countersign::clock::Clock;
use countersign::contract::Digest;
use countersign_evidence::checkpoint::{Checkpoint, CheckpointError};
use countersign_evidence::cosignature::Cosigner;
use countersign_evidence::hex;
use countersign_evidence::note::VerifyingKey;
use countersign_evidence::witness::{AddCheckpoint, REQUEST_BYTES_MAX, Refusal, SIZE_MEDIA_TYPE};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::server::builder;

/// Maximum number of connections at the same time; further ones wait.
const CONNECTIONS_MAX: usize = 64;

/// Bounds of a connection: the head of a request, its time limit, and the life of the connection.
const HEAD_BYTES_MAX: usize = 8192;
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(1);

/// Pause of accepting after the system had no room for one more connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Keep = Box<dyn Fn(&str, &str) -> io::Result<()> + Send + Sync>;

/// A witness of some logs.
pub struct Witness {
    cosigner: Cosigner,
    clock: Arc<dyn Clock>,
    keep: Keep,
    logs: Vec<Followed>,
}

struct Followed {
    key: VerifyingKey,
    /// The latest cosigned checkpoint. Its lock is held from the check to the end of the write.
    latest: Mutex<Option<Latest>>,
}

struct Latest {
    checkpoint: Checkpoint,
    note: String,
}

/// Reason why a checkpoint was not cosigned.
#[derive(Debug, thiserror::Error)]
pub enum Uncosigned {
    /// The witness refuses it. Usually the log did not know the size that the witness has cosigned, or has two histories.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The checkpoint could not be kept, so it is not cosigned. Usually the disk is full.
    #[error("the checkpoint could not be kept")]
    NotKept(#[source] io::Error),
}

/// Returns the id of a log in names of files and addresses: the SHA-256 of its origin.
pub fn log_id(origin: &str) -> String {
    hex::encode(&Digest::of_bytes(origin.as_bytes()).0)
}

impl Witness {
    /// Creates a witness that follows no log yet. `keep` gets the id of a log and its latest checkpoint, and returns when
    /// a crash can no longer undo the write; nothing is cosigned before.
    pub fn new(
        cosigner: Cosigner,
        clock: Arc<dyn Clock>,
        keep: impl Fn(&str, &str) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            cosigner,
            clock,
            keep: Box::new(keep),
            logs: Vec::new(),
        }
    }

    /// Follows a log from the checkpoint that was kept last; `None` if there is none.
    pub fn follow(
        mut self,
        key: VerifyingKey,
        kept: Option<String>,
    ) -> Result<Self, CheckpointError> {
        let latest = kept.map(|note| {
            let checkpoint = Checkpoint::open(&note, &key)?;
            Ok::<_, CheckpointError>(Latest { checkpoint, note })
        });
        let latest = Mutex::new(latest.transpose()?);
        self.logs.push(Followed { key, latest });
        Ok(self)
    }

    /// Checks the body of an `add-checkpoint` request, keeps its checkpoint and cosigns it; returns the signature line.
    /// Blocks while the checkpoint is written.
    pub fn add_checkpoint(&self, body: &str) -> Result<String, Uncosigned> {
        let request: AddCheckpoint = body.parse()?;
        let log = self.find(|log| log.key.name() == request.origin());
        let log = log.ok_or(Refusal::UnknownLog)?;
        let mut latest = log.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let known = latest.as_ref().map(|latest| &latest.checkpoint);
        let checkpoint = request.check(&log.key, known).inspect_err(|refusal| {
            if refusal.is_fork() {
                let origin = request.origin();
                tracing::error!(
                    origin,
                    request = body,
                    "{refusal}: the log has two histories"
                );
            }
        })?;
        let mut note = request.note;
        let (name, id) = (log.key.name(), log.key.key_id());
        note.signatures
            .retain(|signature| signature.name == name && signature.key_id == id);
        let time = u64::try_from(self.clock.now().as_second()).unwrap_or_default();
        let cosigned = self.cosigner.cosign(&note.text, time);
        let cosignature = cosigned.map_err(Refusal::NotSigned)?;
        let line = cosignature.to_string();
        note.signatures.push(cosignature);
        let note = note.to_string();
        (self.keep)(&log_id(name), &note).map_err(Uncosigned::NotKept)?;
        *latest = Some(Latest { checkpoint, note });
        Ok(line)
    }

    /// Returns the latest cosigned checkpoint of the log with this id.
    pub fn checkpoint(&self, id: &str) -> Option<String> {
        let log = self.find(|log| log_id(log.key.name()) == id)?;
        let latest = log.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().map(|latest| latest.note.clone())
    }

    fn find(&self, is_it: impl Fn(&Followed) -> bool) -> Option<&Followed> {
        self.logs.iter().find(|log| is_it(log))
    }

    /// Answers on this socket until `stop` is done.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let router = Router::new()
            .route("/add-checkpoint", post(add_checkpoint))
            .route("/checkpoint/{id}", get(checkpoint))
            .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
            .with_state(Arc::new(self));
        let builder = builder(HEAD_BYTES_MAX, HEAD_TIMEOUT);
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = async {
                let slot = slots.clone().acquire_owned().await;
                (listener.accept().await, slot)
            };
            let (accepted, slot) = tokio::select! {
                () = &mut stop => return,
                accepted = accepted => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(kind = ?error.kind(), "a connection could not be accepted; the witness pauses and tries again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let service = TowerToHyperService::new(router.clone());
            let served = builder.serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move {
                // A client that sends no HTTP, hangs up or is too slow is not worth a log line.
                let _ = tokio::time::timeout(CONNECTION_TIMEOUT, served).await;
                drop(slot);
            });
        }
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Witness({:?}, {} logs)", self.cosigner, self.logs.len())
    }
}

async fn add_checkpoint(State(witness): State<Arc<Witness>>, body: String) -> Response {
    let done = tokio::task::spawn_blocking(move || witness.add_checkpoint(&body)).await;
    match done {
        Ok(Ok(line)) => line.into_response(),
        Ok(Err(Uncosigned::Refused(refusal))) => refused(&refusal),
        Ok(Err(Uncosigned::NotKept(error))) => {
            tracing::error!(%error, "a checkpoint could not be kept, so it was not cosigned");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn refused(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
    match refusal {
        Refusal::OtherSize { known } | Refusal::OtherRoot { known } => {
            let media_type = [(CONTENT_TYPE, SIZE_MEDIA_TYPE)];
            (status, media_type, format!("{known}\n")).into_response()
        }
        Refusal::Malformed(_)
        | Refusal::UnknownLog
        | Refusal::NotSigned(_)
        | Refusal::Inconsistent { .. } => (status, format!("{refusal}\n")).into_response(),
    }
}

async fn checkpoint(State(witness): State<Arc<Witness>>, Path(id): Path<String>) -> Response {
    match witness.checkpoint(&id) {
        Some(note) => note.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests;
