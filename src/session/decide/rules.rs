//! What rules decide of calls, and rules that are given in the session.

use std::sync::Arc;

use serde_json::Value;

use super::{Draft, queue::REPEATED};
use crate::domain::{Actor, Code};
use crate::session::call::{Call, CallStatus, Decider};
use crate::session::command::{Command, Refusal};
use crate::session::event::Event;
use crate::session::policy::{PolicyEffect, Rule, RuleName, Ruling};

/// How the journal names that no rule is about a call.
const ASK_EVERYTHING: &str = "ask everything";

impl Draft<'_> {
    /// What the rules say of a call now, with these arguments; none for a tool that does not exist.
    pub(super) fn ruling(&self, call: &Call, args: &Value) -> Option<Ruling> {
        let facts = call.facts.as_deref()?;
        let rules = self.inputs.rules;
        let about = (facts, self.inputs.now);
        Some(rules.rule_on(&self.control, (&call.id, args), about))
    }

    /// Lets rules decide what they can; the rest stays pending.
    pub(super) fn apply_policy(&mut self) {
        let pending = self.queue().iter().filter(|call| call.is_pending());
        let pending: Vec<Arc<Call>> = pending.cloned().collect();
        for call in pending {
            let Some(facts) = &call.facts else { continue };
            let turn = self.control.turn.as_ref();
            if turn.is_some_and(|turn| turn.rejected.contains(&facts.equal)) {
                self.reject(&call.id, Some(REPEATED), Decider::System);
                continue;
            }
            let Some(ruling) = self.ruling(&call, &call.args) else {
                continue;
            };
            match ruling.effect {
                PolicyEffect::Deny => self.deny(&call, &ruling),
                // Beats every rule: it may have happened already.
                PolicyEffect::Allow if self.control.unknown_equals.contains(&facts.equal) => {}
                // The yes was for another definition.
                PolicyEffect::Allow if facts.drift.is_some() => {}
                // A person who took their yes back wants to look at it once more.
                PolicyEffect::Allow if call.awaits_person => {}
                PolicyEffect::Allow => self.approve(&call.id, None, by_rule(&ruling), None),
                PolicyEffect::Ask => {}
            }
        }
    }

    /// Decides what waits, or has been approved and not started, by the rules of now, as far as they
    /// say less than those before: what is denied is refused, whoever approved it, and what only a rule
    /// had allowed is asked.
    pub(super) fn withdraw_approvals(&mut self) {
        let open = self.queue().iter();
        let open = open.filter(|call| call.is_pending() || call.is_approved());
        let open: Vec<Arc<Call>> = open.cloned().collect();
        for call in open {
            let Some(ruling) = self.ruling(&call, &call.args) else {
                continue;
            };
            let is_by_rule = matches!(
                call.status,
                CallStatus::Approved {
                    by: Decider::Rule { .. },
                    ..
                }
            );
            match ruling.effect {
                PolicyEffect::Deny => self.deny(&call, &ruling),
                PolicyEffect::Ask if is_by_rule => self.take_back(&call.id, by_rule(&ruling)),
                PolicyEffect::Allow | PolicyEffect::Ask => {}
            }
        }
    }

    /// The rules may be others by now.
    pub(super) fn review_calls(&mut self) {
        let is_open = |call: &Arc<Call>| call.is_pending() || call.is_approved();
        if self.queue().iter().any(is_open) {
            self.apply_policy();
            self.advance();
        }
    }

    fn deny(&mut self, call: &Call, ruling: &Ruling) {
        let name = &name_of(ruling).name;
        let reason = format!("refused by rule \"{name}\"");
        self.reject(&call.id, Some(&reason), by_rule(ruling));
    }

    /// The rules may have changed since the call was asked for, and arguments may be others.
    pub(super) fn check_not_denied(&self, call: &Call, args: &Value) -> Result<(), Refusal> {
        match self.ruling(call, args) {
            Some(ruling) if ruling.effect == PolicyEffect::Deny => {
                let rule = name_of(&ruling).name;
                let text = format!("`{}` is refused by rule \"{rule}\"", call.name);
                Err(Refusal::new(Code::NotAllowed, text))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Rules of this session that are given and taken back.
    pub(super) fn keep_rules(&mut self, command: &Command) -> Result<(), Refusal> {
        if let Command::GiveRule { rule, by } = command {
            self.give_rule(rule, by)?;
        } else if let Command::TakeRuleBack { id, by } = command {
            self.take_rule_back(id, by)?;
        }
        Ok(())
    }

    /// A rule for this session alone. It decides what waits, too.
    fn give_rule(&mut self, rule: &Rule, by: &Actor) -> Result<(), Refusal> {
        if self.control.rules.find(&rule.id).is_some() {
            return Ok(());
        }
        if self.control.rules.is_full() {
            let text = "this session holds as many rules as it may; take some back first";
            return Err(Refusal::new(Code::TooLarge, text));
        }
        self.create();
        self.push(Event::RuleGiven {
            rule: Box::new(rule.clone()),
            by: by.clone(),
        });
        self.review_calls();
        Ok(())
    }

    /// What it let run and has not started is asked again.
    fn take_rule_back(&mut self, id: &str, by: &Actor) -> Result<(), Refusal> {
        if self.control.rules.find(id).is_none() {
            return Err(Refusal::new(Code::NotFound, "there is no such rule"));
        }
        self.push(Event::RuleTakenBack {
            id: id.to_owned(),
            by: by.clone(),
        });
        self.review_calls();
        Ok(())
    }
}

fn name_of(ruling: &Ruling) -> RuleName {
    ruling.rule.clone().unwrap_or_else(|| RuleName {
        id: String::new(),
        name: ASK_EVERYTHING.to_owned(),
    })
}

fn by_rule(ruling: &Ruling) -> Decider {
    let RuleName { id, name } = name_of(ruling);
    Decider::Rule {
        name,
        id: (!id.is_empty()).then_some(id),
    }
}
