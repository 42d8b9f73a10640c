//! The inbox: lists of questions for approvers, and the removal of expired ones.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_contract::approval::{Approval, ApprovalState};
use countersign_contract::{Actor, ActorType, Language, ToolName};
use jiff::{SignedDuration, Timestamp};

use super::answer::{Error, sees_all};
use super::question::{Question, Writing, later, pending};
use super::record::{self, Event};
use super::stored::{COLLECTION, Owner, StoredApprovals, opened, owner_key};
use crate::ledger::{self, Commit, DocumentKey, OpenPlace};
use crate::principal::Principal;
use crate::redact::error_text;
use crate::scribe::Draft;
use crate::state::document_aad;
use crate::vault::SHARED;

/// Filter for questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Only questions of this user; `None` for all users whom the principal may see.
    pub user_id: Option<String>,
    /// Only questions in this state.
    pub state: Option<ApprovalState>,
    /// Only questions older than this one: the last of the page before, by the time of the question and its id.
    pub before: Option<(Timestamp, String)>,
    /// Maximum number of questions.
    pub limit: usize,
    /// The language of the tools' texts.
    pub language: Language,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            user_id: None,
            state: None,
            before: None,
            limit: 100,
            language: Language::English,
        }
    }
}

/// An open question without its content: enough to notify an approver, and nothing personal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Id of the question.
    pub id: String,
    /// Tool that waits.
    pub tool: ToolName,
    /// Time of the question.
    pub asked_at: Timestamp,
}

/// The open questions of all users, as of one look. It is given to the next look, which opens only those that are new.
#[derive(Debug, Clone, Default)]
pub struct OpenQuestions {
    /// By user, name of the document, and its version.
    found: BTreeMap<(String, String, u64), OpenQuestion>,
    /// False if there are more than were looked at.
    pub is_complete: bool,
}

impl OpenQuestions {
    /// The questions.
    pub fn iter(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.found.values()
    }
}

/// Interval between removals of expired questions, and the maximum per removal.
const TIDY_EVERY: Duration = Duration::from_mins(10);
const REMOVED_MAX: usize = 1_000;

/// Maximum number of questions that are counted.
const PENDING_COUNTED_MAX: usize = 10_000;

/// Number of questions that are read at once.
const PAGE: usize = 256;

/// Retention of a question after it has expired; its records stay.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);

impl StoredApprovals {
    /// The questions that a principal may see, newest first: those of its user, or all if it holds
    /// [`SCOPE_ANSWER`](super::SCOPE_ANSWER) and is no agent.
    pub async fn list(&self, by: &Principal, wanted: &Wanted) -> Result<Vec<Approval>, Error> {
        let of = match &wanted.user_id {
            Some(user_id) if *user_id == by.user_id || sees_all(by) => Some(user_id),
            // Nobody learns whether somebody else has questions.
            Some(_) => return Ok(Vec::new()),
            None if sees_all(by) => None,
            None => Some(&by.user_id),
        };
        let mut newest = Newest::new(wanted, self.clock.now());
        match of {
            Some(user_id) => self.of_user(user_id, wanted, &mut newest).await?,
            None if wanted.state == Some(ApprovalState::Pending) => {
                self.of_open(&mut newest).await?;
            }
            None => self.of_all(&mut newest).await?,
        }
        Ok(newest.shown_to(by))
    }

    /// Counts the open questions that a principal may see: those of its user, or all if it may answer for others. The
    /// count stops at 10,000.
    pub async fn waiting_for(&self, by: &Principal) -> Result<usize, Error> {
        if sees_all(by) {
            return self.pending().await;
        }
        let wanted = Wanted {
            state: Some(ApprovalState::Pending),
            limit: PENDING_COUNTED_MAX,
            ..Wanted::default()
        };
        let mut newest = Newest::new(&wanted, self.clock.now());
        self.of_user(&by.user_id, &wanted, &mut newest).await?;
        Ok(newest.questions.len())
    }

    /// The open questions of all users, at most 10,000. Those that an earlier look has found are not opened again.
    pub async fn open_questions(&self, earlier: &OpenQuestions) -> Result<OpenQuestions, Error> {
        let mut open = OpenQuestions {
            is_complete: true,
            ..OpenQuestions::default()
        };
        let now = self.clock.now();
        let mut after = OpenPlace::after(now);
        loop {
            let page = self.store.open_documents(COLLECTION, &after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(open);
            };
            after = last.place.clone();
            for document in page {
                let OpenPlace { user_id, id, .. } = document.place;
                let name = (user_id, id, document.version);
                if let Some(known) = earlier.found.get(&name) {
                    open.found.insert(name, known.clone());
                    continue;
                }
                let key = DocumentKey {
                    user_id: name.0.clone(),
                    collection: COLLECTION.to_owned(),
                    id: name.1.clone(),
                };
                let question = self.opened_now(&key, &document.body).await?;
                if let Some(question) = question
                    && question.state(now) == ApprovalState::Pending
                {
                    let found = OpenQuestion {
                        id: question.id,
                        tool: question.tool,
                        asked_at: question.asked_at,
                    };
                    open.found.insert(name, found);
                }
            }
            if open.found.len() >= PENDING_COUNTED_MAX {
                open.is_complete = false;
                return Ok(open);
            }
        }
    }

