//! Checks a rule before it decides anything.

use std::collections::BTreeSet;

use serde_json::Value;
use thiserror::Error;

use super::compiled::{CompiledRule, Test};
use super::decide::decide;
use crate::conditions::{Conditions, is_folder, is_host_pattern};
use crate::rule::{Approvers, Effect, Example, Network, Rule, Scope};

/// A problem of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    #[error("two rules have the id `{rule}`")]
    SameId { rule: String },
    #[error("rule `{rule}`: {what}")]
    Wrong { rule: String, what: &'static str },
    #[error("rule `{rule}`: the schema cannot be used: {why}")]
    Schema { rule: String, why: String },
    #[error("rule `{rule}`: the example that it should match is not decided by it")]
    ExampleNotMatched { rule: String },
    #[error("rule `{rule}`: the example that it should leave alone is decided by it")]
    OtherExampleMatched { rule: String },
}

/// Returns the ids that occur twice.
pub(super) fn names(rules: &[Rule]) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let again = rules.iter().filter(|rule| !seen.insert(&rule.id));
    again
        .map(|rule| Problem::SameId {
            rule: rule.id.clone(),
        })
        .collect()
}

/// Compiles a rule that was already stored. An allow rule that by now matches fewer commands than its example
/// stays, and decides what it still matches.
pub(super) fn kept(mut rule: Rule) -> Result<CompiledRule, Vec<Problem>> {
    let narrower = |problems: &[Problem]| {
        let is_narrower = |problem| matches!(problem, &Problem::ExampleNotMatched { .. });
        problems.iter().all(is_narrower)
    };
    match self::rule(rule.clone()) {
        Err(problems) if rule.effect == Effect::Allow && narrower(&problems) => {
            rule.examples = None;
            self::rule(rule)
        }
        checked => checked,
    }
}

/// Compiles a rule, or returns all its problems.
pub(super) fn rule(rule: Rule) -> Result<CompiledRule, Vec<Problem>> {
    let mut problems: Vec<Problem> = std::iter::once(&rule.when)
        .chain(&rule.except)
        .filter_map(wrong_condition)
        .chain(wrong_field(&rule))
        .map(|what| Problem::Wrong {
            rule: rule.id.clone(),
            what,
        })
        .collect();
    let schema = |why: String| Problem::Schema {
        rule: rule.id.clone(),
        why,
    };
    let when = Test::new(&rule.when).map_err(schema);
    let except: Result<Vec<Test>, Problem> = rule
        .except
        .iter()
        .map(|test| Test::new(test).map_err(schema))
        .collect();
    match (when, except) {
        (Ok(when), Ok(except)) if problems.is_empty() => {
            let compiled = CompiledRule { rule, when, except };
            examples(compiled)
        }
        (when, except) => {
            problems.extend(when.err());
            problems.extend(except.err());
            Err(problems)
        }
    }
}

fn wrong_field(rule: &Rule) -> Option<&'static str> {
    let is = |effect| rule.effect == effect;
    if rule.id.is_empty() {
        Some("the id is empty")
    } else if is(Effect::Allow) && !rule.except.is_empty() {
        Some("exceptions are only for ask and deny")
    } else if !is(Effect::Ask) && rule.binding {
        Some("only ask rules can be binding")
    } else if !is(Effect::Ask) && rule.approvers != Approvers::default() {
        Some("only ask rules say who must say yes")
    } else if !is(Effect::Allow) && !rule.reviewed && takes_any_words(&rule.when) {
        Some("what asks or refuses is about any words already")
    } else if rule.reviewed && !is(Effect::Ask) {
        Some("only ask rules can open calls to the reviewer")
    } else if rule.reviewed && matches!(rule.scope, Scope::Session | Scope::Person) {
        Some("only rules of groups, the tenant or the installation can open calls to the reviewer")
    } else if rule.reviewed && rule.approvers != Approvers::default() {
        Some("no model can review what somebody else, two people or a fresh gesture must approve")
    } else if rule.except.iter().any(Conditions::is_empty) {
        Some("an exception without conditions leaves nothing of the rule")
    } else {
        let network = rule.network.as_ref();
        network.and_then(|network| wrong_network(rule, network))
    }
}

