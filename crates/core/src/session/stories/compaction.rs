//! Tests cuts and compactions of a session's context.

use crate::domain::{Effort, StrategyName, TokenUsage};
use crate::session::properties::world::{World, answer, say};
use crate::session::{
    Answer, Command, CompactedByVendor, Compaction, CompactionReport, ContextSize, CutKind, Event,
    Gaps, ModelChoice, Replay,
};

#[test]
fn what_leaves_the_context_is_chosen_once_and_the_choice_is_taken_back_by_none() {
    let choose = |strategies: Option<&[StrategyName]>| Command::ChooseCompaction {
        strategies: strategies.map(<[_]>::to_vec),
    };
    let mut world = World::new();
    world.submit(&choose(None)).unwrap();
    assert!(world.journal.is_empty(), "it was so already");
    let middle = [StrategyName::DeleteMiddle];
    world.submit(&choose(Some(&middle))).unwrap();
    world.submit(&choose(Some(&middle))).unwrap();
    assert_eq!(world.journal.len(), 1);
    assert_eq!(
        world.state.control.context.strategies.as_deref(),
        Some(&middle[..])
    );
    let mixed = [StrategyName::None, StrategyName::DeleteOld];
    for wrong in [&mixed[..], &[]] {
        let refusal = world.submit(&choose(Some(wrong))).unwrap_err();
        assert_eq!(refusal.field, Some("strategies"));
    }
    world.submit(&choose(None)).unwrap();
    assert_eq!(world.state.control.context.strategies, None);
}

#[test]
fn what_a_request_left_out_is_an_event_and_stays_so_until_the_context_begins_anew() {
    let mut world = World::new();
    world.submit(&say("one")).unwrap();
    world.answer("first", vec![]);
    world.submit(&say("two")).unwrap();
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
    let compacted = CompactionReport {
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
    world
        .submit(&Command::Answered { request, answer })
        .unwrap();
    assert_eq!(world.state.control.context.compaction, Some(made));
    assert_eq!(
        world.state.entries[..3],
        entries,
        "the transcript has it all"
    );
    let events: Vec<&Event> = world.events().collect();
    let place = |wanted: fn(&Event) -> bool| events.iter().rposition(|event| wanted(event));
    let told = place(|event| matches!(event, Event::ContextCompacted(_)));
    assert!(told.is_some() && told < place(|event| matches!(event, Event::Answered { .. })));
    world.submit(&Command::ResetContext).unwrap();
    assert_eq!(world.state.control.context.compaction, None);
}

/// Asserts S2.26.
#[test]
fn a_lower_limit_leaves_every_entry_in_its_place_and_holds_until_another_model_answers() {
    let mut world = World::new();
    world.submit(&say("one")).unwrap();
    world.answer("first", vec![]);
    world.submit(&say("two")).unwrap();
    // Entries that were removed from memory still count for places.
    let (held, gaps) = (world.state.entries.split_off(2), Gaps::between([2], 3));
    world.state.retain(held, gaps.clone());
    for kind in [CutKind::LowerLimit, CutKind::Shortening] {
        let request = world.state.control.turn.as_ref().unwrap().request();
        let (cut, spent) = (world.cut(kind), Vec::new());
        world
            .submit(&Command::Overflowed {
                request,
                cut,
                spent,
            })
            .unwrap();
        assert_eq!((world.state.entries.len(), &world.state.gaps), (1, &gaps));
        let turn = world.state.control.turn.as_ref().unwrap();
        assert!(turn.is_limit_lowered, "said once in a turn");
    }
    world.answer("second", vec![]);
    world.submit(&say("three")).unwrap();
    assert_eq!(world.state.control.context.max_tokens, Some(1));
    let turn = world.state.control.turn.as_ref().unwrap();
    assert!(!turn.is_limit_lowered);
    let chosen = world.state.control.model.clone().unwrap();
    let thinks = ModelChoice {
        effort: Some(Effort::High),
        ..chosen
    };
    let larger = ModelChoice::new("other", "larger");
    for (model, expected) in [(thinks, Some(1)), (larger, None)] {
        world.submit(&Command::ChooseModel { model }).unwrap();
        assert_eq!(world.state.control.context.max_tokens, expected);
    }
}

/// A vendor's compaction is recorded before its answer, and does not count for the size of the context.
#[test]
fn what_a_vendor_compacted_is_told_counted_and_decided_again() {
    let mut world = World::new();
    world.submit(&say("one")).unwrap();
    let request = world.state.control.turn.as_ref().unwrap().request();
    let part = TokenUsage {
        input_tokens: 60,
        output_tokens: 5,
        ..TokenUsage::default()
    };
    let by_vendor = CompactedByVendor {
        provider: "p".into(),
        model: "m".into(),
        summary: Some("All of it.".into()),
        before: Some(60),
        after: Some(3),
        usage: Some(part),
        cost: None,
    };
    let plain = answer("first", vec![]);
    let answer = Answer {
        usage: plain.usage.and(part),
        compacted_by_vendor: Some(Box::new(by_vendor)),
        ..plain.clone()
    };
    world
        .submit(&Command::Answered { request, answer })
        .unwrap();
    let events: Vec<&Event> = world.events().collect();
    let place = |wanted: fn(&Event) -> bool| events.iter().rposition(|event| wanted(event));
    let told = place(|event| matches!(event, Event::CompactedByVendor(_)));
    assert!(told.is_some() && told < place(|event| matches!(event, Event::Answered { .. })));
    assert_eq!(world.state.control.usage.last_usage, plain.usage);
    assert_eq!(world.state.control.usage.totals.total_tokens, 70);
    let mut replay = Replay::default();
    for commit in &world.journal {
        replay.step(commit).unwrap();
    }
}
