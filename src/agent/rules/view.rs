//! Shows a rule to a caller who may see it.

use std::collections::HashMap;

use sepal_policy as policy;
use sepal_policy::Rule;

use super::is_admin;
use crate::domain::{Caller, Timestamp, UserId};
use crate::servers::{ListedRule, RuleGroup, RuleOrigin};
use crate::session::GivenRule;
use crate::store::clock::now;
use crate::store::records::RuleUses;

/// Milliseconds without a use after which a rule is suggested for removal.
const UNUSED_AFTER_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// The state of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleState {
    Active,
    /// The rule expired, or the settings no longer name its hosts.
    Expired,
    /// The tool's definition has changed since it was approved.
    Drifted,
}

impl RuleState {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Drifted => "drifted",
        }
    }
}

/// A rule as a caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleView {
    pub rule: Rule,
    pub origin: RuleOrigin,
    /// The group to whose members it applies; `None` for rules of other scopes.
    pub group: Option<RuleGroup>,
    /// The rule in words.
    pub sentence: String,
    pub created_by: Option<UserId>,
    pub created_at: Option<Timestamp>,
    pub state: RuleState,
    /// The number of calls that the rule decided, in the caller's sessions or, for admins, in the tenant's.
    pub uses: u64,
    pub last_used: Option<Timestamp>,
    /// True if the rule has not been used for so long that it is suggested for removal.
    pub is_unused: bool,
    /// True if the caller may revoke it.
    pub may_remove: bool,
}

pub(super) fn of_session(given: &GivenRule) -> ListedRule {
    ListedRule {
        rule: given.rule.clone(),
        origin: RuleOrigin::Session,
        owner: None,
        group: None,
        created: Some((given.by.id.clone(), given.at)),
    }
}

pub(super) fn view(
    caller: &Caller,
    listed: ListedRule,
    uses: &HashMap<String, RuleUses>,
    definition: impl Fn(&Rule) -> Option<String>,
) -> RuleView {
    let now = now();
    let rule = listed.rule;
    let uses = uses.get(&rule.id);
    let is_over = rule
        .until_ms
        .is_some_and(|until| u64::try_from(now.0).is_ok_and(|now| now >= until));
    let is_drifted = rule
        .definition
        .as_ref()
        .is_some_and(|pinned| definition(&rule).is_some_and(|now| now != *pinned));
    let created_at = listed.created.as_ref().map(|(_, at)| *at);
    let known_since = uses.map(|uses| uses.last).max(created_at);
    let is_old = known_since.is_some_and(|at| now.0.saturating_sub(at.0) > UNUSED_AFTER_MS);
    RuleView {
        sentence: policy::sentence_of(
            &rule,
            listed.group.as_ref().map(|group| group.name.as_str()),
        ),
        state: match (is_over, is_drifted) {
            (true, _) => RuleState::Expired,
            (_, true) => RuleState::Drifted,
            _ => RuleState::Active,
        },
        created_by: listed.created.map(|(by, _)| by),
        created_at,
        uses: uses.map_or(0, |uses| uses.count),
        last_used: uses.map(|uses| uses.last),
        // A rule about hosts decides no calls, so its use is not counted.
        is_unused: is_old && rule.network.is_none(),
        may_remove: match listed.origin {
            RuleOrigin::Session | RuleOrigin::Person => caller.user.role.may_act(),
            RuleOrigin::Group | RuleOrigin::Tenant => is_admin(caller),
            RuleOrigin::Tool | RuleOrigin::Settings => false,
        },
        origin: listed.origin,
        group: listed.group,
        rule,
    }
}
