-- Whether the session was unfinished after a record. The index of those follows every append by
-- itself, so that an append is one statement and with it one trip to the thread of SQLite;
-- PostgreSQL does both in one statement anyway.
ALTER TABLE journal ADD COLUMN is_active BOOLEAN NOT NULL DEFAULT FALSE;

CREATE TRIGGER journal_keeps_active AFTER INSERT ON journal BEGIN
    INSERT INTO active (tenant, session)
        SELECT NEW.tenant, NEW.session WHERE NEW.is_active ON CONFLICT DO NOTHING;
    DELETE FROM active
        WHERE tenant = NEW.tenant AND session = NEW.session AND NOT NEW.is_active;
END;
