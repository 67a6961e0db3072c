//! Stories of what leaves the context of a session.

use crate::domain::CompactionStrategy;
use crate::session::properties::world::{World, answer, say};
use crate::session::{Answer, Command, Compacted, Compaction, ContextSize, Event};

#[test]
fn what_leaves_the_context_is_chosen_once_and_the_choice_is_taken_back_by_none() {
    let choose = |strategies: Option<&[CompactionStrategy]>| Command::ChooseCompaction {
        strategies: strategies.map(<[_]>::to_vec),
    };
    let mut world = World::new();
    world.tell(&choose(None)).unwrap();
    assert!(world.journal.is_empty(), "it was so already");
    let middle = [CompactionStrategy::DeleteMiddle];
    world.tell(&choose(Some(&middle))).unwrap();
    world.tell(&choose(Some(&middle))).unwrap();
    assert_eq!(world.journal.len(), 1);
    assert_eq!(world.state.control.strategies.as_deref(), Some(&middle[..]));
    let mixed = [CompactionStrategy::None, CompactionStrategy::DeleteOld];
    for wrong in [&mixed[..], &[]] {
        let refusal = world.tell(&choose(Some(wrong))).unwrap_err();
        assert_eq!(refusal.field, Some("strategies"));
    }
    world.tell(&choose(None)).unwrap();
    assert_eq!(world.state.control.strategies, None);
}

#[test]
fn what_a_request_left_out_is_an_event_and_stays_so_until_the_context_begins_anew() {
    let mut world = World::new();
    world.tell(&say("one")).unwrap();
    world.answer("first", vec![]);
    world.tell(&say("two")).unwrap();
    let size = ContextSize {
        messages: 3,
        tokens: 30,
    };
    let made = Compaction {
        from: 2,
        max_tokens: Some(20),
        ..Compaction::default()
    };
    let entries = world.state.entries.clone();
    let compacted = Compacted {
        strategy: "delete-old".into(),
        compaction: made.clone(),
        left: 2,
        from_seq: Some(1),
        to_seq: None,
        summarised_by: None,
        before: size,
        after: size,
    };
    let request = world.state.control.turn.as_ref().unwrap().request();
    let answer = Answer {
        compacted: Some(Box::new(compacted)),
        ..answer("second", vec![])
    };
    world.tell(&Command::Answered { request, answer }).unwrap();
    assert_eq!(world.state.control.compaction, Some(made));
    assert_eq!(
        world.state.entries[..3],
        entries,
        "the transcript has it all"
    );
    let events: Vec<&Event> = world.events().collect();
    let place = |wanted: fn(&Event) -> bool| events.iter().rposition(|event| wanted(event));
    let told = place(|event| matches!(event, Event::ContextCompacted(_)));
    assert!(told.is_some() && told < place(|event| matches!(event, Event::Answered { .. })));
    world.tell(&Command::ResetContext).unwrap();
    assert_eq!(world.state.control.compaction, None);
}
