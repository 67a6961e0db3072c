-- What came of dry runs, whole, while their calls wait: a yes may take it in the place of running.
CREATE TABLE dry_run_results (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    call    TEXT   NOT NULL,
    made_at BIGINT NOT NULL,
    -- SHA-256 of the content, in hex.
    digest  TEXT   NOT NULL,
    -- A byte that says how the rest is stored, as in workspace_contents.
    content BLOB   NOT NULL,
    PRIMARY KEY (tenant, session, call)
);
