-- What may be spent, what running requests hold of it, and what was spent by day. Amounts are
-- millionths of a US dollar, days are those of UTC since 1970.

-- What admins and people set; what the settings say is not here.
CREATE TABLE budgets (
    tenant       TEXT    NOT NULL,
    -- `own`, `session`, `person` or `tenant`.
    level        TEXT    NOT NULL,
    -- The session or person; empty = each of the tenant, or the tenant itself.
    subject      TEXT    NOT NULL,
    -- `whole`, `day` or `month`.
    period       TEXT    NOT NULL,
    amount       BIGINT  NOT NULL,
    -- At which part of it people are warned.
    warn_percent BIGINT  NOT NULL,
    -- Whether what goes beyond it is refused.
    is_hard      BOOLEAN NOT NULL,
    set_by       TEXT    NOT NULL,
    set_at       BIGINT  NOT NULL,
    PRIMARY KEY (tenant, level, subject, period)
);

-- What a running model request holds of every budget that is in force for it. A row goes with the
-- rows of what the request used, or counts no more once its lease is over.
CREATE TABLE budget_reservations (
    tenant    TEXT   NOT NULL,
    session   TEXT   NOT NULL,
    turn      BIGINT NOT NULL,
    iteration BIGINT NOT NULL,
    owner     TEXT   NOT NULL,
    amount    BIGINT NOT NULL,
    -- When the lease is over.
    until     BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, turn, iteration)
);

-- Of which budgets people were warned, once in each period.
CREATE TABLE budget_warnings (
    tenant  TEXT   NOT NULL,
    level   TEXT   NOT NULL,
    subject TEXT   NOT NULL,
    period  TEXT   NOT NULL,
    -- The first day of the period, or the turn.
    since   BIGINT NOT NULL,
    PRIMARY KEY (tenant, level, subject, period, since)
);

-- What budgets count for a request whose price was unknown.
ALTER TABLE model_requests ADD COLUMN charged BIGINT;

-- The sums of `model_requests` by day: of each person, and of the tenant, whose `owner` is empty.
CREATE TABLE daily_spend (
    tenant TEXT   NOT NULL,
    owner  TEXT   NOT NULL,
    day    BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner, day)
);
INSERT INTO daily_spend (tenant, owner, day, amount)
    SELECT tenant, owner, at / 86400000, CAST(SUM(cost) AS BIGINT) FROM model_requests
    WHERE cost > 0 GROUP BY tenant, owner, at / 86400000;
INSERT INTO daily_spend (tenant, owner, day, amount)
    SELECT tenant, '', day, CAST(SUM(amount) AS BIGINT) FROM daily_spend GROUP BY tenant, day;

-- A request is counted with its row, by whichever way that comes, and so exactly once. The tenant's sum
-- first: whoever counts for a tenant waits there, and not crosswise.
CREATE FUNCTION count_spend() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE daily_spend SET amount = amount - COALESCE(OLD.cost, OLD.charged)
            WHERE tenant = OLD.tenant AND owner IN (OLD.owner, '') AND day = OLD.at / 86400000;
        RETURN NULL;
    END IF;
    INSERT INTO daily_spend (tenant, owner, day, amount)
        VALUES (NEW.tenant, '', NEW.at / 86400000, COALESCE(NEW.cost, NEW.charged)),
            (NEW.tenant, NEW.owner, NEW.at / 86400000, COALESCE(NEW.cost, NEW.charged))
        ON CONFLICT (tenant, owner, day)
        DO UPDATE SET amount = daily_spend.amount + excluded.amount;
    RETURN NULL;
END;
$$;
CREATE TRIGGER spend_of_request AFTER INSERT ON model_requests FOR EACH ROW
    WHEN (COALESCE(NEW.cost, NEW.charged, 0) > 0) EXECUTE FUNCTION count_spend();
CREATE TRIGGER spend_of_gone_request AFTER DELETE ON model_requests FOR EACH ROW
    WHEN (COALESCE(OLD.cost, OLD.charged, 0) > 0) EXECUTE FUNCTION count_spend();
