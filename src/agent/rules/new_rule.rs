//! Builds new rules, from a waiting call or from given conditions.

use sepal_policy as policy;
use sepal_policy::{
    Approvers, Conditions, Effect, Examples, Glob, Reach, Rule, Rules, Scope, derive_examples,
};

use crate::domain::{CallId, Code, SessionKey, Timestamp, named_shell};
use crate::session::{Call, Refusal, policy_call};

/// Milliseconds in an hour.
const HOUR_MS: u64 = 60 * 60 * 1000;

/// The sessions whose calls a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleWhose {
    /// One session.
    Session(SessionKey),
    /// The caller's sessions.
    Person,
    /// The sessions of the members of a group, by its id.
    Group(String),
    /// All sessions of the tenant.
    Tenant,
}

impl RuleWhose {
    fn scope(&self) -> Scope {
        match self {
            Self::Session(_) => Scope::Session,
            Self::Person => Scope::Person,
            Self::Group(_) => Scope::Group,
            Self::Tenant => Scope::Tenant,
        }
    }
}

/// A rule to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRule {
    pub whose: RuleWhose,
    pub effect: Effect,
    /// `None` = the server of the call, or any server without a call.
    pub server: Option<Glob>,
    /// `None` = the tool of the call, or any tool without a call.
    pub tool: Option<Glob>,
    pub when: Conditions,
    /// Exceptions, for ask and deny.
    pub except: Vec<Conditions>,
    /// True if the rule also asks about calls that more specific rules allow; for ask.
    pub is_binding: bool,
    /// The people who must approve, and how; for ask.
    pub approvers: Approvers,
    /// True if a model may approve the calls that the rule asks about; for ask, and for a group or the whole
    /// tenant.
    pub is_reviewed: bool,
    /// Hosts that the commands of the session may reach; a rule with hosts is not about calls.
    pub network: Vec<String>,
    /// Expires after so many hours; `None` = never.
    pub lasts_hours: Option<u32>,
    pub name: Option<String>,
    /// Calls that show what the rule matches and what it does not; `None` = they are derived.
    pub examples: Option<Examples>,
    /// The repeated name, for a rule that lets every call of a tool run.
    pub confirm: Option<String>,
    /// The call that the rule is made from: the rule has to match it, and is bound to the current definition
    /// of its tool.
    pub call: Option<(SessionKey, CallId)>,
}

/// A suggested rule for a call.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleOffer {
    pub reach: RuleReach,
    pub when: Conditions,
    /// The rule in words, for the rest of the session.
    pub sentence: String,
    pub examples: Examples,
}

/// The number of calls that a suggested rule covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleReach {
    /// Exactly this call.
    Exact,
    /// Calls with arguments like these.
    Arguments,
    /// Every call of the tool.
    Tool,
}

impl RuleReach {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Arguments => "arguments",
            Self::Tool => "tool",
        }
    }
}

impl From<Reach> for RuleReach {
    fn from(reach: Reach) -> Self {
        match reach {
            Reach::Exact => Self::Exact,
            Reach::Alike => Self::Arguments,
            Reach::Tool => Self::Tool,
        }
    }
}

/// Suggests rules about calls like this one, the narrowest first.
pub(super) fn offers(call: &Call, now: Timestamp) -> Vec<RuleOffer> {
    let Some(facts) = call.facts.as_deref() else {
        return Vec::new();
    };
    let call = policy_call(facts, &call.args, crate::domain::MicroUsd(0), now);
    let offers = policy::propose(&call);
    let offers = offers.iter().filter_map(|offer| {
        let rule = offer.draft();
        Some(RuleOffer {
            reach: offer.reach.into(),
            when: rule.when.clone(),
            sentence: policy::sentence(rule),
            examples: rule.examples.clone()?,
        })
    });
    offers.collect()
}

impl NewRule {
    /// Builds the rule, with a new id.
    pub(super) fn rule(&self, call: Option<&Call>, now: Timestamp) -> Result<Rule, Refusal> {
        check_may_open(self)?;
        let mut rule = Rule::new(new_id(), self.effect, self.whose.scope());
        rule.name.clone_from(&self.name);
        rule.when = self.when.clone();
        rule.except.clone_from(&self.except);
        rule.binding = self.is_binding;
        rule.approvers = self.approvers.clone();
        rule.reviewed = self.is_reviewed;
        rule.until_ms = self.until_ms(now);
        if let Some(server) = &self.server {
            rule.server = server.clone();
        }
        if let Some(tool) = &self.tool {
            rule.tool = tool.clone();
        }
        check(&rule)?;
        if let Some(call) = call {
            of_call(&mut rule, call, now)?;
        } else {
            let given = self
                .examples
                .clone()
                .map(|given| self.at_fitting_cost(given));
            let examples = given.or_else(|| derive_examples(&rule, named_shell()));
            rule.examples = Some(examples.ok_or_else(no_examples)?);
        }
        // Lists and reasons show the rule's name; its id says nothing to a person.
        if rule.name.is_none() {
            rule.name = Some(policy::subject(&rule));
        }
        check(&rule)?;
        Ok(rule)
    }

