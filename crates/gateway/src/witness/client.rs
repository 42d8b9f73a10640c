//! The witnesses of this server's log: each new checkpoint is sent to them, and their cosignatures are served with it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign::archive::{self, Archive};
use countersign::newest::NewestCheckpoint;
use countersign::redact::error_text;
use countersign_evidence::cosignature::WitnessKey;
use countersign_evidence::note::{NOTE_BYTES_MAX, Note, Signature};
use countersign_evidence::witness::{AddCheckpoint, size};
use futures_util::future::join_all;
use http::StatusCode;

/// Timeout of a request, with its connection and its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between two looks for a new checkpoint.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum delay before the next attempt after failures.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Maximum number of requests of one attempt: the first may learn the size that the witness knows, and a checkpoint of
/// another process may come in between.
const REQUESTS_MAX: usize = 3;

/// The witnesses of a log.
pub struct Witnesses(Vec<Asked>);

struct Asked {
    key: WitnessKey,
    url: String,
    state: Mutex<WitnessState>,
}

/// State of a witness.
#[derive(Debug, Clone, Default)]
pub struct WitnessState {
    /// Name of the witness.
    pub name: String,
    /// Size of the newest checkpoint that it has cosigned since the start; 0 if there is none.
    pub size: u64,
    /// Number of failed attempts since the start.
    pub failures: u64,
    /// Reason why it does not cosign the newest checkpoint; `None` if the last attempt was a success.
    pub trouble: Option<Trouble>,
    /// Text that it has cosigned, and its cosignatures.
    cosigned: Option<(String, Vec<Signature>)>,
}

/// Reason why a witness does not cosign. Closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The witness cannot be asked, or does not answer as the protocol says. Usually it is not running, or does not
    /// follow this log.
    #[error("{0}")]
    Silent(String),
    /// The witness has cosigned another history of this log. Usually the data folder was put back.
    #[error("it has cosigned another history of this log: {0}")]
    Refuses(String),
}

impl Trouble {
    fn silent(reason: impl Into<String>) -> Self {
        Self::Silent(reason.into())
    }
}

impl From<archive::Error> for Trouble {
    fn from(error: archive::Error) -> Self {
        Self::Silent(error_text(&error))
    }
}

impl From<reqwest::Error> for Trouble {
    fn from(error: reqwest::Error) -> Self {
        Self::Silent(error_text(&error.without_url()))
    }
}

impl Witnesses {
    /// Witnesses with their addresses and keys.
    pub fn new(witnesses: impl IntoIterator<Item = (String, WitnessKey)>) -> Self {
        let asked = witnesses.into_iter().map(|(url, key)| Asked {
            state: Mutex::new(WitnessState {
                name: key.name().to_owned(),
                ..WitnessState::default()
            }),
            url: format!("{}/add-checkpoint", url.trim_end_matches('/')),
            key,
        });
        Self(asked.collect())
    }

    /// Returns the state of each witness, in the order of the configuration.
    pub fn states(&self) -> Vec<WitnessState> {
        self.0.iter().map(|asked| asked.state().clone()).collect()
    }

    /// Adds the cosignatures of this very checkpoint to a signed note.
    pub fn cosigned(&self, mut note: String) -> String {
        for asked in &self.0 {
            let state = asked.state();
            let Some((text, signatures)) = &state.cosigned else {
                continue;
            };
            // The text ends with its newline; an empty line and the signatures follow.
            if note
                .strip_prefix(text)
                .is_some_and(|rest| rest.starts_with('\n'))
            {
                note.extend(signatures.iter().map(ToString::to_string));
            }
        }
        note
    }

    /// Sends each new checkpoint to every witness. `keep` gets each note that has a new cosignature. Never returns.
    pub async fn run(
        self: Arc<Self>,
        archive: Archive,
        newest: NewestCheckpoint,
        keep: impl Fn(&str) + Send + Sync,
    ) {
        let client = reqwest::Client::builder()
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                let error = error_text(&error);
                tracing::error!(error, "no witness can be asked");
                return;
            }
        };
        let follow = |asked| self.follow(asked, &archive, &newest, &client, &keep);
        join_all(self.0.iter().map(follow)).await;
    }

    async fn follow(
        &self,
        asked: &Asked,
        archive: &Archive,
        newest: &NewestCheckpoint,
        client: &reqwest::Client,
        keep: &(impl Fn(&str) + Send + Sync),
    ) {
        let mut pause = LOOK;
        loop {
            let signed = newest.get().map_or(0, |newest| newest.size);
            if signed > asked.state().size {
                match asked.ask(archive, client).await {
                    Ok(note) => {
                        asked.settled();
                        keep(&self.cosigned(note));
                        pause = LOOK;
                    }
                    Err(trouble) => {
                        asked.failed(trouble);
                        pause = pause.saturating_mul(2).min(PAUSE_MAX);
                    }
                }
            }
            tokio::time::sleep(pause).await;
        }
    }
}

