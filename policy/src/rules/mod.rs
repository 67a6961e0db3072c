//! Rules that were checked and can decide.

mod check;
mod commands;
mod compiled;
mod decide;

use std::sync::Arc;

use self::compiled::Compiled;
use crate::because::Decision;
use crate::call::Call;
use crate::rule::Rule;

pub use self::check::Problem;

/// Rules that are decided by together. Cloning is cheap; their order does not matter.
#[derive(Debug, Clone, Default)]
pub struct Rules(Arc<[Compiled]>);

impl Rules {
    /// Checks rules and makes them ready, examples included.
    ///
    /// # Errors
    /// Every problem of every rule. Nothing is decided by some of the rules, because one that was
    /// left out might deny.
    pub fn compile(rules: Vec<Rule>) -> Result<Self, Vec<Problem>> {
        let problems = check::names(&rules);
        let mut compiled = Vec::with_capacity(rules.len());
        let mut problems = problems;
        for rule in rules {
            match check::rule(rule) {
                Ok(rule) => compiled.push(rule),
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        compiled.sort_by(|a, b| a.rule.id.cmp(&b.rule.id));
        Ok(Self(compiled.into()))
    }

    /// What happens to a call, and why.
    ///
    /// Deny comes first, whatever its scope. Then binding asks. Then the nearest scope in which a
    /// rule asks or allows, where ask comes first. What no rule allows is asked.
    pub fn decide(&self, call: &Call<'_>) -> Decision {
        decide::decide(&self.0, call)
    }

    /// The rules, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter().map(|compiled| &compiled.rule)
    }
}

#[cfg(test)]
mod tests;
