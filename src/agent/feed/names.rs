//! Maps feed items to the event names of a language model service (S3.7), for programs that embed this crate
//! and know those names.

use super::FeedItem;

impl FeedItem {
    /// Returns the item's event name in a language model service: `llmservice:thinking`,
    /// `llmservice:toolCall`, `llmservice:toolResult`, `llmservice:response`, `llmservice:error` or
    /// `llmservice:conversationReset`. Other items have none.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only events have names")]
    pub fn service_event(&self) -> Option<&'static str> {
        match self {
            Self::Event(shown) => shown.event.facts().service_name,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FeedItem;
    use crate::agent::feed::ShownEvent;
    use crate::session::properties::world::{World, approve, proposal, say};
    use crate::session::{Command, Event, Resolution};
    use serde_json::json;

    /// Asserts S3.7, S3.43.
    #[test]
    fn the_life_of_a_turn_has_the_names_of_a_service() {
        let mut world = World::new();
        world.submit(&say("do it")).unwrap();
        let mut invalid = proposal("run", json!({}));
        invalid.resolution = Resolution::Invalid("`n` is missing".into());
        world.answer("two", vec![proposal("run", json!({"n": 1})), invalid]);
        let call = world.queue().remove(0);
        world.submit(&approve(&call)).unwrap();
        world.finish(&call);
        world.answer("done", vec![]);
        world.submit(&Command::ResetContext).unwrap();
        let names = world.events().filter_map(|event: &Event| {
            let what = FeedItem::Event(ShownEvent {
                seq: 1,
                at: world.state.control.at,
                event: event.clone(),
            });
            what.service_event()
        });
        let names: Vec<&str> = names.collect();
        assert_eq!(
            names,
            [
                "llmservice:thinking",
                "llmservice:toolResult",
                "llmservice:toolCall",
                "llmservice:toolResult",
                "llmservice:thinking",
                "llmservice:response",
                "llmservice:conversationReset",
            ]
        );
        let usage = FeedItem::Usage(crate::agent::UsageState::default());
        assert_eq!(usage.service_event(), None);
    }
}
