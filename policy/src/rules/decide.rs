//! Decides a call by rules: deny first, then ask, then allow; between the last two nearer scopes win.

use super::commands;
use super::compiled::{CompiledRule, Unit};
use crate::because::{Because, Decision, Gap, RuleName};
use crate::call::Call;
use crate::conditions::Fit;
use crate::rule::{Approver, Approvers, Effect, Scope};
use crate::shell::{self, Part, Unread};

/// The decision on one unit.
struct Verdict {
    effect: Effect,
    because: Because,
    approvers: Vec<Approvers>,
    /// True if all asking rules opened the unit to a model's review.
    is_open: bool,
}

/// A live rule that is about the call, and how surely all conditions but the command hold.
struct Candidate<'a> {
    compiled: &'a CompiledRule,
    fit: Fit,
}

/// Decides a call by these rules, which are ordered by id.
pub(super) fn decide<'a>(
    rules: impl Iterator<Item = &'a CompiledRule>,
    call: &'a Call<'a>,
) -> Decision {
    let about: Vec<&CompiledRule> = rules.filter(|rule| rule.is_about(call)).collect();
    let (live, dead): (Vec<_>, Vec<_>) = about
        .into_iter()
        .partition(|rule| !rule.has_ended(call.now_ms) && !rule.has_drifted(call.definition));
    let candidates: Vec<Candidate<'_>> = live
        .into_iter()
        .map(|compiled| Candidate {
            fit: compiled.when.fit_of_call(call),
            compiled,
        })
        .filter(|candidate| candidate.fit != Fit::No)
        .collect();
    let mut looked = candidates
        .iter()
        .map(|candidate| candidate.compiled)
        .chain(dead.iter().copied());
    let is_about_commands = looked.any(CompiledRule::is_about_commands);
    let read = (call.shell.is_some() && is_about_commands).then(|| read(call));
    let court = Court {
        call,
        candidates,
        dead,
    };
    let verdicts = match &read {
        None => vec![court.decide(Unit::Whole, None)],
        Some(Err(why)) => vec![court.decide(Unit::Unread, Some(*why))],
        Some(Ok(parts)) => court.decide_parts(parts),
    };
    together(verdicts)
}

fn read(call: &Call<'_>) -> Result<Vec<Part>, Unread> {
    shell::read(call.command().ok_or(Unread::NoText)?)
}

/// Combines the decisions on all parts: the strictest one, with its heaviest reason.
fn together(verdicts: Vec<Verdict>) -> Decision {
    let effect = verdicts
        .iter()
        .map(|verdict| verdict.effect)
        .max()
        .unwrap_or(Effect::Ask);
    let mut approvers: Vec<Approver> = Vec::new();
    let mut fresh_gesture = false;
    let mut reviewed = effect == Effect::Ask && !verdicts.is_empty();
    let mut because = Because::NoRule;
    let mut allowing: Vec<RuleName> = Vec::new();
    for verdict in verdicts
        .into_iter()
        .filter(|verdict| verdict.effect == effect)
    {
        reviewed &= verdict.is_open;
        for wanted in verdict.approvers {
            fresh_gesture |= wanted.fresh_gesture;
            approvers.push(wanted.who);
        }
        if let Because::AllowedBy { rules } = verdict.because {
            allowing.extend(rules);
        } else if verdict.because.weight() > because.weight() {
            because = verdict.because;
        }
    }
    if effect == Effect::Allow {
        allowing.sort();
        allowing.dedup();
        because = Because::AllowedBy { rules: allowing };
    }
    if effect == Effect::Ask && approvers.is_empty() {
        approvers.push(Approver::Owner);
    }
    approvers.sort();
    approvers.dedup();
    Decision {
        effect,
        because,
        approvers,
        fresh_gesture,
        reviewed,
    }
}

/// The call and the rules that are about it.
struct Court<'a> {
    call: &'a Call<'a>,
    candidates: Vec<Candidate<'a>>,
    /// Rules that would be about the call, but have expired or are about another definition.
    dead: Vec<&'a CompiledRule>,
}

impl<'a> Court<'a> {
    fn decide_parts(&self, parts: &[Part]) -> Vec<Verdict> {
        let is_alone = parts.iter().filter(|part| !part.is_shadow).count() == 1;
        let mut verdicts = Vec::with_capacity(parts.len());
        for part in parts {
            let mut verdict = self.decide(Unit::Part(part), None);
            let was_refused = matches!(
                verdict.because,
                Because::DeniedBy { .. } | Because::AskedBy { .. } | Because::MayBeDenied { .. }
            );
            // A shadow only makes a decision stricter.
            if part.is_shadow && !was_refused {
                continue;
            }
            if verdict.because == Because::NoRule {
                let nearest = self.nearest(part);
                if nearest.is_some() || !is_alone {
                    verdict.because = Because::PartNotAllowed {
                        part: part.text.clone(),
                        nearest,
                    };
                }
            }
            verdicts.push(verdict);
        }
        verdicts
    }

