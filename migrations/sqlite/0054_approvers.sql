-- The number of a session's waiting calls that a person with the role `approver` may decide.
ALTER TABLE sessions ADD COLUMN asks_approvers BIGINT NOT NULL DEFAULT 0;
