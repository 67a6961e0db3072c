//! Applies rules and expiry to calls, and manages the rules of a session.

mod review;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub(super) use self::review::{ask_for_review, reviewed};
use super::Draft;
use super::consent::{Approval, is_still_approved, renew_wants, ruling};
use crate::domain::{Actor, Code, HostRefusal};
use crate::session::call::{Call, CallStatus, Decider, RuleName};
use crate::session::event::Event;
use crate::session::policy::{PolicyEffect, Rule, Ruling};
use crate::session::refusal::Refusal;

const REPEATED: &str =
    "the same call was rejected earlier in this turn; do not repeat it unchanged";

/// The rule name in the journal if no rule covers a call.
const ASK_EVERYTHING: &str = "ask everything";

/// Maximum number of hosts reported until a person sends a message or gives a rule, because a program can
/// make up any number.
const MAX_TOLD: usize = 16;

/// Decides pending calls by rules as far as possible; the others stay pending.
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
            // No rule may allow it: an equal call with an unknown outcome may have happened already.
            PolicyEffect::Allow if draft.control.unknown_equals.contains(&facts.equal) => {}
            // The rule allowed another definition of the tool.
            PolicyEffect::Allow if facts.drift.is_some() => {}
            // The rule allows the model's arguments, not those that somebody else wrote.
            PolicyEffect::Allow if call.lacks_owner(owner.as_ref()) => {}
            // The person who took their approval back wants to decide again.
            PolicyEffect::Allow if call.awaits_person => {}
            PolicyEffect::Allow => {
                draft.approve(&call.id, Approval::of(by_rule(&ruling)));
            }
            PolicyEffect::Ask => {}
        }
    }
}

/// Rejects calls that have expired undecided.
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

/// The reason of a rejection after the time limit; people and the model read it.
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

/// Applies the current rules to pending and approved calls, as far as they are stricter than before, and
/// updates the approval requirements of pending calls. Denied calls are rejected, whoever approved them. An
/// approved call waits again if only a rule allowed it, if a model allowed it that may no longer decide, or
/// if the rules now require approvals that it lacks.
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

/// Applies the current rules to open calls, since the rules may have changed.
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

/// Checks that the current rules do not deny the call with these arguments.
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

/// Adds a rule for this session only and applies it to open calls. A rule with an existing id changes
/// nothing.
pub(super) fn give_rule(draft: &mut Draft<'_>, rule: &Rule, by: &Actor) -> Result<(), Refusal> {
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

/// Removes a rule of the session. Calls that it allowed and that have not started wait again.
pub(super) fn take_rule_back(draft: &mut Draft<'_>, id: &str, by: &Actor) -> Result<(), Refusal> {
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

/// Reports a refused host: each host once, and a limited number until a person acts.
pub(super) fn host_refused(draft: &mut Draft<'_>, refusal: &HostRefusal) {
    let told = &draft.control.refused_hosts;
    let is_known = told.contains(&(refusal.host.clone(), refusal.port));
    if !is_known && told.len() < MAX_TOLD && draft.control.journal.is_some() {
        draft.push(Event::HostRefused(Box::new(refusal.clone())));
    }
}
