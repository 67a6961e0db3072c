//! Who sees and who sets budgets: people for their own sessions, admins for everybody of their tenant.

use super::Budgets;
use crate::domain::{
    Budget, BudgetLevel, BudgetPeriod, BudgetStanding, Caller, Code, MicroUsd, Role, SessionId,
    SessionKey, Timestamp, UserId, WARN_PERCENT,
};
use crate::session::Refusal;
use crate::store;
use crate::store::clock::now;
use crate::store::records::{Payer, SessionRow};

/// Why budgets are not told or set.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// Not to this caller.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// They cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// How a budget stands, for one who may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetView {
    pub standing: BudgetStanding,
    /// The name of the person, of a person's budget on an admin's list.
    pub name: Option<String>,
    /// When its period is over.
    pub resets_at: Option<Timestamp>,
    /// Whether its sums may be told: what all people spend is for admins.
    pub has_sums: bool,
    /// Whether the caller may set another in its place.
    pub may_change: bool,
}

/// Which budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWhose {
    pub level: BudgetLevel,
    /// A session or a person; none = each, or the tenant.
    pub subject: Option<String>,
    pub period: BudgetPeriod,
}

/// What it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetChange {
    pub limit: MicroUsd,
    /// At which part of it people are warned; none = at the usual one.
    pub warn_percent: Option<u8>,
    pub is_hard: bool,
}

impl Budgets {
    /// The budgets that are in force for the caller, or for a session of theirs.
    pub async fn in_force(
        &self,
        caller: &Caller,
        session: Option<&SessionRow>,
    ) -> Result<Vec<BudgetView>, BudgetError> {
        if !self.has_any(&caller.tenant.id) {
            return Ok(Vec::new());
        }
        let nobody = || SessionKey {
            tenant: caller.tenant.id.clone(),
            session: SessionId::from_bits(0),
        };
        let key = session.map_or_else(nobody, |row| row.key.clone());
        let since = session.map_or(Timestamp(0), |row| row.created_at);
        let reader = Payer::reader(&key, &caller.user.id, since);
        let budgets = self.0.records.budgets();
        let standings = budgets.standings(&reader, &self.0.defaults, now()).await?;
        let is_of_session = |level| matches!(level, BudgetLevel::Own | BudgetLevel::Session);
        let seen = standings
            .into_iter()
            .filter(|standing| session.is_some() || !is_of_session(standing.budget.level));
        Ok(seen.map(|standing| view(caller, standing, None)).collect())
    }