    /// One question, with the tool's words in English.
    pub async fn show(&self, id: &str, by: &Principal) -> Result<Approval, Error> {
        self.show_in(id, by, Language::English).await
    }

    /// One question in the language of its reader.
    pub async fn show_in(
        &self,
        id: &str,
        by: &Principal,
        language: Language,
    ) -> Result<Approval, Error> {
        let (question, _) = self.visible(id, by).await?;
        Ok(question.shown_to(by, self.clock.now(), language))
    }

    /// Counts the open questions of all users, for monitoring. The count stops at 10,000.
    pub async fn pending(&self) -> Result<usize, Error> {
        let now = self.clock.now();
        Ok(self
            .store
            .count_open(COLLECTION, now, PENDING_COUNTED_MAX)
            .await?)
    }

    /// Removes questions that expired more than a day ago, and questions that erased users have left behind, at most
    /// `limit`; answers their number. Removes nothing while the clock disagrees with the time that was believed.
    pub async fn expire(&self, limit: usize) -> Result<usize, Error> {
        let passage = self.store.vitals().await?.passage;
        if passage.is_some_and(|passage| passage.jump().is_some()) {
            return Ok(0);
        }
        let mut removed = 0;
        let mut after = None;
        while removed < limit {
            let ids = self.ids_after(after.as_deref()).await?;
            let Some(last) = ids.last() else { break };
            after = Some(last.clone());
            for id in ids {
                removed += usize::from(removed < limit && self.remove_if_over(&id).await?);
            }
        }
        Ok(removed)
    }

    /// Removes expired questions every ten minutes, and never ends: a server spawns this.
    pub async fn keep_tidy(&self) {
        loop {
            tokio::time::sleep(TIDY_EVERY).await;
            if let Err(error) = self.expire(REMOVED_MAX).await {
                let error = error_text(&error);
                tracing::warn!(
                    error,
                    "expired approvals could not be removed; this is retried"
                );
            }
        }
    }

    /// A question that a principal may see, and the version of its document.
    pub(super) async fn visible(&self, id: &str, by: &Principal) -> Result<(Question, u64), Error> {
        let unknown = || Error::Unknown(id.chars().take(ID_CHARS_SHOWN).collect());
        let found = self.found(id).await?.and_then(|(_, found)| found);
        let (question, version) = found.ok_or_else(unknown)?;
        let is_theirs = by.user_id != SHARED && question.user_id == by.user_id;
        if !is_theirs && !sees_all(by) {
            return Err(unknown());
        }
        Ok((question, version))
    }

    /// The user of a question, and the question itself if it is still stored.
    pub(super) async fn found(
        &self,
        id: &str,
    ) -> Result<Option<(Owner, Option<(Question, u64)>)>, ledger::Error> {
        if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains('\0') {
            return Ok(None);
        }
        let key = owner_key(id);
        let Some(body) = self.store.document(&key).await?.body else {
            return Ok(None);
        };
        let shared = self.vault.key(SHARED).await?;
        let damaged = || ledger::Error::Damaged {
            what: format!("the approval {id:?}"),
        };
        let opened = shared
            .open(&document_aad(&key), &body)
            .map_err(|_| damaged())?;
        let owner: Owner = serde_json::from_slice(&opened).map_err(|_| damaged())?;
        // An erased user has no key, and must not get a new one by being looked for.
        let Some(keys) = self.vault.existing_key(&owner.user_id).await? else {
            return Ok(Some((owner, None)));
        };
        let key = DocumentKey {
            user_id: owner.user_id.clone(),
            collection: COLLECTION.to_owned(),
            id: owner.place.clone(),
        };
        let stored = self.store.document(&key).await?;
        let Some(body) = stored.body else {
            return Ok(Some((owner, None)));
        };
        let question = Question::open(&keys, &key, &body)?;
        let question = (question.id == id).then_some((question, stored.version));
        Ok(Some((owner, question)))
    }

    async fn of_user(
        &self,
        user_id: &str,
        wanted: &Wanted,
        newest: &mut Newest,
    ) -> Result<(), ledger::Error> {
        // Who acts for others has no user: what is shared says whose the questions are, and is none.
        if user_id == SHARED {
            return Ok(());
        }
        let Some(keys) = self.vault.existing_key(user_id).await? else {
            return Ok(());
        };
        if wanted.state == Some(ApprovalState::Pending) {
            let entry = pending(&keys);
            // Those that are over and not yet removed are found as well.
            let most = self.limits.pending_max.saturating_add(PAGE);
            let found = self.store.find(user_id, COLLECTION, &entry, most).await?;
            let found = opened(user_id, &keys, found.documents)?;
            for (_, question) in found {
                newest.add(question);
            }
            return Ok(());
        }
        let mut after: Option<String> = None;
        loop {
            let page = self
                .store
                .scan(user_id, COLLECTION, "", after.as_deref(), PAGE)
                .await?;
            let found = opened(user_id, &keys, page.documents)?;
            let Some((last, _)) = found.last() else {
                return Ok(());
            };
            after = Some(last.key.id.clone());
            for (_, question) in found {
                newest.add(question);
            }
        }
    }

