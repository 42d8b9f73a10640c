-- The name of the key itself, whatever wraps it: what was sealed under an earlier key of the user is not taken. None where the key is
-- older than this column.
ALTER TABLE user_key ADD COLUMN id bytea;
