-- Challenges for browsers in which somebody signs in by a passkey, without a name. Each is used once.
CREATE TABLE passkey_challenges (
    -- The hash of the challenge.
    hash       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- The relying party's state for its challenge, in base64url.
    ceremony   TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX passkey_challenges_ended ON passkey_challenges (expires_at);

-- A passkey that signs somebody in is found by its id alone.
CREATE INDEX passkeys_by_id ON passkeys (id);

-- True if the person signs in by passkeys and never by their password.
ALTER TABLE users ADD COLUMN is_passkey_only BOOLEAN NOT NULL DEFAULT FALSE;
