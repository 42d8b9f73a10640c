-- Times are microseconds since 1970. Keys of what belongs to a user start with the user.

CREATE TABLE claim (
    user_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    key BLOB NOT NULL,
    -- 0 released, 1 running, 2 succeeded, 3 failed, 4 in_doubt, 5 tombstone
    state INTEGER NOT NULL,
    -- The fence: it only rises.
    attempt INTEGER NOT NULL,
    -- 0 operator, 1 retry, 2 downstream_key, 3 reconcile
    recovery INTEGER NOT NULL,
    -- The window of 2, the grace of 3.
    recovery_seconds INTEGER NOT NULL,
    first_claim INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL,
    -- Where it runs.
    lease_until INTEGER,
    -- Of the answer, or of the tombstone.
    until INTEGER,
    request_id TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    parts BLOB NOT NULL,
    reply BLOB,
    PRIMARY KEY (user_id, tool, key)
) STRICT;
CREATE INDEX claim_until ON claim (until) WHERE until IS NOT NULL;
CREATE INDEX claim_open ON claim (state, claimed_at) WHERE state = 1 OR state = 4;

CREATE TABLE document (
    user_id TEXT NOT NULL,
    collection TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    -- All its index entries: the length of its name in four bytes, the name, the 32
    -- bytes of its value.
    entries BLOB NOT NULL,
    -- None where it was deleted.
    body BLOB,
    PRIMARY KEY (user_id, collection, id)
) STRICT;

CREATE TABLE document_entry (
    user_id TEXT NOT NULL,
    collection TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (user_id, collection, name, value, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE shape (
    user_id TEXT NOT NULL,
    collection TEXT NOT NULL,
    shape INTEGER NOT NULL,
    PRIMARY KEY (user_id, collection)
) STRICT, WITHOUT ROWID;

CREATE TABLE user_key (
    user_id TEXT NOT NULL PRIMARY KEY,
    master TEXT NOT NULL,
    bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- In the order of the commits, which is the order of the tree. Ids rise with it, so that all of this is
-- written at its end, however long it grows.
CREATE TABLE record (
    idx INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    -- Its owner had been overtaken.
    fenced INTEGER NOT NULL,
    kind TEXT NOT NULL,
    code TEXT,
    tool TEXT,
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    request_id TEXT,
    leaf BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX record_id ON record (id);

CREATE TABLE payload (
    idx INTEGER PRIMARY KEY,
    until INTEGER,
    bytes BLOB NOT NULL
) STRICT;

-- What follows is written when records go into the tree, many at once, not with each commit. It covers
-- what is in the tree; the few records after that are looked at one by one.

CREATE TABLE timeline (
    at INTEGER NOT NULL,
    id TEXT NOT NULL,
    idx INTEGER NOT NULL,
    PRIMARY KEY (at, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE payload_due (
    until INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    PRIMARY KEY (until, idx)
) STRICT, WITHOUT ROWID;

-- By user and by call, in buckets of 4,096 records: one index over all users would be written all over
-- the file.
CREATE TABLE posting (
    bucket INTEGER NOT NULL,
    term INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    PRIMARY KEY (bucket, term, idx)
) STRICT, WITHOUT ROWID;
CREATE TABLE bucket (
    number INTEGER PRIMARY KEY,
    oldest INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    -- The newest of this bucket and all before it.
    newest_so_far INTEGER NOT NULL
) STRICT;

-- `key` is the level times 2^48, and the index in the level.
CREATE TABLE tile (
    key INTEGER PRIMARY KEY,
    hashes BLOB NOT NULL
) STRICT;

CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    size INTEGER NOT NULL,
    root BLOB NOT NULL
) STRICT;
INSERT INTO head VALUES (1, 0, x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');

CREATE TABLE checkpoint (
    size INTEGER PRIMARY KEY,
    root BLOB NOT NULL,
    note TEXT NOT NULL
) STRICT;

CREATE TABLE hold (
    number INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    -- Empty where it is the whole user.
    record TEXT NOT NULL,
    reason TEXT NOT NULL,
    UNIQUE (user_id, record)
) STRICT;

-- Each start; one that was not closed lost what only waited to be written.
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    started_at INTEGER NOT NULL,
    closed_at INTEGER
) STRICT;
