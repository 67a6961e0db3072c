//! Budgets: what may be spent, by whom, in which time, and whether a model request may go on.
//!
//! The decision is pure: the store reads how every budget stands, asks here, and keeps what was granted
//! in the same transaction.

#[cfg(test)]
mod tests;

use super::{MicroUsd, Timestamp};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// At which part of a limit people are warned, where nobody said another.
pub const WARN_PERCENT: u8 = 80;

/// Whose spending a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetLevel {
    /// One turn: a person's message with everything that follows from it.
    Turn,
    /// A session, as its own person wants it.
    Own,
    /// A session, as an admin wants it.
    Session,
    /// Everything that one person's sessions spend.
    Person,
    /// Everything that a tenant's people spend.
    Tenant,
}

impl BudgetLevel {
    /// Every level.
    pub const ALL: [Self; 5] = [
        Self::Turn,
        Self::Own,
        Self::Session,
        Self::Person,
        Self::Tenant,
    ];

    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Own => "own",
            Self::Session => "session",
            Self::Person => "person",
            Self::Tenant => "tenant",
        }
    }

    /// Reads the name back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

/// In which time a budget may be spent. Days and months are those of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetPeriod {
    /// As long as what it limits is there.
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

    /// Reads the name back.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Whole, Self::Day, Self::Month];
        all.into_iter().find(|period| period.as_str() == text)
    }

    /// Whether a budget of that level can have it.
    pub fn fits(self, level: BudgetLevel) -> bool {
        let is_whole = self == Self::Whole;
        match level {
            BudgetLevel::Turn | BudgetLevel::Own | BudgetLevel::Session => is_whole,
            BudgetLevel::Person | BudgetLevel::Tenant => !is_whole,
        }
    }

    /// When the running period is over.
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
    /// Those of that time.
    pub fn of(now: Timestamp) -> Self {
        let today = now.0.div_euclid(DAY_MS);
        Self {
            today,
            month: today - i64::from(now.date().day()) + 1,
        }
    }
}

/// A budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub level: BudgetLevel,
    /// Which session or person; empty = each of the tenant, or the tenant itself.
    pub subject: String,
    pub period: BudgetPeriod,
    pub limit: MicroUsd,
    /// At which part of the limit people are warned.
    pub warn_percent: u8,
    /// Whether what would go beyond the limit is refused; else people are only warned.
    pub is_hard: bool,
}

impl Budget {
    /// What the settings say of a level.
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

/// Where a budget is from; what comes first goes before the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetSource {
    /// Set for exactly this session, person or tenant.
    Subject,
    /// Set for each session or person of the tenant.
    Each,
    /// The settings.
    Settings,
}

/// How a budget stands for one model request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetStanding {
    pub budget: Budget,
    pub source: BudgetSource,
    /// What was spent of it.
    pub used: MicroUsd,
    /// What other requests hold of it.
    pub reserved: MicroUsd,
    /// Whether people were warned in this period.
    pub is_warned: bool,
}

impl BudgetStanding {
    /// What may still be spent if every other request used all that it holds.
    pub fn left(&self) -> MicroUsd {
        let taken = self.used.0.saturating_add(self.reserved.0);
        MicroUsd(self.budget.limit.0.saturating_sub(taken))
    }

    /// What may still be spent if every other request gave back all that it holds.
    pub fn left_at_most(&self) -> MicroUsd {
        MicroUsd(self.budget.limit.0.saturating_sub(self.used.0))
    }

    /// Whether so much more makes it time to warn.
    pub fn is_near(&self, more: MicroUsd) -> bool {
        let spent = u128::from(self.used.0.saturating_add(more.0)) * 100;
        spent >= u128::from(self.budget.limit.0) * u128::from(self.budget.warn_percent)
    }
}

/// Of several budgets of one level and period only one holds: the one that names its subject, else
/// the one for each, else the settings'.
pub fn in_force(mut standings: Vec<BudgetStanding>) -> Vec<BudgetStanding> {
    let kind = |standing: &BudgetStanding| (standing.budget.level, standing.budget.period);
    standings.sort_by_key(|standing| (kind(standing), standing.source));
    standings.dedup_by_key(|standing| kind(standing));
    standings
}

/// What a model request needs in all, with what it has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// With less it cannot go on.
    pub least: MicroUsd,
    /// With this it goes on for a while.
    pub usual: MicroUsd,
    /// Whether nothing was asked yet: then waiting for what others hold is better than being cut.
    pub begins: bool,
}

/// What a model request is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// It may use so much in all.
    Given(MicroUsd),
    /// It may go on as soon as other requests give back what they hold of this budget.
    Held(Box<BudgetStanding>),
    /// It may not go on: this budget is spent.
    Exhausted(Box<BudgetStanding>),
}

fn hard(standings: &[BudgetStanding]) -> impl Iterator<Item = &BudgetStanding> {
    standings.iter().filter(|standing| standing.budget.is_hard)
}

/// The hard budget of which the least is left if every other request gave back all that it holds.
pub fn tightest(standings: &[BudgetStanding]) -> Option<&BudgetStanding> {
    hard(standings).min_by_key(|standing| standing.left_at_most())
}

/// Decides what a request may use, against every budget that is in force for it.
pub fn grant(standings: &[BudgetStanding], need: Need) -> Grant {
    let Some(tightest) = tightest(standings) else {
        return Grant::Given(need.usual);
    };
    // What costs nothing is never refused.
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
