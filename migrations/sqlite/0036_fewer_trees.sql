-- The tokens of each server's tool definitions, which `request_tools` had a row for, stand with their request:
-- one row for each request, in fewer B-trees.

-- `part_tools` by server, as JSON.
ALTER TABLE model_requests ADD COLUMN tools TEXT NOT NULL DEFAULT '{}';
UPDATE model_requests SET tools = of_request.tools
    FROM (SELECT tenant, session, commit_id, place, json_group_object(server, tokens) AS tools
        FROM request_tools GROUP BY tenant, session, commit_id, place) AS of_request
    WHERE model_requests.tenant = of_request.tenant AND model_requests.session = of_request.session
        AND model_requests.commit_id = of_request.commit_id AND model_requests.place = of_request.place;
DROP TABLE request_tools;

-- Never used here: in the reports, whose owner it is may be left open.
DROP INDEX model_requests_of_owner;

-- Each append looks here: a table that is its own index.
DROP TRIGGER journal_keeps_active;
CREATE TABLE unfinished (
    tenant  TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (tenant, session)
) WITHOUT ROWID;
INSERT INTO unfinished (tenant, session) SELECT tenant, session FROM active;
DROP TABLE active;
ALTER TABLE unfinished RENAME TO active;
CREATE TRIGGER journal_keeps_active AFTER INSERT ON journal BEGIN
    INSERT INTO active (tenant, session)
        SELECT NEW.tenant, NEW.session WHERE NEW.is_active ON CONFLICT DO NOTHING;
    DELETE FROM active
        WHERE tenant = NEW.tenant AND session = NEW.session AND NOT NEW.is_active;
END;
