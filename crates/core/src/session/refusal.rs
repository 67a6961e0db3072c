//! Says why a command, or a setting of a session, is refused.

use crate::domain::Code;

/// The reason a command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    /// The invalid field, if there is one.
    pub field: Option<&'static str>,
}

impl Refusal {
    /// A refusal without a field.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
        }
    }

    /// A refusal that names the invalid field.
    pub fn of_field(code: Code, field: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: Some(field),
        }
    }
}
