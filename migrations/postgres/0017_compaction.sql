-- What a model was asked for: `turn`, `title`, or `compaction` for a summary of what left the context.
ALTER TABLE model_requests ADD COLUMN purpose TEXT NOT NULL DEFAULT 'turn';

-- What makes room in the contexts of a tenant's sessions, where its admins said so.
CREATE TABLE compaction_defaults (
    tenant     TEXT   NOT NULL PRIMARY KEY,
    -- A list of strategies, as JSON.
    strategies TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);
