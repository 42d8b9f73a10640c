-- Authenticates a record until it is signed: a keyed code over its id and its leaf.
ALTER TABLE record ADD COLUMN code_of_leaf BLOB;
-- 0 until the records that an earlier version left without codes have theirs.
ALTER TABLE head ADD COLUMN has_codes INTEGER NOT NULL DEFAULT 0;
