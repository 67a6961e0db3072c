//! Shows and sets budgets: people for their own sessions, admins for everybody in their tenant.

use super::Budgets;
use crate::domain::{
    Budget, BudgetLevel, BudgetPeriod, BudgetStanding, Caller, Code, MicroUsd, Right, SessionId,
    SessionKey, Timestamp, UserId, WARN_PERCENT,
};
use crate::session::{AssistantBudget, Refusal};
use crate::store;
use crate::store::clock::now;
use crate::store::records::{Payer, SessionRow};

/// The reason budgets are not shown or set.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// The caller may not see or set them.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// The state of a budget, for a caller who may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetView {
    pub standing: BudgetStanding,
    /// The group's name, or the person's name in an admin's list.
    pub name: Option<String>,
    /// The end of the budget's period.
    pub resets_at: Option<Timestamp>,
    /// True if the amounts may be shown. The spending of a whole tenant or group is only for admins.
    pub has_sums: bool,
    /// True if the caller may replace this budget.
    pub may_change: bool,
}

/// Identifies a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWhose {
    pub level: BudgetLevel,
    /// A session or a person; `None` means every one of them, or the tenant.
    pub subject: Option<String>,
    pub period: BudgetPeriod,
}

/// The new values of a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetChange {
    pub limit: MicroUsd,
    /// The percentage at which people are warned; `None` for the default.
    pub warn_percent: Option<u8>,
    pub is_hard: bool,
}

impl Budgets {
    /// Lists the budgets that apply to the caller, or to one of their sessions, whose assistant may give it one.
    pub async fn in_force(
        &self,
        caller: &Caller,
        session: Option<&SessionRow>,
        assistant: Option<AssistantBudget>,
    ) -> Result<Vec<BudgetView>, BudgetError> {
        if assistant.is_none() && !self.has_any(&caller.tenant.id) {
            return Ok(Vec::new());
        }
        let nobody = || SessionKey {
            tenant: caller.tenant.id.clone(),
            session: SessionId::from_bits(0),
        };
        let key = session.map_or_else(nobody, |row| row.key.clone());
        let since = session.map_or(Timestamp(0), |row| row.created_at);
        let reader = Payer {
            assistant,
            ..Payer::reader(&key, &caller.user.id, since)
        };
        let budgets = self.0.records.budgets();
        let standings = budgets.standings(&reader, &self.0.defaults, now()).await?;
        let is_of_session = |level| matches!(level, BudgetLevel::Own | BudgetLevel::Session);
        let seen = standings
            .into_iter()
            .filter(|standing| session.is_some() || !is_of_session(standing.budget.level));
        Ok(seen.map(|standing| view(caller, standing, None)).collect())
    }

    /// Lists all budgets set in the caller's tenant, for its admins; empty for others.
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

    /// Sets a budget, which applies from the next model request on.
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
        let (tenant, by) = (&caller.tenant.id, &caller.user.id);
        let records = self.0.records.budgets();
        records.put(tenant, &budget, by, now()).await?;
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

    /// Deletes a budget.
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

    /// Returns the subject of a budget, if the caller may set it.
    async fn subject(&self, caller: &Caller, whose: &BudgetWhose) -> Result<String, BudgetError> {
        if !whose.period.fits(whose.level) {
            let text = "a session's budget is for its `whole` life, a person's, a group's or a tenant's \
                        for a `day` or a `month`";
            return Err(wrong("period", text).into());
        }
        let subject = whose.subject.as_deref();
        match whose.level {
            BudgetLevel::Turn => {
                let text = "the budget of a turn is a setting (`agent.chat.request_budget`)";
                Err(Refusal::of_field(Code::ReadOnly, "level", text).into())
            }
            BudgetLevel::Assistant => {
                let text = "the budget of an assistant is a part of the assistant";
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
            BudgetLevel::GroupEach | BudgetLevel::GroupPooled => self.group(caller, subject).await,
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

    async fn group(&self, caller: &Caller, subject: Option<&str>) -> Result<String, BudgetError> {
        let wanted = || wrong("subject", "`subject` is the id of a group");
        let id = subject.ok_or_else(wanted)?;
        let groups = self.0.records.user_groups();
        let found = groups.list(&caller.tenant.id, Some(id)).await?.pop();
        let there = found.ok_or_else(|| Refusal::new(Code::NotFound, "there is no such group"));
        Ok(there?.group.id)
    }

    /// Returns the row of a session of the caller's tenant.
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
        BudgetLevel::Turn | BudgetLevel::Assistant => false,
        BudgetLevel::Own => caller.user.role.may_act(),
        BudgetLevel::Session
        | BudgetLevel::Person
        | BudgetLevel::GroupEach
        | BudgetLevel::GroupPooled
        | BudgetLevel::Tenant => is_admin,
    };
    BudgetView {
        resets_at: standing.budget.period.ends(now()),
        has_sums: is_admin || !level.is_shared(),
        may_change,
        name: name.or_else(|| standing.group.clone()),
        standing,
    }
}

fn is_admin(caller: &Caller) -> bool {
    caller.may(Right::ManageBudgets)
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
