-- Whether the request has changed something: if its gateway dies before it answers, it must not run again.
ALTER TABLE idempotency_keys ADD COLUMN has_changed BOOLEAN NOT NULL DEFAULT FALSE;
