//! Approvals in the store, sealed under the keys of those who answer.
//!
//! Two documents a question, in a collection that no tool can name: the question itself among the user's documents,
//! under a name that is derived from what it is bound to, so that a call finds it in one read; and one among the shared
//! documents, under the approval's id, that names its user.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::Actor;
use countersign_contract::evidence::Link;
use countersign_evidence::seal::UserKey;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use super::narrow::Cut;
use super::question::{self, Meaning, Question, Standing, Use, later};
use super::record::{self, Event, Shown};
use super::waiting::Waiting;
use super::{Answer, Approver, Because, Confirm, Foreseen, Permit, Ticket, Using};
use crate::BoxFuture;
use crate::believed::BelievedTime;
use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::consent::{Kind, Shelf, TRIES_MAX, Writing, unit};
use crate::executor::queue::Queue;
use crate::ids::IdSource;
use crate::ledger::{
    DocumentKey, DocumentRead, Entry, Error, FoundDocument, ShapeRead, Store, StoredDocument,
};
use crate::retention::RetentionPlan;
use crate::state::document::Stamp;
use crate::unavailable::Unavailable;
use crate::vault::{SHARED, Vault};

/// Collection of approvals. No tool can name it: its name starts with a dollar sign.
pub const COLLECTION: &str = "$approvals";

pub(super) const KIND: Kind = Kind {
    collection: COLLECTION,
    name: "approval",
    part: "approvals",
};

/// Questions and answers in a store. Durable wherever the store is.
pub struct StoredApprovals {
    pub(super) store: Arc<dyn Store>,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Arc<dyn Clock>,
    /// The time by which questions and answers end.
    pub(super) believed: BelievedTime,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) limits: Limits,
    retention: RetentionPlan,
    /// The tools, by whose declarations narrowed arguments are bound again.
    pub(super) catalog: Option<Catalog>,
    /// Notified with every answer of this process.
    pub(super) answered: Notify,
    waiting: Waiting,
    /// Turns of questions of one user.
    queue: Queue,
}

/// The bounds of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Validity of a question and of its answer.
    pub valid_for: Duration,
    /// Maximum number of open questions of a user.
    pub pending_max: usize,
    /// Maximum time for which a caller may wait for an answer.
    pub wait_max: Duration,
    /// Maximum number of waiting callers; the next one gets at once the reply that the user has not answered.
    pub waiting_max: usize,
    /// Maximum number of callers that wait for the same user.
    pub waiting_per_user_max: usize,
    /// Cool-down after a denial: the same principal, or the same session, can ask nothing new about the tool; at most a
    /// day.
    pub cool_down: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            valid_for: Duration::from_mins(15),
            pending_max: 20,
            wait_max: Duration::from_mins(5),
            waiting_max: 64,
            waiting_per_user_max: 4,
            cool_down: Duration::from_mins(2),
        }
    }
}

/// Maximum validity of a question, whatever a policy says.
const VALID_FOR_MAX: Duration = Duration::from_hours(24 * 30);

/// Maximum cool-down: a denied question is kept for at least as long.
const COOL_DOWN_MAX: Duration = Duration::from_hours(24);

/// Maximum number of denied questions of one principal, and of one session, that are searched.
const DENIED_MAX: usize = 1_024;

/// Poll interval of a waiting caller, to see answers of other processes.
const POLL: Duration = Duration::from_millis(500);

/// Maximum number of questions about one tool that are searched for the reason why none of them counts.
const NEIGHBOURS_MAX: usize = 32;

/// Maximum number of expired questions that are removed when a new one is asked.
const REMOVED_MAX: usize = 16;

impl StoredApprovals {
    /// Approvals in this store, under the keys of this vault.
    pub fn new(
        store: Arc<dyn Store>,
        vault: Arc<Vault>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self {
            believed: BelievedTime::new(store.clone(), clock.clone()),
            store,
            vault,
            clock,
            ids,
            limits: Limits::default(),
            retention: RetentionPlan::default(),
            catalog: None,
            answered: Notify::new(),
            waiting: Waiting::default(),
            queue: Queue::default(),
        }
    }

    /// Sets the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the retention of what a person was shown.
    pub fn retention(mut self, retention: RetentionPlan) -> Self {
        self.retention = retention;
        self
    }

