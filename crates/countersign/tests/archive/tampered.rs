//! A store that an attacker has changed.

use std::sync::Arc;

use countersign::BoxFuture;
use countersign::contract::SnapshotId;
use countersign::ledger::{
    Claim, ClaimAnswer, ClaimQuery, ClaimRequest, ClaimRow, Claims, Commit, CommitAnswer, Corpus,
    CorpusId, Delivery, DeliveryEnd, DeliveryId, Disposal, DocumentKey, DocumentRow, Documents,
    Draw, Durability, Entry, Erased, Error, FailedDeliveries, Forgotten, Head, Held, Hold,
    IndexEntry, Installation, Installations, Integration, KeyDigest, Keyring, Leaf, Log, LogQuery,
    LogRow, Look, Names, NoticeRow, OpenDocument, OpenPlace, Outbox, Pace, PaceAnswer, PaceKey,
    Paces, Passage, PotRow, Pots, Removed, ReservationId, Reserve, ReserveAnswer, Scan, Scope,
    Sequencing, Store, StoreVitals, StoredDocument, StoredRecord, Swept, TextChunk, TextHit,
    TextQuery, Texts, Timekeeping, Told, Vitals, WrappedKey,
};
use countersign::scribe::Draft;
use countersign_evidence::tile::TileId;
use jiff::Timestamp;

type Lie<T> = Box<dyn Fn(&mut T) + Send + Sync>;

pub(crate) struct Tampered {
    inner: Arc<dyn Store>,
    leaf: Lie<Leaf>,
    leaves: Lie<Vec<Leaf>>,
    record: Lie<StoredRecord>,
    tile: Lie<(TileId, Option<Vec<u8>>)>,
    head: Lie<Head>,
    checkpoint: Lie<Option<String>>,
    documents: Lie<Vec<DocumentRow>>,
    pot_rows: Lie<Vec<PotRow>>,
    held: Lie<Option<Held>>,
    unreadable: Option<SnapshotId>,
}

macro_rules! lies {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(pub(crate) fn $name(mut self, lie: impl Fn(&mut $type) + Send + Sync + 'static) -> Self {
            self.$name = Box::new(lie);
            self
        })*
    };
}

impl Tampered {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            leaf: Box::new(|_| {}),
            leaves: Box::new(|_| {}),
            record: Box::new(|_| {}),
            tile: Box::new(|_| {}),
            head: Box::new(|_| {}),
            checkpoint: Box::new(|_| {}),
            documents: Box::new(|_| {}),
            pot_rows: Box::new(|_| {}),
            held: Box::new(|_| {}),
            unreadable: None,
        }
    }

    /// The row of this record has an invalid value, such as an unknown code.
    pub(crate) fn unreadable(mut self, id: &SnapshotId) -> Self {
        self.unreadable = Some(id.clone());
        self
    }

    lies! {
        // One leaf, wherever it is read.
        leaf: Leaf,
        leaves: Vec<Leaf>,
        record: StoredRecord,
        tile: (TileId, Option<Vec<u8>>),
        head: Head,
        checkpoint: Option<String>,
        documents: Vec<DocumentRow>,
        pot_rows: Vec<PotRow>,
        held: Option<Held>,
    }
}

