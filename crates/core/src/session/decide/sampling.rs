//! Decides completions that servers request: a person allows the request to the model, and reviews the
//! answer before the server gets it unless they skip that.

use std::sync::Arc;

use super::Draft;
use crate::domain::{CallId, Code, ElicitationId, TurnId};
use crate::session::call::{
    Completion, Elicitation, ElicitationAction, ElicitationAnswer, ElicitationReply, Sampling,
    SamplingProblem, SamplingStage,
};
use crate::session::event::Event;
use crate::session::model::AttemptUsage;
use crate::session::refusal::Refusal;

/// Follows a person's decision about the request, or about the model's answer. Accepting needs the shown
/// digest; any other action ends the completion at every stage.
pub(super) fn answer(
    draft: &mut Draft<'_>,
    asked: &Elicitation,
    reply: &ElicitationReply,
) -> Result<(), Refusal> {
    let Some(sampling) = asked.sampling.as_deref() else {
        return Ok(());
    };
    if reply.answer.action != ElicitationAction::Accept {
        let answer = ElicitationAnswer {
            content: None,
            ..reply.answer.clone()
        };
        resolve(draft, asked, answer, reply);
        return Ok(());
    }
    let Some(shown) = &reply.sampling.digest else {
        return Err(Refusal::of_field(
            Code::InvalidArguments,
            "digest",
            "`accept` needs the `digest` of what was shown",
        ));
    };
    let is_of_request = *shown == sampling.digest();
    match &sampling.stage {
        SamplingStage::Requested if is_of_request => {
            let to = SamplingStage::Asking {
                by: reply.by.clone(),
                has_review: !reply.sampling.skips_review,
                turn: paying_turn(draft),
            };
            move_to(draft, asked, to);
            Ok(())
        }
        SamplingStage::Answered { completion, digest } if shown == digest => {
            let answer = accepted(completion);
            resolve(draft, asked, answer, reply);
            Ok(())
        }
        // The same decision is repeated.
        SamplingStage::Asking { .. } | SamplingStage::Answered { .. } if is_of_request => Ok(()),
        SamplingStage::Requested
        | SamplingStage::Asking { .. }
        | SamplingStage::Answered { .. }
        | SamplingStage::Failed { .. } => Err(Refusal::of_field(
            Code::ChangedSinceShown,
            "digest",
            "what waits is no longer what was shown; read the request again",
        )),
    }
}

/// Records a model's answer or failure. If the elicitation has ended meanwhile, nothing changes. Returns the
/// failed elicitation, which the caller has to close.
pub(super) fn sampled(
    draft: &mut Draft<'_>,
    id: &ElicitationId,
    result: &Result<Completion, SamplingProblem>,
) -> Option<Arc<Elicitation>> {
    let asked = draft.control.elicitations().find(|it| it.id == *id);
    let asked = asked.filter(|it| it.is_open()).cloned()?;
    let sampling = asked.sampling.as_deref()?;
    let SamplingStage::Asking { by, has_review, .. } = &sampling.stage else {
        return None;
    };
    match result {
        Ok(completion) => {
            let to = SamplingStage::Answered {
                digest: sampling.digest_of(completion),
                completion: completion.clone(),
            };
            move_to(draft, &asked, to);
            if !has_review {
                draft.push(Event::ElicitationResolved {
                    id: asked.id.clone(),
                    call: asked.call.clone(),
                    answer: accepted(completion),
                    by: Some(by.clone()),
                    end: None,
                });
            }
            None
        }
        Err(problem) => {
            let to = SamplingStage::Failed {
                problem: problem.clone(),
            };
            move_to(draft, &asked, to);
            Some(asked)
        }
    }
}

/// Counts the usage of running completions whose gateway is gone; their answers are lost, and the model is
/// not asked again.
pub(super) fn lose(draft: &mut Draft<'_>) {
    let lost: Vec<(TurnId, AttemptUsage)> = draft
        .control
        .elicitations()
        .filter(|asked| asked.is_open())
        .filter_map(|asked| {
            let sampling = asked.sampling.as_deref()?;
            let turn = asking_turn(sampling)?;
            Some((turn, sampling.at_least.clone()))
        })
        .collect();
    for (turn, spent) in lost {
        draft.spend(turn, &[spent]);
    }
}

/// The open completions of a call that runs again: its server will request them anew.
pub(super) fn of_call(draft: &Draft<'_>, call: &CallId) -> Vec<Arc<Elicitation>> {
    let asked = draft.control.elicitations();
    asked
        .filter(|it| it.is_open() && it.call == *call && it.sampling.is_some())
        .cloned()
        .collect()
}

/// The turn that pays for a running request to the model.
fn asking_turn(sampling: &Sampling) -> Option<TurnId> {
    if let SamplingStage::Asking { turn, .. } = sampling.stage {
        return Some(turn);
    }
    None
}

/// The running turn; if none is running, the newest one, which pays for calls of views.
fn paying_turn(draft: &Draft<'_>) -> TurnId {
    let control = &draft.control;
    let turn = control.turn.as_ref().map(|turn| turn.id);
    turn.unwrap_or(TurnId(control.turns))
}

fn move_to(draft: &mut Draft<'_>, asked: &Elicitation, to: SamplingStage) {
    draft.push(Event::SamplingMoved {
        id: asked.id.clone(),
        call: asked.call.clone(),
        to,
    });
}

fn accepted(completion: &Completion) -> ElicitationAnswer {
    ElicitationAnswer {
        action: ElicitationAction::Accept,
        content: Some(completion.as_result()),
    }
}

fn resolve(
    draft: &mut Draft<'_>,
    asked: &Elicitation,
    answer: ElicitationAnswer,
    reply: &ElicitationReply,
) {
    draft.push(Event::ElicitationResolved {
        id: asked.id.clone(),
        call: asked.call.clone(),
        answer,
        by: Some(reply.by.clone()),
        end: None,
    });
}
