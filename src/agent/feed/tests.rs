//! Tests offsets, attempts, and which gateway may stream.

use super::{
    Delta, DeltaKind, Feed, FeedItem, QueueState, SessionView, Ticket, TurnView, UsageState,
};
use crate::domain::{Iteration, JournalId, ModelRequestId, Timestamp, TurnId};
use crate::session::ModelChoice;

fn request(turn: u64, iteration: u32) -> ModelRequestId {
    ModelRequestId {
        turn: TurnId(turn),
        iteration: Iteration(iteration),
    }
}

#[test]
fn offsets_count_as_browsers_do_and_a_late_watcher_gets_the_rest_in_one_piece() {
    let feed = Feed::default();
    let (mut signals, running) = feed.watch();
    assert!(running.is_none());
    let ticket = feed.begin_answer(request(1, 1), 1);
    for piece in ["a", "😀", "b"] {
        feed.say(ticket, DeltaKind::Text, piece.into());
    }
    feed.say(Ticket(9), DeltaKind::Text, "late".into());
    let mut offsets = Vec::new();
    while let Ok(signal) = signals.try_recv() {
        let FeedItem::Delta(delta) = &signal.item else {
            panic!("no delta")
        };
        offsets.push(delta.offset);
    }
    assert_eq!(offsets, [0, 1, 3]);
    let missing = feed.running_answer().unwrap().missing(1, 0);
    assert_eq!((missing[0].offset, missing[0].text.as_str()), (1, "😀b"));
}

#[test]
fn another_attempt_begins_at_offset_zero() {
    let feed = Feed::default();
    let ticket = feed.begin_answer(request(1, 1), 1);
    feed.say(ticket, DeltaKind::Text, "cut".into());
    feed.restart_answer(ticket);
    feed.say(ticket, DeltaKind::Text, "whole".into());
    let answer = feed.end_answer().unwrap();
    assert_eq!((answer.attempt, answer.text.as_str()), (2, "whole"));
    feed.say(ticket, DeltaKind::Text, "late".into());
    assert!(feed.running_answer().is_none());
}

#[test]
fn text_that_was_reasoning_leaves_the_text_with_a_new_attempt() {
    let feed = Feed::default();
    let ticket = feed.begin_answer(request(1, 1), 1);
    feed.say(ticket, DeltaKind::Reasoning, "so ".into());
    feed.say(ticket, DeltaKind::Text, "hm".into());
    feed.turn_text_into_reasoning(Ticket::default());
    feed.turn_text_into_reasoning(ticket);
    feed.say(ticket, DeltaKind::Text, "yes".into());
    let answer = feed.end_answer().unwrap();
    let shown = (
        answer.attempt,
        answer.reasoning.as_str(),
        answer.text.as_str(),
    );
    assert_eq!(shown, (2, "so hm", "yes"));
}

#[test]
fn a_request_that_is_made_again_replaces_what_was_shown_of_it() {
    let feed = Feed::default();
    let first = feed.begin_answer(request(1, 1), 1);
    feed.say(first, DeltaKind::Text, "one".into());
    let second = feed.begin_answer(request(1, 1), 1);
    feed.say(first, DeltaKind::Text, "late".into());
    feed.say(second, DeltaKind::Text, "two".into());
    let answer = feed.running_answer().unwrap();
    assert_eq!((answer.attempt, answer.text.as_str()), (2, "two"));
    assert!(
        feed.follow_answer(request(1, 1), 1_001),
        "another gateway goes on"
    );
    feed.say(second, DeltaKind::Text, "frozen".into());
    assert_eq!(feed.running_answer().unwrap().text, "");
}

#[test]
fn what_was_shown_stays_in_view_until_the_next_attempt_says_something() {
    let in_view = |feed: &Feed| feed.running_answer().unwrap().into_shown();
    let feed = Feed::default();
    feed.follow_answer(request(1, 1), 1);
    let elsewhere = |attempt, text: &str| Delta {
        turn: TurnId(1),
        iteration: Iteration(1),
        attempt,
        offset: 0,
        kind: DeltaKind::Text,
        text: text.into(),
    };
    feed.merge(&elsewhere(1, "one"));
    feed.follow_answer(request(1, 1), 1_001);
    assert_eq!(in_view(&feed), "one", "a third gateway goes on");
    let ticket = feed.begin_answer(request(1, 1), 2_001);
    assert_eq!(in_view(&feed), "one", "and then this one");
    assert_eq!(feed.running_answer().unwrap().text, "");
    feed.say(ticket, DeltaKind::Reasoning, "hm".into());
    assert_eq!(in_view(&feed), "");
    feed.say(ticket, DeltaKind::Text, "two".into());
    assert_eq!(in_view(&feed), "two");
    feed.restart_answer(ticket);
    assert_eq!(in_view(&feed), "", "it was said that it is void");
    let other = feed.begin_answer(request(1, 2), 1);
    feed.say(other, DeltaKind::Text, "three".into());
    feed.begin_answer(request(1, 3), 1);
    assert_eq!(in_view(&feed), "", "another request");
}

#[test]
fn a_view_tells_only_of_the_request_at_which_its_turn_is() {
    let feed = Feed::default();
    let ticket = feed.begin_answer(request(2, 1), 1);
    feed.say(ticket, DeltaKind::Text, "ahead".into());
    let at = |turn: Option<ModelRequestId>| SessionView {
        assistant: None,
        strategies: Vec::new(),
        journal: JournalId::from_bits(1),
        seq: 1,
        title: None,
        model: ModelChoice::new("p", "m"),
        is_stored: true,
        queue: QueueState::default(),
        usage: UsageState::default(),
        turn: turn.map(|request| TurnView {
            id: request.turn,
            iteration: request.iteration,
            phase: "model",
            since: Timestamp(0),
        }),
        answer: feed.running_answer(),
        waiting: Vec::new(),
        configured_max_tokens: None,
        rules: std::sync::Arc::default(),
        container: None,
    };
    assert!(at(None).told().is_none());
    assert!(at(Some(request(1, 1))).told().is_none());
    assert!(at(Some(request(2, 2))).told().is_none());
    let view = at(Some(request(2, 1)));
    assert_eq!(
        view.told().map(|answer| answer.text.as_str()),
        Some("ahead")
    );
}
