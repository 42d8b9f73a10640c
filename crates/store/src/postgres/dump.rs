//! Dump: everything that the database holds, as of one moment.

use countersign::BoxFuture;
use countersign::ledger::{Claim, DocumentKey, Error, Head, Hold, Lapse, WrappedKey};
use countersign_contract::SnapshotId;
use countersign_contract::tool::Recovery;
use countersign_evidence::tile::TileId;
use deadpool_postgres::Client;
use tokio_postgres::Row as Columns;

use super::claims::{request_id, scope};
use super::documents::decode;
use super::failure::Failure;
use super::held::{attempt, digest, state};
use super::keyring::key_id;
use super::lent::Lent;
use super::log::query::shown;
use super::pots::{pot_key, pot_row, reservation_id};
use super::{PostgresStore, unsigned};
use crate::transfer::{Row, Source, StoredClaim, StoredReservation, TransferRecord};

/// Reads a whole store; see [`PostgresStore::dump`].
pub struct Dump {
    /// Connection, in its transaction until the dump or its owner ends it.
    lent: Lent,
    /// Tables that are still to be read, the next one last.
    left: Vec<Table>,
    is_open: bool,
}

/// A table: its query, in the dump's order, and the function that reads its rows.
struct Table {
    query: &'static str,
    row: fn(&Columns) -> Result<Row, Failure>,
}

/// Tables in the order of the variants of [`Row`].
const TABLES: [Table; 12] = [
    Table {
        query: "SELECT user_id, master, bytes, id FROM user_key ORDER BY user_id",
        row: user_key,
    },
    Table {
        query: "SELECT * FROM claim ORDER BY user_id, tool, key_digest",
        row: claim,
    },
    Table {
        query: "SELECT * FROM document ORDER BY user_id, collection, id",
        row: document,
    },
    Table {
        query: "SELECT * FROM shape WHERE shape > 0 ORDER BY user_id, collection",
        row: shape,
    },
    Table {
        query: "SELECT r.*, l.idx, p.body, p.until FROM log_leaf l JOIN record r ON r.id = l.id \
                LEFT JOIN payload p ON p.user_id = r.user_id AND p.id = r.id ORDER BY l.idx",
        row: record,
    },
    Table {
        query: "SELECT r.*, NULL::bigint AS idx, p.body, p.until FROM outbox o \
                JOIN record r ON r.user_id = o.user_id AND r.id = o.id \
                LEFT JOIN payload p ON p.user_id = r.user_id AND p.id = r.id ORDER BY o.seq",
        row: record,
    },
    Table {
        query: "SELECT level, idx, hashes FROM tile ORDER BY level, idx",
        row: tile,
    },
    Table {
        query: "SELECT size, root FROM log_head",
        row: head,
    },
    Table {
        query: "SELECT size, root, note FROM checkpoint ORDER BY size",
        row: checkpoint,
    },
    Table {
        query: "SELECT user_id, record, reason FROM hold ORDER BY user_id, record",
        row: hold,
    },
    Table {
        query: "SELECT * FROM pot \
                ORDER BY user_id, name, holder, currency, window_seconds, window_start",
        row: pot,
    },
    Table {
        query: "SELECT * FROM reservation ORDER BY user_id, id, n",
        row: reservation,
    },
];

impl PostgresStore {
    /// Starts a dump of everything that the database holds at this moment. Until the dump is dropped, the
    /// server cannot vacuum what was there; so do not keep it.
    pub async fn dump(&self) -> Result<Dump, Error> {
        let client = self.client().await?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
             SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0";
        // The dump owns the client before it begins, so that a caller that is dropped meanwhile leaves no open
        // transaction.
        let dump = Dump::within(client);
        let client = dump.client()?;
        client.batch_execute(begin).await.map_err(Failure::from)?;
        Ok(dump)
    }
}

impl Dump {
    /// Dumps what the transaction that the client is in sees.
    pub(super) fn within(client: Client) -> Self {
        Self {
            lent: Lent::new(client),
            left: TABLES.into_iter().rev().collect(),
            is_open: false,
        }
    }

    /// Returns the client, in its transaction.
    pub(super) fn client(&self) -> Result<&Client, Failure> {
        self.lent.client()
    }

    /// Returns the client to a caller that ends its transaction.
    pub(super) fn into_client(self) -> Result<Client, Failure> {
        self.lent.into_client()
    }

    async fn next(&mut self, limit: usize) -> Result<Vec<Row>, Failure> {
        let client = self.lent.client()?;
        let mut rows = Vec::new();
        while rows.len() < limit
            && let Some(table) = self.left.last()
        {
            if !self.is_open {
                let query = table.query;
                let declare = format!("DECLARE dump NO SCROLL CURSOR FOR {query}");
                client.batch_execute(&declare).await?;
                self.is_open = true;
            }
            let wanted = limit - rows.len();
            let fetch = format!("FETCH FORWARD {wanted} FROM dump");
            let found = client.query(&fetch, &[]).await?;
            for columns in &found {
                rows.push((table.row)(columns)?);
            }
            if found.len() < wanted {
                client.batch_execute("CLOSE dump").await?;
                self.is_open = false;
                self.left.pop();
            }
        }
        Ok(rows)
    }
}