    /// Sets the tools that are asked about. Without them no call can be narrowed.
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(catalog);
        self
    }

    pub(super) fn shelf(&self) -> Shelf<'_> {
        Shelf {
            kind: KIND,
            store: &*self.store,
            vault: &self.vault,
            ids: &*self.ids,
        }
    }

    /// The record of an event, and the link by which later records name it.
    pub(super) fn record(
        &self,
        question: &Question,
        event: Event,
        by: &Actor,
        at: Timestamp,
        keys: &UserKey,
        stamps: &[Stamp],
    ) -> (Entry, Link) {
        let how = (Shown::default(), &[] as &[Cut], stamps);
        self.record_shown(question, event, by, at, keys, how)
    }

    /// The same, with the rendering that the approver saw.
    pub(super) fn record_shown(
        &self,
        question: &Question,
        event: Event,
        by: &Actor,
        at: Timestamp,
        keys: &UserKey,
        (shown, narrowed, stamps): (Shown, &[Cut], &[Stamp]),
    ) -> (Entry, Link) {
        record::entry(&record::Deed {
            question,
            event,
            by,
            at,
            keys,
            ids: &*self.ids,
            retention: &self.retention,
            shown,
            narrowed,
            stamps,
        })
    }

    /// Looks up the user's answer; asks the question if there is none yet.
    async fn look(&self, confirm: &Confirm) -> Result<Answer, Error> {
        let keys = self.vault.key(&confirm.user_id).await?;
        let mut turn = None;
        for _ in 0..TRIES_MAX {
            let now = self.believed.now().await?;
            let (key, stored) = self.find_own(confirm, &keys).await?;
            let own = stored.body.as_ref();
            let own: Option<Question> = own
                .map(|body| KIND.open(&keys, &key, stored.version, body))
                .transpose()?;
            let because = match own.as_ref().map(|own| (own, own.meaning(confirm, now))) {
                None => None,
                Some((own, Meaning::Approved(link, cuts))) => {
                    let ticket = Ticket {
                        link: Some(link),
                        cuts,
                        using: self.using(own, confirm, &keys, stored.version, now),
                    };
                    return Ok(Answer::Approved(Permit(Some(Box::new(ticket)))));
                }
                Some((_, Meaning::Resumed(link, cuts))) => {
                    let ticket = Ticket {
                        link: Some(link),
                        cuts,
                        using: None,
                    };
                    return Ok(Answer::Approved(Permit(Some(Box::new(ticket)))));
                }
                Some((own, Meaning::Denied)) => return Ok(denied(own)),
                Some((own, Meaning::Pending)) => return Ok(pending(own, None)),
                Some((_, Meaning::Void(because))) => because,
            };
            // Whoever else of the user's agents has been declined, and wherever, this call has been as well.
            if let Some(declined) = self.declined(confirm, &keys, now).await? {
                return Ok(denied(&declined));
            }
            if let Some(cooling) = self.cooling(confirm, &keys, now).await? {
                return Ok(cooling);
            }
            if confirm.display.is_none() {
                return Ok(Answer::Unasked);
            }
            let because = match because {
                Some(because) => Some(because),
                None => self.nearest(confirm, &keys, now).await?,
            };
            let asked = self.create(confirm, &keys, (stored.version, own), because, now);
            if let Some(answer) = asked.await? {
                return Ok(answer);
            }
            // Another question of the user was faster: from now on, those of this process take turns.
            if turn.is_none() {
                turn = self.queue.turn(COLLECTION, &confirm.user_id).await;
            }
        }
        Err(KIND.busy())
    }

    /// Predicts the result of [`look`](Self::look), without asking the user.
    async fn foreseen(&self, confirm: &Confirm) -> Result<Foreseen, Error> {
        let keys = self.vault.key(&confirm.user_id).await?;
        let now = self.believed.now().await?;
        let (key, stored) = self.find_own(confirm, &keys).await?;
        if let Some(body) = &stored.body {
            let own: Question = KIND.open(&keys, &key, stored.version, body)?;
            match own.meaning(confirm, now) {
                Meaning::Approved(_, cuts) | Meaning::Resumed(_, cuts) => {
                    let ticket = Ticket {
                        link: None,
                        cuts,
                        using: None,
                    };
                    return Ok(Foreseen::Approved(Permit(Some(Box::new(ticket)))));
                }
                Meaning::Denied => return Ok(Foreseen::Denied(denied(&own))),
                Meaning::Pending => return Ok(Foreseen::Pending),
                Meaning::Void(_) => {}
            }
        }
        if let Some(declined) = self.declined(confirm, &keys, now).await? {
            return Ok(Foreseen::Denied(denied(&declined)));
        }
        let cooling = self.cooling(confirm, &keys, now).await?;
        Ok(cooling.map_or(Foreseen::Asked, Foreseen::Denied))
    }

    async fn find_own(
        &self,
        confirm: &Confirm,
        keys: &UserKey,
    ) -> Result<(DocumentKey, StoredDocument), Error> {
        let who = [&confirm.actor, &confirm.principal];
        let key = question::place(keys, &confirm.user_id, &confirm.tool, who, confirm.exact);
        let stored = self.store.document(&key).await?;
        Ok((key, stored))
    }

    /// The write that uses an approval up.
    fn using(
        &self,
        own: &Question,
        confirm: &Confirm,
        keys: &UserKey,
        version: u64,
        now: Timestamp,
    ) -> Option<Using> {
        let given = match &own.standing {
            Standing::Approved(given) => given.clone(),
            Standing::Pending | Standing::Denied(_) | Standing::Used(..) => return None,
        };
        let used = Use {
            request_id: confirm.request_id.clone(),
            key: confirm.key.map(|key| key.to_string()),
            at: now,
        };
        let question = Question {
            standing: Standing::Used(given, used),
            ..own.clone()
        };
        let Writing { read, write } = question.write(keys, version, &*self.ids);
        Some(Using {
            read,
            write,
            question,
        })
    }

    /// Uses an approval up before an external effect, with its record; false if another call was faster.
    pub(crate) async fn use_up(&self, using: Using, by: &Actor) -> Result<bool, Error> {
        let Using {
            read,
            write,
            question,
        } = using;
        let used = Writing { read, write };
        let keys = self.vault.key(&question.user_id).await?;
        let at = self.clock.now();
        let stamps = Writing::stamps([&used]);
        let (entry, _) = self.record(&question, Event::Used, by, at, &keys, &stamps);
        let commit = unit([used], entry);
        self.shelf().commit(&question.user_id, commit).await
    }

    /// A question about this call that the user has denied, in any currency and time zone.
    async fn declined(
        &self,
        confirm: &Confirm,
        keys: &UserKey,
        now: Timestamp,
    ) -> Result<Option<Question>, Error> {
        let entry = question::by_matter(keys, &confirm.tool, confirm.matter);
        let found = self
            .store
            .find(&confirm.user_id, COLLECTION, &entry, NEIGHBOURS_MAX)
            .await?;
        let found = opened(&confirm.user_id, keys, found.documents)?;
        let mut found = found.into_iter().map(|(_, question)| question);
        Ok(found.find(|question| question.denies(confirm, now)))
    }

    /// The newest denial of the user about this tool, of the same principal or in this session, while its cool-down
    /// lasts.
    async fn cooling(
        &self,
        confirm: &Confirm,
        keys: &UserKey,
        now: Timestamp,
    ) -> Result<Option<Answer>, Error> {
        let cool_down = confirm.cool_down.unwrap_or(self.limits.cool_down);
        if cool_down.is_zero() {
            return Ok(None);
        }
        let cool_down = SignedDuration::try_from(cool_down.min(COOL_DOWN_MAX));
        let cool_down = cool_down.unwrap_or(SignedDuration::ZERO);
        let user_id = &confirm.user_id;
        let session_id = confirm.session_id.as_deref();
        let mut found = Vec::new();
        for entry in question::denied(keys, &confirm.tool, &confirm.principal, session_id) {
            let of_entry = self.store.find(user_id, COLLECTION, &entry, DENIED_MAX);
            found.extend(opened(user_id, keys, of_entry.await?.documents)?);
        }
        let declined = found.into_iter().filter_map(|(_, question)| {
            let given = match &question.standing {
                Standing::Denied(given) => given,
                Standing::Pending | Standing::Approved(_) | Standing::Used(..) => return None,
            };
            let until = later(given.at, cool_down);
            (now < until).then_some((until, question.id))
        });
        Ok(declined
            .max()
            .map(|(until, approval_id)| Answer::Cooling { approval_id, until }))
    }

    /// The reason why an answer of the user about this tool does not count for this call.
    async fn nearest(
        &self,
        confirm: &Confirm,
        keys: &UserKey,
        now: Timestamp,
    ) -> Result<Option<Because>, Error> {
        let entry = question::by_tool(keys, &confirm.tool);
        let found = self
            .store
            .find(&confirm.user_id, COLLECTION, &entry, NEIGHBOURS_MAX)
            .await?;
        let found = opened(&confirm.user_id, keys, found.documents)?;
        let mut because = None;
        for (_, question) in found {
            let is_given = matches!(question.standing, Standing::Approved(_));
            if !is_given || now >= question.expires_at {
                continue;
            }
            if question.exact == confirm.exact {
                return Ok(Some(Because::OtherPrincipal));
            }
            if (&question.actor, &question.principal) == (&confirm.actor, &confirm.principal) {
                because = Some(Because::ArgumentsChanged);
            }
        }
        Ok(because)
    }

    /// Asks the question. `None` if another call was faster, and then everything is looked up again.
    async fn create(
        &self,
        confirm: &Confirm,
        keys: &UserKey,
        (version, replaced): (u64, Option<Question>),
        because: Option<Because>,
        now: Timestamp,
    ) -> Result<Option<Answer>, Error> {
        let user_id = &confirm.user_id;
        let pending_max = self.limits.pending_max;
        let entry = question::pending(keys);
        let wanted = pending_max.saturating_add(REMOVED_MAX);
        let found = self.store.find(user_id, COLLECTION, &entry, wanted).await?;
        let shape = ShapeRead {
            user_id: user_id.clone(),
            collection: COLLECTION.to_owned(),
            shape: found.shape,
        };
        let found = opened(user_id, keys, found.documents)?;
        let own = question::place(
            keys,
            user_id,
            &confirm.tool,
            [&confirm.actor, &confirm.principal],
            confirm.exact,
        );
        let others = found.into_iter().filter(|(read, _)| read.key != own);
        let (open, over): (Vec<_>, Vec<_>) =
            others.partition(|(_, question)| question.is_open(now));
        if open.len() >= pending_max {
            let first = open.iter().map(|(_, question)| question.expires_at).min();
            return Ok(Some(Answer::TooMany {
                pending_max,
                retry_after_ms: millis_until(first.unwrap_or(now), now),
            }));
        }
        let question = Question::of(
            confirm,
            self.ids.approval_id(),
            now,
            self.valid_for(confirm),
            replaced.as_ref(),
        );
        let mut writings = vec![
            question.write(keys, version, &*self.ids),
            self.shelf().owner(&question.id, &own).await?,
        ];
        if let Some(replaced) = &replaced {
            writings.extend(self.without_owner(&replaced.id).await?);
            writings.extend(self.without_refusals(user_id, &replaced.id, keys).await?);
        }
        for (read, question) in over.into_iter().take(REMOVED_MAX) {
            writings.push(Writing::delete(read.key, read.version, true, keys));
            writings.extend(self.without_owner(&question.id).await?);
            writings.extend(self.without_refusals(user_id, &question.id, keys).await?);
        }
        let stamps = Writing::stamps(&writings);
        let by = &confirm.actor;
        let (entry, _) = self.record(&question, Event::Asked, by, now, keys, &stamps);
        let mut commit = unit(writings, entry);
        commit.shapes.push(shape);
        let is_asked = self.shelf().commit(user_id, commit).await?;
        Ok(is_asked.then(|| pending(&question, because)))
    }

    /// Removes the document under the id of a question.
    pub(super) async fn without_owner(&self, id: &str) -> Result<Option<Writing>, Error> {
        let key = KIND.owner_place(id);
        let stored = self.store.document(&key).await?;
        if stored.body.is_none() {
            return Ok(None);
        }
        let shared = self.vault.key(SHARED).await?;
        Ok(Some(Writing::delete(key, stored.version, false, &shared)))
    }

    fn valid_for(&self, confirm: &Confirm) -> SignedDuration {
        let valid_for = confirm.valid_for.unwrap_or(self.limits.valid_for);
        SignedDuration::try_from(valid_for.min(VALID_FOR_MAX)).unwrap_or(SignedDuration::ZERO)
    }

    /// Returns when a question is no longer open.
    async fn until_answered(&self, confirm: &Confirm, approval_id: &str) -> Result<(), Error> {
        let keys = self.vault.key(&confirm.user_id).await?;
        loop {
            let rung = self.answered.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let (key, stored) = self.find_own(confirm, &keys).await?;
            let own = stored.body.as_ref();
            let own: Option<Question> = own
                .map(|body| KIND.open(&keys, &key, stored.version, body))
                .transpose()?;
            let now = self.believed.now().await?;
            let is_open = own.is_some_and(|own| own.id == approval_id && own.is_open(now));
            if !is_open {
                return Ok(());
            }
            // Other processes answer without ringing here.
            let _ = tokio::time::timeout(POLL, rung).await;
        }
    }

    async fn answer(&self, confirm: &Confirm) -> Result<Answer, Error> {
        let answer = Box::pin(self.look(confirm)).await?;
        let wait = confirm.wait.min(self.limits.wait_max);
        let approval_id = match &answer {
            Answer::Pending { approval_id, .. } if !wait.is_zero() => approval_id,
            Answer::Pending { .. }
            | Answer::Unasked
            | Answer::Approved(_)
            | Answer::Denied { .. }
            | Answer::Cooling { .. }
            | Answer::TooMany { .. } => return Ok(answer),
        };
        let Some(_waiter) = self.waiting.enter(&confirm.user_id, &self.limits) else {
            return Ok(answer);
        };
        let answered = self.until_answered(confirm, approval_id);
        match tokio::time::timeout(wait, answered).await {
            Ok(answered) => {
                answered?;
                Box::pin(self.look(confirm)).await
            }
            Err(_) => Ok(answer),
        }
    }
}

