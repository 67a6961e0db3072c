//! Collects the rules that decide about the calls of a tenant's sessions: the rules of the settings, admins'
//! settings of single tools, the tenant's rules, and those of each person. The rules of one session are in
//! its journal.

use std::collections::HashMap;
use std::sync::Arc;

use sepal_policy as policy;
use sepal_policy::{Effect, Glob, Rule, Scope};

use sepal_core::domain::{Timestamp, UserId};
use sepal_core::session::{Policy, Rules};
use sepal_store::records::{RuleRow, ToolSetting};

/// The place where a rule is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleOrigin {
    /// The journal of its session.
    Session,
    /// A person, for their own sessions.
    Person,
    /// An admin, for all sessions of the tenant.
    Tenant,
    /// The setting of one tool.
    Tool,
    /// The settings of the installation.
    Settings,
}

impl RuleOrigin {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Person => "person",
            Self::Tenant => "tenant",
            Self::Tool => "tool",
            Self::Settings => "settings",
        }
    }
}

/// A rule and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedRule {
    pub rule: Rule,
    pub origin: RuleOrigin,
    /// The person whose sessions it applies to; `None` for everybody's.
    pub owner: Option<UserId>,
    pub created: Option<(UserId, Timestamp)>,
}

/// The rules of one tenant.
#[derive(Clone)]
pub struct RuleSets {
    everybody: Arc<Rules>,
    of_person: HashMap<UserId, Arc<Rules>>,
    listed: Vec<ListedRule>,
}

impl RuleSets {
    pub(crate) fn new<'a>(
        base: &Rules,
        settings: impl Iterator<Item = &'a ToolSetting>,
        rows: &[RuleRow],
    ) -> Self {
        let mut listed = of_settings(&base.policy);
        listed.extend(settings.map(of_tool));
        listed.extend(rows.iter().map(of_row));
        let rules_of = |owner: Option<&UserId>| {
            let is_theirs = |it: &&ListedRule| it.owner.is_none() || it.owner.as_ref() == owner;
            let theirs = listed.iter().filter(is_theirs).map(|it| it.rule.clone());
            Arc::new(Rules {
                policy: Policy::InForce(policy::Rules::compile_safely(theirs.collect())),
                ..base.clone()
            })
        };
        let owners = listed.iter().filter_map(|it| it.owner.as_ref());
        let of_person = owners.map(|owner| (owner.clone(), rules_of(Some(owner))));
        Self {
            everybody: rules_of(None),
            of_person: of_person.collect(),
            listed,
        }
    }

    /// Returns the rules for the sessions of that person.
    pub fn of(&self, owner: &UserId) -> &Arc<Rules> {
        self.of_person.get(owner).unwrap_or(&self.everybody)
    }

    /// Returns all rules of all origins.
    pub fn listed(&self) -> &[ListedRule] {
        &self.listed
    }
}

fn of_settings(base: &Policy) -> Vec<ListedRule> {
    let Policy::InForce(rules) = base else {
        return Vec::new();
    };
    let rules = rules.iter().map(|rule| ListedRule {
        rule: rule.clone(),
        origin: RuleOrigin::Settings,
        owner: None,
        created: None,
    });
    rules.collect()
}

fn of_tool(setting: &ToolSetting) -> ListedRule {
    let (server, tool) = (&setting.tool.server, &setting.tool.tool);
    let mut rule = Rule::new(
        format!("tool:{server}/{tool}"),
        setting.effect,
        Scope::Tenant,
    );
    rule.name = Some(format!("{tool} of {server}"));
    rule.server = Glob::from(server.as_str());
    rule.tool = Glob::from(tool.as_str());
    ListedRule {
        rule,
        origin: RuleOrigin::Tool,
        owner: None,
        created: None,
    }
}

fn of_row(row: &RuleRow) -> ListedRule {
    ListedRule {
        rule: row.rule.clone(),
        origin: match row.owner {
            Some(_) => RuleOrigin::Person,
            None => RuleOrigin::Tenant,
        },
        owner: row.owner.clone(),
        created: Some((row.created_by.clone(), row.created_at)),
    }
}

/// Returns true if a tool's setting makes a rule: `ask` makes none, because a call without a rule asks
/// anyway.
pub(crate) fn is_rule(setting: &ToolSetting) -> bool {
    setting.effect != Effect::Ask
}
