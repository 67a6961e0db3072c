//! Fuzzes the parsers of snapshots from the store and of messages from other gateways.

use super::cluster::message::{ClusterMessage, SessionUpdate};
use super::feed::running_answer::RunningAnswer;
use super::journal::StoredSnapshot;
use crate::domain::{CommitId, GatewayId, ModelRequestId, Timestamp};
use crate::session::{Commit, Event, SCHEMA, effects};

/// A snapshot that can be parsed round-trips, and events apply to it as to the original state.
#[test]
fn snapshots() {
    sepal_fuzz::check("snapshots", |input| {
        let Ok(mut kept) = serde_json::from_slice::<StoredSnapshot>(input) else {
            return;
        };
        let written = serde_json::to_vec(&kept).unwrap();
        let again: StoredSnapshot = serde_json::from_slice(&written).unwrap();
        assert_eq!(again.state, kept.state);
        let events = vec![
            Event::OwnerChanged {
                runner: GatewayId::from("other"),
                engine: None,
            },
            Event::ContextReset,
            Event::TitleSet {
                title: "t".to_owned(),
                source: None,
            },
        ];
        let commit = Commit {
            version: kept.state.control.version.saturating_add(1),
            commit_id: CommitId::from_bits(1),
            schema: SCHEMA,
            at: Timestamp(1),
            seq: kept.state.control.seq,
            events,
            is_inherited: false,
        };
        kept.state.apply(&commit);
        let _ = effects(&kept.state.control);
    });
}

/// Messages of a newer or broken gateway on the same Redis, one per line.
#[test]
fn cluster_messages() {
    sepal_fuzz::check("cluster_messages", |input| {
        let mut answer = RunningAnswer::begin(ModelRequestId::default(), 1);
        for line in input.split(|byte| *byte == b'\n').take(64) {
            let Ok(message) = serde_json::from_slice::<ClusterMessage>(line) else {
                continue;
            };
            let written = serde_json::to_vec(&message).unwrap();
            assert!(serde_json::from_slice::<ClusterMessage>(&written).is_ok());
            let ClusterMessage::Updates { updates, .. } = message else {
                continue;
            };
            for update in updates {
                if let SessionUpdate::Delta(delta) = update {
                    let _ = answer.merge(&delta);
                } else if let SessionUpdate::Answer(whole) = update {
                    let _ = answer.adopt(&whole);
                }
            }
        }
        assert!(answer.text.len() + answer.reasoning.len() <= 3 * input.len());
    });
}
