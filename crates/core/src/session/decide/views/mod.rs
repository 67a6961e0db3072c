//! Calls that views ask for: beside the turns, by the same rules, and one by one. Each is asked for as it
//! comes, and starts once it is approved.

use std::sync::Arc;

use super::{Draft, nothing_to_do};
use crate::domain::{CallId, Code, Timestamp};
use crate::session::call::{Call, CallStatus, Outcome, Resolution, ToolFacts, ViewCall};
use crate::session::command::{Command, Refusal};
use crate::session::event::Event;
use crate::session::state::Phase;

/// Calls of one showing of a view that may wait or run.
const MOST_OF_VIEW: usize = 4;
/// Calls of all views of a session that may wait or run.
const MOST_OPEN: usize = 8;
/// Calls that the views of a session may ask for within a minute.
const MOST_A_MINUTE: usize = 60;
const MINUTE_MS: i64 = 60_000;

/// A view asks for a call, or does not wait any more.
pub(super) fn follow(draft: &mut Draft<'_>, command: &Command) -> Result<(), Refusal> {
    if let Command::CallByView(asked) = command {
        call(draft, asked)?;
    } else if let Command::CloseView { view, request } = command {
        close(draft, view, request.as_deref());
    }
    Ok(())
}

/// A view asks for a call; a repeat of its request changes nothing.
fn call(draft: &mut Draft<'_>, asked: &ViewCall) -> Result<(), Refusal> {
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

/// A view was closed, or waits for one request no more. What nobody has let run is over; what runs has
/// its effect anyway, and its result is kept.
fn close(draft: &mut Draft<'_>, view: &str, request: Option<&str>) {
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

/// Takes the session's work over where nobody does any: whoever asks the model or runs calls goes on with
/// all of it.
pub(super) fn claim_idle_work(draft: &mut Draft<'_>) {
    let turn = draft.control.turn.as_ref();
    let is_asking = turn.is_some_and(|turn| turn.phase == Phase::Asking);
    if !is_asking && !draft.control.calls().any(|call| call.is_executing()) {
        draft.claim_work();
    }
}

/// Asks for what waits, and starts what is approved.
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
