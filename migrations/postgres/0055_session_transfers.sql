-- Copies of a person's sessions for somebody else, who goes on with their work.
CREATE TABLE session_transfers (
    tenant     TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    -- The session that is copied.
    session    TEXT COLLATE "C" NOT NULL,
    -- The person who gets the copy.
    user_id    TEXT COLLATE "C" NOT NULL,
    -- The id of the copy.
    copy       TEXT COLLATE "C" NOT NULL,
    -- When the copy was complete, with its files; null = not yet.
    done_at    BIGINT,
    PRIMARY KEY (tenant, session, user_id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX session_transfers_of_user ON session_transfers (tenant, user_id);
