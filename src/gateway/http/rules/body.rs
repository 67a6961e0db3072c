//! The wire form of rules.

use sepal_policy::{Approver, Approvers, Effect, Example, Examples, Glob, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::conditions::{ConditionsBody, MAX_CONDITIONS};
use crate::agent::{NewRule, PreviewedRule, RuleOffer, RuleView, RuleWhose};
use crate::domain::{
    CallId, Caller, Code, SessionId, SessionKey, Timestamp, ToolRef, known_approver, shell_tool,
};
use crate::gateway::error::ApiError;
use crate::gateway::extract::required;
use crate::gateway::word_list;

/// The longest lifetime of a rule, in hours: ten years.
const MAX_HOURS: u32 = 87_600;
/// The longest name, and the longest pattern of a server or tool, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// A call that shows what a rule decides, or what it does not decide.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExampleBody {
    /// The MCP server's name.
    server: String,
    /// The tool's name at its server.
    tool: String,
    /// The call's arguments.
    #[schema(value_type = Object)]
    arguments: Value,
}

impl ExampleBody {
    fn example(self) -> Example {
        let tool = ToolRef {
            server: self.server,
            tool: self.tool,
        };
        Example {
            shell: shell_tool(&tool).cloned(),
            server: tool.server,
            tool: tool.tool,
            arguments: self.arguments,
            workspace: None,
            cost_micros: None,
        }
    }

    fn of(example: &Example) -> Self {
        Self {
            server: example.server.clone(),
            tool: example.tool.clone(),
            arguments: example.arguments.clone(),
        }
    }
}

/// Example calls of a rule.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExamplesBody {
    /// A call that the rule decides.
    matching: ExampleBody,
    /// A call that the rule does not decide; absent if the rule decides every call.
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<ExampleBody>,
}

impl ExamplesBody {
    fn examples(self) -> Examples {
        Examples {
            matching: self.matching.example(),
            other: self.other.map(ExampleBody::example),
        }
    }

    fn of(examples: &Examples) -> Self {
        Self {
            matching: ExampleBody::of(&examples.matching),
            other: examples.other.as_ref().map(ExampleBody::of),
        }
    }
}

/// A rule about calls.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a field on the wire")]
pub(in crate::gateway::http) struct RuleItem {
    /// The rule's id.
    id: String,
    /// The effect on the calls that the rule decides.
    #[schema(value_type = word_list::ToolEffect)]
    effect: &'static str,
    /// The sessions whose calls the rule decides.
    #[schema(value_type = word_list::RuleScope)]
    scope: &'static str,
    /// The place where the rule was defined.
    #[schema(value_type = word_list::RuleOrigin)]
    origin: &'static str,
    /// The group to whose members' sessions the rule applies; absent for rules of other scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<RuleGroupItem>,
    /// The state of the rule.
    #[schema(value_type = word_list::RuleState)]
    state: &'static str,
    /// The rule in words.
    sentence: String,
    /// The rule's name for people; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The MCP server's name; `*` matches any text.
    server: String,
    /// The tool's name at its server; `*` matches any text.
    tool: String,
    /// The conditions on a call; empty if the rule decides any call of the tool.
    when: ConditionsBody,
    /// The exceptions: calls that the rule does not decide.
    except: Vec<ConditionsBody>,
    /// True if the rule also asks about calls that nearer rules allow.
    binding: bool,
    /// The people who must approve the calls that the rule asks about: `somebody_else`, `two`, or `role:` and
    /// a role; absent if the owner of the session approves.
    #[serde(skip_serializing_if = "Option::is_none")]
    approvers: Option<String>,
    /// True if the approval needs a fresh gesture, which proves presence; absent if it does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    fresh_gesture: bool,
    /// True if a model may approve, in the person's place, the calls that the rule asks about.
    reviewed: bool,
    /// Example calls; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    examples: Option<ExamplesBody>,
    /// The hosts that the commands of the session may reach. Such a rule decides no calls. Absent for other
    /// rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Vec<String>>,
    /// The user id of the person who created the rule; absent if no person did.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
    /// When the rule was created (RFC 3339); absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// When the rule expires (RFC 3339); absent if it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// The number of calls that the rule decided: the caller's or, for admins, the tenant's.
    uses: u64,
    /// When the rule last decided a call (RFC 3339); absent if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    /// True if the rule was not used for 30 days.
    is_unused: bool,
    /// True if the caller may remove the rule.
    may_remove: bool,
}

