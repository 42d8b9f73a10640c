//! The statements of a commit, prepared once for each connection.
//!
//! All of them take whole columns (`unnest`), so that a transaction with a hundred calls has as many
//! statements as one with a single call. Rows that are locked are locked in the order in which their keys
//! are given, because a sub-select that locks is run once for each key.

use std::sync::LazyLock;

use deadpool_postgres::Client;
use tokio_postgres::{Error, Statement};

use crate::postgres::held;
use crate::postgres::pots;
use crate::postgres::records::{INSERT_OUTBOX, INSERT_PAYLOADS, INSERT_RECORDS};

// The name of a field is the name of its statement; the macro keeps the two lists one.
macro_rules! statements {
    ($($name:ident: $sql:expr,)+) => {
        /// Prepared statements of one connection.
        pub(super) struct Statements { $(pub(super) $name: Statement,)+ }

        impl Statements {
            pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
                // All at once: one round trip to the server.
                let ($($name,)+) = tokio::try_join!($(client.prepare($sql),)+)?;
                Ok(Self { $($name,)+ })
            }
        }
    };
}

statements! {
    share_keys: "SELECT k.n FROM unnest($1::text[], $2::bytea[]) \
          WITH ORDINALITY AS k (user_id, id, n) \
        CROSS JOIN LATERAL (SELECT 1 FROM user_key u WHERE u.user_id = k.user_id \
          AND (u.id IS NULL OR u.id = k.id) FOR KEY SHARE) u",
    insert_records: INSERT_RECORDS,
    erased_records: "SELECT id, fenced FROM record WHERE user_id = '' AND id = ANY($1::text[])",
    known_records: "SELECT r.id, r.fenced \
        FROM unnest($1::text[], $2::text[]) AS k (user_id, id) \
        JOIN record r ON r.user_id = k.user_id AND r.id = k.id",
    insert_claims: INSERT_CLAIMS,
    lock_claims: LOCK_CLAIMS.as_str(),
    read_claims: READ_CLAIMS.as_str(),
    insert_documents: "INSERT INTO document (user_id, collection, id, version, body, entries) \
        SELECT user_id, collection, id, version, body, entries \
        FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[]) \
          AS t (user_id, collection, id, version, body, entries) \
        ON CONFLICT (user_id, collection, id) DO NOTHING RETURNING user_id, collection, id",
    lock_documents: LOCK_DOCUMENTS,
    insert_shapes: "INSERT INTO shape (user_id, collection, shape) \
        SELECT user_id, collection, 0 FROM unnest($1::text[], $2::text[]) AS t (user_id, collection) \
        ON CONFLICT (user_id, collection) DO NOTHING",
    lock_shapes: LOCK_SHAPES,
    lock_reservations: "SELECT k.n FROM unnest($1::text[], $2::text[]) \
          WITH ORDINALITY AS k (user_id, id, n) \
        CROSS JOIN LATERAL (SELECT 1 FROM reservation r WHERE r.user_id = k.user_id \
          AND r.id = k.id AND r.n = 0 FOR UPDATE) r",
    remove_records: "DELETE FROM record r USING unnest($1::text[], $2::text[]) AS t (user_id, id) \
        WHERE r.user_id = t.user_id AND r.id = t.id",
    remove_claims: "DELETE FROM claim c \
        USING unnest($1::text[], $2::text[], $3::bytea[]) AS t (user_id, tool, key_digest) \
        WHERE c.user_id = t.user_id AND c.tool = t.tool AND c.key_digest = t.key_digest",
    remove_documents: "DELETE FROM document d \
        USING unnest($1::text[], $2::text[], $3::text[]) AS t (user_id, collection, id) \
        WHERE d.user_id = t.user_id AND d.collection = t.collection AND d.id = t.id",
    unname_records: "UPDATE record r SET user_id = '' \
        FROM unnest($1::text[], $2::text[]) AS t (user_id, id) \
        WHERE r.user_id = t.user_id AND r.id = t.id",
    fence_records: "UPDATE record r SET fenced = true, leaf = t.leaf, code_of_leaf = t.code_of_leaf \
        FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) \
          AS t (user_id, id, leaf, code_of_leaf) \
        WHERE r.user_id = t.user_id AND r.id = t.id",
    update_claims: UPDATE_CLAIMS,
    update_documents: "UPDATE document d SET version = t.version, body = t.body, entries = t.entries \
        FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[]) \
          AS t (user_id, collection, id, version, body, entries) \
        WHERE d.user_id = t.user_id AND d.collection = t.collection AND d.id = t.id",
    remove_entries: "DELETE FROM document_entry e \
        USING unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[]) \
          AS t (user_id, collection, id, name, value) \
        WHERE e.user_id = t.user_id AND e.collection = t.collection AND e.name = t.name \
          AND e.value = t.value AND e.id = t.id",
    insert_entries: "INSERT INTO document_entry (user_id, collection, id, name, value) \
        SELECT user_id, collection, id, name, value \
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[]) \
          AS t (user_id, collection, id, name, value) \
        ON CONFLICT (user_id, collection, name, value, id) DO NOTHING",
    raise_shapes: "UPDATE shape s SET shape = s.shape + t.by \
        FROM unnest($1::text[], $2::text[], $3::bigint[]) AS t (user_id, collection, by) \
        WHERE s.user_id = t.user_id AND s.collection = t.collection",
    end_reservations: END_RESERVATIONS.as_str(),
    insert_payloads: INSERT_PAYLOADS,
    insert_outbox: INSERT_OUTBOX,
}

