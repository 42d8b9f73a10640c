-- How often something was done lately. A count that is lost is a whole allowance again, so the table is not
-- logged: counting waits for no disk, and the table is empty after a crash of the server. Only what is no
-- indexed column changes, and pages have room for that: a row that is busy stays in its place.

CREATE UNLOGGED TABLE pace (
    -- a digest of whom and what it counts
    key   bytea NOT NULL,
    -- microseconds since 1970: from then on the row means nothing
    until bigint NOT NULL,
    -- in the window; 0 where the pace is even
    calls bigint NOT NULL,
    PRIMARY KEY (key)
) WITH (fillfactor = 50);