impl RuleItem {
    /// Returns a name of the rule among all rules; those of tools and settings have no id of their own.
    pub(super) fn key(&self) -> String {
        format!("{}/{}/{}", self.origin, self.id, self.sentence)
    }

    pub(in crate::gateway::http) fn of(view: RuleView) -> Self {
        let rule = &view.rule;
        Self {
            id: rule.id.clone(),
            effect: rule.effect.as_str(),
            scope: scope_word(rule.scope),
            origin: view.origin.as_str(),
            group: view.group.map(|group| RuleGroupItem {
                id: group.id,
                name: group.name,
            }),
            state: view.state.as_str(),
            sentence: view.sentence,
            name: rule.name.clone(),
            server: rule.server.as_str().to_owned(),
            tool: rule.tool.as_str().to_owned(),
            when: ConditionsBody::of(&rule.when),
            except: rule.except.iter().map(ConditionsBody::of).collect(),
            binding: rule.binding,
            approvers: Some(&rule.approvers.who)
                .filter(|who| **who != Approver::Owner)
                .map(Approver::to_string),
            fresh_gesture: rule.approvers.fresh_gesture,
            reviewed: rule.reviewed,
            examples: rule.examples.as_ref().map(ExamplesBody::of),
            network: rule.network.as_ref().map(|network| network.hosts.clone()),
            created_by: view.created_by.map(|id| id.to_string()),
            created_at: view.created_at.map(Timestamp::to_rfc3339),
            until: rule.until_ms.map(to_rfc3339),
            uses: view.uses,
            last_used_at: view.last_used.map(Timestamp::to_rfc3339),
            is_unused: view.is_unused,
            may_remove: view.may_remove,
        }
    }
}

pub(super) fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Session => "session",
        Scope::Person => "person",
        Scope::Group => "group",
        Scope::Tenant => "tenant",
        Scope::Installation => "installation",
    }
}

fn to_rfc3339(ms: u64) -> String {
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX)).to_rfc3339()
}

/// The group of a rule.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RuleGroupItem {
    /// The group's id.
    id: String,
    /// The group's name.
    name: String,
}

