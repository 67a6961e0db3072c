-- One row: names these records, so that gateways on one Redis notice when theirs are not the same.
CREATE TABLE installation (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
