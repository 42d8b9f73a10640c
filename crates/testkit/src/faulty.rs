//! A store that fails when a test says so, in front of one that does not: before it has done something,
//! or after, when it is done and only the answer is lost.

use std::sync::Arc;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::contract::SnapshotId;
use countersign::ledger::{
    Claim, ClaimAnswer, ClaimQuery, ClaimRequest, ClaimRow, Claims, Commit, CommitAnswer, Corpus,
    CorpusId, Delivery, DeliveryEnd, DeliveryId, Disposal, DocumentKey, DocumentRow, Documents,
    Draw, Durability, Entry, Erased, Error, FailedDeliveries, Forgotten, Head, Held, Hold,
    IndexEntry, Installation, Installations, Integration, KeyDigest, Keyring, Leaf, Log, LogQuery,
    LogRow, Look, LostKeyFn, Names, NoticeRow, OpenDocument, OpenPlace, Outbox, Pace, PaceAnswer,
    PaceKey, Paces, Passage, PotRow, Pots, Removed, ReservationId, Reserve, ReserveAnswer, Scan,
    Scope, Sequencing, Store, StoreVitals, StoredDocument, StoredRecord, Swept, TextChunk, TextHit,
    TextQuery, Texts, Timekeeping, Told, Vitals, WrappedKey,
};
use countersign::scribe::Draft;
use countersign::unavailable::Unavailable;
use countersign_evidence::seal::LeafKey;
use countersign_evidence::tile::TileId;
use countersign_evidence::tree::Hash;
use jiff::Timestamp;

/// Kind of operation on a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// A look-up of a key's state.
    Lookup,
    /// A claim before an effect.
    Claim,
    /// A commit.
    Commit,
    /// A record alone.
    Append,
    /// A read of documents.
    Read,
    /// A read or write of users' keys.
    Keys,
    /// A reservation in a budget, or its release.
    Reserve,
    /// A call counted against a rate limit.
    Pace,
    /// A search of texts.
    Texts,
    /// Everything else.
    Other,
}

/// Moment at which a store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before anything was done.
    Before,
    /// After everything was done.
    After,
}

type Plan = Box<dyn Fn(Op, When) -> BoxFuture<'static, bool> + Send + Sync>;

type Change<T> = Box<dyn Fn(&mut T) + Send + Sync>;

/// A store with a plan of faults.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Plan,
    change: Change<StoredRecord>,
    change_text: Change<String>,
}

impl FaultyStore {
    /// Asks `plan` before and after each operation; where it says yes, the store fails. The plan may
    /// also take its time.
    pub fn new(
        inner: Arc<dyn Store>,
        plan: impl Fn(Op, When) -> BoxFuture<'static, bool> + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner,
            plan: Box::new(plan),
            change: Box::new(|_| {}),
            change_text: Box::new(|_| {}),
        }
    }

    /// Hands out records with this change, as if an attacker had edited the store.
    pub fn changing_records(
        mut self,
        change: impl Fn(&mut StoredRecord) + Send + Sync + 'static,
    ) -> Self {
        self.change = Box::new(change);
        self
    }

    /// Hands out texts with this change.
    pub fn changing_texts(mut self, change: impl Fn(&mut String) + Send + Sync + 'static) -> Self {
        self.change_text = Box::new(change);
        self
    }

    /// The inner store is given nothing before the plan has spoken: it may do its work at once.
    async fn guarded<'s, T>(
        &'s self,
        op: Op,
        work: impl FnOnce() -> BoxFuture<'s, Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let fault = || Error::from(Unavailable::new("store", "lost at /secret"));
        if (self.plan)(op, When::Before).await {
            return Err(fault());
        }
        let done = work().await?;
        if (self.plan)(op, When::After).await {
            return Err(fault());
        }
        Ok(done)
    }
}

macro_rules! guarded {
    ($self:ident, $op:ident, $method:ident($($arg:expr),*)) => {
        Box::pin($self.guarded(Op::$op, move || $self.inner.$method($($arg),*)))
    };
}

impl Claims for FaultyStore {
    fn lookup<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Option<Held>, Error>> {
        guarded!(self, Lookup, lookup(scope))
    }

    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>> {
        guarded!(self, Claim, claim(request))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<CommitAnswer, Error>> {
        Box::pin(async {
            // Asked before the inner store is given anything: it may do its work at once.
            if (self.plan)(Op::Commit, When::Before).await {
                return Err(Unavailable::new("store", "lost at /secret").into());
            }
            let done = self.inner.commit(commit).await?;
            if (self.plan)(Op::Commit, When::After).await {
                return Err(Unavailable::new("store", "lost at /secret").into());
            }
            Ok(done)
        })
    }

    fn claims<'a>(&'a self, query: &'a ClaimQuery) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        guarded!(self, Other, claims(query))
    }