/// A rule to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewRuleBody {
    /// The effect on the calls that the rule decides: `allow`, `ask` or `deny`.
    #[schema(required, nullable = false, pattern = "^(allow|ask|deny)$")]
    effect: Option<String>,
    /// `session`, `person` (all sessions of the caller), `group` (the sessions of a group's members; only for
    /// admins) or `tenant` (everybody's sessions; only for admins).
    #[schema(
        required,
        nullable = false,
        pattern = "^(session|person|group|tenant)$"
    )]
    scope: Option<String>,
    /// The group's id, for the scope `group`.
    #[schema(pattern = "^grp_[0-9a-f]{32}$")]
    group: Option<String>,
    /// The session's id, for the scope `session` or for `callId`.
    #[schema(pattern = "^ses_[0-9a-f]{32}$")]
    session: Option<String>,
    /// The id of a waiting call of that session, from which the rule is made: the rule has to match the call,
    /// and is bound to the current definition of its tool. If the rule allows, the call is approved too.
    call_id: Option<String>,
    /// The digest of that call, as it was shown.
    digest: Option<String>,
    /// The MCP server's name; `*` matches any text. If absent, the server of the call, or any server without
    /// a call.
    server: Option<String>,
    /// The tool's name at its server; `*` matches any text. If absent, the tool of the call, or any tool
    /// without a call.
    tool: Option<String>,
    /// The conditions on a call; if absent, the rule decides any call of the tool.
    when: Option<ConditionsBody>,
    /// The exceptions, at most 50: calls that the rule does not decide. Only for `ask` and `deny`.
    except: Option<Vec<ConditionsBody>>,
    /// True if the rule also asks about calls that nearer rules allow; false if absent. Only for `ask`.
    binding: Option<bool>,
    /// The people who must approve: `owner` (of the session; the default), `somebody_else` than the owner,
    /// `two` people, or somebody with at least the given role. Only for `ask`. A rule that needs more than
    /// the owner's approval asks even if nearer rules allow.
    #[schema(pattern = "^(owner|somebody_else|two|role:(approver|member|admin|owner))$")]
    approvers: Option<String>,
    /// True if the approval needs a fresh gesture, which proves presence; false if absent. Only for `ask`.
    fresh_gesture: Option<bool>,
    /// True if a model may approve, in the person's place, the calls that the rule asks about; false if
    /// absent. Only for `ask` with the scope `group` or `tenant`.
    reviewed: Option<bool>,
    /// The number of hours after which the rule expires; if absent, it never does.
    #[schema(minimum = 1, maximum = 87_600)]
    expires_in_hours: Option<u32>,
    /// The confirmation of a rule that allows every call of a tool that may write or run something: the
    /// tool's name, the server's name if the rule is about all its tools, or `everything`. The preview
    /// returns the required text.
    #[schema(max_length = 200)]
    confirm: Option<String>,
    /// The rule's name for people, at most 200 bytes.
    #[schema(max_length = 200)]
    name: Option<String>,
    /// Calls that the rule decides and does not decide; if absent, they are derived from the rule.
    examples: Option<ExamplesBody>,
    /// The hosts that the commands of the session may reach, in the form of `sandbox.network`. Only for
    /// `allow` with the scope `session`, and without anything about calls.
    #[schema(min_items = 1, max_items = 64)]
    network: Option<Vec<String>>,
}

impl NewRuleBody {
    /// Returns the digest of the call as the person was shown it.
    pub(super) fn digest(&self) -> Option<crate::domain::Digest> {
        let shown = self.digest.as_deref();
        shown.map(crate::domain::Digest::from_wire)
    }

    pub(super) fn new_rule(self, caller: &Caller) -> Result<NewRule, ApiError> {
        let effect = required("effect", self.effect)?;
        let effect = Effect::parse(&effect)
            .ok_or_else(|| wrong("effect", "`effect` is `allow`, `ask` or `deny`"))?;
        let session = self.session.as_deref().map(|id| session_key(caller, id));
        let session = session.transpose()?;
        let of_session = || {
            let text = "`session` names the session that the rule, or its call, is of";
            session.clone().ok_or_else(|| wrong("session", text))
        };
        let whose = match required("scope", self.scope)?.as_str() {
            "session" => RuleWhose::Session(of_session()?),
            "person" => RuleWhose::Person,
            "group" => RuleWhose::Group(required("group", self.group)?),
            "tenant" => RuleWhose::Tenant,
            _ => {
                let text = "`scope` is `session`, `person`, `group` or `tenant`";
                return Err(wrong("scope", text));
            }
        };
        let call = match self.call_id {
            Some(id) => Some((of_session()?, CallId::from_wire(id))),
            None => None,
        };
        let name = self.name.filter(|name| !name.trim().is_empty());
        if name
            .as_ref()
            .is_some_and(|name| name.len() > MAX_NAME_BYTES)
        {
            let text = "`name` may have 200 bytes";
            return Err(ApiError::of_field(Code::TooLarge, "name", text));
        }
        let except = self.except.unwrap_or_default();
        if except.len() > MAX_CONDITIONS {
            let text = "`except` may have 50 parts";
            return Err(ApiError::of_field(Code::TooLarge, "except", text));
        }
        let except = except.into_iter().map(|it| it.conditions("except"));
        let examples = self.examples.map(ExamplesBody::examples);
        Ok(NewRule {
            whose,
            effect,
            server: self.server.map(|text| glob("server", &text)).transpose()?,
            tool: self.tool.map(|text| glob("tool", &text)).transpose()?,
            when: self.when.unwrap_or_default().conditions("when")?,
            except: except.collect::<Result<_, _>>()?,
            is_binding: self.binding.unwrap_or(false),
            approvers: Approvers {
                who: approver(self.approvers.as_deref())?,
                fresh_gesture: self.fresh_gesture.unwrap_or(false),
            },
            is_reviewed: self.reviewed.unwrap_or(false),
            network: network(self.network)?,
            lasts_hours: hours(self.expires_in_hours)?,
            name,
            examples,
            confirm: self.confirm,
            call,
        })
    }
}

