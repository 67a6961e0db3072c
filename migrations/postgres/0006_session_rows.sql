-- The table `sandboxes` says it, and the first commit of a journal for sessions from before that.
ALTER TABLE sessions DROP COLUMN sandbox;
