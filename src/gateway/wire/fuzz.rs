//! Fuzzes the conversion of stored events to frames: every event that can be read can be shown.

use super::frame::args;
use super::{event_frames, transcript_items};
use crate::agent::ShownEvent;
use crate::session::Commit;

#[test]
fn stored_events() {
    sepal_fuzz::check("stored_events", |input| {
        for line in input.split(|byte| *byte == b'\n').take(64) {
            let Ok(commit) = Commit::from_bytes(line) else {
                continue;
            };
            let shown = commit.shown().map(|(seq, event)| ShownEvent {
                seq,
                at: commit.at,
                event: event.clone(),
            });
            for event in shown {
                check(&event);
                assert!(transcript_items(&event).count() > 0);
            }
        }
    });
}

fn check(event: &ShownEvent) {
    let frames = event_frames(event);
    assert!(!frames.is_empty(), "{event:?}");
    for frame in frames {
        for arg in args(&frame) {
            assert!(!arg.is_null(), "`{}` could not be written", frame.name);
        }
    }
}
