//! Applies the rules in force and the rules of a session: which calls run, need approval or are denied.

use std::collections::BTreeMap;

use sepal_policy as policy;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{ApprovalRequirement, RuleName, ToolFacts};
use crate::domain::{Actor, CallId, Memo, MicroUsd, RunsInKind, Timestamp, ToolRef, shell_tool};

pub use sepal_policy::{Approver, Effect as PolicyEffect, Rule};

/// Maximum number of rules of one session, because every rule is evaluated for every call of the session.
const MAX_SESSION_RULES: usize = 50;

/// The directory that relative paths of sandboxed tools start from.
const WORKSPACE: &str = "/workspace";

/// The configuration that `decide` reads beside the state.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The policy that decides about calls.
    pub policy: Policy,
    /// Maximum number of model requests in a turn (D7).
    pub max_iterations: u32,
    /// Maximum number of times in a row that a turn may make the same calls with the same results; `None` =
    /// no limit.
    pub max_same_calls: Option<u32>,
    /// Age in milliseconds after which unused approvals are asked again when another gateway takes over.
    pub approval_stale_after_ms: u64,
    /// Time in milliseconds after which a call that nobody decided is rejected; `None` = never.
    pub approval_expiry_ms: Option<u64>,
    /// Treatment of arguments changed by people other than the session's owner.
    pub edits_by_others: EditsByOthers,
    /// Maximum number of messages that wait for the running turn.
    pub max_waiting_messages: usize,
    /// Maximum number of calls in one answer; further calls get an error result.
    pub max_calls_per_answer: usize,
    /// True if a model generates session titles.
    pub has_titles_made: bool,
    /// True if a model reviews the calls that rules open to review.
    pub has_reviewer: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            max_iterations: 25,
            max_same_calls: Some(5),
            approval_stale_after_ms: 15 * 60 * 1000,
            approval_expiry_ms: None,
            edits_by_others: EditsByOthers::default(),
            max_waiting_messages: 20,
            max_calls_per_answer: 64,
            has_titles_made: false,
            has_reviewer: false,
        }
    }
}

/// Treatment of arguments that an approver changes in a call of another person's session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EditsByOthers {
    /// They run after the session's owner has approved them, too.
    #[default]
    NeedOwner,
    /// They are refused: other people can only approve or reject.
    Refused,
}

/// The source of decisions about calls.
#[derive(Debug, Clone)]
pub enum Policy {
    /// The rules of the installation, the tenant and the person. The session's own rules are part of its
    /// state.
    InForce(policy::Rules),
    /// The rulings that a journal recorded for each call, regardless of the rules (`sepal replay`).
    Recorded(BTreeMap<CallId, Ruling>),
}

impl Default for Policy {
    fn default() -> Self {
        Self::InForce(policy::Rules::default())
    }
}

/// The decision of rules about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub effect: PolicyEffect,
    /// The deciding rule; `None` = no rule covers the call, so it needs approval.
    pub rule: Option<RuleName>,
    /// The reason, as a sentence for people.
    pub why: String,
    /// The required approvers, all of whom have to approve; empty = only the owner.
    pub approvers: Vec<Approver>,
    /// True if an approval needs a fresh proof of presence.
    pub fresh_gesture: bool,
    /// True if every rule that requires approval allows a model's review.
    pub is_open_to_review: bool,
}

/// A rule for one session only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenRule {
    pub rule: policy::Rule,
    pub by: Actor,
    pub at: Timestamp,
}

/// The rules of one session. Shared, because each decision copies the control state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredRules", into = "StoredRules")]
pub struct SessionRules {
    given: Vec<GivenRule>,
    /// The rules of the session's assistant, which nobody takes back.
    of_assistant: Vec<policy::Rule>,
    compiled: Memo<policy::Rules>,
}

/// The stored form of [`SessionRules`]: a list, unless an assistant has rules.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredRules {
    Given(Vec<GivenRule>),
    WithAssistant {
        given: Vec<GivenRule>,
        of_assistant: Vec<policy::Rule>,
    },
}

impl From<StoredRules> for SessionRules {
    fn from(stored: StoredRules) -> Self {
        let (given, of_assistant) = match stored {
            StoredRules::Given(given) => (given, Vec::new()),
            StoredRules::WithAssistant {
                given,
                of_assistant,
            } => (given, of_assistant),
        };
        Self {
            given,
            of_assistant,
            compiled: Memo::default(),
        }
    }
}

impl From<SessionRules> for StoredRules {
    fn from(rules: SessionRules) -> Self {
        let SessionRules {
            given,
            of_assistant,
            ..
        } = rules;
        if of_assistant.is_empty() {
            return Self::Given(given);
        }
        Self::WithAssistant {
            given,
            of_assistant,
        }
    }
}

