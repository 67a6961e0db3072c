//! Decides the calls that views request: outside of turns, under the same rules, one at a time. Each call
//! is asked for immediately and starts once it is approved.

use std::sync::Arc;

use super::{Draft, nothing_to_do};
use crate::domain::{CallId, Code, Timestamp};
use crate::session::call::{Call, CallStatus, Outcome, Resolution, ToolFacts, ViewCall};
use crate::session::event::Event;
use crate::session::refusal::Refusal;
use crate::session::state::Phase;

/// Maximum number of open calls of one showing of a view.
const MOST_OF_VIEW: usize = 4;
/// Maximum number of open calls of all views of a session.
const MOST_OPEN: usize = 8;
/// Maximum number of calls that the views of a session may request in a minute.
const MOST_A_MINUTE: usize = 60;
const MINUTE_MS: i64 = 60_000;

/// Admits a call that a view requests; a repeated request changes nothing.
pub(super) fn call(draft: &mut Draft<'_>, asked: &ViewCall) -> Result<(), Refusal> {
    if draft.control.views.has_request(&asked.origin.request) {
        return Ok(());
    }
    if draft.control.version == 0 {
        return Err(nothing_to_do(
            "the session has no call whose view could ask",
        ));
    }
    let facts = match &asked.proposal.resolution {
        Resolution::Ready(facts) => facts,
        Resolution::Invalid(problem) | Resolution::Answered(problem) => {
            let problem = problem.clone();
            return Err(Refusal::of_field(
                Code::InvalidArguments,
                "arguments",
                problem,
            ));
        }
    };
    check_room(draft, asked, facts)?;
    let admitted = draft.admit(std::slice::from_ref(&asked.proposal));
    for call in admitted {
        let mut call = Arc::unwrap_or_clone(call);
        call.origin = Some(asked.origin.clone());
        draft.push(Event::ViewCalled {
            call: Arc::new(call),
            by: asked.by.clone(),
        });
    }
    super::rules::apply_policy(draft);
    draft.advance();
    Ok(())
}

fn check_room(draft: &Draft<'_>, asked: &ViewCall, facts: &ToolFacts) -> Result<(), Refusal> {
    let (views, view) = (&draft.control.views, &asked.origin.view);
    let too_many = |text: String| Err(Refusal::new(Code::TooManyRequests, text));
    let of_view = |call: &&Arc<Call>| call.origin.as_ref().is_some_and(|it| it.view == *view);
    if views.open().filter(of_view).count() >= MOST_OF_VIEW {
        return too_many(format!(
            "{MOST_OF_VIEW} calls of this view wait or run already; wait until one of them has ended"
        ));
    }
    if views.open().count() >= MOST_OPEN {
        return too_many(format!(
            "{MOST_OPEN} calls of views wait or run in this session already; wait until one of them \
             has ended"
        ));
    }
    let since = Timestamp(draft.inputs.now.0.saturating_sub(MINUTE_MS));
    if views.requests_since(since) >= MOST_A_MINUTE {
        return too_many(format!(
            "the views of this session have asked for {MOST_A_MINUTE} calls within a minute; ask again \
             later"
        ));
    }
    if views.was_refused(view, &facts.equal) {
        let text = "this very call was refused to this view, so nobody is asked again; change it, or \
                    open the view anew";
        return Err(Refusal::new(Code::NotAllowed, text));
    }
    Ok(())
}

/// Cancels calls of a closed view or request that have not started. Running calls go on, and their results
/// are kept.
pub(super) fn close(draft: &mut Draft<'_>, view: &str, request: Option<&str>) {
    let is_left = |call: &&Arc<Call>| {
        let is_its = call.origin.as_ref().is_some_and(|it| {
            it.view == view && request.is_none_or(|request| it.request == request)
        });
        is_its && (call.is_pending() || call.is_approved())
    };
    let left = draft.control.views.calls.iter().filter(is_left);
    let left: Vec<CallId> = left.map(|call| call.id.clone()).collect();
    for call in &left {
        draft.end_call(call, Outcome::Cancelled, 0);
    }
}

/// Makes the deciding gateway the runner if no model request or call is running: the runner of either runs
/// all of the session's effects.
pub(super) fn claim_idle_work(draft: &mut Draft<'_>) {
    let turn = draft.control.turn.as_ref();
    let is_asking = turn.is_some_and(|turn| turn.phase == Phase::Asking);
    if !is_asking && !draft.control.calls().any(|call| call.is_executing()) {
        draft.claim_work();
    }
}

/// Asks for pending calls and starts approved ones.
pub(super) fn advance(draft: &mut Draft<'_>) {
    let calls = draft.control.views.calls.clone();
    for call in &calls {
        if matches!(call.status, CallStatus::Pending { asked: false }) {
            draft.push(Event::ApprovalAsked {
                call: Arc::clone(call),
                position: 1,
                total: 1,
                said: String::new(),
            });
        }
    }
    if !calls.iter().any(|call| call.is_approved()) {
        return;
    }
    claim_idle_work(draft);
    for call in calls.iter().filter(|call| call.is_approved()) {
        draft.start(call);
    }
}
