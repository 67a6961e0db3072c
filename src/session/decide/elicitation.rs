//! Forms that servers ask for while their calls run: each is answered once, and ends with its call.

use std::sync::Arc;

use super::Draft;
use crate::domain::{CallId, Code};
use crate::session::call::{
    Elicitation, ElicitationAction, ElicitationAnswer, ElicitationEnd, ElicitationReply,
};
use crate::session::command::{Command, Refusal};
use crate::session::event::Event;

/// A server asks, a person answers, or the server does not ask any more.
pub(super) fn follow(draft: &mut Draft<'_>, command: &Command) -> Result<(), Refusal> {
    if let Command::Elicit(asked) = command {
        ask(draft, asked);
    } else if let Command::AnswerElicitation(reply) = command {
        answer(draft, reply)?;
    } else if let Command::WithdrawElicitation { id } = command {
        let withdrawn = open(draft, |asked| asked.id == *id);
        close(draft, withdrawn, ElicitationEnd::Withdrawn);
    }
    Ok(())
}

fn ask(draft: &mut Draft<'_>, asked: &Arc<Elicitation>) {
    let Some(turn) = &draft.control.turn else {
        return;
    };
    let is_running = turn
        .call(&asked.call)
        .is_some_and(|call| call.is_executing());
    if !is_running || turn.is_stopping || turn.elicitations.iter().any(|it| it.id == asked.id) {
        return;
    }
    let asked = Elicitation {
        asked_at: draft.inputs.now,
        ..Elicitation::clone(asked)
    };
    draft.push(Event::ElicitationAsked(Arc::new(asked)));
}

/// The first answer counts.
fn answer(draft: &mut Draft<'_>, reply: &ElicitationReply) -> Result<(), Refusal> {
    let turn = draft.control.turn.as_ref();
    let mut asked = turn.iter().flat_map(|turn| &turn.elicitations);
    let Some(asked) = asked.find(|asked| asked.id == reply.id).cloned() else {
        return Err(Refusal::of_field(
            Code::NoSuchElicitation,
            "elicitationId",
            format!("no server waits for an answer to `{}`", reply.id),
        ));
    };
    match &asked.answer {
        // A repeat.
        Some(answer) if *answer == reply.answer => return Ok(()),
        Some(_) => {
            return Err(Refusal::of_field(
                Code::AlreadyDecided,
                "elicitationId",
                format!("`{}` was answered already", reply.id),
            ));
        }
        None => {}
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

/// The forms that wait, of a call that is to stop, or of all calls.
pub(super) fn stop(draft: &mut Draft<'_>, call: Option<&CallId>) {
    let stopped = open(draft, |asked| call.is_none_or(|call| asked.call == *call));
    close(draft, stopped, ElicitationEnd::Stopped);
}

/// The forms of a call that wait.
pub(super) fn of_call(draft: &Draft<'_>, call: &CallId) -> Vec<Arc<Elicitation>> {
    open(draft, |asked| asked.call == *call)
}

fn open(draft: &Draft<'_>, is_meant: impl Fn(&Elicitation) -> bool) -> Vec<Arc<Elicitation>> {
    let turn = draft.control.turn.as_ref();
    let asked = turn.iter().flat_map(|turn| &turn.elicitations);
    asked
        .filter(|asked| asked.is_open() && is_meant(asked))
        .cloned()
        .collect()
}

/// Closes forms that nobody answered.
pub(super) fn close(draft: &mut Draft<'_>, asked: Vec<Arc<Elicitation>>, end: ElicitationEnd) {
    for asked in asked {
        draft.push(Event::ElicitationResolved {
            id: asked.id.clone(),
            call: asked.call.clone(),
            answer: ElicitationAnswer {
                action: ElicitationAction::Cancel,
                content: None,
            },
            by: None,
            end: Some(end),
        });
    }
}
