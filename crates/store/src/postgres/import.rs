//! Import: fills an empty database with the rows of another store in one transaction. Nothing of it is visible
//! before the commit.

use countersign::ledger::{DocumentKey, Error, Head, Hold, IndexEntry, PotRow, WrappedKey};
use countersign_contract::{ErrorCode, RequestId, SnapshotId};
use countersign_evidence::tile::TileId;
use deadpool_postgres::Client;
use tokio_postgres::types::ToSql;

use super::claims::columns;
use super::documents::encode;
use super::dump::Dump;
use super::failure::Failure;
use super::keyring::key_name;
use super::records::{INSERT_OUTBOX, nanos};
use super::{PostgresStore, signed};
use crate::transfer::{Row, StoredClaim, StoredReservation, TransferRecord};

/// A transaction that fills the database. Dropped before it is committed, it leaves nothing behind.
pub(crate) struct Import(Dump);

/// Tables that have rows in a store that is not empty.
const TABLES: [&str; 14] = [
    "claim",
    "document",
    "document_entry",
    "shape",
    "user_key",
    "record",
    "payload",
    "outbox",
    "log_leaf",
    "tile",
    "checkpoint",
    "hold",
    "pot",
    "reservation",
];

impl PostgresStore {
    /// Begins to fill the database. Returns the first table that has rows, if there is one.
    pub(crate) async fn import(&self) -> Result<Result<Import, &'static str>, Error> {
        let client = self.client().await?;
        // The lock on the head's row lets only one process import, and none integrate meanwhile.
        let begin = "BEGIN; SET LOCAL statement_timeout = 0; \
             SET LOCAL idle_in_transaction_session_timeout = 0; \
             SELECT one FROM log_head FOR UPDATE";
        let import = Import(Dump::within(client));
        let client = import.0.client()?;
        client.batch_execute(begin).await.map_err(Failure::from)?;
        for table in TABLES {
            let any = format!("SELECT 1 FROM {table} LIMIT 1");
            let found = client.query_opt(&any, &[]).await;
            if found.map_err(Failure::from)?.is_some() {
                return Ok(Err(table));
            }
        }
        Ok(Ok(import))
    }
}

impl Import {
    /// Adds rows; they may be of different kinds.
    pub(crate) async fn add(&self, rows: Vec<Row>) -> Result<(), Error> {
        let mut columns = All::default();
        for row in rows {
            columns.push(row);
        }
        Ok(columns.write(self.0.client()?).await?)
    }

    /// Returns the added rows, as only this transaction sees them. They can be read once.
    pub(crate) fn added(&mut self) -> &mut Dump {
        &mut self.0
    }

    pub(crate) async fn commit(self) -> Result<(), Error> {
        let client = self.0.into_client()?;
        let committed = client.batch_execute("COMMIT").await;
        Ok(committed.map_err(Failure::from)?)
    }
}

/// A document with all its columns.
struct Document {
    key: DocumentKey,
    version: i64,
    body: Option<Vec<u8>>,
    entries: Vec<IndexEntry>,
}

/// Rows by their kind.
#[derive(Default)]
struct All {
    user_keys: Vec<(String, WrappedKey)>,
    claims: Vec<StoredClaim>,
    documents: Vec<Document>,
    shapes: Vec<(String, String, i64)>,
    records: Vec<TransferRecord>,
    tiles: Vec<(TileId, Vec<u8>)>,
    heads: Vec<Head>,
    checkpoints: Vec<(Head, String)>,
    holds: Vec<Hold>,
    pots: Vec<PotRow>,
    reservations: Vec<StoredReservation>,
}

