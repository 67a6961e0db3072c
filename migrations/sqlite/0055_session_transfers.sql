-- Copies of a person's sessions for somebody else, who goes on with their work.
CREATE TABLE session_transfers (
    tenant     TEXT   NOT NULL REFERENCES tenants (id),
    -- The session that is copied.
    session    TEXT   NOT NULL,
    -- The person who gets the copy.
    user_id    TEXT   NOT NULL,
    -- The id of the copy.
    copy       TEXT   NOT NULL,
    -- When the copy was complete, with its files; null = not yet.
    done_at    BIGINT,
    PRIMARY KEY (tenant, session, user_id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX session_transfers_of_user ON session_transfers (tenant, user_id);
