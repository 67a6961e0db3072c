//! Tests which parts of a session its forks share.

use super::answer_calls;
use crate::domain::{Entry, MicroUsd, NoCopy, TokenUsage, WorkspaceCopy};
use crate::session::properties::world::{World, answer, approve, reject, say};
use crate::session::{Answer, Command, Commit, Effect, Event, Unfinished, effects};

/// The texts that the model reads: messages, answers, results and notes.
fn read(world: &World) -> Vec<String> {
    let entries = world.state.entries.iter();
    entries
        .map(|entry| match &***entry {
            Entry::User { text, .. } | Entry::Assistant { text, .. } | Entry::Note { text } => {
                text.clone()
            }
            Entry::ToolResult { text, .. } => format!("result: {text}"),
        })
        .collect()
}

/// `seq` of the first matching event.
fn seq_of(world: &World, is_so: impl Fn(&Event) -> bool) -> u64 {
    let mut shown = world.journal.iter().flat_map(Commit::shown);
    shown.find(|(_, event)| is_so(event)).unwrap().0
}

#[test]
fn an_edited_message_goes_on_from_what_stood_before_it() {
    let mut world = World::new();
    world.tell(&say("one")).unwrap();
    world.answer("first", vec![]);
    world.tell(&say("two")).unwrap();
    world.answer("second", vec![]);
    let edited = seq_of(
        &world,
        |event| matches!(event, Event::UserMessage { text, .. } if text == "two"),
    );
    let mut fork = world.forked(edited - 1);
    fork.tell(&say("2")).unwrap();
    fork.answer("other", vec![]);
    assert_eq!(read(&fork), ["one", "first", "2", "other"]);
    assert_eq!(read(&world), ["one", "first", "two", "second"]);
}

#[test]
fn a_fork_that_ends_with_a_message_asks_the_model_for_its_answer() {
    let mut world = World::new();
    world.tell(&say("one")).unwrap();
    world.answer("first", vec![]);
    let mut fork = world.forked(seq_of(&world, |event| {
        matches!(event, Event::UserMessage { .. })
    }));
    assert_eq!(fork.state.control.waiting.len(), 1);
    fork.tell(&Command::Retry).unwrap();
    fork.answer("other", vec![]);
    assert_eq!(read(&fork), ["one", "other"]);
    // A retry replaces the answer, as in any session.
    fork.tell(&Command::Retry).unwrap();
    fork.answer("third", vec![]);
    assert_eq!(read(&fork), ["one", "third"]);
}

#[test]
fn a_fork_of_nothing_is_a_session_without_a_past() {
    let mut world = World::new();
    world.tell(&say("one")).unwrap();
    world.answer("first", vec![]);
    let mut fork = world.forked(0);
    assert!(fork.tell(&Command::Retry).is_err());
    fork.tell(&say("new")).unwrap();
    assert_eq!(fork.state.control.title.text.as_deref(), Some("new"));
}

/// Asserts S1.4: usage before the fork is only counted in the original session.
#[test]
fn what_was_paid_before_is_not_paid_again() {
    let usage = TokenUsage {
        input_tokens: 10,
        output_tokens: 5,
        ..TokenUsage::default()
    };
    let mut world = World::new();
    world.tell(&say("one")).unwrap();
    let request = world.state.control.turn.as_ref().unwrap().request();
    let answer = Answer {
        usage,
        cost: Some(MicroUsd(7)),
        ..answer("first", vec![])
    };
    world.tell(&Command::Answered { request, answer }).unwrap();
    let fork = world.forked(world.state.control.seq);
    assert_eq!(world.state.control.usage.totals.cost, MicroUsd(7));
    assert_eq!(fork.state.control.usage.totals.cost, MicroUsd(0));
    // The size of the context is still known.
    assert_eq!(fork.state.control.usage.last_usage, usage);
}

#[test]
fn a_turn_that_goes_on_elsewhere_ends_here_with_a_result_for_each_call() {
    let mut world = World::new();
    world.tell(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b", "c"]);
    let calls = world.queue();
    for call in &calls {
        world.tell(&approve(call)).unwrap();
    }
    world.finish(&calls[0]);
    let fork = world.forked(world.state.control.seq);
    let results = read(&fork)
        .into_iter()
        .filter(|text| text.starts_with("result: "));
    assert_eq!(results.count(), 3);
    assert_eq!(world.queue().len(), 3, "the other one goes on");
    assert!(fork.state.control.notes[0].contains("workspace of its own"));
    assert_eq!(fork.state.control.engine, None);
}

/// A fork may be made between a rejection and its result, which are two events.
#[test]
fn a_rejected_call_stays_rejected_where_its_result_came_later() {
    let mut world = World::new();
    world.tell(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    world.tell(&reject(&world.queue()[0], None)).unwrap();
    let fork = world.forked(seq_of(&world, |event| {
        matches!(event, Event::Decided { .. })
    }));
    let results = read(&fork);
    let result = results.iter().find(|text| text.starts_with("result: "));
    assert!(
        result.unwrap().contains("not allowed to run"),
        "{results:?}"
    );
}

/// A fork of a session with files makes no model request before they are copied.
#[test]
fn a_fork_waits_for_its_files_and_asks_once_they_are_there() {
    let outcomes = [
        (
            WorkspaceCopy::Copied { bytes: Some(5) },
            "a copy of the first session's",
        ),
        (
            WorkspaceCopy::Empty(NoCopy::TooLarge),
            "workspace of its own",
        ),
    ];
    for (outcome, words) in outcomes {
        let mut world = World::new();
        world.tell(&say("one")).unwrap();
        world.answer("first", vec![]);
        let mut fork = world.forked_with_files(world.state.control.seq);
        assert!(fork.state.control.is_unfinished());
        let last = fork.journal.last().unwrap();
        assert!(last.is_unfinished_after(Unfinished::default()));
        fork.tell(&say("two")).unwrap();
        assert_eq!(effects(&fork.state.control), [Effect::CopyWorkspace]);
        // Another gateway takes over and restarts the copy.
        fork.crash();
        assert_eq!(effects(&fork.state.control), [Effect::CopyWorkspace]);
        let told = Command::WorkspaceCopied { outcome };
        fork.tell(&told).unwrap();
        let asked = effects(&fork.state.control);
        assert!(matches!(asked[..], [Effect::AskModel(_)]), "{asked:?}");
        let version = fork.state.control.version;
        fork.tell(&told).unwrap();
        assert_eq!(fork.state.control.version, version, "it is told once");
        fork.answer("second", vec![]);
        assert!(!fork.state.control.is_unfinished());
        let read = read(&fork);
        assert!(read.iter().any(|text| text.contains(words)), "{read:?}");
        // A fork of this fork does not inherit the wait for files.
        let next = fork.forked(fork.state.control.seq);
        assert!(!next.state.control.awaits_workspace);
    }
}