impl Log for Tampered {
    fn append(&self, draft: Draft, durability: Durability) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.append(draft, durability)
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.flush()
    }

    fn integrate<'a>(
        &'a self,
        sequencing: &'a Sequencing,
        limit: usize,
    ) -> BoxFuture<'a, Result<Integration, Error>> {
        Box::pin(async move {
            let mut done = self.inner.integrate(sequencing, limit).await?;
            if let Integration::Done { head, .. } = &mut done {
                (self.head)(head);
            }
            Ok(done)
        })
    }

    fn head(&self) -> BoxFuture<'_, Result<Head, Error>> {
        Box::pin(async {
            let mut head = self.inner.head().await?;
            (self.head)(&mut head);
            Ok(head)
        })
    }

    fn leaves(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<Leaf>, Error>> {
        Box::pin(async move {
            let mut leaves = self.inner.leaves(from, limit).await?;
            leaves.iter_mut().for_each(&self.leaf);
            (self.leaves)(&mut leaves);
            Ok(leaves)
        })
    }

    fn tiles<'a>(
        &'a self,
        wanted: &'a [TileId],
    ) -> BoxFuture<'a, Result<Vec<Option<Vec<u8>>>, Error>> {
        Box::pin(async move {
            let tiles = self.inner.tiles(wanted).await?;
            let lie = |(id, tile): (&TileId, Option<Vec<u8>>)| {
                let mut tile = (*id, tile);
                (self.tile)(&mut tile);
                tile.1
            };
            Ok(wanted.iter().zip(tiles).map(lie).collect())
        })
    }

    fn add_checkpoint<'a>(
        &'a self,
        head: &'a Head,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.add_checkpoint(head, note)
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async {
            let mut note = self.inner.checkpoint().await?;
            (self.checkpoint)(&mut note);
            Ok(note)
        })
    }

    fn checkpoints(
        &self,
        below: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        self.inner.checkpoints(below, limit)
    }

    fn record<'a>(
        &'a self,
        id: &'a SnapshotId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, Error>> {
        Box::pin(async move {
            if self.unreadable.as_ref() == Some(id) {
                let what = "column record.code of a row".to_owned();
                return Err(Error::Damaged { what });
            }
            let mut stored = self.inner.record(id).await?;
            if let Some(stored) = &mut stored {
                let mut leaf = Leaf {
                    index: stored.index.unwrap_or(u64::MAX),
                    bytes: std::mem::take(&mut stored.leaf),
                };
                (self.leaf)(&mut leaf);
                stored.leaf = leaf.bytes;
                (self.record)(stored);
            }
            Ok(stored)
        })
    }

    fn records<'a>(&'a self, query: &'a LogQuery) -> BoxFuture<'a, Result<Vec<LogRow>, Error>> {
        self.inner.records(query)
    }

    fn hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.hold(hold, entry)
    }

    fn release_hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<bool, Error>> {
        self.inner.release_hold(hold, entry)
    }

    fn holds(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Hold>, Error>> {
        self.inner.holds(limit)
    }

    fn erase<'a>(
        &'a self,
        user_id: &'a str,
        also: &'a [DocumentKey],
        entry: Entry,
    ) -> BoxFuture<'a, Result<Erased, Error>> {
        self.inner.erase(user_id, also, entry)
    }
}

impl Claims for Tampered {
    fn lookup<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Option<Held>, Error>> {
        Box::pin(async move {
            let mut held = self.inner.lookup(scope).await?;
            (self.held)(&mut held);
            Ok(held)
        })
    }

    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>> {
        self.inner.claim(request)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<CommitAnswer, Error>> {
        self.inner.commit(commit)
    }

    fn claims<'a>(&'a self, query: &'a ClaimQuery) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        self.inner.claims(query)
    }

    fn claims_of<'a>(
        &'a self,
        keys: &'a [(String, KeyDigest)],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        self.inner.claims_of(keys, limit)
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, Error>> {
        self.inner.sweep(limit)
    }
}

impl Pots for Tampered {
    fn reserve<'a>(&'a self, request: &'a Reserve) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        self.inner.reserve(request)
    }

    fn check<'a>(&'a self, draws: &'a [Draw]) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        self.inner.check(draws)
    }

    fn release<'a>(&'a self, id: &'a ReservationId) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.release(id)
    }

    fn reserved<'a>(
        &'a self,
        claim: &'a Claim,
    ) -> BoxFuture<'a, Result<Option<ReservationId>, Error>> {
        self.inner.reserved(claim)
    }

    fn pots<'a>(
        &'a self,
        user_id: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<PotRow>, Error>> {
        Box::pin(async move {
            let mut rows = self.inner.pots(user_id, limit).await?;
            (self.pot_rows)(&mut rows);
            Ok(rows)
        })
    }
}

impl Paces for Tampered {
    fn keep_pace<'a>(&'a self, paces: &'a [Pace]) -> BoxFuture<'a, Result<PaceAnswer, Error>> {
        self.inner.keep_pace(paces)
    }

    fn until_whole<'a>(
        &'a self,
        key: &'a PaceKey,
    ) -> BoxFuture<'a, Result<std::time::Duration, Error>> {
        self.inner.until_whole(key)
    }
}

