-- What a model was asked for: `turn`, or `title`.
ALTER TABLE model_requests ADD COLUMN purpose TEXT NOT NULL DEFAULT 'turn';