    fn claims_of<'a>(
        &'a self,
        keys: &'a [(String, KeyDigest)],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        guarded!(self, Other, claims_of(keys, limit))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, Error>> {
        guarded!(self, Other, sweep(limit))
    }
}

impl Documents for FaultyStore {
    fn document<'a>(
        &'a self,
        key: &'a DocumentKey,
    ) -> BoxFuture<'a, Result<StoredDocument, Error>> {
        guarded!(self, Read, document(key))
    }

    fn scan<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>> {
        guarded!(self, Read, scan(user_id, collection, prefix, after, limit))
    }

    fn find<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        entry: &'a IndexEntry,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>> {
        guarded!(self, Read, find(user_id, collection, entry, limit))
    }

    fn count_open<'a>(
        &'a self,
        collection: &'a str,
        after: Timestamp,
        limit: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        guarded!(self, Read, count_open(collection, after, limit))
    }

    fn open_documents<'a>(
        &'a self,
        collection: &'a str,
        after: &'a OpenPlace,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenDocument>, Error>> {
        guarded!(self, Read, open_documents(collection, after, limit))
    }

    fn all_documents<'a>(
        &'a self,
        after: Option<&'a DocumentKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DocumentRow>, Error>> {
        guarded!(self, Read, all_documents(after, limit))
    }
}

impl Pots for FaultyStore {
    fn reserve<'a>(&'a self, request: &'a Reserve) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        guarded!(self, Reserve, reserve(request))
    }

    fn check<'a>(&'a self, draws: &'a [Draw]) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        guarded!(self, Reserve, check(draws))
    }

    fn release<'a>(&'a self, id: &'a ReservationId) -> BoxFuture<'a, Result<(), Error>> {
        guarded!(self, Reserve, release(id))
    }

    fn reserved<'a>(
        &'a self,
        claim: &'a Claim,
    ) -> BoxFuture<'a, Result<Option<ReservationId>, Error>> {
        guarded!(self, Other, reserved(claim))
    }

    fn pots<'a>(
        &'a self,
        user_id: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<PotRow>, Error>> {
        guarded!(self, Other, pots(user_id, limit))
    }
}

impl Paces for FaultyStore {
    fn keep_pace<'a>(&'a self, paces: &'a [Pace]) -> BoxFuture<'a, Result<PaceAnswer, Error>> {
        guarded!(self, Pace, keep_pace(paces))
    }

    fn until_whole<'a>(&'a self, key: &'a PaceKey) -> BoxFuture<'a, Result<Duration, Error>> {
        guarded!(self, Other, until_whole(key))
    }
}

impl Outbox for FaultyStore {
    fn keep_notices<'a>(&'a self, look: &'a Look) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        guarded!(self, Other, keep_notices(look))
    }

    fn take_deliveries<'a>(
        &'a self,
        targets: &'a [String],
        lease: Duration,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        guarded!(self, Other, take_deliveries(targets, lease, limit))
    }

    fn end_delivery<'a>(
        &'a self,
        delivery: &'a DeliveryId,
        end: &'a DeliveryEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        guarded!(self, Other, end_delivery(delivery, end))
    }

    fn retry_deliveries<'a>(
        &'a self,
        target: &'a str,
        give_up_after: Duration,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        guarded!(self, Other, retry_deliveries(target, give_up_after))
    }

    fn notices(&self, limit: usize) -> BoxFuture<'_, Result<Vec<NoticeRow>, Error>> {
        guarded!(self, Other, notices(limit))
    }

    fn failed_deliveries(&self) -> BoxFuture<'_, Result<Vec<FailedDeliveries>, Error>> {
        guarded!(self, Other, failed_deliveries())
    }
}

impl Timekeeping for FaultyStore {
    fn observe_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        guarded!(self, Other, observe_time(told))
    }

    fn trust_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        guarded!(self, Other, trust_time(told))
    }

    fn dispose(&self, limit: usize, told: Told<Removed>) -> BoxFuture<'_, Result<Disposal, Error>> {
        guarded!(self, Other, dispose(limit, told))
    }

    fn forget_keys<'a>(
        &'a self,
        which: &'a Forgotten,
        told: Told<Names>,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        guarded!(self, Other, forget_keys(which, told))
    }
}

impl Vitals for FaultyStore {
    fn vitals(&self) -> BoxFuture<'_, Result<StoreVitals, Error>> {
        guarded!(self, Other, vitals())
    }

    fn stored_bytes(&self) -> BoxFuture<'_, Result<Option<u64>, Error>> {
        guarded!(self, Other, stored_bytes())
    }
}

impl Texts for FaultyStore {
    fn keep_corpus<'a>(&'a self, corpus: &'a Arc<Corpus>) -> BoxFuture<'a, Result<(), Error>> {
        guarded!(self, Texts, keep_corpus(corpus))
    }

