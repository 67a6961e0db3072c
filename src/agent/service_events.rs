//! Tells a program that embeds the gateway what happens in its sessions, under the event names of a language
//! model service (S3.6, S3.7, S3.43).

use serde::Serialize;
use serde_json::{Value, json};

use crate::domain::SessionKey;
use crate::session::{Control, Event, Outcome};

/// Receives the events of all sessions that run at this gateway.
///
/// Each event is told at most once, after it is stored and in the order of its session: with several gateways
/// by the one that stored it. An event is not told if the gateway was killed right after storing it, or lost
/// the store's answer; the journal has it.
pub trait ServiceObserver: Send + Sync {
    /// Called on the session's task, so that it must not block.
    fn observe(&self, session: &SessionKey, event: &ServiceEvent);
}

/// An event with its payload. It serialises as `{"event": "llmservice:...", "payload": ...}`; events without a
/// payload have none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", content = "payload")]
pub enum ServiceEvent {
    /// A model is asked.
    #[serde(rename = "llmservice:thinking")]
    Thinking,
    /// A call starts, with the arguments that run.
    #[serde(rename = "llmservice:toolCall")]
    ToolCall { name: String, args: Value },
    /// A call has ended. A call that never started, such as one with invalid arguments, has only this event.
    #[serde(rename = "llmservice:toolResult")]
    ToolResult {
        name: String,
        /// The text that the model reads, or `{"error": "..."}`.
        result: Value,
    },
    /// The final answer of a turn.
    #[serde(rename = "llmservice:response")]
    Response { text: String },
    /// A turn failed.
    #[serde(rename = "llmservice:error")]
    Error { message: String },
    /// The model no longer reads what was said before.
    #[serde(rename = "llmservice:conversationReset")]
    ConversationReset,
}

impl ServiceEvent {
    /// The event that a stored one is; `None` = it has no name in a language model service. `control` is the
    /// state after the commit.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a language model service knows only these"
    )]
    pub(super) fn of(event: &Event, control: &Control) -> Option<Self> {
        Some(match event {
            Event::Thinking { .. } => Self::Thinking,
            Event::Started { call, name, .. } => Self::ToolCall {
                name: name.clone(),
                args: control
                    .call(call)
                    .map_or(Value::Null, |call| call.args.clone()),
            },
            Event::Ended { name, outcome, .. } => Self::ToolResult {
                name: name.clone(),
                result: result(outcome),
            },
            Event::Answered { text, .. } => Self::Response { text: text.clone() },
            Event::TurnFailed { text, .. } => Self::Error {
                message: text.clone(),
            },
            Event::ContextReset => Self::ConversationReset,
            _ => return None,
        })
    }
}

fn result(outcome: &Outcome) -> Value {
    let text = outcome.text();
    if outcome.is_error() {
        json!({ "error": text })
    } else {
        Value::String(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ServiceEvent;
    use crate::session::properties::world::{World, approve, proposal, say};
    use crate::session::{Command, Resolution};

    /// Asserts S3.7, S3.43.
    #[test]
    fn the_life_of_a_turn_has_the_events_of_a_service() {
        let mut world = World::new();
        let mut told = Vec::new();
        let mut tell = |world: &mut World, from: &mut usize| {
            let events: Vec<_> = world.events().skip(*from).cloned().collect();
            *from += events.len();
            let events = events
                .iter()
                .filter_map(|it| ServiceEvent::of(it, &world.state.control));
            told.extend(events.map(|event| serde_json::to_value(event).unwrap()));
        };
        let mut from = 0;
        world.submit(&say("do it")).unwrap();
        tell(&mut world, &mut from);
        let mut invalid = proposal("run", json!({}));
        invalid.resolution = Resolution::Invalid("`n` is missing".into());
        world.answer("two", vec![proposal("run", json!({"n": 1})), invalid]);
        tell(&mut world, &mut from);
        let call = world.queue().remove(0);
        world.submit(&approve(&call)).unwrap();
        tell(&mut world, &mut from);
        world.finish(&call);
        tell(&mut world, &mut from);
        world.answer("done", vec![]);
        world.submit(&Command::ResetContext).unwrap();
        tell(&mut world, &mut from);
        let error = told[1]["payload"]["result"]["error"].take();
        assert!(
            error.as_str().unwrap().contains("`n` is missing"),
            "{error}"
        );
        let result = told[3]["payload"]["result"].take();
        assert!(result.is_string(), "{result}");
        assert_eq!(
            told,
            [
                json!({"event": "llmservice:thinking"}),
                json!({"event": "llmservice:toolResult", "payload": {"name": "run", "result": {"error": null}}}),
                json!({"event": "llmservice:toolCall", "payload": {"name": "run", "args": {"n": 1}}}),
                json!({"event": "llmservice:toolResult", "payload": {"name": "run", "result": null}}),
                json!({"event": "llmservice:thinking"}),
                json!({"event": "llmservice:response", "payload": {"text": "done"}}),
                json!({"event": "llmservice:conversationReset"}),
            ]
        );
    }
}