/// Ends reservations as spent or given back. If the actual amount is known, it counts instead of the reserved
/// one.
static END_RESERVATIONS: LazyLock<String> = LazyLock::new(|| {
    pots::end_with(
        "SELECT * FROM unnest($1::text[], $2::text[], $3::boolean[]) AS t (user_id, id, is_spent)",
        "SELECT * FROM unnest($4::text[], $5::text[], $6::integer[], $7::bigint[]) \
           AS t (user_id, id, n, amount)",
    )
});

/// Inserts claims that are taken and settled at once. A reply is kept from the latest time that was believed on: a clock
/// that is behind it shortens no retention.
const INSERT_CLAIMS: &str = "INSERT INTO claim (user_id, tool, key_digest, state, attempt, \
        fingerprint, parts, recovery, recovery_seconds, request_id, token, first_claim, claimed_at, \
        reply, until) \
     SELECT user_id, tool, key_digest, state, attempt, fingerprint, parts, 0, 0, request_id, '', now(), \
        now(), reply, greatest(now(), (SELECT at FROM time_mark WHERE one = 1)) \
          + keep_us * interval '1 microsecond' \
     FROM unnest($1::text[], $2::text[], $3::bytea[], $4::smallint[], $5::bigint[], $6::bytea[], \
                 $7::bytea[], $8::text[], $9::bytea[], $10::bigint[]) \
       AS t (user_id, tool, key_digest, state, attempt, fingerprint, parts, request_id, reply, keep_us) \
     ON CONFLICT (user_id, tool, key_digest) DO NOTHING RETURNING user_id, tool, key_digest";

/// Locks the claims that are settled or taken again; `n` counts the keys from 1.
static LOCK_CLAIMS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT k.n, {} \
         FROM unnest($1::text[], $2::text[], $3::bytea[]) \
           WITH ORDINALITY AS k (user_id, tool, key_digest, n) \
         CROSS JOIN LATERAL (SELECT * FROM claim x WHERE x.user_id = k.user_id AND x.tool = k.tool \
           AND x.key_digest = k.key_digest FOR UPDATE) c",
        held::COLUMNS
    )
});

/// Reads the state of claims that could not be taken.
static READ_CLAIMS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT k.n, {} \
         FROM unnest($1::text[], $2::text[], $3::bytea[]) \
           WITH ORDINALITY AS k (user_id, tool, key_digest, n) \
         JOIN claim c ON c.user_id = k.user_id AND c.tool = k.tool AND c.key_digest = k.key_digest",
        held::COLUMNS
    )
});

/// Updates claims. A settled claim keeps the call and the time of its claim; one that is taken again gets a new
/// `request_id`.
const UPDATE_CLAIMS: &str = "UPDATE claim c \
     SET state = t.state, attempt = t.attempt, parts = coalesce(t.parts, c.parts), \
         fingerprint = coalesce(t.fingerprint, c.fingerprint), \
         request_id = coalesce(t.request_id, c.request_id), \
         recovery = CASE WHEN t.request_id IS NULL THEN c.recovery ELSE 0 END, \
         recovery_seconds = CASE WHEN t.request_id IS NULL THEN c.recovery_seconds ELSE 0 END, \
         claimed_at = CASE WHEN t.request_id IS NULL THEN c.claimed_at ELSE now() END, \
         lease_until = CASE WHEN t.state = 1 THEN now() END, reply = t.reply, \
         until = greatest(now(), (SELECT at FROM time_mark WHERE one = 1)) \
           + t.keep_us * interval '1 microsecond' \
     FROM unnest($1::text[], $2::text[], $3::bytea[], $4::smallint[], $5::bigint[], $6::bytea[], \
                 $7::bytea[], $8::text[], $9::bytea[], $10::bigint[]) \
       AS t (user_id, tool, key_digest, state, attempt, fingerprint, parts, request_id, reply, keep_us) \
     WHERE c.user_id = t.user_id AND c.tool = t.tool AND c.key_digest = t.key_digest";

/// Locks documents: exclusively if they are written, shared if they are only read. It makes one pass over the
/// keys, because two passes could deadlock.
const LOCK_DOCUMENTS: &str = "SELECT k.n, coalesce(w.version, r.version) AS version, w.is_live, \
        w.entries \
     FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) \
       WITH ORDINALITY AS k (user_id, collection, id, is_written, n) \
     LEFT JOIN LATERAL (SELECT version, body IS NOT NULL AS is_live, entries FROM document d \
       WHERE k.is_written AND d.user_id = k.user_id AND d.collection = k.collection AND d.id = k.id \
       FOR UPDATE) w ON true \
     LEFT JOIN LATERAL (SELECT version FROM document d \
       WHERE NOT k.is_written AND d.user_id = k.user_id AND d.collection = k.collection \
         AND d.id = k.id FOR SHARE) r ON true";

/// Locks shapes in the same way: exclusively if they will be raised, otherwise shared.
const LOCK_SHAPES: &str = "SELECT k.n, coalesce(w.shape, r.shape) AS shape \
     FROM unnest($1::text[], $2::text[], $3::boolean[]) \
       WITH ORDINALITY AS k (user_id, collection, is_raised, n) \
     LEFT JOIN LATERAL (SELECT shape FROM shape s WHERE k.is_raised \
       AND s.user_id = k.user_id AND s.collection = k.collection FOR UPDATE) w ON true \
     LEFT JOIN LATERAL (SELECT shape FROM shape s WHERE NOT k.is_raised \
       AND s.user_id = k.user_id AND s.collection = k.collection FOR SHARE) r ON true";