fn hours(hours: Option<u32>) -> Result<Option<u32>, ApiError> {
    if hours.is_some_and(|hours| !(1..=MAX_HOURS).contains(&hours)) {
        let text = "`expiresInHours` is 1 to 87600";
        return Err(wrong("expiresInHours", text));
    }
    Ok(hours)
}

/// Returns the hosts that are named. An empty list is refused, because it must be an oversight.
fn network(hosts: Option<Vec<String>>) -> Result<Vec<String>, ApiError> {
    match hosts {
        Some(hosts) if hosts.is_empty() => {
            let text = "`network` names at least one host, such as `pypi.org`";
            Err(wrong("network", text))
        }
        hosts => Ok(hosts.unwrap_or_default()),
    }
}

pub(in crate::gateway::http) fn approver(text: Option<&str>) -> Result<Approver, ApiError> {
    let Some(text) = text else {
        return Ok(Approver::Owner);
    };
    known_approver(text).ok_or_else(|| {
        let text = "`approvers` is `owner`, `somebody_else`, `two`, `role:approver`, `role:member`, \
                    `role:admin` or `role:owner`";
        wrong("approvers", text)
    })
}

pub(in crate::gateway::http) fn glob(field: &'static str, text: &str) -> Result<Glob, ApiError> {
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        let text = format!("`{field}` has 1 to {MAX_NAME_BYTES} bytes");
        return Err(wrong(field, text));
    }
    Ok(Glob::from(text))
}

/// Returns the key of the session with that id, in the caller's tenant.
pub(super) fn session_key(caller: &Caller, id: &str) -> Result<SessionKey, ApiError> {
    let missing = || ApiError::new(Code::SessionNotFound, "there is no such session");
    Ok(SessionKey {
        tenant: caller.tenant.id.clone(),
        session: SessionId::parse(id).ok_or_else(missing)?,
    })
}

fn wrong(field: &'static str, text: impl Into<String>) -> ApiError {
    ApiError::of_field(Code::InvalidArguments, field, text)
}

/// A rule that could be made from a waiting call.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleOfferItem {
    /// The breadth of the rule.
    #[schema(value_type = word_list::RuleReach)]
    reach: &'static str,
    /// The conditions of the rule.
    when: ConditionsBody,
    /// The rule in words, for the rest of the session.
    sentence: String,
    /// Example calls of the rule.
    examples: ExamplesBody,
}

impl RuleOfferItem {
    pub(super) fn of(offer: &RuleOffer) -> Self {
        Self {
            reach: offer.reach.as_str(),
            when: ConditionsBody::of(&offer.when),
            sentence: offer.sentence.clone(),
            examples: ExamplesBody::of(&offer.examples),
        }
    }
}

/// A rule as it would be created.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RulePreview {
    /// The rule in words.
    sentence: String,
    /// Example calls; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    examples: Option<ExamplesBody>,
    /// The text that `confirm` has to repeat to create the rule, because the rule allows every call of a tool
    /// that may write or run something; absent if no confirmation is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm: Option<String>,
}

impl RulePreview {
    pub(super) fn of(previewed: PreviewedRule) -> Self {
        let PreviewedRule {
            rule,
            sentence,
            confirm,
        } = previewed;
        Self {
            sentence,
            examples: rule.examples.as_ref().map(ExamplesBody::of),
            confirm,
        }
    }
}
