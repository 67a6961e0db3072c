//! Tests imported conversations.

use crate::domain::{CommitId, Timestamp, Totals};
use crate::session::properties::world::World;
use crate::session::{Activity, Commit, Event, Import, SaidElsewhere, SessionState, Speaker};

fn said(by: Speaker, at: Option<i64>, text: &str) -> SaidElsewhere {
    SaidElsewhere {
        attachments: Vec::new(),
        by,
        at: at.map(Timestamp),
        text: text.into(),
    }
}

/// Imports a session that begins at 1,000, at the time 5,000.
fn imported(all: &[SaidElsewhere]) -> (Vec<Commit>, SessionState) {
    let ids = std::cell::Cell::new(0);
    let id = || {
        ids.set(ids.get() + 1);
        CommitId::from_bits(ids.get())
    };

    let mut import = Import::new(
        World::new().genesis,
        "Elsewhere",
        Timestamp(1_000),
        Timestamp(5_000),
        id(),
    );
    for said in all {
        import.take(said, id());
    }
    import.finish(id())
}

#[test]
fn an_imported_session_is_at_rest_costs_nothing_and_folds_from_its_journal() {
    let model = Speaker::Model(Some("gpt-5".into()));
    let (commits, state) = imported(&[
        said(Speaker::Person, Some(2_000), "one"),
        said(model, Some(3_000), "first"),
        said(Speaker::Person, None, "two"),
        said(Speaker::Model(None), Some(9_000), "second"),
    ]);
    let control = &state.control;
    assert_eq!(control.title.text.as_deref(), Some("Elsewhere"));
    assert_eq!(control.activity(), Activity::Idle);
    assert_eq!(control.usage.totals, Totals::default());
    assert!(control.waiting.is_empty() && control.turn.is_none());
    assert_eq!((control.turns, state.entries.len()), (2, 4));
    let times: Vec<i64> = commits.iter().map(|commit| commit.at.0).collect();
    // An unknown time equals the time before it; no time precedes the one before it or exceeds `now`.
    assert_eq!(times, [1_000, 2_000, 3_000, 3_000, 5_000]);
    let mut folded = SessionState::default();
    for commit in &commits {
        assert!(commit.is_inherited);
        folded.apply(&Commit::from_bytes(&commit.to_bytes().unwrap()).unwrap());
    }
    assert_eq!(folded, state);
}

#[test]
fn what_nobody_answered_elsewhere_is_not_answered_here_unasked() {
    let (commits, state) = imported(&[
        said(Speaker::Person, None, "one"),
        said(Speaker::Person, None, "still there?"),
    ]);
    assert_eq!(state.control.activity(), Activity::Idle);
    assert!(state.control.waiting.is_empty());
    let last = commits.last().unwrap();
    assert!(matches!(
        last.events[..],
        [Event::Thinking { .. }, Event::Cancelled { .. }]
    ));
}
