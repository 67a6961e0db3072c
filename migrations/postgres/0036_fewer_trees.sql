-- The tokens of each server's tool definitions, which `request_tools` had a row for, stand with their request:
-- one row for each request, in fewer B-trees.

-- `part_tools` by server, as JSON.
ALTER TABLE model_requests ADD COLUMN tools TEXT NOT NULL DEFAULT '{}';
UPDATE model_requests SET tools = of_request.tools
    FROM (SELECT tenant, session, commit_id, place, json_object_agg(server, tokens)::text AS tools
        FROM request_tools GROUP BY tenant, session, commit_id, place) AS of_request
    WHERE model_requests.tenant = of_request.tenant AND model_requests.session = of_request.session
        AND model_requests.commit_id = of_request.commit_id AND model_requests.place = of_request.place;
DROP TABLE request_tools;
