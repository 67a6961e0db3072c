//! Stores budgets and reports their standing: what was spent, and what running model requests have reserved.

mod payer;
mod reserving;
mod row;

pub use payer::Payer;
pub use reserving::ReservationOutcome;
pub(in crate::records) use reserving::settle;

use self::row::{ListedRow, StandingRow};
use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, Statement, args};
use super::super::versions::RecordName;
use super::tenant_id;
use sepal_core::domain::{
    Budget, BudgetLevel, BudgetPeriod, BudgetStanding, Days, TenantId, Timestamp, UserId, in_force,
};

/// The most budgets listed for one tenant.
const MAX_ROWS: i64 = 1_000;

/// Selects the budgets set in a tenant, each with its standing. A budget that applies to each person or each
/// session, and one for each member of a group, has no total.
const LISTED: &str = "SELECT b.level, b.subject, b.period, b.amount, b.warn_percent, b.is_hard, \
    b.set_by, b.set_at, CAST(CASE \
    WHEN b.level = 'tenant' OR (b.level = 'person' AND b.subject <> '') THEN \
    (SELECT COALESCE(SUM(s.amount), 0) FROM daily_spend s WHERE s.tenant = $1 \
    AND s.owner = b.subject AND s.day >= CASE b.period WHEN 'day' THEN $2 ELSE $3 END) \
    WHEN b.level = 'group_pooled' THEN \
    (SELECT COALESCE(SUM(s.amount), 0) FROM group_spend s WHERE s.tenant = $1 \
    AND s.group_id = b.subject AND s.day >= CASE b.period WHEN 'day' THEN $2 ELSE $3 END) \
    WHEN b.level = 'group_each' THEN 0 \
    WHEN b.subject <> '' THEN \
    (SELECT COALESCE(SUM(COALESCE(m.cost, m.charged, 0)), 0) FROM model_requests m \
    WHERE m.tenant = $1 AND m.session = b.subject AND m.at >= COALESCE((SELECT c.created_at \
    FROM sessions c WHERE c.tenant = $1 AND c.id = b.subject), 0)) ELSE 0 END AS BIGINT) AS used, \
    CAST(CASE WHEN b.level <> 'tenant' AND b.subject = '' THEN 0 \
    WHEN b.level = 'group_each' THEN 0 ELSE \
    (SELECT COALESCE(SUM(r.amount), 0) FROM budget_reservations r WHERE r.tenant = $1 \
    AND r.until > $4 AND (b.level = 'tenant' OR (b.level = 'person' AND r.owner = b.subject) \
    OR (b.level = 'group_pooled' AND EXISTS (SELECT 1 FROM group_members m WHERE m.tenant = $1 \
    AND m.group_id = b.subject AND m.user_id = r.owner)) \
    OR r.session = b.subject)) END AS BIGINT) AS reserved, \
    COALESCE(users.name, g.name) AS name FROM budgets b \
    LEFT JOIN users ON users.tenant = $1 AND users.id = b.subject AND b.level = 'person' \
    LEFT JOIN user_groups g ON g.tenant = $1 AND g.id = b.subject \
    AND b.level IN ('group_each', 'group_pooled') \
    WHERE b.tenant = $1 AND b.level <> 'own' \
    ORDER BY b.level DESC, COALESCE(users.name, g.name), b.subject, b.period LIMIT $5";

/// A budget that was set, with its standing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedBudget {
    pub standing: BudgetStanding,
    /// The name of the person or the group, if the budget is for one.
    pub name: Option<String>,
    pub set_by: String,
    pub set_at: Timestamp,
}

/// Access to the stored budgets.
pub struct Budgets<'s> {
    db: &'s Db,
}

