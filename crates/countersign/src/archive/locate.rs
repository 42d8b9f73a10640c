//! Finding records by any name that leads to them: their own id, the request id of their call, the id of a thing that
//! the call has made, or the hash of their leaf.

use std::sync::Arc;

use countersign_contract::{Digest, EvidenceRecord, RecordKind, RequestId, SnapshotId};
use countersign_evidence::seal::UserKey;
use countersign_evidence::tile::{TileId, WIDTH};
use serde_json::Value;

use super::{Archive, Error};
use crate::ledger::{DocumentKey, LogRow};
use crate::state;

/// A kind of thing that calls make and that people know by its id, such as a draft order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownThing {
    /// The start of its ids, such as `order_`.
    pub prefix: &'static str,
    /// The collection in which each user's are kept.
    pub collection: &'static str,
    /// JSON pointer to the request id of the call that made it, in the document.
    pub request_id: &'static str,
    /// The starts of the ids of what it is made from, such as `cart_`: earlier calls that name one are part of its case.
    pub made_from: &'static [&'static str],
}

/// Number of users that are asked in one batch for a thing of theirs.
const USERS_AT_ONCE: usize = 250;

/// Maximum number of users that are searched for a name whose user is not known: each costs opening a key.
pub(super) const USERS_MAX: usize = 1_000;

/// Number of tiles that are read at once to find the hash of a leaf.
const TILES_AT_ONCE: u64 = 64;

/// Maximum number of records of one call that are looked at.
const RECORDS_MAX: usize = 100;

impl Archive {
    /// Finds records by the ids of these things, too.
    pub fn knowing(mut self, things: &[KnownThing]) -> Self {
        self.things = things.into();
        self
    }

