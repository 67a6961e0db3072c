-- Where a session was forked from, and the first session of its family; NULL = it was not forked.
ALTER TABLE sessions ADD COLUMN parent TEXT;
ALTER TABLE sessions ADD COLUMN parent_seq BIGINT;
ALTER TABLE sessions ADD COLUMN root TEXT;
CREATE INDEX sessions_of_family ON sessions (tenant, root) WHERE root IS NOT NULL;
