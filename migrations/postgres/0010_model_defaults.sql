-- The model of new sessions: of one person, or of everybody in the scope, whose `user_id` is empty.
CREATE TABLE model_defaults (
    -- `installation`, or the tenant's id.
    scope      TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    provider   TEXT   NOT NULL,
    model      TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (scope, user_id)
);
