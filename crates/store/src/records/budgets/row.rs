//! Reads the standings of budgets in one statement: the sums of spent and reserved amounts at one moment.

use super::super::super::Error;
use super::super::super::db::{Arg, args};
use super::ListedBudget;
use super::payer::Payer;
use sepal_core::domain::{
    Budget, BudgetLevel, BudgetPeriod, BudgetSource, BudgetStanding, Days, MicroUsd, Timestamp,
    WARN_PERCENT,
};

/// Selects every budget that may apply to one model request, with its standing.
pub(super) const STANDINGS: &str = "SELECT b.level, b.subject, b.period, b.amount, \
    b.warn_percent, b.is_hard, b.origin, CAST(CASE b.level \
    WHEN 'turn' THEN (SELECT COALESCE(SUM(COALESCE(m.cost, m.charged, 0)), 0) \
    FROM model_requests m WHERE m.tenant = $1 AND m.session = $2 AND m.turn = $4 \
    AND m.at >= $12) WHEN 'person' THEN (SELECT COALESCE(SUM(s.amount), 0) FROM daily_spend s \
    WHERE s.tenant = $1 AND s.owner = $3 \
    AND s.day >= CASE b.period WHEN 'day' THEN $5 ELSE $6 END) \
    WHEN 'group_each' THEN (SELECT COALESCE(SUM(s.amount), 0) FROM group_spend s \
    WHERE s.tenant = $1 AND s.group_id = b.subject AND s.owner = $3 \
    AND s.day >= CASE b.period WHEN 'day' THEN $5 ELSE $6 END) \
    WHEN 'group_pooled' THEN (SELECT COALESCE(SUM(s.amount), 0) FROM group_spend s \
    WHERE s.tenant = $1 AND s.group_id = b.subject \
    AND s.day >= CASE b.period WHEN 'day' THEN $5 ELSE $6 END) \
    WHEN 'tenant' THEN (SELECT COALESCE(SUM(s.amount), 0) FROM daily_spend s \
    WHERE s.tenant = $1 AND s.owner = '' \
    AND s.day >= CASE b.period WHEN 'day' THEN $5 ELSE $6 END) \
    ELSE (SELECT COALESCE(SUM(COALESCE(m.cost, m.charged, 0)), 0) FROM model_requests m \
    WHERE m.tenant = $1 AND m.session = $2 AND m.at >= $13) END AS BIGINT) AS used, \
    CAST((SELECT COALESCE(SUM(r.amount), 0) FROM budget_reservations r WHERE r.tenant = $1 \
    AND r.until > $7 AND NOT (r.session = $2 AND r.turn = $4 AND r.iteration = $8) \
    AND (b.level = 'tenant' OR (b.level IN ('person', 'group_each') AND r.owner = $3) \
    OR (b.level = 'group_pooled' AND EXISTS (SELECT 1 FROM group_members m \
    WHERE m.tenant = $1 AND m.group_id = b.subject AND m.user_id = r.owner)) \
    OR (b.level = 'turn' AND r.session = $2 AND r.turn = $4) \
    OR (b.level IN ('own', 'assistant', 'session') AND r.session = $2))) AS BIGINT) AS reserved, \
    CASE WHEN w.tenant IS NULL THEN FALSE ELSE TRUE END AS is_warned, g.name AS group_name \
    FROM (SELECT level, subject, period, amount, warn_percent, is_hard, \
    CASE WHEN level <> 'tenant' AND subject = '' THEN 'each' ELSE 'subject' END AS origin \
    FROM budgets WHERE tenant = $1 AND (level = 'tenant' \
    OR (level = 'person' AND subject IN ($3, '')) \
    OR (level IN ('group_each', 'group_pooled') AND subject IN (SELECT m.group_id \
    FROM group_members m WHERE m.tenant = $1 AND m.user_id = $3)) \
    OR (level IN ('own', 'session') AND subject IN ($2, ''))) \
    UNION ALL SELECT 'turn', '', 'whole', CAST($9 AS BIGINT), $11, TRUE, 'settings' \
    UNION ALL SELECT 'session', '', 'whole', CAST($10 AS BIGINT), $11, TRUE, 'settings' \
    UNION ALL SELECT 'assistant', '', 'whole', CAST($14 AS BIGINT), $15, \
    CASE WHEN $16 = CAST(1 AS BIGINT) THEN TRUE ELSE FALSE END, 'settings') AS b \
    LEFT JOIN budget_warnings w ON w.tenant = $1 AND w.level = b.level AND w.period = b.period \
    AND w.subject = CASE b.level WHEN 'tenant' THEN '' WHEN 'person' THEN $3 \
    WHEN 'group_each' THEN b.subject || ' ' || $3 WHEN 'group_pooled' THEN b.subject ELSE $2 END \
    AND w.since = CASE WHEN b.level = 'turn' THEN $4 WHEN b.period = 'day' THEN $5 \
    WHEN b.period = 'month' THEN $6 ELSE 0 END \
    LEFT JOIN user_groups g ON g.tenant = $1 AND g.id = b.subject \
    AND b.level IN ('group_each', 'group_pooled') \
    WHERE b.amount IS NOT NULL";

