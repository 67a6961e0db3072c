-- Versions are dense and `last_seq` never falls: what a client asks by `seq` is found by halves, and
-- appends write no second index.
DROP INDEX journal_by_seq;
