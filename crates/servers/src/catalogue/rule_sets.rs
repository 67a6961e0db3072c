//! Collects the rules that decide about the calls of a tenant's sessions: the rules of the settings, admins'
//! settings of single tools, the tenant's rules, and those of each person. The rules of one session are in
//! its journal.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use sepal_policy as policy;
use sepal_policy::{Effect, Glob, Rule, Scope};

use sepal_core::domain::{GroupAccess, Timestamp, UserId};
use sepal_core::session::{Policy, Rules};
use sepal_store::records::{RuleRow, ToolSetting};

/// The place where a rule is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleOrigin {
    /// The journal of its session.
    Session,
    /// A person, for their own sessions.
    Person,
    /// An admin, for the sessions of a group's members.
    Group,
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
            Self::Group => "group",
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
    /// The group to whose members it applies; `None` for everybody.
    pub group: Option<RuleGroup>,
    pub created: Option<(UserId, Timestamp)>,
}

/// The group of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleGroup {
    pub id: String,
    pub name: String,
}

impl ListedRule {
    /// Returns true if it applies to the sessions of a person who is in these groups.
    pub fn applies_to(&self, person: Option<&UserId>, groups: &BTreeSet<&str>) -> bool {
        let is_theirs = self.owner.is_none() || self.owner.as_ref() == person;
        let group = self.group.as_ref();
        is_theirs && group.is_none_or(|group| groups.contains(group.id.as_str()))
    }
}

/// The rules of one tenant.
#[derive(Clone)]
pub struct RuleSets {
    everybody: Arc<Rules>,
    of_person: HashMap<UserId, Arc<Rules>>,
    listed: Vec<ListedRule>,
}

impl RuleSets {
    /// Collects the rules. `closed` are the servers of the tenant that are not open to the person or people
    /// whose rules these are: all their calls are refused, also those that wait.
    pub(crate) fn new<'a>(
        base: &Rules,
        settings: impl Iterator<Item = &'a ToolSetting>,
        rows: &[RuleRow],
        access: &GroupAccess,
        closed: &BTreeSet<String>,
    ) -> Self {
        let mut listed = of_settings(&base.policy);
        listed.extend(settings.map(of_tool));
        listed.extend(rows.iter().map(|row| of_row(row, access)));
        let refused: Vec<Rule> = closed.iter().map(|server| of_closed(server)).collect();
        let rules_of = |owner: Option<&UserId>, groups: &BTreeSet<&str>| {
            let theirs = listed.iter().filter(|it| it.applies_to(owner, groups));
            let theirs = theirs.map(|it| it.rule.clone());
            let theirs = theirs.chain(refused.iter().cloned()).collect();
            Arc::new(Rules {
                policy: Policy::InForce(policy::Rules::compile_safely(theirs)),
                ..base.clone()
            })
        };
        let with_rules: BTreeSet<&str> = (listed.iter())
            .filter_map(|it| Some(it.group.as_ref()?.id.as_str()))
            .collect();
        let owners = listed.iter().filter_map(|it| it.owner.as_ref());
        let owners: BTreeSet<&UserId> = owners.collect();
        let mut of_person = HashMap::new();
        // People without rules of their own share those of their groups.
        let mut of_groups: HashMap<BTreeSet<&str>, Arc<Rules>> = HashMap::new();
        for person in access.people().into_iter().chain(owners.iter().copied()) {
            let groups = access.of_person(person);
            let groups: BTreeSet<&str> = groups.filter(|id| with_rules.contains(id)).collect();
            let rules = if owners.contains(person) {
                rules_of(Some(person), &groups)
            } else if groups.is_empty() {
                continue;
            } else {
                let shared = of_groups.entry(groups);
                let groups = shared.key().clone();
                Arc::clone(shared.or_insert_with(|| rules_of(None, &groups)))
            };
            of_person.insert(person.clone(), rules);
        }
        Self {
            everybody: rules_of(None, &BTreeSet::new()),
            of_person,
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
        group: None,
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
        group: None,
        created: None,
    }
}

fn of_row(row: &RuleRow, access: &GroupAccess) -> ListedRule {
    ListedRule {
        rule: row.rule.clone(),
        origin: match (&row.owner, &row.group) {
            (Some(_), _) => RuleOrigin::Person,
            (None, Some(_)) => RuleOrigin::Group,
            (None, None) => RuleOrigin::Tenant,
        },
        owner: row.owner.clone(),
        group: row.group.as_ref().map(|id| RuleGroup {
            id: id.clone(),
            name: access.name_of(id).unwrap_or_default().to_owned(),
        }),
        created: Some((row.created_by.clone(), row.created_at)),
    }
}

/// Refuses every call of a server that is open to members of groups alone. Nobody gives or takes this rule: it
/// is not listed.
fn of_closed(server: &str) -> Rule {
    let mut rule = Rule::new(format!("access:{server}"), Effect::Deny, Scope::Tenant);
    rule.name = Some(format!(
        "the server `{server}` is only for members of its groups"
    ));
    rule.server = Glob::from(server);
    rule
}

/// Returns true if a tool's setting makes a rule: `ask` makes none, because a call without a rule asks
/// anyway.
pub(crate) fn is_rule(setting: &ToolSetting) -> bool {
    setting.effect != Effect::Ask
}
