-- Which sandbox is whose, and what keeps its workspace. A row is written before the workspace is
-- made, so a workspace without one belongs to nobody.
CREATE TABLE sandboxes (
    tenant  TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    id      TEXT COLLATE "C" NOT NULL UNIQUE,
    -- `docker/<engine>` or `bubblewrap`.
    keeper  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session)
);