    fn search<'a>(
        &'a self,
        query: &'a TextQuery,
    ) -> BoxFuture<'a, Result<Option<Vec<TextHit>>, Error>> {
        let search = move || self.inner.search(query);
        Box::pin(async move {
            let mut found = self.guarded(Op::Texts, search).await?;
            for hit in found.iter_mut().flatten() {
                (self.change_text)(&mut hit.text);
            }
            Ok(found)
        })
    }

    fn chunk<'a>(
        &'a self,
        corpus: &'a CorpusId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TextChunk>, Error>> {
        let chunk = move || self.inner.chunk(corpus, id);
        Box::pin(async move {
            let mut found = self.guarded(Op::Texts, chunk).await?;
            if let Some(chunk) = &mut found {
                (self.change_text)(&mut chunk.text);
            }
            Ok(found)
        })
    }
}

impl Keyring for FaultyStore {
    fn user_key<'a>(
        &'a self,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<WrappedKey>, Error>> {
        guarded!(self, Keys, user_key(user_id))
    }

    fn add_user_key<'a>(
        &'a self,
        user_id: &'a str,
        key: WrappedKey,
    ) -> BoxFuture<'a, Result<WrappedKey, Error>> {
        guarded!(self, Keys, add_user_key(user_id, key))
    }

    fn user_keys<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        guarded!(self, Keys, user_keys(after, limit))
    }

    fn user_keys_not_under<'a>(
        &'a self,
        master: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        guarded!(self, Keys, user_keys_not_under(master, limit))
    }

    fn rewrap<'a>(
        &'a self,
        user_id: &'a str,
        old: &'a WrappedKey,
        new: WrappedKey,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        guarded!(self, Keys, rewrap(user_id, old, new))
    }

    fn on_lost_key(&self, told: LostKeyFn) {
        self.inner.on_lost_key(told);
    }
}

impl Installations for FaultyStore {
    fn installation(&self) -> BoxFuture<'_, Result<Option<Installation>, Error>> {
        guarded!(self, Keys, installation())
    }

    fn rebind<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        guarded!(self, Commit, rebind(from, to, entry))
    }

    fn begin_log<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        forgotten: &'a [&'a str],
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        guarded!(self, Commit, begin_log(from, to, forgotten, entry))
    }
}

impl Log for FaultyStore {
    fn append(&self, draft: Draft, durability: Durability) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            if (self.plan)(Op::Append, When::Before).await {
                return Err(Unavailable::new("store", "lost at /secret").into());
            }
            self.inner.append(draft, durability).await
        })
    }

    fn keeps_log(&self) -> bool {
        self.inner.keeps_log()
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), Error>> {
        guarded!(self, Other, flush())
    }

    fn integrate<'a>(
        &'a self,
        sequencing: &'a Sequencing,
        limit: usize,
    ) -> BoxFuture<'a, Result<Integration, Error>> {
        guarded!(self, Other, integrate(sequencing, limit))
    }

    fn authenticate(&self, key: LeafKey) -> BoxFuture<'_, Result<usize, Error>> {
        guarded!(self, Other, authenticate(key))
    }

    fn authenticated_leaves(
        &self,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hash>, Error>> {
        guarded!(self, Other, authenticated_leaves(from, limit))
    }

    fn head(&self) -> BoxFuture<'_, Result<Head, Error>> {
        guarded!(self, Other, head())
    }

    fn leaves(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<Leaf>, Error>> {
        guarded!(self, Other, leaves(from, limit))
    }

    fn tiles<'a>(
        &'a self,
        wanted: &'a [TileId],
    ) -> BoxFuture<'a, Result<Vec<Option<Vec<u8>>>, Error>> {
        guarded!(self, Other, tiles(wanted))
    }

    fn add_checkpoint<'a>(
        &'a self,
        head: &'a Head,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        guarded!(self, Other, add_checkpoint(head, note))
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        guarded!(self, Other, checkpoint())
    }

    fn checkpoints(
        &self,
        below: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        guarded!(self, Other, checkpoints(below, limit))
    }

    fn record<'a>(
        &'a self,
        id: &'a SnapshotId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, Error>> {
        let record = move || self.inner.record(id);
        Box::pin(async move {
            let mut found = self.guarded(Op::Other, record).await?;
            if let Some(record) = &mut found {
                (self.change)(record);
            }
            Ok(found)
        })
    }

    fn records<'a>(&'a self, query: &'a LogQuery) -> BoxFuture<'a, Result<Vec<LogRow>, Error>> {
        guarded!(self, Other, records(query))
    }

    fn hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<(), Error>> {
        guarded!(self, Other, hold(hold, entry))
    }

    fn release_hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<bool, Error>> {
        guarded!(self, Other, release_hold(hold, entry))
    }

    fn holds(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Hold>, Error>> {
        guarded!(self, Other, holds(limit))
    }

    fn erase<'a>(
        &'a self,
        user_id: &'a str,
        also: &'a [DocumentKey],
        entry: Entry,
    ) -> BoxFuture<'a, Result<Erased, Error>> {
        guarded!(self, Other, erase(user_id, also, entry))
    }
}