    /// All that was set in the caller's tenant, for its admins; nothing for others.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<BudgetView>, BudgetError> {
        if !is_admin(caller) || !self.has_any(&caller.tenant.id) {
            return Ok(Vec::new());
        }
        let budgets = self.0.records.budgets();
        let listed = budgets.list(&caller.tenant.id, now()).await?;
        let views = listed.into_iter();
        Ok(views
            .map(|listed| view(caller, listed.standing, listed.name))
            .collect())
    }

    /// Sets a budget, from the next model request on.
    pub async fn put(
        &self,
        caller: &Caller,
        whose: &BudgetWhose,
        change: &BudgetChange,
    ) -> Result<(), BudgetError> {
        let subject = self.subject(caller, whose).await?;
        let budget = Budget {
            level: whose.level,
            subject,
            period: whose.period,
            limit: change.limit,
            warn_percent: change.warn_percent.unwrap_or(WARN_PERCENT),
            is_hard: change.is_hard,
        };
        let (tenant, by) = (&caller.tenant.id, (&caller.user.id, now()));
        self.0.records.budgets().put(tenant, &budget, by).await?;
        self.note(tenant);
        tracing::info!(
            tenant.id = %tenant,
            user.id = %caller.user.id,
            budget.level = budget.level.as_str(),
            budget.subject = budget.subject,
            limit_micro_usd = budget.limit.0,
            "A budget was set"
        );
        Ok(())
    }

    /// Takes a budget away.
    pub async fn delete(&self, caller: &Caller, whose: &BudgetWhose) -> Result<(), BudgetError> {
        let subject = self.subject(caller, whose).await?;
        let which = (whose.level, subject.as_str(), whose.period);
        let budgets = self.0.records.budgets();
        if !budgets.delete(&caller.tenant.id, which).await? {
            return Err(Refusal::new(Code::NotFound, "there is no such budget").into());
        }
        tracing::info!(
            tenant.id = %caller.tenant.id,
            user.id = %caller.user.id,
            budget.level = whose.level.as_str(),
            budget.subject = subject,
            "A budget was taken away"
        );
        Ok(())
    }

    /// Whom a budget is for, where the caller may set it.
    async fn subject(&self, caller: &Caller, whose: &BudgetWhose) -> Result<String, BudgetError> {
        if !whose.period.fits(whose.level) {
            let text = "a session's budget is for its `whole` life, a person's or a tenant's for a \
                        `day` or a `month`";
            return Err(wrong("period", text).into());
        }
        let subject = whose.subject.as_deref();
        match whose.level {
            BudgetLevel::Turn => {
                let text = "the budget of a turn is a setting (`agent.chat.request_budget`)";
                Err(Refusal::of_field(Code::ReadOnly, "level", text).into())
            }
            BudgetLevel::Own => {
                if !caller.user.role.may_act() {
                    return Err(not_allowed("a viewer may read, not act"));
                }
                let row = self.session(caller, subject).await?;
                let row = row.filter(|row| row.owner == caller.user.id);
                Ok(row.ok_or_else(no_session)?.key.session.to_string())
            }
            _ if !is_admin(caller) => Err(not_allowed("only admins set the budgets of others")),
            BudgetLevel::Session if subject.is_none() => Ok(String::new()),
            BudgetLevel::Session => {
                let row = self.session(caller, subject).await?;
                Ok(row.ok_or_else(no_session)?.key.session.to_string())
            }
            BudgetLevel::Person => self.person(caller, subject).await,
            BudgetLevel::Tenant if subject.is_some() => {
                Err(wrong("subject", "the tenant is the caller's own").into())
            }
            BudgetLevel::Tenant => Ok(String::new()),
        }
    }

    async fn person(&self, caller: &Caller, subject: Option<&str>) -> Result<String, BudgetError> {
        let Some(subject) = subject else {
            return Ok(String::new());
        };
        let id = UserId::parse(subject);
        let id = id.ok_or_else(|| wrong("subject", "`subject` is the id of a person"))?;
        let found = self.0.records.users().find(&caller.tenant.id, &id).await?;
        let there = found.ok_or_else(|| Refusal::new(Code::NotFound, "there is no such person"));
        there.map(|_| id.to_string()).map_err(BudgetError::from)
    }

    /// The row of a session of the caller's tenant.
    async fn session(
        &self,
        caller: &Caller,
        subject: Option<&str>,
    ) -> Result<Option<SessionRow>, BudgetError> {
        let id = subject.and_then(SessionId::parse);
        let session = id.ok_or_else(|| wrong("subject", "`subject` is the id of a session"))?;
        let key = SessionKey {
            tenant: caller.tenant.id.clone(),
            session,
        };
        Ok(self.0.records.sessions().find(&key).await?)
    }
}

fn view(caller: &Caller, standing: BudgetStanding, name: Option<String>) -> BudgetView {
    let level = standing.budget.level;
    let is_admin = is_admin(caller);
    let may_change = match level {
        BudgetLevel::Turn => false,
        BudgetLevel::Own => caller.user.role.may_act(),
        BudgetLevel::Session | BudgetLevel::Person | BudgetLevel::Tenant => is_admin,
    };
    BudgetView {
        resets_at: standing.budget.period.ends(now()),
        has_sums: is_admin || level != BudgetLevel::Tenant,
        may_change,
        name,
        standing,
    }
}

fn is_admin(caller: &Caller) -> bool {
    caller.user.role >= Role::Admin
}

fn wrong(field: &'static str, text: &str) -> Refusal {
    Refusal::of_field(Code::InvalidArguments, field, text)
}

fn not_allowed(text: &str) -> BudgetError {
    Refusal::new(Code::NotAllowed, text).into()
}

fn no_session() -> Refusal {
    Refusal::new(Code::SessionNotFound, "there is no such session")
}