/// Checks that a rule about connections has no conditions on calls, so that nobody mistakes it for a narrower
/// one.
fn wrong_network(rule: &Rule, network: &Network) -> Option<&'static str> {
    if network.hosts.is_empty() {
        Some("the list of hosts is empty")
    } else if rule.effect != Effect::Allow {
        Some("hosts can only be allowed: what no rule allows is refused")
    } else if rule.scope != Scope::Session {
        Some("hosts are allowed for one session")
    } else if !rule.server.is_any()
        || !rule.tool.is_any()
        || !rule.when.is_empty()
        || rule.definition.is_some()
        || rule.examples.is_some()
    {
        Some("a rule about hosts is about every command of the session, not about single calls")
    } else {
        None
    }
}

fn wrong_condition(conditions: &Conditions) -> Option<&'static str> {
    let commands = conditions.command.as_deref();
    let is_unusable = |word: &String| word.is_empty() || word.contains(char::is_control);
    if commands.is_some_and(<[_]>::is_empty) {
        Some("the list of commands is empty")
    } else if commands
        .into_iter()
        .flatten()
        .any(|prefix| prefix.words.is_empty())
    {
        Some("a command has no words")
    } else if commands
        .into_iter()
        .flatten()
        .any(|prefix| prefix.words.iter().any(is_unusable))
    {
        Some("a word of a command is empty or has signs that cannot be seen")
    } else if commands
        .into_iter()
        .flatten()
        .any(|prefix| prefix.any_words && !prefix.more)
    {
        Some("a command that takes no further words cannot take any words")
    } else if conditions.schema.as_ref().is_some_and(fits_everything) {
        Some("the schema is empty: every call would fit it")
    } else if has_no_argument(conditions) {
        Some("the name of an argument is empty")
    } else if !conditions.paths.iter().all(|path| is_folder(&path.below)) {
        Some("a folder must be relative to the workspace and without `..`")
    } else if !conditions
        .hosts
        .iter()
        .all(|host| is_host_pattern(&host.host))
    {
        Some("a host must be a name such as `example.com` or `*.example.com`")
    } else {
        None
    }
}

fn takes_any_words(conditions: &Conditions) -> bool {
    let mut prefixes = conditions.command.iter().flatten();
    prefixes.any(|prefix| prefix.any_words)
}

/// Returns true if the schema accepts everything.
fn fits_everything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(serde_json::Map::is_empty)
}

fn has_no_argument(conditions: &Conditions) -> bool {
    let paths = conditions.paths.iter().map(|path| &path.argument);
    let hosts = conditions.hosts.iter().map(|host| &host.argument);
    paths.chain(hosts).any(|name| name.trim().is_empty())
}

/// Checks the rule alone on its examples.
fn examples(compiled: CompiledRule) -> Result<CompiledRule, Vec<Problem>> {
    let rule = &compiled.rule;
    let Some(examples) = &rule.examples else {
        return Ok(compiled);
    };
    let fits_everything = rule.server.is_any() && rule.tool.is_any() && rule.when.is_empty();
    let decides = |example: &Example| {
        // An expired rule is still checked: the examples are about what it matches.
        let call = example.call(rule.definition.as_deref(), 0);
        let decision = decide(std::iter::once(&compiled), &call);
        decision.effect == rule.effect && decision.rules().next().is_some()
    };
    let id = || rule.id.clone();
    let mut problems = Vec::new();
    if !decides(&examples.matching) {
        problems.push(Problem::ExampleNotMatched { rule: id() });
    }
    match &examples.other {
        Some(other) if decides(other) => problems.push(Problem::OtherExampleMatched { rule: id() }),
        None if !fits_everything => problems.push(Problem::Wrong {
            rule: id(),
            what: "the example that it leaves alone is missing",
        }),
        _ => {}
    }
    if problems.is_empty() {
        Ok(compiled)
    } else {
        Err(problems)
    }
}
