//! Which calls run, ask or are refused: the rules in force, and those that were given in the session.

use std::collections::BTreeMap;

use sepal_policy as policy;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{ToolFacts, Wants};
use crate::domain::{Actor, CallId, Memo, MicroUsd, RunsInKind, Timestamp, ToolRef, shell_tool};

pub use sepal_policy::{Approver, Effect as PolicyEffect, Rule};

/// Rules that one session may hold at the same time: each is looked at for every call of it.
const MAX_SESSION_RULES: usize = 50;

/// Where relative paths of tools begin that run in a sandbox.
const WORKSPACE: &str = "/workspace";

/// Everything that `decide` goes by beside the state.
#[derive(Debug, Clone)]
pub struct Rules {
    /// What decides about calls.
    pub policy: Policy,
    /// Model requests a turn may make (D7).
    pub max_iterations: u32,
    /// How often in a row a turn may make the same calls while they give the same; `None` = no limit.
    pub max_same_calls: Option<u32>,
    /// Approvals older than this are asked again when another process takes over.
    pub approval_stale_after_ms: u64,
    /// How long a call waits for a decision before it is rejected; `None` = until there is one.
    pub approval_expiry_ms: Option<u64>,
    /// The treatment of arguments that others than the owner of a session change.
    pub edits_by_others: EditsByOthers,
    /// Messages that may wait for the running turn.
    pub max_waiting_messages: usize,
    /// Calls that one answer may ask for; more are answered with an error.
    pub max_calls_per_answer: usize,
    /// Whether a model gives sessions their titles.
    pub has_titles_made: bool,
    /// Whether there is a model that reviews the calls that rules open to it.
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

/// The treatment of arguments that somebody changes who is asked about a call of another person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EditsByOthers {
    /// They run once the owner of the session has said yes to them, too.
    #[default]
    NeedOwner,
    /// They are refused: the others only say yes or no.
    Refused,
}

/// What decides about calls.
#[derive(Debug, Clone)]
pub enum Policy {
    /// The rules of the installation, the tenant and the person. Those of the session come with its
    /// state.
    InForce(policy::Rules),
    /// What a journal says of each call, whatever rules there were (`sepal replay`).
    Recorded(BTreeMap<CallId, Ruling>),
}

impl Default for Policy {
    fn default() -> Self {
        Self::InForce(policy::Rules::default())
    }
}

/// What was decided about a call before anybody was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub effect: PolicyEffect,
    /// The rule that said so; none = no rule is about the call, so it asks.
    pub rule: Option<RuleName>,
    /// Why, as a sentence for people.
    pub why: String,
    /// Whose yes an asked call needs, all of them; empty = the owner's alone.
    pub approvers: Vec<Approver>,
    /// Whether the yes needs a fresh proof of presence.
    pub fresh_gesture: bool,
    /// Whether all that asks opened the call to a model's review.
    pub is_open_to_review: bool,
}

/// A rule, as the journal names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleName {
    pub id: String,
    /// What people read.
    pub name: String,
}

/// A rule that was given in a session, for it alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenRule {
    pub rule: policy::Rule,
    pub by: Actor,
    pub at: Timestamp,
}

/// All of them. Shared, because control states are copied for each decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionRules {
    given: Vec<GivenRule>,
    #[serde(skip)]
    compiled: Memo<policy::Rules>,
}

impl SessionRules {
    /// Whether none was given.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// The rules, in the order in which they were given.
    pub fn given(&self) -> &[GivenRule] {
        &self.given
    }

    /// The rule of that id.
    pub fn find(&self, id: &str) -> Option<&GivenRule> {
        self.given.iter().find(|given| given.rule.id == id)
    }

    /// Whether there is no room for another.
    pub(super) fn is_full(&self) -> bool {
        self.given.len() >= MAX_SESSION_RULES
    }

    pub(super) fn with(&self, given: GivenRule) -> Self {
        let given = self.given.iter().cloned().chain([given]).collect();
        Self {
            given,
            compiled: Memo::default(),
        }
    }

    pub(super) fn without(&self, id: &str) -> Self {
        let others = self.given.iter().filter(|given| given.rule.id != id);
        Self {
            given: others.cloned().collect(),
            compiled: Memo::default(),
        }
    }

    fn compiled(&self) -> &policy::Rules {
        self.compiled.get(|| {
            let rules = self.given.iter().map(|given| given.rule.clone());
            policy::Rules::compile_safely(rules.collect())
        })
    }
}

impl Rules {
    /// The rule that forbids something that is no call of a tool and that a person asked for, such as
    /// reading a resource of a server. It is looked at as a call with these arguments.
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

    /// What the rules, and those that were given in a session that has cost so much, say of a call with
    /// these arguments, now.
    pub(super) fn rule_on(
        &self,
        (given, cost): (&SessionRules, MicroUsd),
        (id, args): (&CallId, &Value),
        (facts, now): (&ToolFacts, Timestamp),
    ) -> Ruling {
        match &self.policy {
            Policy::Recorded(rulings) => rulings.get(id).cloned().unwrap_or_else(|| {
                Ruling::recorded(PolicyEffect::Ask, (None, ""), &Wants::default())
            }),
            Policy::InForce(rules) => {
                let call = policy_call((facts, args), cost, now);
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
    /// What a call that it asks for wants.
    pub fn wants(&self) -> Wants {
        Wants::new(&self.approvers, self.fresh_gesture)
    }

    /// Whether a model may say yes in the place of the owner: never where more than that is wanted.
    pub(super) fn is_reviewed(&self) -> bool {
        self.effect == PolicyEffect::Ask
            && self.is_open_to_review
            && self.approvers.is_empty()
            && !self.fresh_gesture
    }

    /// What a journal says was decided.
    pub(super) fn recorded(
        effect: PolicyEffect,
        (rule, why): (Option<RuleName>, &str),
        wants: &Wants,
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
            approvers: Wants::new(&decision.approvers, decision.fresh_gesture).approvers,
            fresh_gesture: decision.fresh_gesture,
            is_open_to_review: decision.reviewed,
        }
    }
}

/// A call as rules see it, of a session that has cost so much.
pub fn policy_call<'a>(
    (facts, args): (&'a ToolFacts, &'a Value),
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
