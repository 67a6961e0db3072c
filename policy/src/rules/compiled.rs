//! Matches one checked rule against calls.

use sepal_schema::{Formats, Schema};

use super::commands;
use crate::because::RuleName;
use crate::call::Call;
use crate::conditions::{Conditions, Fit};
use crate::rule::{Effect, Rule};
use crate::shell::Part;

/// The unit of a decision: a part of a call's command, or the whole call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit<'a> {
    /// A call of a tool that runs no commands, or to which no rule about commands applies.
    Whole,
    /// A command line that could not be read.
    Unread,
    Part(&'a Part),
}

/// Conditions with their compiled schema.
#[derive(Debug)]
pub(super) struct Test {
    conditions: Conditions,
    schema: Option<Schema>,
}

impl Test {
    pub(super) fn new(conditions: &Conditions) -> Result<Self, String> {
        let compile = |schema| Schema::compile(schema, Formats::Remarks);
        let schema = conditions.schema.as_ref().map(compile);
        Ok(Self {
            conditions: conditions.clone(),
            schema: schema.transpose().map_err(|error| error.to_string())?,
        })
    }

    pub(super) fn is_about_commands(&self) -> bool {
        self.conditions.command.is_some()
    }

    /// Returns how surely all conditions but the command hold.
    pub(super) fn fit_of_call(&self, call: &Call<'_>) -> Fit {
        let fit = self.conditions.fit(call);
        let Some(schema) = self.schema.as_ref().filter(|_| fit != Fit::No) else {
            return fit;
        };
        // If the evaluation takes too many steps, the result is unsure.
        let schema = schema.is_valid(call.arguments);
        fit.min(schema.map_or(Fit::Unsure, Fit::from))
    }

    /// Returns true if the command condition surely covers all of `unit`.
    fn covers(&self, call: &Call<'_>, unit: Unit<'_>) -> bool {
        let Some(prefixes) = &self.conditions.command else {
            return true;
        };
        let is_covered = |part| {
            prefixes
                .iter()
                .any(|prefix| commands::gap(prefix, part).is_none())
        };
        call.has_only_its_command() && matches!(unit, Unit::Part(part) if is_covered(part))
    }

    /// Returns how surely the command condition matches something in `unit`.
    fn touches(&self, unit: Unit<'_>) -> Fit {
        match (&self.conditions.command, unit) {
            (None, _) => Fit::Yes,
            (Some(_), Unit::Whole) => Fit::No,
            (Some(_), Unit::Unread) => Fit::Unsure,
            (Some(prefixes), Unit::Part(part)) => {
                let fits = prefixes.iter().map(|prefix| commands::touch(prefix, part));
                fits.max().unwrap_or(Fit::No)
            }
        }
    }
}

/// A rule with its compiled conditions.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) rule: Rule,
    pub(super) when: Test,
    pub(super) except: Vec<Test>,
}

impl CompiledRule {
    pub(super) fn name(&self) -> RuleName {
        RuleName {
            id: self.rule.id.clone(),
            name: self.rule.name.clone(),
        }
    }

    pub(super) fn is_about(&self, call: &Call<'_>) -> bool {
        self.rule.server.fits(call.server) && self.rule.tool.fits(call.tool)
    }

    pub(super) fn is_about_commands(&self) -> bool {
        self.when.is_about_commands() || self.except.iter().any(Test::is_about_commands)
    }

    pub(super) fn has_ended(&self, now_ms: u64) -> bool {
        self.rule
            .until_ms
            .is_some_and(|until_ms| until_ms <= now_ms)
    }

    /// Returns true if the rule allowed another definition. Ask and deny apply to every definition: a server
    /// must not escape a refusal by changing its tool's description.
    pub(super) fn has_drifted(&self, definition: Option<&str>) -> bool {
        let wanted = self.rule.definition.as_deref();
        self.rule.effect == Effect::Allow && wanted.is_some() && wanted != definition
    }

    /// Returns true if the rule surely opens `unit` to a model's review. As strict as an allow rule:
    /// uncertain matches and possible exceptions are not opened, and a definition that the rule names must be
    /// the current one.
    pub(super) fn opens(&self, call: &Call<'_>, unit: Unit<'_>) -> bool {
        let wanted = self.rule.definition.as_deref();
        let may_be_meant =
            |test: &Test| test.fit_of_call(call) != Fit::No && test.touches(unit) != Fit::No;
        self.rule.reviewed
            && (wanted.is_none() || wanted == call.definition)
            && self.when.fit_of_call(call) == Fit::Yes
            && self.when.covers(call, unit)
            && !self.except.iter().any(may_be_meant)
    }

    /// Returns how surely the rule's effect applies to `unit`, given how surely all but the command fits.
    pub(super) fn fit(&self, fit_of_call: Fit, call: &Call<'_>, unit: Unit<'_>) -> Fit {
        match self.rule.effect {
            Effect::Allow => (fit_of_call == Fit::Yes && self.when.covers(call, unit)).into(),
            Effect::Ask | Effect::Deny => {
                let is_meant =
                    |test: &Test| test.fit_of_call(call) == Fit::Yes && test.covers(call, unit);
                if self.except.iter().any(is_meant) {
                    Fit::No
                } else {
                    fit_of_call.min(self.when.touches(unit))
                }
            }
        }
    }
}
