//! Describes a problem of one field of an entry.

/// A problem of one field of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryProblem {
    /// The path of the field within the entry.
    pub field: String,
    /// The problem and its remedy.
    pub message: String,
}

impl EntryProblem {
    /// Creates a problem of `field`; `message` says what is wrong and what helps.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        Self { field, message }
    }
}