impl SessionRules {
    /// Returns true if neither the session nor its assistant has rules.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty() && self.of_assistant.is_empty()
    }

    /// Returns these rules with those of an assistant in the place of an earlier one's.
    #[must_use]
    pub fn with_assistant(&self, rules: &[policy::Rule]) -> Self {
        Self {
            given: self.given.clone(),
            of_assistant: rules.iter().map(super::assistant::in_force).collect(),
            compiled: Memo::default(),
        }
    }

    /// Returns the rules of the assistant without those that were given in the session.
    pub(super) fn of_assistant_only(&self) -> Self {
        Self {
            given: Vec::new(),
            of_assistant: self.of_assistant.clone(),
            compiled: Memo::default(),
        }
    }

    /// The rules, in the order in which they were added.
    pub fn given(&self) -> &[GivenRule] {
        &self.given
    }

    /// Finds a rule by its id.
    pub fn find(&self, id: &str) -> Option<&GivenRule> {
        self.given.iter().find(|given| given.rule.id == id)
    }

    /// Returns true if the session already has [`MAX_SESSION_RULES`] rules.
    pub(super) fn is_full(&self) -> bool {
        self.given.len() >= MAX_SESSION_RULES
    }

    pub(super) fn with(&self, given: GivenRule) -> Self {
        let given = self.given.iter().cloned().chain([given]).collect();
        Self {
            given,
            of_assistant: self.of_assistant.clone(),
            compiled: Memo::default(),
        }
    }

    pub(super) fn without(&self, id: &str) -> Self {
        let others = self.given.iter().filter(|given| given.rule.id != id);
        Self {
            given: others.cloned().collect(),
            of_assistant: self.of_assistant.clone(),
            compiled: Memo::default(),
        }
    }

    fn compiled(&self) -> &policy::Rules {
        self.compiled.get(|| {
            let rules = self.given.iter().map(|given| given.rule.clone());
            let rules = rules.chain(self.of_assistant.iter().cloned());
            policy::Rules::compile_safely(rules.collect())
        })
    }
}

impl Rules {
    /// The rule that denies an action of a person other than a tool call, such as reading a resource of a
    /// server. The action is evaluated as a call with these arguments.
    pub fn forbids(
        &self,
        (given, cost): (&SessionRules, MicroUsd),
        (at, args): (&ToolRef, &Value),
        now: Timestamp,
    ) -> Option<Ruling> {
        let Policy::InForce(rules) = &self.policy else {
            return None;
        };
        let call = policy::Call {
            server: &at.server,
            tool: &at.tool,
            definition: None,
            arguments: args,
            shell: None,
            workspace: None,
            cost_micros: Some(cost.0),
            now_ms: u64::try_from(now.0).unwrap_or(0),
        };
        let ruling = Ruling::of(&rules.and(given.compiled()).decide(&call));
        (ruling.effect == PolicyEffect::Deny).then_some(ruling)
    }

    /// Evaluates the rules, including those of a session with this cost so far, for a call with these
    /// arguments at this time.
    pub(super) fn rule_on(
        &self,
        given: &SessionRules,
        cost: MicroUsd,
        id: &CallId,
        args: &Value,
        facts: &ToolFacts,
        now: Timestamp,
    ) -> Ruling {
        match &self.policy {
            Policy::Recorded(rulings) => rulings.get(id).cloned().unwrap_or_else(|| {
                Ruling::recorded(PolicyEffect::Ask, None, "", &ApprovalRequirement::default())
            }),
            Policy::InForce(rules) => {
                let call = policy_call(facts, args, cost, now);
                let decision = if given.is_empty() {
                    rules.decide(&call)
                } else {
                    rules.and(given.compiled()).decide(&call)
                };
                Ruling::of(&decision)
            }
        }
    }
}

impl Ruling {
    /// The approval requirements of a call under this ruling.
    pub fn wants(&self) -> ApprovalRequirement {
        ApprovalRequirement::new(&self.approvers, self.fresh_gesture)
    }

    /// Returns true if a model may approve in place of the owner: only if nothing but the owner's approval
    /// is required.
    pub(super) fn is_reviewed(&self) -> bool {
        self.effect == PolicyEffect::Ask
            && self.is_open_to_review
            && self.approvers.is_empty()
            && !self.fresh_gesture
    }

    /// A ruling recorded in a journal.
    pub(super) fn recorded(
        effect: PolicyEffect,
        rule: Option<RuleName>,
        why: &str,
        wants: &ApprovalRequirement,
    ) -> Self {
        Self {
            effect,
            rule,
            why: why.to_owned(),
            approvers: wants.approvers.clone(),
            fresh_gesture: wants.fresh_gesture,
            is_open_to_review: false,
        }
    }

    fn of(decision: &policy::Decision) -> Self {
        Self {
            effect: decision.effect,
            rule: decision.named().first().map(|rule| RuleName {
                id: rule.id.clone(),
                name: rule.name.clone().unwrap_or_else(|| rule.id.clone()),
            }),
            why: decision.because.to_string(),
            approvers: ApprovalRequirement::new(&decision.approvers, decision.fresh_gesture)
                .approvers,
            fresh_gesture: decision.fresh_gesture,
            is_open_to_review: decision.reviewed,
        }
    }
}

/// Converts a call of a session with this cost so far into the form that rules evaluate.
pub fn policy_call<'a>(
    facts: &'a ToolFacts,
    args: &'a Value,
    cost: MicroUsd,
    now: Timestamp,
) -> policy::Call<'a> {
    policy::Call {
        server: &facts.tool.server,
        tool: &facts.tool.tool,
        definition: facts.definition.as_ref().map(crate::domain::Digest::as_str),
        arguments: args,
        shell: shell_tool(&facts.tool),
        workspace: (facts.runs_in.kind != RunsInKind::Remote).then_some(WORKSPACE),
        cost_micros: Some(cost.0),
        now_ms: u64::try_from(now.0).unwrap_or(0),
    }
}
