-- Whether the session was unfinished after a record: SQLite's index of those follows it.
ALTER TABLE journal ADD COLUMN is_active BOOLEAN NOT NULL DEFAULT FALSE;
