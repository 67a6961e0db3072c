-- The rules and budgets of groups.

-- The group to whose members the rule applies; empty = it is of a person, or of everybody in the tenant.
ALTER TABLE rules ADD COLUMN group_id TEXT COLLATE "C" NOT NULL DEFAULT '';

-- What people spent as members of each group, by day. A request counts for the groups in which its person is when
-- it is written down. Amounts are millionths of a US dollar, days are days of UTC since 1970.
CREATE TABLE group_spend (
    tenant   TEXT COLLATE "C" NOT NULL,
    group_id TEXT COLLATE "C" NOT NULL,
    day      BIGINT           NOT NULL,
    owner    TEXT COLLATE "C" NOT NULL,
    amount   BIGINT           NOT NULL,
    PRIMARY KEY (tenant, group_id, day, owner)
);
INSERT INTO group_spend (tenant, group_id, day, owner, amount)
    SELECT s.tenant, m.group_id, s.day, s.owner, s.amount FROM daily_spend s
    JOIN group_members m ON m.tenant = s.tenant AND m.user_id = s.owner;

CREATE FUNCTION count_group_spend() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO group_spend (tenant, group_id, day, owner, amount)
        SELECT NEW.tenant, m.group_id, NEW.at / 86400000, NEW.owner, COALESCE(NEW.cost, NEW.charged)
        FROM group_members m WHERE m.tenant = NEW.tenant AND m.user_id = NEW.owner
        ON CONFLICT (tenant, group_id, day, owner)
        DO UPDATE SET amount = group_spend.amount + excluded.amount;
    RETURN NULL;
END;
$$;
CREATE TRIGGER spend_of_request_by_group AFTER INSERT ON model_requests FOR EACH ROW
    WHEN (COALESCE(NEW.cost, NEW.charged, 0) > 0) EXECUTE FUNCTION count_group_spend();
