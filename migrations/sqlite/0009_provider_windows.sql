-- What was said of the windows of a provider's models, as JSON; NULL = nothing.
ALTER TABLE providers ADD COLUMN windows TEXT;
