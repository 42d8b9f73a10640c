-- Notices of what needs a person, and their deliveries. Nothing here is personal; times are microseconds since 1970.
CREATE TABLE notice (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    tool TEXT,
    since INTEGER,
    page TEXT NOT NULL,
    at INTEGER NOT NULL,
    -- When a process last saw the finding.
    seen_at INTEGER NOT NULL,
    gone_at INTEGER
) STRICT;
CREATE UNIQUE INDEX notice_open ON notice (kind, subject) WHERE gone_at IS NULL;
CREATE TABLE notice_delivery (
    notice_id TEXT NOT NULL,
    target TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- The next attempt, or the end of the lease of the running one.
    next_at INTEGER NOT NULL,
    give_up_at INTEGER NOT NULL,
    delivered_at INTEGER,
    failed_at INTEGER,
    last_error TEXT,
    PRIMARY KEY (notice_id, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX notice_delivery_due ON notice_delivery (next_at)
    WHERE delivered_at IS NULL AND failed_at IS NULL;
CREATE INDEX notice_delivery_failed ON notice_delivery (target)
    WHERE delivered_at IS NULL AND failed_at IS NOT NULL;
