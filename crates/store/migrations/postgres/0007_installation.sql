-- The keys that the data belongs to; see docs/operating.md.
CREATE TABLE installation (
    one integer NOT NULL CHECK (one = 1),
    id text NOT NULL,
    -- The id of the master key.
    master text NOT NULL,
    -- The public key of the log.
    log_key text NOT NULL,
    -- The table that the row was written to. A table that is made again from a dump is another one.
    place bigint NOT NULL,
    PRIMARY KEY (one)
);
