-- Notices of what needs a person, and their deliveries. Nothing here is personal.
CREATE TABLE notice (
    seq     bigint GENERATED ALWAYS AS IDENTITY,
    id      text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    tool    text COLLATE "C",
    since   timestamptz,
    page    text NOT NULL,
    at      timestamptz NOT NULL,
    -- when a process last saw the finding
    seen_at timestamptz NOT NULL,
    gone_at timestamptz,
    PRIMARY KEY (seq)
);
CREATE UNIQUE INDEX notice_id ON notice (id);
CREATE UNIQUE INDEX notice_open ON notice (kind, subject) WHERE gone_at IS NULL;
CREATE TABLE notice_delivery (
    notice_id    text COLLATE "C" NOT NULL,
    target       text COLLATE "C" NOT NULL,
    attempts     bigint NOT NULL DEFAULT 0,
    -- the next attempt, or the end of the lease of the running one
    next_at      timestamptz NOT NULL,
    give_up_at   timestamptz NOT NULL,
    delivered_at timestamptz,
    failed_at    timestamptz,
    last_error   text,
    PRIMARY KEY (notice_id, target)
);
CREATE INDEX notice_delivery_due ON notice_delivery (next_at)
    WHERE delivered_at IS NULL AND failed_at IS NULL;
CREATE INDEX notice_delivery_failed ON notice_delivery (target)
    WHERE delivered_at IS NULL AND failed_at IS NOT NULL;