impl Approver for StoredApprovals {
    fn ask<'a>(&'a self, confirm: &'a Confirm) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async move {
            let answer = Box::pin(self.answer(confirm)).await;
            answer.map_err(|error| Unavailable::new("approvals", error))
        })
    }

    fn foresee<'a>(&'a self, confirm: &'a Confirm) -> BoxFuture<'a, Result<Foreseen, Unavailable>> {
        Box::pin(async move {
            let foreseen = self.foreseen(confirm).await;
            foreseen.map_err(|error| Unavailable::new("approvals", error))
        })
    }
}

impl fmt::Debug for StoredApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredApprovals")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The shared documents that name a user: one for each question.
pub(crate) async fn pointers(
    store: &dyn Store,
    user_id: &str,
    keys: &UserKey,
) -> Result<Vec<DocumentKey>, Error> {
    let (mut pointers, mut after) = (Vec::new(), None);
    while let Some(page) = KIND.next_page(store, user_id, &mut after).await? {
        let found = opened(user_id, keys, page)?;
        pointers.extend(
            found
                .iter()
                .map(|(_, question)| KIND.owner_place(&question.id)),
        );
    }
    Ok(pointers)
}

fn pending(question: &Question, because: Option<Because>) -> Answer {
    Answer::Pending {
        approval_id: question.id.clone(),
        expires_at: question.expires_at,
        because,
        approvers: question.approvers(),
    }
}

fn denied(question: &Question) -> Answer {
    Answer::Denied {
        approval_id: question.id.clone(),
        until: question.expires_at,
    }
}

fn millis_until(then: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(then.duration_since(now).as_millis()).unwrap_or_default()
}

/// Questions that were found.
pub(super) fn opened(
    user_id: &str,
    keys: &UserKey,
    found: Vec<FoundDocument>,
) -> Result<Vec<(DocumentRead, Question)>, Error> {
    let mut questions = Vec::with_capacity(found.len());
    for document in found {
        let key = KIND.place(user_id, &document.id);
        let version = document.version;
        let question = KIND.open(keys, &key, version, &document.body)?;
        questions.push((DocumentRead { key, version }, question));
    }
    Ok(questions)
}
