//! Models how a call ended and its output.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{Attachment, Code, Digest, ResultBlock};

/// Maximum characters of a result in a queue, which is sent again with every change of one of its calls.
const MAX_RESULT_CHARS: usize = 500;

/// The output of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The text form; only head and tail if it was too long.
    pub text: String,
    /// The structured form, if the tool gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Bytes left out of `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_bytes: Option<u64>,
    /// Pictures and other files that the tool returned, limited to those that models are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// All blocks that the tool returned, if they are more than `text` and pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<ResultBlock>,
}

/// The outcome of a call. Every call has exactly one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// The tool answered.
    Completed { output: Output },
    /// The tool failed, or could not be called.
    Failed {
        /// The kind of failure.
        code: Code,
        /// The output or the error text.
        output: Output,
    },
    /// A person or a rule rejected the call.
    Rejected {
        /// The reason, if one was given.
        reason: Option<String>,
    },
    /// The turn or the call was stopped; it may have partly run.
    Cancelled,
    /// The call was started and its end was not observed; it may have happened.
    Unknown {
        /// The interruption; `None` = the gateway stopped while the call ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
    },
}

impl Outcome {
    /// The `status` of `tool:output` (docs/protocol.md).
    pub fn status(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Rejected { .. } => "rejected",
            Self::Cancelled => "cancelled",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// The pictures and files of the output.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Self::Completed { output } | Self::Failed { output, .. } => &output.attachments,
            Self::Rejected { .. } | Self::Cancelled | Self::Unknown { .. } => &[],
        }
    }

    /// Returns true if the model should read the result as an error.
    pub fn is_error(&self) -> bool {
        !matches!(self, Self::Completed { .. })
    }

    /// The beginning of [`Self::text`], for a list of calls.
    pub(in crate::session) fn beginning(&self) -> String {
        let text = self.text();
        match text.char_indices().nth(MAX_RESULT_CHARS) {
            Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
            None => text,
        }
    }

    /// Hash of the whole outcome, including pictures and structured content.
    pub(in crate::session) fn digest(&self) -> Digest {
        // Serialization fails only for maps with non-string keys, which JSON values cannot have.
        Digest::of_json(&serde_json::to_value(self).unwrap_or_default())
    }

    /// The text that people and the model read (D9: every call has a result).
    pub fn text(&self) -> String {
        match self {
            Self::Completed { output } | Self::Failed { output, .. } => output.text.clone(),
            Self::Rejected { reason: None } => "Rejected: the call was not allowed to run.".into(),
            Self::Rejected {
                reason: Some(reason),
            } => {
                format!("Rejected: the call was not allowed to run. Reason given: {reason}")
            }
            Self::Cancelled => {
                "Cancelled: the call was stopped. If it had started, it may have partly run.".into()
            }
            Self::Unknown { cause: None } => {
                "Outcome unknown: the server stopped while this call ran. It may or may not have \
                 happened. Check before you repeat it."
                    .into()
            }
            Self::Unknown { cause: Some(cause) } => format!(
                "Outcome unknown: the call may or may not have happened. Check before you repeat \
                 it.\n{cause}"
            ),
        }
    }
}
