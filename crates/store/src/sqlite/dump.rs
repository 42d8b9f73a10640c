//! Dump: everything that the file holds, as of one moment.

use std::collections::VecDeque;

use countersign::BoxFuture;
use countersign::ledger::{DocumentKey, Error, Head, WrappedKey};
use countersign_evidence::seal::KeyId;
use countersign_evidence::tree::Hash;
use rusqlite::Connection;
use tokio::sync::mpsc;

use super::claims::row as claim;
use super::documents::decoded;
use super::failure::Failure;
use super::log::{holds, records};
use super::pots;
use super::time::timestamp;
use super::tip::{head, tile_id};
use super::values::{bytes32, unsigned};
use crate::transfer::{Row, Source, TransferRecord};

/// Reads a whole store; see [`SqliteStore::dump`](super::SqliteStore::dump).
pub struct Dump {
    chunks: mpsc::Receiver<Result<Vec<Row>, Failure>>,
    ready: VecDeque<Row>,
}

/// Rows in one chunk; a few chunks are read ahead.
const CHUNK: usize = 256;
const CHUNKS_AHEAD: usize = 4;

impl Dump {
    /// Begins the read transaction and starts a thread that reads. It ends after the last row, or when the dump
    /// is dropped.
    pub(super) fn start(connection: Connection) -> Result<Self, Failure> {
        connection.execute_batch("BEGIN")?;
        let tree = head(&connection)?;
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        std::thread::Builder::new()
            .name("store dump".to_owned())
            .spawn(move || {
                let mut out = Out {
                    rows: Vec::with_capacity(CHUNK),
                    sender,
                };
                match dump(&connection, tree, &mut out) {
                    Ok(()) | Err(Ended::NobodyListens) => {}
                    Err(Ended::Failed(failure)) => {
                        out.sender.blocking_send(Err(failure)).ok();
                    }
                }
            })
            .map_err(|_| Failure::Stopped)?;
        Ok(Self {
            chunks,
            ready: VecDeque::new(),
        })
    }
}

impl Source for Dump {
    fn next_batch(&mut self, limit: usize) -> BoxFuture<'_, Result<Vec<Row>, Error>> {
        Box::pin(async move {
            while self.ready.len() < limit
                && let Some(chunk) = self.chunks.recv().await
            {
                self.ready.extend(chunk?);
            }
            let taken = limit.min(self.ready.len());
            Ok(self.ready.drain(..taken).collect())
        })
    }
}

struct Out {
    rows: Vec<Row>,
    sender: mpsc::Sender<Result<Vec<Row>, Failure>>,
}

enum Ended {
    Failed(Failure),
    NobodyListens,
}

impl<E: Into<Failure>> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Out {
    fn push(&mut self, row: Row) -> Result<(), Ended> {
        self.rows.push(row);
        if self.rows.len() < CHUNK {
            return Ok(());
        }
        self.send()
    }

    fn send(&mut self) -> Result<(), Ended> {
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(CHUNK));
        let sent = self.sender.blocking_send(Ok(rows));
        sent.map_err(|_| Ended::NobodyListens)
    }
}

fn dump(connection: &Connection, (size, root): (u64, Hash), out: &mut Out) -> Result<(), Ended> {
    user_keys(connection, out)?;
    claims(connection, out)?;
    documents(connection, out)?;
    shapes(connection, out)?;
    records(connection, size, out)?;
    tiles(connection, out)?;
    out.push(Row::Head(Head { size, root }))?;
    checkpoints(connection, out)?;
    for hold in holds(connection, "user_id, record", i64::MAX)? {
        out.push(Row::Hold(hold))?;
    }
    pots(connection, out)?;
    reservations(connection, out)?;
    out.send()
}

fn user_keys(connection: &Connection, out: &mut Out) -> Result<(), Ended> {
    let mut statement =
        connection.prepare("SELECT user_id, master, bytes, id FROM user_key ORDER BY user_id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        out.push(Row::UserKey {
            user_id: row.get(0)?,
            key: WrappedKey {
                master: row.get(1)?,
                bytes: row.get(2)?,
                id: row.get::<_, Option<[u8; 16]>>(3)?.map(KeyId),
            },
        })?;
    }
    Ok(())
}

fn claims(connection: &Connection, out: &mut Out) -> Result<(), Ended> {
    let sql = [claim::SELECT, "ORDER BY user_id, tool, key"].join(" ");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let claim = claim::Stored::read(row)?.moved(row)?;
        out.push(Row::Claim(Box::new(claim)))?;
    }
    Ok(())
}

fn documents(connection: &Connection, out: &mut Out) -> Result<(), Ended> {
    let mut statement = connection.prepare(
        "SELECT user_id, collection, id, version, body, entries FROM document
         ORDER BY user_id, collection, id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let entries: Vec<u8> = row.get(5)?;
        out.push(Row::Document {
            key: DocumentKey {
                user_id: row.get(0)?,
                collection: row.get(1)?,
                id: row.get(2)?,
            },
            version: unsigned(row.get(3)?),
            body: row.get(4)?,
            entries: decoded(&entries)?,
        })?;
    }
    Ok(())
}

fn shapes(connection: &Connection, out: &mut Out) -> Result<(), Ended> {
    let mut statement = connection
        .prepare("SELECT user_id, collection, shape FROM shape ORDER BY user_id, collection")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        out.push(Row::Shape {
            user_id: row.get(0)?,
            collection: row.get(1)?,
            shape: unsigned(row.get(2)?),
        })?;
    }
    Ok(())
}

fn records(connection: &Connection, size: u64, out: &mut Out) -> Result<(), Ended> {
    let mut statement = connection.prepare(
        "SELECT id, user_id, kind, at, request_id, tool, code, record.idx, fenced, leaf, bytes, until, code_of_leaf
         FROM record LEFT JOIN payload USING (idx) ORDER BY record.idx",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let place = unsigned(row.get(7)?);
        let until: Option<i64> = row.get(11)?;
        out.push(Row::Record(Box::new(TransferRecord {
            row: records::row(row)?,
            index: (place < size).then_some(place),
            fenced: row.get(8)?,
            leaf: row.get(9)?,
            code_of_leaf: row.get(12)?,
            payload: row.get(10)?,
            payload_until: until.map(timestamp),
        })))?;
    }
    Ok(())
}

fn tiles(connection: &Connection, out: &mut Out) -> Result<(), Ended> {
    let mut statement = connection.prepare("SELECT key, hashes FROM tile ORDER BY key")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        out.push(Row::Tile {
            id: tile_id(row.get(0)?),
            bytes: row.get(1)?,
        })?;
    }
    Ok(())
}

fn checkpoints(connection: &Connection, out: &mut Out) -> Result<(), Ended> {
    let mut statement =
        connection.prepare("SELECT size, root, note FROM checkpoint ORDER BY size")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let head = Head {
            size: unsigned(row.get(0)?),
            root: bytes32(row, 1)?,
        };
        out.push(Row::Checkpoint {
            head,
            note: row.get(2)?,
        })?;
    }
    Ok(())
}

fn pots(connection: &Connection, out: &mut Out) -> Result<(), Ended> {
    let sql = [pots::SELECT_POTS, pots::POT_ORDER].join(" ");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        out.push(Row::Pot(pots::pot_row(row)?))?;
    }
    Ok(())
}

fn reservations(connection: &Connection, out: &mut Out) -> Result<(), Ended> {
    let mut statement = connection.prepare(pots::SELECT_RESERVATIONS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let reserved = pots::reservation_row(row)?;
        out.push(Row::Reservation(Box::new(reserved)))?;
    }
    Ok(())
}
