//! Fuzzes the journal. Stored bytes may come from an older release, a restored backup or a damaged disk.
//! Every readable commit folds without a panic and serializes back to an equal commit.

use super::proof::{Chain, Verifier, link_of_stored};
use super::{Commit, SCHEMA, SessionState, effects};

/// Asserts S0.2.
#[test]
fn journal() {
    sepal_fuzz::check("journal", |input| {
        let mut state = SessionState::default();
        let (mut chain, mut verifier) = (Chain::default(), Verifier::default());
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
            // As they came, they are hardly a chain; linked anew, they are one.
            let _ = (link_of_stored(line), Verifier::default().take(line));
            let linked = chain.append(&commit).unwrap();
            assert_eq!(verifier.take(&linked).unwrap().commit, commit);
            let kept = serde_json::to_vec(&state).unwrap();
            let again: SessionState = serde_json::from_slice(&kept).unwrap();
            assert_eq!(again, state, "a snapshot is the state");
            assert!(effects(&state.control).len() <= 4_096);
        }
    });
}
