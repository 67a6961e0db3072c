//! One rule, as it is stored.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, ShellTool};
use crate::conditions::Conditions;
use crate::glob::Glob;

/// What stands before the name of a role.
const ROLE: &str = "role:";

/// What happens to a call.
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
    /// The name in databases and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Reads the name back.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "allow" => Some(Self::Allow),
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

/// For whom a rule holds, nearest first. Between ask and allow the nearer scope wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Session,
    Person,
    Tenant,
    Installation,
}

impl Scope {
    /// All scopes, nearest first.
    pub const ALL: [Self; 4] = [
        Self::Session,
        Self::Person,
        Self::Tenant,
        Self::Installation,
    ];
}

/// A person whose yes an ask rule wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// Whoever owns the session.
    #[default]
    Owner,
    /// Somebody of this role.
    Role(String),
    /// Somebody who does not own the session.
    SomebodyElse,
    /// Two different people.
    Two,
}

impl Approver {
    /// Reads the name that [`fmt::Display`] gives it.
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

/// Who may say yes to what an ask rule asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Approvers {
    pub who: Approver,
    /// Whether the yes needs a fresh proof of presence, such as a passkey's touch.
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
    /// In millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

impl Example {
    /// The example as a call at `now_ms`, of the tool whose definition has this hash.
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

    /// What a call looks like as an example.
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

/// What a rule is checked with when it is loaded, and what its card shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examples {
    /// The rule alone decides this call.
    pub matching: Example,
    /// The rule alone leaves this call open. Missing only where a rule fits every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Example>,
}

/// One rule. Unknown fields are refused, because one that is not looked at might have narrowed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Unique among the rules that are decided by together.
    pub id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub effect: Effect,
    pub scope: Scope,
    #[serde(default = "Glob::any")]
    pub server: Glob,
    #[serde(default = "Glob::any")]
    pub tool: Glob,
    /// What must hold for the call; empty = any call of the tool.
    #[serde(default)]
    pub when: Conditions,
    /// Calls, or parts of commands, that the rule leaves to others. Only for ask and deny.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Conditions>,
    /// Milliseconds since 1970 at which the rule ends; `None` = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// The hash of the tool's definition to which a person said yes. An allow rule is dead for any
    /// other definition; ask and deny hold whatever the definition is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<Examples>,
    /// Whether an ask rule also asks what nearer rules allow. Only for ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binding: bool,
    /// Whether a model may say yes in the place of the owner to what the rule asks. Only for ask, of
    /// the tenant or the installation, and where nobody else has to say yes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reviewed: bool,
    /// Only looked at for ask.
    #[serde(default)]
    pub approvers: Approvers,
    /// What the commands of the session may reach. Such a rule is about connections: it decides no call.
    /// Only for allow, of a session, and without anything that narrows calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// Hosts that the sandbox of a session may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// As lists of hosts name them: `pypi.org`, `db.example.com:5432`, `*.example.com`.
    pub hosts: Vec<String>,
    /// Whether the rule rests on the hosts that the settings let people open: it holds only while they
    /// are named there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_request: bool,
}

impl Rule {
    /// Whether it asks whatever nearer rules allow: it says so, or it wants more than the owner's yes,
    /// who could else give a nearer rule instead of it.
    pub fn holds(&self) -> bool {
        self.binding || self.approvers != Approvers::default()
    }

    /// Whether it lets every call of its tools run: nothing about the calls is asked for.
    pub fn allows_everything(&self) -> bool {
        self.effect == Effect::Allow && self.network.is_none() && self.when.is_empty()
    }

    /// A rule for every call, to be narrowed by its fields.
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
