-- Records by code, by tool and by kind, each in the order of time: a rare one among a million is found without looking at
-- the others. Like `timeline` it covers what is in the tree. Kind `call` is left out, because most records are of it.
CREATE TABLE facet (
    -- `code`, `tool` or `kind`, a colon, and the value.
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    id TEXT NOT NULL,
    idx INTEGER NOT NULL,
    PRIMARY KEY (name, at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO facet (name, at, id, idx)
    SELECT name, at, id, idx FROM (
        SELECT 'code:' || code AS name, at, id, idx FROM record WHERE code IS NOT NULL
        UNION ALL SELECT 'tool:' || tool, at, id, idx FROM record WHERE tool IS NOT NULL
        UNION ALL SELECT 'kind:' || kind, at, id, idx FROM record WHERE kind <> 'call'
    ) WHERE idx < (SELECT size FROM head) ORDER BY name, at, id;
