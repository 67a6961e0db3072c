//! One rule that was checked, and what of a call it fits.

use sepal_schema::{Formats, Schema};

use super::commands;
use crate::because::RuleName;
use crate::call::Call;
use crate::conditions::{Conditions, Fit};
use crate::rule::{Effect, Rule};
use crate::shell::Part;

/// What of a call is decided at once: a part of its command, or the whole call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit<'a> {
    /// A call of a tool that runs no commands, or of which no rule is about commands.
    Whole,
    /// A command line that was not read.
    Unread,
    Part(&'a Part),
}

/// Conditions with their schema made ready.
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

    /// How surely everything but the command holds.
    pub(super) fn fit_of_call(&self, call: &Call<'_>) -> Fit {
        let fit = self.conditions.fit(call);
        let Some(schema) = self.schema.as_ref().filter(|_| fit != Fit::No) else {
            return fit;
        };
        // Where the evaluation takes too many steps, nobody knows whether it fits.
        let schema = schema.is_valid(call.arguments);
        fit.min(schema.map_or(Fit::Unsure, Fit::from))
    }

    /// Whether all of `unit` is surely meant.
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

    /// How surely something of `unit` is meant.
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

/// A rule with its conditions made ready.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Rule,
    pub(super) when: Test,
    pub(super) except: Vec<Test>,
}

impl Compiled {
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

    /// Whether the rule allowed another definition. Ask and deny hold for every definition: a server
    /// must not end what refuses it by describing its tool anew.
    pub(super) fn has_drifted(&self, definition: Option<&str>) -> bool {
        let wanted = self.rule.definition.as_deref();
        self.rule.effect == Effect::Allow && wanted.is_some() && wanted != definition
    }

    /// Whether `unit` is surely among what the rule opens to a model's review. As strict as an allow
    /// rule: what may be meant is not opened, what may be an exception is not, and a definition that
    /// the rule names must be that of now.
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

    /// How surely the rule's own effect holds for `unit`, when all but the command fits so surely.
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