impl Source for Dump {
    fn next_batch(&mut self, limit: usize) -> BoxFuture<'_, Result<Vec<Row>, Error>> {
        Box::pin(async move { Ok(self.next(limit).await?) })
    }
}

fn user_key(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::UserKey {
        user_id: columns.get("user_id"),
        key: WrappedKey {
            master: columns.get("master"),
            bytes: columns.get("bytes"),
            id: key_id(columns.get("id"))?,
        },
    })
}

fn claim(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::Claim(Box::new(StoredClaim {
        scope: scope(columns)?,
        fingerprint: digest(columns, "fingerprint")?,
        parts: columns.get("parts"),
        recovery: recovery(columns)?,
        attempt: attempt(columns),
        request_id: request_id(columns.get("request_id"))?,
        first_claim: columns.get("first_claim"),
        claimed_at: columns.get("claimed_at"),
        state: state(columns)?,
        lease_until: columns.get("lease_until"),
        reply: columns.get("reply"),
        until: columns.get("until"),
    })))
}

fn recovery(columns: &Columns) -> Result<Recovery, Failure> {
    let seconds = unsigned(columns.get("recovery_seconds"));
    match columns.get::<_, i16>("recovery") {
        0 => Ok(Recovery::Operator),
        1 => Ok(Recovery::Retry),
        2 => Ok(Recovery::DownstreamKey {
            window_seconds: seconds,
        }),
        3 => Ok(Recovery::Reconcile {
            grace_seconds: seconds,
        }),
        _ => Err(Failure::damaged("the recovery of a claim")),
    }
}

fn document(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::Document {
        key: DocumentKey {
            user_id: columns.get("user_id"),
            collection: columns.get("collection"),
            id: columns.get("id"),
        },
        version: unsigned(columns.get("version")),
        body: columns.get("body"),
        entries: decode(columns.get("entries"))?,
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all tables are read by functions of one type"
)]
fn shape(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::Shape {
        user_id: columns.get("user_id"),
        collection: columns.get("collection"),
        shape: unsigned(columns.get("shape")),
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all tables are read by functions of one type"
)]
fn pot(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::Pot(pot_row(columns)))
}

fn reservation(columns: &Columns) -> Result<Row, Failure> {
    let lapse = Lapse::from_number(i64::from(columns.get::<_, i16>("lapse")));
    let is_claimed = columns.get::<_, Option<&str>>("tool").is_some();
    let claim = is_claimed.then(|| {
        Ok::<_, Failure>(Claim {
            scope: scope(columns)?,
            attempt: attempt(columns),
        })
    });
    Ok(Row::Reservation(Box::new(StoredReservation {
        id: reservation_id(columns)?,
        n: u32::try_from(columns.get::<_, i32>("n")).unwrap_or_default(),
        pot: pot_key(columns, "pot_user_id"),
        window_start: columns.get("window_start"),
        amount: columns.get("amount"),
        lapse: lapse.ok_or_else(|| Failure::damaged("the lapse of a reservation"))?,
        lease_until: columns.get("lease_until"),
        claim: claim.transpose()?,
    })))
}

fn record(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::Record(Box::new(TransferRecord {
        row: shown(columns)?,
        index: columns.get::<_, Option<i64>>("idx").map(unsigned),
        fenced: columns.get("fenced"),
        leaf: columns.get("leaf"),
        code_of_leaf: columns.get("code_of_leaf"),
        payload: columns.get("body"),
        payload_until: columns.get("until"),
    })))
}

fn tile(columns: &Columns) -> Result<Row, Failure> {
    let level = u8::try_from(columns.get::<_, i16>("level"));
    Ok(Row::Tile {
        id: TileId {
            level: level.map_err(|_| Failure::damaged("the level of a tile"))?,
            index: unsigned(columns.get("idx")),
        },
        bytes: columns.get("hashes"),
    })
}

fn head(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::Head(tree(columns)?))
}

fn checkpoint(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::Checkpoint {
        head: tree(columns)?,
        note: columns.get("note"),
    })
}

fn tree(columns: &Columns) -> Result<Head, Failure> {
    Ok(Head {
        size: unsigned(columns.get("size")),
        root: digest(columns, "root")?,
    })
}

fn hold(columns: &Columns) -> Result<Row, Failure> {
    Ok(Row::Hold(placed(columns)?))
}

/// Reads a hold from a row that has all of its columns.
pub(super) fn placed(columns: &Columns) -> Result<Hold, Failure> {
    let record: &str = columns.get("record");
    let record = (!record.is_empty()).then(|| SnapshotId::new(record));
    let record = record.transpose();
    Ok(Hold {
        user_id: columns.get("user_id"),
        record: record.map_err(|_| Failure::damaged("the record of a hold"))?,
        reason: columns.get("reason"),
    })
}
