//! Decides the elicitations of servers during their calls: each is answered once, and ends with its call.

use std::sync::Arc;

use super::{Draft, sampling};
use crate::domain::{Actor, CallId, Code, ElicitationId};
use crate::session::call::{
    Elicitation, ElicitationAction, ElicitationAnswer, ElicitationEnd, ElicitationReply,
};
use crate::session::event::Event;
use crate::session::refusal::Refusal;

/// Closes the elicitation with this id, if it is open.
pub(super) fn close_one(draft: &mut Draft<'_>, id: &ElicitationId, end: ElicitationEnd) {
    let asked = open(draft, |asked| asked.id == *id);
    close(draft, asked, end);
}

/// Keeps a new elicitation of a running call; a repeat changes nothing.
pub(super) fn ask(draft: &mut Draft<'_>, asked: &Arc<Elicitation>) {
    let control = &draft.control;
    let call = control.call(&asked.call).filter(|call| call.is_executing());
    let turn = control.turn.as_ref();
    let is_turn_stopping = turn.is_some_and(|turn| turn.is_stopping);
    let is_known = control.elicitations().any(|it| it.id == asked.id);
    let is_running = call.is_some_and(|call| call.origin.is_some() || !is_turn_stopping);
    if !is_running || is_known {
        return;
    }
    let asked = Elicitation {
        asked_at: draft.inputs.now,
        ..Elicitation::clone(asked)
    };
    draft.push(Event::ElicitationAsked(Arc::new(asked)));
}

/// Resolves an elicitation with a person's answer; the first answer counts.
pub(super) fn answer(draft: &mut Draft<'_>, reply: &ElicitationReply) -> Result<(), Refusal> {
    let asked = find(draft, &reply.id)?;
    match &asked.answer {
        // A repeat. For a completion the recorded content is the model's, so only the action is compared.
        Some(answer) if *answer == reply.answer => return Ok(()),
        Some(answer) if asked.sampling.is_some() && answer.action == reply.answer.action => {
            return Ok(());
        }
        Some(_) => return Err(answered(&reply.id)),
        None => {}
    }
    if asked.sampling.is_some() {
        return sampling::answer(draft, &asked, reply);
    }
    if let Some(problem) = &reply.invalid {
        let problem = problem.clone();
        return Err(Refusal::of_field(
            Code::InvalidArguments,
            "content",
            problem,
        ));
    }
    draft.push(Event::ElicitationResolved {
        id: reply.id.clone(),
        call: asked.call.clone(),
        answer: reply.answer.clone(),
        by: Some(reply.by.clone()),
        end: None,
    });
    Ok(())
}

/// Records that the person opened the page. The elicitation stays open until the server reports completion.
pub(super) fn go_to_page(
    draft: &mut Draft<'_>,
    id: &ElicitationId,
    by: &Actor,
) -> Result<(), Refusal> {
    let asked = find(draft, id)?;
    if asked.url.is_none() {
        let text = "`open` is for a page; anything else is answered with `accept`, `decline` or \
                    `cancel`";
        return Err(Refusal::of_field(Code::InvalidArguments, "action", text));
    }
    if asked.answer.is_some() {
        return Err(answered(id));
    }
    // The page may be opened more than once.
    if !asked.is_opened {
        draft.push(Event::ElicitationOpened {
            id: id.clone(),
            call: asked.call.clone(),
            by: by.clone(),
        });
    }
    Ok(())
}

fn find(draft: &Draft<'_>, id: &ElicitationId) -> Result<Arc<Elicitation>, Refusal> {
    let mut asked = draft.control.elicitations();
    let asked = asked.find(|asked| asked.id == *id).cloned();
    asked.ok_or_else(|| {
        Refusal::of_field(
            Code::NoSuchElicitation,
            "elicitationId",
            format!("no server waits for an answer to `{id}`"),
        )
    })
}

fn answered(id: &ElicitationId) -> Refusal {
    Refusal::of_field(
        Code::AlreadyDecided,
        "elicitationId",
        format!("`{id}` was answered already"),
    )
}

/// Closes the open elicitations of a call that has to stop, or of all calls of the turn.
pub(super) fn stop(draft: &mut Draft<'_>, call: Option<&CallId>) {
    let turn = draft.control.turn.as_ref();
    let is_of_turn = |id: &CallId| turn.is_some_and(|turn| turn.call(id).is_some());
    let stopped = open(draft, |asked| match call {
        Some(call) => asked.call == *call,
        None => is_of_turn(&asked.call),
    });
    close(draft, stopped, ElicitationEnd::Stopped);
}

/// The open elicitations of a call.
pub(super) fn of_call(draft: &Draft<'_>, call: &CallId) -> Vec<Arc<Elicitation>> {
    open(draft, |asked| asked.call == *call)
}

fn open(draft: &Draft<'_>, is_meant: impl Fn(&Elicitation) -> bool) -> Vec<Arc<Elicitation>> {
    let asked = draft.control.elicitations();
    asked
        .filter(|asked| asked.is_open() && is_meant(asked))
        .cloned()
        .collect()
}

/// Closes elicitations without an answer; a page that its server reports as completed counts as accepted.
pub(super) fn close(draft: &mut Draft<'_>, asked: Vec<Arc<Elicitation>>, end: ElicitationEnd) {
    let action = match end {
        ElicitationEnd::Completed => ElicitationAction::Accept,
        ElicitationEnd::CallEnded
        | ElicitationEnd::Stopped
        | ElicitationEnd::Withdrawn
        | ElicitationEnd::Failed => ElicitationAction::Cancel,
    };
    for asked in asked {
        draft.push(Event::ElicitationResolved {
            id: asked.id.clone(),
            call: asked.call.clone(),
            answer: ElicitationAnswer {
                action,
                content: None,
            },
            by: None,
            end: Some(end),
        });
    }
}
