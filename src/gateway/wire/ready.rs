//! Builds `system:ready`, the first event after a client joins a session.

use serde_json::{Value, json};

use super::assistant::assistant_value;
use super::call::card::queue_value;
use super::event::event_frames;
use super::frame::{Frame, args, frame};
use super::state::usage_value;
use crate::agent::{SessionView, ShownEvent};
use crate::domain::{Caller, SessionId};
use crate::llm::ProviderKind;

/// The parts of `system:ready` beside the session's own view.
pub struct Ready<'a> {
    /// The id of the session.
    pub session: &'a SessionId,
    /// The user who joined.
    pub caller: &'a Caller,
    /// Sandbox, storage, version and limits of this installation.
    pub installation: &'a Value,
    /// True if the missed events follow one by one.
    pub is_resumed: bool,
    /// The last page of the transcript; empty if resumed.
    pub page: &'a [ShownEvent],
}

/// Builds the frame of `system:ready`.
pub fn ready(view: &SessionView, ready: &Ready<'_>) -> Frame {
    let first = ready.page.first().map_or(view.seq + 1, |event| event.seq);
    let events: Vec<Value> = ready.page.iter().flat_map(transcript_items).collect();
    // Built-in providers keep the names that their SDKs had (D12); others use their id.
    let kind = ProviderKind::parse(&view.model.provider);
    let mut what = json!({
        "provider": kind.map_or(view.model.provider.as_str(), |kind| kind.wire_name()),
        "providerId": view.model.provider,
        "model": view.model.model,
        "effort": view.model.effort,
        "assistant": view.assistant.as_deref().map(assistant_value),
        "compaction": view.strategies,
        "configuredMaxTokens": view.configured_max_tokens,
        "modelMaxTokens": view.usage.window,
        "sessionId": ready.session,
        "journalId": view.journal,
        "seq": view.seq,
        "user": {
            "id": ready.caller.user.id, "name": ready.caller.user.name,
            "role": ready.caller.user.role,
        },
        "resumed": ready.is_resumed,
        "title": view.title,
        "state": {
            "transcript": { "events": events, "more": !ready.is_resumed && first > 1 },
            "queue": queue_value(&view.queue),
            "usage": usage_value(&view.usage),
            "running": running(view),
            "waiting": view.waiting.iter().map(|message| json!({
                "text": message.text, "clientMessageId": message.client_message_id,
                "seq": message.seq, "attachments": message.attachments,
            })).collect::<Vec<_>>(),
        },
    });
    if let (Some(what), Some(container)) = (what.as_object_mut(), &view.container) {
        what.insert("containerId".to_owned(), json!(container));
    }
    if let (Some(what), Some(installation)) = (what.as_object_mut(), ready.installation.as_object())
    {
        what.extend(
            installation
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
    }
    frame("system:ready", &[&what])
}

fn running(view: &SessionView) -> Value {
    let Some(turn) = &view.turn else {
        return Value::Null;
    };
    let answer = view.told();
    json!({
        "turn": turn.id,
        "iteration": turn.iteration,
        "attempt": answer.map_or(1, |answer| answer.attempt),
        "phase": turn.phase,
        "text": answer.map_or("", |answer| &answer.text),
        "reasoning": answer.map_or("", |answer| &answer.reasoning),
        "since": turn.since.to_rfc3339(),
    })
}

/// Returns `{ seq, at, event, args }` for each frame of an event.
pub fn transcript_items(shown: &ShownEvent) -> impl Iterator<Item = Value> {
    let (seq, at) = (shown.seq, shown.at.to_rfc3339());
    event_frames(shown).into_iter().map(
        move |frame| json!({ "seq": seq, "at": at, "event": frame.name, "args": args(&frame) }),
    )
}
