//! What rules and the clock decide of calls, and rules that are given in the session.

mod network;
mod review;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use self::network::host_refused;
pub(super) use self::review::{ask_for_review, reviewed};
use super::Draft;
use super::consent::{is_still_approved, renew_wants, ruling};
use crate::domain::{Actor, Code};
use crate::session::call::{Call, CallStatus, Decider};
use crate::session::command::{Command, Refusal};
use crate::session::event::Event;
use crate::session::policy::{PolicyEffect, Rule, RuleName, Ruling};

const REPEATED: &str =
    "the same call was rejected earlier in this turn; do not repeat it unchanged";

/// How the journal names that no rule is about a call.
const ASK_EVERYTHING: &str = "ask everything";

/// Lets rules decide what they can; the rest stays pending.
pub(super) fn apply_policy(draft: &mut Draft<'_>) {
    expire_calls(draft);
    let pending = draft.control.calls().filter(|call| call.is_pending());
    let pending: Vec<Arc<Call>> = pending.cloned().collect();
    let owner = draft.control.owner.as_ref().map(|owner| owner.id.clone());
    for call in pending {
        let Some(facts) = &call.facts else { continue };
        let turn = draft.control.turn.as_ref();
        let turn = turn.filter(|_| call.origin.is_none());
        if turn.is_some_and(|turn| turn.rejected.contains(&facts.equal)) {
            draft.reject(&call.id, Some(REPEATED), Decider::System);
            continue;
        }
        let Some(ruling) = ruling(draft, &call, &call.args) else {
            continue;
        };
        match ruling.effect {
            PolicyEffect::Deny => deny(draft, &call, &ruling),
            // Beats every rule: it may have happened already.
            PolicyEffect::Allow if draft.control.unknown_equals.contains(&facts.equal) => {}
            // The yes was for another definition.
            PolicyEffect::Allow if facts.drift.is_some() => {}
            // It allows what the model proposes, and not what somebody wrote in its place.
            PolicyEffect::Allow if call.lacks_owner(owner.as_ref()) => {}
            // A person who took their yes back wants to look at it once more.
            PolicyEffect::Allow if call.awaits_person => {}
            PolicyEffect::Allow => {
                draft.approve(&call.id, (None, None), (by_rule(&ruling), None), None);
            }
            PolicyEffect::Ask => {}
        }
    }
}

/// Rejects what nobody decided in time.
pub(super) fn expire_calls(draft: &mut Draft<'_>) {
    let now = draft.inputs.now;
    let overdue = draft.control.calls().filter(|call| call.is_overdue(now));
    let overdue: Vec<Arc<Call>> = overdue.cloned().collect();
    for call in overdue {
        let limit = call.wants.expires_after_ms.map(Duration::from_millis);
        let reason = unanswered(limit.unwrap_or_default());
        draft.reject(&call.id, Some(&reason), Decider::System);
    }
}

/// Why a call was rejected that nobody decided for so long: people and the model read it.
fn unanswered(limit: Duration) -> String {
    let seconds = limit.as_secs().max(1);
    let (count, unit) = match seconds {
        _ if seconds.is_multiple_of(86_400) => (seconds / 86_400, "day"),
        _ if seconds.is_multiple_of(3_600) => (seconds / 3_600, "hour"),
        _ if seconds.is_multiple_of(60) => (seconds / 60, "minute"),
        _ => (seconds, "second"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("nobody answered within {count} {unit}{plural}, so the call has expired")
}

/// Decides what waits, or has been approved and not started, by the rules of now, as far as they
/// say less than those before: what is denied is refused, whoever approved it, and what only a rule
/// had allowed, a model that may not any more, or fewer people than they want, is asked.
pub(super) fn withdraw_approvals(draft: &mut Draft<'_>) {
    let open = draft.control.calls();
    let open = open.filter(|call| call.is_pending() || call.is_approved());
    let open: Vec<Arc<Call>> = open.cloned().collect();
    for call in open {
        let Some(ruling) = ruling(draft, &call, &call.args) else {
            continue;
        };
        let is_by_rule = matches!(
            call.status,
            CallStatus::Approved {
                by: Decider::Rule { .. },
                ..
            }
        );
        let is_by_model = matches!(
            call.status,
            CallStatus::Approved {
                by: Decider::Reviewer { .. },
                ..
            }
        );
        match ruling.effect {
            PolicyEffect::Deny => deny(draft, &call, &ruling),
            PolicyEffect::Ask
                if is_by_rule
                    || (is_by_model && !ruling.is_reviewed())
                    || !is_still_approved(draft, &call) =>
            {
                renew_wants(draft, &call);
                draft.take_back(&call.id, by_rule(&ruling));
            }
            PolicyEffect::Allow | PolicyEffect::Ask if call.is_pending() => {
                renew_wants(draft, &call);
            }
            PolicyEffect::Allow | PolicyEffect::Ask => {}
        }
    }
}

/// The rules may be others by now.
pub(super) fn review_calls(draft: &mut Draft<'_>) {
    let mut open = draft.control.calls();
    let has_open = open.any(|call| call.is_pending() || call.is_approved());
    drop(open);
    if has_open {
        apply_policy(draft);
        draft.advance();
    }
}

fn deny(draft: &mut Draft<'_>, call: &Call, ruling: &Ruling) {
    let name = &name_of(ruling).name;
    let reason = format!("refused by rule \"{name}\"");
    draft.reject(&call.id, Some(&reason), by_rule(ruling));
}

/// The rules may have changed since the call was asked for, and arguments may be others.
pub(super) fn check_not_denied(
    draft: &Draft<'_>,
    call: &Call,
    args: &Value,
) -> Result<(), Refusal> {
    match ruling(draft, call, args) {
        Some(ruling) if ruling.effect == PolicyEffect::Deny => {
            let rule = name_of(&ruling).name;
            let text = format!("`{}` is refused by rule \"{rule}\"", call.name);
            Err(Refusal::new(Code::NotAllowed, text))
        }
        Some(_) | None => Ok(()),
    }
}

/// Rules of this session that are given and taken back, and what was refused for want of one.
pub(super) fn keep(draft: &mut Draft<'_>, command: &Command) -> Result<(), Refusal> {
    if let Command::GiveRule { rule, by } = command {
        give_rule(draft, rule, by)?;
    } else if let Command::TakeRuleBack { id, by } = command {
        take_rule_back(draft, id, by)?;
    } else if let Command::HostRefused(refusal) = command {
        host_refused(draft, refusal);
    }
    Ok(())
}

/// A rule for this session alone. It decides what waits, too.
fn give_rule(draft: &mut Draft<'_>, rule: &Rule, by: &Actor) -> Result<(), Refusal> {
    if draft.control.rules.find(&rule.id).is_some() {
        return Ok(());
    }
    if draft.control.rules.is_full() {
        let text = "this session holds as many rules as it may; take some back first";
        return Err(Refusal::new(Code::TooLarge, text));
    }
    draft.create();
    draft.push(Event::RuleGiven {
        rule: Box::new(rule.clone()),
        by: by.clone(),
    });
    review_calls(draft);
    Ok(())
}

/// What it let run and has not started is asked again.
fn take_rule_back(draft: &mut Draft<'_>, id: &str, by: &Actor) -> Result<(), Refusal> {
    if draft.control.rules.find(id).is_none() {
        return Err(Refusal::new(Code::NotFound, "there is no such rule"));
    }
    draft.push(Event::RuleTakenBack {
        id: id.to_owned(),
        by: by.clone(),
    });
    review_calls(draft);
    Ok(())
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
