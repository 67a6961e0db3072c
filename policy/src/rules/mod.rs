//! Compiles rules and decides calls by them.

mod check;
mod commands;
mod compiled;
mod decide;

use std::sync::Arc;

use self::compiled::CompiledRule;
use crate::because::Decision;
use crate::call::Call;
use crate::rule::{Effect, Rule};

pub use self::check::Problem;

/// Rules that decide together. Cloning is cheap; their order does not matter.
#[derive(Debug, Clone, Default)]
pub struct Rules(Arc<[Arc<CompiledRule>]>);

impl Rules {
    /// Checks and compiles rules, including their examples.
    ///
    /// # Errors
    /// Every problem of every rule. A part of the rules never decides alone, because an omitted rule might
    /// deny.
    pub fn compile(rules: Vec<Rule>) -> Result<Self, Vec<Problem>> {
        let problems = check::names(&rules);
        let mut compiled = Vec::with_capacity(rules.len());
        let mut problems = problems;
        for rule in rules {
            match check::rule(rule) {
                // A rule about a session's network decides no call.
                Ok(rule) if rule.rule.network.is_some() => {}
                Ok(rule) => compiled.push(Arc::new(rule)),
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self::sorted(compiled))
    }

    /// Does the same for stored rules that the reader of an error could not fix: an unusable rule makes
    /// decisions stricter, never looser. An unusable allow rule is left out; an unusable ask or deny rule is
    /// replaced by one that asks for every call of the tools that it names, whatever else allows them.
    pub fn compile_safely(rules: Vec<Rule>) -> Self {
        let mut compiled = Vec::with_capacity(rules.len());
        for rule in rules {
            if rule.network.is_some() {
                continue;
            }
            let strict = (rule.effect != Effect::Allow).then(|| in_place_of(&rule));
            let usable = check::kept(rule).ok();
            let usable = usable.or_else(|| strict.and_then(|strict| check::kept(strict).ok()));
            compiled.extend(usable.map(Arc::new));
        }
        Self::sorted(compiled)
    }

    /// Returns the union of both rule sets.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        let all = self.0.iter().chain(others.0.iter());
        Self::sorted(all.cloned().collect())
    }

    fn sorted(mut compiled: Vec<Arc<CompiledRule>>) -> Self {
        compiled.sort_by(|a, b| a.rule.id.cmp(&b.rule.id));
        Self(compiled.into())
    }

    /// Decides a call, with the reason.
    ///
    /// Deny comes first, in any scope. Then binding ask rules. Then the nearest scope in which a rule asks or
    /// allows, with ask first. A call that no rule allows is asked.
    pub fn decide(&self, call: &Call<'_>) -> Decision {
        decide::decide(self.0.iter().map(AsRef::as_ref), call)
    }

    /// Returns the rules, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter().map(|compiled| &compiled.rule)
    }
}

#[cfg(test)]
mod tests;

/// Returns a rule that asks for every call that `rule` may be about.
fn in_place_of(rule: &Rule) -> Rule {
    let mut strict = Rule::new(rule.id.clone(), Effect::Ask, rule.scope);
    strict.name.clone_from(&rule.name);
    strict.server = rule.server.clone();
    strict.tool = rule.tool.clone();
    strict.binding = true;
    strict
}