    /// The open questions of all users: one query a page, for any number of users.
    async fn of_open(&self, newest: &mut Newest) -> Result<(), ledger::Error> {
        let mut after = OpenPlace::after(self.clock.now());
        loop {
            let page = self.store.open_documents(COLLECTION, &after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = last.place.clone();
            for open in page {
                let key = DocumentKey {
                    user_id: open.place.user_id,
                    collection: COLLECTION.to_owned(),
                    id: open.place.id,
                };
                if let Some(question) = self.opened_now(&key, &open.body).await? {
                    newest.add(question);
                }
            }
        }
    }

    /// Opens a question that was just read; `None` if its user was erased since.
    async fn opened_now(
        &self,
        key: &DocumentKey,
        body: &[u8],
    ) -> Result<Option<Question>, ledger::Error> {
        if let Some(keys) = self.vault.known_key(&key.user_id).await?
            && let Ok(question) = Question::open(&keys, key, body)
        {
            return Ok(Some(question));
        }
        // The key that is held here may be that of somebody who was erased and has come back.
        match self.vault.existing_key(&key.user_id).await? {
            Some(keys) => Question::open(&keys, key, body).map(Some),
            None => Ok(None),
        }
    }

    async fn of_all(&self, newest: &mut Newest) -> Result<(), ledger::Error> {
        let mut after: Option<String> = None;
        loop {
            let ids = self.ids_after(after.as_deref()).await?;
            let Some(last) = ids.last() else {
                return Ok(());
            };
            after = Some(last.clone());
            for id in ids {
                let found = self.found(&id).await?.and_then(|(_, found)| found);
                if let Some((question, _)) = found {
                    newest.add(question);
                }
            }
        }
    }

    async fn ids_after(&self, after: Option<&str>) -> Result<Vec<String>, ledger::Error> {
        let page = self.store.scan(SHARED, COLLECTION, "", after, PAGE).await?;
        Ok(page.documents.into_iter().map(|found| found.id).collect())
    }

    async fn remove_if_over(&self, id: &str) -> Result<bool, ledger::Error> {
        let now = self.clock.now();
        let Some((owner, found)) = self.found(id).await? else {
            return Ok(false);
        };
        let keys = self.vault.existing_key(&owner.user_id).await?;
        let by = Actor {
            kind: ActorType::System,
            id: "countersign".to_owned(),
        };
        let (mut writings, entry) = match (found, keys) {
            (Some((question, _)), _) if now < later(question.expires_at, KEPT_FOR) => {
                return Ok(false);
            }
            (Some((question, version)), Some(keys)) => {
                let (entry, _) = self.record(&question, Event::Removed, &by, now, &keys);
                let key = question.place(&keys);
                (vec![Writing::delete(key, version, true)], entry)
            }
            (Some(_) | None, None) | (None, Some(_)) => (
                Vec::new(),
                record::orphan(id, &by, now, self.ids.snapshot_id()),
            ),
        };
        writings.extend(self.without_owner(id).await?);
        writings.extend(self.without_refusals(&owner.user_id, id).await?);
        let (reads, writes) = writings.into_iter().map(|w| (w.read, w.write)).unzip();
        let commit = Commit {
            key: None,
            reads,
            shapes: Vec::new(),
            writes,
            spend: None,
            record: Draft::from(entry),
        };
        self.commit(&owner.user_id, commit).await
    }
}

/// The newest of the matching questions; no more are held than are needed.
struct Newest {
    state: Option<ApprovalState>,
    before: Option<(Timestamp, String)>,
    limit: usize,
    language: Language,
    now: Timestamp,
    questions: Vec<Question>,
}

impl Newest {
    fn new(wanted: &Wanted, now: Timestamp) -> Self {
        Self {
            state: wanted.state,
            before: wanted.before.clone(),
            limit: wanted.limit,
            language: wanted.language,
            now,
            questions: Vec::new(),
        }
    }

    fn add(&mut self, question: Question) {
        let is_older = self
            .before
            .as_ref()
            .is_none_or(|(at, id)| (question.asked_at, &question.id) < (*at, id));
        let is_of_state = self
            .state
            .is_none_or(|state| question.state(self.now) == state);
        if is_older && is_of_state {
            self.questions.push(question);
        }
        if self.questions.len() >= self.limit.saturating_mul(2).max(PAGE) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        self.questions
            .sort_by(|a, b| (b.asked_at, &b.id).cmp(&(a.asked_at, &a.id)));
        self.questions.truncate(self.limit);
    }

    fn shown_to(mut self, by: &Principal) -> Vec<Approval> {
        self.trim();
        let questions = self.questions.into_iter();
        let shown = questions.map(|question| question.shown_to(by, self.now, self.language));
        shown.collect()
    }
}

/// Maximum length of an id that is looked up.
const ID_BYTES_MAX: usize = 255;

/// Maximum number of characters of an unknown id that are shown.
const ID_CHARS_SHOWN: usize = 64;
