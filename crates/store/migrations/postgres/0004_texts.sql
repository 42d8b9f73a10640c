-- Texts that are searched. They are made from files and can be made again. Nothing personal is in them.

CREATE TABLE text_corpus (
    name    text COLLATE "C" NOT NULL,
    -- the digest of what it was made from: a version never changes
    version bytea NOT NULL,
    chunks  bigint NOT NULL,
    words   bigint NOT NULL,
    kept_at timestamptz NOT NULL,
    PRIMARY KEY (name, version)
);

CREATE TABLE text_chunk (
    name     text COLLATE "C" NOT NULL,
    version  bytea NOT NULL,
    id       text COLLATE "C" NOT NULL,
    language text COLLATE "C" NOT NULL,
    body     text NOT NULL,
    -- as they are indexed, with one space between them
    words    text NOT NULL,
    -- made of `words` by us, and by no parser of the server
    vector   tsvector NOT NULL,
    PRIMARY KEY (name, version, id)
);
CREATE INDEX text_chunk_vector ON text_chunk USING gin (vector);
