//! The inbox: lists of questions for approvers, and the removal of expired ones.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_contract::approval::{Approval, ApprovalState};
use countersign_contract::{Actor, ActorType, Language, ToolName};
use jiff::{SignedDuration, Timestamp};

use super::answer::Error;
use super::question::{Question, later, pending};
use super::record::{self, Event};
use super::stored::{COLLECTION, KIND, StoredApprovals, opened};
use crate::consent::{PAGE, Writing, sees, sees_all, shown_id, unit};
use crate::ledger::{self, DocumentKey, OpenPlace};
use crate::principal::Principal;
use crate::redact::error_text;
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
        let mut newest = Newest::new(wanted, self.believed.now().await?);
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
        let mut newest = Newest::new(&wanted, self.believed.now().await?);
        self.of_user(&by.user_id, &wanted, &mut newest).await?;
        Ok(newest.questions.len())
    }

    /// The open questions of all users, at most 10,000. Those that an earlier look has found are not opened again.
    pub async fn open_questions(&self, earlier: &OpenQuestions) -> Result<OpenQuestions, Error> {
        let mut open = OpenQuestions {
            is_complete: true,
            ..OpenQuestions::default()
        };
        let now = self.believed.now().await?;
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
                let key = KIND.place(&name.0, &name.1);
                let question = self
                    .opened_now(&key, document.version, &document.body)
                    .await?;
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
        Ok(question.shown_to(by, self.believed.now().await?, language))
    }

    /// Counts the open questions of all users, for monitoring. The count stops at 10,000.
    pub async fn pending(&self) -> Result<usize, Error> {
        let now = self.believed.now().await?;
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
        let (mut removed, mut after) = (0, None);
        while removed < limit
            && let Some(page) = KIND.next_page(&*self.store, SHARED, &mut after).await?
        {
            for document in page {
                let is_removed = removed < limit && self.remove_if_over(&document.id).await?;
                removed += usize::from(is_removed);
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
        let unknown = || Error::Unknown(shown_id(id));
        let found = self.found(id).await?.and_then(|(_, found)| found);
        let (question, version) = found.ok_or_else(unknown)?;
        if !sees(by, &question.user_id) {
            return Err(unknown());
        }
        Ok((question, version))
    }

    /// The user of a question, and the question itself if it is still stored.
    pub(super) async fn found(
        &self,
        id: &str,
    ) -> Result<Option<(String, Option<(Question, u64)>)>, ledger::Error> {
        let Some((user_id, found)) = self.shelf().found(id).await? else {
            return Ok(None);
        };
        let Some(found) = found else {
            return Ok(Some((user_id, None)));
        };
        let question: Question = KIND.open(&found.keys, &found.key, found.version, &found.body)?;
        let question = (question.id == id).then_some((question, found.version));
        Ok(Some((user_id, question)))
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
        let mut after = None;
        while let Some(page) = KIND.next_page(&*self.store, user_id, &mut after).await? {
            for (_, question) in opened(user_id, &keys, page)? {
                newest.add(question);
            }
        }
        Ok(())
    }

    /// The open questions of all users: one query a page, for any number of users.
    async fn of_open(&self, newest: &mut Newest) -> Result<(), ledger::Error> {
        let mut after = OpenPlace::after(self.believed.now().await?);
        loop {
            let page = self.store.open_documents(COLLECTION, &after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = last.place.clone();
            for open in page {
                let key = KIND.place(&open.place.user_id, &open.place.id);
                if let Some(question) = self.opened_now(&key, open.version, &open.body).await? {
                    newest.add(question);
                }
            }
        }
    }

    /// Opens a question that was just read; `None` if its user was erased since.
    async fn opened_now(
        &self,
        key: &DocumentKey,
        version: u64,
        body: &[u8],
    ) -> Result<Option<Question>, ledger::Error> {
        if let Some(keys) = self.vault.known_key(&key.user_id).await?
            && let Ok(question) = KIND.open(&keys, key, version, body)
        {
            return Ok(Some(question));
        }
        // The key that is held here may be that of somebody who was erased and has come back.
        match self.vault.existing_key(&key.user_id).await? {
            Some(keys) => KIND.open(&keys, key, version, body).map(Some),
            None => Ok(None),
        }
    }

    async fn of_all(&self, newest: &mut Newest) -> Result<(), ledger::Error> {
        let mut after = None;
        while let Some(page) = KIND.next_page(&*self.store, SHARED, &mut after).await? {
            for document in page {
                let found = self.found(&document.id).await?;
                if let Some((_, Some((question, _)))) = found {
                    newest.add(question);
                }
            }
        }
        Ok(())
    }

    async fn remove_if_over(&self, id: &str) -> Result<bool, ledger::Error> {
        let now = self.clock.now();
        let Some((user_id, found)) = self.found(id).await? else {
            return Ok(false);
        };
        let keys = self.vault.existing_key(&user_id).await?;
        let by = Actor {
            kind: ActorType::System,
            id: "countersign".to_owned(),
        };
        if let Some((question, _)) = &found
            && now < later(question.expires_at, KEPT_FOR)
        {
            return Ok(false);
        }
        let mut writings = Vec::new();
        writings.extend(self.without_owner(id).await?);
        let entry = match (found, keys) {
            (Some((question, version)), Some(keys)) => {
                let place = question.place(&keys);
                writings.push(Writing::delete(place, version, true, &keys));
                writings.extend(self.without_refusals(&user_id, id, &keys).await?);
                let stamps = Writing::stamps(&writings);
                let (entry, _) = self.record(&question, Event::Removed, &by, now, &keys, &stamps);
                entry
            }
            (found, keys) => {
                // Where the key is gone, so are the user's documents.
                if let (None, Some(keys)) = (found, keys) {
                    writings.extend(self.without_refusals(&user_id, id, &keys).await?);
                }
                let stamps = Writing::stamps(&writings);
                record::orphan(id, &by, now, self.ids.snapshot_id(), &stamps)
            }
        };
        self.shelf().commit(&user_id, unit(writings, entry)).await
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
