-- Which sandbox is whose, and what keeps its workspace. A row is written before the workspace is
-- made, so a workspace without one belongs to nobody.
CREATE TABLE sandboxes (
    tenant  TEXT NOT NULL,
    session TEXT NOT NULL,
    id      TEXT NOT NULL UNIQUE,
    -- `docker/<engine>` or `bubblewrap`.
    keeper  TEXT NOT NULL,
    PRIMARY KEY (tenant, session)
);