impl All {
    fn push(&mut self, row: Row) {
        match row {
            Row::UserKey { user_id, key } => self.user_keys.push((user_id, key)),
            Row::Claim(claim) => self.claims.push(*claim),
            Row::Document {
                key,
                version,
                body,
                entries,
            } => self.documents.push(Document {
                key,
                version: signed(version),
                body,
                entries,
            }),
            Row::Shape {
                user_id,
                collection,
                shape,
            } => self.shapes.push((user_id, collection, signed(shape))),
            Row::Record(record) => self.records.push(*record),
            Row::Tile { id, bytes } => self.tiles.push((id, bytes)),
            Row::Head(head) => self.heads.push(head),
            Row::Checkpoint { head, note } => self.checkpoints.push((head, note)),
            Row::Hold(hold) => self.holds.push(hold),
            Row::Pot(pot) => self.pots.push(pot),
            Row::Reservation(reserved) => self.reservations.push(*reserved),
        }
    }

    async fn write(&self, client: &Client) -> Result<(), Failure> {
        self.write_user_keys(client).await?;
        self.write_claims(client).await?;
        self.write_documents(client).await?;
        self.write_entries(client).await?;
        self.write_shapes(client).await?;
        self.write_records(client).await?;
        self.write_tree(client).await?;
        self.write_holds(client).await?;
        self.write_pots(client).await?;
        self.write_reservations(client).await
    }