impl<'s> Budgets<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The tenants that have set a budget.
    pub async fn tenants(&self) -> Result<Vec<TenantId>, Error> {
        let sql = "SELECT DISTINCT tenant FROM budgets";
        let rows: Vec<(String,)> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter()
            .map(|(tenant,)| tenant_id(tenant))
            .collect()
    }

    /// The budgets set in a tenant, each with its current standing.
    pub async fn list(
        &self,
        tenant: &TenantId,
        now: Timestamp,
    ) -> Result<Vec<ListedBudget>, Error> {
        let days = Days::of(now);
        let values = args![tenant.as_str(), days.today, days.month, now.0, MAX_ROWS];
        let rows: Vec<ListedRow> = self.db.fetch_all(LISTED, values).await?;
        rows.into_iter().map(ListedRow::into_listed).collect()
    }

    /// The standings of the budgets that apply to a person's session, including those of the settings.
    /// Budgets of a turn in the settings are left out.
    pub async fn standings(
        &self,
        reader: &Payer,
        settings: &[Budget],
        now: Timestamp,
    ) -> Result<Vec<BudgetStanding>, Error> {
        let settings: Vec<Budget> = settings
            .iter()
            .filter(|budget| budget.level != BudgetLevel::Turn)
            .cloned()
            .collect();
        let values = row::args_of_standings(reader, &settings, now);
        let rows: Vec<StandingRow> = self.db.fetch_all(row::STANDINGS, values).await?;
        let standings = rows.into_iter().map(StandingRow::into_standing);
        Ok(in_force(standings.collect::<Result<_, _>>()?))
    }

    /// Sets a budget. People who were warned about the previous one are warned about this one again.
    pub async fn put(
        &self,
        tenant: &TenantId,
        budget: &Budget,
        by: &UserId,
        at: Timestamp,
    ) -> Result<(), Error> {
        let put = Statement::new(
            "INSERT INTO budgets (tenant, level, subject, period, amount, warn_percent, is_hard, \
             set_by, set_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
             ON CONFLICT (tenant, level, subject, period) DO UPDATE SET amount = excluded.amount, \
             warn_percent = excluded.warn_percent, is_hard = excluded.is_hard, \
             set_by = excluded.set_by, set_at = excluded.set_at",
            args![
                tenant.as_str(),
                budget.level.as_str(),
                budget.subject.as_str(),
                budget.period.as_str(),
                row::int(budget.limit.0),
                i64::from(budget.warn_percent),
                budget.is_hard,
                by.as_str(),
                at.0
            ],
        )
        .recorded(
            of(
                ActName::BudgetSet,
                tenant,
                (budget.level, budget.subject.as_str(), budget.period),
            )
            .detail("limitMicroUsd", row::int(budget.limit.0))
            .detail("warnPercent", budget.warn_percent)
            .detail("isHard", budget.is_hard),
        )
        .changing(RecordName::budgets(tenant));
        let whose = (budget.level, budget.subject.as_str(), budget.period);
        self.db
            .execute_all(vec![put, forget_warnings(tenant, whose)])
            .await?;
        Ok(())
    }

    /// Deletes a budget. Returns true if it existed.
    pub async fn delete(
        &self,
        tenant: &TenantId,
        whose: (BudgetLevel, &str, BudgetPeriod),
    ) -> Result<bool, Error> {
        let (level, subject, period) = whose;
        let sql = "DELETE FROM budgets WHERE tenant = $1 AND level = $2 AND subject = $3 \
                   AND period = $4";
        let values = args![tenant.as_str(), level.as_str(), subject, period.as_str()];
        let act = of(ActName::BudgetRemoved, tenant, whose);
        let deleted = Statement::required(sql, values)
            .recorded(act)
            .changing(RecordName::budgets(tenant));
        let statements = vec![deleted, forget_warnings(tenant, whose)];
        Ok(self.db.execute_all(statements).await?.is_some())
    }
}

/// An act on a budget.
fn of(
    name: ActName,
    tenant: &TenantId,
    (level, subject, period): (BudgetLevel, &str, BudgetPeriod),
) -> Act {
    Act::new(name, tenant, "budget", level.as_str())
        .detail("subject", subject)
        .detail("period", period.as_str())
}

/// Forgets the warnings of a budget. Warnings of a budget that applies to each person or session name that
/// person or session, so all of its level and period are deleted.
fn forget_warnings(
    tenant: &TenantId,
    (level, subject, period): (BudgetLevel, &str, BudgetPeriod),
) -> Statement {
    Statement::new(
        "DELETE FROM budget_warnings WHERE tenant = $1 AND level = $2 \
         AND ($3 = '' OR subject = $3 OR subject LIKE $3 || ' %') AND period = $4",
        args![tenant.as_str(), level.as_str(), subject, period.as_str()],
    )
}
