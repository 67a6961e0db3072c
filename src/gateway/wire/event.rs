//! Shown events to frames. A replay gives the same frames as the live stream.

use serde_json::{Map, Value, json};

use super::card::{Asked, Card, who};
use super::frame::frame;
use crate::agent::{Frame, ShownEvent};
use crate::domain::RequestId;
use crate::session::{Decider, Event, Outcome, Verdict};

/// The frames of a shown event, in order; all carry its `seq`.
pub fn event_frames(shown: &ShownEvent) -> Vec<Frame> {
    match &shown.event {
        Event::Said { .. }
        | Event::Answered { .. }
        | Event::Thinking { .. }
        | Event::TurnFailed { .. }
        | Event::Cancelled { .. } => turn_frames(shown),
        Event::ApprovalAsked { .. }
        | Event::Decided { .. }
        | Event::Started { .. }
        | Event::Ended { .. } => call_frames(shown),
        Event::UserMessage {
            text,
            author,
            client_message_id,
        } => {
            let rest = json!({ "author": author, "clientMessageId": client_message_id });
            vec![frame("user:message", &[text, &placed(rest, shown)])]
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
        Event::ContextReset => vec![frame("history:reset", &[&placed(json!({}), shown)])],
        Event::ContextCut {
            strategy,
            before,
            after,
            ..
        } => {
            let what = json!({ "strategy": strategy, "before": before, "after": after });
            vec![frame("context:compacted", &[&placed(what, shown)])]
        }
        Event::Created { .. }
        | Event::OwnerChanged { .. }
        | Event::Queued { .. }
        | Event::StopRequested { .. }
        | Event::CallStopRequested { .. } => Vec::new(),
    }
}

fn changed(shown: &ShownEvent, what: Value) -> Vec<Frame> {
    vec![frame("session:changed", &[&placed(what, shown)])]
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`event_frames` is the exhaustive match"
)]
fn turn_frames(shown: &ShownEvent) -> Vec<Frame> {
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
            vec![frame("agent:thinking", &[&placed(what, shown)])]
        }
        Event::Said { .. } => vec![said_frame(shown)],
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
            vec![frame("agent:response", &[text, &placed(rest, shown)])]
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
            vec![frame("agent:error", &[text, &placed(rest, shown)])]
        }
        Event::Cancelled { turn, text } => {
            let what = json!({ "turn": turn, "text": text });
            vec![frame("agent:cancelled", &[&placed(what, shown)])]
        }
        _ => Vec::new(),
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

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`event_frames` is the exhaustive match"
)]
fn call_frames(shown: &ShownEvent) -> Vec<Frame> {
    match &shown.event {
        Event::ApprovalAsked {
            call,
            position,
            total,
            said,
        } => {
            let asked = Asked {
                card: Card::of(call, (*position, *total), said),
                seq: shown.seq,
                at: shown.at.to_rfc3339(),
            };
            vec![frame("tool:approval_required", &[&asked])]
        }
        Event::Decided {
            call,
            verdict,
            by,
            reason,
            edited,
        } => {
            let mut what = json!({
                "callId": call, "approved": *verdict == Verdict::Approved, "by": who(by),
                "scope": if *verdict == Verdict::TakenBack { "taken_back" } else { "once" },
                "edited": edited.is_some(),
            });
            add(&mut what, "reason", reason.as_ref());
            add(
                &mut what,
                "args",
                edited.as_ref().map(|edited| &edited.args),
            );
            if let Decider::Rule { name } = by {
                add(&mut what, "rule", Some(name));
            }
            vec![frame("tool:decided", &[&placed(what, shown)])]
        }
        Event::Started {
            call,
            name,
            server,
            digest,
        } => {
            let what = json!({ "callId": call, "name": name, "server": server, "digest": digest });
            vec![frame("tool:started", &[&placed(what, shown)])]
        }
        Event::Ended { outcome, .. } => ended_frames(shown, outcome),
        _ => Vec::new(),
    }
}

/// The output, and for a failed call its `agent:error` with the same `seq` (S2.41, S2.42).
fn ended_frames(shown: &ShownEvent, outcome: &Outcome) -> Vec<Frame> {
    let Event::Ended {
        call,
        name,
        server,
        duration_ms,
        ..
    } = &shown.event
    else {
        return Vec::new();
    };
    let text = outcome.text();
    let mut rest = json!({
        "callId": call, "name": name, "server": server, "status": outcome.status(),
        "content": [{ "type": "text", "text": text }], "durationMs": duration_ms,
    });
    if let Outcome::Completed { output } | Outcome::Failed { output, .. } = outcome {
        add(&mut rest, "structured", output.structured.as_ref());
        let exit_code = output
            .structured
            .as_ref()
            .and_then(|value| value.get("exit_code"));
        add(
            &mut rest,
            "exitCode",
            exit_code.filter(|code| !code.is_null()),
        );
        let truncated = output
            .truncated_bytes
            .map(|bytes| json!({ "bytes": bytes }));
        add(&mut rest, "truncated", truncated.as_ref());
    }
    let mut frames = vec![frame("tool:output", &[&text, &placed(rest, shown)])];
    if let Outcome::Failed { code, .. } = outcome {
        let rest = json!({
            "code": code, "category": code.fault(), "retryable": false, "callId": call,
            "name": name, "requestId": request_id(shown),
        });
        frames.push(frame("agent:error", &[&text, &placed(rest, shown)]));
    }
    frames
}

/// Adds `seq` and `at`.
fn placed(mut what: Value, shown: &ShownEvent) -> Value {
    if let Value::Object(map) = &mut what {
        map.retain(|_, value| !value.is_null());
        map.insert("seq".into(), shown.seq.into());
        map.insert("at".into(), shown.at.to_rfc3339().into());
    }
    what
}

fn add<T: serde::Serialize>(what: &mut Value, name: &str, value: Option<T>) {
    let map: Option<&mut Map<String, Value>> = what.as_object_mut();
    if let (Some(map), Some(value)) = (map, value) {
        map.insert(name.to_owned(), json!(value));
    }
}

/// The same at every replay.
fn request_id(shown: &ShownEvent) -> RequestId {
    let at = u128::try_from(shown.at.0).unwrap_or_default();
    RequestId::from_bits((at << 64) | u128::from(shown.seq))
}
