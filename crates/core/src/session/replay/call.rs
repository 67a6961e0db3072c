//! Reconstructs the commands behind calls of views, ends of calls, and completions for servers.

use std::sync::Arc;

use super::answer::attempts;
use crate::domain::{Actor, Code, ElicitationId, TurnId};
use crate::session::call::{
    Call, ElicitationAction, ElicitationAnswer, ElicitationReply, Proposal, Resolution,
    SamplingProblem, SamplingReply, SamplingStage, ViewCall,
};
use crate::session::command::Command;
use crate::session::event::Event;
use crate::session::state::Control;

/// The command of a view that requested this call.
pub(super) fn called_by_view(call: &Arc<Call>, by: &Actor) -> Option<Command> {
    Some(Command::CallByView(Box::new(ViewCall {
        origin: call.origin.clone()?,
        proposal: Proposal {
            provider_id: call.provider_id.clone(),
            name: call.name.clone(),
            args: call.args.clone(),
            is_indirect: call.is_indirect,
            resolution: Resolution::Ready(Arc::clone(call.facts.as_ref()?)),
        },
        by: by.clone(),
    })))
}

/// The commands that may have ended a call: its outcome, or the closing of its view before it started.
pub(super) fn ended(control: &Control, event: &Event) -> Vec<Command> {
    let Event::Ended {
        call,
        outcome,
        duration_ms,
        ..
    } = event
    else {
        return Vec::new();
    };
    let waits = control.call(call).filter(|call| !call.is_executing());
    let origin = waits.and_then(|call| call.origin.as_ref());
    if let Some(origin) = origin {
        let (view, request) = (&origin.view, &origin.request);
        return [None, Some(request.clone())]
            .map(|request| Command::CloseView {
                view: view.clone(),
                request,
            })
            .into();
    }
    vec![Command::CallEnded {
        call: call.clone(),
        outcome: outcome.clone(),
        duration_ms: *duration_ms,
    }]
}

/// The digest that a person was shown of a completion, if the elicitation is one.
pub(super) fn shown_sampling(control: &Control, id: &ElicitationId) -> SamplingReply {
    let asked = control.elicitations().find(|asked| asked.id == *id);
    let sampling = asked.and_then(|asked| asked.sampling.as_ref());
    SamplingReply {
        digest: sampling.and_then(|sampling| sampling.shown()),
        skips_review: false,
    }
}

/// The command behind a completion's progress: a person allowed the request, or the model answered, perhaps
/// too late.
pub(super) fn sampled(control: &Control, rest: &[Event]) -> Option<Command> {
    let spent = attempts(rest);
    let late = rest.first().and_then(|event| {
        if let Event::Spent { turn, .. } = event {
            return Some(*turn);
        }
        None
    });
    let Some(Event::SamplingMoved { id, to, .. }) = rest.get(spent.len()) else {
        // The answer came after the elicitation had ended.
        return Some(Command::Sampled {
            id: ElicitationId::from_bits(0),
            turn: late?,
            result: Err(SamplingProblem {
                code: Code::Internal,
                text: String::new(),
            }),
            spent,
        });
    };
    let turn = || {
        let asked = control.elicitations().find(|asked| asked.id == *id)?;
        if let SamplingStage::Asking { turn, .. } = asked.sampling.as_ref()?.stage {
            return Some(turn);
        }
        None
    };
    let result = match to {
        SamplingStage::Answered { completion, .. } => Ok(completion.clone()),
        SamplingStage::Failed { problem } => Err(problem.clone()),
        SamplingStage::Asking { by, has_review, .. } => {
            return Some(Command::AnswerElicitation(ElicitationReply {
                id: id.clone(),
                answer: ElicitationAnswer {
                    action: ElicitationAction::Accept,
                    content: None,
                },
                by: by.clone(),
                invalid: None,
                sampling: SamplingReply {
                    skips_review: !has_review,
                    ..shown_sampling(control, id)
                },
            }));
        }
        SamplingStage::Requested => return None,
    };
    Some(Command::Sampled {
        id: id.clone(),
        turn: late.or_else(turn).unwrap_or(TurnId(control.turns)),
        result,
        spent,
    })
}
