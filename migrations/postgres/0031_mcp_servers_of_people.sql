-- Whose server it is alone; null = the tenant's.
ALTER TABLE mcp_servers ADD COLUMN owner TEXT;
