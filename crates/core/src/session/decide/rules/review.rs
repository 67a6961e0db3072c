//! Decides which calls a model reviews, and applies its verdicts. The model only approves calls that wait
//! for nobody but the session's owner, and that the rules open to review, both at the request and at the
//! verdict.

use crate::domain::CallId;
use crate::session::call::{Call, Decider};
use crate::session::decide::Draft;
use crate::session::decide::consent::Approval;
use crate::session::event::Event;
use crate::session::model::AttemptUsage;
use crate::session::review::{Review, ReviewVerdict};

/// Requests a review of the next call that the model may decide, in parallel with asking the person.
pub(in crate::session::decide) fn ask_for_review(draft: &mut Draft<'_>) {
    let reviewing = &draft.control.reviewing;
    let is_stopping = draft.control.turn.as_ref().is_none_or(|it| it.is_stopping);
    let is_busy = reviewing.running.is_some() || reviewing.is_off() || is_stopping;
    if is_busy || !draft.inputs.rules.has_reviewer {
        return;
    }
    let mut queue = draft.queue().iter();
    let next = queue.find(|call| call.review.is_none() && is_open(draft, call));
    if let Some(call) = next.map(|call| call.id.clone()) {
        draft.push(Event::ReviewAsked { call });
    }
}

/// Returns true if a model may decide the call under the current rules; earlier rulings do not count.
fn is_open(draft: &Draft<'_>, call: &Call) -> bool {
    let Some(facts) = call.facts.as_deref() else {
        return false;
    };
    let wants = &call.wants;
    let is_owners = wants.approvers.is_empty() && !wants.fresh_gesture;
    // Cases that a person has to decide whatever the rules allow.
    let is_for_people = call.awaits_person
        || call.is_edited()
        || facts.drift.is_some()
        || draft.control.unknown_equals.contains(&facts.equal)
        || call.is_overdue(draft.inputs.now);
    let ruling = || super::ruling(draft, call, &call.args);
    call.is_pending() && is_owners && !is_for_people && ruling().is_some_and(|it| it.is_reviewed())
}

/// Records a review and applies its verdict. The usage counts in any case; a person's decision meanwhile,
/// or changed rules or arguments, take precedence.
pub(in crate::session::decide) fn reviewed(
    draft: &mut Draft<'_>,
    id: &CallId,
    review: &Review,
    spent: &[AttemptUsage],
) {
    let running = draft.control.reviewing.running.clone();
    let Some(running) = running.filter(|running| running.call == *id) else {
        return;
    };
    draft.spend(running.turn, spent);
    draft.push(Event::Reviewed {
        call: id.clone(),
        review: review.clone(),
    });
    let call = draft.queue().iter().find(|call| call.id == *id);
    let is_same = |call: &&std::sync::Arc<Call>| call.digest() == Some(&running.digest);
    let call = call.filter(is_same).cloned();
    let is_stopping = draft.control.turn.as_ref().is_none_or(|it| it.is_stopping);
    let may_run = review.verdict == ReviewVerdict::Allowed
        && !is_stopping
        && call.is_some_and(|call| is_open(draft, &call));
    if may_run {
        let by = Decider::Reviewer {
            model: review.model.clone().unwrap_or_default(),
            reason: review.reason.clone(),
            cost: review.cost,
        };
        draft.approve(id, Approval::of(by));
        draft.advance();
    } else {
        ask_for_review(draft);
    }
}
