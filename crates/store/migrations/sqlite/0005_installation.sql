-- The keys that the data belongs to; see docs/operating.md.
CREATE TABLE installation (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    -- The id of the master key.
    master TEXT NOT NULL,
    -- The public key of the log.
    log_key TEXT NOT NULL,
    -- 1 in a backup, which is opened by whoever restores it and by nobody else.
    is_copy INTEGER NOT NULL DEFAULT 0
) STRICT;