    async fn write_user_keys(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO user_key (user_id, master, bytes, id) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[])";
        let user_ids = column(&self.user_keys, |(user_id, _)| user_id.as_str());
        let masters = column(&self.user_keys, |(_, key)| key.master.as_str());
        let bytes = column(&self.user_keys, |(_, key)| key.bytes.as_slice());
        let names = column(&self.user_keys, |(_, key)| key_name(key.id.as_ref()));
        insert(
            client,
            sql,
            self.user_keys.len(),
            &[&user_ids, &masters, &bytes, &names],
        )
        .await
    }

    async fn write_claims(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO claim (user_id, tool, key_digest, state, attempt, fingerprint, parts, \
                recovery, recovery_seconds, request_id, token, first_claim, claimed_at, lease_until, \
                reply, until) \
             SELECT a, b, c, d, e, f, g, h, i, j, '', k, l, m, n, o \
             FROM unnest($1::text[], $2::text[], $3::bytea[], $4::smallint[], $5::bigint[], \
                $6::bytea[], $7::bytea[], $8::smallint[], $9::bigint[], $10::text[], \
                $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::bytea[], \
                $15::timestamptz[]) AS t (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)";
        let claims = &self.claims;
        insert(
            client,
            sql,
            claims.len(),
            &[
                &column(claims, |claim| claim.scope.user_id.as_str()),
                &column(claims, |claim| claim.scope.tool.as_str()),
                &column(claims, |claim| claim.scope.key.0.as_slice()),
                &column(claims, |claim| claim.state as i16),
                &column(claims, |claim| i64::from(claim.attempt)),
                &column(claims, |claim| claim.fingerprint.as_slice()),
                &column(claims, |claim| claim.parts.as_slice()),
                &column(claims, |claim| columns(claim.recovery).0),
                &column(claims, |claim| columns(claim.recovery).1),
                &column(claims, |claim| claim.request_id.as_str()),
                &column(claims, |claim| claim.first_claim),
                &column(claims, |claim| claim.claimed_at),
                &column(claims, |claim| claim.lease_until),
                &column(claims, |claim| claim.reply.as_deref()),
                &column(claims, |claim| claim.until),
            ],
        )
        .await
    }

    async fn write_documents(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO document (user_id, collection, id, version, body, entries) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], \
                $6::bytea[])";
        let documents = &self.documents;
        insert(
            client,
            sql,
            documents.len(),
            &[
                &column(documents, |document| document.key.user_id.as_str()),
                &column(documents, |document| document.key.collection.as_str()),
                &column(documents, |document| document.key.id.as_str()),
                &column(documents, |document| document.version),
                &column(documents, |document| document.body.as_deref()),
                &column(documents, |document| encode(&document.entries)),
            ],
        )
        .await
    }

    async fn write_entries(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO document_entry (user_id, collection, id, name, value) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[]) \
             ON CONFLICT (user_id, collection, name, value, id) DO NOTHING";
        let entries: Vec<(&DocumentKey, &IndexEntry)> = self
            .documents
            .iter()
            .flat_map(|document| {
                let entries = document.entries.iter();
                entries.map(|entry| (&document.key, entry))
            })
            .collect();
        insert(
            client,
            sql,
            entries.len(),
            &[
                &column(&entries, |(key, _)| key.user_id.as_str()),
                &column(&entries, |(key, _)| key.collection.as_str()),
                &column(&entries, |(key, _)| key.id.as_str()),
                &column(&entries, |(_, entry)| entry.index.as_str()),
                &column(&entries, |(_, entry)| entry.value.as_slice()),
            ],
        )
        .await
    }

    async fn write_shapes(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO shape (user_id, collection, shape) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])";
        let user_ids = column(&self.shapes, |(user_id, ..)| user_id.as_str());
        let collections = column(&self.shapes, |(_, collection, _)| collection.as_str());
        let shapes = column(&self.shapes, |(.., shape)| *shape);
        let count = self.shapes.len();
        insert(client, sql, count, &[&user_ids, &collections, &shapes]).await
    }

    async fn write_records(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO record \
                (user_id, id, kind, at_ns, request_id, tool, code, fenced, leaf, code_of_leaf) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], \
                $6::text[], $7::text[], $8::boolean[], $9::bytea[], $10::bytea[])";
        let records = &self.records;
        let user_ids = column(records, |record| record.row.user_id.as_str());
        let ids = column(records, |record| record.row.id.as_str());
        insert(
            client,
            sql,
            records.len(),
            &[
                &user_ids,
                &ids,
                &column(records, |record| record.row.kind.as_str()),
                &column(records, |record| nanos(record.row.at)),
                &column(records, |record| {
                    let request_id = record.row.request_id.as_ref();
                    request_id.map(RequestId::as_str)
                }),
                &column(records, |record| record.row.tool.as_deref()),
                &column(records, |record| record.row.code.map(ErrorCode::as_str)),
                &column(records, |record| record.fenced),
                &column(records, |record| record.leaf.as_slice()),
                &column(records, |record| record.code_of_leaf.as_deref()),
            ],
        )
        .await?;
        let (placed, waiting): (Vec<_>, Vec<_>) =
            records.iter().partition(|record| record.index.is_some());
        let leaves =
            "INSERT INTO log_leaf (idx, id) SELECT * FROM unnest($1::bigint[], $2::text[])";
        let indexes = column(&placed, |record| record.index.map(signed));
        let ids = column(&placed, |record| record.row.id.as_str());
        insert(client, leaves, placed.len(), &[&indexes, &ids]).await?;
        let user_ids = column(&waiting, |record| record.row.user_id.as_str());
        let ids = column(&waiting, |record| record.row.id.as_str());
        insert(client, INSERT_OUTBOX, waiting.len(), &[&user_ids, &ids]).await?;
        let payloads = "INSERT INTO payload (user_id, id, until, body) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bytea[])";
        let kept: Vec<_> = records
            .iter()
            .filter(|record| record.payload.is_some())
            .collect();
        let user_ids = column(&kept, |record| record.row.user_id.as_str());
        let ids = column(&kept, |record| record.row.id.as_str());
        let untils = column(&kept, |record| record.payload_until);
        let bodies = column(&kept, |record| record.payload.as_deref());
        let params: super::Params<'_> = &[&user_ids, &ids, &untils, &bodies];
        insert(client, payloads, kept.len(), params).await
    }

    async fn write_tree(&self, client: &Client) -> Result<(), Failure> {
        let tiles = "INSERT INTO tile (level, idx, hashes) \
             SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::bytea[])";
        let levels = column(&self.tiles, |(id, _)| i16::from(id.level));
        let indexes = column(&self.tiles, |(id, _)| signed(id.index));
        let hashes = column(&self.tiles, |(_, bytes)| bytes.as_slice());
        insert(
            client,
            tiles,
            self.tiles.len(),
            &[&levels, &indexes, &hashes],
        )
        .await?;
        for head in &self.heads {
            let update = "UPDATE log_head SET size = $1, root = $2";
            let (size, root) = (signed(head.size), head.root.as_slice());
            client.execute(update, &[&size, &root]).await?;
        }
        let checkpoints = "INSERT INTO checkpoint (size, root, note) \
             SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::text[])";
        let sizes = column(&self.checkpoints, |(head, _)| signed(head.size));
        let roots = column(&self.checkpoints, |(head, _)| head.root.as_slice());
        let notes = column(&self.checkpoints, |(_, note)| note.as_str());
        let count = self.checkpoints.len();
        insert(client, checkpoints, count, &[&sizes, &roots, &notes]).await
    }

    async fn write_holds(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO hold (user_id, record, reason, placed_at) \
             SELECT a, b, c, now() FROM unnest($1::text[], $2::text[], $3::text[]) AS t (a, b, c)";
        let user_ids = column(&self.holds, |hold| hold.user_id.as_str());
        let records = column(&self.holds, |hold| {
            hold.record.as_ref().map_or("", SnapshotId::as_str)
        });
        let reasons = column(&self.holds, |hold| hold.reason.as_str());
        let count = self.holds.len();
        insert(client, sql, count, &[&user_ids, &records, &reasons]).await
    }

    async fn write_pots(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO pot (user_id, name, holder, currency, window_seconds, window_start, \
                reserved, spent) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], \
                $6::bigint[], $7::bigint[], $8::bigint[])";
        let pots = &self.pots;
        insert(
            client,
            sql,
            pots.len(),
            &[
                &column(pots, |pot| pot.key.user_id.as_str()),
                &column(pots, |pot| pot.key.name.as_str()),
                &column(pots, |pot| pot.key.holder.as_str()),
                &column(pots, |pot| pot.key.currency.as_str()),
                &column(pots, |pot| signed(pot.key.window_seconds)),
                &column(pots, |pot| pot.window_start),
                &column(pots, |pot| pot.reserved),
                &column(pots, |pot| pot.spent),
            ],
        )
        .await
    }

    async fn write_reservations(&self, client: &Client) -> Result<(), Failure> {
        let sql = "INSERT INTO reservation (user_id, id, n, pot_user_id, name, holder, currency, \
                window_seconds, window_start, amount, lapse, lease_until, tool, key_digest, attempt) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::text[], \
                $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::smallint[], \
                $12::timestamptz[], $13::text[], $14::bytea[], $15::bigint[])";
        let all = &self.reservations;
        insert(
            client,
            sql,
            all.len(),
            &[
                &column(all, |of| of.id.user_id.as_str()),
                &column(all, |of| of.id.id.as_str()),
                &column(all, |of| i32::try_from(of.n).unwrap_or(i32::MAX)),
                &column(all, |of| of.pot.user_id.as_str()),
                &column(all, |of| of.pot.name.as_str()),
                &column(all, |of| of.pot.holder.as_str()),
                &column(all, |of| of.pot.currency.as_str()),
                &column(all, |of| signed(of.pot.window_seconds)),
                &column(all, |of| of.window_start),
                &column(all, |of| of.amount),
                &column(all, |of| of.lapse as i16),
                &column(all, |of| of.lease_until),
                &column(all, |of| {
                    let claim = of.claim.as_ref();
                    claim.map(|claim| claim.scope.tool.as_str())
                }),
                &column(all, |of| {
                    let claim = of.claim.as_ref();
                    claim.map(|claim| claim.scope.key.0.as_slice())
                }),
                &column(all, |of| {
                    let claim = of.claim.as_ref();
                    claim.map(|claim| i64::from(claim.attempt))
                }),
            ],
        )
        .await
    }
}

fn column<'r, R, T>(rows: &'r [R], value: impl Fn(&'r R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

async fn insert(
    client: &Client,
    sql: &str,
    rows: usize,
    params: &[&(dyn ToSql + Sync)],
) -> Result<(), Failure> {
    if rows > 0 {
        let statement = client.prepare_cached(sql).await?;
        client.execute(&statement, params).await?;
    }
    Ok(())
}
