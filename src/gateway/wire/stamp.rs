//! Adds the stamp (`seq` and `at`) to the payload of an event's frames.

use serde::Serialize;
use serde_json::Value;

use crate::agent::ShownEvent;
use crate::domain::RequestId;

/// The payload of an event, with its stamp.
#[derive(Serialize)]
pub(super) struct StampedPayload<T> {
    #[serde(flatten)]
    what: T,
    seq: u64,
    at: String,
}

impl<T> StampedPayload<T> {
    pub(super) fn of(what: T, shown: &ShownEvent) -> Self {
        Self {
            what,
            seq: shown.seq,
            at: shown.at.to_rfc3339(),
        }
    }
}

/// Adds `seq` and `at`, and removes null fields.
pub(super) fn stamped(mut what: Value, shown: &ShownEvent) -> Value {
    if let Value::Object(map) = &mut what {
        map.retain(|_, value| !value.is_null());
        map.insert("seq".into(), shown.seq.into());
        map.insert("at".into(), shown.at.to_rfc3339().into());
    }
    what
}

/// Returns the id of a failure for the log, which is the same at every replay.
pub(super) fn request_id(shown: &ShownEvent) -> RequestId {
    let at = u128::try_from(shown.at.0).unwrap_or_default();
    RequestId::from_bits((at << 64) | u128::from(shown.seq))
}
