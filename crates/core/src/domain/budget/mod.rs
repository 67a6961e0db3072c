//! Decides by budgets whether a model request may go on: amounts by level and period.
//!
//! The decision is pure: the store reads the standing of every budget, calls [`grant`], and records the
//! grant in the same transaction.

#[cfg(test)]
mod tests;

use super::{MicroUsd, Timestamp};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// The default percentage of a limit at which people are warned.
pub const WARN_PERCENT: u8 = 80;

/// The level whose spending a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetLevel {
    /// One turn: a person's message and everything that follows from it.
    Turn,
    /// A session, limited by its own person.
    Own,
    /// A session, limited by its assistant.
    Assistant,
    /// A session, limited by an admin.
    Session,
    /// All sessions of one person.
    Person,
    /// One member of a group, for the time of the membership.
    GroupEach,
    /// All members of a group together, for the time of their membership.
    GroupPooled,
    /// All people of a tenant.
    Tenant,
}

impl BudgetLevel {
    /// Every level.
    pub const ALL: [Self; 8] = [
        Self::Turn,
        Self::Own,
        Self::Assistant,
        Self::Session,
        Self::Person,
        Self::GroupEach,
        Self::GroupPooled,
        Self::Tenant,
    ];

    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Own => "own",
            Self::Assistant => "assistant",
            Self::Session => "session",
            Self::Person => "person",
            Self::GroupEach => "group_each",
            Self::GroupPooled => "group_pooled",
            Self::Tenant => "tenant",
        }
    }

    /// Returns true if the budget is of a group. A person has one for each of their groups.
    pub fn is_of_group(self) -> bool {
        matches!(self, Self::GroupEach | Self::GroupPooled)
    }

    /// Returns true if the budget counts what several people spend, which is for admins to see.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::GroupPooled | Self::Tenant)
    }

    /// Parses the form that [`Self::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

/// The period in which a budget may be spent. Days and months are in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetPeriod {
    /// The lifetime of the limited turn or session.
    Whole,
    Day,
    Month,
}

