-- Values that may be or hold a secret, sealed: the private texts of MCP servers by field (JSON), and the
-- addresses of webhooks. Null where an earlier release wrote the row; such rows are sealed at the next start.
ALTER TABLE mcp_servers ADD COLUMN sealed     TEXT;
ALTER TABLE webhooks    ADD COLUMN sealed_url TEXT;
