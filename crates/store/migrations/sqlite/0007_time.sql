-- The latest time that was believed. A store that has records begins with the time of the newest.
CREATE TABLE time_mark (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at INTEGER,
    -- 1 where the log says that the clock disagrees with it.
    is_told INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO time_mark (one, at) SELECT 1, (SELECT at FROM record ORDER BY idx DESC LIMIT 1);
-- Tombstones stay for ever, so nothing looks for the end of one.
UPDATE claim SET until = NULL, parts = x'' WHERE state = 5;
