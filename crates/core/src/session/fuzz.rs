//! Fuzzes the journal. Stored bytes may come from an older release, a restored backup or a damaged disk.
//! Every readable commit folds without a panic and serializes back to an equal commit.

use super::{Commit, SCHEMA, SessionState, effects};

/// Asserts S0.2.
#[test]
fn journal() {
    sepal_fuzz::check("journal", |input| {
        let mut state = SessionState::default();
        for line in input.split(|byte| *byte == b'\n').take(64) {
            let Ok(mut commit) = Commit::from_bytes(line) else {
                continue;
            };
            assert!(commit.schema <= SCHEMA);
            let written = commit.to_bytes().unwrap();
            assert_eq!(
                Commit::from_bytes(&written).unwrap(),
                commit,
                "write and read"
            );
            let shown: Vec<u64> = commit.shown().map(|(seq, _)| seq).collect();
            assert_eq!(
                shown.last().copied().unwrap_or(commit.seq),
                commit.last_seq()
            );
            let _ = commit.is_unfinished_after(state.control.unfinished());
            // The reader refuses gaps; here every commit follows the one before.
            commit.version = state.control.version.saturating_add(1);
            state.apply(&commit);
            let kept = serde_json::to_vec(&state).unwrap();
            let again: SessionState = serde_json::from_slice(&kept).unwrap();
            assert_eq!(again, state, "a snapshot is the state");
            assert!(effects(&state.control).len() <= 4_096);
        }
    });
}
