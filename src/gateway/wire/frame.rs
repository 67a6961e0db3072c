//! Frames: a name and serialized arguments.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::agent::Frame;
use crate::domain::{Code, Fault, RequestId};
use crate::session::Refusal;

/// Builds a frame from serializable arguments.
pub(in crate::gateway) fn frame(name: &'static str, args: &[&dyn Raw]) -> Frame {
    Frame {
        name,
        args: args.iter().map(|arg| arg.raw()).collect(),
    }
}

/// Something that serializes; object safe.
pub(in crate::gateway) trait Raw {
    fn raw(&self) -> Box<RawValue>;
}

impl<T: Serialize> Raw for T {
    fn raw(&self) -> Box<RawValue> {
        // Only maps with keys that are no strings fail; our payloads have none.
        to_raw_value(self).unwrap_or_else(|error| {
            tracing::error!(%error, "A payload does not serialize");
            RawValue::NULL.to_owned()
        })
    }
}

/// Why a command was refused, as acknowledgements and `agent:error` carry it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The stable code.
    pub code: Code,
    /// Who has to act.
    pub category: Fault,
    /// In words.
    pub message: String,
    /// The wrong field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'static str>,
    /// Whether the same command may work later.
    pub retryable: bool,
    /// Names the request in the log.
    pub request_id: RequestId,
}

/// The outside form of a refusal.
pub fn refused(refusal: &Refusal) -> Refused {
    Refused {
        code: refusal.code,
        category: refusal.code.fault(),
        message: refusal.message.clone(),
        field: refusal.field,
        retryable: refusal.code.fault() == Fault::Transient,
        request_id: RequestId::from_bits(rand::random()),
    }
}
