-- A service account has keys, and never a password, a browser or an account at a provider.
ALTER TABLE users ADD COLUMN is_service BOOLEAN NOT NULL DEFAULT FALSE;