    fn decide(&self, unit: Unit<'_>, unread: Option<Unread>) -> Verdict {
        let part = match unit {
            Unit::Part(part) => Some(part.text.clone()),
            Unit::Whole | Unit::Unread => None,
        };
        let denying = self.fitting(Effect::Deny, unit);
        let sure: Vec<RuleName> = names(denying.iter().filter(|(_, fit)| *fit == Fit::Yes));
        if !sure.is_empty() {
            return Verdict {
                effect: Effect::Deny,
                because: Because::DeniedBy { rules: sure, part },
                approvers: Vec::new(),
                is_open: false,
            };
        }
        let allowing = self.fitting(Effect::Allow, unit);
        let nearest = |scope: &Scope| allowing.iter().any(|(rule, _)| rule.rule.scope == *scope);
        let allowed_in = Scope::ALL.into_iter().find(nearest);
        let mut asking = self.fitting(Effect::Ask, unit);
        asking.retain(|(rule, _)| {
            rule.rule.holds() || allowed_in.is_none_or(|scope| rule.rule.scope <= scope)
        });
        let because = if let Some((rule, _)) = denying.first() {
            Because::MayBeDenied {
                rule: rule.name(),
                part,
            }
        } else if !asking.is_empty() {
            Because::AskedBy {
                rules: names(asking.iter()),
                part,
            }
        } else if let Some(scope) = allowed_in {
            let winning = allowing.iter().filter(|(rule, _)| rule.rule.scope == scope);
            return Verdict {
                effect: Effect::Allow,
                because: Because::AllowedBy {
                    rules: names(winning),
                },
                approvers: Vec::new(),
                is_open: false,
            };
        } else {
            self.unanswered(unit, unread)
        };
        let opens = |(rule, _): &(&CompiledRule, Fit)| rule.opens(self.call, unit);
        let mut approvers: Vec<Approvers> = asking
            .iter()
            .map(|(rule, _)| rule.rule.approvers.clone())
            .collect();
        // If no rule surely asks other people for this unit, the owner decides on it, whoever has to approve
        // another part: their approval alone does not let this unit run.
        if asking.iter().all(|(_, fit)| *fit != Fit::Yes) {
            approvers.push(Approvers::default());
        }
        Verdict {
            effect: Effect::Ask,
            is_open: matches!(because, Because::AskedBy { .. }) && asking.iter().all(opens),
            because,
            approvers,
        }
    }

    /// Returns the rules with this effect that fit, at least possibly.
    fn fitting(&self, effect: Effect, unit: Unit<'_>) -> Vec<(&'a CompiledRule, Fit)> {
        let candidates = self.candidates.iter();
        candidates
            .filter(|candidate| candidate.compiled.rule.effect == effect)
            .map(|candidate| {
                let fit = candidate.compiled.fit(candidate.fit, self.call, unit);
                (candidate.compiled, fit)
            })
            .filter(|(_, fit)| *fit != Fit::No)
            .collect()
    }

    /// Returns the reason that a unit is asked which no rule decides.
    fn unanswered(&self, unit: Unit<'_>, unread: Option<Unread>) -> Because {
        let once_allowed = self.dead.iter().filter(|rule| {
            let fit = || rule.fit(rule.when.fit_of_call(self.call), self.call, unit);
            rule.rule.effect == Effect::Allow && fit() == Fit::Yes
        });
        let mut once_allowed: Vec<&&CompiledRule> = once_allowed.collect();
        once_allowed.sort_by_key(|rule| rule.has_ended(self.call.now_ms));
        match (once_allowed.first(), unread) {
            (Some(rule), _) if rule.has_ended(self.call.now_ms) => {
                Because::Expired { rule: rule.name() }
            }
            (Some(rule), _) => Because::Drifted { rule: rule.name() },
            (None, Some(why)) => Because::Unread { why },
            (None, None) => Because::NoRule,
        }
    }

    /// Returns the allow rule that shares the most words with the part, and the reason that it does not allow
    /// it.
    fn nearest(&self, part: &Part) -> Option<(RuleName, Gap)> {
        let allowing = self
            .candidates
            .iter()
            .filter(|candidate| candidate.compiled.rule.effect == Effect::Allow);
        let mut best: Option<(usize, RuleName, Gap)> = None;
        for candidate in allowing {
            let rule = &candidate.compiled.rule;
            for prefix in rule.when.command.iter().flatten() {
                let shared = commands::shared(prefix, part);
                if shared > best.as_ref().map_or(0, |(most, ..)| *most) {
                    let gap = commands::gap(prefix, part).unwrap_or(Gap::OtherArguments);
                    best = Some((shared, candidate.compiled.name(), gap));
                }
            }
        }
        best.map(|(_, rule, gap)| (rule, gap))
    }
}

fn names<'a>(rules: impl Iterator<Item = &'a (&'a CompiledRule, Fit)>) -> Vec<RuleName> {
    rules.map(|(rule, _)| rule.name()).collect()
}
