-- Texts that are searched. They are made from files and can be made again. Nothing personal is in them.

CREATE TABLE text_corpus (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    version BLOB NOT NULL,
    -- 0 while it is written and while it is removed: nobody sees it then.
    complete INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    words INTEGER NOT NULL,
    UNIQUE (name, version)
) STRICT;

CREATE TABLE text_chunk (
    number INTEGER PRIMARY KEY,
    corpus INTEGER NOT NULL,
    id TEXT NOT NULL,
    language TEXT NOT NULL,
    text TEXT NOT NULL,
    -- As they are indexed: with one space between them.
    words TEXT NOT NULL,
    UNIQUE (corpus, id)
) STRICT;

-- The rowid is the number of a chunk. What is a word was decided before: `ascii` parts at spaces and leaves every
-- letter of other scripts as it is. `corpus` is one word, `c` and the number of the corpus.
CREATE VIRTUAL TABLE text_index USING fts5 (
    corpus,
    words,
    content = '',
    contentless_delete = 1,
    tokenize = 'ascii'
);