/// The arguments of [`STANDINGS`].
pub(super) fn args_of_standings(payer: &Payer, settings: &[Budget], now: Timestamp) -> Vec<Arg> {
    let days = Days::of(now);
    let limit = |level| {
        let budget = settings.iter().find(|budget| budget.level == level);
        Arg::Int(budget.map(|budget| int(budget.limit.0)))
    };
    args![
        payer.key.tenant.as_str(),
        payer.key.session.as_str(),
        payer.owner.as_str(),
        payer.turn(),
        days.today,
        days.month,
        now.0,
        payer.iteration(),
        limit(BudgetLevel::Turn),
        limit(BudgetLevel::Session),
        i64::from(WARN_PERCENT),
        payer.turn_since.0,
        payer.session_since.0,
        Arg::Int(payer.assistant.map(|budget| int(budget.limit.0))),
        payer
            .assistant
            .map_or(0, |budget| i64::from(budget.warn_percent)),
        i64::from(payer.assistant.is_some_and(|budget| budget.is_hard))
    ]
}

/// The subject and the period under which a warning about a budget is recorded.
pub(super) fn warned_as(budget: &Budget, payer: &Payer, now: Timestamp) -> (String, i64) {
    let days = Days::of(now);
    let subject = match budget.level {
        BudgetLevel::Tenant => String::new(),
        BudgetLevel::Person => payer.owner.to_string(),
        BudgetLevel::GroupPooled => budget.subject.clone(),
        BudgetLevel::GroupEach => format!("{} {}", budget.subject, payer.owner),
        BudgetLevel::Turn | BudgetLevel::Own | BudgetLevel::Assistant | BudgetLevel::Session => {
            payer.key.session.to_string()
        }
    };
    let since = match (budget.level, budget.period) {
        (BudgetLevel::Turn, _) => payer.turn(),
        (_, BudgetPeriod::Day) => days.today,
        (_, BudgetPeriod::Month) => days.month,
        (_, BudgetPeriod::Whole) => 0,
    };
    (subject, since)
}

/// Converts an amount or a count to the integer type of the database.
pub(super) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn amount(kept: i64) -> MicroUsd {
    MicroUsd(u64::try_from(kept).unwrap_or(0))
}

/// The columns that define a budget.
#[derive(sqlx_macros::FromRow)]
struct Columns {
    level: String,
    subject: String,
    period: String,
    amount: i64,
    warn_percent: i64,
    is_hard: bool,
}

impl Columns {
    fn into_budget(self) -> Result<Budget, Error> {
        let level = BudgetLevel::parse(&self.level);
        let period = BudgetPeriod::parse(&self.period);
        Ok(Budget {
            level: level.ok_or_else(|| Error::corrupt("level of a budget", self.level))?,
            subject: self.subject,
            period: period.ok_or_else(|| Error::corrupt("period of a budget", self.period))?,
            limit: amount(self.amount),
            warn_percent: u8::try_from(self.warn_percent).unwrap_or(u8::MAX),
            is_hard: self.is_hard,
        })
    }
}

/// A row of [`STANDINGS`].
#[derive(sqlx_macros::FromRow)]
pub(super) struct StandingRow {
    #[sqlx(flatten)]
    columns: Columns,
    origin: String,
    used: i64,
    reserved: i64,
    is_warned: bool,
    group_name: Option<String>,
}

impl StandingRow {
    pub(super) fn into_standing(self) -> Result<BudgetStanding, Error> {
        let source = match self.origin.as_str() {
            "subject" => BudgetSource::Subject,
            "each" => BudgetSource::Each,
            _ => BudgetSource::Settings,
        };
        Ok(BudgetStanding {
            budget: self.columns.into_budget()?,
            source,
            used: amount(self.used),
            reserved: amount(self.reserved),
            is_warned: self.is_warned,
            group: self.group_name,
        })
    }
}

/// A row of the list of budgets.
#[derive(sqlx_macros::FromRow)]
pub(super) struct ListedRow {
    #[sqlx(flatten)]
    columns: Columns,
    set_by: String,
    set_at: i64,
    used: i64,
    reserved: i64,
    name: Option<String>,
}

impl ListedRow {
    pub(super) fn into_listed(self) -> Result<ListedBudget, Error> {
        let budget = self.columns.into_budget()?;
        let is_of_group = budget.level.is_of_group();
        let is_for_each = budget.level == BudgetLevel::GroupEach
            || (budget.subject.is_empty() && budget.level != BudgetLevel::Tenant);
        Ok(ListedBudget {
            standing: BudgetStanding {
                source: if is_for_each {
                    BudgetSource::Each
                } else {
                    BudgetSource::Subject
                },
                budget,
                used: amount(self.used),
                reserved: amount(self.reserved),
                is_warned: false,
                group: self.name.clone().filter(|_| is_of_group),
            },
            name: self.name,
            set_by: self.set_by,
            set_at: Timestamp(self.set_at),
        })
    }
}
