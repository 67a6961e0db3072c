-- Decisions lie in the order of their times, which is the order in which they come and are read: a new one
-- goes to the end of one tree, instead of somewhere in each of four.
CREATE TABLE decisions_by_time (
    tenant  TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    session TEXT   NOT NULL,
    version BIGINT NOT NULL,
    -- Counts the records of one commit, from 0.
    place   BIGINT NOT NULL,
    act     TEXT   NOT NULL,
    -- Who decided; empty = no person.
    person  TEXT   NOT NULL,
    tool    TEXT   NOT NULL,
    verdict TEXT   NOT NULL,
    -- The record, as canonical JSON.
    body    TEXT   NOT NULL,
    -- Whether the receiver outside has it, or there was none.
    is_posted BOOLEAN NOT NULL,
    is_logged BOOLEAN NOT NULL,
    PRIMARY KEY (tenant, at, session, version, place)
) WITHOUT ROWID;
INSERT INTO decisions_by_time
    SELECT tenant, at, session, version, place, act, person, tool, verdict, body, is_posted, is_logged
    FROM decisions ORDER BY tenant, at, session, version, place;
DROP TABLE decisions;
ALTER TABLE decisions_by_time RENAME TO decisions;
CREATE INDEX decisions_to_post ON decisions (tenant, at) WHERE NOT is_posted;
CREATE INDEX decisions_to_log ON decisions (tenant, at) WHERE NOT is_logged;
CREATE INDEX decisions_of_person ON decisions (tenant, person, at) WHERE person <> '';