    /// The time at which the rule expires.
    pub(super) fn until_ms(&self, now: Timestamp) -> Option<u64> {
        let now_ms = u64::try_from(now.0).unwrap_or(0);
        self.lasts_hours
            .map(|hours| now_ms.saturating_add(u64::from(hours).saturating_mul(HOUR_MS)))
    }

    /// Gives examples that people typed the session cost that the rule's conditions need.
    fn at_fitting_cost(&self, mut given: Examples) -> Examples {
        let cost = self.when.fitting_cost();
        given.matching.cost_micros = cost;
        if let Some(other) = &mut given.other {
            other.cost_micros = cost;
        }
        given
    }
}

/// Binds the rule to the call's tool and its current definition, and makes the call its example.
fn of_call(rule: &mut Rule, call: &Call, now: Timestamp) -> Result<(), Refusal> {
    let Some(facts) = call.facts.as_deref() else {
        return Err(wrong("callId", "nothing is known of the call's tool"));
    };
    rule.server = Glob::from(facts.tool.server.as_str());
    rule.tool = Glob::from(facts.tool.tool.as_str());
    rule.definition = facts
        .definition
        .as_ref()
        .map(|definition| definition.as_str().to_owned());
    let call = policy_call(facts, &call.args, crate::domain::MicroUsd(0), now);
    let offered = policy::propose(&call);
    let same = offered.iter().find(|offer| offer.draft().when == rule.when);
    let examples = same.and_then(|offer| offer.draft().examples.clone());
    rule.examples = examples.or_else(|| derive_examples(rule, named_shell()));
    let alone = Rules::compile(vec![rule.clone()]).map_err(|problems| not_usable(&problems))?;
    if alone.decide(&call).effect != rule.effect {
        let text = "the rule would not be about this call; choose it wider";
        return Err(wrong("when", text));
    }
    Ok(())
}

/// Returns the name that has to be repeated to create a rule about every call of its tools: the tool's, else
/// the server's, else `everything`.
pub(super) fn name_to_confirm(rule: &Rule) -> &str {
    match (rule.tool.is_any(), rule.server.is_any()) {
        (false, _) => rule.tool.as_str(),
        (true, false) => rule.server.as_str(),
        (true, true) => "everything",
    }
}

/// Refuses a rule about every call of its tools unless `wanted` was repeated.
pub(super) fn check_confirmed(new: &NewRule, wanted: Option<&str>) -> Result<(), Refusal> {
    let Some(wanted) = wanted.filter(|wanted| new.confirm.as_deref() != Some(wanted)) else {
        return Ok(());
    };
    let text = format!(
        "the rule has no condition, so every call runs without asking, whatever it does; add a \
         condition, or repeat `{wanted}` in `confirm` to give it"
    );
    Err(wrong("confirm", text))
}

pub(super) fn new_id() -> String {
    format!("rul_{:032x}", rand::random::<u128>())
}

pub(super) fn check(rule: &Rule) -> Result<(), Refusal> {
    Rules::compile(vec![rule.clone()]).map_err(|problems| not_usable(&problems))?;
    Ok(())
}

/// Refuses a rule that a model may review, unless it is for a group or the whole tenant: admins alone create such
/// rules.
fn check_may_open(new: &NewRule) -> Result<(), Refusal> {
    let is_of_admins = matches!(new.whose, RuleWhose::Group(_) | RuleWhose::Tenant);
    if new.is_reviewed && !is_of_admins {
        let text = "only admins open calls to the reviewer, for a group or the whole tenant";
        return Err(Refusal::of_field(Code::NotAllowed, "reviewed", text));
    }
    Ok(())
}

fn not_usable(problems: &[policy::Problem]) -> Refusal {
    let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
    wrong("when", words.join("; "))
}

fn no_examples() -> Refusal {
    let text = "give an example that the rule is about and one that it is not: none can be made up \
                for these conditions";
    wrong("examples", text)
}

pub(super) fn wrong(field: &'static str, text: impl Into<String>) -> Refusal {
    Refusal::of_field(Code::InvalidArguments, field, text)
}
