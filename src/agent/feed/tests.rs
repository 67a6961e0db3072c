//! Offsets, attempts and who may speak.

use super::{DeltaKind, Feed, Ticket, What};

#[test]
fn offsets_count_as_browsers_do_and_a_late_watcher_gets_the_rest_in_one_piece() {
    let feed = Feed::default();
    let (mut signals, running) = feed.watch();
    assert!(running.is_none());
    let ticket = feed.begin_answer((1, 1), 1);
    for piece in ["a", "😀", "b"] {
        feed.say(ticket, DeltaKind::Text, piece.into());
    }
    feed.say(Ticket(9), DeltaKind::Text, "late".into());
    let mut offsets = Vec::new();
    while let Ok(signal) = signals.try_recv() {
        let What::Delta(delta) = &signal.what else {
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
    let ticket = feed.begin_answer((1, 1), 1);
    feed.say(ticket, DeltaKind::Text, "cut".into());
    feed.restart_answer(ticket);
    feed.say(ticket, DeltaKind::Text, "whole".into());
    let answer = feed.end_answer().unwrap();
    assert_eq!((answer.attempt, answer.text.as_str()), (2, "whole"));
    feed.say(ticket, DeltaKind::Text, "late".into());
    assert!(feed.running_answer().is_none());
}

#[test]
fn a_request_that_is_made_again_replaces_what_was_shown_of_it() {
    let feed = Feed::default();
    let first = feed.begin_answer((1, 1), 1);
    feed.say(first, DeltaKind::Text, "one".into());
    let second = feed.begin_answer((1, 1), 1);
    feed.say(first, DeltaKind::Text, "late".into());
    feed.say(second, DeltaKind::Text, "two".into());
    let answer = feed.running_answer().unwrap();
    assert_eq!((answer.attempt, answer.text.as_str()), (2, "two"));
    assert!(feed.follow_answer((1, 1), 1_001), "another gateway goes on");
    feed.say(second, DeltaKind::Text, "frozen".into());
    assert_eq!(feed.running_answer().unwrap().text, "");
}
