//! Encodes the requests that servers make to people while their calls run.

use serde_json::{Value, json};
use smallvec::smallvec;

use super::super::frame::{Frames, frame};
use super::super::stamp::stamped;
use crate::agent::ShownEvent;
use crate::session::{Elicitation, Event, Sampling, SamplingStage};

/// Returns the frames of a request, or of a change to it.
pub(in crate::gateway::wire) fn elicitation_frames(shown: &ShownEvent) -> Frames {
    if let Event::ElicitationAsked(asked) = &shown.event {
        return smallvec![frame(
            "elicitation:required",
            &[&stamped(elicitation_value(asked), shown)]
        )];
    }
    if let Event::ElicitationOpened { id, call, by } = &shown.event {
        let what = json!({ "elicitationId": id, "callId": call, "by": by });
        return smallvec![frame("elicitation:opened", &[&stamped(what, shown)])];
    }
    if let Event::SamplingMoved { id, call, to } = &shown.event {
        let mut what = json!({ "elicitationId": id, "callId": call });
        extend(&mut what, stage_value(to));
        return smallvec![frame("elicitation:sampling", &[&stamped(what, shown)])];
    }
    let Event::ElicitationResolved {
        id,
        call,
        answer,
        by,
        end,
    } = &shown.event
    else {
        return Frames::new();
    };
    let what = json!({
        "elicitationId": id, "callId": call, "action": answer.action, "content": answer.content,
        "by": by, "reason": end,
    });
    smallvec![frame("elicitation:resolved", &[&stamped(what, shown)])]
}

/// Returns the value of a waiting request.
pub(super) fn elicitation_value(asked: &Elicitation) -> Value {
    let (id, call, server) = (&asked.id, &asked.call, &asked.server);
    let (message, asked_at) = (&asked.message, asked.asked_at.to_rfc3339());
    if let Some(sampling) = asked.sampling.as_deref() {
        let mut what = json!({
            "elicitationId": id, "callId": call, "server": server, "message": message,
            "askedAt": asked_at, "mode": "sampling",
        });
        extend(&mut what, sampling_value(sampling));
        return what;
    }
    if let Some(url) = &asked.url {
        return json!({
            "elicitationId": id, "callId": call, "server": server, "message": message,
            "askedAt": asked_at, "mode": "url", "url": url.as_str(), "opened": asked.is_opened,
        });
    }
    json!({
        "elicitationId": id, "callId": call, "server": server, "message": message,
        "askedAt": asked_at, "mode": "form", "schema": asked.schema, "order": asked.order,
    })
}

/// Returns a request to a model, as a person decides about it.
fn sampling_value(sampling: &Sampling) -> Value {
    let Sampling {
        system,
        messages,
        max_tokens,
        temperature,
        stop,
        model,
        at_least,
        stage,
    } = sampling;
    let mut what = json!({
        "systemPrompt": system, "messages": messages, "maxTokens": max_tokens,
        "temperature": temperature, "stopSequences": stop, "digest": sampling.shown(),
        "model": { "provider": model.provider, "model": model.model },
        "inputTokens": at_least.usage.input_tokens,
    });
    extend(&mut what, stage_value(stage));
    what
}

/// Returns the stage of a sampling request.
fn stage_value(stage: &SamplingStage) -> Value {
    match stage {
        SamplingStage::Requested => json!({ "stage": "requested" }),
        SamplingStage::Asking { by, has_review, .. } => {
            json!({ "stage": "asking", "by": by, "review": has_review })
        }
        SamplingStage::Answered { completion, digest } => json!({
            "stage": "answered", "digest": digest,
            "answer": {
                "text": completion.text, "model": completion.model,
                "stopReason": completion.stop_reason,
            },
        }),
        SamplingStage::Failed { problem } => json!({
            "stage": "failed", "problem": { "code": problem.code.as_str(), "text": problem.text },
        }),
    }
}

fn extend(what: &mut Value, more: Value) {
    if let (Value::Object(what), Value::Object(more)) = (what, more) {
        what.extend(more);
    }
}