impl Outbox for Tampered {
    fn keep_notices<'a>(&'a self, look: &'a Look) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        self.inner.keep_notices(look)
    }

    fn take_deliveries<'a>(
        &'a self,
        targets: &'a [String],
        lease: std::time::Duration,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        self.inner.take_deliveries(targets, lease, limit)
    }

    fn end_delivery<'a>(
        &'a self,
        delivery: &'a DeliveryId,
        end: &'a DeliveryEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.end_delivery(delivery, end)
    }

    fn retry_deliveries<'a>(
        &'a self,
        target: &'a str,
        give_up_after: std::time::Duration,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.inner.retry_deliveries(target, give_up_after)
    }

    fn notices(&self, limit: usize) -> BoxFuture<'_, Result<Vec<NoticeRow>, Error>> {
        self.inner.notices(limit)
    }

    fn failed_deliveries(&self) -> BoxFuture<'_, Result<Vec<FailedDeliveries>, Error>> {
        self.inner.failed_deliveries()
    }
}

impl Timekeeping for Tampered {
    fn observe_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        self.inner.observe_time(told)
    }

    fn trust_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        self.inner.trust_time(told)
    }

    fn dispose(&self, limit: usize, told: Told<Removed>) -> BoxFuture<'_, Result<Disposal, Error>> {
        self.inner.dispose(limit, told)
    }

    fn forget_keys<'a>(
        &'a self,
        which: &'a Forgotten,
        told: Told<Names>,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.inner.forget_keys(which, told)
    }
}

impl Vitals for Tampered {
    fn vitals(&self) -> BoxFuture<'_, Result<StoreVitals, Error>> {
        self.inner.vitals()
    }

    fn stored_bytes(&self) -> BoxFuture<'_, Result<Option<u64>, Error>> {
        self.inner.stored_bytes()
    }
}

impl Texts for Tampered {
    fn keep_corpus<'a>(&'a self, corpus: &'a Arc<Corpus>) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.keep_corpus(corpus)
    }

    fn search<'a>(
        &'a self,
        query: &'a TextQuery,
    ) -> BoxFuture<'a, Result<Option<Vec<TextHit>>, Error>> {
        self.inner.search(query)
    }

    fn chunk<'a>(
        &'a self,
        corpus: &'a CorpusId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TextChunk>, Error>> {
        self.inner.chunk(corpus, id)
    }
}

impl Documents for Tampered {
    fn document<'a>(
        &'a self,
        key: &'a DocumentKey,
    ) -> BoxFuture<'a, Result<StoredDocument, Error>> {
        self.inner.document(key)
    }

    fn scan<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>> {
        self.inner.scan(user_id, collection, prefix, after, limit)
    }

    fn find<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        entry: &'a IndexEntry,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>> {
        self.inner.find(user_id, collection, entry, limit)
    }

    fn count_open<'a>(
        &'a self,
        collection: &'a str,
        after: Timestamp,
        limit: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.inner.count_open(collection, after, limit)
    }

    fn open_documents<'a>(
        &'a self,
        collection: &'a str,
        after: &'a OpenPlace,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenDocument>, Error>> {
        self.inner.open_documents(collection, after, limit)
    }

    fn all_documents<'a>(
        &'a self,
        after: Option<&'a DocumentKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DocumentRow>, Error>> {
        Box::pin(async move {
            let mut rows = self.inner.all_documents(after, limit).await?;
            (self.documents)(&mut rows);
            Ok(rows)
        })
    }
}

impl Installations for Tampered {
    fn installation(&self) -> BoxFuture<'_, Result<Option<Installation>, Error>> {
        self.inner.installation()
    }

    fn rebind<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        self.inner.rebind(from, to, entry)
    }

    fn begin_log<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        forgotten: &'a [&'a str],
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        self.inner.begin_log(from, to, forgotten, entry)
    }
}

impl Keyring for Tampered {
    fn user_key<'a>(
        &'a self,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<WrappedKey>, Error>> {
        self.inner.user_key(user_id)
    }

    fn add_user_key<'a>(
        &'a self,
        user_id: &'a str,
        key: WrappedKey,
    ) -> BoxFuture<'a, Result<WrappedKey, Error>> {
        self.inner.add_user_key(user_id, key)
    }

    fn user_keys<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        self.inner.user_keys(after, limit)
    }

    fn user_keys_not_under<'a>(
        &'a self,
        master: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        self.inner.user_keys_not_under(master, limit)
    }

    fn rewrap<'a>(
        &'a self,
        user_id: &'a str,
        old: &'a WrappedKey,
        new: WrappedKey,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        self.inner.rewrap(user_id, old, new)
    }
}
