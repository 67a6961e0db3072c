-- Since when nobody of a tenant enters, and since when it is to be deleted; null = it is not.
ALTER TABLE tenants ADD COLUMN suspended_at BIGINT;
ALTER TABLE tenants ADD COLUMN delete_at    BIGINT;
