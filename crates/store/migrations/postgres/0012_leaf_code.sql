-- Authenticates a record until it is signed: a keyed code over its id and its leaf.
ALTER TABLE record ADD COLUMN code_of_leaf bytea;
-- False until the records that an earlier version left without codes have theirs.
ALTER TABLE log_head ADD COLUMN has_codes boolean NOT NULL DEFAULT false;