impl Asked {
    fn state(&self) -> MutexGuard<'_, WitnessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a cosignature under the newest checkpoint; returns the note that was sent.
    async fn ask(&self, archive: &Archive, client: &reqwest::Client) -> Result<String, Trouble> {
        let mut old_size = self.state().size;
        for _ in 0..REQUESTS_MAX {
            let signed = archive.signed().await?;
            let (checkpoint, text) = signed.ok_or(archive::Error::NoCheckpoint)?;
            if old_size > checkpoint.size {
                let found = checkpoint.size;
                return Err(Trouble::Refuses(format!(
                    "the witness knows {old_size} records, and the log has {found}"
                )));
            }
            let note = Note::parse(&text).map_err(|error| Trouble::silent(error.to_string()))?;
            let request = AddCheckpoint {
                old_size,
                proof: archive.consistency(old_size, &checkpoint).await?,
                note,
            };
            let sent = client.post(&self.url).body(request.to_string()).send();
            let answer = sent.await?;
            let status = answer.status();
            let body = short(answer).await?;
            match status {
                StatusCode::OK => {
                    self.take(request.note, &body, checkpoint.size)?;
                    return Ok(text);
                }
                StatusCode::CONFLICT => {
                    let known = size(body.trim_end_matches('\n'));
                    let known = known.ok_or_else(|| {
                        Trouble::silent("it names no size beside its refusal (409 Conflict)")
                    })?;
                    if known == old_size {
                        let reason = format!("another root of {known} records");
                        return Err(Trouble::Refuses(reason));
                    }
                    old_size = known;
                }
                StatusCode::UNPROCESSABLE_ENTITY => {
                    let reason = format!("the log does not continue its {old_size} records");
                    return Err(Trouble::Refuses(reason));
                }
                StatusCode::NOT_FOUND => {
                    let reason = "it does not follow this log (404 Not Found)";
                    return Err(Trouble::silent(reason));
                }
                other => return Err(Trouble::silent(format!("it answers {other}"))),
            }
        }
        Err(Trouble::silent("it names another size each time"))
    }

    /// Takes the cosignatures out of an answer, if they are of this witness and this checkpoint.
    fn take(&self, mut note: Note, lines: &str, size: u64) -> Result<(), Trouble> {
        let wrong = |error: &dyn fmt::Display| Trouble::silent(format!("its answer: {error}"));
        let text = note.text.clone();
        let answered = Note::parse(&format!("{text}\n{lines}")).map_err(|error| wrong(&error))?;
        let is_ours = |signature: &Signature| self.key.is_of(signature);
        note.signatures = answered.signatures.into_iter().filter(is_ours).collect();
        self.key.verify(&note).map_err(|error| wrong(&error))?;
        let mut state = self.state();
        state.size = size;
        state.cosigned = Some((text, note.signatures));
        Ok(())
    }

    fn settled(&self) {
        let mut state = self.state();
        if state.trouble.take().is_some() {
            tracing::info!(witness = state.name, "the witness cosigns again");
        }
    }

    /// Notes a failure, and logs it unless the one before was the same.
    fn failed(&self, trouble: Trouble) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.trouble.as_ref() != Some(&trouble) {
            let (witness, reason) = (&state.name, trouble.to_string());
            match &trouble {
                Trouble::Silent(_) => {
                    tracing::warn!(
                        witness,
                        reason,
                        "a witness did not cosign; it is asked again"
                    );
                }
                Trouble::Refuses(_) => tracing::error!(
                    witness,
                    reason,
                    "a witness refuses the log; the data folder was put back, or a second copy of it was written to"
                ),
            }
        }
        state.trouble = Some(trouble);
    }
}

/// Reads an answer of bounded length.
async fn short(mut answer: reqwest::Response) -> Result<String, Trouble> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > NOTE_BYTES_MAX {
            return Err(Trouble::silent("its answer is too long"));
        }
    }
    String::from_utf8(bytes).map_err(|_| Trouble::silent("its answer is not UTF-8"))
}

impl fmt::Debug for Witnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.states()).finish()
    }
}

#[cfg(test)]
mod tests;
