-- The whole schema. Migrations 1 to 34 made the same tables, and a database that has them is taken over
-- (`crates/store/src/db/schema.rs`). Never change this file: the next change is migration 36.
--
-- Times are milliseconds since 1970. A `tenant` is the id of a tenant, a `scope` is `installation` or the id
-- of a tenant. Columns that are called sealed are encrypted with the key of the installation.


-- Tenants and people

CREATE TABLE tenants (
    id           TEXT    NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL UNIQUE,
    created_at   BIGINT  NOT NULL,
    -- Whether people of the tenant may share sessions by link.
    allows_links BOOLEAN NOT NULL DEFAULT FALSE,
    -- Since when nobody of the tenant may sign in; null = the tenant is not suspended.
    suspended_at BIGINT,
    -- Since when the tenant is to be deleted; null = it is not.
    delete_at    BIGINT
);

CREATE TABLE users (
    tenant                TEXT    NOT NULL REFERENCES tenants (id),
    id                    TEXT    NOT NULL,
    name                  TEXT    NOT NULL,
    -- The name in lowercase: `Ann` and `ann` are one person.
    name_key              TEXT    NOT NULL,
    role                  TEXT    NOT NULL,
    is_installation_admin BOOLEAN NOT NULL,
    is_disabled           BOOLEAN NOT NULL,
    -- The person of `auth.mode none`, until the setup gives them a name.
    is_local              BOOLEAN NOT NULL,
    password_hash         TEXT,
    created_at            BIGINT  NOT NULL,
    -- The address for mail, and since when the person wants mail; null = they get none.
    email                 TEXT,
    mail_since            BIGINT,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, name_key)
);

CREATE TABLE api_keys (
    tenant       TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    hash         TEXT   NOT NULL UNIQUE,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at   BIGINT,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);

