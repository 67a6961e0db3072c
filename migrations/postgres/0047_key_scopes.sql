-- The names of what the key may do, separated by spaces; null = whatever its user may.
ALTER TABLE api_keys ADD COLUMN scopes TEXT;
-- The ids of the only sessions that exist for the key, separated by spaces; null = those of its user.
ALTER TABLE api_keys ADD COLUMN sessions TEXT;
-- The names of the only MCP servers whose tools its sessions may use, separated by spaces; null = those of its user.
ALTER TABLE api_keys ADD COLUMN servers TEXT;