    /// The records that a name leads to, newest first, at most `limit`: the id of a record, the request id of a call,
    /// or the id of a [known thing](KnownThing), which leads to the record of the call that made it. Only those of this
    /// user, if one is given; without one, a request id is searched for as [`of_request`](Self::of_request) does.
    pub async fn locate(
        &self,
        name: &str,
        user_id: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LogRow>, Error> {
        let is_theirs = |row: &LogRow| user_id.is_none_or(|user_id| row.user_id == user_id);
        if name.starts_with("ev_") {
            let Ok(id) = SnapshotId::new(name) else {
                return Ok(Vec::new());
            };
            return match self.row(&id).await {
                Ok(row) => Ok(Some(row).filter(is_theirs).into_iter().collect()),
                Err(Error::NoRecord { .. }) => Ok(Vec::new()),
                Err(error) => Err(error),
            };
        }
        if let Some(thing) = self
            .things
            .iter()
            .find(|thing| name.starts_with(thing.prefix))
        {
            let made = self.made(*thing, name, user_id).await?;
            if made.is_some() {
                return Ok(made.into_iter().collect());
            }
        }
        match RequestId::new(name) {
            Ok(request_id) => self.of_request(&request_id, user_id, limit).await,
            Err(_) => Ok(Vec::new()),
        }
    }

    /// The sessions of this name, as records name them: that of the user, if one is given, and else one for each user. With
    /// more than a thousand users that fails with [`Error::NameTheUser`].
    pub async fn sessions_named(
        &self,
        name: &str,
        user_id: Option<&str>,
    ) -> Result<Vec<String>, Error> {
        let users = self.users_meant(user_id, name).await?;
        Ok(users.iter().map(|(_, keys)| keys.session(name)).collect())
    }

    /// The users under whose keys a name that a caller chose is searched for: the one that is given, or all. With more
    /// than a thousand users that fails with [`Error::NameTheUser`]. A user whose key was destroyed has no such names.
    pub(super) async fn users_meant(
        &self,
        user_id: Option<&str>,
        name: &str,
    ) -> Result<Vec<(String, Arc<UserKey>)>, Error> {
        if let Some(user_id) = user_id {
            let keys = self.vault.known_key(user_id).await?;
            return Ok(keys
                .map(|keys| (user_id.to_owned(), keys))
                .into_iter()
                .collect());
        }
        let wrapped = self.store.user_keys("", USERS_MAX + 1).await?;
        if wrapped.len() > USERS_MAX {
            let name = name.to_owned();
            return Err(Error::NameTheUser { name });
        }
        let mut users = Vec::with_capacity(wrapped.len());
        for (user_id, wrapped) in wrapped {
            let keys = self.vault.opened(&user_id, &wrapped).await?;
            users.push((user_id, keys));
        }
        Ok(users)
    }

    /// True if a name has the form of a [known thing](KnownThing)'s.
    pub fn is_thing(&self, name: &str) -> bool {
        self.things
            .iter()
            .any(|thing| name.starts_with(thing.prefix))
    }

    /// The record whose leaf has this hash. The newest are looked at first; it costs a read of the tree's lowest tiles.
    pub async fn of_leaf(&self, hash: Digest) -> Result<Option<LogRow>, Error> {
        let size = self.store.head().await?.size;
        let width = u64::from(WIDTH);
        let mut above = size.div_ceil(width);
        while above > 0 {
            let below = above.saturating_sub(TILES_AT_ONCE);
            let wanted: Vec<TileId> = (below..above)
                .map(|index| TileId { level: 0, index })
                .collect();
            let tiles = self.store.tiles(&wanted).await?;
            for (id, tile) in wanted.iter().zip(tiles).rev() {
                let tile = tile.unwrap_or_default();
                let place = tile
                    .chunks_exact(32)
                    .position(|leaf| leaf == hash.as_bytes());
                if let Some(place) = place {
                    return self.at_place(id.index * width + place as u64).await;
                }
            }
            above = below;
        }
        Ok(None)
    }

    async fn at_place(&self, index: u64) -> Result<Option<LogRow>, Error> {
        let leaves = self.store.leaves(index, 1).await?;
        let record = leaves
            .first()
            .map(|leaf| serde_json::from_slice::<EvidenceRecord>(&leaf.bytes));
        match record {
            Some(Ok(record)) => self.row(&record.id).await.map(Some),
            Some(Err(_)) | None => Ok(None),
        }
    }

    /// The record of the call that made a thing.
    async fn made(
        &self,
        thing: KnownThing,
        id: &str,
        user_id: Option<&str>,
    ) -> Result<Option<LogRow>, Error> {
        if let Some(user_id) = user_id {
            return self.made_by(thing, id, user_id).await;
        }
        let mut after = String::new();
        loop {
            let users = self.store.user_keys(&after, USERS_AT_ONCE).await?;
            let Some((last, _)) = users.last() else {
                return Ok(None);
            };
            after.clone_from(last);
            for (user_id, _) in &users {
                let made = self.made_by(thing, id, user_id).await?;
                if made.is_some() {
                    return Ok(made);
                }
            }
        }
    }

    async fn made_by(
        &self,
        thing: KnownThing,
        id: &str,
        user_id: &str,
    ) -> Result<Option<LogRow>, Error> {
        match self.maker(thing, id, user_id).await? {
            Some(request_id) => self.first_success(&request_id, user_id).await,
            None => Ok(None),
        }
    }

    /// The call that made a thing of this user. Nothing else of the document is looked at.
    async fn maker(
        &self,
        thing: KnownThing,
        id: &str,
        user_id: &str,
    ) -> Result<Option<RequestId>, Error> {
        let key = DocumentKey {
            user_id: user_id.to_owned(),
            collection: thing.collection.to_owned(),
            id: id.to_owned(),
        };
        let stored = self.store.document(&key).await?;
        let Some(body) = stored.body else {
            return Ok(None);
        };
        let Some(keys) = self.vault.existing_key(user_id).await? else {
            return Ok(None);
        };
        let Ok(document) = state::open(&keys, &key, stored.version, &body) else {
            return Ok(None);
        };
        let request_id = document.pointer(thing.request_id).and_then(Value::as_str);
        Ok(request_id.and_then(|request_id| RequestId::new(request_id).ok()))
    }

    /// The first record of a call that worked: later ones are repeats under the same id.
    async fn first_success(
        &self,
        request_id: &RequestId,
        user_id: &str,
    ) -> Result<Option<LogRow>, Error> {
        let mut rows = self
            .of_request(request_id, Some(user_id), RECORDS_MAX)
            .await?;
        rows.retain(|row| row.kind == RecordKind::Call && row.code.is_none());
        Ok(rows.pop())
    }
}
