//! Defines a rule as it is stored.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, ShellTool};
use crate::conditions::Conditions;
use crate::glob::Glob;

/// The prefix of a role's name.
const ROLE: &str = "role:";

/// The effect of a rule on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call runs without asking.
    Allow,
    /// The call waits for people.
    Ask,
    /// The call is refused.
    Deny,
}

impl Effect {
    /// Returns the name in databases and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Parses the name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "allow" => Some(Self::Allow),
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

/// The scope of a rule, nearest first. Between ask and allow the nearer scope wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Session,
    Person,
    Group,
    Tenant,
    Installation,
}

impl Scope {
    /// All scopes, nearest first.
    pub const ALL: [Self; 5] = [
        Self::Session,
        Self::Person,
        Self::Group,
        Self::Tenant,
        Self::Installation,
    ];
}

/// The person whose approval an ask rule wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// The owner of the session.
    #[default]
    Owner,
    /// A person with this role.
    Role(String),
    /// A person other than the owner of the session.
    SomebodyElse,
    /// Two different people.
    Two,
}

impl Approver {
    /// Parses the name that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "owner" => Some(Self::Owner),
            "somebody_else" => Some(Self::SomebodyElse),
            "two" => Some(Self::Two),
            _ => {
                let role = text.strip_prefix(ROLE)?;
                (!role.is_empty()).then(|| Self::Role(role.to_owned()))
            }
        }
    }
}

impl fmt::Display for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("owner"),
            Self::Role(role) => write!(f, "{ROLE}{role}"),
            Self::SomebodyElse => f.write_str("somebody_else"),
            Self::Two => f.write_str("two"),
        }
    }
}

/// The approvers of a call that an ask rule asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Approvers {
    pub who: Approver,
    /// True if the approval needs a fresh proof of presence, such as a passkey's touch.
    pub fresh_gesture: bool,
}

/// A call that shows what a rule matches, or what it does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Example {
    pub server: String,
    pub tool: String,
    pub arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellTool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

impl Example {
    /// Returns the example as a call at `now_ms`, of the tool whose definition has this hash.
    pub(crate) fn call<'a>(&'a self, definition: Option<&'a str>, now_ms: u64) -> Call<'a> {
        Call {
            server: &self.server,
            tool: &self.tool,
            definition,
            arguments: &self.arguments,
            shell: self.shell.as_ref(),
            workspace: self.workspace.as_deref(),
            cost_micros: self.cost_micros,
            now_ms,
        }
    }

    /// Converts a call to an example.
    pub fn of(call: &Call<'_>) -> Self {
        Self {
            server: call.server.to_owned(),
            tool: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            shell: call.shell.cloned(),
            workspace: call.workspace.map(str::to_owned),
            cost_micros: call.cost_micros,
        }
    }
}

/// The examples that a rule is checked with when it is loaded, and that its card shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examples {
    /// A call that the rule alone decides.
    pub matching: Example,
    /// A call that the rule alone leaves undecided. Missing only if a rule matches every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Example>,
}

/// One rule. Unknown fields are refused, because an ignored field might have narrowed the rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Unique among the rules that decide together.
    pub id: String,
    /// The rule's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub effect: Effect,
    pub scope: Scope,
    #[serde(default = "Glob::any")]
    pub server: Glob,
    #[serde(default = "Glob::any")]
    pub tool: Glob,
    /// The conditions on the call; empty = any call of the tool.
    #[serde(default)]
    pub when: Conditions,
    /// Exceptions: calls, or parts of commands, that the rule does not decide. Only for ask and deny.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Conditions>,
    /// The expiry, in milliseconds since 1970; `None` = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// The hash of the tool's definition that a person approved. An allow rule has no effect for any other
    /// definition; ask and deny apply to every definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<Examples>,
    /// True if an ask rule also asks for calls that nearer rules allow. Only for ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binding: bool,
    /// True if a model may approve the asked calls in the place of the owner. Only for ask, of the tenant or
    /// the installation, and if nobody else has to approve.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reviewed: bool,
    /// The approvers; only used for ask.
    #[serde(default)]
    pub approvers: Approvers,
    /// The hosts that the commands of the session may reach. Such a rule is about connections and decides no
    /// call. Only for allow, of a session, and without conditions on calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// Hosts that the sandbox of a session may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The hosts, in the format of host lists: `pypi.org`, `db.example.com:5432`, `*.example.com`.
    pub hosts: Vec<String>,
    /// True if the rule depends on the hosts that the settings let people allow: it applies only while they
    /// are listed there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_request: bool,
}

impl Rule {
    /// Returns true if the rule asks even if nearer rules allow the call: it is binding, or it wants more
    /// than the owner's approval, which the owner could otherwise avoid with a nearer rule.
    pub fn holds(&self) -> bool {
        self.binding || self.approvers != Approvers::default()
    }

    /// Returns true if the rule lets every call of its tools run, without conditions.
    pub fn allows_everything(&self) -> bool {
        self.effect == Effect::Allow && self.network.is_none() && self.when.is_empty()
    }

    /// Creates a rule for every call, to be narrowed by its fields.
    pub fn new(id: impl Into<String>, effect: Effect, scope: Scope) -> Self {
        Self {
            id: id.into(),
            name: None,
            effect,
            scope,
            server: Glob::any(),
            tool: Glob::any(),
            when: Conditions::default(),
            except: Vec::new(),
            until_ms: None,
            definition: None,
            examples: None,
            binding: false,
            reviewed: false,
            approvers: Approvers::default(),
            network: None,
        }
    }
}
