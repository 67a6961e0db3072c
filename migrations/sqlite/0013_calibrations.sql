-- How far counts of tokens are from what a provider reports, by model: numbers, and no text of anybody.
CREATE TABLE calibrations (
    -- `installation`, or the tenant's id.
    scope      TEXT   NOT NULL,
    -- The digest of the provider's kind and address.
    address    TEXT   NOT NULL,
    -- By model, as JSON.
    learned    TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (scope, address)
);
