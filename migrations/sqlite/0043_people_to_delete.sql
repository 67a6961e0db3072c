-- Since when the person is to be deleted, with everything of theirs; null = they are not.
ALTER TABLE users ADD COLUMN delete_at BIGINT;
