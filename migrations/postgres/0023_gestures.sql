-- Passkeys of people (WebAuthn).
CREATE TABLE passkeys (
    tenant       TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    -- The id of the credential, in base64url.
    id           TEXT   NOT NULL,
    -- What people call it.
    name         TEXT   NOT NULL,
    -- The relying party that it was made for; at other names of this installation browsers offer it not.
    relying_party TEXT  NOT NULL,
    -- Public key and what else never changes of it, in base64url.
    public_key   TEXT   NOT NULL,
    -- Signature counter and what else each use may change, in base64url.
    counter      TEXT   NOT NULL,
    -- How a browser reaches its authenticator, as bits.
    transports   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX passkeys_of_user ON passkeys (tenant, user_id);

-- What a person was asked to show, and what they showed: each is used once, by any gateway.
CREATE TABLE gestures (
    -- Hash of the challenge or of the proof.
    hash       TEXT   NOT NULL PRIMARY KEY,
    tenant     TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    -- `registration`, `challenge` or `proof`.
    stage      TEXT   NOT NULL,
    -- Of a proof: `passkey` or `password`.
    means      TEXT,
    -- What the relying party has to remember of its challenge, in base64url.
    ceremony   TEXT   NOT NULL,
    -- What is approved: sessions, calls and digests, as JSON.
    calls      TEXT   NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX gestures_ended ON gestures (expires_at);