-- Browsers that are signed in.
CREATE TABLE web_sessions (
    tenant       TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    hash         TEXT   NOT NULL UNIQUE,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX web_sessions_of_user ON web_sessions (tenant, user_id);

-- Links that work once: the setup link, which has no user, and sign-in links.
CREATE TABLE links (
    -- The hash of the secret.
    hash       TEXT   NOT NULL PRIMARY KEY,
    tenant     TEXT   NOT NULL REFERENCES tenants (id),
    user_id    TEXT,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);

-- Passkeys of people (WebAuthn).
CREATE TABLE passkeys (
    tenant        TEXT   NOT NULL,
    user_id       TEXT   NOT NULL,
    -- The id of the credential, in base64url.
    id            TEXT   NOT NULL,
    -- The name that the person gave it.
    name          TEXT   NOT NULL,
    -- The relying party for which it was made. Browsers do not offer it at other names of this installation.
    relying_party TEXT   NOT NULL,
    -- The public key and other data that never change, in base64url.
    public_key    TEXT   NOT NULL,
    -- The signature counter and other data that a use may change, in base64url.
    counter       TEXT   NOT NULL,
    -- The transports by which a browser reaches the authenticator, as bits.
    transports    BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX passkeys_of_user ON passkeys (tenant, user_id);

-- Challenges for gestures, and the gestures made in answer: each is used once, by any gateway.
CREATE TABLE gestures (
    -- The hash of the challenge or of the proof.
    hash       TEXT   NOT NULL PRIMARY KEY,
    tenant     TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    -- `registration`, `challenge` or `proof`.
    stage      TEXT   NOT NULL,
    -- Of a proof: `passkey` or `password`.
    means      TEXT,
    -- The relying party's state for its challenge, in base64url.
    ceremony   TEXT   NOT NULL,
    -- What is approved: sessions, calls and digests, as JSON.
    calls      TEXT   NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX gestures_ended ON gestures (expires_at);

-- One row: the id of these records. Gateways on one Redis compare it, and notice when their records are not
-- the same.
CREATE TABLE installation (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);


-- The journals of sessions

-- The journal is the only truth of a session; its primary key is the fence. Versions are dense and `last_seq`
-- never falls, so a binary search finds the row of a `seq`, and an append writes no second index.
CREATE TABLE journal (
    tenant    TEXT    NOT NULL,
    session   TEXT    NOT NULL,
    version   BIGINT  NOT NULL,
    commit_id TEXT    NOT NULL,
    first_seq BIGINT  NOT NULL,
    last_seq  BIGINT  NOT NULL,
    body      BLOB    NOT NULL,
    -- Whether the session was unfinished after this commit.
    is_active BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (tenant, session, version)
);

CREATE TABLE snapshots (
    tenant        TEXT    NOT NULL,
    session       TEXT    NOT NULL,
    version       BIGINT  NOT NULL,
    schema        BIGINT  NOT NULL,
    is_compressed BOOLEAN NOT NULL,
    body          BLOB    NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- Unfinished sessions; a gateway that starts claims them.
CREATE TABLE active (
    tenant  TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- Keeps `active` up to date, so that an append is one statement, and with that one trip to the thread of
-- SQLite. PostgreSQL writes both tables in one statement without a trigger.
CREATE TRIGGER journal_keeps_active AFTER INSERT ON journal BEGIN
    INSERT INTO active (tenant, session)
        SELECT NEW.tenant, NEW.session WHERE NEW.is_active ON CONFLICT DO NOTHING;
    DELETE FROM active
        WHERE tenant = NEW.tenant AND session = NEW.session AND NOT NEW.is_active;
END;


-- The lists of sessions

-- Projected from the journals, except `pinned`, `archived`, `tags`, `marked` and `delete_at`, which people
-- set beside them.
CREATE TABLE sessions (
    tenant          TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    owner           TEXT    NOT NULL,
    title           TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    -- The number of calls that wait for a decision.
    waiting         BIGINT  NOT NULL,
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL,
    version         BIGINT  NOT NULL,
    -- Where the session was forked from, and the first session of its family; null = it was not forked.
    parent          TEXT,
    parent_seq      BIGINT,
    root            TEXT,
    -- The version of the journal up to which `model_requests`, `request_tools` and `tool_calls` are complete.
    usage_version   BIGINT  NOT NULL DEFAULT 0,
    pinned          BOOLEAN NOT NULL DEFAULT FALSE,
    archived        BOOLEAN NOT NULL DEFAULT FALSE,
    -- Each tag between line breaks, so that LIKE finds one.
    tags            TEXT    NOT NULL DEFAULT '',
    -- Grows with every change of the three columns above.
    marked          BIGINT  NOT NULL DEFAULT 0,
    -- When a session that was given up is deleted; until then it can be restored.
    delete_at       BIGINT,
    -- The version of the journal whose texts are in the index.
    indexed         BIGINT  NOT NULL DEFAULT 0,
    -- When the oldest of the waiting calls began to wait; null = no call waits.
    waiting_since   BIGINT,
    -- When a person last decided a call of the session; null = nobody has, or an earlier release wrote the
    -- row.
    decided_at      BIGINT,
    -- The waiting calls: the model request that asked for them, and the names of their tools (a JSON list).
    -- Null = no call waits, or an earlier release wrote the row.
    batch_turn      BIGINT,
    batch_iteration BIGINT,
    batch_tools     TEXT,
    -- The number of calls that wait for the approval of somebody else than the session's owner, and that a
    -- person with at least this role may decide. Each number includes those before it.
    asks_members    BIGINT  NOT NULL DEFAULT 0,
    asks_admins     BIGINT  NOT NULL DEFAULT 0,
    asks_owners     BIGINT  NOT NULL DEFAULT 0,
    -- When the first of the waiting calls is rejected unless somebody decides it; null = they do not expire,
    -- or no call waits.
    expires_at      BIGINT,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_newest
    ON sessions (tenant, owner, archived, pinned DESC, updated_at DESC, id DESC);
CREATE INDEX sessions_of_family ON sessions (tenant, root) WHERE root IS NOT NULL;
CREATE INDEX sessions_behind ON sessions (tenant, id) WHERE usage_version < version;
CREATE INDEX sessions_given_up ON sessions (delete_at) WHERE delete_at IS NOT NULL;
CREATE INDEX sessions_unindexed ON sessions (updated_at) WHERE indexed < version;
CREATE INDEX sessions_waiting ON sessions (tenant, owner) WHERE waiting > 0;
CREATE INDEX sessions_decided ON sessions (tenant, owner, decided_at) WHERE decided_at IS NOT NULL;
CREATE INDEX sessions_asking ON sessions (tenant, owner) WHERE asks_owners > 0;
CREATE INDEX sessions_expiring ON sessions (expires_at) WHERE expires_at IS NOT NULL;

-- Sessions that their owners let others read, as they were when they were shared.
CREATE TABLE shared_sessions (
    tenant     TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    session    TEXT   NOT NULL,
    -- `tenant`: everyone who is signed in there; `link`: everyone who has the secret.
    audience   TEXT   NOT NULL,
    -- The hash of the secret; null = no secret opens it.
    hash       TEXT   UNIQUE,
    -- The last event that is shown.
    seq        BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Null = it does not expire.
    expires_at BIGINT,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX shared_sessions_of_session ON shared_sessions (tenant, session);

-- The place of each indexed text of a session. The texts themselves are in the journal.
CREATE TABLE texts (
    -- The millisecond and the place within it, so that newest first is the order of the keys.
    id      INTEGER NOT NULL PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    session TEXT    NOT NULL,
    -- 0 is the title.
    seq     BIGINT  NOT NULL,
    part    BIGINT  NOT NULL,
    kind    TEXT    NOT NULL,
    version BIGINT  NOT NULL,
    UNIQUE (tenant, session, seq, part)
);

-- The words that our own tokenizer made, and the ids of owner and session, which contain an underscore. The
-- index stores no text.
CREATE VIRTUAL TABLE texts_index USING fts5 (
    words, content = '', contentless_delete = 1, prefix = '2 3', tokenize = "ascii tokenchars '_'"
);

CREATE TRIGGER texts_leave_index AFTER DELETE ON texts BEGIN
    DELETE FROM texts_index WHERE rowid = OLD.id;
END;

-- Contents of attachments, by their hash within a tenant, so that nobody learns what other tenants have.
CREATE TABLE blobs (
    tenant  TEXT NOT NULL,
    id      TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- The contents that each session holds. A content is deleted with the last session that holds it.
CREATE TABLE attachments (
    tenant     TEXT   NOT NULL,
    session    TEXT   NOT NULL,
    blob       TEXT   NOT NULL,
    -- The metadata, as JSON.
    body       TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, blob),
    FOREIGN KEY (tenant, blob) REFERENCES blobs (tenant, id)
);
CREATE INDEX attachments_of_blob ON attachments (tenant, blob);


-- Sandboxes and their workspaces

-- The session of each sandbox, and what keeps its workspace. The row is written before the workspace is
-- made, so a workspace without a row belongs to nobody.
CREATE TABLE sandboxes (
    tenant  TEXT NOT NULL,
    session TEXT NOT NULL,
    id      TEXT NOT NULL UNIQUE,
    -- `docker/<engine>` or `bubblewrap`.
    keeper  TEXT NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- The history of sessions' workspaces: the changes of each step. The oldest steps are deleted first.
CREATE TABLE workspace_changes (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    -- Counts the steps of a session, from 1.
    number  BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    -- Who or what changed files, as JSON.
    cause   TEXT   NOT NULL,
    -- How many entries changed, as JSON.
    counts  TEXT   NOT NULL,
    -- Each path with its entry before and after, as JSON in gzip.
    changes BLOB   NOT NULL,
    PRIMARY KEY (tenant, session, number)
);

-- All entries of a workspace after one of its steps. Those after later steps follow from the changes.
CREATE TABLE workspace_states (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    number  BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    -- Each path with its entry, as JSON in gzip.
    entries BLOB   NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- Contents of files that workspaces have or had, each once for a session.
CREATE TABLE workspace_contents (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    -- SHA-256 of the content, in hex.
    hash    TEXT   NOT NULL,
    made_at BIGINT NOT NULL,
    -- The size of the file itself.
    bytes   BIGINT NOT NULL,
    -- A byte that says how the rest is stored (0 = as it is, 1 = in gzip), then the rest.
    content BLOB   NOT NULL,
    PRIMARY KEY (tenant, session, hash)
);


-- Model providers

CREATE TABLE providers (
    scope      TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    base_url   TEXT,
    api        TEXT,
    -- A JSON list of names.
    models     TEXT   NOT NULL,
    sealed_key TEXT,
    updated_at BIGINT NOT NULL,
    -- The configured context windows of the models, as JSON; null = none is configured.
    windows    TEXT,
    PRIMARY KEY (scope, id)
);

-- Secrets that configurations refer to.
CREATE TABLE secrets (
    scope      TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    sealed     TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (scope, name)
);

-- The model of new sessions: of one person, or of everybody in the scope, whose `user_id` is empty.
CREATE TABLE model_defaults (
    scope      TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    provider   TEXT   NOT NULL,
    model      TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (scope, user_id)
);

-- How far our counts of tokens are from what a provider reports, by model: numbers, and nobody's text.
CREATE TABLE calibrations (
    scope      TEXT   NOT NULL,
    -- The digest of the provider's kind and address.
    address    TEXT   NOT NULL,
    -- By model, as JSON.
    learned    TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (scope, address)
);

-- How the contexts of a tenant's sessions are compacted, if its admins set that.
CREATE TABLE compaction_defaults (
    tenant     TEXT   NOT NULL PRIMARY KEY,
    -- A list of strategies, as JSON.
    strategies TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);


-- Usage
--
-- Projected from the journals, and kept when a session is deleted, because it was paid for. A row is named by
-- its commit and not by its version: a store that was restored to an earlier state assigns versions again.

-- One row for each attempt of a model request.
CREATE TABLE model_requests (
    tenant                  TEXT    NOT NULL,
    session                 TEXT    NOT NULL,
    commit_id               TEXT    NOT NULL,
    -- The event within the commit.
    place                   BIGINT  NOT NULL,
    at                      BIGINT  NOT NULL,
    -- The owner of the session.
    owner                   TEXT    NOT NULL,
    turn                    BIGINT  NOT NULL,
    iteration               BIGINT  NOT NULL,
    attempt                 BIGINT  NOT NULL,
    -- Whether the attempt became an answer.
    is_answer               BOOLEAN NOT NULL,
    provider                TEXT    NOT NULL,
    model                   TEXT    NOT NULL,
    input_tokens            BIGINT  NOT NULL,
    cached_tokens           BIGINT  NOT NULL,
    cache_write_tokens      BIGINT  NOT NULL,
    cache_write_long_tokens BIGINT  NOT NULL,
    output_tokens           BIGINT  NOT NULL,
    reasoning_tokens        BIGINT  NOT NULL,
    -- Whether we counted the tokens, because the provider reported none.
    is_estimated            BOOLEAN NOT NULL,
    -- Millionths of a US dollar; null = the price was unknown.
    cost                    BIGINT,
    price_version           TEXT,
    -- What the input consists of. Tokens of `input_tokens` that are in no part were not attributed.
    part_system             BIGINT  NOT NULL,
    part_tools              BIGINT  NOT NULL,
    part_history            BIGINT  NOT NULL,
    part_results            BIGINT  NOT NULL,
    part_message            BIGINT  NOT NULL,
    part_attachments        BIGINT  NOT NULL,
    part_reasoning          BIGINT  NOT NULL,
    -- What budgets count for a request whose price was unknown.
    charged                 BIGINT,
    -- What the model was asked for: `turn`, `title`, or `compaction` for a summary of what left the context.
    purpose                 TEXT    NOT NULL DEFAULT 'turn',
    PRIMARY KEY (tenant, session, commit_id, place)
);
CREATE INDEX model_requests_at ON model_requests (tenant, at);
CREATE INDEX model_requests_of_owner ON model_requests (tenant, owner, at);

-- `part_tools` by server.
CREATE TABLE request_tools (
    tenant    TEXT   NOT NULL,
    session   TEXT   NOT NULL,
    commit_id TEXT   NOT NULL,
    place     BIGINT NOT NULL,
    server    TEXT   NOT NULL,
    at        BIGINT NOT NULL,
    owner     TEXT   NOT NULL,
    tokens    BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, commit_id, place, server)
);
CREATE INDEX request_tools_at ON request_tools (tenant, at);

-- One row for each call of a tool that has its result.
CREATE TABLE tool_calls (
    tenant        TEXT   NOT NULL,
    session       TEXT   NOT NULL,
    commit_id     TEXT   NOT NULL,
    place         BIGINT NOT NULL,
    at            BIGINT NOT NULL,
    owner         TEXT   NOT NULL,
    server        TEXT   NOT NULL,
    tool          TEXT   NOT NULL,
    status        TEXT   NOT NULL,
    duration_ms   BIGINT NOT NULL,
    -- Estimated.
    result_tokens BIGINT NOT NULL,
    -- The rule that decided the call, if one did. The rows of a rule say how often and when it was used.
    rule          TEXT,
    PRIMARY KEY (tenant, session, commit_id, place)
);
CREATE INDEX tool_calls_at ON tool_calls (tenant, at);
CREATE INDEX tool_calls_of_rule ON tool_calls (tenant, rule, at) WHERE rule IS NOT NULL;


-- Budgets
--
-- What may be spent, what running requests have reserved, and what was spent on each day. Amounts are
-- millionths of a US dollar, days are days of UTC since 1970.

-- The budgets that admins and people set. Those of the settings are not stored.
CREATE TABLE budgets (
    tenant       TEXT    NOT NULL,
    -- `own`, `session`, `person` or `tenant`.
    level        TEXT    NOT NULL,
    -- The session or person; empty = each one of the tenant, or the tenant itself.
    subject      TEXT    NOT NULL,
    -- `whole`, `day` or `month`.
    period       TEXT    NOT NULL,
    amount       BIGINT  NOT NULL,
    -- The share of the amount at which people are warned.
    warn_percent BIGINT  NOT NULL,
    -- Whether requests beyond the amount are refused.
    is_hard      BOOLEAN NOT NULL,
    set_by       TEXT    NOT NULL,
    set_at       BIGINT  NOT NULL,
    PRIMARY KEY (tenant, level, subject, period)
);

-- What a running model request has reserved of every budget that applies to it. A row is deleted when the
-- usage of its request is written, and no longer counts once its lease is over.
CREATE TABLE budget_reservations (
    tenant    TEXT   NOT NULL,
    session   TEXT   NOT NULL,
    turn      BIGINT NOT NULL,
    iteration BIGINT NOT NULL,
    owner     TEXT   NOT NULL,
    amount    BIGINT NOT NULL,
    -- The end of the lease.
    until     BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, turn, iteration)
);

-- The budgets of which people were warned, once in each period.
CREATE TABLE budget_warnings (
    tenant  TEXT   NOT NULL,
    level   TEXT   NOT NULL,
    subject TEXT   NOT NULL,
    period  TEXT   NOT NULL,
    -- The first day of the period, or the turn.
    since   BIGINT NOT NULL,
    PRIMARY KEY (tenant, level, subject, period, since)
);

-- The sums of `model_requests` by day: of each person, and of the tenant, whose `owner` is empty.
CREATE TABLE daily_spend (
    tenant TEXT   NOT NULL,
    owner  TEXT   NOT NULL,
    day    BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner, day)
);

-- A request is counted together with its row, whatever writes the row, and so exactly once. The tenant's sum
-- is changed first: transactions that count for one tenant queue there, and never lock each other crosswise.
CREATE TRIGGER spend_of_request AFTER INSERT ON model_requests
WHEN COALESCE(NEW.cost, NEW.charged, 0) > 0
BEGIN
    INSERT INTO daily_spend (tenant, owner, day, amount)
        VALUES (NEW.tenant, '', NEW.at / 86400000, COALESCE(NEW.cost, NEW.charged)),
            (NEW.tenant, NEW.owner, NEW.at / 86400000, COALESCE(NEW.cost, NEW.charged))
        ON CONFLICT (tenant, owner, day) DO UPDATE SET amount = amount + excluded.amount;
END;
CREATE TRIGGER spend_of_gone_request AFTER DELETE ON model_requests
WHEN COALESCE(OLD.cost, OLD.charged, 0) > 0
BEGIN
    UPDATE daily_spend SET amount = amount - COALESCE(OLD.cost, OLD.charged)
        WHERE tenant = OLD.tenant AND owner IN (OLD.owner, '') AND day = OLD.at / 86400000;
END;


-- Decisions on calls

-- The rules by which people and admins decide calls in advance. The rules of one session are in its journal.
CREATE TABLE rules (
    tenant     TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    -- The person to whose sessions the rule applies; empty = the sessions of everybody in the tenant.
    owner      TEXT   NOT NULL,
    -- The rule itself, as JSON.
    body       TEXT   NOT NULL,
    created_by TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX rules_of_owner ON rules (tenant, owner);

-- Complete results of dry runs while their calls wait: an approval may take the result instead of running the
-- call.
CREATE TABLE dry_run_results (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    call    TEXT   NOT NULL,
    made_at BIGINT NOT NULL,
    -- SHA-256 of the content, in hex.
    digest  TEXT   NOT NULL,
    -- A byte that says how the rest is stored, as in `workspace_contents`, then the rest.
    content BLOB   NOT NULL,
    PRIMARY KEY (tenant, session, call)
);


-- Notifications

-- Addresses to which tenants want a message when calls wait.
CREATE TABLE webhooks (
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    -- Empty if `sealed_url` is set.
    url           TEXT    NOT NULL,
    -- The key that signs the messages, sealed.
    secret        TEXT    NOT NULL,
    -- Whether it also gets a message when calls no longer wait.
    tells_decided BOOLEAN NOT NULL,
    created_at    BIGINT  NOT NULL,
    -- The last attempt: when it was made, the status of the response, and the reason it failed; null = there
    -- was none.
    last_at       BIGINT,
    last_status   BIGINT,
    last_error    TEXT,
    -- Since when every attempt has failed; null = the last one succeeded.
    failing_since BIGINT,
    -- Since when it gets no messages, because it failed for too long.
    disabled_at   BIGINT,
    -- The address, which may contain a secret. Null = an earlier release wrote the row; the next start seals
    -- it.
    sealed_url    TEXT,
    PRIMARY KEY (tenant, id)
);

-- The outbox: the messages to send, each of a batch once to each target.
CREATE TABLE notifications (
    tenant        TEXT    NOT NULL,
    -- A webhook, or the person who gets a mail.
    target        TEXT    NOT NULL,
    -- `waiting` or `decided`.
    event         TEXT    NOT NULL,
    -- The batch: the calls of one model request.
    session       TEXT    NOT NULL,
    turn          BIGINT  NOT NULL,
    iteration     BIGINT  NOT NULL,
    is_mail       BOOLEAN NOT NULL,
    owner         TEXT    NOT NULL,
    title         TEXT    NOT NULL,
    tools         TEXT    NOT NULL,
    calls         BIGINT  NOT NULL,
    waiting_since BIGINT  NOT NULL,
    -- When the event happened.
    at            BIGINT  NOT NULL,
    -- Of `waiting`: when the batch was seen to wait no longer; null = it waits.
    decided_at    BIGINT,
    -- When the next attempt is due. A gateway that makes an attempt holds the row until `lease_until`.
    due_at        BIGINT  NOT NULL,
    lease_until   BIGINT  NOT NULL DEFAULT 0,
    attempts      BIGINT  NOT NULL DEFAULT 0,
    -- Null = not done yet.
    done_at       BIGINT,
    -- When the first call of the batch is rejected unless somebody decides it; null = they do not expire.
    expires_at    BIGINT,
    PRIMARY KEY (tenant, target, event, session, turn, iteration)
);
-- The messages to send, by target.
CREATE INDEX notifications_due ON notifications (tenant, target, due_at) WHERE done_at IS NULL;
-- The batches that waited when they were last checked.
CREATE INDEX notifications_open ON notifications (tenant, session)
    WHERE event = 'waiting' AND decided_at IS NULL;
CREATE INDEX notifications_of_session ON notifications (tenant, session);


-- MCP servers

-- The servers that tenants and their people added.
CREATE TABLE mcp_servers (
    tenant     TEXT   NOT NULL REFERENCES tenants (id),
    name       TEXT   NOT NULL,
    -- JSON, as `/api/mcp` spells it.
    config     TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    -- The person who alone can use the server; null = everybody in the tenant can.
    owner      TEXT,
    -- The private texts of the configuration by field, which may be or contain secrets, as JSON. Null = an
    -- earlier release wrote the row; the next start seals it.
    sealed     TEXT,
    PRIMARY KEY (tenant, name)
);

-- The tools that servers offered, by a hash that the reader computes. The row is named by its content, so it
-- has no tenant.
CREATE TABLE tool_definitions (
    hash  TEXT NOT NULL PRIMARY KEY,
    -- A JSON list of tools.
    tools TEXT NOT NULL
);

-- The resources and prompts that servers offered, under the hash of their tools, and so without a tenant.
CREATE TABLE server_offers (
    hash  TEXT NOT NULL PRIMARY KEY,
    -- A JSON object.
    offer TEXT NOT NULL
);

-- Each change of what a server offered a tenant; an unchanged list adds no row.
CREATE TABLE tool_definition_history (
    tenant     TEXT   NOT NULL,
    server     TEXT   NOT NULL,
    first_seen BIGINT NOT NULL,
    hash       TEXT   NOT NULL,
    PRIMARY KEY (tenant, server, first_seen)
);

-- Each definition of a tool that a tenant was offered, and when it was first seen after another definition.
CREATE TABLE tool_versions (
    tenant     TEXT   NOT NULL,
    server     TEXT   NOT NULL,
    tool       TEXT   NOT NULL,
    first_seen BIGINT NOT NULL,
    hash       TEXT   NOT NULL,
    -- A JSON object.
    definition TEXT   NOT NULL,
    PRIMARY KEY (tenant, server, tool, first_seen)
);

CREATE TABLE mcp_tool_settings (
    tenant     TEXT    NOT NULL,
    server     TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    -- `ask`, `allow` or `deny`.
    effect     TEXT    NOT NULL,
    PRIMARY KEY (tenant, server, tool)
);

-- The grants of people at remote MCP servers (OAuth), each for themselves.
CREATE TABLE mcp_grants (
    -- The scope of the server.
    scope        TEXT   NOT NULL,
    server       TEXT   NOT NULL,
    tenant       TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    -- The tokens and their owner, sealed; null = the person is not connected.
    sealed       TEXT,
    -- The OAuth scopes that were granted, separated by spaces.
    scopes       TEXT   NOT NULL,
    connected_at BIGINT,
    -- Counts the tokens, so that each refresh token is used once.
    version      BIGINT NOT NULL,
    -- Who renews the tokens of this version, and until when nobody else may.
    lease        TEXT,
    lease_until  BIGINT,
    -- Since when the server asks for the person's authorization, and its challenge, as JSON.
    needed_since BIGINT,
    challenge    TEXT,
    PRIMARY KEY (scope, server, tenant, user_id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX mcp_grants_of_user ON mcp_grants (tenant, user_id);

-- People who are at an authorization server: each of its answers counts once, at any gateway.
CREATE TABLE mcp_authorizations (
    -- The hash of the `state` parameter.
    hash       TEXT   NOT NULL PRIMARY KEY,
    tenant     TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    scope      TEXT   NOT NULL,
    server     TEXT   NOT NULL,
    -- What is needed when the answer comes, sealed.
    sealed     TEXT   NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX mcp_authorizations_ended ON mcp_authorizations (expires_at);

-- Our client registrations at authorization servers.
CREATE TABLE mcp_clients (
    scope      TEXT   NOT NULL,
    -- The hash of the issuer, its endpoints and our redirect address.
    hash       TEXT   NOT NULL,
    sealed     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (scope, hash)
);

-- Installations of the packages of MCP servers, one for each server.
CREATE TABLE package_installations (
    scope         TEXT   NOT NULL,
    server        TEXT   NOT NULL,
    -- What was requested, the progress, and the result (JSON).
    body          TEXT   NOT NULL,
    -- The packages that were installed, with their hashes: with them the same is installed again. Null = not
    -- known yet.
    pins          TEXT,
    -- The same of a newer version that is not in use yet.
    next_pins     TEXT,
    -- Counts the changes: a change is refused if the row was changed since it was read.
    revision      BIGINT NOT NULL,
    -- The gateway that installs, and until when other gateways leave the work to it.
    lease_gateway TEXT,
    lease_until   BIGINT NOT NULL,
    PRIMARY KEY (scope, server)
);

-- Workspaces with an installed package, each at one engine or on one machine.
CREATE TABLE package_volumes (
    -- The sandbox whose workspace it is.
    sandbox TEXT NOT NULL PRIMARY KEY,
    -- The engine that keeps the workspace.
    engine  TEXT NOT NULL,
    scope   TEXT NOT NULL,
    server  TEXT NOT NULL,
    -- The hash of everything that was installed; empty during the installation.
    content TEXT NOT NULL,
    -- The gateway that made it.
    gateway TEXT NOT NULL
);
CREATE INDEX package_volumes_of_server ON package_volumes (scope, server);

-- Bundles of MCP servers (`.mcpb`) that admins of a tenant uploaded.
CREATE TABLE mcp_bundles (
    tenant     TEXT   NOT NULL,
    -- SHA-256 of the file, in hex.
    sha256     TEXT   NOT NULL,
    -- The facts that were read from its manifest (JSON).
    facts      TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    created_by TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    -- When somebody last looked at it or used it. A bundle that no server uses is removed some time after.
    used_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant, sha256)
);

-- The files of the bundles, in parts of 1 MiB.
CREATE TABLE mcp_bundle_parts (
    tenant  TEXT   NOT NULL,
    sha256  TEXT   NOT NULL,
    -- From 0.
    part    BIGINT NOT NULL,
    content BLOB   NOT NULL,
    PRIMARY KEY (tenant, sha256, part)
);


-- Skills

-- Skills: folders with a `SKILL.md` that tenants and their people keep for their sessions.
CREATE TABLE skills (
    tenant      TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    -- The person for whose sessions it is; empty = for the sessions of everybody in the tenant.
    owner       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    description TEXT    NOT NULL,
    -- SHA-256 of its files, in hex.
    hash        TEXT    NOT NULL,
    -- The front matter other than name and description, and the list of its files, as JSON.
    facts       TEXT    NOT NULL,
    is_enabled  BOOLEAN NOT NULL,
    -- Counts its replacements, from 1.
    version     BIGINT  NOT NULL,
    created_by  TEXT    NOT NULL,
    created_at  BIGINT  NOT NULL,
    updated_by  TEXT    NOT NULL,
    updated_at  BIGINT  NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX skills_of_owner ON skills (tenant, owner, name);

-- The files, as an archive: once in a tenant, however many skills have them.
CREATE TABLE skill_bundles (
    tenant  TEXT NOT NULL,
    hash    TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (tenant, hash)
);

-- Skills that a person switched off for themselves.
CREATE TABLE skill_switches (
    tenant TEXT NOT NULL,
    person TEXT NOT NULL,
    skill  TEXT NOT NULL,
    PRIMARY KEY (tenant, person, skill)
);
