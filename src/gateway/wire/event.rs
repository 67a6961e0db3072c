//! Shown events to frames. A replay gives the same frames as the live stream.

use serde_json::{Value, json};
use smallvec::smallvec;

use super::calls;
use super::frame::frame;
use super::place::{placed, request_id};
use crate::agent::{Frame, Frames, ShownEvent};
use crate::session::Event;

/// The frames of a shown event, in order; all carry its `seq`.
pub fn event_frames(shown: &ShownEvent) -> Frames {
    match &shown.event {
        Event::Said { .. }
        | Event::Answered { .. }
        | Event::Thinking { .. }
        | Event::TurnFailed { .. }
        | Event::Cancelled { .. } => turn_frames(shown),
        Event::ApprovalAsked { .. }
        | Event::Decided { .. }
        | Event::Started { .. }
        | Event::Ended { .. } => calls::frames(shown),
        Event::UserMessage {
            text,
            author,
            client_message_id,
        } => {
            let rest = json!({ "author": author, "clientMessageId": client_message_id });
            smallvec![frame("user:message", &[text, &placed(rest, shown)])]
        }
        Event::Settled {
            call, happened, by, ..
        } => changed(
            shown,
            json!({ "settled": { "callId": call, "happened": happened, "by": by } }),
        ),
        Event::Withdrawn {
            client_message_id,
            message_seq,
        } => changed(
            shown,
            json!({ "withdrawn": client_message_id, "messageSeq": message_seq }),
        ),
        Event::TitleSet { title } => changed(shown, json!({ "title": title })),
        Event::ModelChosen { model } => changed(
            shown,
            json!({ "model": model.model, "provider": model.provider }),
        ),
        Event::WindowChosen { whole } => changed(shown, json!({ "wholeWindow": whole })),
        Event::ContextReset => smallvec![frame("history:reset", &[&placed(json!({}), shown)])],
        Event::ContextCut {
            strategy,
            before,
            after,
            ..
        } => {
            let what = json!({ "strategy": strategy, "before": before, "after": after });
            smallvec![frame("context:compacted", &[&placed(what, shown)])]
        }
        Event::Created { .. }
        | Event::OwnerChanged { .. }
        | Event::Queued { .. }
        | Event::StopRequested { .. }
        | Event::CallStopRequested { .. } => Frames::new(),
    }
}

fn changed(shown: &ShownEvent, what: Value) -> Frames {
    smallvec![frame("session:changed", &[&placed(what, shown)])]
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`event_frames` is the exhaustive match"
)]
fn turn_frames(shown: &ShownEvent) -> Frames {
    match &shown.event {
        Event::Thinking {
            turn,
            iteration,
            model,
            took,
            is_retry,
        } => {
            let what = json!({
                "turn": turn, "iteration": iteration, "model": model, "took": took,
                "retry": is_retry,
            });
            smallvec![frame("agent:thinking", &[&placed(what, shown)])]
        }
        Event::Said { .. } => smallvec![said_frame(shown)],
        Event::Answered {
            turn,
            text,
            model,
            usage,
            cost,
            duration_ms,
            finish,
            ..
        } => {
            let rest = json!({
                "turn": turn, "model": model, "usage": usage,
                "cost": cost.map(crate::domain::MicroUsd::as_usd),
                "durationMs": duration_ms, "finish": finish,
            });
            smallvec![frame("agent:response", &[text, &placed(rest, shown)])]
        }
        Event::TurnFailed {
            turn,
            code,
            text,
            is_retryable,
        } => {
            let rest = json!({
                "code": code, "category": code.fault(), "retryable": is_retryable, "turn": turn,
                "requestId": request_id(shown),
            });
            smallvec![frame("agent:error", &[text, &placed(rest, shown)])]
        }
        Event::Cancelled { turn, text } => {
            let what = json!({ "turn": turn, "text": text });
            smallvec![frame("agent:cancelled", &[&placed(what, shown)])]
        }
        _ => Frames::new(),
    }
}

fn said_frame(shown: &ShownEvent) -> Frame {
    let Event::Said {
        turn,
        iteration,
        text,
        calls,
        ..
    } = &shown.event
    else {
        return frame("agent:message", &[]);
    };

    let calls: Vec<Value> = calls
        .iter()
        .map(|call| {
            json!({
                "callId": call.id, "name": call.name, "server": call.server,
                "args": call.args,
            })
        })
        .collect();
    let rest = json!({ "turn": turn, "iteration": iteration, "calls": calls });
    frame("agent:message", &[text, &placed(rest, shown)])
}
