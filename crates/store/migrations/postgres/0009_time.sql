-- The latest time that was believed. A store that has records begins with the time of the newest.
CREATE TABLE time_mark (
    one     smallint NOT NULL CHECK (one = 1),
    at      timestamptz,
    -- the log says that the clock disagrees with it
    is_told boolean NOT NULL DEFAULT false,
    PRIMARY KEY (one)
);
INSERT INTO time_mark (one, at)
    SELECT 1, (SELECT to_timestamp(max(at_ns) / 1000000000.0) FROM record);
-- Tombstones stay for ever, so nothing looks for the end of one.
UPDATE claim SET until = NULL, parts = '' WHERE state = 5;
