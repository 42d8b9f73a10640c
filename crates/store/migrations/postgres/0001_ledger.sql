-- Claims, documents, keys and the log.
--
-- Only what every database with PostgreSQL's protocol has: no sequences, triggers, foreign keys or
-- advisory locks. The key of everything that belongs to a user starts with the user, so that a database
-- of many machines can keep a user's rows together. Names are compared byte by byte (COLLATE "C").

CREATE TABLE claim (
    user_id          text COLLATE "C" NOT NULL,
    tool             text COLLATE "C" NOT NULL,
    key_digest       bytea NOT NULL,
    -- 0 released, 1 running, 2 succeeded, 3 failed, 4 in doubt, 5 tombstone
    state            smallint NOT NULL,
    attempt          bigint NOT NULL,
    fingerprint      bytea NOT NULL,
    parts            bytea NOT NULL,
    -- 0 operator, 1 retry, 2 downstream key, 3 reconcile
    recovery         smallint NOT NULL,
    -- the window of a downstream key, the grace of a reconciliation
    recovery_seconds bigint NOT NULL,
    request_id       text COLLATE "C" NOT NULL,
    -- which claiming made this row run: tells a claim whose answer was lost from somebody else's
    token            text COLLATE "C" NOT NULL,
    first_claim      timestamptz NOT NULL,
    claimed_at       timestamptz NOT NULL,
    lease_until      timestamptz,
    reply            bytea,
    -- of an answer or a tombstone
    until            timestamptz,
    PRIMARY KEY (user_id, tool, key_digest)
);
CREATE INDEX claim_until ON claim (state, until) WHERE until IS NOT NULL;
CREATE INDEX claim_open ON claim (state, lease_until) WHERE state = 1 OR state = 4;

-- A deleted document has no body and keeps its version.
CREATE TABLE document (
    user_id    text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    body       bytea,
    -- all index entries, so that the ones that are no more can be removed by their keys
    entries    bytea NOT NULL,
    PRIMARY KEY (user_id, collection, id)
);

CREATE TABLE document_entry (
    user_id    text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    value      bytea NOT NULL,
    id         text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, collection, name, value, id)
);

CREATE TABLE shape (
    user_id    text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    shape      bigint NOT NULL,
    PRIMARY KEY (user_id, collection)
);

CREATE TABLE user_key (
    user_id text COLLATE "C" NOT NULL,
    master  text COLLATE "C" NOT NULL,
    bytes   bytea NOT NULL,
    PRIMARY KEY (user_id)
);

-- The row of a record is the first thing that its transaction writes. Whoever does not know whether a
-- commit was done inserts it again and is told.
CREATE TABLE record (
    user_id    text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    -- nanoseconds since 1970: as exact as the record says it
    at_ns      bigint NOT NULL,
    request_id text COLLATE "C",
    tool       text COLLATE "C",
    code       text COLLATE "C",
    -- its owner had been overtaken, and nothing but this record was kept
    fenced     boolean NOT NULL,
    leaf       bytea NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX record_id ON record (id);
CREATE INDEX record_at ON record (at_ns, id);
CREATE INDEX record_request ON record (request_id) WHERE request_id IS NOT NULL;

CREATE TABLE payload (
    user_id text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    -- kept for ever where there is none
    until   timestamptz,
    body    bytea NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX payload_until ON payload (until) WHERE until IS NOT NULL;

-- Records that are not in the tree yet.
CREATE TABLE outbox (
    user_id text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, id)
);

-- The leaves of the tree in their order; their bytes are in `record`, which an erasure does not remove.
CREATE TABLE log_leaf (
    idx bigint NOT NULL,
    id  text COLLATE "C" NOT NULL,
    PRIMARY KEY (idx)
);
CREATE INDEX log_leaf_id ON log_leaf (id);

CREATE TABLE tile (
    level  smallint NOT NULL,
    idx    bigint NOT NULL,
    hashes bytea NOT NULL,
    PRIMARY KEY (level, idx)
);

-- One row: the tree, and who may add to it until when.
CREATE TABLE log_head (
    one         smallint NOT NULL CHECK (one = 1),
    holder      text COLLATE "C" NOT NULL,
    epoch       bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    size        bigint NOT NULL,
    root        bytea NOT NULL,
    PRIMARY KEY (one)
);
INSERT INTO log_head (one, holder, epoch, lease_until, size, root)
VALUES (1, '', 0, '1970-01-01 00:00:00+00', 0,
        decode('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 'hex'));

CREATE TABLE checkpoint (
    size bigint NOT NULL,
    root bytea NOT NULL,
    note text NOT NULL,
    PRIMARY KEY (size)
);

-- An empty `record` stands for everything of the user.
CREATE TABLE hold (
    user_id   text COLLATE "C" NOT NULL,
    record    text COLLATE "C" NOT NULL,
    reason    text NOT NULL,
    placed_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, record)
);

-- One row that whoever places or lifts a hold locks, and whoever removes something shares: what is
-- under a hold when the hold is answered is not removed by somebody who looked before.
CREATE TABLE hold_guard (
    one smallint NOT NULL CHECK (one = 1),
    PRIMARY KEY (one)
);
INSERT INTO hold_guard (one) VALUES (1);