impl BudgetPeriod {
    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Parses the form that [`Self::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Whole, Self::Day, Self::Month];
        all.into_iter().find(|period| period.as_str() == text)
    }

    /// Returns true if a budget of that level can have this period.
    pub fn fits(self, level: BudgetLevel) -> bool {
        let is_whole = self == Self::Whole;
        match level {
            BudgetLevel::Turn
            | BudgetLevel::Own
            | BudgetLevel::Assistant
            | BudgetLevel::Session => is_whole,
            BudgetLevel::Person
            | BudgetLevel::GroupEach
            | BudgetLevel::GroupPooled
            | BudgetLevel::Tenant => !is_whole,
        }
    }

    /// The end of the current period; `None` for [`Self::Whole`].
    pub fn ends(self, now: Timestamp) -> Option<Timestamp> {
        let day = match self {
            Self::Whole => return None,
            Self::Day => Days::of(now).today + 1,
            Self::Month => {
                let next = now.date().last_of_month();
                let left = i64::from(next.day()) - i64::from(now.date().day());
                Days::of(now).today + left + 1
            }
        };
        Some(Timestamp(day.saturating_mul(DAY_MS)))
    }
}

/// Days as the database counts them: since 1970, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    pub today: i64,
    /// The first day of this month.
    pub month: i64,
}

impl Days {
    /// The day and month of that time.
    pub fn of(now: Timestamp) -> Self {
        let today = now.0.div_euclid(DAY_MS);
        Self {
            today,
            month: today - i64::from(now.date().day()) + 1,
        }
    }
}

/// A limit on spending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub level: BudgetLevel,
    /// The session, person or group; empty = each session or person of the tenant, or the tenant itself.
    pub subject: String,
    pub period: BudgetPeriod,
    pub limit: MicroUsd,
    /// The percentage of the limit at which people are warned.
    pub warn_percent: u8,
    /// True if spending beyond the limit is refused; otherwise people are only warned.
    pub is_hard: bool,
}

impl Budget {
    /// The budget that the settings define for a level.
    pub fn of_settings(level: BudgetLevel, limit: MicroUsd) -> Self {
        Self {
            level,
            subject: String::new(),
            period: BudgetPeriod::Whole,
            limit,
            warn_percent: WARN_PERCENT,
            is_hard: true,
        }
    }
}

/// The source of a budget; earlier variants take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetSource {
    /// Set for exactly this session, person or tenant.
    Subject,
    /// Set for each session or person of the tenant.
    Each,
    /// Set in the settings.
    Settings,
}

/// The state of a budget for one model request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetStanding {
    pub budget: Budget,
    pub source: BudgetSource,
    /// The amount already spent.
    pub used: MicroUsd,
    /// The amount that other requests have reserved.
    pub reserved: MicroUsd,
    /// True if people have been warned in this period.
    pub is_warned: bool,
    /// The name of the group, if the budget is of a group.
    pub group: Option<String>,
}

impl BudgetStanding {
    /// The amount left if every other request spends its whole reservation.
    pub fn left(&self) -> MicroUsd {
        let taken = self.used.0.saturating_add(self.reserved.0);
        MicroUsd(self.budget.limit.0.saturating_sub(taken))
    }

    /// The amount left if every other request gives its whole reservation back.
    pub fn left_at_most(&self) -> MicroUsd {
        MicroUsd(self.budget.limit.0.saturating_sub(self.used.0))
    }

    /// Returns true if spending `more` reaches the warning threshold.
    pub fn is_near(&self, more: MicroUsd) -> bool {
        let spent = u128::from(self.used.0.saturating_add(more.0)) * 100;
        spent >= u128::from(self.budget.limit.0) * u128::from(self.budget.warn_percent)
    }
}

/// Keeps one budget for each level and period: the one that names its subject, else the one for each, else
/// that of the settings. Those of a person's groups are all kept.
pub fn in_force(mut standings: Vec<BudgetStanding>) -> Vec<BudgetStanding> {
    let kind = |standing: &BudgetStanding| {
        let Budget { level, period, .. } = standing.budget;
        let group = level.is_of_group().then(|| standing.budget.subject.clone());
        (level, period, group)
    };
    standings.sort_by_key(|standing| (kind(standing), standing.source));
    standings.dedup_by_key(|standing| kind(standing));
    standings
}

/// The total amount that a model request needs, including what it has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The minimum without which the request cannot go on.
    pub least: MicroUsd,
    /// The amount that lasts for a while.
    pub usual: MicroUsd,
    /// True if the request has not started: waiting for reservations is then better than being cut off.
    pub begins: bool,
}

/// The decision about a model request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// The request may use this amount in total.
    Given(MicroUsd),
    /// The request has to wait until other requests give back their reservations of this budget.
    Held(Box<BudgetStanding>),
    /// The request may not go on: this budget is spent.
    Exhausted(Box<BudgetStanding>),
}

fn hard(standings: &[BudgetStanding]) -> impl Iterator<Item = &BudgetStanding> {
    standings.iter().filter(|standing| standing.budget.is_hard)
}

/// The hard budget with the least left if every other request gives its whole reservation back.
pub fn tightest(standings: &[BudgetStanding]) -> Option<&BudgetStanding> {
    hard(standings).min_by_key(|standing| standing.left_at_most())
}

/// Decides the amount that a request may use under all budgets in force.
pub fn grant(standings: &[BudgetStanding], need: Need) -> Grant {
    let Some(tightest) = tightest(standings) else {
        return Grant::Given(need.usual);
    };
    // A request without a minimum cost is never refused.
    if need.least > tightest.left_at_most() {
        return Grant::Exhausted(Box::new(tightest.clone()));
    }
    let Some(narrowest) = hard(standings).min_by_key(|standing| standing.left()) else {
        return Grant::Given(need.usual);
    };
    let is_shared = narrowest.reserved > MicroUsd(0);
    let wanted = if need.begins && is_shared {
        need.usual.max(need.least)
    } else {
        need.least
    };
    if wanted > narrowest.left() {
        return Grant::Held(Box::new(narrowest.clone()));
    }
    Grant::Given(need.usual.min(narrowest.left()).max(need.least))
}
