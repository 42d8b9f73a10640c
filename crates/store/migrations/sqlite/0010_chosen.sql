-- Records by a request id that is not of our making: an id that a caller chose is kept as a digest under the user's key, so one
-- without a user is searched for as one digest a user. Ids of our making stay in `posting`, which is cheaper to write. Like
-- `timeline` it covers what is in the tree.
CREATE TABLE chosen (
    request_id TEXT NOT NULL,
    idx INTEGER NOT NULL,
    PRIMARY KEY (request_id, idx)
) STRICT, WITHOUT ROWID;
INSERT INTO chosen (request_id, idx)
    SELECT request_id, idx FROM record
    WHERE request_id NOT GLOB 'req[_]*' AND idx < (SELECT size FROM head) ORDER BY request_id, idx;
